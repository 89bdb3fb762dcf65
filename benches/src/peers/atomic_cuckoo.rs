//! The crate atomic-cuckoo-filter. Shared as it is: fingerprints are written with compare-and-swap, one lock serves all
//! relocations, and lookups wait while a relocation is carried out. 4, 8, 16 or 32 bits, a power of two of buckets, no
//! seeds.

use crate::field::{Key, Size};
use crate::set::Set;
use ahash::AHasher;
use atomic_cuckoo_filter::{CuckooFilter, CuckooFilterBuilder};

/// The filter, hashed as ours but for the random seeds.
pub type AtomicCuckoo = CuckooFilter<AHasher>;

/// A filter with as many slots as the size says.
pub fn build(size: Size) -> AtomicCuckoo {
    CuckooFilterBuilder::default()
        .capacity(size.slots)
        .fingerprint_size(size.bits as usize)
        .bucket_size(4)
        .build()
        .expect("a possible filter")
}

impl<K: Key> Set<K> for AtomicCuckoo {
    #[inline]
    fn insert(&self, key: &K) -> bool {
        AtomicCuckoo::insert(self, key).is_ok()
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        AtomicCuckoo::contains(self, key)
    }

    #[inline]
    fn remove(&self, key: &K) -> bool {
        AtomicCuckoo::remove(self, key)
    }
}
