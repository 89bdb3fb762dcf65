//! Prevents a fork during an export's access to the filter.
//!
//! The server forks to save, and its child reads every filter. A stripe that another thread holds at the fork would
//! stay locked in the child for ever. So the export thread holds [`EXPORTING`] while it accesses the filter, and
//! releases it for writes to the disk. A fork acquires it first.

use std::cell::RefCell;
use std::sync::{Mutex, MutexGuard, PoisonError};

static EXPORTING: Mutex<()> = Mutex::new(());

thread_local! {
    /// The guard of the forking thread, from before the fork until after it.
    static FORKING: RefCell<Option<MutexGuard<'static, ()>>> = const { RefCell::new(None) };
}

/// Prevents forks until the guard is dropped.
pub(crate) fn unforked() -> MutexGuard<'static, ()> {
    EXPORTING.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn init() -> Result<(), String> {
    extern "C" fn before() {
        FORKING.set(Some(unforked()));
    }
    extern "C" fn after() {
        FORKING.set(None);
    }
    // SAFETY: the functions live as long as the module, which the server never unloads, since it has a data type.
    match unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) } {
        0 => Ok(()),
        error => Err(format!("pthread_atfork: {}", std::io::Error::from_raw_os_error(error))),
    }
}
