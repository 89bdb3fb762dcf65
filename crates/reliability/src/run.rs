//! What was asked of a run.

use std::time::Duration;

pub(crate) struct Run {
    pub(crate) quick: bool,
    pub(crate) seed: u64,
    /// How long the exact stress takes.
    pub(crate) stress: Duration,
}

impl Run {
    pub(crate) fn choose<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }
}
