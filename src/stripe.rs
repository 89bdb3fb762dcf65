//! The stripes of a shard: one lock, one version and one element count for each group of buckets, and the one place
//! that decides which lock comes first.
//!
//! | field   | written by                  | read by                                   |
//! |---------|-----------------------------|-------------------------------------------|
//! | lock    | writers                     | writers                                   |
//! | version | the holder of the lock      | look-ups: once, and once more for a miss  |
//! | count   | the holder of the lock      | `len`, at any time                        |
//! | tally   | the holder of the lock      | `stats`, at any time                      |

use crate::fail_point::{Step, reached};
use crate::geometry::{Bucket, Candidates};
use crate::sync::{AtomicU64, Flag, Mutex, MutexGuard, VisibleOnDrop, load_locked, lock};
use crate::tally::{Event, Tallies, Tally};
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::sync::atomic::Ordering;
use crossbeam_utils::CachePadded;

/// What a look-up saw when it began.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version(u64);

/// The version of a class.
#[derive(Clone, Copy)]
pub(crate) struct Watch<'a>(&'a AtomicU64);

#[derive(Default)]
struct Stripe {
    lock: Mutex,
    version: AtomicU64,
    count: AtomicU64,
    tally: Tally,
}

/// All stripes of a shard. What the class of a lower bucket gains and loses is counted in its stripe; a shard that was
/// loaded has what it began with in the first one. So a single count may stand below zero, wrapped.
pub(crate) struct Stripes {
    stripes: Box<[CachePadded<Stripe>]>,
    /// A stripe is `1 << shift` buckets.
    shift: u32,
    /// Set if a panic interrupted a change: the counts may not be what the words say.
    interrupted: Flag,
}

// No code of a user's runs while a stripe is locked, so only a fault of this crate could leave a change half made. Even
// that loses no other key, and what it leaves is noted (`shard/change`).
impl UnwindSafe for Stripes {}
impl RefUnwindSafe for Stripes {}

/// Locked stripes, unlocked when dropped, and what was written under them is then visible to every thread. A writer shows
/// them to change a word.
pub(crate) struct Locked<'a, G> {
    stripes: &'a Stripes,
    /// Which; `None` is all of the shard.
    numbers: Option<[usize; 3]>,
    // Fields are dropped in this order.
    _guards: G,
    _visible: VisibleOnDrop,
}

/// The stripes of two buckets; one guard where they are one stripe.
pub(crate) type LockedPair<'a> = Locked<'a, (MutexGuard<'a>, Option<MutexGuard<'a>>)>;

