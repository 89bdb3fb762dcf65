//! Reports: refused keys, missing keys, and progress.

use super::{MANY_SHARDS, ONE_SHARD, build, indices, pools};
use crate::support::pool;
use concurrent_cuckoo_filter::{BuildError, CuckooFilter, DefaultHashBuilder, InsertError};
use std::thread;
use testkit::operations::INSERTS;
use testkit::{ABSENT, Filter};

/// A way to load keys, with the number of refused keys to list.
#[test]
fn refused_and_missing_keys_are_listed_up_to_a_number() {
    for (capacity, length) in [(ONE_SHARD, 200_000), (MANY_SHARDS, 500_000), (8_000_000, 8000)] {
        // With so few keys per shard they are not sorted: whichever threads store the others, the copies in the middle keep their
        // order.
        let is_copy =
            |index: usize| if length == 8000 { (4200..4230).contains(&index) } else { index.is_multiple_of(777) };
        let keys: Vec<u64> = (0..length).map(|index| if is_copy(index) { ABSENT } else { index as u64 }).collect();
        let too_many: Vec<usize> = (0..length).filter(|&index| is_copy(index)).skip(8).collect();
        let taken: Vec<u64> = keys.iter().map(|&key| if key % 700 == 699 { 2 * ABSENT } else { key }).collect();
        let missing = |&index: &usize| taken[index] == 2 * ABSENT || too_many.binary_search(&index).is_ok();
        let missing: Vec<usize> = (0..keys.len()).filter(missing).collect();
        for (pool, listed) in pools().iter().cycle().zip([usize::MAX, 0, 1, 5]) {
            for way in 0..3 {
                let filter = build(capacity, 32);
                let bulk = || filter.bulk().max_listed(listed);
                let report = pool.install(|| match way {
                    0 => bulk().insert(&keys),
                    1 => bulk().insert_iter(&keys),
                    _ => filter.hashed().bulk().max_listed(listed).insert_iter(keys.iter().map(|key| filter.hash(key))),
                });
                assert_eq!(indices(&report), too_many[..listed.min(too_many.len())]);
                assert!(report.refused.iter().all(|refusal| refusal.error == InsertError::TooManyCopies));
                assert_eq!(report.refused_unlisted, too_many.len().saturating_sub(listed));
                assert_eq!((report.inserted, filter.len()), (keys.len() - too_many.len(), report.inserted));
                let report = pool.install(|| bulk().remove(&taken));
                assert_eq!(report.missing, missing[..listed.min(missing.len())]);
                assert_eq!(report.missing_unlisted, missing.len().saturating_sub(listed));
                assert_eq!(report.removed, keys.len() - missing.len());
            }
        }
    }
}

/// The report is complete and in order, the filter holds the keys that it does not list, and is nearly as full as after a loop.
fn check_overfull_loads(capacity: usize) {
    let keys: Vec<u64> = (0..(capacity * 6 / 5 + 40) as u64).collect();
    let singles = build(capacity, 32);
    keys.iter().for_each(|key| _ = singles.insert(key));
    for (pool, (name, insert)) in pools().iter().cycle().zip(INSERTS) {
        let filter = build(capacity, 32);
        let report = pool.install(|| insert(&filter, &keys));
        let refused = indices(&report);
        assert_eq!((report.inserted, report.refused_unlisted), (filter.len(), 0), "{name}");
        assert_eq!(report.inserted + refused.len(), keys.len());
        assert!(refused.is_sorted() && report.refused.iter().all(|refusal| refusal.error == InsertError::Full));
        let stored = |index: usize| refused.binary_search(&index).is_err();
        assert!((0..keys.len()).all(|index| filter.count(&keys[index]) == u32::from(stored(index))));
        assert!(filter.len() * 100 >= singles.len() * 99, "{name}: {} of {}", filter.len(), singles.len());

        // A full filter has hardly any room, and its keys stay.
        let more: Vec<u64> = (ABSENT..).take(10_000).collect();
        let again = pool.install(|| insert(&filter, &more));
        assert_eq!(filter.len(), report.inserted + again.inserted);
        assert!(capacity < 10_000 || again.inserted * 100 < filter.len(), "{name}: {} more", again.inserted);
        assert!((0..keys.len()).all(|index| !stored(index) || filter.contains(&keys[index])));

        // A refusal is not remembered.
        assert_eq!(
            filter.bulk().remove(&more).removed + filter.bulk().remove(&keys).removed,
            report.inserted + again.inserted
        );
        let fitting = &keys[keys.len() - capacity..];
        assert_eq!(pool.install(|| insert(&filter, fitting)).inserted, capacity, "{name}");
    }
}

