//! A growth storm: a filter grows from ten thousand keys to a hundred million, concurrently with writers, readers, removals,
//! copies and `len`. No key is missed, the counts are exact whenever the writers pause, and the memory is as predicted. For
//! comparison, the same runs on a filter of the final size.

use concurrent_cuckoo_filter::Builder;
use fastrand::Rng;
use reliability::{Times, draws};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use testkit::{Filter, Shape, Width, choose, random_seeds, thousands as count};

const BEGIN: usize = 10_000;
const RATE: f64 = 0.001;
const WRITERS: u64 = 4;
const READERS: usize = 2;

const STABLE: u64 = 8_000;

/// A writer inserts one extra key per this many of its own, and removes it again.
const ONE_GUEST_IN: u64 = 8;

/// One lookup in this many is timed.
const TIMED_ONE_IN: usize = 16;

/// Filters of more keys are not copied, since a copy takes as long as inserting the keys.
const COPIED: usize = 1_000_000;

#[test]
fn a_filter_grows_a_thousandfold_while_everything_goes_on() {
    let keys = choose(100_000_000, 1_000_000);
    let mut rng = draws();
    let shape = Shape { width: Width::Rate(RATE), ..Shape::new(keys, 0, &mut rng) };
    let growing = || shape.builder().capacity(BEGIN).max_capacity(keys);
    let pauses = pauses(growing, keys);
    let grown = growing().hasher(random_seeds(&mut rng)).build().expect("a modest filter");
    let told = |keys| growing().memory_usage_at(keys).expect("a modest filter");
    let seen = Storm { filter: &grown, pauses: &pauses, told: Some(&told) }.run();
    let (filter, stats) = (&grown, grown.stats());
    println!(
        "figure 10.1: from {} keys to {} in {} doublings and {} splits, under {WRITERS} writers and {READERS} readers: 0 \
         of {} lookups of keys that were there missed, every one of {} removals found its key, {} copies and {} calls of \
         len and stats; at {} pauses the count was exact, the memory within {:.2} % of memory_usage_at; at the end every \
         key was found, {:.2} bits per key",
        count(BEGIN),
        count(filter.len()),
        stats.doublings,
        count(stats.splits),
        count(seen.looked),
        count(seen.removed),
        count(seen.copies),
        count(seen.asked),
        pauses.len(),
        100.0 * seen.memory,
        filter.memory_usage() as f64 * 8.0 / filter.len() as f64,
    );
    let fixed = shape.build();
    let still = Storm { filter: &fixed, pauses: &pauses, told: None }.run();
    println!(
        "figure 10.2: one lookup while the filter grew: {}; in one of the final size: {}",
        seen.lookups, still.lookups
    );
    println!(
        "figure 10.3: one insertion, with splits and waits: {}; in a filter of the final size: {}",
        seen.inserts, still.inserts
    );
    println!(
        "figure 10.4: the {} splits took {:.1} us each, {:.1} ns for each key",
        count(stats.splits),
        stats.time_in_splits.as_secs_f64() * 1e6 / stats.splits.max(1) as f64,
        stats.time_in_splits.as_secs_f64() * 1e9 / filter.len() as f64
    );
}

/// Numbers of keys well between two doublings, where the memory is known, and finally all keys.
fn pauses(builder: impl Fn() -> Builder<u64>, keys: usize) -> Vec<usize> {
    let told = |keys| builder().memory_usage_at(keys).expect("a modest filter");
    let (mut pauses, mut from) = (Vec::new(), 0);
    while told(from) < told(keys) {
        let (mut last, mut next) = (from, keys);
        while next - last > 1 {
            let middle = last.midpoint(next);
            *(if told(middle) == told(from) { &mut last } else { &mut next }) = middle;
        }
        pauses.push(last / 4 * 3);
        from = next;
    }
    pauses.retain(|&pause| pause as u64 > STABLE);
    pauses.push(keys);
    pauses
}

struct Storm<'a> {
    filter: &'a Filter,
    /// The numbers of keys at which the writers wait for each other.
    pauses: &'a [usize],
    /// The predicted memory of a number of keys, if the filter grows.
    told: Option<&'a (dyn Fn(usize) -> usize + Sync)>,
}

#[derive(Default)]
struct Seen {
    inserts: Times,
    lookups: Times,
    looked: u64,
    removed: u64,
    copies: u64,
    /// The number of calls of `len` and `stats`.
    asked: u64,
    /// The largest relative deviation of the memory from the predicted one.
    memory: f64,
}

impl Seen {
    fn join(mut self, other: Seen) -> Seen {
        self.inserts.add(&other.inserts);
        self.lookups.add(&other.lookups);
        self.looked += other.looked;
        self.removed += other.removed;
        self.copies += other.copies;
        self.asked += other.asked;
        self.memory = self.memory.max(other.memory);
        self
    }
}

