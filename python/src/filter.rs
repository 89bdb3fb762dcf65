//! The filter.

use crate::error;
use crate::files::{Interruptible, regular};
use crate::keys::{Hashing, Key, KeyType, helper};
use crate::many;
use crate::mapped::MappedFilter;
use crate::report::{RemoveReport, Report};
use crate::sys::call;
use crate::threads::{KEYS_IN_A_SLICE, detached};
use concurrent_cuckoo_filter::{self as ccf, SnapshotError, SnapshotReader, StableHashBuilder};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::io::{BufReader, Read};
use std::path::PathBuf;

/// An approximate set of texts, bytes or numbers that takes about 14 bits a key.
///
/// "Not in it" is certain; "in it" is wrong for one absent key in a thousand, or as rarely as `false_positive_rate` says.
/// `capacity` is the number of distinct keys that it has room for; with `max_capacity` it grows by itself from there to so many,
/// and takes the memory of the keys that it holds. `key` is their type: "str", "bytes", "i64" or "u64".
/// `keys` are the two numbers of 64 bits that its hash function is keyed with; without them they are random. Filters hash
/// alike if they have the same ones.
///
/// Keys come as what speaks Arrow's C interface (arrays, chunked arrays and columns of pyarrow, polars, pandas, DuckDB), as
/// numpy arrays, or as lists. Integers of other widths and dictionaries are cast. Any number of threads may use one
/// filter: methods that take many keys let go of the interpreter's lock.
///
/// >>> from concurrent_cuckoo_filter import CuckooFilter
/// >>> blocked = CuckooFilter(100_000)
/// >>> blocked.insert(["mailinator.com", "0-mail.com"])
/// Report(inserted=2, present=0, nulls=0, refused=0)
/// >>> "mailinator.com" in blocked, "example.com" in blocked
/// (True, False)
/// >>> blocked.contains(["0-mail.com", "example.com", None]).to_pylist()
/// [True, False, None]
/// >>> len(blocked)
/// 2
#[pyclass(module = "concurrent_cuckoo_filter", frozen)]
pub(crate) struct CuckooFilter {
    filter: ccf::CuckooFilter<Key<'static>, StableHashBuilder>,
    hashing: Hashing,
}

#[pymethods]
impl CuckooFilter {
    #[new]
    #[pyo3(signature = (capacity, false_positive_rate = 0.001, *, max_capacity = None, key = "str", keys = None))]
    fn new(
        capacity: usize,
        false_positive_rate: f64,
        max_capacity: Option<usize>,
        key: &str,
        keys: Option<(u64, u64)>,
    ) -> PyResult<Self> {
        let hashing = Hashing::new(key, keys)?;
        let builder = ccf::CuckooFilter::builder()
            .capacity(capacity)
            .false_positive_rate(false_positive_rate)
            .hasher(hashing.hasher.clone());
        let filter = max_capacity.into_iter().fold(builder, ccf::Builder::max_capacity).build();
        Ok(CuckooFilter { filter: filter.map_err(error::build)?, hashing })
    }

    /// Stores keys, and says what came of them. Each key takes a place of its own, and has to be removed as often as it was stored:
    /// a key has room for 8 copies. Large arrays are stored by all cores.
    ///
    /// With `unique=True` a key that is present is not stored again, nor one that is taken for another: `report.stored` says
    /// which were, and so which are new. **Remove only those that were stored:** who removes the others as well takes away what
    /// other keys stand on.
    ///
    /// Raises `RefusedError` if some keys found no room. The others are stored all the same, and `error.report` tells
    /// which were refused. An interruption ends the call between two parts of the input; what was stored stays.
    ///
    /// >>> from concurrent_cuckoo_filter import CuckooFilter
    /// >>> seen = CuckooFilter(1_000_000)
    /// >>> report = seen.insert(["a", "b"])
    /// >>> seen.insert(["b", "c", None, "c"], unique=True).stored.to_pylist()
    /// [False, True, None, False]
    #[pyo3(signature = (keys, *, unique = false))]
    fn insert(&self, keys: &Bound<'_, PyAny>, unique: bool) -> PyResult<Report> {
        let filter = &self.filter;
        many::insert(&self.hashing, keys, |hashes, stored, pool| match (pool, unique) {
            (Some(pool), true) => {
                pool.install(|| filter.bulk().max_listed(KEYS_IN_A_SLICE).insert_unique_hash(hashes, stored))
            }
            (Some(pool), false) => {
                many::copies(stored, || pool.install(|| filter.bulk().max_listed(KEYS_IN_A_SLICE).insert_hash(hashes)))
            }
            (None, true) => filter.insert_unique_batch_hash(hashes, stored),
            (None, false) => many::copies(stored, || filter.insert_batch_hash(hashes)),
        })
    }

