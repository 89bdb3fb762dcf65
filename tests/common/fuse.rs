//! A user's code that is called so many times, and panics.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a fuse says in the end.
pub(super) const BURNT: &str = "the fuse has burnt";

/// Burns at each call, and panics at the end.
#[derive(Clone)]
pub(super) struct Fuse(Arc<AtomicUsize>);

impl Fuse {
    /// Longer than any work.
    pub(super) fn long() -> Self {
        Fuse(Arc::new(AtomicUsize::new(usize::MAX)))
    }

    pub(super) fn burn(&self) {
        assert!(self.0.fetch_sub(1, Ordering::Relaxed) > 1, "{BURNT}");
    }

    fn set(&self, calls: usize) {
        self.0.store(calls, Ordering::Relaxed);
    }

    /// Runs the work once, and again with a fuse of each length that ends it, and `after` it. Says how often.
    pub(super) fn burn_at_each_call(&self, work: impl Fn(), after: impl Fn()) -> usize {
        self.set(usize::MAX);
        work();
        let calls = usize::MAX - self.0.load(Ordering::Relaxed);
        assert!(calls > 0);
        for at in 1..=calls {
            self.set(at);
            assert!(super::panics::panics(&work).contains(BURNT));
            self.set(usize::MAX);
            after();
        }
        calls
    }
}
