//! Filters that are built on several machines: the placement of their keys, and their parts, from hashes to files.

use crate::error;
use crate::files::Interruptible;
use crate::keys::{self, Column, Hashing, Key};
use crate::many::{answers, hashes};
use crate::report::Report;
use crate::threads::{detached, in_slices};
use arrow_array::{Int32Array, UInt64Array};
use concurrent_cuckoo_filter::{self as ccf, SnapshotReader, StableHashBuilder};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyRange};
use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::path::PathBuf;

/// The placement of keys in a filter, without its memory, to build the filter in parts on several machines.
///
/// It takes the arguments of `CuckooFilter` and can be pickled. Each machine hashes its keys (`hash`) and sends the hashes, 8 bytes each,
/// to the machine of their part (`part_of`), which calls `build_part`. `join` then joins the files of the parts.
///
/// >>> import os, tempfile
/// >>> from concurrent_cuckoo_filter import CuckooFilter, Layout, build_part, join
/// >>> layout = Layout(1_000_000)
/// >>> hashes = layout.hash([f"site-{number}.example" for number in range(10_000)])
/// >>> part = layout.part_of(hashes, 2)
/// >>> folder = tempfile.mkdtemp()
/// >>> paths = [os.path.join(folder, f"part-{number}") for number in range(2)]
/// >>> import pyarrow.compute as pc
/// >>> for number, path in enumerate(paths):
/// ...     _ = build_part(layout, number, 2, [hashes.filter(pc.equal(part, number))], path)
/// >>> join(paths, os.path.join(folder, "all"))
/// >>> "site-77.example" in CuckooFilter.load(os.path.join(folder, "all"))
/// True
#[pyclass(module = "concurrent_cuckoo_filter", frozen)]
pub(crate) struct Layout {
    layout: ccf::Layout<Key<'static>, StableHashBuilder>,
    hashing: Hashing,
    /// The requested capacity, in keys.
    #[pyo3(get)]
    capacity: usize,
    /// The requested rate of false positives.
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
    #[pyo3(signature = (capacity, false_positive_rate = 0.001, *, key = "str", keys = None))]
    fn new(capacity: usize, false_positive_rate: f64, key: &str, keys: Option<(u64, u64)>) -> PyResult<Self> {
        let hashing = Hashing::new(key, keys)?;
        let builder = builder(capacity, false_positive_rate, &hashing);
        let nbytes = builder.memory_usage().map_err(error::build)?;
        let layout = builder.layout().map_err(error::build)?;
        let shards = layout.part(0, 1).end;
        Ok(Layout { layout, hashing, capacity, false_positive_rate, shards, nbytes })
    }

    /// For pickle.
    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((usize, f64), Bound<'py, PyDict>)> {
        let named = PyDict::new(py);
        named.set_item("key", self.key())?;
        named.set_item("keys", self.keys())?;
        Ok(((self.capacity, self.false_positive_rate), named))
    }

    /// Returns the hashes of keys as a `pyarrow.UInt64Array`; the hash of a null is null. With `check_utf8=False`, strings that are not valid
    /// UTF-8 are hashed by their bytes.
    ///
    /// >>> from concurrent_cuckoo_filter import Layout
    /// >>> Layout(1000, keys=(1, 2)).hash(["key", None])
    /// <pyarrow.lib.UInt64Array object at ...>
    /// [
    ///   10880162054320443295,
    ///   null
    /// ]
    #[pyo3(signature = (keys, *, check_utf8 = true))]
    fn hash<'py>(&self, py: Python<'py>, keys: &Bound<'py, PyAny>, check_utf8: bool) -> PyResult<Bound<'py, PyAny>> {
        let column = Column::new(&self.hashing, keys, check_utf8, false)?;
        let mut all = vec![0; column.len()];
        in_slices(py, column.len(), |slice| hashes(&column, slice.start, &mut all[slice]))?;
        answers(keys, &UInt64Array::new(all.into(), column.validity(0..column.len())))
    }

