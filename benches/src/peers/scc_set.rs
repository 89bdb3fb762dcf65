//! The set of the crate scc: exact. Shared as it is: buckets, each behind a lock that lookups take too.

use crate::field::{Key, Size};
use crate::set::Set;
use ahash::RandomState;
use scc::HashSet;

/// The set.
pub type SccSet<K> = HashSet<K, RandomState>;

/// A set with room for the keys.
pub fn build<K: Key>(size: Size) -> SccSet<K> {
    HashSet::with_capacity_and_hasher(size.keys, RandomState::new())
}

impl<K: Key> Set<K> for SccSet<K> {
    #[inline]
    fn insert(&self, key: &K) -> bool {
        self.insert_sync(*key).is_ok()
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        self.contains_sync(key)
    }

    #[inline]
    fn remove(&self, key: &K) -> bool {
        self.remove_sync(key).is_some()
    }
}
