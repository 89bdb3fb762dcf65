//! A `Hash` panics at each key of every operation, or an iterator at each of its calls: the panic reaches the caller,
//! nothing stays locked, and no other key is lost. (Loads of many blocks, and progress: `bulk`; batches of a hundred
//! keys: `batch`; what a snapshot calls: `faults_snapshots`.)

use crate::support::{Bomb, bombs, hasher, is_usable, panics, pool, silence_panics};
use concurrent_cuckoo_filter::{CuckooFilter, StableHashBuilder};
use rayon::ThreadPool;
use std::cell::Cell;
use testkit::{thousands, watchdog};

/// What those say that are no failures.
const MEANT: &[&str] = &["the bomb", "the iterator"];

/// Always the same, for no two keys may be of one class.
type Filter = CuckooFilter<Bomb, StableHashBuilder>;

/// Keys that are in the filter before, and stay.
const OLD: std::ops::Range<u64> = 1 << 40..(1 << 40) + 500;

/// A single key, windows that are not full, full ones, and what is sorted by shard.
const LENGTHS: [usize; 5] = [1, 2, 17, 40, 5000];

/// Each place of a few keys, and some of many.
fn places(length: usize) -> Vec<usize> {
    if length < 100 { (0..length).collect() } else { vec![0, 1, 2500, 4095, 4096, length - 1] }
}

/// One stripe: any lock left is in everybody's way.
fn empty() -> Filter {
    let builder = CuckooFilter::builder().capacity(6000).fingerprint_bits(32).stripes(1);
    builder.hasher(hasher()).build().unwrap()
}

type Operation = (&'static str, fn(&Filter, &[Bomb]));

const INSERTIONS: [Operation; 5] = [
    ("insert", |filter, keys| keys.iter().for_each(|key| filter.insert(key).unwrap())),
    ("insert_unique", |filter, keys| keys.iter().for_each(|key| assert_eq!(filter.insert_unique(key), Ok(true)))),
    ("insert_batch", |filter, keys| drop(filter.insert_batch(keys))),
    ("par_insert", |filter, keys| drop(filter.par_insert(keys))),
    ("par_insert_iter", |filter, keys| drop(filter.par_insert_iter(keys))),
];

const REMOVALS: [Operation; 4] = [
    ("remove", |filter, keys| keys.iter().for_each(|key| assert!(filter.remove(key)))),
    ("remove_all", |filter, keys| keys.iter().for_each(|key| assert_eq!(filter.remove_all(key), 1))),
    ("remove_batch", |filter, keys| drop(filter.remove_batch(keys))),
    ("par_remove", |filter, keys| drop(filter.bulk().remove(keys))),
];

const LOOKUPS: [Operation; 4] = [
    ("contains", |filter, keys| assert!(keys.iter().all(|key| filter.contains(key)))),
    ("count", |filter, keys| assert!(keys.iter().all(|key| filter.count(key) == 1))),
    ("contains_batch", |filter, keys| filter.contains_batch(keys, &mut vec![false; keys.len()])),
    ("par_contains", |filter, keys| filter.par_contains(keys, &mut vec![false; keys.len()])),
];

/// Runs the operation on keys of which this one panics, in a filter that holds them or does not. Of those before it any
/// may have been worked on, of the others none.
fn check(pool: &ThreadPool, (name, operation): Operation, present: bool, changes: bool, length: usize, at: usize) {
    let (filter, old, keys) = (empty(), bombs(OLD), bombs(0..length as u64));
    assert_eq!(filter.insert_batch(&old).inserted, old.len());
    if present {
        assert_eq!(filter.insert_batch(&keys).inserted, length);
    }
    let mut armed = keys.clone();
    armed[at].armed = true;
    let message = pool.install(|| panics(|| operation(&filter, &armed)));
    assert_eq!(message, format!("the bomb of key {at}"), "{name}");
    for (index, key) in keys.iter().enumerate() {
        let count = filter.count(key);
        let done = changes && index < at && count == u32::from(!present);
        assert!(done || count == u32::from(present), "{name}: key {index} of {length}, {at} panicked");
    }
    // What is there, and nothing else, is what can be taken away.
    let there = filter.len() - old.len();
    assert_eq!(filter.remove_batch(&keys).removed, there);
    is_usable(&filter, &old);
    assert_eq!(filter.len(), old.len());
}

#[test]
fn the_hash_of_each_key() {
    let _watchdog = watchdog();
    silence_panics(MEANT);
    let mut panics = 0;
    for pool in &[1, 2].map(pool) {
        for length in LENGTHS {
            for at in places(length) {
                INSERTIONS.into_iter().for_each(|operation| check(pool, operation, false, true, length, at));
                REMOVALS.into_iter().for_each(|operation| check(pool, operation, true, true, length, at));
                LOOKUPS.into_iter().for_each(|operation| check(pool, operation, true, false, length, at));
                panics += INSERTIONS.len() + REMOVALS.len() + LOOKUPS.len();
            }
        }
    }
    println!(
        "\nfigure 5.4: a Hash panicked at each key of 13 operations, {} times, on pools of 1 and 2 threads: the \
        panic reached the caller, nothing locked, no key lost",
        thousands(panics)
    );
}

/// Keys from an iterator that panics when it is asked for this one, or how many there are.
struct Treacherous<'a> {
    keys: &'a [Bomb],
    at: usize,
    asked: &'a Cell<usize>,
    hint: Option<(usize, Option<usize>)>,
}

