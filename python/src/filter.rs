//! What the classes have in common: lookups, and all that does not depend on what a filter keeps beside its keys.

use crate::error;
use crate::files;
use crate::keys::{Hashing, Key, KeyType, helper};
use crate::kinds::{Class, CountingFilter, CuckooFilter, ExpiringFilter, TaggedFilter};
use crate::many;
use crate::report::Report;
use crate::sys::call;
use crate::threads::detached;
use concurrent_cuckoo_filter::{self as ccf, SnapshotError, SnapshotReader, StableHashBuilder, kind};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyType};
use std::any::Any;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A filter of the Rust library, and the hash function of its keys.
pub(crate) struct Typed<F> {
    pub(crate) filter: F,
    pub(crate) hashing: Hashing,
}

/// A filter in memory, of this kind.
pub(crate) type Of<T> = Typed<ccf::Filter<Key<'static>, StableHashBuilder, T>>;

/// A source of answers to lookups.
pub(crate) trait Lookups: Send + Sync {
    fn hashing(&self) -> &Hashing;
    fn contains(&self, hash: u64) -> bool;
    fn contains_batch(&self, hashes: &[u64], found: &mut [bool]);
}

/// Implements `Lookups` for a type of the library, by its methods of the same names.
macro_rules! lookups {
    ($filter:ty $(, $kind:ident)?) => {
        impl $(<$kind: concurrent_cuckoo_filter::kind::Kind>)? $crate::filter::Lookups for $crate::filter::Typed<$filter> {
            fn hashing(&self) -> &$crate::keys::Hashing {
                &self.hashing
            }

            fn contains(&self, hash: u64) -> bool {
                self.filter.hashed().contains(&hash)
            }

            fn contains_batch(&self, hashes: &[u64], found: &mut [bool]) {
                self.filter.hashed().contains_batch(hashes, found);
            }
        }
    };
}
pub(crate) use lookups;

lookups!(ccf::Filter<Key<'static>, StableHashBuilder, T>, T);

/// A filter in memory, of any kind.
pub(crate) trait Kind: Lookups + Any {
    fn len(&self) -> usize;
    fn config(&self) -> ccf::Config;
    fn stats(&self) -> ccf::Stats;
    fn memory_usage(&self) -> usize;
    fn clear(&self);
    fn snapshot(&self) -> ccf::Snapshot<'_, Key<'static>, StableHashBuilder>;
    fn copy(&self, py: Python<'_>) -> PyResult<Py<PyAny>>;
    fn merge(&self, py: Python<'_>, other: &dyn Kind) -> PyResult<ccf::MergeReport>;
}

/// Implements methods of `Kind` by those of the filter.
macro_rules! of_the_filter {
    ($($method:ident -> $returned:ty),+) => {
        $(fn $method(&self) -> $returned {
            self.filter.$method()
        })+
    };
}

impl<T: Class> Kind for Of<T> {
    of_the_filter!(
        len -> usize, config -> ccf::Config, stats -> ccf::Stats, memory_usage -> usize, clear -> ()
    );

    fn snapshot(&self) -> ccf::Snapshot<'_, Key<'static>, StableHashBuilder> {
        self.filter.snapshot().key_type(self.hashing.key_type.saved())
    }

    fn copy(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let filter = detached(py, || self.filter.try_clone()).map_err(error::build)?;
        T::wrap(py, Typed { filter, hashing: self.hashing.clone() })
    }

    fn merge(&self, py: Python<'_>, other: &dyn Kind) -> PyResult<ccf::MergeReport> {
        let other: &dyn Any = other;
        let Some(other) = other.downcast_ref::<Self>() else {
            return Err(PyTypeError::new_err(format!("only a {} can be merged into one", T::NAME)));
        };
        detached(py, || self.filter.merge_from(&other.filter)).map_err(error::merge)
    }
}

/// The base class of everything that answers lookups.
#[pyclass(module = "concurrent_cuckoo_filter", frozen, subclass)]
pub(crate) struct Reader(pub(crate) Arc<dyn Lookups>);

#[pymethods]
impl Reader {
    /// Returns for each key whether it is present; the answer to a null is null.
    ///
    /// The answers are a `pyarrow.BooleanArray`, or a Series if the keys are a Series of pandas or polars. The call runs on the calling
    /// thread, or with `parallel=True` on all cores. With `check_utf8=False`, strings that are not valid UTF-8 are looked up by their bytes.
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

    /// `contains` without its options, for libraries that count a function's parameters, such as DuckDB's `create_function`.
    fn contains_batch<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.contains(keys, true, false)
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.0.contains(self.0.hashing().one(key)?))
    }

    /// The type of the keys: "str", "bytes", "i64" or "u64".
    #[getter]
    pub(crate) fn key(&self) -> &'static str {
        self.0.hashing().key_type.name()
    }

    /// The two keys of the hash function. Colliding keys can be computed from them: do not show them to clients who choose keys.
    #[getter]
    fn keys(&self) -> (u64, u64) {
        self.0.hashing().keys()
    }
}

