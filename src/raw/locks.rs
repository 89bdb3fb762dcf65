//! The stripes of a shard and their locks: the one place that decides which lock comes first.

use super::counters::{Event, Totals};
use super::shards::Shards;
use super::stripe::{EMPTIED, Stripe, occupied};
use crate::layout::{Bucket, Class};
use crate::sys::steps::{Step, reached};
use crate::sys::sync::{AllGuards, Flag, MutexGuard, VisibleOnDrop, lock};
use crossbeam_utils::CachePadded;

/// All stripes of a shard. A count is that of its stripe's slots: an insertion counts in the stripe of the slot that it
/// fills, a removal in that of the slot that it clears, and a relocation moves one. A shard that was loaded has what it
/// began with in the first one, so that single counts may stand below zero, wrapped; only sums mean anything.
#[derive(Clone, Copy)]
pub(crate) struct Stripes<'a> {
    shards: &'a Shards,
    /// The shard, and the first of its stripes.
    shard: usize,
    first: usize,
}

/// Locked stripes, unlocked when dropped, and what was written under them is then visible to every thread. A writer shows
/// them to change a word.
pub(crate) struct Locked<'a, G> {
    pub(super) stripes: Stripes<'a>,
    /// Which; `None` is all of the shard.
    numbers: Option<[usize; 3]>,
    // Fields are dropped in this order.
    _guards: G,
    _visible: VisibleOnDrop,
}

/// Locked stripes, and the moment that was read after the last of them was locked: by an older one, a writer could take a
/// live slot for a dead one (models overwriting_*).
pub(crate) struct Held<'a, G, M> {
    pub(super) locked: Locked<'a, G>,
    pub(super) moment: M,
}

/// The stripe of a bucket.
pub(crate) type LockedOne<'a> = Locked<'a, MutexGuard<'a>>;

/// The stripes of two buckets; one guard where they are one stripe.
pub(crate) type LockedPair<'a> = Locked<'a, (MutexGuard<'a>, Option<MutexGuard<'a>>)>;

/// The stripes of three buckets.
pub(crate) type LockedThree<'a> = Locked<'a, (MutexGuard<'a>, Option<MutexGuard<'a>>, Option<MutexGuard<'a>>)>;

/// All stripes of a shard.
pub(crate) type LockedAll<'a> = Locked<'a, AllOfShard<'a>>;

pub(crate) type AllOfShard<'a> = AllGuards<'a, CachePadded<Stripe>>;

impl<'a> Stripes<'a> {
    #[inline(always)]
    pub(super) fn new(shards: &'a Shards, shard: usize) -> Self {
        Stripes { shards, shard, first: shard * shards.plan().stripes }
    }

    /// How many there are.
    #[inline(always)]
    pub(super) fn count(self) -> usize {
        self.shards.plan().stripes
    }

    /// The number of the stripe of a bucket.
    #[inline(always)]
    pub(super) fn number(self, bucket: Bucket) -> usize {
        bucket.index() >> self.shards.shape.positions.stripe_shift
    }

    /// Set if a panic interrupted a change: the counts may not be what the words say.
    #[inline(always)]
    pub(super) fn interrupted(self) -> &'a Flag {
        self.shards.interrupted.at(self.shard)
    }

    /// Whether what takes several stores is noted first (`intent`).
    #[inline(always)]
    pub(super) fn is_noted(self) -> bool {
        self.shards.is_noted()
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

    /// Makes this the number of fingerprints in a shard that no other thread knows yet.
    pub(crate) fn begin_with(self, total: u64) {
        self.at(0).set_count(total);
    }

    /// Locks the stripe of one bucket.
    ///
    /// Every lock of a shard is taken here and in the four functions below, once and in ascending order (H3, models
    /// crossing_pairs_* and crossing_last_hops_*).
    #[inline(always)]
    pub(crate) fn lock_one(self, bucket: Bucket) -> LockedOne<'a> {
        self.lock_number(self.number(bucket))
    }

    /// Locks the stripe with this number.
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
    pub(crate) fn lock_pair(self, first: Bucket, second: Bucket) -> LockedPair<'a> {
        let (low, high) = if first < second { (first, second) } else { (second, first) };
        let (low, high) = (self.number(low), self.number(high));
        let guards = (self.lock(low), self.lock_other(high, low));
        reached(Step::Locked);
        Locked { stripes: self, numbers: Some([low, high, high]), _guards: guards, _visible: VisibleOnDrop }
    }

    /// Locks the stripes of three buckets: the candidates of a new key, and the bucket that one of their fingerprints
    /// moves to.
    pub(crate) fn lock_three(self, buckets: [Bucket; 3]) -> LockedThree<'a> {
        let mut numbers = buckets.map(|bucket| self.number(bucket));
        numbers.sort_unstable();
        let [low, middle, high] = numbers;
        let guards = (self.lock(low), self.lock_other(middle, low), self.lock_other(high, middle));
        reached(Step::Locked);
        Locked { stripes: self, numbers: Some(numbers), _guards: guards, _visible: VisibleOnDrop }
    }

    /// Locks all stripes of the shard.
    pub(crate) fn lock_all(self) -> LockedAll<'a> {
        let guards = AllGuards::lock(self.each(), |stripe| &stripe.lock);
        reached(Step::Locked);
        Locked { stripes: self, numbers: None, _guards: guards, _visible: VisibleOnDrop }
    }

    #[inline]
    fn lock(self, number: usize) -> MutexGuard<'a> {
        lock(&self.at(number).lock)
    }

    /// Locks the stripe unless it is the one before it, which is locked already.
    #[inline]
    fn lock_other(self, number: usize, before: usize) -> Option<MutexGuard<'a>> {
        (number != before).then(|| self.lock(number))
    }

    /// Notes that a panic interrupted a change. A copy that is made between the panic and this note takes the counts as
    /// they stand; the next one does not.
    pub(crate) fn note_interrupted(self) {
        self.interrupted().set(true);
    }

    /// What each stripe counts.
    #[cfg(test)]
    pub(crate) fn counts(self) -> Vec<u64> {
        self.each().iter().map(|stripe| stripe.count()).collect()
    }

    /// The state of each stripe.
    #[cfg(test)]
    pub(crate) fn states(self) -> Vec<[u64; 2]> {
        (0..self.count()).map(|number| self.lock_number(number).state()).collect()
    }

    /// How often each of these buckets' stripes is named.
    #[cfg(test)]
    pub(crate) fn histogram(self, buckets: impl Iterator<Item = Bucket>) -> Vec<u64> {
        let mut times = vec![0; self.count()];
        buckets.for_each(|bucket| times[self.number(bucket)] += 1);
        times
    }

    /// The sum of the counts, each read at a moment of its own; below zero, it wraps.
    pub(crate) fn sum(self) -> u64 {
        self.each().iter().map(|stripe| stripe.count()).fold(0, u64::wrapping_add)
    }

    /// The same, as a number of fingerprints.
    pub(crate) fn total(self) -> u64 {
        self.total_and(0)
    }

    /// The same with this number added, which may be one below zero that has wrapped.
    pub(crate) fn total_and(self, more: u64) -> u64 {
        let sum = self.sum().wrapping_add(more);
        // Below zero if a fingerprint moved meanwhile out of a stripe that was read before into one that was read after, or
        // if they are read amid a clear.
        if i64::try_from(sum).is_ok() { sum } else { 0 }
    }

    /// Adds up what has happened in each stripe.
    pub(crate) fn add_totals_to(self, totals: &mut Totals) {
        self.each().iter().for_each(|stripe| stripe.counters.add_to(totals));
    }
}

