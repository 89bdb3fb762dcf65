//! The epoch: what lookups and writers read of it, and the one store that ends the life of everything whose time it is.

use crate::sys::steps::{Step, reached};
use crate::sys::sync::{AtomicU64, Mutex, MutexGuard, RelaxedCounter, VisibleOnDrop, load_locked, lock};
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::sync::atomic::Ordering;
use crossbeam_utils::CachePadded;

/// The number of ticks that a filter has made.
pub(super) struct Epoch {
    /// On a line that changes with a tick and at no other time.
    now: CachePadded<AtomicU64>,
    ticking: Mutex,
    /// How much of the filter has been swept since the last tick; changed by the holder of the lock.
    swept: RelaxedCounter,
}

/// The right to sweep and to advance the epoch, which stands still meanwhile.
pub(crate) struct Pass<'a> {
    epoch: &'a Epoch,
    // Fields are dropped in this order.
    _guard: MutexGuard<'a>,
    _visible: VisibleOnDrop,
}

// No user code runs during a pass; what is left of one that a fault of this crate interrupts is swept by the next one.
impl UnwindSafe for Epoch {}
impl RefUnwindSafe for Epoch {}

impl Epoch {
    pub(super) fn new(epoch: u64) -> Self {
        Epoch {
            now: CachePadded::new(AtomicU64::new(epoch)),
            ticking: Mutex::default(),
            swept: RelaxedCounter::default(),
        }
    }

    /// What lookups begin with, and writers read under their locks.
    #[inline(always)]
    pub(super) fn now(&self) -> u64 {
        // Acquire: pairs with the Release in `Pass::advance`. Whoever reads an epoch sees every slot swept that was dead
        // before it; and what a writer stores by it is seen by a lookup together with it (models stored_again_*).
        self.now.load(Ordering::Acquire)
    }

    /// Whether no tick came between [`Epoch::now`] and the reads of the buckets.
    #[inline(always)]
    pub(super) fn is_still(&self, epoch: u64) -> bool {
        // Relaxed: the Acquire loads of the buckets stand before it. One that saw a slot stored at a later epoch
        // synchronised with that store, and the tick happened before it (models stored_again_*).
        self.now.load(Ordering::Relaxed) == epoch
    }

    /// Waits for those who sweep or advance.
    pub(super) fn pass(&self) -> Pass<'_> {
        Pass { epoch: self, _guard: lock(&self.ticking), _visible: VisibleOnDrop }
    }
}

impl Pass<'_> {
    pub(super) fn now(&self) -> u64 {
        load_locked(&self.epoch.now)
    }

    /// Ends this epoch. Everything that is dead in it must have been swept.
    pub(super) fn advance(&self, ticks: u64) {
        self.set_swept(0);
        // Release: pairs with the Acquire in `Epoch::now`; the sweep stands before it, and so does
        // whatever this thread knows of (models stored_again_*).
        self.epoch.now.store(self.now().wrapping_add(ticks), Ordering::Release);
        reached(Step::Ticked);
    }

    pub(super) fn swept(&self) -> u64 {
        self.epoch.swept.get()
    }

    pub(super) fn set_swept(&self, swept: u64) {
        self.epoch.swept.change(|_| swept);
    }
}
