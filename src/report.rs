//! What came of a batch or a bulk operation.

use crate::error::InsertError;

/// What came of an insertion of many keys.
///
/// ```
/// use concurrent_cuckoo_filter::{CuckooFilter, InsertError};
///
/// let filter = CuckooFilter::<String>::with_capacity(1_000);
/// let report = filter.insert_batch(&["again"; 9]);
/// assert_eq!(report.inserted, 8);
/// assert_eq!(report.rejected[0].index, 8);
/// assert!(matches!(report.rejected[0].error, InsertError::TooManyCopies));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "keys may have been refused"]
#[non_exhaustive]
pub struct BulkReport {
    /// Copies that were stored.
    pub inserted: usize,
    /// Keys that were present already, of an operation that stores only absent ones; else 0.
    pub present: usize,
    /// The keys that were refused, by their place in the input, in order.
    pub rejected: Vec<Rejection>,
    /// Refused keys beyond the length that was allowed to `rejected`
    /// ([`Bulk::max_listed`](crate::Bulk::max_listed)).
    pub rejected_unlisted: usize,
}

/// A key that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rejection {
    /// Its place in the slice, or its number in the order in which the iterator gave it, from 0.
    pub index: usize,
    /// Why.
    pub error: InsertError,
}

/// What came of a removal of many keys.
///
/// ```
/// use concurrent_cuckoo_filter::CuckooFilter;
///
/// let filter = CuckooFilter::<String>::with_capacity(1_000);
/// filter.insert("a")?;
/// let report = filter.remove_batch(&["a", "b"]);
/// assert_eq!((report.removed, report.missing), (1, vec![1]));
/// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "keys may have been missing"]
#[non_exhaustive]
pub struct RemoveReport {
    /// Copies that were removed.
    pub removed: usize,
    /// The keys of which no copy was there, by their place in the input, in order.
    pub missing: Vec<usize>,
    /// Missing keys beyond the length that was allowed to `missing`
    /// ([`Bulk::max_listed`](crate::Bulk::max_listed)).
    pub missing_unlisted: usize,
}

impl BulkReport {
    /// Notes what became of the key at `index`; lists at most `max_listed`.
    #[inline(always)]
    pub(crate) fn note(&mut self, index: usize, result: Result<bool, InsertError>, max_listed: usize) {
        match result {
            Ok(true) => self.inserted += 1,
            Ok(false) => self.present += 1,
            Err(error) => self.refuse(index, error, max_listed),
        }
    }

    #[cold]
    #[inline(never)]
    fn refuse(&mut self, index: usize, error: InsertError, max_listed: usize) {
        if self.rejected.len() < max_listed {
            self.rejected.push(Rejection { index, error });
        } else {
            self.rejected_unlisted += 1;
        }
    }

    /// Adds what became of the keys from `begin` on.
    pub(crate) fn append(&mut self, begin: usize, other: Self, max_listed: usize) {
        self.inserted += other.inserted;
        self.present += other.present;
        self.rejected_unlisted += other.rejected_unlisted;
        for Rejection { index, error } in other.rejected {
            self.note(begin + index, Err(error), max_listed);
        }
    }
}

impl RemoveReport {
    /// Notes what became of the key at `index`; lists at most `max_listed`.
    #[inline]
    pub(crate) fn note(&mut self, index: usize, removed: bool, max_listed: usize) {
        if removed {
            self.removed += 1;
        } else if self.missing.len() < max_listed {
            self.missing.push(index);
        } else {
            self.missing_unlisted += 1;
        }
    }

    /// Adds what became of the keys from `begin` on.
    pub(crate) fn append(&mut self, begin: usize, other: Self, max_listed: usize) {
        self.removed += other.removed;
        self.missing_unlisted += other.missing_unlisted;
        for index in other.missing {
            self.note(begin + index, false, max_listed);
        }
    }
}

/// What became of all that another filter held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "what was refused is not stored"]
#[non_exhaustive]
pub struct MergeReport {
    /// Copies that were stored.
    pub inserted: usize,
    /// Copies that were present already, of a [unique merge](crate::CuckooFilter::merge_unique_from); else 0.
    pub present: usize,
    /// Copies that found no room. Of which keys they are is not known: keys are not kept.
    pub refused: usize,
}
