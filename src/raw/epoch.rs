//! The epoch: how lookups and writers read it, and the store that ends the life of slots.

use crate::sys::steps::{Step, reached};
use crate::sys::sync::{AtomicU64, Mutex, MutexGuard, RelaxedCounter, VisibleOnDrop, load_locked, lock};
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::sync::atomic::Ordering;
use crossbeam_utils::CachePadded;

/// The number of ticks of a filter, and the lock for them.
#[derive(Default)]
pub(crate) struct Epoch {
    /// On a cache line that changes at a tick only.
    now: CachePadded<AtomicU64>,
    ticking: Mutex,
    /// The number of chunks swept since the last tick, changed under `ticking`.
    swept: RelaxedCounter,
    /// The ticks of whole cycles that were skipped instead of made, changed under `ticking`. Tags are blind to them, so they are no
    /// part of `now`; a copy adds them to the epoch of each table.
    skipped: AtomicU64,
}

/// The right to sweep and to advance the epoch, which does not change in the meantime.
pub(crate) struct Pass<'a> {
    epoch: &'a Epoch,
    // Fields are dropped in this order.
    _guard: MutexGuard<'a>,
    _visible: VisibleOnDrop,
}

// No user code runs during a pass. Slots that a pass leaves unswept because of a bug of this crate are swept by the
// next one.
impl UnwindSafe for Epoch {}
impl RefUnwindSafe for Epoch {}

impl Epoch {
    /// The first read of a lookup, and that of a writer under its locks.
    #[inline(always)]
    pub(super) fn now(&self) -> u64 {
        // Acquire: pairs with the Release in `Pass::advance`. A reader of an epoch sees all slots swept that were dead
        // before it, and a lookup that reads a slot stored by an epoch reads that epoch, too (models stored_again_*).
        self.now.load(Ordering::Acquire)
    }

    /// Whether no tick came between [`now`](Self::now) and the reads of the buckets.
    #[inline(always)]
    pub(super) fn is_still(&self, epoch: u64) -> bool {
        // Relaxed: the Acquire loads of the buckets precede it. One that read a slot stored at a later epoch
        // synchronized with that store, and the tick happened before (models stored_again_*).
        self.now.load(Ordering::Relaxed) == epoch
    }

    pub(super) fn skipped(&self) -> u64 {
        // Relaxed: whoever copied what was stored behind the clear took a lock after the thread that skipped released it (models
        // a_clone_beside_a_long_advance_*).
        self.skipped.load(Ordering::Relaxed)
    }

    /// The number of skipped ticks. Waits for a long advance in progress: when this returns, everything stored before
    /// these ticks has been cleared.
    pub(super) fn skipped_and_cleared(&self) -> u64 {
        load_locked(&self.pass().epoch.skipped)
    }

    /// Waits until no other thread sweeps or advances.
    pub(super) fn pass(&self) -> Pass<'_> {
        Pass { epoch: self, _guard: lock(&self.ticking), _visible: VisibleOnDrop }
    }
}

impl Pass<'_> {
    pub(super) fn now(&self) -> u64 {
        load_locked(&self.epoch.now)
    }

    /// Ends this epoch. All slots that are dead in it must have been swept.
    pub(super) fn advance(&self, ticks: u64) {
        self.set_swept(0);
        // Release: pairs with the Acquire in `Epoch::now`. The sweep precedes it (models stored_again_*).
        self.epoch.now.store(self.now().wrapping_add(ticks), Ordering::Release);
        reached(Step::Ticked);
    }

    /// The number of ticks, the skipped ones included.
    pub(super) fn ticks(&self) -> u64 {
        self.now() + load_locked(&self.epoch.skipped)
    }

    /// Counts ticks of whole cycles as made. Everything stored before is cleared next.
    pub(super) fn skip(&self, ticks: u64) {
        // Relaxed: the locks of the clear order it.
        self.epoch.skipped.store(load_locked(&self.epoch.skipped) + ticks, Ordering::Relaxed);
    }

    pub(super) fn swept(&self) -> u64 {
        self.epoch.swept.get()
    }

    pub(super) fn set_swept(&self, swept: u64) {
        self.epoch.swept.change(|_| swept);
    }
}
