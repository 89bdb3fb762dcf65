//! Tables where keys share classes, so that the removal of one key's copy may be a move of another's (H2): with 4 and 5
//! bits, all the time.
//!
//! Stable keys never leave, and readers ask for them without pause. Writers insert and remove keys of their own: *twins*,
//! which are of the class of a stable key, and others. What a writer has inserted is found, counted and removed. No
//! snapshot lacks a stable key: each holds as many copies of its class as there are stable keys in it. At rest the count
//! of each class is exact.

use crate::format::fingerprints;
use crate::operations::{Single, single};
use crate::{Done, Filter, Shape, broken, slots};
use fastrand::Rng;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

const WRITERS: usize = 2;
const READERS: usize = 2;
/// Keys of each writer, at least.
const OWN: usize = 16;
/// Twins are looked for where a key is one by this chance, at least.
const MIN_CHANCE: f64 = 1e-6;
/// Pairs of keys that are compared at rest.
const MAX_PAIRS: usize = 4_000_000;

/// A filter, its stable keys, and those of the writers.
pub struct Shared {
    shape: Shape,
    /// The filter.
    pub filter: Filter,
    stable: Vec<u64>,
    /// How many stable keys are in the class of each.
    least: Vec<usize>,
    own: [Vec<u64>; WRITERS],
    /// No key goes in where its class is: no removal leaves a copy behind, and all that readers meet is relocations.
    unique: bool,
}

impl Shared {
    /// A filter of this shape with some stable keys.
    pub fn new(shape: Shape, rng: &mut Rng) -> Self {
        let filter = shape.build();
        filter.insert(&0).expect("an empty filter");
        let slots = slots(&filter) as u64;
        // From one key to two thirds of the slots; a class of 4 bits may be full before.
        let most = 1 + rng.u64(..slots * 2 / 3);
        let stable: Vec<u64> = (1..most).take_while(|key| filter.insert(key).is_ok()).collect();
        let stable = [&[0], &stable[..]].concat();
        let least = stable.iter().map(|key| filter.count(key) as usize).collect();
        // A key that is found now is in the class of a stable one.
        let mut twins = (most + 1..).filter(|key| filter.contains(key));
        let mut others = (most + 1..).filter(|key| !filter.contains(key));
        let own = OWN.max((slots - most) as usize / WRITERS);
        let unique = rng.u32(..3) == 0 || filter.stats().expected_false_positive_rate < MIN_CHANCE;
        let of_twins = if unique { 0 } else { OWN / 2 };
        let own =
            [(); WRITERS].map(|()| twins.by_ref().take(of_twins).chain(others.by_ref().take(own - of_twins)).collect());
        drop((twins, others));
        Shared { shape, filter, stable, least, own, unique }
    }

    /// Lets each writer do this many operations. Returns how many lookups of stable keys and how many snapshots there were.
    ///
    /// # Panics
    ///
    /// If an answer is wrong.
    pub fn run(&self, operations: usize, rng: &mut Rng) -> [u64; 2] {
        let (writing, barrier) = (&AtomicUsize::new(WRITERS), &Barrier::new(WRITERS + READERS + 1));
        let (lookups, snapshots) = (&AtomicU64::new(0), &AtomicU64::new(0));
        let copies = thread::scope(|scope| {
            for _ in 0..READERS {
                scope.spawn(move || {
                    barrier.wait();
                    loop {
                        lookups.fetch_add(self.look_up(), Ordering::Relaxed);
                        if writing.load(Ordering::Relaxed) == 0 {
                            break;
                        }
                    }
                });
            }
            scope.spawn(move || {
                barrier.wait();
                loop {
                    self.check_snapshot();
                    snapshots.fetch_add(1, Ordering::Relaxed);
                    if writing.load(Ordering::Relaxed) == 0 {
                        break;
                    }
                }
            });
            let writers = self.own.each_ref().map(|own| {
                let rng = rng.fork();
                scope.spawn(move || {
                    let _done = Done(writing);
                    barrier.wait();
                    self.write(own, operations, rng)
                })
            });
            writers.map(|writer| writer.join().expect("a thread that found nothing wrong")).concat()
        });
        self.check_at_rest(&copies);
        [lookups, snapshots].map(|count| count.load(Ordering::Relaxed))
    }

