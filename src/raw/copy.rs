//! A shard's contents as plain words, for snapshots and merging.

use super::shard::Shard;
use super::table::Optimistic;
use crate::layout::{Class, Fingerprint, occupied_in};

impl<'a> Shard<'a> {
    /// Copies the words, as many as `words` has, and says how many fingerprints are stored in them. All stripes are
    /// locked: copied stripe by stripe, a fingerprint could move from one that is not yet copied to one that is (H7,
    /// models copy_*). Lookups go on.
    pub(crate) fn copy_to(self, words: &mut [u64]) -> u64 {
        let locked = self.stripes().lock_all();
        // Readers refuse a shard of which the count is wrong.
        locked.mend_counts(|| self.occupied());
        self.table().copy_to(&locked, words);
        self.stripes().total()
    }

    /// Gives other words, in which `count` fingerprints are stored, to a shard that no other thread knows.
    pub(crate) fn fill_with(self, words: impl Iterator<Item = u64>, count: u64) {
        self.table().fill_with(words);
        self.stripes().begin_with(count);
    }

    /// Counts the occupied slots of a shard without writers. `None` if anything stands behind the last bucket.
    pub(crate) fn occupied(self) -> Option<u64> {
        self.table().occupied(self.geometry().all_buckets())
    }

    /// Counts the occupied slots of bytes that are to be the words of this shard. As [`Shard::occupied`].
    pub(crate) fn occupied_in(self, bytes: &[u8]) -> Option<u64> {
        occupied_in(bytes, self.table().format().slot_bits(), self.geometry().all_buckets().len())
    }

    /// Each copy of each class, of a shard without writers.
    pub(crate) fn classes(self) -> impl Iterator<Item = Class> + use<'a> {
        self.geometry().all_buckets().flat_map(move |first| {
            let fingerprints = self.table().slots(first, Optimistic).into_iter().filter_map(Fingerprint::from_slot);
            fingerprints.map(move |fingerprint| {
                let second = self.geometry().alternate(fingerprint, first);
                Class { fingerprint, first, second }
            })
        })
    }
}
