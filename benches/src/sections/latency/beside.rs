//! One thread that times each of its lookups, and threads that do something else meanwhile.

use compare::Passes;
use fastrand::Rng;
use hdrhistogram::Histogram;
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What a reader found.
pub(super) struct Times {
    /// Nanoseconds a lookup.
    pub(super) histogram: Histogram<u64>,
    /// Present keys that were not found, and writes that failed.
    pub(super) missed: usize,
}

/// Keys to look up, and whether they are present: half of them, in random order.
pub(super) struct Reads(Vec<u64>, Vec<bool>);

impl Reads {
    pub(super) fn new(stable: &[u64]) -> Self {
        let mut random = Rng::with_seed(11);
        let one = |_| match random.bool() {
            true => (stable[random.usize(..stable.len())], true),
            false => (random.u64(..), false),
        };
        let (keys, present) = (0..1 << 16).map(one).unzip();
        Reads(keys, present)
    }

    /// Looks keys up for so long, each between two readings of the clock.
    pub(super) fn time(&self, length: Duration, lookup: impl Fn(&u64) -> bool) -> Times {
        let mut histogram = Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("bounds in order");
        let (mut missed, mut wrong) = (0, 0);
        let begin = Instant::now();
        for (key, &present) in self.0.iter().zip(&self.1).cycle() {
            let start = Instant::now();
            let found = lookup(black_box(key));
            let end = Instant::now();
            histogram.saturating_record((end - start).as_nanos() as u64);
            missed += usize::from(present && !found);
            wrong += usize::from(!present && found);
            if end - begin > length {
                break;
            }
        }
        // 8 bits answer wrongly 3 times in 100.
        assert!(wrong as u64 <= histogram.len() / 20 + 100, "{wrong} false positives of {}", histogram.len());
        Times { histogram, missed }
    }
}

/// Reads while so many threads work until they are told to stop, each with a number; they return what they missed.
pub(super) fn beside(
    threads: usize,
    work: impl Fn(usize, &AtomicBool) -> usize + Sync,
    read: impl FnOnce() -> Times,
) -> Times {
    let (stop, barrier) = (AtomicBool::new(false), Barrier::new(threads + 1));
    let (stop, barrier, work) = (&stop, &barrier, &work);
    thread::scope(|scope| {
        let start = |number| {
            scope.spawn(move || {
                barrier.wait();
                work(number, stop)
            })
        };
        let threads: Vec<_> = (0..threads).map(start).collect();
        barrier.wait();
        let mut times = read();
        stop.store(true, Ordering::Relaxed);
        times.missed += threads.into_iter().map(|thread| thread.join().expect("no panic")).sum::<usize>();
        times
    })
}

/// Removes and inserts these keys, which are present, over and over; counts the writes that failed.
pub(super) fn write(set: &dyn Passes<u64>, keys: &[u64], stop: &AtomicBool) -> usize {
    let mut failed = 0;
    for key in keys.iter().cycle().take_while(|_| !stop.load(Ordering::Relaxed)) {
        failed += usize::from(!set.remove_one(key));
        failed += usize::from(!set.insert_one(key));
    }
    failed
}

/// Is as busy as a writer, and touches no filter.
pub(super) fn hash(stop: &AtomicBool) {
    let hasher = ahash::RandomState::new();
    let mut key = 0;
    while !stop.load(Ordering::Relaxed) {
        key = hasher.hash_one(black_box(key));
    }
}