#[test]
fn an_overfull_load_fills_the_filter_and_names_what_it_refused() {
    [0, 10, 100, 10_000].into_iter().for_each(check_overfull_loads);
}

#[test]
#[ignore = "long: cargo xtask full runs it"]
fn an_overfull_load_fills_two_shards() {
    check_overfull_loads(260_000);
}

type Operation = fn(&Filter, &[u64], &mut dyn FnMut(usize));

/// The operations on many keys that report their progress, with lookups by hash last.
const OPERATIONS: [Operation; 8] = [
    |filter, keys, tell| drop(filter.bulk().progress(tell).insert(keys)),
    |filter, keys, tell| drop(filter.bulk().progress(tell).insert_iter(keys)),
    |filter, keys, tell| drop(filter.bulk().progress(tell).remove(keys)),
    |filter, hashes, tell| drop(filter.hashed().bulk().progress(tell).insert(hashes)),
    |filter, hashes, tell| drop(filter.hashed().bulk().progress(tell).insert_iter(hashes.iter().copied())),
    |filter, hashes, tell| drop(filter.hashed().bulk().progress(tell).remove(hashes)),
    |filter, keys, tell| filter.bulk().progress(tell).contains(keys, &mut vec![false; keys.len()]),
    |filter, hashes, tell| filter.hashed().bulk().progress(tell).contains(hashes, &mut vec![false; hashes.len()]),
];

#[test]
fn progress_is_told_on_the_calling_thread_up_to_the_last_key() {
    for (capacity, bits) in [(1000, 16), (ONE_SHARD, 16), (MANY_SHARDS, 24)] {
        let filter = build(capacity, bits);
        // A refusal takes far longer than an insertion.
        let few_are_refused = |&length: &u64| length < 5 * capacity as u64;
        for length in [0, 1, 5, 4095, 4096, 32_768, 32_769, 230_000].into_iter().filter(few_are_refused) {
            let keys: Vec<u64> = (0..length).collect();
            for (number, operation) in OPERATIONS.iter().enumerate() {
                for pool in [None, Some(pool(2))] {
                    let told = || {
                        let (caller, mut told) = (thread::current().id(), vec![]);
                        operation(&filter, &keys, &mut |done| {
                            assert_eq!(thread::current().id(), caller);
                            told.push(done);
                        });
                        told
                    };
                    let told = pool.map_or_else(told, |pool| pool.install(told));
                    assert!(told.is_sorted() && told.last() == Some(&keys.len()), "{told:?}");
                    assert!(number > 5 || capacity != ONE_SHARD || length < 230_000 || told.len() >= 7, "{told:?}");
                }
                filter.clear();
            }
        }
    }
}

/// Lookups that are not sorted have the longest interval between reports.
#[test]
fn progress_is_told_on_the_way() {
    let filter = build(1000, 16);
    let hashes: Vec<u64> = (0..(1 << 24) + 1).collect();
    let (mut told, mut found) = (vec![], vec![false; hashes.len()]);
    filter.hashed().insert(&hashes[hashes.len() - 1]).unwrap();
    filter.hashed().bulk().progress(|done| told.push(done)).contains(&hashes, &mut found);
    assert!(told.len() > 1 && told[0] <= 1 << 24, "{told:?}");
    assert_eq!(told.last(), Some(&hashes.len()));
    assert!(hashes.iter().zip(found).all(|(&hash, found)| found == filter.hashed().contains(&hash)));
}

/// Keys are processed in groups where there are fewer than 256 per shard, and in removals from a growing filter. Keys of later
/// groups are also identified by their indices.
#[test]
fn keys_of_later_groups_are_named_by_their_places() {
    const GROUP: usize = 1 << 22;
    let builder = || CuckooFilter::<u64>::builder().hasher(DefaultHashBuilder::with_seeds(1, 2, 3, 4));
    let keys: Vec<u64> = vec![7; GROUP + 1000];
    #[cfg(target_pointer_width = "64")]
    match builder().capacity(4_400_000_000).fingerprint_bits(4).build() {
        Ok(filter) => {
            assert!(filter.config().shards > keys.len() / 256);
            let report = filter.par_insert(&keys);
            assert_eq!((report.inserted, report.refused.len()), (8, keys.len() - 8));
            assert!(report.refused.windows(2).all(|pair| pair[0].index < pair[1].index));
        }
        Err(BuildError::OutOfMemory { .. }) => println!("not tried: this system has no 2.3 GB"),
        Err(error) => panic!("{error}"),
    }
    let growing = builder().capacity(100).max_capacity(100_000).build().unwrap();
    growing.insert(&7).unwrap();
    let missing = growing.bulk().remove(&keys).missing;
    assert!(missing.len() == keys.len() - 1 && missing.windows(2).all(|pair| pair[0] < pair[1]));
}
