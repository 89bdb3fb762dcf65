//! The counters of a filter agree with its operations.

use concurrent_cuckoo_filter::InsertError;
use testkit::{ABSENT, Filter, builder};

fn filter(capacity: usize, bits: u32) -> Filter {
    builder(capacity, bits).build().unwrap()
}

fn overfill(filter: &Filter, keys: std::ops::Range<u64>) -> u64 {
    keys.filter(|key| matches!(filter.insert(key), Err(InsertError::Full))).count() as u64
}

#[test]
fn room_is_made_by_relocations_only_when_pairs_are_full() {
    let filter = filter(10_000, 16);
    (0..2_000).for_each(|key| filter.insert(&key).unwrap());
    assert_eq!((filter.stats().relocations, filter.stats().longest_path), (0, 0), "20 % of the keys");
    (2_000..10_000).for_each(|key| filter.insert(&key).unwrap());
    let stats = filter.stats();
    assert!(stats.relocations > 300, "{stats:?}");
    assert!((2..12).contains(&stats.longest_path), "{stats:?}");
    assert_eq!((stats.refused_full, stats.refused_too_many_copies), (0, 0));
    assert_eq!(stats.len, 10_000);
    assert_eq!(stats.load_factor, filter.load_factor());
}

#[test]
fn load_and_rate_follow_from_the_occupied_slots() {
    let filter = filter(0, 8);
    (0..4).for_each(|key| filter.insert(&key).unwrap());
    let stats = filter.stats();
    // Four of 16 slots.
    assert_eq!((stats.load_factor, filter.load_factor()), (0.25, 0.25));
    assert!((stats.expected_false_positive_rate - 0.0078).abs() < 1e-4, "{stats:?}");
}

/// A path has as many relocations as hops, so one insertion moves at most as many keys as the longest path has.
#[test]
fn relocations_of_one_insertion_are_its_path() {
    let filter = filter(5_000, 16);
    let mut longest = 0;
    for key in 0..5_300 {
        let before = filter.stats();
        let inserted = filter.insert(&key).is_ok();
        let after = filter.stats();
        let moved = after.relocations - before.relocations;
        if inserted {
            longest = longest.max(moved);
        } else {
            assert_eq!(moved, 0, "a refused insertion changes nothing");
        }
        assert_eq!(after.longest_path, longest, "key {key}");
    }
    assert!(longest > 3);
}

#[test]
fn refusals_are_counted_by_their_reason() {
    let filter = filter(1000, 16);
    for _ in 0..20 {
        let _ = filter.insert(&1);
    }
    assert_eq!(filter.stats().refused_too_many_copies, 12);
    let refused = overfill(&filter, ABSENT..ABSENT + 2000);
    assert!(refused > 0);
    let stats = filter.stats();
    assert_eq!((stats.refused_full, stats.refused_too_many_copies), (refused, 12));
    filter.clear();
    let cleared = filter.stats();
    assert_eq!((cleared.len, cleared.load_factor, cleared.expected_false_positive_rate), (0, 0.0, 0.0));
    assert_eq!((cleared.refused_full, cleared.relocations), (stats.refused_full, stats.relocations));
}

/// A clear corrects the sum of the counts in one stripe, so those of the others accumulate over thousands of clears.
#[test]
fn the_count_stays_exact_over_thousands_of_clears() {
    let filter = builder(3_000, 8).stripes(8).build().unwrap();
    for round in 0..6_500 {
        (0..3_000u64).for_each(|key| filter.insert(&key).unwrap());
        assert_eq!(filter.len(), 3_000, "round {round}");
        filter.clear();
        assert!(filter.is_empty(), "round {round}: {} keys", filter.len());
    }
}
