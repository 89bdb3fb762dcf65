//! A test that hangs says so.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Ends the process if it is not dropped within a minute: a stripe left locked stops everybody for ever.
pub(super) fn watchdog() -> mpsc::Sender<()> {
    let (alive, dropped) = mpsc::channel();
    std::thread::spawn(move || {
        if dropped.recv_timeout(Duration::from_secs(60)) == Err(RecvTimeoutError::Timeout) {
            eprintln!("a test hangs");
            std::process::abort();
        }
    });
    alive
}
