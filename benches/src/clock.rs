//! Timing.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Returns the nanoseconds per operation of `count`, and the result of the work.
pub fn timed<T>(count: usize, work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed().as_nanos() as f64 / count as f64, result)
}

/// Runs the work on several threads, which start together and get their numbers. The time is that from the first start to the
/// last end, by clocks inside the threads.
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

/// Runs the work while other threads, each with a number, do something else until they are told to stop. Returns the result of
/// the work, and the sum of the results of the others.
pub fn with<T>(
    threads: usize,
    other: impl Fn(usize, &AtomicBool) -> usize + Sync,
    work: impl FnOnce() -> T,
) -> (T, usize) {
    let (stop, barrier) = (AtomicBool::new(false), Barrier::new(threads + 1));
    let (stop, barrier, other) = (&stop, &barrier, &other);
    thread::scope(|scope| {
        let start = |number| {
            scope.spawn(move || {
                barrier.wait();
                other(number, stop)
            })
        };
        let threads: Vec<_> = (0..threads).map(start).collect();
        barrier.wait();
        let result = work();
        stop.store(true, Ordering::Relaxed);
        (result, threads.into_iter().map(|thread| thread.join().expect("no panic")).sum())
    })
}

/// Keeps a core as busy as a writer does, without a set, until it is told to stop.
pub fn hash(stop: &AtomicBool) -> usize {
    let hasher = ahash::RandomState::new();
    let mut key = 0;
    while !stop.load(Ordering::Relaxed) {
        key = hasher.hash_one(std::hint::black_box(key));
    }
    0
}