    /// Stores a key if it is absent, and says whether it was. As `insert` with `unique=True`: remove only a key that was stored.
    ///
    /// >>> from concurrent_cuckoo_filter import CuckooFilter
    /// >>> seen = CuckooFilter(100)
    /// >>> seen.add("event 1"), seen.add("event 1")
    /// (True, False)
    fn add(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let stored = self.filter.insert_unique_hash(self.hashing.one(key)?);
        stored.map_err(|error| error::RefusedError::new_err(error.to_string()))
    }

    /// Removes a copy of each key. Remove only what was inserted: a key that never was may be taken for another one, which
    /// is then lost.
    ///
    /// >>> from concurrent_cuckoo_filter import CuckooFilter
    /// >>> numbers = CuckooFilter(100, key="i64")
    /// >>> numbers.insert([1, -2]).inserted
    /// 2
    /// >>> report = numbers.remove([-2, 3])
    /// >>> report.removed, report.missing_at
    /// (1, [1])
    fn remove(&self, keys: &Bound<'_, PyAny>) -> PyResult<RemoveReport> {
        many::remove(&self.hashing, keys, |hashes| self.filter.remove_batch_hash(hashes))
    }

    /// Says of each key whether it is present, as a `pyarrow.BooleanArray`, or as a Series if the keys come as one of pandas or polars;
    /// of a null, null.
    ///
    /// Runs on the calling thread, and on all cores with `parallel=True`. With `check_utf8=False` texts that are not UTF-8 are
    /// looked up as they are.
    ///
    /// >>> import pyarrow as pa
    /// >>> from concurrent_cuckoo_filter import CuckooFilter
    /// >>> blocked = CuckooFilter(100)
    /// >>> _ = blocked.insert(["a"])
    /// >>> blocked.contains(pa.array(["a", "b"])).to_pylist()
    /// [True, False]
    #[pyo3(signature = (keys, *, check_utf8 = true, parallel = false))]
    fn contains<'py>(&self, keys: &Bound<'py, PyAny>, check_utf8: bool, parallel: bool) -> PyResult<Bound<'py, PyAny>> {
        many::contains(&self.hashing, keys, check_utf8, parallel, |hashes, found| {
            self.filter.contains_batch_hash(hashes, found);
        })
    }

    /// As `contains`, without options: for what counts the parameters of a function, such as DuckDB's `create_function`.
    fn contains_batch<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.contains(keys, true, false)
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.filter.contains_hash(self.hashing.one(key)?))
    }

    fn __len__(&self) -> usize {
        self.filter.len()
    }

    /// Stores all that another filter holds, which was made with the same capacity, rate, `key` and `keys`. Keys of both are
    /// held twice afterwards.
    ///
    /// >>> from concurrent_cuckoo_filter import CuckooFilter
    /// >>> one, other = (CuckooFilter(100, keys=(1, 2)) for _ in range(2))
    /// >>> _ = one.insert(["a"]), other.insert(["b"])
    /// >>> one.merge(other)
    /// Report(inserted=1, present=0, nulls=0, refused=0)
    /// >>> "b" in one
    /// True
    fn merge(&self, py: Python<'_>, other: &Self) -> PyResult<Report> {
        if self.hashing.key_type != other.hashing.key_type {
            return Err(error::merge_of_types(self.key(), other.key()));
        }
        let merged = detached(py, || self.filter.merge_from(&other.filter));
        let ccf::MergeReport { inserted, refused, .. } = merged.map_err(error::merge)?;
        error::unless_refused(py, Report { inserted, refused, ..Report::default() })
    }

    /// Writes the filter to a file, in place of an older one: whatever stops the program meanwhile, the file is the old
    /// one or the new one. Other threads may go on. `target` is a path, a URL that fsspec knows ("s3://bucket/blocked"), or a file that is
    /// open for bytes; of the latter two the bytes are made in memory first.
    ///
    /// >>> import os, tempfile
    /// >>> from concurrent_cuckoo_filter import CuckooFilter
    /// >>> path = os.path.join(tempfile.mkdtemp(), "blocked.cuckoo")
    /// >>> blocked = CuckooFilter(100)
    /// >>> _ = blocked.insert(["a"])
    /// >>> blocked.save(path)
    /// >>> "a" in CuckooFilter.load(path)
    /// True
    fn save(slf: &Bound<'_, Self>, target: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = slf.py();
        call(&helper(py, "write")?, (slf, target).into_pyobject(py)?).map(drop)
    }

    fn _save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let snapshot = self.filter.snapshot().key_type(self.hashing.key_type.saved());
        detached(py, || snapshot.save(path)).map_err(error::snapshot)
    }

    /// Reads a filter from what `save` or Rust has written, a path, a URL or an open file, with everything checked.
    #[staticmethod]
    fn load(py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<Self> {
        let source = call(&helper(py, "readable")?, (source,).into_pyobject(py)?)?;
        if source.is_instance_of::<PyBytes>() {
            return Self::from_bytes(py, source.extract()?);
        }
        let path: PathBuf = source.extract()?;
        py.detach(|| read(BufReader::with_capacity(1 << 20, Interruptible::new(regular(&path)?))))
    }

    /// The bytes of a file that `save` writes. Pickle keeps the same.
    ///
    /// >>> import pickle
    /// >>> from concurrent_cuckoo_filter import CuckooFilter
    /// >>> blocked = CuckooFilter(100)
    /// >>> _ = blocked.insert(["a"])
    /// >>> "a" in CuckooFilter.from_bytes(blocked.to_bytes()), "a" in pickle.loads(pickle.dumps(blocked))
    /// (True, True)
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        let snapshot = self.filter.snapshot().key_type(self.hashing.key_type.saved());
        detached(py, || snapshot.write_to(&mut bytes)).map_err(error::snapshot)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Reads a filter from the bytes of a file, with everything checked.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: PyBackedBytes) -> PyResult<Self> {
        py.detach(|| read(&data[..]))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().to_bytes(slf.py())?,)))
    }

    /// A filter of its own that holds the same.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        let filter = detached(py, || self.filter.try_clone()).map_err(error::build)?;
        Ok(CuckooFilter { filter, hashing: self.hashing.clone() })
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.copy(py)
    }

    /// A new filter with all that both hold, as `copy` and `merge`.
    fn __or__(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        let both = self.copy(py)?;
        both.merge(py, other)?;
        Ok(both)
    }

    /// Removes all keys.
    fn clear(&self, py: Python<'_>) {
        detached(py, || self.filter.clear());
    }

    /// Opens a file that `save` has written, to be asked where it lies: in less than a millisecond whatever its size, in memory
    /// that all processes of a machine share. See `MappedFilter`.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<MappedFilter> {
        py.detach(|| MappedFilter::open(path))
    }

    /// The number of keys that was asked for.
    #[getter]
    fn capacity(&self) -> usize {
        self.filter.capacity()
    }

    /// The number of keys that it grows to: the capacity, if it does not grow.
    ///
    /// >>> from concurrent_cuckoo_filter import CuckooFilter
    /// >>> growing = CuckooFilter(1_000, max_capacity=1_000_000, key="i64")
    /// >>> before = growing.nbytes
    /// >>> growing.insert(range(100_000)).refused, growing.nbytes > 2 * before, growing.max_capacity
    /// (0, True, 1000000)
    #[getter]
    fn max_capacity(&self) -> usize {
        self.filter.max_capacity()
    }

    /// The type of the keys: "str", "bytes", "i64" or "u64".
    #[getter]
    fn key(&self) -> &'static str {
        self.hashing.key_type.name()
    }

    /// The keys of the hash function. Whoever knows them can compute keys that collide.
    #[getter]
    fn keys(&self) -> (u64, u64) {
        self.hashing.keys()
    }

    /// Bytes of memory, everything included.
    #[getter]
    fn nbytes(&self) -> usize {
        self.filter.memory_usage()
    }

    /// The part of absent keys that is taken for present now. It grows with what the filter holds.
    #[getter]
    fn expected_false_positive_rate(&self) -> f64 {
        self.filter.expected_false_positive_rate()
    }

    fn __repr__(&self) -> String {
        let (len, capacity, max_capacity, key) = (self.__len__(), self.capacity(), self.max_capacity(), self.key());
        let grows = if max_capacity > capacity { format!(", max_capacity={max_capacity}") } else { String::new() };
        format!("<CuckooFilter of {len} keys, capacity={capacity}{grows}, key={key:?}>")
    }
}

/// Reads a filter that nothing follows.
fn read(mut reader: impl Read) -> PyResult<CuckooFilter> {
    let snapshot = SnapshotReader::new(&mut reader).map_err(error::snapshot)?;
    let key_type = KeyType::of(snapshot.header())?;
    let filter: ccf::CuckooFilter<_, StableHashBuilder> =
        snapshot.into_filter_with_stored_keys().map_err(error::snapshot)?;
    if reader.read(&mut [0]).map_err(|error| error::snapshot(error.into()))? > 0 {
        return Err(error::snapshot(SnapshotError::TrailingBytes));
    }
    let hashing = Hashing { key_type, hasher: filter.hasher().clone() };
    Ok(CuckooFilter { filter, hashing })
}
