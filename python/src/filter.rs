//! What the classes have in common: lookups, and all that does not depend on what a filter keeps beside its keys.

use crate::error;
use crate::files;
use crate::hashed::{Hashed, Hashers};
use crate::keys::{Hashing, KeyType, helper};
use crate::kinds::{CountingFilter, CuckooFilter, ExpiringFilter, TaggedFilter};
use crate::many;
use crate::report::Report;
use crate::sys::call;
use crate::threads::detached;
use concurrent_cuckoo_filter::{self as ccf, SnapshotError, SnapshotReader};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyType};
use std::any::Any;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A filter of the library, and how its keys are hashed.
pub(crate) struct Typed<F> {
    pub(crate) filter: F,
    pub(crate) hashing: Hashing,
}

/// What answers lookups.
pub(crate) trait Lookups: Send + Sync {
    fn hashing(&self) -> &Hashing;
    fn contains(&self, key: &Hashed) -> bool;
    fn contains_batch(&self, keys: &[Hashed], found: &mut [bool]);
}

/// A filter in memory, of any kind.
pub(crate) trait Kind: Lookups + Any {
    fn len(&self) -> usize;
    fn capacity(&self) -> usize;
    fn max_capacity(&self) -> usize;
    fn memory_usage(&self) -> usize;
    fn stats(&self) -> ccf::Stats;
    fn clear(&self);
    fn save(&self, path: &Path) -> Result<(), SnapshotError>;
    fn write_to(&self, writer: &mut (dyn Write + Send)) -> Result<(), SnapshotError>;
    fn copy(&self, py: Python<'_>) -> PyResult<Py<PyAny>>;
    fn merge(&self, py: Python<'_>, other: &dyn Kind) -> PyResult<ccf::MergeReport>;
}

/// What can be asked for keys.
#[pyclass(module = "concurrent_cuckoo_filter", frozen, subclass)]
pub(crate) struct Reader(pub(crate) Arc<dyn Lookups>);

#[pymethods]
impl Reader {
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
        many::contains(self.0.hashing(), keys, check_utf8, parallel, |keys, found| self.0.contains_batch(keys, found))
    }

    /// As `contains`, without options: for what counts the parameters of a function, such as DuckDB's `create_function`.
    fn contains_batch<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.contains(keys, true, false)
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.0.contains(&Hashed(self.0.hashing().one(key)?)))
    }

    /// The type of the keys: "str", "bytes", "i64" or "u64".
    #[getter]
    pub(crate) fn key(&self) -> &'static str {
        self.0.hashing().key_type.name()
    }

    /// The keys of the hash function. Whoever knows them can compute keys that collide.
    #[getter]
    fn keys(&self) -> (u64, u64) {
        self.0.hashing().keys()
    }
}

/// What every filter in memory can do.
#[pyclass(module = "concurrent_cuckoo_filter", extends = Reader, frozen, subclass)]
pub(crate) struct Filter(pub(crate) Arc<dyn Kind>);

#[pymethods]
impl Filter {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Stores all that another filter holds, which was made with the same arguments and `keys`. Keys of both are held twice
    /// afterwards; counts are added.
    ///
    /// >>> from concurrent_cuckoo_filter import CuckooFilter
    /// >>> one, other = (CuckooFilter(100, keys=(1, 2)) for _ in range(2))
    /// >>> _ = one.insert(["a"]), other.insert(["b"])
    /// >>> one.merge(other)
    /// Report(inserted=1, present=0, nulls=0, refused=0)
    /// >>> "b" in one
    /// True
    fn merge(&self, py: Python<'_>, other: &Self) -> PyResult<Report> {
        let [one, two] = [self, other].map(|filter| filter.0.hashing().key_type);
        if one != two {
            return Err(error::merge_of_types(one.name(), two.name()));
        }
        let ccf::MergeReport { inserted, refused, .. } = self.0.merge(py, &*other.0)?;
        error::unless_refused(py, Report { inserted, refused, ..Report::default() })
    }

    /// A new filter with all that both hold, as `copy` and `merge`.
    fn __or__(&self, py: Python<'_>, other: &Self) -> PyResult<Py<PyAny>> {
        let both = self.0.copy(py)?;
        both.bind(py).cast::<Self>()?.get().merge(py, other)?;
        Ok(both)
    }

