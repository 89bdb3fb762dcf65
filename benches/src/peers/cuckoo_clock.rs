//! The crate cuckoo-clock. Shared as it is: a mutex and an allocation for each bucket, which lookups lock too. Whole
//! bytes a fingerprint in memory, a power of two of buckets; equal fingerprints of a bucket are stored once, so a
//! removal can lose another key.

use crate::field::{Key, Size};
use crate::set::Set;
use ahash::RandomState;
use cuckoo_clock::CuckooFilter;
use cuckoo_clock::config::{BitCount, CuckooConfiguration};

/// The filter, without its clocks and counters.
pub type CuckooClock = CuckooFilter<RandomState>;

/// A filter with as many slots as the size says.
pub fn build(size: Size) -> CuckooClock {
    let bits = BitCount::try_from(size.bits as usize).expect("a possible width");
    let configuration = CuckooConfiguration::builder(size.slots).fingerprint_bits(bits).build();
    CuckooFilter::new(configuration.expect("a possible filter"), RandomState::new())
}

impl<K: Key> Set<K> for CuckooClock {
    #[inline]
    fn insert(&self, key: &K) -> bool {
        CuckooClock::insert(self, key).is_none()
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        CuckooClock::contains(self, key)
    }

    #[inline]
    fn remove(&self, key: &K) -> bool {
        CuckooClock::remove(self, key)
    }
}
