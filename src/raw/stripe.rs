//! The stripes of a shard: one lock, one version and one element count for each group of buckets, and the one place
//! that decides which lock comes first.
//!
//! | field    | written by             | read by                                 |
//! |----------|------------------------|-----------------------------------------|
//! | lock     | writers                | writers                                 |
//! | version  | the holder of the lock | lookups: once, and once more for a miss |
//! | count    | the holder of the lock | `len`, at any time                      |
//! | counters | the holder of the lock | `stats`, at any time                    |

use super::counters::{Counters, Event, Totals};
use super::filter::RawFilter;
use crate::layout::{Bucket, Class};
use crate::sys::memory::Zeroed;
use crate::sys::steps::{Step, reached};
use crate::sys::sync::{AtomicU64, Flag, Mutex, MutexGuard, VisibleOnDrop, load_locked, lock};
use core::sync::atomic::Ordering;
use crossbeam_utils::CachePadded;

/// What a lookup saw when it began.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version(u64);

/// The version of a class.
#[derive(Clone, Copy)]
pub(crate) struct VersionRef<'a>(&'a AtomicU64);

#[derive(Default)]
pub(crate) struct Stripe {
    lock: Mutex,
    version: AtomicU64,
    /// Occupied slots of this stripe's buckets, give or take what the shard was loaded with.
    count: AtomicU64,
    counters: Counters,
}

/// The memory of a stripe.
pub(super) const STRIPE_BYTES: usize = size_of::<CachePadded<Stripe>>();

#[allow(unsafe_code)]
// SAFETY: 1. numbers and counters of zero bytes are their defaults; 2. so is the lock, which `sync` checks when it is
// compiled; 3. nothing of it needs a drop, which `Run::new` checks.
unsafe impl Zeroed for CachePadded<Stripe> {}

/// All stripes of a shard. A count is that of its stripe's slots: an insertion counts in the stripe of the slot that it
/// fills, a removal in that of the slot that it clears, and a relocation moves one. A shard that was loaded has what it
/// began with in the first one, so that single counts may stand below zero, wrapped; only sums mean anything.
#[derive(Clone, Copy)]
pub(crate) struct Stripes<'a> {
    filter: &'a RawFilter,
    /// The shard, and the first of its stripes.
    shard: usize,
    first: usize,
}

/// Locked stripes, unlocked when dropped, and what was written under them is then visible to every thread. A writer shows
/// them to change a word.
pub(crate) struct Locked<'a, G> {
    stripes: Stripes<'a>,
    /// Which; `None` is all of the shard.
    numbers: Option<[usize; 3]>,
    // Fields are dropped in this order.
    _guards: G,
    _visible: VisibleOnDrop,
}

/// The stripe of a bucket.
pub(crate) type LockedOne<'a> = Locked<'a, MutexGuard<'a>>;

/// The stripes of two buckets; one guard where they are one stripe.
pub(crate) type LockedPair<'a> = Locked<'a, (MutexGuard<'a>, Option<MutexGuard<'a>>)>;

/// The stripes of three buckets.
pub(crate) type LockedThree<'a> = Locked<'a, (MutexGuard<'a>, Option<MutexGuard<'a>>, Option<MutexGuard<'a>>)>;

/// All stripes of a shard.
pub(crate) type LockedAll<'a> = Locked<'a, Vec<MutexGuard<'a>>>;

impl Stripe {
    #[inline(always)]
    pub(crate) fn version(&self) -> VersionRef<'_> {
        VersionRef(&self.version)
    }
}

impl<'a> Stripes<'a> {
    #[inline(always)]
    pub(super) fn new(filter: &'a RawFilter, shard: usize) -> Self {
        Stripes { filter, shard, first: shard * filter.plan().stripes }
    }

    /// How many there are.
    #[inline(always)]
    fn count(self) -> usize {
        self.filter.plan().stripes
    }

    /// The number of the stripe of a bucket.
    #[inline(always)]
    fn number(self, bucket: Bucket) -> usize {
        bucket.index() >> self.filter.strides.stripe_shift
    }

