//! A filter that has been through something.

use concurrent_cuckoo_filter::CuckooFilter;
use std::hash::{BuildHasher, Hash};
use std::thread;

/// Every operation on keys of which a filter of 32 bits holds one copy each, from another thread: a stripe left locked
/// would stop it for ever.
pub(super) fn is_usable<K, S>(filter: &CuckooFilter<K, S>, keys: &[K])
where
    K: Hash + Sync,
    S: BuildHasher + Sync,
{
    let all = || {
        for key in keys.iter().step_by(keys.len().div_ceil(100).max(1)) {
            assert!(filter.contains(key));
            assert_eq!(filter.count(key), 1);
            assert_eq!(filter.insert_unique(key), Ok(false));
            assert_eq!(filter.insert(key), Ok(()));
            assert_eq!(filter.remove_all(key), 2);
            assert!(!filter.contains(key));
            assert_eq!(filter.insert_unique(key), Ok(true));
        }
        let mut found = vec![false; keys.len()];
        filter.contains_batch(keys, &mut found);
        assert!(found.iter().all(|&found| found), "a key is lost");
        assert_eq!(filter.insert_batch(keys).inserted, keys.len());
        assert_eq!(filter.remove_batch(keys).removed, keys.len());
        assert!(keys.iter().all(|key| filter.count(key) == 1));
    };
    thread::scope(|scope| {
        scope.spawn(all);
    });
}