impl<'a> Iterator for Treacherous<'a> {
    type Item = &'a Bomb;

    fn next(&mut self) -> Option<&'a Bomb> {
        let asked = self.asked.replace(self.asked.get() + 1);
        assert_ne!(asked, self.at, "the iterator");
        self.keys.get(asked)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.hint.expect("the iterator")
    }
}

#[test]
fn each_call_of_an_iterator() {
    let _watchdog = watchdog();
    silence_panics(MEANT);
    let (mut times, old) = (0, bombs(OLD));
    for pool in &[1, 2].map(pool) {
        for length in LENGTHS {
            let keys = &bombs(0..length as u64);
            // Also where it is to say that it has ended, and where it is asked for its length first.
            let places = places(length).into_iter().chain([length]).map(|at| (at, Some((0, None))));
            for (at, hint) in places.chain([(usize::MAX, None)]) {
                let filter = empty();
                assert_eq!(filter.insert_batch(&old).inserted, old.len());
                let asked = Cell::new(0);
                let load = || filter.par_insert_iter(Treacherous { keys, at, asked: &asked, hint });
                let message = panics(load);
                assert!(message.contains("the iterator"), "{message}");
                let loaded = pool.install(|| {
                    let asked = Cell::new(0);
                    panics(|| filter.par_insert_iter(Treacherous { keys, at, asked: &asked, hint }))
                });
                assert!(loaded.contains("the iterator"), "{loaded}");
                let stored = |index: usize| filter.count(&keys[index]) <= if index < at { 2 } else { 0 };
                assert!((0..length).all(stored));
                let stored = filter.len() - old.len();
                assert_eq!(filter.remove_batch(keys).removed + filter.remove_batch(keys).removed, stored);
                is_usable(&filter, &old);
                times += 2;
            }
        }
    }
    println!("\nfigure 5.5: an iterator panicked at each of its calls, {} times, with the same end", thousands(times));
}

/// What an iterator says of its length is a hint.
#[test]
fn an_iterator_that_lies_about_its_length() {
    let _watchdog = watchdog();
    for hint in [(0, Some(0)), (usize::MAX, Some(usize::MAX)), (usize::MAX, None), (10, Some(1))] {
        let (filter, keys) = (empty(), bombs(0..5500));
        let asked = Cell::new(0);
        let lies = Treacherous { keys: &keys, at: usize::MAX, asked: &asked, hint: Some(hint) };
        assert_eq!(filter.par_insert_iter(lies).inserted, keys.len(), "{hint:?}");
        assert!(keys.iter().all(|key| filter.count(key) == 1));
    }
}
