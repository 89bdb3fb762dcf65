//! What single operations say, for operations on many keys to be compared with.

use concurrent_cuckoo_filter::{BulkReport, InsertError};
use testkit::{Filter, builder};

/// One at least of each way in which slots lie in words.
pub(crate) const WIDTHS: [u32; 9] = [4, 6, 8, 12, 13, 16, 17, 24, 32];

pub(crate) fn build(capacity: usize, bits: u32) -> Filter {
    builder(capacity, bits).build().unwrap()
}

pub(crate) fn hashes_of(filter: &Filter, keys: &[u64]) -> Vec<u64> {
    keys.iter().map(|key| filter.hash(key)).collect()
}

/// What `contains` says of each key.
pub(crate) fn answers(filter: &Filter, keys: &[u64]) -> Vec<bool> {
    keys.iter().map(|key| filter.contains(key)).collect()
}

/// Says what was refused.
pub(crate) fn inserted_one_by_one(filter: &Filter, keys: &[u64]) -> Vec<(usize, InsertError)> {
    keys.iter().enumerate().filter_map(|(index, key)| Some((index, filter.insert(key).err()?))).collect()
}

pub(crate) fn refused(report: &BulkReport) -> Vec<(usize, InsertError)> {
    report.rejected.iter().map(|rejection| (rejection.index, rejection.error)).collect()
}

pub(crate) fn indices(report: &BulkReport) -> Vec<usize> {
    report.rejected.iter().map(|rejection| rejection.index).collect()
}

pub(crate) fn is_one_too_many(error: &InsertError) -> bool {
    matches!(error, InsertError::TooManyCopies)
}

/// Of a load of distinct keys beyond what a filter of 32 bits holds: the report is complete and in order, and the filter
/// holds the keys that it does not name.
pub(crate) fn check_overfull(keys: &[u64], filter: &Filter, report: &BulkReport) {
    assert_eq!(report.inserted + report.rejected.len(), keys.len());
    assert_eq!((report.inserted, report.rejected_unlisted), (filter.len(), 0));
    assert!(report.rejected.is_sorted_by(|a, b| a.index < b.index));
    assert!(report.rejected.iter().all(|rejection| matches!(rejection.error, InsertError::Full)));
    let refused = indices(report);
    for (index, key) in keys.iter().enumerate() {
        let stored = refused.binary_search(&index).is_err();
        assert_eq!(filter.count(key), u32::from(stored), "key {key}");
        assert_eq!(filter.contains(key), stored, "key {key}");
    }
}
