//! The contents of shards as plain words, for snapshots, clones and merges.

use super::assembly::Assembly;
use super::bucket_array::Optimistic;
use super::epoch::Epoch;
use super::exclusive::KEYS_UNDER_LOCKS;
use super::filter::{RawFilter, with_directory};
use super::flat::Flat;
use super::owner::Fixed;
use super::pair::Put;
use super::shard::Shard;
use super::slots::{SlotKind, Slots, Tagged};
use crate::error::InsertError;
use crate::layout::{Bucket, CellPlace, Class, Extent, Search, SearchBudget, occupied_in, unpack};
use crate::sys::memory::HugePages;
use core::convert::Infallible;
use core::ops::Range;

/// The description of a copied table.
pub(crate) struct TableCopy {
    pub(crate) extent: Extent,
    /// The number of occupied slots.
    pub(crate) count: u64,
    /// The epoch to which its tags refer, with the skipped ticks.
    pub(crate) epoch: u64,
}

impl<K: SlotKind> RawFilter<K> {
    /// Copies the tables of these shards, one after the other, into the same `words`, which must hold any of them.
    pub(crate) fn copy_each<E>(
        &self,
        shards: Range<usize>,
        words: &mut [u64],
        mut take: impl FnMut(&TableCopy, &[u64]) -> Result<(), E>,
    ) -> Result<(), E> {
        let cells_at = |depth| self.plan().cells_at(depth);
        let [mut cell, end] = [shards.start, shards.end].map(|shard| shard * cells_at(0));
        while cell < end {
            let copy = self.copy_table(cell, words);
            cell += cells_at(copy.extent.depth);
            take(&copy, &words[..self.plan().leaf(&copy.extent).words as usize])?;
        }
        Ok(())
    }

    /// Copies the table whose first cell is this one, and repeats that if a long advance began in the meantime: then the
    /// table may have been cleared before it was copied or after it, and its tags may refer to an epoch before or after
    /// the skipped ticks (models a_clone_beside_a_long_advance_*).
    fn copy_table(&self, cell: usize, words: &mut [u64]) -> TableCopy {
        let epoch = self.kind().epoch();
        loop {
            let skipped = epoch.map_or(0, Epoch::skipped_and_cleared);
            let copy = with_directory!(self, directory => directory.copy_table(cell, words));
            if epoch.map_or(0, Epoch::skipped) == skipped {
                return TableCopy { epoch: copy.epoch + skipped, ..copy };
            }
        }
    }

    /// Calls `work` with each copy of each class, with its whole fingerprint and the shard in which it began, in a
    /// filter without writers.
    pub(crate) fn each_class(&self, mut work: impl FnMut(usize, Class)) {
        let (slots, cells) = (self.kind().slots(), self.plan().cells_at(0));
        let moment = slots.moment(slots.now());
        match self {
            RawFilter::Flat(flat) => {
                for (number, shard) in flat.each().enumerate() {
                    for (first, slot) in shard.contents() {
                        let Some(fingerprint) = slots.fingerprint(slot, moment) else { continue };
                        let second = shard.alternates().alternate(fingerprint, first);
                        work(number, Class { fingerprint, first, second });
                    }
                }
            }
            RawFilter::Growing(growing) => {
                for (extent, shard) in growing.extents().zip(growing.each()) {
                    let live = self.live(extent, moment, shard.contents());
                    live.for_each(|(place, _)| work(place.cell / cells, place.class));
                }
            }
        }
    }

    /// Copies this filter while it serves; `words` must hold any of its tables. Returns `None` if allocation fails.
    pub(crate) fn try_clone(&self, words: &mut [u64]) -> Option<Self> {
        let copy = Assembly::<K>::new(self.plan(), HugePages::Reused)?;
        let copied = self.copy_each(0..self.plan().shards, words, |table, words| {
            copy.add(&table.extent, table.epoch, |shard| {
                shard.fill_with(words.iter().copied(), table.count);
                Ok::<_, Infallible>(())
            })
        });
        copied.ok().and_then(|()| copy.finish())
    }

