//! Writers as functions that are chosen when the filter is built: those of a filter of fixed size know nothing of growth.

use super::filter::RawFilter;
use super::home::Fixed;
use super::insert::Admission;
use crate::error::InsertError;
use crate::layout::Mixed;
use crate::sys::isa::{Compiled, Function, Signature};

/// The signature of an insertion.
pub(super) enum Insert {}

impl Signature for Insert {
    type Context = RawFilter;
    type Input<'a> = Mixed;
    type Output = Result<bool, InsertError>;
}

/// The signature of a removal.
pub(super) enum Remove {}

impl Signature for Remove {
    type Context = RawFilter;
    type Input<'a> = Mixed;
    type Output = bool;
}

pub(super) struct Writers {
    pub(super) insert: Compiled<Insert>,
    pub(super) insert_unique: Compiled<Insert>,
    pub(super) remove: Compiled<Remove>,
}

impl Writers {
    pub(super) fn of_fixed() -> Self {
        Writers {
            insert: Compiled::for_scalars::<FixedCopies>(),
            insert_unique: Compiled::for_scalars::<FixedUnique>(),
            remove: Compiled::for_scalars::<FixedRemove>(),
        }
    }

    pub(super) fn of_growing() -> Self {
        Writers {
            insert: Compiled::for_scalars::<GrowingCopies>(),
            insert_unique: Compiled::for_scalars::<GrowingUnique>(),
            remove: Compiled::for_scalars::<GrowingRemove>(),
        }
    }
}

struct FixedCopies;
struct FixedUnique;
struct FixedRemove;
struct GrowingCopies;
struct GrowingUnique;
struct GrowingRemove;

impl Function<Insert> for FixedCopies {
    #[inline(always)]
    fn run(filter: &RawFilter, mixed: Mixed) -> Result<bool, InsertError> {
        let (shard, class) = filter.locate(mixed);
        let Ok(result) = shard.insert(Fixed, class, Admission::Copies);
        result
    }
}

impl Function<Insert> for FixedUnique {
    #[inline(always)]
    fn run(filter: &RawFilter, mixed: Mixed) -> Result<bool, InsertError> {
        let (shard, class) = filter.locate(mixed);
        let Ok(result) = shard.insert(Fixed, class, Admission::Unique);
        result
    }
}

impl Function<Remove> for FixedRemove {
    #[inline(always)]
    fn run(filter: &RawFilter, mixed: Mixed) -> bool {
        let (shard, class) = filter.locate(mixed);
        let Ok(removed) = shard.remove(Fixed, class);
        removed
    }
}

impl Function<Insert> for GrowingCopies {
    #[inline(always)]
    fn run(filter: &RawFilter, mixed: Mixed) -> Result<bool, InsertError> {
        filter.growing_tables().insert(mixed, Admission::Copies)
    }
}

impl Function<Insert> for GrowingUnique {
    #[inline(always)]
    fn run(filter: &RawFilter, mixed: Mixed) -> Result<bool, InsertError> {
        filter.growing_tables().insert(mixed, Admission::Unique)
    }
}

impl Function<Remove> for GrowingRemove {
    #[inline(always)]
    fn run(filter: &RawFilter, mixed: Mixed) -> bool {
        filter.growing_tables().remove(mixed)
    }
}
