//! Long work: without the interpreter's lock, in slices between which it can be interrupted, on the threads of a pool.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Keys between two looks for an interruption: some hundredths of a second.
const KEYS_IN_A_SLICE: usize = 1 << 20;

/// Works on `keys` keys, a slice at a time. An interruption ends it between two slices: what is done is done.
pub(crate) fn in_slices(
    py: Python<'_>,
    keys: usize,
    mut work: impl FnMut(Range<usize>) -> PyResult<()> + Send,
) -> PyResult<()> {
    for begin in (0..keys).step_by(KEYS_IN_A_SLICE) {
        let slice = begin..keys.min(begin + KEYS_IN_A_SLICE);
        py.detach(|| work(slice))?;
        py.check_signals()?;
    }
    Ok(())
}

/// The pool of this process. A process that was forked off has none of the threads of its parent, and would wait for them
/// for ever: it makes a pool of its own.
pub(crate) fn pool(_: Python<'_>) -> PyResult<Arc<ThreadPool>> {
    static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);
    let process = std::process::id();
    // Never locked while another thread forks: both have the interpreter's lock.
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    match &*pool {
        Some((of, pool)) if *of == process => return Ok(Arc::clone(pool)),
        _ => {}
    }
    let made = ThreadPoolBuilder::new().thread_name(|number| format!("cuckoo-{number}")).build();
    let made = Arc::new(made.map_err(|error| {
        PyRuntimeError::new_err(format!(
            "no threads for a large insertion: {error}; insert fewer than 32768 keys at a time"
        ))
    })?);
    // The pool of the parent is left alone: to end it is to wait for its threads.
    std::mem::forget(pool.replace((process, Arc::clone(&made))));
    Ok(made)
}
