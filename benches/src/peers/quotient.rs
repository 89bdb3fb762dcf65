//! The quotient filter of the crate qfilter. Written through `&mut`, so shared behind a lock for the whole of it, which
//! lookups take too. A power of two of slots, of which it fills 95 %.

use crate::field::{Key, Size};
use crate::set::Set;
use ahash::RandomState;
use parking_lot::RwLock;
use qfilter::Filter;

/// The filter behind its lock.
pub type Quotient = RwLock<Filter<Box<[u8]>, RandomState>>;

/// A filter with as many slots as the size says, each of about as many bits: it spends 2.125 on finding remainders.
pub fn build(size: Size) -> Quotient {
    let capacity = size.slots as u64 * 19 / 20;
    let rate = 0.5f64.powi(size.bits as i32 - 2);
    RwLock::new(Filter::new_with_hasher(capacity, rate, RandomState::new()).expect("a possible filter"))
}

impl<K: Key> Set<K> for Quotient {
    #[inline]
    fn insert(&self, key: &K) -> bool {
        // As its documentation asks of filters that keys are removed from.
        self.write().insert_duplicated(key).is_ok()
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
