//! Work that must panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// What the panic says.
pub(super) fn panics<R>(work: impl FnOnce() -> R) -> String {
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(work()))) else { panic!("this was to panic") };
    match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => panic.downcast_ref::<&str>().map_or_else(String::new, |&message| message.into()),
    }
}
