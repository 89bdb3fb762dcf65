//! A shard's contents as plain words, with the epoch that its tags are meant by.

use super::super::shard::Shard;
use super::super::shards::Shards;
use super::super::table::{Optimistic, UnderLock};
use super::filter::{Held, Tagged, TaggedShard};
use crate::layout::Class;

impl Tagged {
    /// A filter that was read from a file, of shards that were copied at these epochs: it goes on at the latest, and what has
    /// died by then is dropped.
    pub(crate) fn from_copies(shards: Shards, epochs: &[u64]) -> Self {
        let latest = epochs.iter().copied().max().unwrap_or(0);
        let filter = Tagged::at_epoch(shards, latest);
        filter.each().zip(epochs).for_each(|(shard, &copied)| shard.catch_up(copied, latest));
        filter
    }
}

impl<'a> TaggedShard<'a> {
    /// Copies the words, as many as `words` has, and says how many slots are in use in them, and the epoch. All stripes are
    /// locked, and the epoch is read under their locks: tags were stored by it, or by the one before and have not been
    /// swept. One epoch for all shards of a copy would be wrong for those that were copied before or after a tick.
    pub(crate) fn copy_to(self, words: &mut [u64]) -> (u64, u64) {
        let locked = self.shard.stripes().lock_all();
        let epoch = self.filter.epoch();
        locked.mend_counts(|| self.shard.occupied());
        self.table().copy_to(&locked, words);
        (self.shard.stripes().total(), epoch)
    }

    /// Drops what has died between the epoch of a copy, by which the tags of this shard are meant, and a later one. For a
    /// shard that no other thread knows.
    fn catch_up(self, copied: u64, now: u64) {
        let held = Held { moment: self.tags().moment(copied), locked: self.shard.stripes().lock_all() };
        for bucket in self.shard.geometry().all_buckets() {
            let taken = self.matching(bucket, UnderLock, |run| self.tags().taken(run));
            for slot in taken.slots(self.format()) {
                if u64::from(self.value(&held, slot)) <= now - copied {
                    self.table().clear(&held.locked, slot);
                    held.locked.count(bucket, |count| count.wrapping_sub(1));
                }
            }
        }
    }

    /// Each live copy of each class, with its value, in words of this shard that were copied at this epoch.
    pub(crate) fn classes_in(self, copy: Shard<'a>, epoch: u64) -> impl Iterator<Item = (Class, u32)> + use<'a> {
        let (tags, moment) = (self.tags(), self.tags().moment(epoch));
        copy.geometry().all_buckets().flat_map(move |first| {
            copy.table().slots(first, Optimistic).into_iter().filter_map(move |slot| {
                let fingerprint = tags.fingerprint(slot, moment)?;
                let second = copy.geometry().alternate(fingerprint, first);
                Some((Class { fingerprint, first, second }, tags.value(slot, moment)))
            })
        })
    }
}
