//! A stripe: one lock, one version and one element count for a group of buckets.
//!
//! | field       | written by                           | read by                                           |
//! |-------------|--------------------------------------|---------------------------------------------------|
//! | lock        | writers                              | writers and refusals                              |
//! | interrupted | a thread that panics                 | the holder of all locks of the shard              |
//! | version     | the holder of the lock               | lookups: once, and once more for a miss; refusals |
//! | count       | the holder of the lock               | `len` and refusals, at any time                   |
//! | counters    | the holder of the lock, and refusals | `stats`, at any time                              |
//! | intent      | the holder of the lock               | the process that takes over                       |

use super::counters::Counters;
use crate::sys::IS_MODEL;
use crate::sys::memory::Zeroed;
use crate::sys::prefetch::{CacheLevel, prefetch};
use crate::sys::steps::{Step, reached};
use crate::sys::sync::{AtomicU64, Flag, Mutex, ReadWord, fence_acquire, is_unlocked, load_locked};
use core::sync::atomic::Ordering;
use crossbeam_utils::CachePadded;

#[derive(Clone, Copy)]
pub(crate) struct VersionRef<'a>(&'a AtomicU64);

/// All writers store in the first cache line of a stripe. Lookups read the second one, where only relocations and
/// removals of copies store: in one line, each lock and unlock would take it from all readers.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Stripe {
    pub(super) lock: Mutex,
    /// In the first stripe of a shard, whether a panic interrupted a change of the shard.
    pub(super) interrupted: Flag,
    /// In the lower bits, wrapping, the occupied slots of this stripe, apart from those that the shard was loaded with.
    /// Above them, the number of emptied slots.
    count: AtomicU64,
    pub(super) counters: Counters,
    /// The change about to be made, in memory that outlives the process (`intent`), or 0.
    intent: AtomicU64,
    version: Line<AtomicU64>,
}

/// A value at the beginning of a cache line.
#[derive(Default)]
#[repr(align(64))]
struct Line<T>(T);

/// Enough for the slots of a shard, and for those that left a table by splits, with a sign.
const COUNT_BITS: u32 = 24;

/// Added to a count per emptied slot: subtracts 1 from the lower bits and adds 1 above them. So a count differs after
/// each change, even after an insertion and a removal (`refusal`). It wraps after 10^12 removals.
pub(super) const EMPTIED: u64 = (1 << COUNT_BITS) - 1;

/// Added to a count per dead slot that is overwritten, which is counted already.
pub(super) const REPLACED: u64 = EMPTIED + 1;

pub(super) const STRIPE_BYTES: usize = size_of::<CachePadded<Stripe>>();

const _: () = assert!(IS_MODEL || STRIPE_BYTES as u64 == crate::layout::STRIPE_BYTES, "plans count these bytes");

#[allow(unsafe_code)]
// SAFETY: 1. numbers and counters of zero bytes are their defaults; 2. so is the lock, as `sync` asserts at compile
// time; 3. no field needs a drop, which `Buffer::new` checks.
unsafe impl Zeroed for CachePadded<Stripe> {}

