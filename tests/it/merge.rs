//! Merges: all contents of one filter stored in another. (`model` checks every answer and refusal, `kinds` every kind.)

use crate::support::{Stable as Filter, stable, stable_builder};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use testkit::{Done, watchdog};

fn of_keys(capacity: usize, bits: u32, keys: impl IntoIterator<Item = u64>) -> Filter {
    let filter = stable(capacity, bits);
    keys.into_iter().for_each(|key| filter.insert(&key).unwrap());
    filter
}

/// Keys have the same places with any number of stripes.
#[test]
fn merge_takes_filters_of_other_stripes() {
    let striped = |stripes| stable_builder::<u64>(1000, 16).stripes(stripes).build().unwrap();
    let (a, b) = (striped(1), striped(64));
    (0..1000).for_each(|key| b.insert(&key).unwrap());
    assert_eq!(a.merge_from(&b).unwrap().inserted, 1000);
    assert!((0..1000).all(|key| a.contains(&key)));
}

/// Two filters, each merged with itself and with the other, all four at the same time, while both are queried.
#[test]
fn two_filters_are_merged_with_themselves_and_each_other_at_once() {
    let _alive = watchdog();
    for (capacity, keys, rounds) in [(20_000, 300, 100), (300_000, 20_000, 3)] {
        for _ in 0..rounds {
            merge_all_ways(capacity, keys);
        }
    }
}

fn merge_all_ways(capacity: usize, keys: u64) {
    let filters = [of_keys(capacity, 32, 0..keys), of_keys(capacity, 32, keys..2 * keys)];
    let merging = &AtomicUsize::new(4);
    let barrier = &Barrier::new(6);
    let [of_a, of_b] = std::thread::scope(|scope| {
        for (filter, own) in filters.iter().zip([0..keys, keys..2 * keys]) {
            scope.spawn(move || {
                barrier.wait();
                while merging.load(Ordering::Acquire) > 0 {
                    own.clone().for_each(|key| assert!(filter.contains(&key), "lookup of key {key}"));
                }
            });
        }
        let merge = |into, from| {
            scope.spawn(move || {
                let _done = Done(merging);
                barrier.wait();
                Filter::merge_from(into, from).unwrap()
            })
        };
        let [a, b] = filters.each_ref();
        [[merge(a, a), merge(a, b)], [merge(b, b), merge(b, a)]].map(|two| two.map(|thread| thread.join().unwrap()))
    });
    for (filter, reports, own) in [(&filters[0], of_a, 0..keys), (&filters[1], of_b, keys..2 * keys)] {
        assert!(own.clone().all(|key| filter.contains(&key)));
        let inserted: usize = reports.iter().map(|report| report.inserted).sum();
        assert_eq!(filter.len(), keys as usize + inserted);
        // A key may end with six copies, so that two buckets may have no room for a copy of another key.
        let refused: usize = reports.iter().map(|report| report.refused).sum();
        assert!(inserted + refused >= 2 * keys as usize, "{reports:?}");
        let not_merged = |key: &u64| filter.count(key) < if own.contains(key) { 2 } else { 1 };
        assert!((0..2 * keys).filter(not_merged).count() <= refused, "{reports:?}");
    }
}
