//! A stripe: one lock, one version and one element count for a group of buckets.
//!
//! | field    | written by             | read by                                 |
//! |----------|------------------------|-----------------------------------------|
//! | lock     | writers                | writers                                 |
//! | version  | the holder of the lock | lookups: once, and once more for a miss |
//! | count    | the holder of the lock | `len`, at any time                      |
//! | counters | the holder of the lock | `stats`, at any time                    |
//! | intent   | the holder of the lock | whoever takes over what a process left  |

use super::counters::Counters;
use crate::sys::memory::Zeroed;
use crate::sys::prefetch::{CacheLevel, prefetch};
use crate::sys::steps::{Step, reached};
use crate::sys::sync::{AtomicU64, Mutex, ReadWord, fence_acquire, load_locked};
use core::sync::atomic::Ordering;
use crossbeam_utils::CachePadded;

/// What a lookup saw when it began.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version(u64);

/// The version of a class.
#[derive(Clone, Copy)]
pub(crate) struct VersionRef<'a>(&'a AtomicU64);

/// Every writer stores in the first line of a stripe, and only moves and removals of copies in the second, which lookups read.
/// In one line, each lock and unlock would take it from all readers.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Stripe {
    pub(super) lock: Mutex,
    /// In the lower bits, which wrap, the occupied slots of this stripe's buckets, give or take what the shard was loaded with.
    /// Above them, how many slots were emptied.
    count: AtomicU64,
    pub(super) counters: Counters,
    /// What is about to be done, in memory that outlives the process (`intent`); else 0.
    intent: AtomicU64,
    version: Line<AtomicU64>,
}

/// A value at the beginning of a cache line.
#[derive(Default)]
#[repr(align(64))]
struct Line<T>(T);

/// More than the slots of a shard, with a sign.
const COUNT_BITS: u32 = 24;

/// Added to the count of a stripe for a slot that was emptied: 1 less in the lower bits, and something above them. So the count is
/// another number after each change, and not the old one after an insertion and a removal (`refusal`). It comes round again
/// after 10^12 removals.
pub(super) const EMPTIED: u64 = (1 << COUNT_BITS) - 1;

/// The same for a dead slot that was stored over, which is counted already.
pub(super) const REPLACED: u64 = EMPTIED + 1;

/// The memory of a stripe.
pub(super) const STRIPE_BYTES: usize = size_of::<CachePadded<Stripe>>();

#[allow(unsafe_code)]
// SAFETY: 1. numbers and counters of zero bytes are their defaults; 2. so is the lock, which `sync` checks when it is
// compiled; 3. nothing of it needs a drop, which `Buffer::new` checks.
unsafe impl Zeroed for CachePadded<Stripe> {}

impl Stripe {
    #[inline(always)]
    pub(crate) fn version(&self) -> VersionRef<'_> {
        VersionRef(&self.version.0)
    }

    pub(super) fn advance(&self) {
        // Release: pairs with the Acquire in `VersionRef::begin`; the copy stands before it (H1, models relocation_*). A
        // u64 does not come round again.
        self.version.0.store(load_locked(&self.version.0).wrapping_add(1), Ordering::Release);
        reached(Step::Bumped);
    }

    #[cfg(all(test, cuckoo_loom))]
    pub(super) fn fenced_version(&self) -> FencedRef<'_> {
        FencedRef(ReadWord::of(&self.version.0))
    }

    pub(super) fn intent(&self) -> u64 {
        load_locked(&self.intent)
    }

    pub(super) fn set_intent(&self, intent: u64) {
        // Release: to the process that takes over, the stores of this one are there in the order of its program; what stands
        // before this one is not to be moved behind it. The words that follow are stored with Release, too.
        self.intent.store(intent, Ordering::Release);
        reached(Step::Intended);
    }

    /// Takes over what a process that has ended may have left locked. The count and the counters begin at 0.
    #[cfg(all(feature = "shared", target_os = "linux"))]
    pub(super) fn take_over(&self) {
        crate::sys::sync::release_abandoned(&self.lock);
        self.set_count(0);
        self.counters.reset();
    }

    /// Occupied slots; below zero, it wraps.
    pub(super) fn count(&self) -> u64 {
        // Relaxed: a number on its own, which orders nothing.
        occupied(self.count.load(Ordering::Relaxed))
    }

    /// With the emptied slots, for the holder of the lock.
    #[inline(always)]
    pub(super) fn locked_count(&self) -> u64 {
        load_locked(&self.count)
    }

    /// Two numbers that tell whether any slot of the stripe was filled or emptied since they were read, by the holder of the lock:
    /// each change stores one of them.
    pub(super) fn locked_state(&self) -> [u64; 2] {
        [self.locked_count(), load_locked(&self.version.0)]
    }

    #[inline(always)]
    pub(super) fn set_count(&self, count: u64) {
        // Relaxed: written under the lock, read on its own.
        self.count.store(count, Ordering::Relaxed);
    }
}

