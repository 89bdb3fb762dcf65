//! Filters built on several machines: the placement of keys, and the parts, from hashes to files.

use crate::error;
use crate::files::Interruptible;
use crate::keys::{Column, Hashing, Key, imported};
use crate::kinds::builder;
use crate::many::{Report, answers, hashes};
use crate::threads::{detached, in_slices};
use arrow_array::{Int32Array, UInt64Array};
use concurrent_cuckoo_filter::{self as ccf, SnapshotReader, StableHashBuilder, kind};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::path::PathBuf;

/// The placement of keys in a filter, without its memory.
#[pyclass(frozen, subclass)]
pub(crate) struct Layout {
    layout: ccf::Layout<Key<'static>, StableHashBuilder>,
    hashing: Hashing,
    /// The requested capacity, in keys.
    #[pyo3(get)]
    capacity: usize,
    /// The requested false-positive rate.
    #[pyo3(get)]
    false_positive_rate: f64,
    /// The number of shards, which is the largest number of parts.
    #[pyo3(get)]
    shards: usize,
    /// The memory of the whole filter in bytes.
    #[pyo3(get)]
    nbytes: usize,
}

#[pymethods]
impl Layout {
    #[new]
    fn new(capacity: usize, false_positive_rate: f64, key: &str, keys: Option<(u64, u64)>) -> PyResult<Self> {
        let hashing = Hashing::new(key, keys)?;
        let builder = builder::<kind::Plain>((&hashing, capacity, false_positive_rate, None));
        let nbytes = builder.memory_usage().map_err(error::build)?;
        let layout = builder.layout().map_err(error::build)?;
        let shards = layout.part(0, 1).end;
        Ok(Layout { layout, hashing, capacity, false_positive_rate, shards, nbytes })
    }

    fn _hash<'py>(&self, py: Python<'py>, keys: &Bound<'py, PyAny>, check_utf8: bool) -> PyResult<Bound<'py, PyAny>> {
        let column = Column::new(&self.hashing, keys, check_utf8, false)?;
        let mut all = vec![0; column.len()];
        in_slices(py, column.len(), |slice| hashes(&column, slice.start, &mut all[slice]))?;
        answers(py.None().bind(py), &UInt64Array::new(all.into(), column.validity(0..column.len())))
    }

    /// Returns the part of each hash of an array, given by its capsules.
    fn _part_of<'py>(&self, hashes: &Bound<'py, PyAny>, parts: usize) -> PyResult<Bound<'py, PyAny>> {
        let numbers = imported::<u64>(hashes)?;
        let part = |hash: &u64| self.layout.part_of_hash(*hash, parts) as i32;
        let all: Vec<i32> = hashes.py().detach(|| numbers.iter().map(part).collect());
        answers(hashes, &Int32Array::from(all))
    }

    fn _part(&self, number: usize, parts: usize) -> (usize, usize) {
        let Range { start, end } = self.layout.part(number, parts);
        (start, end)
    }

    /// The type of the keys.
    #[getter]
    fn key(&self) -> &'static str {
        self.hashing.key_type.name()
    }

    /// The keys of the hash function.
    #[getter]
    fn keys(&self) -> (u64, u64) {
        self.hashing.keys()
    }
}

/// Builds these shards from arrays of hashes, and writes them to a file if no key was refused.
#[pyfunction]
pub(crate) fn build_part(
    py: Python<'_>,
    layout: &Layout,
    shards: (usize, usize),
    batches: &Bound<'_, PyAny>,
    path: PathBuf,
    unique: bool,
) -> PyResult<Report> {
    let builder = builder::<kind::Plain>((&layout.hashing, layout.capacity, layout.false_positive_rate, None));
    let built = builder.build_shards(shards.0..shards.1).map_err(error::build)?;
    let (mut report, mut before) = (Report::default(), 0);
    for batch in batches.try_iter()? {
        let hashes = imported::<u64>(&batch?)?;
        in_slices(py, hashes.len(), |slice| {
            let (at, hashes) = (before + slice.start, &hashes[slice]);
            let stored = if unique {
                built.insert_unique_batch(hashes, &mut vec![false; hashes.len()])
            } else {
                built.insert_batch(hashes)
            };
            report.add(stored.map_err(|error| PyValueError::new_err(error.to_string()))?, |index| at + index);
            Ok(())
        })?;
        before += hashes.len();
    }
    if report.refused == 0 {
        let snapshot = built.snapshot().key_type(layout.hashing.key_type.saved());
        detached(py, || snapshot.save(path)).map_err(error::snapshot)?;
    }
    Ok(report)
}

/// Joins the files of all parts into one.
#[pyfunction]
pub(crate) fn join(py: Python<'_>, parts: Vec<PathBuf>, path: PathBuf) -> PyResult<()> {
    py.detach(|| {
        let open = |part| Ok(BufReader::with_capacity(1 << 16, Interruptible::new(File::open(part)?)));
        let parts = parts.into_iter().map(open).collect::<PyResult<Vec<_>>>()?;
        SnapshotReader::join_to_file(parts, path).map(drop).map_err(error::snapshot)
    })
}
