//! All that one filter holds, stored in another one.

use concurrent_cuckoo_filter::{CuckooFilter, DefaultHashBuilder, MergeError, StableHashBuilder};
use proptest::prelude::*;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use testkit::watchdog;
use testkit::{Done, written};

type Filter = CuckooFilter<u64, StableHashBuilder>;

fn build(capacity: usize, bits: u32) -> Filter {
    let builder = CuckooFilter::builder().capacity(capacity).fingerprint_bits(bits);
    builder.hasher(StableHashBuilder::with_keys(1, 2)).build().unwrap()
}

fn of_keys(capacity: usize, bits: u32, keys: impl IntoIterator<Item = u64>) -> Filter {
    let filter = build(capacity, bits);
    keys.into_iter().for_each(|key| filter.insert(&key).unwrap());
    filter
}

fn insert_copies(filter: &Filter, key: u64, copies: usize) {
    (0..copies).for_each(|_| filter.insert(&key).unwrap());
}

fn bytes_of(filter: &Filter) -> Vec<u8> {
    written(|to| filter.write_to(to))
}

proptest! {
    /// Of 32 bits, so that no two of these keys share a class.
    #[test]
    fn counts_add_up(
        of_a in prop::collection::vec(0..=2_usize, 200),
        of_b in prop::collection::vec(0..=2_usize, 200),
    ) {
        let (a, b) = (build(2000, 32), build(2000, 32));
        for (filter, copies) in [(&a, &of_a), (&b, &of_b)] {
            (0..).zip(copies).for_each(|(key, &copies)| insert_copies(filter, key, copies));
        }
        let before = bytes_of(&b);
        let report = a.merge_from(&b).unwrap();
        prop_assert_eq!((report.inserted, report.refused), (b.len(), 0));
        for (key, (of_a, of_b)) in (0..).zip(of_a.iter().zip(&of_b)) {
            prop_assert_eq!(a.count(&key) as usize, of_a + of_b, "key {}", key);
        }
        prop_assert_eq!(a.len(), of_a.iter().chain(&of_b).sum::<usize>());
        prop_assert!(bytes_of(&b) == before);
    }

    #[test]
    fn all_is_found_at_every_width(capacity in 0..2000_usize, bits in 4..=32_u32, share in 0.0..1.0) {
        let (a, b) = (build(capacity, bits), build(capacity, bits));
        let keys = capacity as u64 * 9 / 10;
        let first = (keys as f64 * share) as u64;
        // At a few bits a class may have more keys than there is room for.
        let of_a: Vec<u64> = (0..first).filter(|key| a.insert(key).is_ok()).collect();
        let of_b: Vec<u64> = (first..keys).filter(|key| b.insert(key).is_ok()).collect();
        let report = a.merge_from(&b).unwrap();
        prop_assert_eq!(report.inserted + report.refused, of_b.len());
        prop_assert_eq!(a.len(), of_a.len() + report.inserted);
        prop_assert!(of_a.iter().all(|key| a.contains(key)));
        prop_assert!(bits < 6 || report.refused == 0, "{} refused", report.refused);
        prop_assert!(of_b.iter().filter(|key| !a.contains(key)).count() <= report.refused);
        if report.refused == 0 {
            prop_assert!(of_a.iter().chain(&of_b).all(|key| a.remove(key)));
            prop_assert!(a.is_empty());
        }
    }
}

#[test]
fn filters_of_several_shards() {
    let a = of_keys(700_000, 16, 0..300_000);
    let b = of_keys(700_000, 16, 200_000..500_000);
    assert_eq!(a.shards(), 3);
    let report = a.merge_from(&b).unwrap();
    assert_eq!((report.inserted, report.refused), (300_000, 0));
    assert_eq!((a.len(), b.len()), (600_000, 300_000));
    assert!((0..500_000).all(|key| a.contains(&key)));
    assert!((200_000..300_000).all(|key| a.count(&key) >= 2));
}

