//! Threads that change a filter and query it concurrently, with every answer checked.
//!
//! The test follows libcuckoo's checked stress test, in which each key has a flag that states its presence. Here the flag is the
//! number of copies of the key behind a lock, which threads only try to take, so that they meet inside the filter and not at the
//! flags. Fingerprints have 32 bits and no two keys share a class, so every answer is known. (The histories of
//! `tests/internal/linearizability` cover keys that share classes.)

mod field;
mod groups;
mod readers;
mod singles;
mod snapshots;

use concurrent_cuckoo_filter::Stats;
use fastrand::Rng;
pub use field::Exact;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

/// The operations that threads have done and checked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Insertions and removals.
    pub operations: u64,
    /// Lookups and counts.
    pub lookups: u64,
}

/// The result of a stress test.
#[derive(Debug)]
pub struct Outcome {
    /// The sum over all threads.
    pub tally: Tally,
    /// The number of snapshots that were read back.
    pub snapshots: u64,
    /// The number of calls of `stats`.
    pub stats_calls: u64,
    /// The mean load that these calls returned.
    pub mean_load: f64,
    /// The last result of `stats`.
    pub stats: Stats,
    /// The number of keys whose counts were compared at the end.
    pub keys: u64,
}

impl Exact {
    /// Runs this many workers, each until it has done this many operations or until [`Exact::stop`], together with `readers`
    /// lookup threads, one thread that takes snapshots and one that calls `stats`. Then compares every count with its flag, and
    /// removes everything.
    ///
    /// # Panics
    ///
    /// If an answer is wrong.
    pub fn run(&self, workers: usize, readers: usize, operations: u64, rng: &mut Rng) -> Outcome {
        self.working.store(workers, Ordering::Relaxed);
        let mut outcome = thread::scope(|scope| {
            let mut rngs = std::iter::repeat_with(|| rng.fork());
            let mut threads: Vec<_> = rngs
                .by_ref()
                .take(workers)
                .map(|rng| scope.spawn(move || singles::work(self, operations, rng)))
                .collect();
            threads.extend(rngs.by_ref().take(readers).map(|rng| scope.spawn(move || readers::ask(self, rng))));
            let rng = rngs.next().expect("endless");
            let snapshots = scope.spawn(move || snapshots::take(self, rng));
            let watch = scope.spawn(|| self.watch());

            let join = "a thread that found nothing wrong";
            let mut tallies: Vec<Tally> = threads.into_iter().map(|thread| thread.join().expect(join)).collect();
            let (of_snapshots, snapshots) = snapshots.join().expect(join);
            tallies.push(of_snapshots);
            let sum = |part: fn(&Tally) -> u64| tallies.iter().map(part).sum();
            let tally = Tally { operations: sum(|one| one.operations), lookups: sum(|one| one.lookups) };
            let (stats_calls, mean_load, stats) = watch.join().expect(join);
            Outcome { tally, snapshots, stats_calls, mean_load, stats, keys: 0 }
        });
        outcome.keys = self.check_at_rest();
        self.remove_everything();
        outcome
    }

    /// Calls `stats` during the work. Returns the number of calls, the mean load, and the last result.
    fn watch(&self) -> (u64, f64, Stats) {
        let slots = self.shape.slots();
        let counters =
            |stats: &Stats| [stats.relocations, stats.longest_path, stats.refused_full, stats.refused_too_many_copies];
        let (mut calls, mut sum, mut last) = (0, 0.0, self.filter.stats());
        while calls == 0 || self.is_worked_on() {
            let stats = self.filter.stats();
            let fell = counters(&stats).iter().zip(counters(&last)).any(|(now, before)| *now < before);
            assert!(!fell, "a counter fell: {stats:?} after {last:?}");
            let load = stats.len as f64 / slots as f64;
            assert!(stats.len <= slots && stats.load_factor == load, "{stats:?} of {slots} slots");
            (calls, sum, last) = (calls + 1, sum + stats.load_factor, stats);
            thread::sleep(Duration::from_millis(5));
        }
        (calls, sum / calls as f64, last)
    }
}
