//! This crate.

use crate::field::{Key, Size};
use crate::set::Set;
use concurrent_cuckoo_filter::CuckooFilter;

/// Its name among the contestants.
pub const NAME: &str = "this crate";

/// A filter with as many slots as the size says, within 0.1 % from 2^16 on.
pub fn build<K: Key>(size: Size) -> CuckooFilter<K> {
    let slots = size.slots as f64;
    let mut capacity = (slots * 0.965) as usize;
    while capacity as f64 / 0.965 + (2.5 * (capacity as f64).sqrt()).min(2000.0) + 14.0 > slots {
        capacity -= 1;
    }
    CuckooFilter::builder().capacity(capacity).fingerprint_bits(size.bits).build().expect("a possible filter")
}

impl<K: Key> Set<K> for CuckooFilter<K> {
    #[inline]
    fn insert(&self, key: &K) -> bool {
        CuckooFilter::insert(self, key).is_ok()
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        CuckooFilter::contains(self, key)
    }

    #[inline]
    fn remove(&self, key: &K) -> bool {
        CuckooFilter::remove(self, key)
    }
}
