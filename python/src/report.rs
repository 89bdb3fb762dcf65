//! The reports that methods return.

use concurrent_cuckoo_filter::BulkReport;
use pyo3::prelude::*;

/// The outcome of an insertion.
///
/// >>> from concurrent_cuckoo_filter import CuckooFilter
/// >>> CuckooFilter(1000).insert(["a", "b", "a", None], unique=True)
/// Report(inserted=2, present=1, nulls=1, refused=0)
#[pyclass(module = "concurrent_cuckoo_filter", frozen, get_all)]
#[derive(Default)]
pub(crate) struct Report {
    /// The number of stored keys.
    pub(crate) inserted: usize,
    /// The number of keys that were not stored because they were present, or were false positives.
    pub(crate) present: usize,
    /// The number of nulls, which are never stored.
    pub(crate) nulls: usize,
    /// The number of keys that found no room.
    pub(crate) refused: usize,
    /// A mask that is true for stored keys and null for nulls, of the type that `contains` returns. After `insert` with `unique=True`,
    /// the stored keys are the new ones, and the only ones that may be removed later. None in reports of `merge` and `build_part`.
    pub(crate) stored: Option<Py<PyAny>>,
    /// The indices of the first million refused keys in the input.
    pub(crate) refused_at: Vec<usize>,
}

/// Refused or missing keys that are listed.
pub(crate) const LISTED: usize = 1_000_000;

#[pymethods]
impl Report {
    fn __repr__(&self) -> String {
        let Report { inserted, present, nulls, refused, .. } = self;
        format!("Report(inserted={inserted}, present={present}, nulls={nulls}, refused={refused})")
    }
}

impl Report {
    /// Adds what came of keys of which `at` tells where they stood.
    pub(crate) fn add(&mut self, report: BulkReport, at: impl Fn(usize) -> usize) {
        self.inserted += report.inserted;
        self.present += report.present;
        self.refused += report.refused.len() + report.refused_unlisted;
        let room = LISTED - self.refused_at.len();
        self.refused_at.extend(report.refused.iter().take(room).map(|refusal| at(refusal.index)));
    }
}

/// The outcome of a removal.
///
/// >>> from concurrent_cuckoo_filter import CuckooFilter
/// >>> blocked = CuckooFilter(1000)
/// >>> blocked.insert(["a"])
/// Report(inserted=1, present=0, nulls=0, refused=0)
/// >>> blocked.remove(["a", "b", None])
/// RemoveReport(removed=1, missing=1, nulls=1)
#[pyclass(module = "concurrent_cuckoo_filter", frozen, get_all)]
#[derive(Default)]
pub(crate) struct RemoveReport {
    /// The number of removed copies.
    pub(crate) removed: usize,
    /// The number of keys that had no copy.
    pub(crate) missing: usize,
    /// The number of nulls.
    pub(crate) nulls: usize,
    /// The indices of the first million missing keys in the input.
    pub(crate) missing_at: Vec<usize>,
}

#[pymethods]
impl RemoveReport {
    fn __repr__(&self) -> String {
        let RemoveReport { removed, missing, nulls, .. } = self;
        format!("RemoveReport(removed={removed}, missing={missing}, nulls={nulls})")
    }
}
