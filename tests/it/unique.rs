//! Admission of many keys at once is that of a loop: of equal keys one is stored, in one call, in several at the same time,
//! and a second time none.

use crate::support::pool;
use concurrent_cuckoo_filter::{BulkReport, CuckooFilter, InsertError};
use rayon::ThreadPool;
use std::collections::HashSet;

/// 32 bits, and keys of which no two are of one class.
fn filter(capacity: usize) -> CuckooFilter<u64> {
    CuckooFilter::builder().capacity(capacity).fingerprint_bits(32).build().unwrap()
}

fn pools() -> [ThreadPool; 2] {
    [1, 3].map(pool)
}

/// Every third key comes again later.
fn with_repetitions(count: usize) -> Vec<u64> {
    (0..count as u64).map(|number| if number % 3 == 2 { number / 2 } else { number }).collect()
}

fn first_times(keys: &[u64]) -> Vec<bool> {
    let mut seen = HashSet::new();
    keys.iter().map(|key| seen.insert(key)).collect()
}

fn count(answers: &[bool]) -> usize {
    answers.iter().filter(|&&answer| answer).count()
}

/// Whether each key that is there at all is admitted once.
fn assert_admitted_once(keys: &[u64], admitted: &[bool]) {
    let mut once = HashSet::new();
    for (key, _) in keys.iter().zip(admitted).filter(|&(_, &admitted)| admitted) {
        assert!(once.insert(key), "{key} is admitted twice");
    }
    assert_eq!(once.len(), keys.iter().collect::<HashSet<_>>().len());
}

#[test]
fn a_batch_admits_the_first_of_equal_keys() {
    for length in [0, 1, 31, 1000, 100_000] {
        let keys = with_repetitions(length);
        let expected = first_times(&keys);
        let filter = filter(length.max(1));
        let mut admitted: Vec<bool> = expected.iter().map(|first| !first).collect();
        let report = filter.insert_unique_batch(&keys, &mut admitted);
        assert_eq!(admitted, expected);
        assert_eq!((report.inserted, report.present), (count(&expected), keys.len() - count(&expected)));
        let hashes: Vec<u64> = keys.iter().map(|key| filter.hash(key)).collect();
        let again = filter.hashed().insert_unique_batch(&hashes, &mut admitted);
        assert_eq!((again.inserted, again.present, count(&admitted)), (0, keys.len(), 0));
        assert_eq!(filter.len(), count(&expected));
    }
}

/// Few keys, one batch; many, batches on all threads; blocks, of one shard and of several, of which the last is not full.
#[test]
fn a_bulk_operation_admits_one_of_equal_keys() {
    for (capacity, length) in [(10_000, 0), (10_000, 100), (4_000_000, 9_000), (100_000, 100_000), (600_000, 600_000)] {
        let keys = with_repetitions(length);
        let expected = count(&first_times(&keys));
        for pool in pools() {
            pool.install(|| {
                let filter = filter(capacity);
                let mut admitted = vec![true; keys.len()];
                let report = filter.bulk().insert_unique(&keys, &mut admitted);
                assert_eq!((report.inserted, report.present), (expected, keys.len() - expected));
                assert!(report.rejected.is_empty());
                assert_admitted_once(&keys, &admitted);
                let hashes: Vec<u64> = keys.iter().map(|key| filter.hash(key)).collect();
                let again = [
                    filter.hashed().bulk().insert_unique(&hashes, &mut admitted),
                    filter.bulk().insert_unique_iter(&keys),
                    filter.hashed().bulk().insert_unique_iter(hashes.iter().copied()),
                    filter.bulk().insert_unique(&keys, &mut admitted),
                ];
                assert!(again.iter().all(|report| (report.inserted, report.present) == (0, keys.len())));
                assert_eq!((filter.len(), count(&admitted)), (expected, 0));
            });
        }
    }
}

#[test]
fn a_stream_admits_one_of_equal_keys() {
    let keys = with_repetitions(300_000);
    let expected = count(&first_times(&keys));
    for pool in pools() {
        let filter = filter(300_000);
        let report = pool.install(|| filter.bulk().insert_unique_iter(&keys));
        assert_eq!((report.inserted, report.present), (expected, keys.len() - expected));
        assert!(keys.iter().all(|key| filter.count(key) == 1));
    }
}

/// Threads that bring the same keys, each in another way: one of them is told of each key that it is new.
#[test]
fn concurrent_calls_admit_each_key_once() {
    let keys: Vec<u64> = (0..200_000).collect();
    let filter = filter(keys.len());
    let pool = &pools()[1];
    let mut answers = [const { Vec::new() }; 4];
    std::thread::scope(|scope| {
        for (way, admitted) in answers.iter_mut().enumerate() {
            let (filter, keys) = (&filter, &keys);
            scope.spawn(move || match way {
                0 => *admitted = keys.iter().map(|key| filter.insert_unique(key) == Ok(true)).collect(),
                1 => {
                    *admitted = vec![false; keys.len()];
                    for (keys, admitted) in keys.chunks(1000).zip(admitted.chunks_mut(1000)) {
                        assert!(filter.insert_unique_batch(keys, admitted).rejected.is_empty());
                    }
                }
                _ => {
                    *admitted = vec![false; keys.len()];
                    let report = pool.install(|| filter.bulk().insert_unique(keys, admitted));
                    assert_eq!((report.inserted, report.rejected.len()), (count(admitted), 0));
                }
            });
        }
    });
    for (place, key) in keys.iter().enumerate() {
        assert_eq!(answers.iter().filter(|admitted| admitted[place]).count(), 1, "{key}");
    }
    assert_eq!(filter.len(), keys.len());
}

#[test]
fn refused_keys_are_not_admitted_and_present_ones_are_not_refused() {
    let check = |report: &BulkReport, admitted: &[bool], keys: &[u64], filter: &CuckooFilter<u64>| {
        assert!(
            report.rejected.len() > 1000 && report.rejected.iter().all(|refused| refused.error == InsertError::Full)
        );
        assert!(report.rejected.iter().all(|refused| !admitted[refused.index]));
        assert_eq!((report.inserted, report.present), (count(admitted), 1000));
        assert_eq!(report.inserted + report.present + report.rejected.len(), keys.len());
        assert!(keys.iter().zip(admitted).all(|(key, &admitted)| !admitted || filter.count(key) == 1));
        assert_eq!(filter.len(), 1000 + report.inserted);
    };
    let keys: Vec<u64> = (0..30_000).collect();
    for parallel in [false, true] {
        let filter = filter(20_000);
        assert_eq!(filter.insert_batch(&keys[..1000]).inserted, 1000);
        let mut admitted = vec![true; keys.len()];
        let report = if parallel {
            filter.bulk().insert_unique(&keys, &mut admitted)
        } else {
            filter.insert_unique_batch(&keys, &mut admitted)
        };
        check(&report, &admitted, &keys, &filter);
    }
}

/// What brings this: a list that is loaded every day into a filter that is not much larger.
#[test]
fn a_list_that_is_loaded_again_takes_no_room() {
    let list = include_str!("../../examples/data/disposable-email-domains.txt");
    let filter = CuckooFilter::<String>::with_capacity(200_000);
    let first = filter.bulk().insert_unique_iter(list.lines());
    assert!(first.inserted > 121_000 && first.rejected.is_empty());
    for _ in 0..3 {
        let again = filter.bulk().insert_unique_iter(list.lines());
        assert_eq!((again.inserted, again.present, again.rejected.len()), (0, list.lines().count(), 0));
    }
    assert_eq!(filter.len(), first.inserted);
}
