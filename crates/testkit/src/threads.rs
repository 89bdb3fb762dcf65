//! Threads that work, and threads that watch them.

use std::env;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Decrements the number of workers when it is dropped, even by a failed assertion, so that no thread waits for that worker.
pub struct Done<'a>(pub &'a AtomicUsize);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Ends the process if the result is not dropped within a minute, because a stripe that stays locked blocks every thread for ever.
/// `CUCKOO_PATIENCE` sets more seconds for slow machines.
pub fn watchdog() -> mpsc::Sender<()> {
    let patience = env::var("CUCKOO_PATIENCE").map_or(60, |seconds| seconds.parse().expect("a number of seconds"));
    let (alive, dropped) = mpsc::channel();
    thread::spawn(move || {
        if dropped.recv_timeout(Duration::from_secs(patience)) == Err(RecvTimeoutError::Timeout) {
            eprintln!("a test hangs");
            std::process::abort();
        }
    });
    alive
}

/// Runs pieces of work, numbered in order, on as many threads as there are cores, until `work` has returned `None` on each of
/// them. The results are in no order.
///
/// It does not use rayon's threads: a thread of rayon that waits for a bulk operation may start another piece of work, and that
/// one the next, each with its memory.
pub fn on_all_cores<T: Send>(work: impl Fn(usize) -> Option<T> + Sync) -> Vec<T> {
    let (next, work) = (&AtomicUsize::new(0), &work);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let take = move || std::iter::from_fn(|| work(next.fetch_add(1, Ordering::Relaxed))).collect::<Vec<T>>();
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(take)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a thread that did not panic")).collect()
    })
}

/// Runs `work` on each piece of a list in the same way.
pub fn each_on_all_cores<W: Sync, T: Send>(pieces: &[W], work: impl Fn(&W) -> T + Sync) -> Vec<T> {
    on_all_cores(|number| pieces.get(number).map(&work))
}