impl Stripe {
    #[inline(always)]
    pub(crate) fn version(&self) -> VersionRef<'_> {
        VersionRef(&self.version.0)
    }

    pub(super) fn advance(&self) {
        // Release: pairs with the Acquire in `VersionRef::begin`. The copy was stored before (H1, models relocation_*).
        // A u64 does not wrap.
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
        // Release: the compiler keeps the order of the stores before and after it, of which a killed process leaves a
        // prefix. The words that follow are stored with Release, too.
        self.intent.store(intent, Ordering::Release);
        reached(Step::Intended);
    }

    /// Releases the lock of a process that has ended, and resets the count and the counters.
    #[cfg(all(feature = "shared", target_os = "linux"))]
    pub(super) fn take_over(&self) {
        crate::sys::sync::release_abandoned(&self.lock);
        self.set_count(0);
        self.counters.reset();
    }

    /// The count with the number of emptied slots, for any thread. [`occupied`] returns the number of slots from the sum
    /// over a shard.
    pub(super) fn count(&self) -> u64 {
        // Relaxed: a number on its own, which orders nothing.
        self.count.load(Ordering::Relaxed)
    }

    /// The count with the number of emptied slots, for the holder of the lock.
    #[inline(always)]
    pub(super) fn locked_count(&self) -> u64 {
        load_locked(&self.count)
    }

    /// Two numbers of which each change that fills or empties a slot changes one. No other thread may hold the lock.
    pub(super) fn state(&self) -> [u64; 2] {
        // Relaxed: ordered by the lock, or by the fences of `unlocked_state`.
        [self.count.load(Ordering::Relaxed), self.version.0.load(Ordering::Relaxed)]
    }

    /// The [`state`](Self::state), without the lock, or `None` if another thread holds the lock before or after it is
    /// read (H14, models refused_*).
    pub(super) fn unlocked_state(&self) -> Option<[u64; 2]> {
        let state = is_unlocked(&self.lock).then(|| self.state());
        state.filter(|_| is_unlocked(&self.lock))
    }

    #[inline(always)]
    pub(super) fn set_count(&self, count: u64) {
        // Release: pairs with the fences of `unlocked_state`. A thread that reads this count finds the lock held, or
        // sees all that its holder stores (H14, models refused_*).
        self.count.store(count, Ordering::Release);
    }
}

/// The number of occupied slots in the sum of the counts of a shard, which wraps below zero. A single count may be any
/// number: a clear corrects the sum in one stripe, and leaves the counts of the others as they are.
pub(super) fn occupied(count: u64) -> u64 {
    ((count << (u64::BITS - COUNT_BITS)).cast_signed() >> (u64::BITS - COUNT_BITS)).cast_unsigned()
}

impl VersionRef<'_> {
    #[inline(always)]
    pub(super) fn fetch(self) {
        prefetch(self.0, CacheLevel::L1);
    }
}

/// Detects changes beside a lookup.
pub(crate) trait Watch: Copy {
    /// Reads the version before the buckets.
    fn begin(self) -> u64;

    /// Nonzero if a relocation of the class came between [`begin`](Self::begin) and the reads of the buckets.
    fn change_since(self, version: u64) -> u64;

    #[inline(always)]
    fn is_still(self, version: u64) -> bool {
        self.change_since(version) == 0
    }
}

/// The version of a class in memory that this process only reads, where the language permits none but Relaxed loads.
#[derive(Clone, Copy)]
pub(crate) struct FencedRef<'a>(pub(super) ReadWord<'a>);

/// The offset of the version in a stripe.
pub(super) const VERSION_AT: usize = core::mem::offset_of!(Stripe, version);

/// The version of memory that nobody changes.
impl Watch for () {
    #[inline(always)]
    fn begin(self) -> u64 {
        0
    }

    #[inline(always)]
    fn change_since(self, _: u64) -> u64 {
        0
    }
}

impl Watch for VersionRef<'_> {
    #[inline(always)]
    fn begin(self) -> u64 {
        // Acquire: pairs with the Release in `Stripe::advance`. A thread that reads the new version sees the copy
        // stored before it (H1, models relocation_*).
        self.0.load(Ordering::Acquire)
    }

    #[inline(always)]
    fn change_since(self, version: u64) -> u64 {
        // Relaxed: the Acquire loads of the buckets precede it. One that read a cleared slot synchronized with the
        // clearing store, and the bump happened before that (H1, H2, models relocation_* and equal_fingerprint_*).
        self.0.load(Ordering::Relaxed) ^ version
    }
}

impl Watch for FencedRef<'_> {
    #[inline(always)]
    fn begin(self) -> u64 {
        let version = self.0.load();
        // Acquire: makes the load before it as good as that of `VersionRef::begin` (H1, models *_by_fences).
        fence_acquire();
        version
    }

    #[inline(always)]
    fn change_since(self, version: u64) -> u64 {
        // Acquire: the loads of the buckets precede it. One that read a cleared slot synchronized with the clearing
        // store, and the bump happened before that (H1, H2, models *_by_fences).
        fence_acquire();
        self.0.load() ^ version
    }
}
