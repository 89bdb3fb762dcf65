//! Threads that work while others watch.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts a worker out when it is dropped, also one whose assertion failed: those who watch wait for none.
pub(super) struct Done<'a>(pub(super) &'a AtomicUsize);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
