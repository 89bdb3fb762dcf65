//! The reports of batches and bulk operations.

use crate::error::InsertError;

/// The result of an insertion of many keys.
///
/// ```
/// use concurrent_cuckoo_filter::{CuckooFilter, InsertError};
///
/// let filter = CuckooFilter::<String>::with_capacity(1_000);
/// let report = filter.insert_batch(&["again"; 9]);
/// assert_eq!(report.inserted, 8);
/// assert_eq!(report.refused[0].index, 8);
/// assert!(matches!(report.refused[0].error, InsertError::TooManyCopies));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "keys may have been refused"]
#[non_exhaustive]
pub struct BulkReport {
    /// The number of stored copies.
    pub inserted: usize,
    /// The number of keys that were already present; 0 for operations that store present keys, too.
    pub present: usize,
    /// The refused keys in the order of the input, each with its index and the reason.
    pub refused: Vec<Refusal>,
    /// The number of refused keys that `refused` does not list ([`Bulk::max_listed`](crate::Bulk::max_listed)).
    pub refused_unlisted: usize,
}

/// A refused key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The index of the key in the slice or in the sequence of the iterator, from 0.
    pub index: usize,
    /// The reason.
    pub error: InsertError,
}

/// The result of a removal of many keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "keys may have been missing"]
#[non_exhaustive]
pub struct RemoveReport {
    /// The number of removed copies.
    pub removed: usize,
    /// The indices of absent keys in the input, in order.
    pub missing: Vec<usize>,
    /// The number of absent keys that `missing` does not list ([`Bulk::max_listed`](crate::Bulk::max_listed)).
    pub missing_unlisted: usize,
}

/// Lists at most `most` items, and counts the others.
#[cold]
#[inline(never)]
fn list<T>(listed: &mut Vec<T>, unlisted: &mut usize, item: T, most: usize) {
    if listed.len() < most {
        listed.push(item);
    } else {
        *unlisted += 1;
    }
}

/// The report of an operation in batches.
pub(crate) trait Report: Default + Send {
    /// Appends the report of the keys from `begin` on; lists at most `max_listed`.
    fn append(&mut self, begin: usize, other: Self, max_listed: usize);
}

impl BulkReport {
    /// Records the result for the key at `index`; lists at most `max_listed`.
    #[inline(always)]
    pub(crate) fn note(&mut self, index: usize, result: Result<bool, InsertError>, max_listed: usize) {
        match result {
            Ok(true) => self.inserted += 1,
            Ok(false) => self.present += 1,
            Err(error) => list(&mut self.refused, &mut self.refused_unlisted, Refusal { index, error }, max_listed),
        }
    }
}

impl Report for BulkReport {
    fn append(&mut self, begin: usize, other: Self, max_listed: usize) {
        self.inserted += other.inserted;
        self.present += other.present;
        self.refused_unlisted += other.refused_unlisted;
        for Refusal { index, error } in other.refused {
            self.note(begin + index, Err(error), max_listed);
        }
    }
}

impl RemoveReport {
    /// Records the result for the key at `index`; lists at most `max_listed`.
    #[inline]
    pub(crate) fn note(&mut self, index: usize, removed: bool, max_listed: usize) {
        if removed {
            self.removed += 1;
        } else {
            list(&mut self.missing, &mut self.missing_unlisted, index, max_listed);
        }
    }
}

impl Report for RemoveReport {
    fn append(&mut self, begin: usize, other: Self, max_listed: usize) {
        self.removed += other.removed;
        self.missing_unlisted += other.missing_unlisted;
        other.missing.into_iter().for_each(|index| self.note(begin + index, false, max_listed));
    }
}

/// The result of a merge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "copies may have been refused"]
#[non_exhaustive]
pub struct MergeReport {
    /// The number of stored copies.
    pub inserted: usize,
    /// The number of copies that were already present, for a [unique merge](crate::CuckooFilter::merge_unique_from); 0 otherwise.
    pub present: usize,
    /// The number of copies refused for lack of room. Their keys are unknown, since filters do not store keys.
    pub refused: usize,
}
