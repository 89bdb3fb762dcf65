//! The crate scalable_cuckoo_filter. Written through `&mut`, so shared behind a lock for the whole of it, which
//! lookups take too. A first filter of a power of two of buckets; what it cannot place goes to a list, and it adds a
//! filter of twice the size.

use crate::field::{Key, Size};
use crate::set::Set;
use ahash::{AHasher, RandomState};
use parking_lot::RwLock;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use scalable_cuckoo_filter::{ScalableCuckooFilter, ScalableCuckooFilterBuilder};
use std::hash::BuildHasher;

/// The filter behind its lock.
pub type ScalableCuckoo<K> = RwLock<ScalableCuckooFilter<K, AHasher, SmallRng>>;

/// A filter of which the first part has as many slots as the size says.
pub fn build<K: Key>(size: Size) -> ScalableCuckoo<K> {
    // The first part halves the rate that was asked for, and a lookup compares 8 fingerprints: 4 bits in all.
    let rate = 0.5f64.powi(size.bits as i32 - 4);
    let filter = ScalableCuckooFilterBuilder::new()
        .initial_capacity(size.slots)
        .false_positive_probability(rate)
        .hasher(RandomState::new().build_hasher())
        .rng(SmallRng::seed_from_u64(fastrand::u64(..)))
        .finish();
    RwLock::new(filter)
}

impl<K: Key> Set<K> for ScalableCuckoo<K> {
    #[inline]
    fn insert(&self, key: &K) -> bool {
        self.write().insert(key);
        true
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        self.read().contains(key)
    }

    #[inline]
    fn remove(&self, key: &K) -> bool {
        self.write().remove(key)
    }
}
