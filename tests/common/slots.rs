//! The size of a table, which a filter does not tell.

use concurrent_cuckoo_filter::CuckooFilter;

/// Of a filter that holds something.
pub(super) fn slots<K: ?Sized, S>(filter: &CuckooFilter<K, S>) -> f64 {
    (filter.len() as f64 / filter.load_factor()).round()
}
