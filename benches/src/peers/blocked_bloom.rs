//! The split-block Bloom filter of the crate sbbf-rs-safe, with as many bits as a cuckoo filter of that size. Written
//! through `&mut`, so shared behind a lock for the whole of it, which lookups take too. It cannot remove.

use crate::field::{Key, Size};
use crate::set::Set;
use ahash::RandomState;
use parking_lot::RwLock;
use sbbf_rs_safe::Filter;

/// The filter behind its lock, and the hash function that it leaves to its user.
pub struct BlockedBloom {
    filter: RwLock<Filter>,
    hasher: RandomState,
}

/// A filter of `bits` for each of the slots.
pub fn build(size: Size) -> BlockedBloom {
    BlockedBloom { filter: RwLock::new(Filter::new(size.bits as usize, size.slots)), hasher: RandomState::new() }
}

impl<K: Key> Set<K> for BlockedBloom {
    #[inline]
    fn insert(&self, key: &K) -> bool {
        let hash = self.hasher.hash_one(key);
        self.filter.write().insert_hash(hash);
        true
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        let hash = self.hasher.hash_one(key);
        self.filter.read().contains_hash(hash)
    }

    fn remove(&self, _: &K) -> bool {
        unreachable!("a Bloom filter cannot remove")
    }
}
