//! Forks happen while no export is inside the filter.
//!
//! The server forks to save, and its child reads every filter. A fork while a thread of this module holds a stripe would
//! leave that stripe locked in the child for ever. So the thread holds [`EXPORTING`] while it is inside the filter, and lets
//! it go to write to the disk; a fork takes it first.

use std::cell::RefCell;
use std::sync::{Mutex, MutexGuard, PoisonError};

static EXPORTING: Mutex<()> = Mutex::new(());

thread_local! {
    /// Held from before a fork to after it, on the thread that forks.
    static FORKING: RefCell<Option<MutexGuard<'static, ()>>> = const { RefCell::new(None) };
}

/// While this lives, no process is forked.
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
