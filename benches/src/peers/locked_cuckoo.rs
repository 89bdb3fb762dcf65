//! The crate cuckoofilter. Written through `&mut`, so shared behind a lock for the whole of it, which lookups take
//! too. 8 bits, a power of two of buckets, no seeds; a full filter drops another key than the one it refuses.

use crate::field::{Key, Size};
use crate::set::Set;
use ahash::AHasher;
use cuckoofilter::CuckooFilter;
use parking_lot::RwLock;

/// The filter behind its lock, hashed as ours but for the random seeds.
pub type LockedCuckoo = RwLock<CuckooFilter<AHasher>>;

/// A filter with as many slots as the size says.
pub fn build(size: Size) -> LockedCuckoo {
    RwLock::new(CuckooFilter::with_capacity(size.slots))
}

impl<K: Key> Set<K> for LockedCuckoo {
    #[inline]
    fn insert(&self, key: &K) -> bool {
        self.write().add(key).is_ok()
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        self.read().contains(key)
    }

    #[inline]
    fn remove(&self, key: &K) -> bool {
        self.write().delete(key)
    }
}