impl Storm<'_> {
    fn run(&self) -> Seen {
        (0..STABLE).for_each(|key| self.filter.insert(&key).expect("room for the first keys"));
        let (barrier, over) = (Barrier::new(WRITERS as usize), AtomicBool::new(false));
        let (barrier, over) = (&barrier, &over);
        thread::scope(|scope| {
            let others = (0..READERS).map(|number| scope.spawn(move || self.read(number as u64, over)));
            let others: Vec<_> = others.chain([scope.spawn(move || self.watch(over))]).collect();
            let writers: Vec<_> = (0..WRITERS).map(|number| scope.spawn(move || self.write(number, barrier))).collect();
            let join = "a panic ends the process";
            let written =
                writers.into_iter().map(|thread| thread.join().expect(join)).fold(Seen::default(), Seen::join);
            over.store(true, Ordering::Relaxed);
            others.into_iter().map(|thread| thread.join().expect(join)).fold(written, Seen::join)
        })
    }

    /// Returns the number of keys that each writer has stored at this pause.
    fn share(pause: usize) -> u64 {
        (pause as u64 - STABLE) / WRITERS
    }

    fn write(&self, number: u64, barrier: &Barrier) -> Seen {
        let (mut seen, mut stored) = (Seen::default(), 0);
        let own = |key| (number + 1) << 40 | key;
        for &pause in self.pauses {
            for key in stored..Self::share(pause) {
                self.insert(own(key), &mut seen.inserts);
                if key % ONE_GUEST_IN == 0 {
                    self.insert(own(1 << 39 | key), &mut seen.inserts);
                    self.look(own(key), "its writer", &mut seen);
                    assert!(
                        self.filter.remove(&own(1 << 39 | key)),
                        "a key that was stored was not found to be removed"
                    );
                    seen.removed += 1;
                }
            }
            stored = Self::share(pause);
            if barrier.wait().is_leader() {
                seen.memory = seen.memory.max(self.check(STABLE + WRITERS * stored));
            }
            barrier.wait();
        }
        (0..stored).for_each(|key| self.look(own(key), "its writer, at the end,", &mut seen));
        seen
    }

    fn insert(&self, key: u64, times: &mut Times) {
        assert_eq!(times.time(|| self.filter.insert(&key)), Ok(()), "{key}");
    }

    fn look(&self, key: u64, who: &str, seen: &mut Seen) {
        seen.looked += 1;
        assert!(self.filter.contains(&key), "{who} missed {key}");
    }

    /// Checks the filter while the writers pause. Returns the relative deviation of the memory from the predicted one.
    fn check(&self, keys: u64) -> f64 {
        assert_eq!(self.filter.len() as u64, keys, "at a pause");
        let Some(told) = self.told.map(|told| told(keys as usize) as f64) else { return 0.0 };
        let differs = (self.filter.memory_usage() as f64 / told - 1.0).abs();
        // The last pause is not between two doublings, so a table may have been split once more after a long search.
        let most = if self.pauses.last().is_some_and(|&all| keys + WRITERS <= all as u64) { 0.03 } else { 0.1 };
        assert!(differs <= most, "{} bytes of {keys} keys, {told} were told", self.filter.memory_usage());
        differs
    }

    fn read(&self, seed: u64, over: &AtomicBool) -> Seen {
        let (mut seen, mut rng) = (Seen::default(), Rng::with_seed(seed));
        let mut found = [false; 256];
        while !over.load(Ordering::Relaxed) {
            let keys: Vec<u64> = (0..found.len()).map(|_| rng.u64(..STABLE)).collect();
            for (number, &key) in keys.iter().enumerate() {
                if number % TIMED_ONE_IN == 0 {
                    seen.lookups.time(|| self.filter.contains(&key));
                }
                self.look(key, "a reader", &mut seen);
            }
            self.filter.contains_batch(&keys, &mut found);
            assert_eq!(found.iter().position(|&found| !found), None, "a batch missed one of {keys:?}");
            seen.looked += keys.len() as u64;
        }
        seen
    }

    fn watch(&self, over: &AtomicBool) -> Seen {
        let (mut seen, mut splits) = (Seen::default(), 0);
        while !over.load(Ordering::Relaxed) {
            let (stats, len) = (self.filter.stats(), self.filter.len());
            assert!(stats.splits >= splits && stats.refused_full == 0, "{stats:?} after {splits} splits");
            splits = stats.splits;
            seen.asked += 2;
            if len <= COPIED {
                let copy = self.filter.clone();
                assert_eq!((0..STABLE).find(|key| !copy.contains(key)), None, "missing from a copy");
                seen.copies += 1;
            }
            thread::sleep(Duration::from_millis(5));
        }
        seen
    }
}