#[test]
fn what_finds_no_room_is_counted_and_nothing_else_is_lost() {
    let a = of_keys(20_000, 32, 0..20_000);
    let b = of_keys(20_000, 32, 20_000..40_000);
    let (before, of_b) = (a.len(), bytes_of(&b));
    let report = a.merge_from(&b).unwrap();
    assert!(report.inserted > 0 && report.refused > 15_000, "{report:?}");
    assert_eq!(report.inserted + report.refused, 20_000);
    assert_eq!(a.len(), before + report.inserted);
    assert!((0..20_000).all(|key| a.contains(&key)));
    assert_eq!((20_000..40_000).filter(|key| a.contains(key)).count(), report.inserted);
    assert!(bytes_of(&b) == of_b);
    // It goes on working.
    let found: Vec<u64> = (0..40_000).filter(|key| a.contains(key)).collect();
    assert!(found.iter().all(|key| a.remove(key)));
    assert!(a.is_empty());
}

#[test]
fn copies_beyond_eight_are_refused() {
    let (a, b) = (of_keys(100, 32, 0..20), of_keys(100, 32, 10..30));
    insert_copies(&a, 99, 5);
    insert_copies(&b, 99, 6);
    let report = a.merge_from(&b).unwrap();
    assert_eq!((report.inserted, report.refused), (23, 3));
    assert_eq!((a.count(&99), a.count(&5), a.count(&15), a.count(&25)), (8, 1, 2, 1));
    assert_eq!(a.len(), 20 + 20 + 8);
}

#[test]
fn a_filter_with_itself() {
    let _alive = watchdog();
    let filter = of_keys(2000, 32, 0..500);
    insert_copies(&filter, 0, 4);
    insert_copies(&filter, 1, 2);
    let report = filter.merge_from(&filter).unwrap();
    // Of the first there are five copies, and there is room for eight.
    assert_eq!((report.inserted, report.refused), (506 - 2, 2));
    assert_eq!(filter.len(), 506 + 504);
    assert_eq!((filter.count(&0), filter.count(&1)), (8, 6));
    assert!((2..500).all(|key| filter.count(&key) == 2));
}

#[test]
fn filters_of_different_sizes() {
    let (a, before) = (of_keys(1000, 16, 0..1000), bytes_of(&of_keys(1000, 16, 0..1000)));
    for other in [of_keys(2000, 16, 0..10), of_keys(1000, 17, 0..10), of_keys(300_000, 16, 0..10)] {
        let error = a.merge_from(&other).unwrap_err();
        assert!(matches!(error, MergeError::SizesDiffer), "{error:?}");
        assert!(error.to_string().contains("the same capacity"), "{error}");
    }
    assert!(bytes_of(&a) == before);
}

/// The number of stripes moves no key.
#[test]
fn filters_of_different_stripes() {
    let striped = |stripes| {
        let builder = CuckooFilter::<u64>::builder().capacity(1000).fingerprint_bits(16).stripes(stripes);
        builder.hasher(StableHashBuilder::with_keys(1, 2)).build().unwrap()
    };
    let (a, b) = (striped(1), striped(64));
    (0..1000).for_each(|key| b.insert(&key).unwrap());
    assert_eq!(a.merge_from(&b).unwrap().inserted, 1000);
    assert!((0..1000).all(|key| a.contains(&key)));
}

#[test]
fn filters_of_different_hashers() {
    let of = |first, second| Filter::with_capacity_and_hasher(100, StableHashBuilder::with_keys(first, second));
    let (a, b) = (of(1, 2), of(1, 3));
    b.insert(&1).unwrap();
    let error = a.merge_from(&b).unwrap_err();
    assert!(matches!(error, MergeError::HashersDiffer), "{error:?}");
    assert!(error.to_string().contains("the same keys"), "{error}");
    assert!(a.is_empty());

    let random = || CuckooFilter::<u64>::with_capacity(100);
    assert!(matches!(random().merge_from(&random()), Err(MergeError::HashersDiffer)));
    let seeded = || CuckooFilter::<u64, _>::with_capacity_and_hasher(100, DefaultHashBuilder::with_seeds(1, 2, 3, 4));
    assert!(seeded().merge_from(&seeded()).is_ok());
}

/// Each of two filters with itself and with the other one, all four at the same time, while both are asked.
#[test]
fn two_filters_with_themselves_and_each_other() {
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
        // Of a key there may be six copies in the end, so that two buckets may have no room for one of some other key.
        let refused: usize = reports.iter().map(|report| report.refused).sum();
        assert!(inserted + refused >= 2 * keys as usize, "{reports:?}");
        let not_merged = |key: &u64| filter.count(key) < if own.contains(key) { 2 } else { 1 };
        assert!((0..2 * keys).filter(not_merged).count() <= refused, "{reports:?}");
    }
}
