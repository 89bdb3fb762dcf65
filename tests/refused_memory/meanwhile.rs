//! Changes of a growing filter by other writers while an operation allocates.

use crate::refusing::MEANWHILE;
use concurrent_cuckoo_filter::CuckooFilter;
use std::sync::{Arc, Mutex};

/// The filter of [`a_bulk_insertion_is_overtaken_by_doublings`], for a function that captures nothing.
static GROWING: Mutex<Option<Arc<CuckooFilter<u64>>>> = Mutex::new(None);

const OTHERS: std::ops::Range<u64> = 1_000_000..1_040_000;

/// At each allocation of the operation in turn, another writer doubles the filter several times.
#[test]
fn a_bulk_insertion_is_overtaken_by_doublings() {
    const KEYS: u64 = 40_000;
    for allocations in 0.. {
        let builder = CuckooFilter::<u64>::builder().capacity(1_000).max_capacity(10_000_000);
        let filter = Arc::new(builder.build().unwrap());
        *GROWING.lock().unwrap() = Some(Arc::clone(&filter));
        MEANWHILE.set(Some((allocations, || {
            let filter = GROWING.lock().unwrap().clone().expect("set before");
            OTHERS.for_each(|key| filter.insert(&key).unwrap());
        })));
        let report = filter.bulk().insert_iter(0..KEYS);
        let overtaken = MEANWHILE.take().is_none();
        assert_eq!((report.inserted as u64, report.refused.len()), (KEYS, 0), "after {allocations} allocations");
        assert!((0..KEYS).all(|key| filter.contains(&key)), "a key is lost");
        if !overtaken {
            assert!(allocations > 5, "the blocks are among them");
            break;
        }
        assert!(OTHERS.into_iter().all(|key| filter.contains(&key)), "a key of the other writer is lost");
    }
}

/// A failed allocation of a list of guards would end the process.
#[test]
fn locking_all_stripes_of_a_shard_allocates_nothing() {
    let filter = CuckooFilter::<u64>::builder().capacity(1_000).stripes(1_000).build().unwrap();
    // A key that is refused once is refused again; another key may have room.
    let without_room = (0..).find(|key| filter.insert(key).is_err()).expect("more keys than slots");
    MEANWHILE.set(Some((0, || {})));
    let refused = filter.insert(&without_room).is_err();
    filter.clear();
    assert!(MEANWHILE.take().is_some(), "something was allocated");
    assert!(refused && filter.is_empty());
}
