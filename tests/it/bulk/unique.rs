//! Admission of many keys is that of a loop: of equal keys one is stored, in one call and in several concurrent ones, and none a
//! second time.

use super::{build, pools};
use concurrent_cuckoo_filter::{BulkReport, InsertError, Refusal};
use std::collections::HashSet;
use std::thread;
use testkit::Filter;

type Admit = fn(&Filter, &[u64], &mut [bool]) -> BulkReport;

const ADMISSIONS: [Admit; 4] = [
    |filter, keys, admitted| filter.insert_unique_batch(keys, admitted),
    |filter, keys, admitted| filter.hashed().insert_unique_batch(&hashes(filter, keys), admitted),
    |filter, keys, admitted| filter.bulk().insert_unique(keys, admitted),
    |filter, keys, admitted| filter.hashed().bulk().insert_unique(&hashes(filter, keys), admitted),
];

type Load = fn(&Filter, &[u64]) -> BulkReport;

/// These report the number of stored keys, but not which.
const LOADS: [Load; 2] = [
    |filter, keys| filter.bulk().insert_unique_iter(keys),
    |filter, keys| filter.hashed().bulk().insert_unique_iter(hashes(filter, keys)),
];

fn hashes(filter: &Filter, keys: &[u64]) -> Vec<u64> {
    keys.iter().map(|key| filter.hash(key)).collect()
}

fn count(answers: &[bool]) -> usize {
    answers.iter().filter(|&&answer| answer).count()
}

/// Few keys in one batch; many in batches on all threads; blocks, of one shard and of several, of which the last is not full.
#[test]
fn every_way_admits_one_of_equal_keys() {
    let shapes = [(10, 0), (10_000, 1), (10_000, 31), (4_000_000, 9_000), (100_000, 100_000), (600_000, 600_000)];
    for (capacity, length) in shapes {
        // Every third key occurs again later.
        let keys: Vec<u64> = (0..length).map(|number| if number % 3 == 2 { number / 2 } else { number }).collect();
        let mut seen = HashSet::new();
        let firsts: Vec<bool> = keys.iter().map(|key| seen.insert(key)).collect();
        for (pool, way) in pools().iter().cycle().zip(0..ADMISSIONS.len() + LOADS.len()) {
            let filter = build(capacity, 32);
            let mut admitted: Vec<bool> = firsts.iter().map(|first| !first).collect();
            let mut load = || match ADMISSIONS.get(way) {
                Some(admit) => pool.install(|| admit(&filter, &keys, &mut admitted)),
                None => pool.install(|| LOADS[way - ADMISSIONS.len()](&filter, &keys)),
            };
            let (report, again) = (load(), load());
            assert_eq!((report.inserted, report.present), (seen.len(), keys.len() - seen.len()));
            assert_eq!((again.inserted, again.present, report.refused.len()), (0, keys.len(), 0));
            assert!(filter.len() == seen.len() && keys.iter().all(|key| filter.count(key) == 1));
            if let Some(admit) = ADMISSIONS.get(way) {
                assert_eq!(count(&admitted), 0, "a second time");
                filter.clear();
                let report = pool.install(|| admit(&filter, &keys, &mut admitted));
                assert!(way > 1 || admitted == firsts, "a batch admits the first");
                let once: HashSet<u64> = (0..keys.len()).filter(|&at| admitted[at]).map(|at| keys[at]).collect();
                assert_eq!([once.len(), count(&admitted), report.inserted], [seen.len(); 3]);
            }
        }
    }
}

/// Threads that insert the same keys in different ways: each key is reported as new to one of them.
#[test]
fn concurrent_calls_admit_each_key_once() {
    let (keys, filter, pools) = ((0..200_000).collect::<Vec<u64>>(), build(200_000, 32), pools());
    let mut answers = [const { Vec::new() }; 4];
    thread::scope(|scope| {
        for (way, admitted) in answers.iter_mut().enumerate() {
            let (filter, keys, pool) = (&filter, &keys, &pools[1]);
            scope.spawn(move || match way {
                0 => *admitted = keys.iter().map(|key| filter.insert_unique(key) == Ok(true)).collect(),
                1 => {
                    *admitted = vec![false; keys.len()];
                    for (keys, admitted) in keys.chunks(1000).zip(admitted.chunks_mut(1000)) {
                        assert!(filter.insert_unique_batch(keys, admitted).refused.is_empty());
                    }
                }
                _ => {
                    *admitted = vec![false; keys.len()];
                    let report = pool.install(|| filter.bulk().insert_unique(keys, admitted));
                    assert_eq!((report.inserted, report.refused.len()), (count(admitted), 0));
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
    let keys: Vec<u64> = (0..30_000).collect();
    for admit in ADMISSIONS {
        let filter = build(20_000, 32);
        assert_eq!(filter.insert_batch(&keys[..1000]).inserted, 1000);
        let mut admitted = vec![true; keys.len()];
        let report = admit(&filter, &keys, &mut admitted);
        let is_refused = |refused: &Refusal| refused.error == InsertError::Full;
        assert!(report.refused.len() > 1000 && report.refused.iter().all(is_refused));
        assert!(report.refused.iter().all(|refused| !admitted[refused.index]));
        assert_eq!((report.inserted, report.present), (count(&admitted), 1000));
        assert_eq!(report.inserted + report.present + report.refused.len(), keys.len());
        assert!(keys.iter().zip(&admitted).all(|(key, &admitted)| !admitted || filter.count(key) == 1));
        assert_eq!(filter.len(), 1000 + report.inserted);
    }
}