/// The stripes of three buckets.
pub(crate) type LockedThree<'a> = Locked<'a, (MutexGuard<'a>, Option<MutexGuard<'a>>, Option<MutexGuard<'a>>)>;

/// All stripes of a shard.
pub(crate) type LockedAll<'a> = Locked<'a, Vec<MutexGuard<'a>>>;

impl Stripes {
    /// `None` when there is no memory.
    pub(crate) fn new(count: usize, shift: u32) -> Option<Self> {
        let mut stripes = Vec::new();
        stripes.try_reserve_exact(count).ok()?;
        stripes.resize_with(count, Default::default);
        Some(Stripes { stripes: stripes.into_boxed_slice(), shift, interrupted: Flag::default() })
    }

    /// Stripes of a shard that holds so many fingerprints. Whose they are does not matter: counts wrap, and only their
    /// sum means anything.
    pub(crate) fn with_total(count: usize, shift: u32, total: u64) -> Option<Self> {
        let stripes = Stripes::new(count, shift)?;
        // Relaxed: nobody else knows the stripes yet.
        stripes.stripes.first()?.count.store(total, Ordering::Relaxed);
        Some(stripes)
    }

    pub(crate) fn bytes_of(stripes: usize) -> Option<usize> {
        stripes.checked_mul(size_of::<CachePadded<Stripe>>())
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.stripes)
    }

    #[inline]
    fn of(&self, bucket: Bucket) -> &Stripe {
        &self.stripes[bucket.index() >> self.shift]
    }

    /// The version that look-ups of the class watch: that of its first bucket, which is known soonest. The mover of a
    /// class bumps the stripes of both its buckets, so either would do.
    #[inline(always)]
    pub(crate) fn watch(&self, key: Candidates) -> Watch<'_> {
        Watch(&self.of(key.first).version)
    }

    /// Locks the stripes of both candidates, the lower first.
    ///
    /// Every lock of a shard is taken here and in the two functions below, once and in ascending order (H3, models
    /// crossing_pairs_* and crossing_last_hops_*).
    ///
    /// Always inlined: with a call, which returns the guards in memory, batches of writes are 7 to 20 % slower.
    #[inline(always)]
    pub(crate) fn lock_pair(&self, first: Bucket, second: Bucket) -> LockedPair<'_> {
        let (low, high) = if first < second { (first, second) } else { (second, first) };
        let (low, high) = (low.index() >> self.shift, high.index() >> self.shift);
        let guards = (self.lock(low), self.lock_other(high, low));
        reached(Step::Locked);
        Locked { stripes: self, numbers: Some([low, high, high]), _guards: guards, _visible: VisibleOnDrop }
    }

    /// Locks the stripes of three buckets: the candidates of a new key, and the bucket that one of their fingerprints
    /// moves to.
    pub(crate) fn lock_three(&self, buckets: [Bucket; 3]) -> LockedThree<'_> {
        let mut numbers = buckets.map(|bucket| bucket.index() >> self.shift);
        numbers.sort_unstable();
        let [low, middle, high] = numbers;
        let guards = (self.lock(low), self.lock_other(middle, low), self.lock_other(high, middle));
        reached(Step::Locked);
        Locked { stripes: self, numbers: Some(numbers), _guards: guards, _visible: VisibleOnDrop }
    }

    /// Locks all stripes of the shard.
    pub(crate) fn lock_all(&self) -> LockedAll<'_> {
        let guards = (0..self.stripes.len()).map(|number| self.lock(number)).collect();
        reached(Step::Locked);
        Locked { stripes: self, numbers: None, _guards: guards, _visible: VisibleOnDrop }
    }

    #[inline]
    fn lock(&self, number: usize) -> MutexGuard<'_> {
        lock(&self.stripes[number].lock)
    }

    /// Locks the stripe unless it is the one before it, which is locked already.
    #[inline]
    fn lock_other(&self, number: usize, before: usize) -> Option<MutexGuard<'_>> {
        (number != before).then(|| self.lock(number))
    }

    /// Notes that a panic interrupted a change. Who copies the shard between the panic and this note takes the counts as
    /// they stand; the next one does not.
    pub(crate) fn note_interrupted(&self) {
        self.interrupted.set(true);
    }

    /// What each stripe counts.
    #[cfg(all(test, not(cuckoo_shuttle)))]
    pub(crate) fn counts(&self) -> Vec<u64> {
        // Relaxed: nobody writes.
        self.stripes.iter().map(|stripe| stripe.count.load(Ordering::Relaxed)).collect()
    }

    /// How often each of these buckets' stripes is named.
    #[cfg(all(test, not(cuckoo_shuttle)))]
    pub(crate) fn histogram(&self, buckets: impl Iterator<Item = Bucket>) -> Vec<u64> {
        let mut times = vec![0; self.stripes.len()];
        buckets.for_each(|bucket| times[bucket.index() >> self.shift] += 1);
        times
    }

    /// The sum of the counts, each read at a moment of its own.
    pub(crate) fn total(&self) -> u64 {
        // Relaxed: a number on its own, which orders nothing.
        let counts = self.stripes.iter().map(|stripe| stripe.count.load(Ordering::Relaxed));
        let sum = counts.fold(0, u64::wrapping_add);
        // Below zero only where a processor makes the loads in another order.
        if i64::try_from(sum).is_ok() { sum } else { 0 }
    }

    /// Adds up what has happened in each stripe.
    pub(crate) fn add_tallies_to(&self, tallies: &mut Tallies) {
        self.stripes.iter().for_each(|stripe| stripe.tally.add_to(tallies));
    }
}

