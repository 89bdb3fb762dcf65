//! All that one filter holds, stored in another one that was built alike.

use super::Core;
use crate::error::MergeError;
use crate::hashing::probe;
use crate::layout::{Search, SearchBudget};
use crate::raw::{IfPresent, KEYS_UNDER_LOCKS, Put, Shards};
use crate::report::MergeReport;
use crate::sys::memory::HugePages;
use core::hash::BuildHasher;

impl<S: BuildHasher> Core<S> {
    /// Stores all that lives in the other filter, a shard at a time, copied under its locks. `value` says what becomes of
    /// a value.
    pub(crate) fn merge_from(
        &self,
        other: &Self,
        if_present: IfPresent,
        value: impl Fn(u32) -> u32,
    ) -> Result<MergeReport, MergeError> {
        if !self.plan().places_alike(other.plan()) {
            return Err(MergeError::SizesDiffer);
        }
        if probe(&self.hasher) != probe(&other.hasher) {
            return Err(MergeError::HashersDiffer);
        }
        let mut plan = *self.plan();
        (plan.shards, plan.stripes, plan.stripe_shift) = (1, 1, u32::BITS - 1);
        let bytes = plan.words * size_of::<u64>();
        let mut words = Vec::new();
        words.try_reserve_exact(plan.words).map_err(|_| MergeError::OutOfMemory { bytes })?;
        words.resize(plan.words, 0);
        let copy = Shards::new(&plan, HugePages::Unadvised.into()).ok_or(MergeError::OutOfMemory { bytes })?;
        let mut report = MergeReport::default();
        for (shard, from) in self.raw.each().zip(other.raw.each()) {
            let (count, epoch) = from.copy_to(&mut words);
            copy.at(0).fill_with(words.iter().copied(), count);
            let (mut search, mut budget) = (Search::new(), SearchBudget::full());
            let mut classes = shard.classes_in(copy.at(0), epoch).peekable();
            while classes.peek().is_some() {
                let exclusive = shard.exclusive();
                for (class, had) in classes.by_ref().take(KEYS_UNDER_LOCKS) {
                    match exclusive.put(&mut search, &mut budget, Put { class, value: value(had), if_present }) {
                        Ok(_) => report.inserted += 1,
                        Err(_) => report.refused += 1,
                    }
                }
            }
        }
        Ok(report)
    }
}
