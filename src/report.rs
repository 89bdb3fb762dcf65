//! What came of a batch or a bulk operation.

use crate::error::InsertError;

/// What came of an insertion of many keys.
///
/// ```
/// use concurrent_cuckoo_filter::{CuckooFilter, InsertError};
///
/// let filter = CuckooFilter::<str>::with_capacity(1_000);
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
/// let filter = CuckooFilter::<str>::with_capacity(1_000);
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
    /// Adds the report of later keys, the first of which is number `before`.
    pub(crate) fn append(&mut self, later: BulkReport, before: usize, max_listed: usize) {
        self.inserted += later.inserted;
        self.rejected_unlisted += later.rejected_unlisted;
        for Rejection { index, error } in later.rejected {
            self.note(before + index, Err(error), max_listed);
        }
    }

    /// Notes what became of the key at `index`; lists at most `max_listed`.
    #[inline]
    pub(crate) fn note(&mut self, index: usize, result: Result<(), InsertError>, max_listed: usize) {
        match result {
            Ok(()) => self.inserted += 1,
            Err(error) if self.rejected.len() < max_listed => self.rejected.push(Rejection { index, error }),
            Err(_) => self.rejected_unlisted += 1,
        }
    }
}

impl RemoveReport {
    /// Adds the report of later keys, the first of which is number `before`.
    pub(crate) fn append(&mut self, later: RemoveReport, before: usize, max_listed: usize) {
        self.removed += later.removed;
        self.missing_unlisted += later.missing_unlisted;
        for index in later.missing {
            self.note(before + index, false, max_listed);
        }
    }

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
}

/// What became of all that another filter held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "what was refused is not stored"]
#[non_exhaustive]
pub struct MergeReport {
    /// Copies that were stored.
    pub inserted: usize,
    /// Copies that found no room. Of which keys they are is not known: keys are not kept.
    pub refused: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_insertions_are_put_one_behind_the_other() {
        let refused = |index| Rejection { index, error: InsertError::Full };
        let report = |inserted, rejected: &[usize], rejected_unlisted| BulkReport {
            inserted,
            rejected: rejected.iter().copied().map(refused).collect(),
            rejected_unlisted,
        };
        let mut sum = report(10, &[3], 2);
        sum.append(report(5, &[0, 4], 1), 100, 3);
        assert_eq!(sum, report(15, &[3, 100, 104], 3));
        sum.append(report(7, &[6], 0), 200, 3);
        assert_eq!(sum, report(22, &[3, 100, 104], 4));
    }

    #[test]
    fn reports_of_removals_are_put_one_behind_the_other() {
        let report = |removed, missing: &[usize], missing_unlisted| RemoveReport {
            removed,
            missing: missing.into(),
            missing_unlisted,
        };
        let mut sum = report(10, &[3], 2);
        sum.append(report(5, &[0, 4], 1), 100, 3);
        assert_eq!(sum, report(15, &[3, 100, 104], 3));
        sum.append(report(7, &[6], 0), 200, 3);
        assert_eq!(sum, report(22, &[3, 100, 104], 4));
    }
}
