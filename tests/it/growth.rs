//! Growing filters: their contents, their rate, their memory, and their refusals.

use crate::support::{hasher, pool};
use concurrent_cuckoo_filter::{
    BuildError, BulkReport, CuckooFilter, ExpiringFilter, InsertError, StableHashBuilder, TaggedFilter,
};
use std::time::Duration;
use testkit::written;

fn growing(capacity: usize, max_capacity: usize) -> CuckooFilter<u64> {
    CuckooFilter::builder().capacity(capacity).max_capacity(max_capacity).build().unwrap()
}

/// The share of these absent hashes that is found, one by one and in a batch.
fn measured_rate(filter: &CuckooFilter<u64>, from: u64) -> f64 {
    let absent: Vec<u64> = (from..from + 1_000_000).collect();
    let mut found = vec![false; absent.len()];
    filter.hashed().contains_batch(&absent, &mut found);
    for (&hash, &found) in absent.iter().zip(&found).step_by(97) {
        assert_eq!(filter.hashed().contains(&hash), found, "{hash}");
    }
    found.iter().filter(|&&found| found).count() as f64 / absent.len() as f64
}

/// At every half doubling, all keys are present, and the rate is the reported one and below the requested one.
#[test]
fn a_filter_grows_to_what_was_asked_for_and_keeps_every_key() {
    for (capacity, max_capacity, rate) in
        [(1_000, 600_000, 0.001), (20_000, 160_000, 0.02), (300_000, 1_200_000, 0.0001), (100, 300_000, 1e-6)]
    {
        let builder = CuckooFilter::<u64>::builder().capacity(capacity).max_capacity(max_capacity);
        let filter = builder.false_positive_rate(rate).build().unwrap();
        assert_eq!((filter.capacity(), filter.config().max_capacity), (capacity, max_capacity));
        let (mut stored, mut step) = (0, capacity.max(10_000));
        while stored < max_capacity {
            step = (step as f64 * 1.42) as usize;
            let upto = step.min(max_capacity);
            for hash in stored..upto {
                filter
                    .hashed()
                    .insert(&(hash as u64))
                    .unwrap_or_else(|error| panic!("{hash} of {max_capacity}: {error}"));
            }
            stored = upto;
            assert_eq!(filter.len(), stored);
            for hash in 0..stored as u64 {
                assert!(filter.hashed().contains(&hash), "{hash} of {stored}");
            }
            let (expected, found) = (filter.stats().expected_false_positive_rate, measured_rate(&filter, 1 << 40));
            assert!(expected <= rate, "{expected} at {stored} of {max_capacity}");
            // 6 standard deviations of as many draws.
            let slack = 6.0 * (expected / 1e6).sqrt() + 1e-6;
            assert!((found - expected).abs() < slack, "{found}, not {expected}, at {stored} of {max_capacity}");
        }
        let stats = filter.stats();
        assert_eq!((stats.len, stats.refused_full), (max_capacity, 0));
        assert_eq!(stats.tables as u64, filter.config().shards as u64 + stats.splits);
        assert!(stats.doublings >= 1 && stats.time_in_splits.as_nanos() > 0, "{stats:?}");
    }
}

/// Each doubling makes tables narrower by a bit, and lookups read all of them by the layout of the widest.
#[test]
fn tables_with_tags_of_one_bit_are_read_at_each_width() {
    for (max_capacity, bits) in [(30_000, 29), (100_000, 23), (100_000, 28)] {
        let builder = TaggedFilter::<u64>::builder().tags(1).capacity(1_000).max_capacity(max_capacity);
        let filter = builder.hasher(hasher()).fingerprint_bits(bits).build().unwrap();
        for key in 0..max_capacity as u64 {
            filter.insert(&key, 0).unwrap();
            if (key + 1).is_power_of_two() {
                assert!(
                    (0..=key).all(|key| filter.contains(&key) && filter.tag(&key) == Some(0)),
                    "{key} at {bits} bits"
                );
            }
        }
        let keys: Vec<u64> = (0..max_capacity as u64).collect();
        let mut found = vec![false; keys.len()];
        filter.contains_batch(&keys, &mut found);
        assert!(found.iter().all(|&found| found), "{bits} bits");
        let bytes = written(|to| filter.snapshot().write_to(to));
        let loaded = TaggedFilter::<u64, _>::read_from(&bytes[..], hasher()).unwrap();
        assert!(keys.iter().all(|key| loaded.contains(key)));
    }
}

/// More keys than requested: one doubling is in reserve, then the filter is full.
#[test]
fn at_the_end_of_its_reserve_a_filter_refuses() {
    let filter = growing(30_000, 60_000);
    let stored = (0..).find(|&hash| filter.hashed().insert(&hash).is_err()).unwrap();
    assert!((60_000..140_000).contains(&stored), "{stored}");
    assert_eq!(filter.hashed().insert(&stored), Err(InsertError::Full));
    assert_eq!((filter.len() as u64, filter.stats().tables), (stored, 4));
    assert!((0..stored).all(|hash| filter.hashed().contains(&hash)));
}