impl<G> Locked<'_, G> {
    /// Checks, in debug builds, that the bucket's words may be written.
    #[inline]
    pub(crate) fn assert_holds(&self, bucket: Bucket) {
        let holds = |numbers: [usize; 3]| numbers.contains(&self.stripes.number(bucket));
        debug_assert!(self.numbers.is_none_or(holds), "bucket {} is written without its stripe", bucket.get());
    }

    /// Advances the versions of the class, in the stripes of both its buckets: lookups of it that are under way and
    /// find nothing begin again.
    pub(crate) fn bump(&self, class: Class) {
        self.assert_holds(class.first);
        self.assert_holds(class.second);
        let (first, second) = (self.stripes.of(class.first), self.stripes.of(class.second));
        first.advance();
        if !core::ptr::eq(first, second) {
            second.advance();
        }
    }

    /// Counts what happened to a key or a fingerprint of this bucket.
    #[inline(always)]
    pub(crate) fn note(&self, bucket: Bucket, event: Event) {
        self.assert_holds(bucket);
        self.stripes.of(bucket).counters.note(event);
    }

    /// Changes the number of occupied slots, under the lock of the store that changes one of this bucket (H9).
    #[inline(always)]
    pub(crate) fn count(&self, bucket: Bucket, change: impl FnOnce(u64) -> u64) {
        self.assert_holds(bucket);
        let stripe = self.stripes.of(bucket);
        stripe.set_count(change(stripe.locked_count()));
        reached(Step::Counted);
    }

    /// Counts one occupied slot of the one bucket as one of the other. A `len` that reads the two counts meanwhile may see
    /// it twice or not at all.
    pub(crate) fn move_count(&self, from: Bucket, to: Bucket) {
        let [from, to] = [from, to].map(|bucket| self.stripes.of(bucket));
        if !core::ptr::eq(from, to) {
            to.set_count(to.locked_count().wrapping_add(1));
            from.set_count(from.locked_count().wrapping_add(EMPTIED));
        }
    }
}

impl LockedOne<'_> {
    /// As [`Stripe::locked_state`].
    pub(super) fn state(&self) -> [u64; 2] {
        self.numbers.map_or_else(Default::default, |[number, ..]| self.stripes.at(number).locked_state())
    }
}

impl LockedAll<'_> {
    /// Advances the version of every stripe.
    pub(crate) fn bump_all(&self) {
        self.stripes.each().iter().for_each(|stripe| stripe.advance());
    }

    /// Makes the sum of the counts what there is, if a change was interrupted, and what there is can be told.
    pub(crate) fn mend_counts(&self, taken: impl FnOnce() -> Option<u64>) {
        if self.stripes.interrupted().is_set() {
            if let Some(taken) = taken() {
                self.set_total(taken);
            }
            self.stripes.interrupted().set(false);
        }
    }

    /// Makes this the sum of the counts, by one store: a `len` that adds them up meanwhile finds what there was or this,
    /// give or take what others change (H9).
    pub(crate) fn set_total(&self, total: u64) {
        let others = self.stripes.each().iter().skip(1).map(|stripe| occupied(stripe.locked_count()));
        let others = others.fold(0, u64::wrapping_add);
        self.stripes.at(0).set_count(total.wrapping_sub(others));
        reached(Step::Counted);
    }
}