    /// The live contents of a copy at its epoch, with their values.
    pub(crate) fn contents<'a>(
        &'a self,
        copy: &TableCopy,
        words: &'a [u64],
    ) -> impl Iterator<Item = (CellPlace, u32)> + use<'a, K> {
        let table = self.plan().leaf(&copy.extent);
        let buckets = table.all_buckets().zip(unpack(words, table.slot_bits, table.buckets as usize));
        let slots = buckets.flat_map(|(bucket, slots)| slots.map(move |slot| (bucket, slot)));
        self.live(copy.extent, self.kind().slots().moment_at(copy.epoch), slots)
    }

    /// The places and the values of the live slots of a table.
    fn live<'a>(
        &'a self,
        extent: Extent,
        moment: K::Moment,
        slots: impl Iterator<Item = (Bucket, u32)> + 'a,
    ) -> impl Iterator<Item = (CellPlace, u32)> + 'a {
        let (plan, geometry, kind) = (self.plan(), self.geometry(), self.kind().slots());
        slots.filter_map(move |(bucket, slot)| {
            let stored = kind.fingerprint(slot, moment)?;
            Some((geometry.cell_place_of(plan, &extent, stored, bucket), kind.value(slot, moment)))
        })
    }

    /// Stores the contents of another filter of the same plan. Copies one table at a time into `words`, and stores its
    /// contents by `put` of their values. Never holds stripes of two filters at once.
    pub(crate) fn merge_from(
        &self,
        other: &Self,
        words: &mut [u64],
        put: impl Fn(u32) -> Put,
        mut note: impl FnMut(Result<u32, InsertError>),
    ) {
        let mut search = Search::new();
        let Ok(()) = other.copy_each(0..other.plan().shards, words, |copy, words| {
            let mut contents = other.contents(copy, words).peekable();
            let mut budget = SearchBudget::full();
            match self {
                // In the order of their buckets, keys fill the first buckets of a table that has doubled less often.
                RawFilter::Growing(growing) => contents.for_each(|(place, value)| {
                    note(growing.insert_doubling(place, put(value), copy.extent.depth, &mut budget));
                }),
                RawFilter::Flat(flat) => {
                    while contents.peek().is_some() {
                        let exclusive = flat.at(copy.extent.first_cell).exclusive();
                        for (CellPlace { class, .. }, value) in contents.by_ref().take(KEYS_UNDER_LOCKS) {
                            let Ok(result) = exclusive.insert(Fixed, &mut search, &mut budget, class, put(value));
                            note(result);
                        }
                    }
                }
            }
            Ok::<_, Infallible>(())
        });
    }
}

impl<K: SlotKind> Flat<K> {
    fn copy_table(&self, shard: usize, words: &mut [u64]) -> TableCopy {
        let (count, epoch) = self.at(shard).copy_to(words);
        TableCopy { extent: self.plan().extent_after(0, shard), count, epoch }
    }
}

impl<'a, T: Slots> Shard<'a, T> {
    /// Copies as many words as `words` holds, and returns the number of occupied slots and the epoch. All stripes are
    /// locked: stripe by stripe, a fingerprint could move from one not yet copied to one already copied (H7, models
    /// copy_*). The epoch is read under their locks: tags were stored by it, or by the one before and have not been
    /// swept. Shards of one copy may differ by ticks, so each has an epoch of its own.
    pub(crate) fn copy_to(self, words: &mut [u64]) -> (u64, u64) {
        let locked = self.stripes().lock_all();
        let now = self.slots.now();
        // Readers refuse a shard whose count is wrong.
        locked.mend_counts(|| self.occupied());
        self.bucket_array().copy_to(&locked, words);
        (self.len(), self.slots.number(now))
    }

    /// Fills a shard that no other thread knows with other words, of which `count` slots are occupied.
    pub(crate) fn fill_with(self, words: impl Iterator<Item = u64>, count: u64) {
        words.for_each(self.bucket_array().filled_by_each());
        self.stripes().begin_with(count);
    }

    /// Counts the occupied slots of a shard without writers. Returns `None` if any bit behind the last bucket is set.
    pub(crate) fn occupied(self) -> Option<u64> {
        self.bucket_array().occupied(self.plan().all_buckets())
    }

    /// Like [`occupied`](Self::occupied), but counts in bytes that are to become the words of this shard.
    pub(crate) fn occupied_in(self, bytes: &[u8]) -> Option<u64> {
        occupied_in(bytes, self.format().slot_bits, self.plan().all_buckets().len())
    }

    /// The bucket and the content of each occupied slot, in a shard without writers.
    pub(crate) fn contents(self) -> impl Iterator<Item = (Bucket, u32)> + use<'a, T> {
        let slots = self.plan().all_buckets().flat_map(move |bucket| {
            self.bucket_array().slots(bucket, Optimistic).into_iter().map(move |slot| (bucket, slot))
        });
        slots.filter(|&(_, slot)| slot != 0)
    }
}

impl Shard<'_, Tagged<'_>> {
    /// Clears the slots that have died between the epoch of a copy and a later one, in a shard that no other thread
    /// knows.
    pub(super) fn catch_up(self, copied: u64, now: u64) {
        let (tags, lanes) = (self.slots.tags(), self.format().lanes);
        let (moment, locked) = (tags.moment(copied), self.stripes().lock_all());
        for bucket in self.plan().all_buckets() {
            let dies = |slot| u64::from(tags.epochs(tags.value(slot, moment))) <= now - copied;
            self.clear_where(&locked, bucket, |run| !lanes.equal(run, 0) & lanes.high, dies);
        }
    }
}
