//! Timing.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// Nanoseconds for each of `count` operations, and what came of the work.
pub fn timed<T>(count: usize, work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed().as_nanos() as f64 / count as f64, result)
}

/// As [`timed`], after a pass that is not timed: whoever ran before had the caches to itself.
pub fn warm_timed<T>(count: usize, mut work: impl FnMut() -> T) -> (f64, T) {
    std::hint::black_box(work());
    timed(count, work)
}

/// Runs the work on so many threads, told their numbers, which start together. The time is that from the first start to
/// the last end, by clocks inside the threads.
pub fn on_threads<T: Send>(threads: usize, work: impl Fn(usize) -> T + Sync) -> (Duration, Vec<T>) {
    let barrier = Barrier::new(threads);
    let (barrier, work) = (&barrier, &work);
    let (spans, results): (Vec<_>, Vec<_>) = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|number| {
                scope.spawn(move || {
                    barrier.wait();
                    let start = Instant::now();
                    let result = work(number);
                    ((start, Instant::now()), result)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).unzip()
    });
    let first = spans.iter().map(|&(start, _)| start).min().expect("a thread");
    let last = spans.iter().map(|&(_, end)| end).max().expect("a thread");
    (last - first, results)
}
