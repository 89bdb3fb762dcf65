//! Threads that work, and those that watch them.

use std::env;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Counts a worker out when it is dropped, even by a failed assertion, so that no thread waits for it.
pub struct Done<'a>(pub &'a AtomicUsize);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Ends the process if the result is not dropped within a minute: a stripe left locked blocks every thread for ever. A
/// slower machine asks for more seconds with `CUCKOO_PATIENCE`.
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

/// Does pieces of work, by their numbers in order, on as many threads as there are cores, until `work` returns `None` on
/// each of them. The results are in no order.
///
/// Not on rayon's threads: one that waits for a bulk operation there may be given a further piece of work meanwhile, and
/// that one the next, with the memory of them all.
pub fn on_all_cores<T: Send>(work: impl Fn(usize) -> Option<T> + Sync) -> Vec<T> {
    let (next, work) = (&AtomicUsize::new(0), &work);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let take = move || std::iter::from_fn(|| work(next.fetch_add(1, Ordering::Relaxed))).collect::<Vec<T>>();
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(take)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a thread that did not panic")).collect()
    })
}

/// The same for each piece of a list.
pub fn each_on_all_cores<W: Sync, T: Send>(pieces: &[W], work: impl Fn(&W) -> T + Sync) -> Vec<T> {
    on_all_cores(|number| pieces.get(number).map(&work))
}
