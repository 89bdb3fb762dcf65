//! Writers as functions that are chosen when the filter is built: those of a filter of fixed size know nothing of growth.

use super::growing::Growing;
use super::home::Fixed;
use super::pair::Admission;
use super::shards::Shards;
use crate::error::InsertError;
use crate::layout::Mixed;
use crate::sys::isa::{Function, Of};

/// The signatures of insertions and removals.
pub(super) type Insert<F> = Of<F, Mixed, Result<bool, InsertError>>;
pub(super) type Remove<F> = Of<F, Mixed, bool>;

/// Writers of a filter of fixed size.
pub(super) struct InFixed<const UNIQUE: bool = false>;

/// Those of one that grows.
pub(super) struct InGrowing<const UNIQUE: bool = false>;

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

impl<F: AsRef<Shards>> Function<Remove<F>> for InFixed {
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

impl<F: AsRef<Option<Box<Growing>>>> Function<Remove<F>> for InGrowing {
    #[inline(always)]
    fn run(filter: &F, mixed: Mixed) -> bool {
        growing(filter).remove(mixed)
    }
}

#[inline(always)]
fn growing(filter: &impl AsRef<Option<Box<Growing>>>) -> &Growing {
    filter.as_ref().as_deref().expect("a filter that grows")
}
