//! Long work: without the interpreter's lock, in slices between which it can be interrupted, on the threads of a pool; and forks during
//! such work.

#![allow(clippy::disallowed_types, reason = "the rules of the library: no model runs this package")]

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The number of keys between two checks for an interruption: some hundredths of a second. A multiple of 64.
pub(crate) const KEYS_IN_A_SLICE: usize = 1 << 20;

/// The calling thread hashes and stores fewer keys than this by itself.
pub(crate) const MANY_KEYS: usize = 1 << 15;

/// Works on `keys` keys, a slice at a time. An interruption ends it between two slices. Finished slices are not undone.
pub(crate) fn in_slices(
    py: Python<'_>,
    keys: usize,
    mut work: impl FnMut(Range<usize>) -> PyResult<()> + Send,
) -> PyResult<()> {
    for begin in (0..keys).step_by(KEYS_IN_A_SLICE) {
        let slice = begin..keys.min(begin + KEYS_IN_A_SLICE);
        detached(py, || work(slice))?;
        py.check_signals()?;
    }
    Ok(())
}

/// The number of calls that work in filters without the interpreter's lock.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);

/// The number of threads that are about to fork. Without a global lock, there may be several.
static FORKING: AtomicUsize = AtomicUsize::new(0);

/// Runs work without the interpreter's lock. The work must not call Python. Forks wait for it: a child would have a copy of each held
/// lock, and no thread to unlock it.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    struct Working;
    impl Drop for Working {
        fn drop(&mut self) {
            AT_WORK.fetch_sub(1, Ordering::SeqCst);
        }
    }
    py.detach(|| {
        loop {
            AT_WORK.fetch_add(1, Ordering::SeqCst);
            let working = Working;
            if FORKING.load(Ordering::SeqCst) == 0 {
                break work();
            }
            drop(working);
            std::thread::sleep(A_MOMENT);
        }
    })
}

/// The interval at which threads check for the end of a fork or of a slice.
const A_MOMENT: Duration = Duration::from_micros(50);

/// Python calls this function before each fork, and one of the next two after it.
#[pyfunction]
pub(crate) fn before_fork(py: Python<'_>) {
    // Both sides write before they read, so at least one sees the other. Calls that keep the interpreter have ended when it forks: it then
    // has its lock, or has stopped all other threads in its code.
    FORKING.fetch_add(1, Ordering::SeqCst);
    py.detach(|| {
        while AT_WORK.load(Ordering::SeqCst) > 0 {
            std::thread::sleep(A_MOMENT);
        }
    });
}

#[pyfunction]
pub(crate) fn after_fork_in_parent() {
    FORKING.fetch_sub(1, Ordering::SeqCst);
}

#[pyfunction]
pub(crate) fn after_fork_in_child() {
    // A thread of the parent may have counted itself before it saw that it must wait.
    AT_WORK.store(0, Ordering::SeqCst);
    FORKING.store(0, Ordering::SeqCst);
}

/// The pool of this process. A forked process has none of the threads of its parent, and would wait for them forever, so it creates a pool
/// of its own.
pub(crate) fn pool(_: Python<'_>) -> PyResult<Arc<ThreadPool>> {
    static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);
    let process = std::process::id();
    // Never locked during a fork: a thread that locks it stays attached to the interpreter.
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((of, pool)) = &*pool
        && *of == process
    {
        return Ok(Arc::clone(pool));
    }
    let made = ThreadPoolBuilder::new().thread_name(|number| format!("cuckoo-{number}")).build();
    let made = Arc::new(made.map_err(|error| {
        PyRuntimeError::new_err(format!(
            "no threads for a large insertion: {error}; insert fewer than 32768 keys at a time"
        ))
    })?);
    // The pool of the parent is leaked, because dropping it would wait for its threads.
    std::mem::forget(pool.replace((process, Arc::clone(&made))));
    Ok(made)
}
