//! The counters of a filter agree with its operations.

use testkit::{Filter, builder};

fn filter(capacity: usize, bits: u32) -> Filter {
    builder(capacity, bits).build().unwrap()
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

#[test]
fn each_shard_of_a_fixed_size_is_a_table_that_never_doubled() {
    let filter = filter(600_000, 8);
    let stats = filter.stats();
    assert_eq!((stats.tables, stats.doublings, stats.splits), (filter.config().shards, 0, 0));
    assert!(stats.tables > 1);
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
