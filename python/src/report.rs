//! What operations return.

use concurrent_cuckoo_filter::BulkReport;
use pyo3::prelude::*;

/// What came of an insertion.
///
/// >>> from concurrent_cuckoo_filter import CuckooFilter
/// >>> CuckooFilter(1000).insert(["a", "b", "a", None], unique=True)
/// Report(inserted=2, present=1, nulls=1, refused=0)
#[pyclass(module = "concurrent_cuckoo_filter", frozen, get_all)]
#[derive(Default)]
pub(crate) struct Report {
    /// Keys that were stored.
    pub(crate) inserted: usize,
    /// Keys that were present already, or taken for one that was.
    pub(crate) present: usize,
    /// Nulls, of which nothing is stored.
    pub(crate) nulls: usize,
    /// Keys that found no room.
    pub(crate) refused: usize,
    /// Of each key, whether it was stored, in the form in which `CuckooFilter.contains` answers; of a null, null. With `unique=True` these
    /// are the keys that are new, and the ones to remove later. None for keys that did not come as an array.
    pub(crate) stored: Option<Py<PyAny>>,
    /// Where the refused keys stood in the input, the first million of them.
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
        self.refused += report.rejected.len() + report.rejected_unlisted;
        let room = LISTED - self.refused_at.len();
        self.refused_at.extend(report.rejected.iter().take(room).map(|rejection| at(rejection.index)));
    }
}

/// What came of a removal.
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
    /// Copies that were removed.
    pub(crate) removed: usize,
    /// Keys of which there was none.
    pub(crate) missing: usize,
    /// Nulls.
    pub(crate) nulls: usize,
    /// Where the missing keys stood in the input, the first million of them.
    pub(crate) missing_at: Vec<usize>,
}

#[pymethods]
impl RemoveReport {
    fn __repr__(&self) -> String {
        let RemoveReport { removed, missing, nulls, .. } = self;
        format!("RemoveReport(removed={removed}, missing={missing}, nulls={nulls})")
    }
}
