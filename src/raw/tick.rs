//! Ticks: dead slots are swept, then the epoch advances. After the tick, an insertion for the longest time has the tag
//! that was dead before it (models tick_and_insertion_*).

use super::bucket_array::UnderLock;
use super::epoch::Pass;
use super::filter::RawFilter;
use super::locks::{Locked, LockedAll};
use super::shard::Shard;
use super::slots::{Slots, Tagged, Tagging};
use super::stripe::EMPTIED;
use crate::layout::{Bucket, MAX_EPOCH};

/// The largest number of buckets swept under one lock, which takes a few microseconds.
const CHUNK: u32 = 512;

impl RawFilter<Tagging> {
    /// Sweeps the remaining chunks and ends the epoch: slots with one tick left are dead on return. Returns the number
    /// of cleared slots.
    pub(crate) fn advance(&self) -> usize {
        let pass = self.kind().epoch.pass();
        let (cleared, _) = self.sweep_up_to(&pass, u64::MAX);
        pass.advance(u64::from(pass.ticks() < MAX_EPOCH));
        cleared
    }

    /// Advances tick by tick to this epoch, unless it has passed. Returns the number of ticks. If every slot dies on
    /// the way, clears the filter and makes only the remaining ticks of the last cycle.
    pub(crate) fn advance_to(&self, epoch: u64) -> u64 {
        let pass = self.kind().epoch.pass();
        let mut due = epoch.min(MAX_EPOCH).saturating_sub(pass.ticks());
        let all = due;
        let cycle = self.tags().cycle();
        if due >= cycle {
            // Before the clear: whoever sees what was stored behind it, such as a clone, knows of the skipped ticks. What is stored in
            // the meantime has its time from now on.
            pass.skip(due - due % cycle);
            due %= cycle;
            self.clear();
        }
        for _ in 0..due {
            self.sweep_up_to(&pass, u64::MAX);
            pass.advance(1);
        }
        all
    }

    /// Sweeps about this many buckets ahead of the next tick. Returns whether any are left.
    pub(crate) fn sweep(&self, buckets: usize) -> bool {
        let pass = self.kind().epoch.pass();
        let chunks = (buckets as u64).div_ceil(u64::from(self.chunk()));
        self.sweep_up_to(&pass, pass.swept().saturating_add(chunks)).1
    }

    /// Drops the slots that have died since tables were copied at these epochs, and advances to the latest. No other
    /// thread knows the filter.
    pub(super) fn catch_up(&self, epochs: &[u64]) {
        let latest = epochs.iter().copied().max().unwrap_or(0);
        self.with_tables(|shards| shards.zip(epochs).for_each(|(shard, &copied)| shard.catch_up(copied, latest)));
        self.kind().epoch.pass().advance(latest);
    }

    /// The number of buckets swept under one lock: at most one stripe.
    fn chunk(&self) -> u32 {
        CHUNK.min(1 << self.plan().stripe_shift)
    }

    /// Sweeps up to the chunk with this number, counted through all tables. Returns the number of cleared slots, and
    /// whether any chunk is left. Includes tables split off in the meantime, because the list is read as it grows
    /// (models tick_during_a_split_*).
    fn sweep_up_to(&self, pass: &Pass<'_>, end: u64) -> (usize, bool) {
        let chunk = self.chunk();
        let chunks = u64::from(self.plan().buckets.div_ceil(chunk));
        let mut cleared = 0;
        self.with_tables(|shards| {
            let mut number = pass.swept();
            let mut shard = shards.nth((number / chunks) as usize);
            while let Some(table) = shard {
                if number >= end {
                    return (cleared, true);
                }
                cleared += table.sweep(pass, (number % chunks) as u32 * chunk, chunk);
                number += 1;
                pass.set_swept(number);
                if number.is_multiple_of(chunks) {
                    shard = shards.next();
                }
            }
            (cleared, false)
        })
    }
}

impl Shard<'_, Tagged<'_>> {
    /// Clears the dead slots of some buckets of one stripe. Advances no version: the slots are dead to readers of this
    /// epoch, and readers of an older one retry.
    fn sweep(self, pass: &Pass<'_>, first: u32, count: u32) -> usize {
        let mut buckets = self.plan().buckets_from(first, count).peekable();
        let Some(&any) = buckets.peek() else { return 0 };
        self.change(|| {
            let locked = self.stripes().lock_one(any);
            // The pass holds the epoch, so it is the one before the lock, too.
            let moment = self.slots.tags().moment(pass.now());
            buckets.map(|bucket| self.sweep_bucket(&locked, moment, bucket)).sum()
        })
    }
}

impl<T: Slots> Shard<'_, T> {
    /// Clears all dead slots, by the epoch under these locks.
    pub(super) fn sweep_all(self, locked: &LockedAll<'_>) {
        if !T::TAGGED {
            return;
        }
        let moment = self.moment();
        for bucket in self.plan().all_buckets() {
            self.sweep_bucket(locked, moment, bucket);
        }
    }

    /// Clears the dead slots of a locked bucket, and returns their number.
    fn sweep_bucket(self, locked: &Locked<'_, impl Sized>, moment: T::Moment, bucket: Bucket) -> usize {
        self.clear_where(locked, bucket, |run| self.slots.dead(self.format().lanes, run, moment), |_| true)
    }

    /// Clears the slots of a locked bucket that `is` selects exactly in its runs and `dies` by their content. Returns
    /// their number.
    pub(super) fn clear_where(
        self,
        locked: &Locked<'_, impl Sized>,
        bucket: Bucket,
        is: impl Fn(u64) -> u64,
        dies: impl Fn(u32) -> bool,
    ) -> usize {
        locked.assert_holds(bucket);
        let slots = self.bucket_array().matching(bucket, UnderLock, is).slots(self.format());
        let cleared = slots.filter(|&slot| dies(self.bucket_array().value(locked, slot)));
        let cleared = cleared.inspect(|&slot| self.bucket_array().clear(locked, slot)).count();
        if cleared > 0 {
            locked.count(bucket, |count| count.wrapping_add((cleared as u64).wrapping_mul(EMPTIED)));
        }
        cleared
    }
}
