//! The only file that knows loom, shuttle, parking_lot or the atomics of std.
//!
//! Everything shared between threads is one of the names below. In a model (`--cfg cuckoo_loom`, tests only) they are
//! loom's, so that the models in `loom-tests` explore the code that ships; with `--cfg cuckoo_shuttle` they are shuttle's,
//! for the schedules of `tests/internal/linearizability`.

use core::sync::atomic::Ordering;

#[cfg(not(all(test, any(cuckoo_loom, cuckoo_shuttle))))]
pub(crate) use shim::AllGuards;
#[cfg(all(feature = "shared", target_os = "linux"))]
pub(crate) use shim::release_abandoned;
pub(crate) use shim::{AtomicPtr, AtomicU64, Mutex, MutexGuard, load_locked, lock};

/// Stands behind the guards of a critical section and is dropped after them: from then on, everything that was written
/// under them is visible to every thread.
///
/// A lock alone does not give that. A writer that goes on to read may read while its own stores are still on their way
/// (store buffering): of two threads that each insert a key and then look up the other's, both could be told "no".
pub(crate) struct VisibleOnDrop;

impl Drop for VisibleOnDrop {
    #[inline(always)]
    fn drop(&mut self) {
        // SeqCst: nothing less keeps a store before a later load of another word. Pairs with this fence in other writers
        // (models *_are_visible_when_they_return).
        shim::fence_after_unlock();
    }
}

/// A word that is only read: it may lie on pages that this process cannot write, of which the language promises Relaxed loads of
/// up to 8 bytes and nothing else.
#[derive(Clone, Copy)]
pub(crate) struct ReadWord<'a>(&'a AtomicU64);

impl<'a> ReadWord<'a> {
    #[inline(always)]
    pub(crate) fn of(word: &'a AtomicU64) -> Self {
        ReadWord(word)
    }

    #[inline(always)]
    pub(crate) fn load(self) -> u64 {
        // Relaxed: as said above; `fence_acquire` stands between such loads where their order matters.
        self.0.load(Ordering::Relaxed)
    }
}

/// Makes Relaxed loads before it Acquire ones for all that follows.
#[inline(always)]
pub(crate) fn fence_acquire() {
    shim::fence(Ordering::Acquire);
}

/// A number for statistics, which orders nothing and decides nothing. Models know nothing of it, so that they do
/// not explore when it changes.
#[derive(Default)]
pub(crate) struct RelaxedCounter(core::sync::atomic::AtomicU64);