    /// Set if a panic interrupted a change: the counts may not be what the words say.
    #[inline(always)]
    pub(super) fn interrupted(self) -> &'a Flag {
        self.filter.interrupted.at(self.shard)
    }

    #[inline]
    fn of(self, bucket: Bucket) -> &'a Stripe {
        self.at(self.number(bucket))
    }

    #[inline(always)]
    fn at(self, number: usize) -> &'a Stripe {
        debug_assert!(number < self.count(), "stripe {number} of {}", self.count());
        self.filter.stripes.at(self.first + number)
    }

    fn each(self) -> &'a [CachePadded<Stripe>] {
        self.filter.stripes.part(self.first, self.count())
    }

    /// Makes this the number of fingerprints in a shard that no other thread knows yet.
    pub(crate) fn begin_with(self, total: u64) {
        // Relaxed: the thread that makes the shard known to others orders this.
        self.at(0).count.store(total, Ordering::Relaxed);
    }

    /// Locks the stripe of one bucket.
    ///
    /// Every lock of a shard is taken here and in the three functions below, once and in ascending order (H3, models
    /// crossing_pairs_* and crossing_last_hops_*).
    #[inline(always)]
    pub(crate) fn lock_one(self, bucket: Bucket) -> LockedOne<'a> {
        let number = self.number(bucket);
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
        let guards = (0..self.count()).map(|number| self.lock(number)).collect();
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
        // Relaxed: there are no writers.
        self.each().iter().map(|stripe| stripe.count.load(Ordering::Relaxed)).collect()
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
        // Relaxed: a number on its own, which orders nothing.
        let counts = self.each().iter().map(|stripe| stripe.count.load(Ordering::Relaxed));
        counts.fold(0, u64::wrapping_add)
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

impl VersionRef<'_> {
    /// The version under which a lookup begins.
    #[inline(always)]
    pub(crate) fn begin(self) -> Version {
        // Acquire: pairs with the Release in `advance`. A thread that sees the new version sees the copy that was made
        // before it (H1, models relocation_*).
        Version(self.0.load(Ordering::Acquire))
    }

    /// Whether no relocation of the class came between [`VersionRef::begin`] and the reads of the buckets.
    #[inline(always)]
    pub(crate) fn is_still(self, version: Version) -> bool {
        self.change_since(version) == 0
    }

    /// Not 0 if one came between, for callers that collect many answers.
    #[inline(always)]
    pub(crate) fn change_since(self, version: Version) -> u64 {
        // Relaxed: the Acquire loads of the buckets stand before it. One that saw a cleared slot synchronised with the
        // clearing store, and the bump happened before that (H1, H2).
        self.0.load(Ordering::Relaxed) ^ version.0
    }
}

impl<G> Locked<'_, G> {
    /// Whether the stripe of the bucket is among the locked ones.
    fn holds(&self, bucket: Bucket) -> bool {
        self.numbers.is_none_or(|numbers| numbers.contains(&self.stripes.number(bucket)))
    }

    /// Checks, in debug builds, that the bucket's words may be written.
    #[inline]
    pub(crate) fn assert_holds(&self, bucket: Bucket) {
        debug_assert!(self.holds(bucket), "bucket {} is written without its stripe", bucket.get());
    }

    /// Advances the versions of the class, in the stripes of both its buckets: lookups of it that are under way and
    /// find nothing begin again.
    pub(crate) fn bump(&self, class: Class) {
        self.assert_holds(class.first);
        self.assert_holds(class.second);
        let (first, second) = (self.stripes.of(class.first), self.stripes.of(class.second));
        advance(&first.version);
        if !core::ptr::eq(first, second) {
            advance(&second.version);
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
        let count = &self.stripes.of(bucket).count;
        // Relaxed: written under the lock, read on its own.
        count.store(change(load_locked(count)), Ordering::Relaxed);
        reached(Step::Counted);
    }

    /// Counts one occupied slot of the one bucket as one of the other. A `len` that reads the two counts meanwhile may see
    /// it twice or not at all.
    pub(crate) fn move_count(&self, from: Bucket, to: Bucket) {
        let [from, to] = [from, to].map(|bucket| &self.stripes.of(bucket).count);
        if !core::ptr::eq(from, to) {
            // Relaxed: as in `count`.
            to.store(load_locked(to).wrapping_add(1), Ordering::Relaxed);
            from.store(load_locked(from).wrapping_sub(1), Ordering::Relaxed);
        }
    }
}

impl LockedAll<'_> {
    /// Advances the version of every stripe.
    pub(crate) fn bump_all(&self) {
        for stripe in self.stripes.each() {
            advance(&stripe.version);
        }
    }

    /// Makes the sum of the counts nothing.
    pub(crate) fn count_nothing(&self) {
        self.set_total(0);
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
    fn set_total(&self, total: u64) {
        let others = self.stripes.each().iter().skip(1).map(|stripe| load_locked(&stripe.count));
        let others = others.fold(0, u64::wrapping_add);
        // Relaxed: written under the lock, read on its own.
        self.stripes.at(0).count.store(total.wrapping_sub(others), Ordering::Relaxed);
        reached(Step::Counted);
    }
}

fn advance(version: &AtomicU64) {
    // Release: pairs with the Acquire in `VersionRef::begin`; the copy stands before it (H1, models relocation_*). A
    // u64 does not come round again.
    version.store(load_locked(version) + 1, Ordering::Release);
    reached(Step::Bumped);
}