    fn look_up(&self) -> u64 {
        let lookups = self.stable.len().max(10_000);
        for key in self.stable.iter().cycle().take(lookups) {
            if !self.filter.contains(key) {
                broken(&self.shape, *key, "contains missed a stable key");
            }
        }
        let mut found = vec![false; self.stable.len()];
        self.filter.contains_batch(&self.stable, &mut found);
        if let Some(missed) = found.iter().position(|&found| !found) {
            broken(&self.shape, self.stable[missed], "contains_batch missed a stable key");
        }
        (lookups + self.stable.len()) as u64
    }

    fn check_snapshot(&self) {
        let mut bytes = Vec::new();
        self.filter.write_to(&mut bytes).expect("memory takes all bytes");
        let loaded = Filter::read_from(&bytes[..], self.filter.hasher().clone()).expect("it was just written");
        let taken = fingerprints(&bytes).expect("it was just written").count();
        if loaded.len() != taken {
            broken(&self.shape, None, format_args!("len is {} of {taken} slots taken", loaded.len()));
        }
        for (key, &least) in self.stable.iter().zip(&self.least) {
            let count = loaded.count(key) as usize;
            if count < least {
                let what = format_args!("{count} copies of its class in a snapshot, {least} throughout");
                broken(&self.shape, *key, what);
            }
        }
    }

    /// Returns how many copies a writer has left of each of its keys.
    fn write(&self, own: &[u64], operations: usize, mut rng: Rng) -> Vec<(u64, u8)> {
        let mut copies: Vec<(u64, u8)> = own.iter().map(|&key| (key, 0)).collect();
        // In full tables keys are relocated. Where each writer has a copy or two, there may be no relocation for long, and
        // copies of a class trade places: then a lookup that missed the trade has no other reason to look again.
        let most = rng.choice([1, 2, 4, usize::MAX]).expect("four numbers");
        // One entry for each copy.
        let mut held: Vec<usize> = Vec::new();
        for _ in 0..operations {
            let insert = held.is_empty() || held.len() < most && rng.u32(..10) < 6;
            let entry = rng.usize(..if insert { copies.len() } else { held.len() });
            let number = if insert { entry } else { held.swap_remove(entry) };
            let (key, copies) = &mut copies[number];
            let what = match insert {
                true if self.unique || rng.bool() => Single::InsertUnique,
                true => Single::Insert,
                false => Single::Remove,
            };
            let difference = self.ask(what, *key, *copies, rng.bool());
            if difference > 0 {
                held.push(number);
            }
            *copies = copies.checked_add_signed(difference).expect("a copy less than there were");
            for what in [Single::Contains, Single::Count] {
                self.ask(what, *key, *copies, rng.bool());
            }
        }
        copies
    }

    /// Does something to a key of which this thread has stored this many copies, and checks the answer: other keys of its
    /// class may have more. Returns by how many copies that changes.
    fn ask(&self, what: Single, key: u64, copies: u8, by_hash: bool) -> i8 {
        let answer = single(&self.filter, what, key, by_hash);
        if !answer.is_possible_from(copies) {
            broken(&self.shape, key, format_args!("{answer:?} with {copies} copies of its own"));
        }
        answer.difference().unwrap_or_default() as i8
    }

    fn check_at_rest(&self, copies: &[(u64, u8)]) {
        let (filter, shape) = (&self.filter, &self.shape);
        let all: Vec<(u64, u8)> = self.stable.iter().map(|&key| (key, 1)).chain(copies.iter().copied()).collect();
        let alone = shape.build();
        for &(key, _) in all.iter().step_by(all.len() * all.len() / MAX_PAIRS + 1) {
            // Keys of its class show in a filter that holds nothing else.
            alone.insert(&key).expect("an empty filter");
            let class: usize =
                all.iter().filter(|(other, _)| alone.contains(other)).map(|(_, copies)| usize::from(*copies)).sum();
            let count = filter.count(&key) as usize;
            if count != class {
                broken(shape, key, format_args!("count is {count} of {class} copies of its class"));
            }
            alone.clear();
        }
        let sum: usize = all.iter().map(|(_, copies)| usize::from(*copies)).sum();
        if filter.len() != sum {
            broken(shape, None, format_args!("len is {} of {sum} copies", filter.len()));
        }
        self.check_snapshot();
        for (key, copies) in all {
            if !(0..copies).all(|_| filter.remove(&key)) {
                broken(shape, key, format_args!("not all of {copies} copies were removed"));
            }
        }
        if !filter.is_empty() {
            broken(shape, None, format_args!("len is {} when all is removed", filter.len()));
        }
    }
}
