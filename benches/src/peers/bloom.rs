//! The atomic Bloom filter of the crate fastbloom, with as many bits as a cuckoo filter of that size. Shared as it is:
//! bits are set one by one with atomic operations. It cannot remove.

use crate::field::{Key, Size};
use crate::set::Set;
use ahash::RandomState;
use fastbloom::AtomicBloomFilter;

/// The filter.
pub type Bloom = AtomicBloomFilter<RandomState>;

/// A filter of `bits` for each of the slots, with the number of hashes that is best for the keys.
pub fn build(size: Size) -> Bloom {
    AtomicBloomFilter::with_num_bits(size.slots * size.bits as usize)
        .hasher(RandomState::new())
        .expected_items(size.keys)
}

impl<K: Key> Set<K> for Bloom {
    #[inline]
    fn insert(&self, key: &K) -> bool {
        Bloom::insert(self, key);
        true
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        Bloom::contains(self, key)
    }

    fn remove(&self, _: &K) -> bool {
        unreachable!("a Bloom filter cannot remove")
    }
}