/// Everything included, with stripes of 128 bytes.
#[test]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn small_filters_begin_small() {
    for (capacity, most_bytes) in [(100, 1_228), (1_000, 6_000)] {
        let bytes = growing(capacity, 1_000 * capacity).memory_usage();
        assert!(bytes <= most_bytes, "{bytes} bytes for {capacity} keys");
    }
}

/// Copies of one key fill its buckets and not the filter, which is no reason to grow.
#[test]
fn copies_of_one_key_do_not_make_a_filter_grow() {
    let filter = growing(30_000, 1_000_000);
    for _ in 0..8 {
        filter.hashed().insert(&1).unwrap();
    }
    for _ in 0..100 {
        assert_eq!(filter.hashed().insert(&1), Err(InsertError::TooManyCopies));
    }
    assert_eq!((filter.stats().tables, filter.stats().refused_too_many_copies), (1, 100));
}

/// Some buckets are full long before the others, of copies or of what a merge stores in the order of the buckets.
#[test]
fn copies_and_merges_fit_and_few_full_buckets_make_no_filter_grow_for_ever() {
    let builder = || CuckooFilter::<u64>::builder().capacity(100).max_capacity(1_000_000).hasher(hasher());
    let [single, triple, eightfold, merged] = [(); 4].map(|()| builder().build().unwrap());
    (0..50_000).for_each(|key| single.insert(&key).unwrap());
    for key in 0..10_000 {
        (0..3).for_each(|_| triple.insert(&key).unwrap());
        (0..8).for_each(|_| _ = eightfold.insert(&key));
    }
    assert_eq!(merged.merge_from(&single).map(|report| (report.inserted, report.refused)), Ok((50_000, 0)));
    assert!((0..50_000).all(|key| merged.contains(&key) && (key >= 10_000 || triple.count(&key) >= 3)));
    assert_eq!(merged.memory_usage(), single.memory_usage());
    assert!(eightfold.memory_usage() < builder().memory_usage_at(4 * eightfold.len()).unwrap());
}

/// (`crates/reliability` tests filters that grow concurrently with readers.)
#[test]
fn memory_is_what_was_said_and_grows_with_the_keys() {
    let builder = || CuckooFilter::<u64>::builder().capacity(20_000).max_capacity(1_000_000);
    let filter = builder().build().unwrap();
    assert_eq!([builder().memory_usage().unwrap(), builder().memory_usage_at(0).unwrap()], [filter.memory_usage(); 2]);
    for hash in 0..1_000_000_u64 {
        filter.hashed().insert(&hash).unwrap();
        // Well between two doublings of 31,250 keys.
        if [22_000, 45_000, 90_000, 180_000, 360_000, 720_000, 1_000_000].contains(&(hash + 1)) {
            let (told, taken) = (builder().memory_usage_at(hash as usize + 1).unwrap(), filter.memory_usage());
            assert!((taken as f64 / told as f64 - 1.0).abs() < 0.03, "{taken} bytes, not {told}, of {hash} keys");
        }
    }
    let fixed = CuckooFilter::<u64>::builder().capacity(1_000_000).memory_usage().unwrap();
    assert!(filter.memory_usage() as f64 <= 1.1 * fixed as f64);
    assert!(builder().memory_usage_at(usize::MAX).unwrap() >= filter.memory_usage());
}

#[test]
fn reserve_makes_room_ahead() {
    let filter = growing(1_000, 480_000);
    filter.reserve(0).unwrap();
    assert_eq!(filter.stats().tables, 1);
    // As many keys as fit without another doubling; not all tables get as many of them.
    let reserved = |keys| {
        let filter = growing(1_000, 480_000);
        filter.reserve(keys).unwrap();
        filter
    };
    let tables = reserved(200_000).stats().tables;
    assert_eq!(tables, 16);
    let most = (200_000..).step_by(250).find(|&keys| reserved(keys).stats().tables > tables).unwrap() - 250;
    let filter = reserved(most);
    (0..most as u64).for_each(|hash| filter.hashed().insert(&hash).unwrap());
    assert_eq!(filter.stats().tables, tables, "{most} keys");
    let filter = growing(250_000, 1_000_000);
    (0..250_000).for_each(|hash| filter.hashed().insert(&hash).unwrap());
    assert_eq!(filter.stats().splits, 0, "the first keys fit in before the first doubling");
}

