//! All that one filter holds, stored in another one that was built alike.

use super::Core;
use crate::error::MergeError;
use crate::hashing::probe;
use crate::merge::merge;
use crate::raw::{IfPresent, Put};
use crate::report::MergeReport;
use core::hash::BuildHasher;

impl<S: BuildHasher> Core<S> {
    /// Stores all that lives in the other filter, a table at a time, copied under its locks, with the value that it has there. What
    /// dies lives a tick longer: the ticks of two filters do not come at one moment.
    pub(crate) fn merge_from(&self, other: &Self, if_present: IfPresent) -> Result<MergeReport, MergeError> {
        if self.life() != other.life() {
            return Err(MergeError::SizesDiffer);
        }
        let tags = self.raw.tags();
        let (tick, longest) = match self.life() {
            Some(life) => (tags.value_for(1), life.all_ticks()),
            None => (0, u32::MAX),
        };
        let put = |value: u32| {
            let value = if tags.epochs(value) < longest { value + tick } else { value };
            Put { value, if_present }
        };
        merge(&self.raw, &other.raw, probe(&self.hasher) == probe(&other.hasher), put)
    }
}
