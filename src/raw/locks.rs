//! The stripes of a shard and the order of their locks.

use super::counters::{Event, Totals};
use super::shards::Shards;
use super::stripe::{EMPTIED, REPLACED, Stripe, occupied};
use crate::layout::{Bucket, Class};
use crate::sys::steps::{Step, reached};
use crate::sys::sync::{AllGuards, Flag, MutexGuard, VisibleOnDrop, lock};
use crossbeam_utils::CachePadded;

/// The stripes of a shard. An insertion counts in the stripe of the slot that it fills, a removal in that of the slot
/// that it clears, and a relocation moves one. A loaded shard has its initial count in the first stripe, so single
/// counts may wrap below zero, and only their sum has a meaning.
#[derive(Clone, Copy)]
pub(crate) struct Stripes<'a> {
    pub(super) shards: &'a Shards,
    /// The index of the first stripe.
    first: usize,
}

/// Locked stripes. When they are unlocked on drop, all stores under them become visible to every thread. Changes of a
/// word require a reference to this.
pub(crate) struct Locked<'a, G> {
    pub(super) stripes: Stripes<'a>,
    /// The numbers of the stripes, or `None` for all of the shard.
    numbers: Option<[usize; 3]>,
    // Fields are dropped in this order.
    _guards: G,
    _visible: VisibleOnDrop,
}

/// Locked stripes, and the moment read after the last of them was locked: by an older one, a writer could take a live
/// slot for dead (models overwriting_*).
pub(crate) struct Held<'a, G, M> {
    pub(super) locked: Locked<'a, G>,
    pub(super) moment: M,
}

/// The locked stripe of a bucket.
pub(crate) type LockedOne<'a> = Locked<'a, MutexGuard<'a>>;

/// All stripes of a shard, locked.
pub(crate) type LockedAll<'a> = Locked<'a, AllOfShard<'a>>;

pub(crate) type AllOfShard<'a> = AllGuards<'a, CachePadded<Stripe>>;

impl<'a> Stripes<'a> {
    #[inline(always)]
    pub(super) fn new(shards: &'a Shards, shard: usize) -> Self {
        Stripes { shards, first: shard * shards.plan.stripes as usize }
    }

    #[inline(always)]
    pub(super) fn count(self) -> usize {
        self.shards.plan.stripes as usize
    }

    #[inline(always)]
    pub(super) fn number(self, bucket: Bucket) -> usize {
        bucket.index() >> self.shards.plan.stripe_shift
    }

    /// Set if a panic interrupted a change, so that the counts may be wrong.
    #[inline(always)]
    pub(super) fn interrupted(self) -> &'a Flag {
        &self.at(0).interrupted
    }

    #[inline]
    pub(super) fn of(self, bucket: Bucket) -> &'a Stripe {
        self.at(self.number(bucket))
    }

    #[inline(always)]
    fn at(self, number: usize) -> &'a Stripe {
        debug_assert!(number < self.count(), "stripe {number} of {}", self.count());
        self.shards.stripes.at(self.first + number)
    }

    pub(super) fn each(self) -> &'a [CachePadded<Stripe>] {
        self.shards.stripes.part(self.first, self.count())
    }

    /// Sets the number of fingerprints of a shard that no other thread knows.
    pub(crate) fn begin_with(self, total: u64) {
        self.at(0).set_count(total);
    }

    /// Locks the stripe of one bucket.
    ///
    /// All locks of a shard are taken here and in the four functions below, each once and in ascending order (H3,
    /// models crossing_pairs_* and crossing_last_hops_*).
    #[inline(always)]
    pub(crate) fn lock_one(self, bucket: Bucket) -> LockedOne<'a> {
        self.lock_number(self.number(bucket))
    }

    #[inline(always)]
    pub(super) fn lock_number(self, number: usize) -> LockedOne<'a> {
        let guard = self.lock(number);
        reached(Step::Locked);
        Locked { stripes: self, numbers: Some([number; 3]), _guards: guard, _visible: VisibleOnDrop }
    }

    /// Locks the stripes of both candidates, the lower first.
    ///
    /// Always inlined: with a call, which returns the guards in memory, batches of writes are 7 to 20 % slower.
    #[inline(always)]
    pub(crate) fn lock_pair(self, first: Bucket, second: Bucket) -> Locked<'a, impl Sized + use<'a>> {
        let (low, high) = if first < second { (first, second) } else { (second, first) };
        let (low, high) = (self.number(low), self.number(high));
        let guards = (self.lock(low), self.lock_other(high, low));
        reached(Step::Locked);
        Locked { stripes: self, numbers: Some([low, high, high]), _guards: guards, _visible: VisibleOnDrop }
    }

    /// Locks the stripes of both candidates of a new key, and of the bucket to which a fingerprint moves.
    pub(crate) fn lock_three(self, buckets: [Bucket; 3]) -> Locked<'a, impl Sized + use<'a>> {
        let mut numbers = buckets.map(|bucket| self.number(bucket));
        numbers.sort_unstable();
        let [low, middle, high] = numbers;
        let guards = (self.lock(low), self.lock_other(middle, low), self.lock_other(high, middle));
        reached(Step::Locked);
        Locked { stripes: self, numbers: Some(numbers), _guards: guards, _visible: VisibleOnDrop }
    }

    pub(crate) fn lock_all(self) -> LockedAll<'a> {
        let guards = AllGuards::lock(self.each(), |stripe| &stripe.lock);
        reached(Step::Locked);
        Locked { stripes: self, numbers: None, _guards: guards, _visible: VisibleOnDrop }
    }

    #[inline]
    fn lock(self, number: usize) -> MutexGuard<'a> {
        lock(&self.at(number).lock)
    }

    /// Locks a stripe, unless it is the previous one.
    #[inline]
    fn lock_other(self, number: usize, before: usize) -> Option<MutexGuard<'a>> {
        (number != before).then(|| self.lock(number))
    }

    /// The [`state`](Stripe::state) of a stripe, read while no other thread holds its lock.
    pub(super) fn state(self, number: usize) -> [u64; 2] {
        self.at(number).unlocked_state().unwrap_or_else(|| {
            let _locked = self.lock_number(number);
            self.at(number).state()
        })
    }

    #[cfg(test)]
    pub(crate) fn states(self) -> Vec<[u64; 2]> {
        (0..self.count()).map(|number| self.state(number)).collect()
    }

    /// The sum of the counts, read one after the other. It wraps below zero.
    pub(crate) fn sum(self) -> u64 {
        occupied(self.each().iter().map(|stripe| stripe.count()).fold(0, u64::wrapping_add))
    }

    /// The number of fingerprints, if this (wrapping) number is added to the counts.
    pub(crate) fn total_and(self, more: u64) -> u64 {
        let sum = self.sum().wrapping_add(more);
        // Below zero if a fingerprint moved from a stripe already read to one not yet read, or beside a clear.
        if i64::try_from(sum).is_ok() { sum } else { 0 }
    }

    pub(crate) fn add_totals_to(self, totals: &mut Totals) {
        self.each().iter().for_each(|stripe| stripe.counters.add_to(totals));
    }
}