/// The base class of the filters in memory.
#[pyclass(module = "concurrent_cuckoo_filter", extends = Reader, frozen, subclass)]
pub(crate) struct Filter(pub(crate) Arc<dyn Kind>);

#[pymethods]
impl Filter {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Stores the keys of another filter, which must have been created with the same arguments and `keys`. A key that both filters hold is
    /// held twice afterwards; counts are added. With `unique=True`, for instances of `CuckooFilter` only, keys that this filter holds are
    /// skipped.
    ///
    /// >>> from concurrent_cuckoo_filter import CuckooFilter
    /// >>> one, other = (CuckooFilter(100, keys=(1, 2)) for _ in range(2))
    /// >>> _ = one.insert(["a"]), other.insert(["b"])
    /// >>> one.merge(other)
    /// Report(inserted=1, present=0, nulls=0, refused=0)
    /// >>> "b" in one
    /// True
    #[pyo3(signature = (other, *, unique = false))]
    fn merge(&self, py: Python<'_>, other: &Self, unique: bool) -> PyResult<Report> {
        let [one, two] = [self, other].map(|filter| filter.0.hashing().key_type);
        if one != two {
            let told = format!("a filter of {} keys cannot be merged into one of {} keys", two.name(), one.name());
            return Err(PyValueError::new_err(told));
        }
        let ccf::MergeReport { inserted, present, refused, .. } = if unique {
            let (to, from) = (self.plain()?, other.plain()?);
            detached(py, || to.merge_unique_from(from)).map_err(error::merge)?
        } else {
            self.0.merge(py, &*other.0)?
        };
        error::unless_refused(py, Report { inserted, present, refused, ..Report::default() })
    }

    /// Returns a new filter that holds the keys of both: a `copy` of this one after a `merge`.
    fn __or__(&self, py: Python<'_>, other: &Self) -> PyResult<Py<PyAny>> {
        let both = self.0.copy(py)?;
        both.bind(py).cast::<Self>()?.get().merge(py, other, false)?;
        Ok(both)
    }

    /// Removes all keys.
    fn clear(&self, py: Python<'_>) {
        detached(py, || self.0.clear());
    }

    /// Returns an independent filter with the same contents.
    fn copy(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.0.copy(py)
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.0.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.0.copy(py)
    }

