//! The set of the crate dashmap: exact. Shared as it is: shards, each behind a lock that lookups take too.

use crate::field::{Key, Size};
use crate::set::Set;
use ahash::RandomState;

/// The set.
pub type DashSet<K> = dashmap::DashSet<K, RandomState>;

/// A set with room for the keys.
pub fn build<K: Key>(size: Size) -> DashSet<K> {
    DashSet::with_capacity_and_hasher(size.keys, RandomState::new())
}

impl<K: Key> Set<K> for DashSet<K> {
    #[inline]
    fn insert(&self, key: &K) -> bool {
        DashSet::insert(self, *key)
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        DashSet::contains(self, key)
    }

    #[inline]
    fn remove(&self, key: &K) -> bool {
        DashSet::remove(self, key).is_some()
    }
}
