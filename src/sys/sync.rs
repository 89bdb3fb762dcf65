//! The types shared between threads: those of std and parking_lot, of loom in models (`--cfg cuckoo_loom`, tests only), and of
//! shuttle in schedules (`--cfg cuckoo_shuttle`, `tests/internal/linearizability`); either comes with `--cfg cuckoo_model`. No other
//! file names these crates, so models explore the code that ships.

use core::sync::atomic::Ordering;

#[cfg(all(feature = "shared", target_os = "linux"))]
pub(crate) use shim::release_abandoned;
#[cfg(all(test, cuckoo_loom))]
pub(crate) use shim::with_watched_locks;
pub(crate) use shim::{AllGuards, AtomicPtr, AtomicU64, Mutex, MutexGuard, load_locked, lock};

/// Declared before the guards of a critical section and dropped after them: then every store under the guards is visible to every
/// thread.
///
/// A lock alone does not ensure that. A writer may read while its own stores are still buffered: if two threads each insert a key
/// and then look up the other thread's key, both lookups could return `false`.
pub(crate) struct VisibleOnDrop;

impl Drop for VisibleOnDrop {
    #[inline(always)]
    fn drop(&mut self) {
        // SeqCst: nothing less keeps a store before a later load of another word. Pairs with this fence in other writers (models
        // *_are_visible_when_they_return).
        shim::fence_after_unlock();
    }
}

/// A word that is only read. It may lie on read-only pages, for which the language guarantees only Relaxed loads of up to 8 bytes.
#[derive(Clone, Copy)]
pub(crate) struct ReadWord<'a>(&'a AtomicU64);

impl<'a> ReadWord<'a> {
    #[inline(always)]
    pub(crate) fn of(word: &'a AtomicU64) -> Self {
        ReadWord(word)
    }

    #[inline(always)]
    pub(crate) fn load(self) -> u64 {
        // Relaxed: see above; `fence_acquire` separates such loads where their order matters.
        self.0.load(Ordering::Relaxed)
    }
}

/// Orders earlier Relaxed loads like Acquire loads.
#[inline(always)]
pub(crate) fn fence_acquire() {
    shim::fence(Ordering::Acquire);
}

/// Whether no thread holds the mutex, read between the earlier and the later loads of this thread.
#[inline]
pub(crate) fn is_unlocked(mutex: &Mutex) -> bool {
    // Acquire: a thread that has read a store of the holder finds the mutex locked, or sees its unlock.
    fence_acquire();
    let is_unlocked = !mutex.is_locked();
    // Acquire: pairs with the unlock, so this thread sees all that the former holder stored.
    fence_acquire();
    is_unlocked
}

/// A number that orders nothing. Models do not see it, so they do not explore its changes.
#[derive(Default)]
pub(crate) struct RelaxedCounter(core::sync::atomic::AtomicU64);

impl RelaxedCounter {
    /// Changes the number. One thread at a time may call this, such as the holder of a lock.
    #[inline]
    pub(crate) fn change(&self, change: impl FnOnce(u64) -> u64) {
        // Relaxed: one thread at a time changes it, and no other memory depends on it.
        self.0.store(change(self.0.load(Ordering::Relaxed)), Ordering::Relaxed);
    }

    /// Adds to the number. Any thread may call this, and `raise`.
    pub(crate) fn add(&self, number: u64) -> u64 {
        // Relaxed: each addition counts, in some order.
        self.0.fetch_add(number, Ordering::Relaxed)
    }