    /// Saves the filter to a path, to an fsspec URL ("s3://bucket/blocked"), or to a binary file object.
    ///
    /// A file at the path is replaced atomically: if the program stops during the call, it is the old one or the new one. Other threads
    /// may use the filter during the call. For a URL or a file object, the bytes are collected in memory first.
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
        detached(py, || self.0.snapshot().save(&path)).map_err(error::snapshot)
    }

    /// Returns the bytes that `save` writes to a file. Pickle stores the same bytes.
    ///
    /// >>> import pickle
    /// >>> from concurrent_cuckoo_filter import CuckooFilter
    /// >>> blocked = CuckooFilter(100)
    /// >>> _ = blocked.insert(["a"])
    /// >>> "a" in CuckooFilter.from_bytes(blocked.to_bytes()), "a" in pickle.loads(pickle.dumps(blocked))
    /// (True, True)
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        detached(py, || self.0.snapshot().write_to(&mut bytes)).map_err(error::snapshot)?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().to_bytes(slf.py())?,)))
    }

    /// Loads a filter saved by Python or Rust from a path, an fsspec URL, a file object or bytes. All bytes are checked.
    ///
    /// If keys or counts expire, `passed` is the time between the last `advance_to` before the filter was saved and now: whatever has
    /// expired since then is dropped, and `advance_to` continues from `passed`.
    #[classmethod]
    #[pyo3(signature = (source, *, passed = Duration::ZERO))]
    fn load(cls: &Bound<'_, PyType>, source: &Bound<'_, PyAny>, passed: Duration) -> PyResult<Py<PyAny>> {
        read(cls, files::open(source)?, passed)
    }

    /// Loads a filter from the bytes of a file; see `load`.
    #[classmethod]
    #[pyo3(signature = (data, *, passed = Duration::ZERO))]
    fn from_bytes(cls: &Bound<'_, PyType>, data: PyBackedBytes, passed: Duration) -> PyResult<Py<PyAny>> {
        read(cls, &data[..], passed)
    }

    /// The requested capacity, in keys.
    #[getter]
    fn capacity(&self) -> usize {
        self.0.config().capacity
    }

    /// The number of keys that the filter grows to, or its capacity if it does not grow.
    ///
    /// >>> from concurrent_cuckoo_filter import CuckooFilter
    /// >>> growing = CuckooFilter(1_000, max_capacity=1_000_000, key="i64")
    /// >>> before = growing.nbytes
    /// >>> growing.insert(range(100_000)).refused, growing.nbytes > 2 * before, growing.max_capacity
    /// (0, True, 1000000)
    #[getter]
    fn max_capacity(&self) -> usize {
        self.0.config().max_capacity
    }

    /// The requested rate of false positives, or None if a Rust program requested a width of fingerprints.
    #[getter]
    fn false_positive_rate(&self) -> Option<f64> {
        self.0.config().false_positive_rate
    }

    /// The total memory of the filter in bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.memory_usage()
    }

    /// The expected rate of false positives of the current contents. It rises with the number of stored keys.
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

impl Filter {
    fn plain(&self) -> PyResult<&ccf::CuckooFilter<Key<'static>, StableHashBuilder>> {
        let filter: &dyn Any = &*self.0;
        match filter.downcast_ref::<Of<kind::Plain>>() {
            Some(plain) => Ok(&plain.filter),
            None => Err(PyTypeError::new_err("a merge with unique=True is of two CuckooFilters")),
        }
    }
}

/// A snapshot that is read as a filter of a kind that is known at run time.
type Snapshot<'a, 'r> = SnapshotReader<&'a mut (dyn Read + Send + 'r)>;

/// Reads a filter that nothing follows, of the kind that the class is for.
fn read(cls: &Bound<'_, PyType>, mut reader: impl Read + Send, passed: Duration) -> PyResult<Py<PyAny>> {
    type Load = fn(Python<'_>, Snapshot<'_, '_>, KeyType) -> PyResult<Py<PyAny>>;
    let py = cls.py();
    let kinds: [(_, Load); 4] = [
        (py.get_type::<CuckooFilter>(), load::<kind::Plain>),
        (py.get_type::<ExpiringFilter>(), load::<kind::Expiring>),
        (py.get_type::<CountingFilter>(), load::<kind::Counting>),
        (py.get_type::<TaggedFilter>(), load::<kind::Tagged>),
    ];
    let Some((_, load)) = kinds.into_iter().find(|(class, _)| cls.is(class)) else {
        let told = "load is a method of CuckooFilter, ExpiringFilter, CountingFilter and TaggedFilter";
        return Err(PyTypeError::new_err(told));
    };
    let snapshot = py.detach(|| SnapshotReader::new(&mut reader as &mut (dyn Read + Send))).map_err(error::snapshot)?;
    let key_type = KeyType::saved_as(&snapshot.header().key_type)?;
    let filter = load(py, snapshot, key_type)?;
    match reader.read(&mut [0]) {
        Ok(0) => {}
        Ok(_) => return Err(error::snapshot(SnapshotError::TrailingBytes)),
        Err(error) => return Err(error::snapshot(error.into())),
    }
    if !passed.is_zero() && cls.hasattr("advance_to")? {
        filter.call_method1(py, "advance_to", (passed,))?;
    }
    Ok(filter)
}

fn load<T: Class>(py: Python<'_>, snapshot: Snapshot<'_, '_>, key_type: KeyType) -> PyResult<Py<PyAny>> {
    let filter: ccf::Filter<Key<'static>, _, T> = py.detach(|| snapshot.into_filter()).map_err(error::snapshot)?;
    let hashing = Hashing { key_type, hasher: StableHashBuilder::clone(filter.hasher()) };
    T::wrap(py, Typed { filter, hashing })
}