/// From a slice and from an iterator, all new or each many times: only new keys make tables ahead.
#[test]
fn a_bulk_load_grows_as_far_as_its_keys_need_it() {
    // Well between two doublings of 31,250 keys.
    for (distinct, times) in [(1_450_000, 1), (340_000, 4), (90_000, 14), (45_000, 20)] {
        let builder = || CuckooFilter::<u64>::builder().capacity(1_000).max_capacity(4_000_000);
        let build = || builder().hasher(hasher()).build().unwrap();
        let keys: Vec<u64> = (0..distinct * times).map(|number| number % distinct).collect();
        let check = |filter: CuckooFilter<u64, _>, report: BulkReport| {
            assert_eq!((report.inserted, report.inserted + report.present), (filter.len(), keys.len()));
            assert!(keys.len() > 2 * filter.len() || filter.len() as u64 > distinct - distinct / 500, "{report:?}");
            assert!((0..distinct).all(|key| filter.contains(&key)));
            let (told, taken) = (builder().memory_usage_at(filter.len()).unwrap(), filter.memory_usage());
            assert!(taken as f64 <= 1.03 * told as f64, "{taken} bytes, not {told}, of {distinct} keys {times} times");
        };
        for threads in [1, 3] {
            pool(threads).install(|| {
                let filter = build();
                let mut admitted = vec![false; keys.len()];
                let report = filter.bulk().insert_unique(&keys, &mut admitted);
                assert_eq!(admitted.iter().filter(|&&admitted| admitted).count(), report.inserted);
                check(filter, report);
                let filter = build();
                let report = filter.bulk().insert_unique_iter(keys.iter().filter(|&&key| key < distinct));
                check(filter, report);
            });
        }
    }
}

#[test]
fn dead_keys_make_no_bulk_load_split_a_table() {
    let builder = ExpiringFilter::<u64>::builder().capacity(20_000).max_capacity(2_000_000).hasher(hasher());
    let filter = builder.time_to_live(Duration::from_secs(60)).steps(6).build().unwrap();
    assert_eq!(filter.par_insert(&Vec::from_iter(0..400_000)).inserted, 400_000);
    (0..7).for_each(|_| _ = filter.advance());
    let before = filter.stats().tables;
    assert_eq!((filter.len(), filter.par_insert(&Vec::from_iter(400_000..700_000)).inserted), (400_000, 300_000));
    assert_eq!((filter.len(), filter.stats().tables), (300_000, before));
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let builder = || CuckooFilter::<u64>::builder().capacity(1_000);
    let message = |error: BuildError| error.to_string();
    assert_eq!(
        message(builder().max_capacity(999).build().unwrap_err()),
        "a `max_capacity` of 999 keys was requested, which is below the capacity of 1000 keys"
    );
    assert_eq!(
        message(builder().max_capacity(2_000).fingerprint_bits(5).build().unwrap_err()),
        "5 bits per fingerprint were requested; 6 to 30 are possible"
    );
    assert!(matches!(
        builder().max_capacity(2_000).false_positive_rate(1e-12).build().unwrap_err(),
        BuildError::RateTooLow { requested: 1e-12, widest: 30, .. }
    ));
    assert!(matches!(builder().max_capacity(usize::MAX).build().unwrap_err(), BuildError::TooLarge { .. }));
    for bits in 6..=30 {
        let filter = builder().max_capacity(40_000).fingerprint_bits(bits).build().unwrap();
        assert_eq!(filter.config().fingerprint_bits, bits);
        (0..40_000).for_each(|hash| filter.hashed().insert(&hash).unwrap());
        assert!((0..40_000).all(|hash| filter.hashed().contains(&hash)), "{bits} bits");
    }
}

/// Copies of a few keys fill each other's buckets, also at loads from which a small table is doubled in place of a refusal. A
/// doubling that would not make room does not happen, so that a replica which repeats the successful insertions has the same
/// bytes.
#[test]
fn a_refused_insertion_leaves_the_filter_as_it_is() {
    macro_rules! check {
        ($filter:ident, $largest:literal $(, $time:expr)?) => {{
            let (mut refused, mut doubled) = (0, 0);
            for seed in 0..100_u64 {
                let build = || {
                    let builder = $filter::<u64>::builder()
                        $(.time_to_live($time))?.capacity(60)
                        .max_capacity($largest)
                        .hasher(StableHashBuilder::with_seeds(seed, 0));
                    builder.build().unwrap()
                };
                let (filter, replica) = (build(), build());
                let bytes = |of: &$filter<u64, _>| written(|to| of.write_to(to));
                let slots = filter.memory_usage();
                for key in
                    (0..40).chain(1000..1200).flat_map(|key| core::iter::repeat_n(key, if key < 1000 { 8 } else { 1 }))
                {
                    match filter.insert(&key) {
                        Ok(()) => replica.insert(&key).unwrap(),
                        Err(error) => {
                            assert_eq!(error, InsertError::Full);
                            refused += 1;
                        }
                    }
                    assert_eq!(filter.memory_usage(), replica.memory_usage(), "seed {seed}, key {key}");
                }
                assert!(bytes(&filter) == bytes(&replica), "seed {seed}");
                doubled += u32::from(filter.memory_usage() > slots);
            }
            assert!(refused > 100 && doubled == 100, "{refused} refusals, {doubled} filters grew");
        }};
    }
    check!(CuckooFilter, 60_000);
    check!(CuckooFilter, 600);
    check!(ExpiringFilter, 60_000, Duration::from_secs(60));
}
