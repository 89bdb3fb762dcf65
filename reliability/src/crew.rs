//! Work on all cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Does pieces of work, by their numbers in order, on as many threads as there are cores, until `work` returns `None` on
/// each of them. The results are in no order.
///
/// Not on rayon's threads: one that waits for a bulk operation there may be given a further piece of work meanwhile, and
/// that one the next, with the memory of them all.
pub(crate) fn on_all_cores<T: Send>(work: impl Fn(usize) -> Option<T> + Sync) -> Vec<T> {
    let (next, work) = (&AtomicUsize::new(0), &work);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let take = move || std::iter::from_fn(|| work(next.fetch_add(1, Ordering::Relaxed))).collect::<Vec<T>>();
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(take)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a panic ends the process")).collect()
    })
}

/// The same for each piece of a list.
pub(crate) fn each_on_all_cores<W: Sync, T: Send>(pieces: &[W], work: impl Fn(&W) -> T + Sync) -> Vec<T> {
    on_all_cores(|number| pieces.get(number).map(&work))
}
