//! Ticks: what is dead is swept, then the epoch advances. In this order: an insertion for the longest time has, after the
//! tick, the tag that was dead before it (models tick_and_insertion_*).

use super::bucket_array::UnderLock;
use super::epoch::Pass;
use super::filter::RawFilter;
use super::locks::{Locked, LockedAll};
use super::shard::Shard;
use super::slots::{Slots, Tagged, Tagging};
use super::stripe::EMPTIED;
use crate::layout::{Bucket, MAX_EPOCH};

/// Buckets that are swept under one lock: a few microseconds.
const CHUNK: u32 = 512;

impl RawFilter<Tagging> {
    /// The number of ticks that were made.
    pub(crate) fn epoch(&self) -> u64 {
        self.kind().epoch.now()
    }

    /// Sweeps what is left to sweep, and ends the epoch: everything of which one tick was left is dead when this returns.
    /// Returns how many slots were cleared.
    pub(crate) fn advance(&self) -> usize {
        let pass = self.kind().epoch.pass();
        let (cleared, _) = self.sweep_up_to(&pass, u64::MAX);
        pass.advance(u64::from(pass.now() < MAX_EPOCH));
        cleared
    }

    /// Advances to this epoch, unless it is past already, tick by tick; returns how many epochs it went. Where every slot
    /// has died on the way, the filter is cleared, and of the ticks only as many are made as make tags come out right.
    pub(crate) fn advance_to(&self, epoch: u64) -> u64 {
        let pass = self.kind().epoch.pass();
        let mut due = epoch.min(MAX_EPOCH).saturating_sub(pass.now());
        let all = due;
        let cycle = self.tags().cycle();
        if due >= cycle {
            self.clear();
            // What is stored meanwhile has its time from then on: tags say the same a whole number of cycles later.
            pass.advance(due - due % cycle);
            due %= cycle;
        }
        for _ in 0..due {
            self.sweep_up_to(&pass, u64::MAX);
            pass.advance(1);
        }
        all
    }

    /// Sweeps about this many buckets more, ahead of the next tick; says whether any are left for it.
    pub(crate) fn sweep(&self, buckets: usize) -> bool {
        let pass = self.kind().epoch.pass();
        let chunks = (buckets as u64).div_ceil(u64::from(self.chunk()));
        self.sweep_up_to(&pass, pass.swept().saturating_add(chunks)).1
    }

    /// Drops what has died since copies of its tables were made, each at an epoch of its own, and goes on at the latest of these.
    /// No other thread knows the filter yet.
    pub(super) fn catch_up(&self, epochs: &[u64]) {
        let latest = epochs.iter().copied().max().unwrap_or(0);
        self.with_tables(|shards| shards.zip(epochs).for_each(|(shard, &copied)| shard.catch_up(copied, latest)));
        self.kind().epoch.pass().advance(latest);
    }

    /// Buckets that are swept under one lock: of one stripe.
    fn chunk(&self) -> u32 {
        CHUNK.min(1 << self.plan().stripe_shift)
    }

    /// Sweeps up to the chunk with this number, counted through all tables; returns how many slots were cleared, and whether any
    /// chunk is left. Tables that are split off while this runs are swept, too: the list is read as it goes (models
    /// tick_during_a_split_*).
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
    /// Clears the dead slots of some buckets of one stripe. No version advances: to readers of this epoch they are dead, and
    /// readers of an older one retry.
    fn sweep(self, pass: &Pass<'_>, first: u32, count: u32) -> usize {
        let mut buckets = self.geometry().buckets_from(first, count).peekable();
        let Some(&any) = buckets.peek() else { return 0 };
        let change = self.begin_change();
        let locked = self.stripes().lock_one(any);
        // The pass holds the epoch, so it is the one before the lock, too.
        let moment = self.slots.tags().moment(pass.now());
        let cleared = buckets.map(|bucket| self.sweep_bucket(&locked, moment, bucket)).sum();
        drop(locked);
        change.end();
        cleared
    }
}

impl<T: Slots> Shard<'_, T> {
    /// Clears all dead slots.
    pub(super) fn sweep_all(self, locked: &LockedAll<'_>) {
        if !T::TAGGED {
            return;
        }
        let moment = self.moment();
        for bucket in self.geometry().all_buckets() {
            self.sweep_bucket(locked, moment, bucket);
        }
    }

    /// Clears the dead slots of a locked bucket, and returns their number.
    fn sweep_bucket(self, locked: &Locked<'_, impl Sized>, moment: T::Moment, bucket: Bucket) -> usize {
        self.clear_where(locked, bucket, |run| self.slots.dead(self.format().lanes, run, moment), |_| true)
    }

    /// Clears the slots of a locked bucket that `is` selects in its runs, exactly, and `dies` by their content. Returns their
    /// number.
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
