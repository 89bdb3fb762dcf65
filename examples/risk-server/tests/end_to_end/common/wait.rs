//! Waiting for what must come.

use std::thread;
use std::time::{Duration, Instant};

/// What has not come by then never will.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Asks again and again until there is a value.
pub(crate) fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(value) = ask() {
            return value;
        }
        assert!(began.elapsed() < PATIENCE, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Asks again and again until it is so.
pub(crate) fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    wait_for(what, || so().then_some(()));
}