    /// Removes all keys.
    fn clear(&self, py: Python<'_>) {
        detached(py, || self.0.clear());
    }

    /// A filter of its own that holds the same.
    fn copy(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.0.copy(py)
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.0.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.0.copy(py)
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
        detached(py, || self.0.save(&path)).map_err(error::snapshot)
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
        detached(py, || self.0.write_to(&mut bytes)).map_err(error::snapshot)?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().to_bytes(slf.py())?,)))
    }

    /// Reads a filter from what `save` or Rust has written, a path, a URL or an open file, with everything checked.
    ///
    /// Of an `ExpiringFilter` `passed` is the time since the last `advance_to` before it was saved: what has died meanwhile is
    /// dropped. The time of `advance_to` begins anew.
    #[classmethod]
    #[pyo3(signature = (source, *, passed = Duration::ZERO))]
    fn load(cls: &Bound<'_, PyType>, source: &Bound<'_, PyAny>, passed: Duration) -> PyResult<Py<PyAny>> {
        read(cls, files::open(source)?, passed)
    }

    /// Reads a filter from the bytes of a file, as `load`.
    #[classmethod]
    #[pyo3(signature = (data, *, passed = Duration::ZERO))]
    fn from_bytes(cls: &Bound<'_, PyType>, data: PyBackedBytes, passed: Duration) -> PyResult<Py<PyAny>> {
        read(cls, &data[..], passed)
    }

    /// The number of keys that was asked for.
    #[getter]
    fn capacity(&self) -> usize {
        self.0.capacity()
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
        self.0.max_capacity()
    }

    /// Bytes of memory, everything included.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.memory_usage()
    }

    /// The part of absent keys that is taken for present now. It grows with what the filter holds.
    #[getter]
    fn expected_false_positive_rate(&self) -> f64 {
        self.0.stats().expected_false_positive_rate
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let (this, name) = (slf.get(), slf.get_type().name()?);
        let (len, capacity, max_capacity) = (this.0.len(), this.capacity(), this.max_capacity());
        let grows = if max_capacity > capacity { format!(", max_capacity={max_capacity}") } else { String::new() };
        let key = this.0.hashing().key_type.name();
        Ok(format!("<{name} of {len} keys, capacity={capacity}{grows}, key={key:?}>"))
    }
}

/// Reads a filter that nothing follows, of the kind that the class is for.
fn read(cls: &Bound<'_, PyType>, mut reader: impl Read + Send, passed: Duration) -> PyResult<Py<PyAny>> {
    let py = cls.py();
    let reader = &mut reader;
    let snapshot = py.detach(|| SnapshotReader::new(&mut *reader)).map_err(error::snapshot)?;
    let key_type = KeyType::saved_as(snapshot.header().key_type())?;
    let whole = |read: &mut dyn Read| match read.read(&mut [0]) {
        Ok(0) => Ok(()),
        Ok(_) => Err(error::snapshot(SnapshotError::TrailingBytes)),
        Err(error) => Err(error::snapshot(error.into())),
    };
    macro_rules! kinds {
        ($($kind:ident($snapshot:ident) => $read:expr),* $(,)?) => {
            $(
                if cls.is(py.get_type::<$kind>()) {
                    let $snapshot = snapshot;
                    let filter: ccf::$kind<Hashed, Hashers> = py.detach(|| $read).map_err(error::snapshot)?;
                    whole(reader)?;
                    let hashing = Hashing { key_type, hasher: filter.hasher().0.clone() };
                    return Ok($kind::wrap(py, Typed { filter, hashing })?.into_any());
                }
            )*
        };
    }
    kinds! {
        CuckooFilter(snapshot) => snapshot.into_filter_with_stored_keys(),
        ExpiringFilter(snapshot) => ccf::ExpiringFilter::from_snapshot(snapshot, None, passed),
        CountingFilter(snapshot) => ccf::CountingFilter::from_snapshot(snapshot, None),
        TaggedFilter(snapshot) => ccf::TaggedFilter::from_snapshot(snapshot, None),
    }
    Err(PyTypeError::new_err("load is a method of CuckooFilter, ExpiringFilter, CountingFilter and TaggedFilter"))
}