impl Watch<'_> {
    /// The version under which a look-up begins.
    #[inline(always)]
    pub(crate) fn begin(self) -> Version {
        // Acquire: pairs with the Release in `Locked::bump`. Who sees the new version sees the copy that was made
        // before it (H1, models relocation_*).
        Version(self.0.load(Ordering::Acquire))
    }

    /// Whether no relocation of the class came between [`Watch::begin`] and the reads of the buckets.
    #[inline(always)]
    pub(crate) fn is_still(self, version: Version) -> bool {
        // Relaxed: the Acquire loads of the buckets stand before it. One that saw a cleared slot synchronised with the
        // clearing store, and the bump happened before that (H1, H2).
        self.0.load(Ordering::Relaxed) == version.0
    }
}

impl<G> Locked<'_, G> {
    /// Whether the stripe of the bucket is among the locked ones.
    fn holds(&self, bucket: Bucket) -> bool {
        self.numbers.is_none_or(|numbers| numbers.contains(&(bucket.index() >> self.stripes.shift)))
    }

    /// Checks, in debug builds, that the bucket's words may be written.
    #[inline]
    pub(crate) fn assert_holds(&self, bucket: Bucket) {
        debug_assert!(self.holds(bucket), "bucket {} is written without its stripe", bucket.get());
    }

    /// Advances the versions of the class, in the stripes of both its buckets: look-ups of it that are under way and
    /// find nothing begin again.
    pub(crate) fn bump(&self, key: Candidates) {
        self.assert_holds(key.first);
        self.assert_holds(key.second);
        let (first, second) = (self.stripes.of(key.first), self.stripes.of(key.second));
        advance(&first.version);
        if !core::ptr::eq(first, second) {
            advance(&second.version);
        }
    }

    /// Counts what happened to a key or a fingerprint of this bucket.
    #[inline(always)]
    pub(crate) fn note(&self, bucket: Bucket, event: Event) {
        self.assert_holds(bucket);
        self.stripes.of(bucket).tally.note(event);
    }

    /// Changes the number of stored copies of the class, beside the store that changes them (H9).
    #[inline]
    pub(crate) fn count(&self, key: Candidates, change: impl FnOnce(u64) -> u64) {
        self.assert_holds(key.lower());
        let count = &self.stripes.of(key.lower()).count;
        // Relaxed: written under the lock, read on its own.
        count.store(change(load_locked(count)), Ordering::Relaxed);
        reached(Step::Counted);
    }
}

impl LockedAll<'_> {
    /// Advances the version of every stripe.
    pub(crate) fn bump_all(&self) {
        for stripe in &self.stripes.stripes {
            advance(&stripe.version);
        }
    }

    /// Makes the sum of the counts nothing.
    pub(crate) fn count_nothing(&self) {
        self.set_total(0);
    }

    /// Makes the sum of the counts what there is, if a change was interrupted, and what there is can be told.
    pub(crate) fn mend_counts(&self, taken: impl FnOnce() -> Option<u64>) {
        if self.stripes.interrupted.is_set() {
            if let Some(taken) = taken() {
                self.set_total(taken);
            }
            self.stripes.interrupted.set(false);
        }
    }

    /// Makes this the sum of the counts, by one store: who adds them up meanwhile finds what there was or this, give or
    /// take what others change (H9).
    fn set_total(&self, total: u64) {
        let others = self.stripes.stripes.iter().skip(1).map(|stripe| load_locked(&stripe.count));
        let others = others.fold(0, u64::wrapping_add);
        if let Some(first) = self.stripes.stripes.first() {
            // Relaxed: written under the lock, read on its own.
            first.count.store(total.wrapping_sub(others), Ordering::Relaxed);
        }
        reached(Step::Counted);
    }
}

fn advance(version: &AtomicU64) {
    // Release: pairs with the Acquire in `Watch::begin`; the copy stands before it (H1, models relocation_*). A
    // u64 does not come round again.
    version.store(load_locked(version) + 1, Ordering::Release);
    reached(Step::Bumped);
}
