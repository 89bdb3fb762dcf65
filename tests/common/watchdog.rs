//! A test that hangs says so.

use std::env;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Ends the process if it is not dropped within a minute: a stripe left locked stops everybody for ever. A machine that
/// is slower asks for more seconds, with `CUCKOO_PATIENCE`.
pub(super) fn watchdog() -> mpsc::Sender<()> {
    let patience = env::var("CUCKOO_PATIENCE").map_or(60, |seconds| seconds.parse().expect("a number of seconds"));
    let (alive, dropped) = mpsc::channel();
    std::thread::spawn(move || {
        if dropped.recv_timeout(Duration::from_secs(patience)) == Err(RecvTimeoutError::Timeout) {
            eprintln!("a test hangs");
            std::process::abort();
        }
    });
    alive
}