/// The occupied slots in the count of a stripe.
pub(super) fn occupied(count: u64) -> u64 {
    ((count << (u64::BITS - COUNT_BITS)).cast_signed() >> (u64::BITS - COUNT_BITS)).cast_unsigned()
}

impl VersionRef<'_> {
    /// Begins to fetch it.
    #[inline(always)]
    pub(super) fn fetch(self) {
        prefetch(self.0, CacheLevel::L1);
    }
}

/// Tells whether what a lookup reads was changed meanwhile.
pub(crate) trait Watch: Copy {
    type Seen: Copy;

    /// What a lookup sees before it reads.
    fn begin(self) -> Self::Seen;

    /// Not 0 if a relocation of the class came between [`Watch::begin`] and the reads of the buckets.
    fn change_since(self, seen: Self::Seen) -> u64;

    /// Whether none did.
    #[inline(always)]
    fn is_still(self, seen: Self::Seen) -> bool {
        self.change_since(seen) == 0
    }
}

/// The version of a class in memory that this process may only read: the language promises of such memory no other loads than
/// Relaxed ones.
#[derive(Clone, Copy)]
pub(crate) struct FencedRef<'a>(pub(super) ReadWord<'a>);

/// Where the version stands in a stripe, in bytes.
pub(super) const VERSION_AT: usize = core::mem::offset_of!(Stripe, version);

/// Of what nobody changes.
impl Watch for () {
    type Seen = ();

    #[inline(always)]
    fn begin(self) {}

    #[inline(always)]
    fn change_since(self, (): ()) -> u64 {
        0
    }
}

impl Watch for VersionRef<'_> {
    type Seen = Version;

    #[inline(always)]
    fn begin(self) -> Version {
        // Acquire: pairs with the Release in `advance`. A thread that sees the new version sees the copy that was made
        // before it (H1, models relocation_*).
        Version(self.0.load(Ordering::Acquire))
    }

    #[inline(always)]
    fn change_since(self, version: Version) -> u64 {
        // Relaxed: the Acquire loads of the buckets stand before it. One that saw a cleared slot synchronised with the
        // clearing store, and the bump happened before that (H1, H2).
        self.0.load(Ordering::Relaxed) ^ version.0
    }
}

impl Watch for FencedRef<'_> {
    type Seen = Version;

    #[inline(always)]
    fn begin(self) -> Version {
        let version = Version(self.0.load());
        // Acquire: with the load before it as the Acquire of `VersionRef::begin` (H1, models *_by_fences).
        fence_acquire();
        version
    }

    #[inline(always)]
    fn change_since(self, version: Version) -> u64 {
        // Acquire: the loads of the buckets stand before it. One that saw a cleared slot synchronised with the clearing store,
        // and the bump happened before that (H1, H2, models *_by_fences).
        fence_acquire();
        self.0.load() ^ version.0
    }
}