    /// Returns the number of the part of each hash, from 0 to `parts` - 1, as a `pyarrow.Int32Array`.
    fn part_of<'py>(&self, py: Python<'py>, hashes: &Bound<'py, PyAny>, parts: usize) -> PyResult<Bound<'py, PyAny>> {
        check_parts(parts)?;
        let numbers = keys::numbers::<u64>(py, "hashes", (hashes,))?;
        let part = |hash: &u64| self.layout.part_of_hash(*hash, parts) as i32;
        let all: Vec<i32> = py.detach(|| numbers.iter().map(part).collect());
        answers(hashes, &Int32Array::from(all))
    }

    /// Returns the range of the shards in one of `parts` parts.
    ///
    /// >>> from concurrent_cuckoo_filter import Layout
    /// >>> Layout(2_500_000).part(1, 3)
    /// range(3, 6)
    fn part<'py>(&self, py: Python<'py>, number: usize, parts: usize) -> PyResult<Bound<'py, PyRange>> {
        let Range { start, end } = self.shards_of(number, parts)?;
        PyRange::new(py, start as isize, end as isize)
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

    fn __repr__(&self) -> String {
        format!("<Layout of {} keys in {} shards, key={:?}>", self.capacity, self.shards, self.key())
    }
}

impl Layout {
    fn shards_of(&self, number: usize, parts: usize) -> PyResult<Range<usize>> {
        check_parts(parts)?;
        if number >= parts {
            return Err(PyValueError::new_err(format!(
                "part {number} of {parts} was requested; they are numbered from 0"
            )));
        }
        Ok(self.layout.part(number, parts))
    }
}

fn builder(capacity: usize, rate: f64, hashing: &Hashing) -> ccf::Builder<Key<'static>, StableHashBuilder> {
    ccf::CuckooFilter::builder().capacity(capacity).false_positive_rate(rate).hasher(hashing.hasher.clone())
}

fn check_parts(parts: usize) -> PyResult<()> {
    if (1..=i32::MAX as usize).contains(&parts) {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("{parts} parts were requested; 1 to {} are possible", i32::MAX)))
}

/// Builds part `part` of `parts` from hashes, and writes it to a file. It allocates the memory of this part only, and runs on the calling
/// thread.
///
/// `batches` is an iterable of arrays of hashes from `layout.hash`, all of this part (see `layout.part_of`). With `unique=True`, repeated
/// keys are stored once.
///
/// Raises `RefusedError` with a report if keys found no room, and writes no file then.
#[pyfunction]
#[pyo3(signature = (layout, part, parts, batches, path, *, unique = true))]
pub(crate) fn build_part(
    py: Python<'_>,
    layout: &Bound<'_, Layout>,
    part: usize,
    parts: usize,
    batches: &Bound<'_, PyAny>,
    path: PathBuf,
    unique: bool,
) -> PyResult<Report> {
    let layout = layout.get();
    let (shards, builder) =
        (layout.shards_of(part, parts)?, builder(layout.capacity, layout.false_positive_rate, &layout.hashing));
    let built = builder.build_shards(shards).map_err(error::build)?;
    let (mut report, mut before) = (Report::default(), 0);
    for batch in batches.try_iter()? {
        let hashes = keys::numbers::<u64>(py, "hashes", (batch?,))?;
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
    let report = error::unless_refused(py, report)?;
    let snapshot = built.snapshot().key_type(layout.hashing.key_type.saved());
    detached(py, || snapshot.save(path)).map_err(error::snapshot)?;
    Ok(report)
}

/// Joins the files of all parts, in any order, into one file for `CuckooFilter.load`, which replaces an older one. One shard is in memory
/// at a time, so the filter may be larger than memory.
///
/// Raises `SnapshotError` if a part is missing, repeated or of another filter, and `OSError` for an error of the file system. An older file
/// stays then.
#[pyfunction]
pub(crate) fn join(py: Python<'_>, parts: Vec<PathBuf>, path: PathBuf) -> PyResult<()> {
    py.detach(|| {
        let open = |part: &PathBuf| {
            let file = File::open(part).map_err(|error| error::of_file(error, part))?;
            Ok(BufReader::with_capacity(1 << 16, Interruptible::new(file)))
        };
        let parts = parts.iter().map(open).collect::<PyResult<Vec<_>>>()?;
        SnapshotReader::join_to_file(parts, path).map(drop).map_err(error::snapshot)
    })
}
