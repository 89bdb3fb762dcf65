//! All that one filter holds, stored in another one that was built alike.

use super::Core;
use crate::error::MergeError;
use crate::hashing::probe;
use crate::merge::merge;
use crate::raw::Put;
use crate::report::MergeReport;
use core::hash::BuildHasher;

impl<S: BuildHasher> Core<S> {
    /// Stores all that lives in the other filter, a table at a time, copied under its locks, by what `put` makes of values.
    pub(crate) fn merge_from(&self, other: &Self, put: impl Fn(u32) -> Put) -> Result<MergeReport, MergeError> {
        merge(&self.raw, &other.raw, probe(&self.hasher) == probe(&other.hasher), put)
    }
}
