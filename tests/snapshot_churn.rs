//! Snapshots without pause of a filter that is written to without pause. *Stable* keys go in first and never leave:
//! they are in each snapshot, and found all the time.
//!
//! With narrow fingerprints a filter says "yes" for a key that it has lost, for others have its fingerprint. But there
//! are never fewer copies of a class than stable keys in it, and that number is what each snapshot is asked for.

#[path = "common/done.rs"]
mod done;
#[path = "common/filters.rs"]
mod filters;
#[path = "common/slots.rs"]
mod slots;
#[path = "common/watchdog.rs"]
mod watchdog;

use done::Done;
use filters::{ABSENT, Filter, builder};
use slots::slots;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use watchdog::watchdog;

const WRITERS: usize = 2;
/// While one checks its snapshot, the other takes one.
const SAVERS: usize = 2;
const TIME: Duration = Duration::from_millis(800);

struct Churn {
    filter: Filter,
    /// How many of the stable keys, which are `0..copies.len()`, are in the class of each.
    copies: Vec<usize>,
    /// Other keys that are in the class of a stable one: to it, their removal is a move.
    twins: Vec<u64>,
    /// Each writer keeps about so many keys in the filter.
    level: usize,
}

impl Churn {
    fn new(capacity: usize, bits: u32, stripes: usize) -> Self {
        let filter = builder(capacity, bits).stripes(stripes).build().unwrap();
        let mut stable = 0;
        // Half of the table never changes. A class of 4 bits may be full before.
        while stable < capacity as u64 / 2 && filter.insert(&stable).is_ok() {
            stable += 1;
        }
        let copies = (0..stable).map(|key| filter.count(&key)).collect();
        let twins = (ABSENT..).filter(|key| filter.contains(key)).take(500.min(capacity)).collect();
        let level = (slots(&filter) as usize * 95 / 100 - stable as usize) / WRITERS;
        Churn { filter, copies, twins, level }
    }

    fn run(&self) {
        let (writing, taken) = (&AtomicUsize::new(WRITERS), &AtomicUsize::new(0));
        let barrier = &Barrier::new(WRITERS + SAVERS + 1);
        std::thread::scope(|scope| {
            for seed in 0..WRITERS as u64 {
                scope.spawn(move || {
                    let _done = Done(writing);
                    barrier.wait();
                    self.write(seed);
                });
            }
            for _ in 0..SAVERS {
                scope.spawn(move || {
                    barrier.wait();
                    while writing.load(Ordering::Relaxed) > 0 {
                        self.check_snapshot();
                        taken.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            scope.spawn(move || {
                barrier.wait();
                self.read(writing);
            });
        });
        let taken = taken.load(Ordering::Relaxed);
        println!("capacity {}, {} bits: {taken} snapshots", self.filter.capacity(), self.filter.fingerprint_bits());
        self.check_at_rest();
    }

    fn write(&self, seed: u64) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut others = (seed + 2) * ABSENT..;
        let mut present = Vec::new();
        let end = Instant::now() + TIME;
        while Instant::now() < end {
            for _ in 0..100 {
                // Up to the level mostly insertions, above it mostly removals.
                if rng.u32(..10) < if present.len() < self.level { 8 } else { 2 } {
                    let key = if rng.u32(..4) == 0 { rng.choice(&self.twins).copied() } else { others.next() };
                    present.extend(key.filter(|key| self.filter.insert(key).is_ok()));
                } else if !present.is_empty() {
                    self.remove(present.swap_remove(rng.usize(..present.len())));
                }
            }
        }
        for key in present {
            self.remove(key);
        }
    }

    fn remove(&self, key: u64) {
        assert!(self.filter.remove(&key), "key {key} was there");
    }

    fn read(&self, writing: &AtomicUsize) {
        let mut rng = fastrand::Rng::with_seed(0);
        while writing.load(Ordering::Relaxed) > 0 {
            for _ in 0..100 {
                let key = rng.usize(..self.copies.len()) as u64;
                assert!(self.filter.contains(&key), "stable key {key} was missed");
            }
        }
    }

    /// Takes a snapshot and loads it.
    fn check_snapshot(&self) -> Filter {
        let mut bytes = Vec::new();
        self.filter.write_to(&mut bytes).unwrap();
        let loaded = Filter::read_from(&bytes[..], self.filter.hasher().clone()).unwrap();
        assert_eq!(loaded.len(), slots_taken(&bytes), "the count of a snapshot is the number of slots taken in it");
        for (key, &least) in (0..).zip(&self.copies) {
            let count = loaded.count(&key);
            assert!(count >= least, "stable key {key}: {count} copies of its class in a snapshot, {least} throughout");
        }
        loaded
    }

    /// The stable keys are all that is left.
    fn check_at_rest(&self) {
        let loaded = self.check_snapshot();
        for filter in [&self.filter, &loaded] {
            assert_eq!(filter.len(), self.copies.len());
            assert!((0..).zip(&self.copies).all(|(key, &copies)| filter.count(&key) == copies));
        }
    }
}

/// Counts the slots that are taken, by the bytes alone (DESIGN.md, "Snapshots").
fn slots_taken(bytes: &[u8]) -> usize {
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let (header, shards, buckets, width) = (u32_at(12), u64_at(16), u32_at(40), u32_at(44));
    let (mut begin, mut taken) = (header, 0);
    for _ in 0..shards {
        let words = begin + 24;
        let bit = |number: usize| bytes[words + number / 8] >> (number % 8) & 1 == 1;
        taken += (0..4 * buckets).filter(|slot| (slot * width..(slot + 1) * width).any(bit)).count();
        begin = words + 8 * u64_at(begin + 16) + 4;
    }
    taken
}

/// Two stripes, and everybody in everybody's way.
#[test]
fn stable_keys_are_in_each_snapshot_of_a_tiny_filter() {
    let _alive = watchdog();
    for bits in [4, 5, 13] {
        Churn::new(60, bits, 2).run();
    }
}

#[test]
fn stable_keys_are_in_each_snapshot_of_two_shards() {
    let _alive = watchdog();
    for bits in [4, 5, 13] {
        let churn = Churn::new(300_000, bits, 64);
        assert_eq!(churn.filter.shards(), 2);
        churn.run();
    }
}
