//! The set of the crate papaya: exact. Shared as it is: lookups take no lock; each operation enters and leaves the
//! reclamation scheme, as separate requests would. Each key is an allocation of its own.

use crate::field::{Key, Size};
use crate::set::Set;
use ahash::RandomState;
use papaya::HashSet;

/// The set.
pub type PapayaSet<K> = HashSet<K, RandomState>;

/// A set with room for the keys.
pub fn build<K: Key>(size: Size) -> PapayaSet<K> {
    HashSet::with_capacity_and_hasher(size.keys, RandomState::new())
}

impl<K: Key> Set<K> for PapayaSet<K> {
    #[inline]
    fn insert(&self, key: &K) -> bool {
        self.pin().insert(*key)
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        self.pin().contains(key)
    }

    #[inline]
    fn remove(&self, key: &K) -> bool {
        self.pin().remove(key)
    }
}