impl<G> Locked<'_, G> {
    /// Asserts in debug builds that the lock of the bucket's stripe is held.
    #[inline]
    pub(crate) fn assert_holds(&self, bucket: Bucket) {
        let holds = |numbers: [usize; 3]| numbers.contains(&self.stripes.number(bucket));
        debug_assert!(self.numbers.is_none_or(holds), "bucket {} is written without its stripe", bucket.get());
    }

    /// Advances the versions of the class in the stripes of both its buckets, so that concurrent lookups that miss it
    /// retry.
    pub(crate) fn bump(&self, class: Class) {
        self.assert_holds(class.first);
        self.assert_holds(class.second);
        let (first, second) = (self.stripes.of(class.first), self.stripes.of(class.second));
        first.advance();
        if !core::ptr::eq(first, second) {
            second.advance();
        }
    }

    /// Counts an event of a key or fingerprint of this bucket.
    #[inline(always)]
    pub(crate) fn note(&self, bucket: Bucket, event: Event) {
        self.assert_holds(bucket);
        self.stripes.of(bucket).counters.note(event);
    }

    /// Changes the number of occupied slots, under the lock of the store that fills or clears one of this bucket (H9).
    #[inline(always)]
    pub(crate) fn count(&self, bucket: Bucket, change: impl FnOnce(u64) -> u64) {
        self.assert_holds(bucket);
        let stripe = self.stripes.of(bucket);
        stripe.set_count(change(stripe.locked_count()));
        reached(Step::Counted);
    }

    /// Moves one occupied slot from one count to the other. A concurrent `len` may see it twice or not at all.
    pub(crate) fn move_count(&self, from: Bucket, to: Bucket) {
        let [from, to] = [from, to].map(|bucket| self.stripes.of(bucket));
        if !core::ptr::eq(from, to) {
            to.set_count(to.locked_count().wrapping_add(1));
            from.set_count(from.locked_count().wrapping_add(EMPTIED));
        }
    }
}

impl LockedAll<'_> {
    /// Advances the version of every stripe.
    pub(crate) fn bump_all(&self) {
        self.stripes.each().iter().for_each(|stripe| stripe.advance());
    }

    /// If a change was interrupted, sets the sum of the counts to the result of `taken`, unless that is `None`.
    pub(crate) fn mend_counts(&self, taken: impl FnOnce() -> Option<u64>) {
        if self.stripes.interrupted().is_set() {
            if let Some(taken) = taken() {
                self.set_total(taken);
            }
            self.stripes.interrupted().set(false);
        }
    }

    /// Sets the sum of the counts by one store: a concurrent `len` returns the former sum or this one, apart from the
    /// changes of other shards (H9). The count always increases, so it never has a former value again (H14, model
    /// refused_beside_counts_that_are_mended).
    pub(crate) fn set_total(&self, total: u64) {
        let counts = self.stripes.each().iter().map(|stripe| stripe.locked_count());
        let missing = total.wrapping_sub(counts.fold(0, u64::wrapping_add)) % REPLACED;
        let first = self.stripes.at(0);
        first.set_count(first.locked_count().wrapping_add(missing + REPLACED));
        reached(Step::Counted);
    }
}
