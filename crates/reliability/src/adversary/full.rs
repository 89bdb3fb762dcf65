//! A full filter: how long it takes to refuse a key, and what lookups notice of it.

use crate::figure::{count, figure};
use crate::run::Run;
use crate::times::{Times, timed};
use concurrent_cuckoo_filter::InsertError;
use fastrand::Rng;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use testkit::{Filter, Promise, Shape, broken};

/// A filter is full when this many keys were refused one after the other.
const IN_A_ROW: usize = 20;

/// Each key is refused this many times, and the least time counts.
const TRIES: usize = 3;

/// Refusals of which the quantiles are told, before the median of all such runs.
const RUN: u64 = 10_000;

pub(super) fn run(run: &Run, rng: &mut Rng) {
    let refusals = run.choose(100_000, 2_000);
    for (id, log2) in [("7.5", 10), ("7.6", 16), ("7.7", run.choose(20, 18)), ("7.8", run.choose(24, 20))] {
        let shape = Shape::of_slots(1 << log2, 16, rng);
        let full = Full::new(shape);
        let alone = full.lookup(|times| times.len() < 1 << 20);
        let (stop, barrier) = (&AtomicBool::new(false), &Barrier::new(2));
        let (refused, went_in, concurrent) = thread::scope(|scope| {
            let reader = scope.spawn(|| {
                barrier.wait();
                full.lookup(|_| !stop.load(Ordering::Relaxed))
            });
            barrier.wait();
            let (refused, went_in) = full.refuse(refusals);
            stop.store(true, Ordering::Relaxed);
            (refused, went_in, reader.join().expect("a panic ends the process"))
        });
        full.check(went_in);
        figure(
            id,
            format_args!(
                "2^{log2} slots of 16 bits at a load of {:.3}: {} distinct keys refused {TRIES} times each, the least time of \
                 each: {refused}; {} lookups of \
                 present keys meanwhile, {concurrent} (without them {alone})",
                full.filter.load_factor(),
                count(refused.len()),
                count(concurrent.len())
            ),
        );
    }
}

struct Full {
    shape: Shape,
    filter: Filter,
    /// The keys from 0 on that are in the filter.
    present: Vec<u64>,
    next: u64,
}

impl Full {
    fn new(shape: Shape) -> Self {
        let filter = super::filled(&shape, 0.94);
        let mut present: Vec<u64> = (0..filter.len() as u64).collect();
        let (mut next, mut in_a_row) = (present.len() as u64, 0);
        while in_a_row < IN_A_ROW {
            match filter.insert(&next) {
                Ok(()) => {
                    present.push(next);
                    in_a_row = 0;
                }
                Err(_) => in_a_row += 1,
            }
            next += 1;
        }
        Full { shape, filter, present, next }
    }

    /// The times of this many refusals, and the keys that found a place all the same.
    fn refuse(&self, refusals: u64) -> (Times, Vec<u64>) {
        let (mut times, mut went_in) = (Times::in_runs_of(RUN), Vec::new());
        let mut keys = self.next..;
        while times.len() < refusals {
            let key = keys.next().expect("endless");
            match self.refused_in(key) {
                Some(nanos) => times.note(nanos),
                None => went_in.push(key),
            }
        }
        (times, went_in)
    }

    /// The least time in nanoseconds of some refusals of this key, all of which do the same work; `None` if it went in. One
    /// that the system stopped in the middle of it says nothing of the work.
    fn refused_in(&self, key: u64) -> Option<u64> {
        let mut least = u64::MAX;
        for _ in 0..TRIES {
            match timed(|| self.filter.insert(&key)) {
                (_, Ok(())) => return None,
                (nanos, Err(InsertError::Full)) => least = least.min(nanos),
                (_, Err(error)) => broken(Promise::Refusal, &self.shape, key, format_args!("not full, but: {error}")),
            }
        }
        Some(least)
    }

    fn lookup(&self, go_on: impl Fn(&Times) -> bool) -> Times {
        let (mut times, mut rng) = (Times::in_runs_of(100_000), Rng::with_seed(self.shape.seed));
        while go_on(&times) {
            let key = self.present[rng.usize(..self.present.len())];
            if !times.time(|| self.filter.contains(&key)) {
                broken(Promise::Present, &self.shape, key, "contains missed it in a full filter");
            }
        }
        times
    }

    /// Refusals have changed nothing.
    fn check(&self, went_in: Vec<u64>) {
        if let Some(&lost) = self.present.iter().chain(&went_in).find(|key| !self.filter.contains(key)) {
            broken(Promise::Refusal, &self.shape, lost, "lost in a full filter");
        }
        if self.filter.len() != self.present.len() + went_in.len() {
            broken(Promise::Count, &self.shape, None, format_args!("len is {}", self.filter.len()));
        }
    }
}