    pub(crate) fn raise(&self, number: u64) {
        // Relaxed: as in `add`.
        self.0.fetch_max(number, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A flag that orders nothing, of which any byte is a value. Models do not see it.
#[derive(Default)]
pub(crate) struct Flag(core::sync::atomic::AtomicU8);

impl Flag {
    pub(crate) fn set(&self, flag: bool) {
        // Relaxed: code that acts on the flag reads other memory under locks.
        self.0.store(flag.into(), Ordering::Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

/// Reads a clock between the earlier and the later operations of this thread: a processor may reorder a clock with loads. The
/// fences hide a write that is not visible when it returns; models and `tests/it/stress.rs` check for those.
#[cfg(test)]
pub(crate) fn in_order<T>(clock: impl FnOnce() -> T) -> T {
    use core::sync::atomic::fence;
    // SeqCst, both: full barriers, which pair with those of other threads. Without the first one, histories failed.
    fence(Ordering::SeqCst);
    let time = clock();
    fence(Ordering::SeqCst);
    time
}

#[cfg(not(all(test, cuckoo_model)))]
mod shim {
    use core::marker::PhantomData;
    use core::sync::atomic::Ordering;

    pub(crate) type AtomicPtr<T> = core::sync::atomic::AtomicPtr<T>;
    pub(crate) type AtomicU64 = core::sync::atomic::AtomicU64;
    pub(super) use core::sync::atomic::fence;
    pub(crate) type Mutex = parking_lot::Mutex<()>;
    pub(crate) type MutexGuard<'a> = parking_lot::MutexGuard<'a, ()>;

    /// Zeroed memory is an unlocked mutex, as `memory::Zeroed` requires of a stripe.
    #[allow(unsafe_code)]
    // SAFETY: a value of one byte without padding, or this does not compile.
    const _: () = assert!(unsafe { core::mem::transmute::<Mutex, u8>(parking_lot::const_mutex(())) } == 0);

    #[inline]
    pub(crate) fn lock(mutex: &Mutex) -> MutexGuard<'_> {
        mutex.lock()
    }

    /// Unlocks a mutex in shared memory that a killed process may have left locked. No thread of this process uses it yet.
    #[cfg(all(feature = "shared", target_os = "linux"))]
    #[allow(unsafe_code)]
    pub(crate) fn release_abandoned(mutex: &Mutex) {
        if mutex.is_locked() {
            // SAFETY: 1. it is locked; 2. its holder has ended, so no guard is left; 3. it guards no value.
            unsafe { mutex.force_unlock() };
        }
    }

    /// The guards of any number of mutexes, without a list: a failed allocation would abort the process.
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
            // SAFETY: 1. `lock` has locked the mutex of each value, on this thread; 2. it forgot their guards, so nothing else
            // unlocks them; 3. like a guard, this is not `Send`.
            self.of.iter().for_each(|value| unsafe { (self.mutex)(value).force_unlock() });
        }
    }

    /// Reads a word as the holder of the lock of its stripe, the only thread that writes it.
    #[inline]
    pub(crate) fn load_locked(word: &AtomicU64) -> u64 {
        // Relaxed: the lock orders this read after every write to the word.
        word.load(Ordering::Relaxed)
    }

    /// The fence of [`VisibleOnDrop`](super::VisibleOnDrop).
    #[inline(always)]
    pub(crate) fn fence_after_unlock() {
        // On x86-64 the unlock of parking_lot is a `lock cmpxchg`, whether or not another thread waits, and every locked
        // instruction is a full barrier. Only the compiler could still move a load above it. `tests/it/stress.rs` checks the lock.
        #[cfg(target_arch = "x86_64")]
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
        #[cfg(not(target_arch = "x86_64"))]
        core::sync::atomic::fence(Ordering::SeqCst);
    }
}

#[cfg(all(test, cuckoo_model))]
mod shim {
    use core::cell::Cell;
    use core::marker::PhantomData;
    use core::sync::atomic::Ordering;
    #[cfg(cuckoo_loom)]
    use loom::sync as checker;
    #[cfg(cuckoo_shuttle)]
    use shuttle::sync as checker;

    pub(super) use checker::atomic::fence;
    pub(crate) use checker::atomic::{AtomicPtr, AtomicU64};

    /// The mutex of the checker, and a word that is nonzero while the mutex is locked, like the byte of parking_lot's.
    pub(crate) struct Mutex {
        mutex: checker::Mutex<()>,
        /// Only where threads read it, since each store adds executions to a model.
        locked: Option<AtomicU64>,
    }

    pub(crate) struct MutexGuard<'a> {
        locked: Option<&'a AtomicU64>,
        _guard: checker::MutexGuard<'a, ()>,
    }

    thread_local! {
        static WATCHED: Cell<bool> = const { Cell::new(cfg!(cuckoo_shuttle)) };
    }

    /// Runs `work`, in which each new mutex has that word.
    #[cfg(cuckoo_loom)]
    pub(crate) fn with_watched_locks<T>(work: impl FnOnce() -> T) -> T {
        WATCHED.set(true);
        let result = work();
        WATCHED.set(false);
        result
    }

    impl Mutex {
        pub(super) fn is_locked(&self) -> bool {
            // Relaxed: as in parking_lot.
            self.locked.as_ref().expect("a watched lock").load(Ordering::Relaxed) != 0
        }
    }

    impl Default for Mutex {
        fn default() -> Self {
            Mutex { mutex: Default::default(), locked: WATCHED.get().then(AtomicU64::default) }
        }
    }

    impl Drop for MutexGuard<'_> {
        fn drop(&mut self) {
            if let Some(locked) = self.locked {
                // Release: as in parking_lot.
                locked.store(0, Ordering::Release);
            }
        }
    }

    /// The guards of any number of mutexes, which cannot be unlocked without a guard.
    pub(crate) struct AllGuards<'a, T>(Vec<MutexGuard<'a>>, PhantomData<&'a T>);

    impl<'a, T> AllGuards<'a, T> {
        pub(crate) fn lock(of: &'a [T], mutex: fn(&T) -> &Mutex) -> Self {
            AllGuards(of.iter().map(|value| lock(mutex(value))).collect(), PhantomData)
        }
    }

    pub(crate) fn lock(mutex: &Mutex) -> MutexGuard<'_> {
        let guard = mutex.mutex.lock().expect("no thread panics while it holds a stripe");
        let locked = mutex.locked.as_ref();
        if let Some(locked) = locked {
            // Relaxed: parking_lot locks by an exchange with Acquire, which does not order its store.
            locked.store(1, Ordering::Relaxed);
        }
        MutexGuard { locked, _guard: guard }
    }

    /// Loom: an ordinary load would hide the loads of other threads from this thread's next store to the same word, and
    /// a model would explore a single interleaving (tokio-rs/loom #166). This load is invisible to loom's reduction.
    ///
    /// Shuttle: no switch of threads here. No other thread writes the word unless the locks are broken, and the store
    /// that follows is a switch. Schedules are shorter, and the other switches are tried more often.
    #[allow(unsafe_code)]
    pub(crate) fn load_locked(word: &AtomicU64) -> u64 {
        // SAFETY: only the holder of the stripe's lock stores to the word, and the caller holds it; otherwise loom
        // panics here. Shuttle runs one thread at a time.
        unsafe {
            #[cfg(cuckoo_loom)]
            return word.unsync_load();
            #[cfg(cuckoo_shuttle)]
            return word.raw_load();
        }
    }

    /// Shuttle executes every access in order.
    pub(crate) fn fence_after_unlock() {
        #[cfg(cuckoo_loom)]
        fence(Ordering::SeqCst);
    }
}
