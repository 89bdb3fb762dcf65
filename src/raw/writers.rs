//! Writers as functions that are chosen when the filter is built: those of a filter of fixed size know nothing of growth.

use super::growing::Growing;
use super::home::Fixed;
use super::pair::Admission;
use super::shards::Shards;
use crate::error::InsertError;
use crate::layout::Mixed;
use crate::sys::isa::{Compiled, Function, Signature};
use core::marker::PhantomData;

/// The signature of an insertion.
pub(super) struct Insert<F>(PhantomData<F>);

impl<F> Signature for Insert<F> {
    type Context = F;
    type Input<'a> = Mixed;
    type Output = Result<bool, InsertError>;
}

/// The signature of a removal.
pub(super) struct Remove<F>(PhantomData<F>);

impl<F> Signature for Remove<F> {
    type Context = F;
    type Input<'a> = Mixed;
    type Output = bool;
}

pub(super) struct Writers<F> {
    pub(super) insert: Compiled<Insert<F>>,
    pub(super) insert_unique: Compiled<Insert<F>>,
    pub(super) remove: Compiled<Remove<F>>,
}

impl<F> Writers<F> {
    pub(super) fn of_fixed() -> Self
    where
        F: AsRef<Shards>,
    {
        Writers {
            insert: Compiled::for_scalars::<InFixed<false>>(),
            insert_unique: Compiled::for_scalars::<InFixed<true>>(),
            remove: Compiled::for_scalars::<InFixed<false>>(),
        }
    }

    pub(super) fn of_growing() -> Self
    where
        F: AsRef<Option<Box<Growing>>>,
    {
        Writers {
            insert: Compiled::for_scalars::<InGrowing<false>>(),
            insert_unique: Compiled::for_scalars::<InGrowing<true>>(),
            remove: Compiled::for_scalars::<InGrowing<false>>(),
        }
    }
}

struct InFixed<const UNIQUE: bool>;
struct InGrowing<const UNIQUE: bool>;

const fn admission(unique: bool) -> Admission {
    if unique { Admission::Unique } else { Admission::Copies }
}

impl<F: AsRef<Shards>, const UNIQUE: bool> Function<Insert<F>> for InFixed<UNIQUE> {
    #[inline(always)]
    fn run(filter: &F, mixed: Mixed) -> Result<bool, InsertError> {
        let (shard, class) = filter.as_ref().locate(mixed);
        let Ok(result) = shard.insert(Fixed, class, admission(UNIQUE));
        result
    }
}

impl<F: AsRef<Shards>> Function<Remove<F>> for InFixed<false> {
    #[inline(always)]
    fn run(filter: &F, mixed: Mixed) -> bool {
        let (shard, class) = filter.as_ref().locate(mixed);
        let Ok(removed) = shard.remove(Fixed, class);
        removed
    }
}

impl<F: AsRef<Option<Box<Growing>>>, const UNIQUE: bool> Function<Insert<F>> for InGrowing<UNIQUE> {
    #[inline(always)]
    fn run(filter: &F, mixed: Mixed) -> Result<bool, InsertError> {
        growing(filter).insert(mixed, admission(UNIQUE))
    }
}

impl<F: AsRef<Option<Box<Growing>>>> Function<Remove<F>> for InGrowing<false> {
    #[inline(always)]
    fn run(filter: &F, mixed: Mixed) -> bool {
        growing(filter).remove(mixed)
    }
}

#[inline(always)]
fn growing(filter: &impl AsRef<Option<Box<Growing>>>) -> &Growing {
    filter.as_ref().as_deref().expect("a filter that grows")
}
