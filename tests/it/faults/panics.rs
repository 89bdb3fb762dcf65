//! A `Hash` panics at each key of every operation, or an iterator at each of its calls: the panic reaches the caller, nothing
//! stays locked, and no other key is lost. (`snapshots` tests the calls of a snapshot.)

use crate::support::{Bomb, StableOf, bombs, is_usable, panics, pool, silence_panics, stable_builder};
use rayon::ThreadPool;
use testkit::{thousands, watchdog};

/// The messages of intended panics.
const MEANT: &[&str] = &["the bomb", "the iterator"];

/// Always the same seeds, so that no two keys share a class.
type Filter = StableOf<Bomb>;

/// Keys that are in the filter before, and stay.
const OLD: std::ops::Range<u64> = 1 << 40..(1 << 40) + 500;

/// A single key, windows that are not full, full ones, and keys that are sorted by shard.
const LENGTHS: [usize; 5] = [1, 2, 17, 40, 5000];

/// Each place of a few keys, and some of many.
fn places(length: usize) -> Vec<usize> {
    if length < 100 { (0..length).collect() } else { vec![0, 1, 2500, 4095, 4096, length - 1] }
}

/// Filters for a few keys, for some blocks of them, and one in which lookups are sorted.
const FEW: usize = 6000;
const BLOCKS: usize = 240_000;
const MANY_SHARDS: usize = 3_200_000;

/// A filter with these keys, which stay. It has one stripe per shard, so that a lock that stays blocks everything.
fn holding(capacity: usize, old: &[Bomb]) -> Filter {
    let filter = stable_builder(capacity, 32).stripes(1).build().unwrap();
    assert_eq!(filter.insert_batch(old).inserted, old.len());
    filter
}

type Operation = (&'static str, fn(&Filter, &[Bomb]));

const INSERTIONS: [Operation; 5] = [
    ("insert", |filter, keys| keys.iter().for_each(|key| filter.insert(key).unwrap())),
    ("insert_unique", |filter, keys| keys.iter().for_each(|key| assert_eq!(filter.insert_unique(key), Ok(true)))),
    ("insert_batch", |filter, keys| drop(filter.insert_batch(keys))),
    ("par_insert", |filter, keys| drop(filter.par_insert(keys))),
    ("par_insert_iter", |filter, keys| drop(filter.bulk().insert_iter(keys))),
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

/// Whether the keys are present before, and whether they are afterwards.
const ADDS: (bool, bool) = (false, true);
const REMOVES: (bool, bool) = (true, true);
const LOOKS: (bool, bool) = (true, false);

/// Runs the operation on keys of which this one panics, in a filter that holds them or does not. Any of those before it may have
/// been processed, and none of the others.
fn check(
    pool: &ThreadPool,
    capacity: usize,
    (name, operation): Operation,
    (present, changes): (bool, bool),
    length: usize,
    at: usize,
) {
    let (old, keys) = (bombs(OLD), bombs(0..length as u64));
    let filter = holding(capacity, &old);
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
    // Exactly the present keys can be removed.
    let there = filter.len() - old.len();
    // The bound that the documentation states for blocks.
    assert!(name != "par_insert" || at.saturating_sub(there) < 33_000, "{there} of {at}");
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
                INSERTIONS.into_iter().for_each(|operation| check(pool, FEW, operation, ADDS, length, at));
                REMOVALS.into_iter().for_each(|operation| check(pool, FEW, operation, REMOVES, length, at));
                LOOKUPS.into_iter().for_each(|operation| check(pool, FEW, operation, LOOKS, length, at));
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

/// With many blocks, those before the block of the key may be stored; and with sorted lookups.
#[test]
fn the_hash_of_a_key_of_many_blocks() {
    let _watchdog = watchdog();
    silence_panics(MEANT);
    for pool in &[1, 2, 7].map(pool) {
        for at in [0, 40_000, 99_999] {
            INSERTIONS[3..].iter().for_each(|&operation| check(pool, BLOCKS, operation, ADDS, 100_000, at));
            check(pool, BLOCKS, REMOVALS[3], REMOVES, 100_000, at);
            check(pool, BLOCKS, LOOKUPS[3], LOOKS, 100_000, at);
        }
        check(pool, MANY_SHARDS, LOOKUPS[3], LOOKS, 300_000, 200_000);
    }
}

/// At the first or the second report of progress, in an operation on some blocks.
#[test]
fn a_progress_that_panics() {
    let _watchdog = watchdog();
    silence_panics(&["were done"]);
    let (old, keys) = (bombs(OLD), bombs(0..100_000));
    for pool in &[1, 2, 7].map(pool) {
        for calls in [1, 2] {
            // Lookups report at their end.
            for way in 0..5 - calls {
                let filter = holding(BLOCKS, &old);
                if way > 1 {
                    assert_eq!(filter.insert_batch(&keys).inserted, keys.len());
                }
                let mut left = calls;
                let tell = |done: usize| {
                    left -= 1;
                    assert_ne!(left, 0, "{done} were done");
                };
                let bulk = filter.bulk().progress(tell);
                let message = pool.install(|| {
                    panics(|| match way {
                        0 => drop(bulk.insert(&keys)),
                        1 => drop(bulk.insert_iter(keys.iter())),
                        2 => drop(bulk.remove(&keys)),
                        _ => bulk.contains(&keys, &mut vec![false; keys.len()]),
                    })
                });
                assert!(message.contains(" were done"), "{message}");
                let there = filter.len() - old.len();
                assert!(if way > 1 { there < keys.len() || way == 3 } else { there > 0 }, "{there} keys");
                assert_eq!(filter.remove_batch(&keys).removed, there);
                is_usable(&filter, &old);
            }
        }
    }
}

/// An iterator over keys that panics in call number `at` of `next`, or in `size_hint` if there is no hint.
struct Treacherous<'a> {
    keys: &'a [Bomb],
    at: usize,
    calls: usize,
    hint: Option<(usize, Option<usize>)>,
}

impl<'a> Iterator for Treacherous<'a> {
    type Item = &'a Bomb;

    fn next(&mut self) -> Option<&'a Bomb> {
        self.calls += 1;
        assert_ne!(self.calls - 1, self.at, "the iterator");
        self.keys.get(self.calls - 1)
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
            // Each call of `next`, including the one that should return `None`, and then `size_hint` instead.
            let places = places(length).into_iter().chain([length]).map(|at| (at, Some((0, None))));
            for (at, hint) in places.chain([(usize::MAX, None)]) {
                let filter = holding(FEW, &old);
                let load = || panics(|| filter.bulk().insert_iter(Treacherous { keys, at, calls: 0, hint }));
                for message in [load(), pool.install(load)] {
                    assert!(message.contains("the iterator"), "{message}");
                }
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

/// The length that an iterator claims is a hint.
#[test]
fn an_iterator_that_lies_about_its_length() {
    let _watchdog = watchdog();
    for hint in [(0, Some(0)), (usize::MAX, Some(usize::MAX)), (usize::MAX, None), (10, Some(1))] {
        let (filter, keys) = (holding(FEW, &[]), bombs(0..5500));
        let lies = Treacherous { keys: &keys, at: usize::MAX, calls: 0, hint: Some(hint) };
        assert_eq!(filter.bulk().insert_iter(lies).inserted, keys.len(), "{hint:?}");
        assert!(keys.iter().all(|key| filter.count(key) == 1));
    }
}