impl RelaxedCounter {
    /// Changes the number, by the only thread that may, such as the holder of a lock.
    #[inline]
    pub(crate) fn change(&self, change: impl FnOnce(u64) -> u64) {
        // Relaxed: one thread at a time changes it, and nothing follows from that.
        self.0.store(change(self.0.load(Ordering::Relaxed)), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number that many threads add to, or raise, from which nothing else follows.
#[derive(Default)]
pub(crate) struct SharedCounter(core::sync::atomic::AtomicU64);

impl SharedCounter {
    /// Returns what there was.
    pub(crate) fn add(&self, number: u64) -> u64 {
        // Relaxed: each addition counts, in some order.
        self.0.fetch_add(number, Ordering::Relaxed)
    }

    /// Makes it this number, if it is less.
    pub(crate) fn raise(&self, number: u64) {
        // Relaxed: as an addition.
        self.0.fetch_max(number, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A flag that orders nothing. Models know nothing of it either.
#[derive(Default)]
pub(crate) struct Flag(core::sync::atomic::AtomicBool);

impl Flag {
    pub(crate) fn set(&self, flag: bool) {
        // Relaxed: it says nothing of any other memory; what acts on it looks at that under locks.
        self.0.store(flag, Ordering::Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Reads a clock at a moment that stands between what this thread does before and after it. For histories of real threads,
/// whose times say what happened before what: the processor may read a clock before an earlier load has its value, and
/// load ahead of the clock.
///
/// The fences also hide a write that is not visible yet when it returns. That none is so is for the models and
/// `tests/it/stress.rs` to show.
#[cfg(test)]
pub(crate) fn in_order<T>(clock: impl FnOnce() -> T) -> T {
    use core::sync::atomic::fence;
    // SeqCst, both: full barriers, which pair with those of other threads. Without the first one histories were refused.
    fence(Ordering::SeqCst);
    let time = clock();
    fence(Ordering::SeqCst);
    time
}

/// The guards of any number of mutexes, of which none can be unlocked without its guard.
#[cfg(all(test, any(cuckoo_loom, cuckoo_shuttle)))]
pub(crate) struct AllGuards<'a, T>(Vec<MutexGuard<'a>>, core::marker::PhantomData<&'a T>);

#[cfg(all(test, any(cuckoo_loom, cuckoo_shuttle)))]
impl<'a, T> AllGuards<'a, T> {
    pub(crate) fn lock(of: &'a [T], mutex: fn(&T) -> &Mutex) -> Self {
        AllGuards(of.iter().map(|value| lock(mutex(value))).collect(), core::marker::PhantomData)
    }
}

#[cfg(not(all(test, any(cuckoo_loom, cuckoo_shuttle))))]
mod shim {
    use core::marker::PhantomData;
    use core::sync::atomic::Ordering;

    pub(crate) type AtomicPtr<T> = core::sync::atomic::AtomicPtr<T>;
    pub(crate) type AtomicU64 = core::sync::atomic::AtomicU64;
    pub(super) use core::sync::atomic::fence;
    pub(crate) type Mutex = parking_lot::Mutex<()>;
    pub(crate) type MutexGuard<'a> = parking_lot::MutexGuard<'a, ()>;

    /// Memory of zeros is an unlocked mutex, as `memory::Zeroed` says of a stripe.
    #[allow(unsafe_code)]
    // SAFETY: a value of one byte, in which no bit is without meaning, or this does not compile.
    const _: () = assert!(unsafe { core::mem::transmute::<Mutex, u8>(parking_lot::const_mutex(())) } == 0);

    /// Parks the thread until it owns the mutex.
    #[inline]
    pub(crate) fn lock(mutex: &Mutex) -> MutexGuard<'_> {
        mutex.lock()
    }

    /// Unlocks a mutex that a terminated process may have left locked in shared memory. No thread of this process uses it yet.
    #[cfg(all(feature = "shared", target_os = "linux"))]
    #[allow(unsafe_code)]
    pub(crate) fn release_abandoned(mutex: &Mutex) {
        if mutex.is_locked() {
            // SAFETY: 1. it is locked; 2. its holder has ended, so that no guard is left; 3. it guards no value.
            unsafe { mutex.force_unlock() };
        }
    }

    /// The guards of any number of mutexes, without a list: one whose allocation is refused would end the process.
    pub(crate) struct AllGuards<'a, T> {
        of: &'a [T],
        mutex: fn(&T) -> &Mutex,
        not_send: PhantomData<MutexGuard<'a>>,
    }

    impl<'a, T> AllGuards<'a, T> {
        /// Locks the mutex of each value, in this order.
        pub(crate) fn lock(of: &'a [T], mutex: fn(&T) -> &Mutex) -> Self {
            of.iter().for_each(|value| core::mem::forget(lock(mutex(value))));
            AllGuards { of, mutex, not_send: PhantomData }
        }
    }

    impl<T> Drop for AllGuards<'_, T> {
        #[allow(unsafe_code)]
        fn drop(&mut self) {
            // SAFETY: 1. `lock` has locked the mutex of each value, on this thread, since `mutex` names a field; 2. it forgot
            // their guards, so that nothing else unlocks them; 3. as a guard, this is not
            // `Send`.
            self.of.iter().for_each(|value| unsafe { (self.mutex)(value).force_unlock() });
        }
    }

    /// Reads a word that only the holder of its stripe's lock writes, by that holder.
    #[inline]
    pub(crate) fn load_locked(word: &AtomicU64) -> u64 {
        // Relaxed: the lock orders this read after every write to the word.
        word.load(Ordering::Relaxed)
    }

    /// The fence of [`VisibleOnDrop`](super::VisibleOnDrop).
    #[inline(always)]
    pub(crate) fn fence_after_unlock() {
        // On x86-64 the processor has drained the stores already. parking_lot unlocks by a `compare_exchange` whether or
        // not another thread waits, which is a `lock cmpxchg`, and every locked instruction is a full barrier. What is
        // left to do is to keep the compiler from moving a load above it. `tests/it/stress.rs` watches the lock.
        #[cfg(target_arch = "x86_64")]
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
        #[cfg(not(target_arch = "x86_64"))]
        core::sync::atomic::fence(Ordering::SeqCst);
    }
}

#[cfg(all(test, cuckoo_loom))]
mod shim {
    use core::sync::atomic::Ordering;

    pub(super) use loom::sync::atomic::fence;
    pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU64};
    pub(crate) type Mutex = loom::sync::Mutex<()>;
    pub(crate) type MutexGuard<'a> = loom::sync::MutexGuard<'a, ()>;

    pub(crate) fn lock(mutex: &Mutex) -> MutexGuard<'_> {
        mutex.lock().expect("no thread panics while it holds a stripe")
    }

    /// An ordinary load would hide the loads of other threads from this thread's next store to the same word, and a
    /// model would explore a single interleaving (tokio-rs/loom #166). This one is invisible to loom's reduction, and
    /// loom itself checks that the lock orders it.
    #[allow(unsafe_code)]
    pub(crate) fn load_locked(word: &AtomicU64) -> u64 {
        // SAFETY: 1. only the holder of the stripe's lock stores to the word, and the caller holds it; 2. if that were
        // not so, loom would panic here.
        unsafe { word.unsync_load() }
    }

    pub(crate) fn fence_after_unlock() {
        loom::sync::atomic::fence(Ordering::SeqCst);
    }
}

#[cfg(all(test, cuckoo_shuttle))]
mod shim {
    pub(super) use shuttle::sync::atomic::fence;
    pub(crate) use shuttle::sync::atomic::{AtomicPtr, AtomicU64};
    pub(crate) type Mutex = shuttle::sync::Mutex<()>;
    pub(crate) type MutexGuard<'a> = shuttle::sync::MutexGuard<'a, ()>;

    pub(crate) fn lock(mutex: &Mutex) -> MutexGuard<'_> {
        mutex.lock().expect("no thread panics while it holds a stripe")
    }

    /// No place to switch: no thread writes the word meanwhile, unless the locks are broken, and then the store that
    /// follows is one. Schedules are shorter, and what remains is tried more often.
    #[allow(unsafe_code)]
    pub(crate) fn load_locked(word: &AtomicU64) -> u64 {
        // SAFETY: shuttle runs one thread at a time.
        unsafe { word.raw_load() }
    }

    /// Every access is in order here.
    pub(crate) fn fence_after_unlock() {}
}
