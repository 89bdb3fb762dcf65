//! Tables of a few buckets and 15 or 31 fingerprints, where keys share classes all the time and the removal of one key's
//! copy may be a move of another's (H2).
//!
//! Stable keys never leave, and readers ask for them without pause. Writers insert and remove keys of their own: *twins*,
//! which are of the class of a stable key, and others. What a writer has inserted is found, counted and removed. At rest
//! the count of each class is exact.

use crate::figure::{count, figure, seconds_since};
use crate::promise::{Promise, broken};
use crate::run::{Run, progress};
use crate::shape::{Filter, Shape};
use crate::slots::slots;
use concurrent_cuckoo_filter::InsertError;
use fastrand::Rng;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

const WIDTHS: [u32; 2] = [4, 5];
/// The larger ones that follow have more than 16 buckets, which make two stripes.
const MAX_OF_ONE_STRIPE: usize = 30;
const WRITERS: usize = 2;
const READERS: usize = 3;
/// Keys of each writer.
const OWN: usize = 16;

pub(super) fn run(run: &Run, rng: &mut Rng) {
    let start = Instant::now();
    let (rounds, operations) = run.choose((100, 20_000), (1, 10_000));
    let bar = progress("tiny filters", rounds);
    let (mut filters, mut lookups, mut done) = (0_u64, 0, 0);
    for _ in 0..rounds {
        for bits in WIDTHS {
            for capacity in (0..=MAX_OF_ONE_STRIPE).chain((40..=60).step_by(2)) {
                let stripes = Some(if capacity > MAX_OF_ONE_STRIPE { 2 } else { 1 });
                let tiny = Tiny::new(Shape { stripes, ..Shape::new(capacity, bits, rng) }, rng);
                lookups += tiny.run(operations, rng);
                filters += 1;
                done += (operations * WRITERS) as u64;
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    figure(
        "3.3",
        format_args!(
            "{} filters of 4 and 5 bits and capacities 0 to 60: {} lookups of stable keys beside {} insertions and removals \
             of keys of their classes and of others, 0 missed, and at rest every class counted exactly: {}",
            count(filters),
            count(lookups),
            count(done),
            seconds_since(start)
        ),
    );
}

struct Tiny {
    shape: Shape,
    filter: Filter,
    stable: Vec<u64>,
    own: [Vec<u64>; WRITERS],
    /// No key goes in where its class is: no removal leaves a copy behind, and all that readers meet is relocations.
    unique: bool,
}

impl Tiny {
    fn new(shape: Shape, rng: &mut Rng) -> Self {
        let filter = shape.build();
        filter.insert(&0).expect("an empty filter");
        // From one key to two thirds of the slots; a class of 4 bits may be full before.
        let most = 1 + rng.u64(..slots(&filter) as u64 * 2 / 3);
        let stable: Vec<u64> = (1..most).take_while(|key| filter.insert(key).is_ok()).collect();
        let stable = [&[0], &stable[..]].concat();
        // A key that is found now is in the class of a stable one.
        let mut twins = (most + 1..).filter(|key| filter.contains(key));
        let mut others = (most + 1..).filter(|key| !filter.contains(key));
        let unique = rng.u32(..3) == 0;
        let of_twins = if unique { 0 } else { OWN / 2 };
        let own = [(); WRITERS].map(|()| {
            let own = twins.by_ref().take(of_twins).chain(others.by_ref().take(OWN - of_twins));
            own.collect()
        });
        drop((twins, others));
        Tiny { shape, filter, stable, own, unique }
    }

    /// Returns how many lookups of stable keys that were.
    fn run(&self, operations: usize, rng: &mut Rng) -> u64 {
        let (writing, barrier) = (&AtomicUsize::new(WRITERS), &Barrier::new(WRITERS + READERS));
        let (copies, lookups): (Vec<_>, u64) = thread::scope(|scope| {
            let readers: Vec<_> = (0..READERS)
                .map(|_| {
                    scope.spawn(move || {
                        barrier.wait();
                        self.read(writing)
                    })
                })
                .collect();
            let writers: Vec<_> = self
                .own
                .iter()
                .map(|own| {
                    let rng = rng.fork();
                    scope.spawn(move || {
                        barrier.wait();
                        let copies = self.write(own, operations, rng);
                        writing.fetch_sub(1, Ordering::Relaxed);
                        copies
                    })
                })
                .collect();
            let copies = writers.into_iter().flat_map(|writer| writer.join().expect("a panic ends the process"));
            (copies.collect(), readers.into_iter().map(|reader| reader.join().expect("a panic ends the process")).sum())
        });
        self.check_at_rest(&copies);
        lookups
    }

    fn read(&self, writing: &AtomicUsize) -> u64 {
        let (mut lookups, mut found) = (0, vec![false; self.stable.len()]);
        while writing.load(Ordering::Relaxed) > 0 {
            for _ in 0..100 {
                for key in &self.stable {
                    if !self.filter.contains(key) {
                        broken(Promise::Present, &self.shape, *key, "contains missed a stable key");
                    }
                }
            }
            self.filter.contains_batch(&self.stable, &mut found);
            if let Some(missed) = found.iter().position(|&found| !found) {
                broken(Promise::Present, &self.shape, self.stable[missed], "contains_batch missed a stable key");
            }
            lookups += 101 * self.stable.len() as u64;
        }
        lookups
    }

    /// Returns how many copies of its own a writer has left of each key.
    fn write(&self, own: &[u64], operations: usize, mut rng: Rng) -> Vec<(u64, usize)> {
        let mut copies: Vec<(u64, usize)> = own.iter().map(|&key| (key, 0)).collect();
        // In full tables keys are relocated. Where each writer has a copy or two, there may be no relocation for long, and
        // copies of a class trade places: then a lookup that missed the trade has no other reason to look again.
        let most = rng.choice([1, 2, 4, usize::MAX]).expect("four numbers");
        let mut held = 0;
        for _ in 0..operations {
            let insert = held == 0 || held < most && rng.u32(..10) < 6;
            let mut next = rng.usize(..copies.len());
            while !insert && copies[next].1 == 0 {
                next = (next + 1) % copies.len();
            }
            let (key, copies) = &mut copies[next];
            if insert {
                let stored = self.insert(*key, *copies, self.unique || rng.bool());
                *copies += usize::from(stored);
                held += usize::from(stored);
            } else {
                if !self.filter.remove(key) {
                    broken(Promise::Removal, &self.shape, *key, format_args!("remove says false of {copies} copies"));
                }
                *copies -= 1;
                held -= 1;
            }
            let (found, count) = (self.filter.contains(key), self.filter.count(key));
            if *copies > 0 && !found {
                broken(Promise::Present, &self.shape, *key, format_args!("contains says false of {copies} copies"));
            }
            if !(*copies..=8).contains(&count) {
                broken(Promise::Count, &self.shape, *key, format_args!("count is {count} of {copies} copies"));
            }
        }
        copies
    }

    /// Says whether that made a copy.
    fn insert(&self, key: u64, copies: usize, unique: bool) -> bool {
        let filter = &self.filter;
        match if unique { filter.insert_unique(&key) } else { filter.insert(&key).map(|()| true) } {
            Ok(true) if unique && copies > 0 => {
                broken(Promise::Admission, &self.shape, key, format_args!("new with {copies} copies"))
            }
            Ok(stored) => stored,
            Err(InsertError::TooManyCopies) if unique => {
                broken(Promise::Admission, &self.shape, key, "a unique insertion makes no second copy")
            }
            Err(error) if unique && copies > 0 => {
                broken(Promise::Admission, &self.shape, key, format_args!("{error}, with {copies} copies"))
            }
            Err(_) => false,
        }
    }

    fn check_at_rest(&self, copies: &[(u64, usize)]) {
        let (filter, shape) = (&self.filter, &self.shape);
        let all: Vec<(u64, usize)> = self.stable.iter().map(|&key| (key, 1)).chain(copies.iter().copied()).collect();
        for &(key, _) in &all {
            // Keys of its class show in a filter that holds nothing else.
            let alone = shape.build();
            alone.insert(&key).expect("an empty filter");
            let class: usize = all.iter().filter(|(other, _)| alone.contains(other)).map(|(_, copies)| copies).sum();
            if filter.count(&key) != class {
                let count = filter.count(&key);
                broken(Promise::Count, shape, key, format_args!("count is {count} of {class} copies of its class"));
            }
        }
        let sum: usize = all.iter().map(|(_, copies)| copies).sum();
        if filter.len() != sum {
            broken(Promise::Count, shape, None, format_args!("len is {} of {sum} copies", filter.len()));
        }
        for (key, copies) in all {
            if !(0..copies).all(|_| filter.remove(&key)) {
                broken(Promise::Removal, shape, key, format_args!("not all of {copies} copies were removed"));
            }
        }
        if !filter.is_empty() {
            broken(Promise::Count, shape, None, format_args!("len is {} when all is removed", filter.len()));
        }
    }
}
