//! Filters that are copied, and filters that are made of a list.

use concurrent_cuckoo_filter::{BuildError, Builder, CuckooFilter, InsertError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

#[test]
fn a_clone_holds_what_the_filter_holds_and_goes_its_own_way() {
    for bits in [4, 13, 16, 20] {
        let filter = CuckooFilter::<u64>::builder().capacity(300_000).fingerprint_bits(bits).build().unwrap();
        let stored: Vec<u64> = (0..1000).filter(|key| filter.insert(key).is_ok()).collect();
        let copy = filter.clone();
        assert_eq!(
            (copy.len(), copy.capacity(), copy.stats().slots),
            (filter.len(), filter.capacity(), filter.stats().slots)
        );
        assert_eq!((copy.false_positive_rate(), copy.digest()), (filter.false_positive_rate(), filter.digest()));
        assert_eq!(copy.hash(&7), filter.hash(&7));
        assert!(stored.iter().all(|key| copy.contains(key)));
        assert!(stored.iter().all(|key| filter.remove(key)));
        assert!(filter.is_empty() && stored.iter().all(|key| copy.contains(key)));
        assert_eq!(filter.merge_from(&copy).unwrap().inserted, stored.len());
    }
}

/// Keys that are there throughout are in each copy, however others move meanwhile.
#[test]
fn a_clone_beside_writers_lacks_nothing_that_stays() {
    let filter = CuckooFilter::<u64>::with_capacity(10_000);
    (0..9000).for_each(|key| filter.insert(&key).unwrap());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let keys: Vec<u64> = (10_000..11_000).filter(|key| filter.insert(key).is_ok()).collect();
                assert!(keys.iter().all(|key| filter.remove(key)));
            }
        });
        for _ in 0..50 {
            let copy = filter.clone();
            assert!((0..9000).all(|key| copy.contains(&key)));
            assert!((9000..=10_000).contains(&copy.len()));
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_filter_of_a_list_holds_each_of_its_keys_once() {
    let keys: Vec<String> = (0..1000).map(|number| format!("key {}", number % 900)).collect();
    let filter = CuckooFilter::<String>::builder().items(keys.iter().map(String::as_str)).unwrap();
    assert_eq!(filter.capacity(), 1000);
    assert!(filter.len() > 890 && filter.len() <= 900, "{}", filter.len());
    assert!(keys.iter().all(|key| filter.contains(key)));
    let more = CuckooFilter::<u64>::builder().capacity(5000).items([1, 2, 3]).unwrap();
    assert_eq!((more.capacity(), more.len()), (5000, 3));
    let none = Builder::<u64>::default().items([0; 0]).unwrap();
    assert!(none.is_empty() && none.capacity() == 0);
    let refused = CuckooFilter::<u32>::builder().capacity(10).items(0..1000).unwrap_err();
    match &refused {
        BuildError::Refused { index, error: InsertError::Full, .. } => assert!(*index >= 10),
        other => panic!("{other:?}"),
    }
    assert!(refused.to_string().contains("of the list was refused"), "{refused}");
}

#[test]
fn a_filter_that_has_grown_is_copied_and_grows_on() {
    let filter = CuckooFilter::<u64>::growing(1_000..=400_000);
    (0..100_000).for_each(|key| filter.insert(&key).unwrap());
    let copy = filter.clone();
    assert_eq!((copy.len(), copy.max_capacity(), copy.capacity()), (100_000, 400_000, filter.capacity()));
    (100_000..200_000).for_each(|key| copy.insert(&key).unwrap());
    assert!((0..200_000).all(|key| copy.contains(&key)));
    assert_eq!(filter.len(), 100_000);
    assert!((0..100_000).all(|key| filter.contains(&key)));
}
