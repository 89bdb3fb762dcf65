//! Filters in files, asked where they lie.

use crate::error;
use crate::files::regular;
use crate::keys::{Hashing, Key, KeyType};
use crate::many;
use concurrent_cuckoo_filter::{self as ccf, SnapshotReader, StableHashBuilder};
use pyo3::prelude::*;
use std::io::BufReader;
use std::path::PathBuf;

/// A filter in a file that `CuckooFilter.save` has written, opened by `CuckooFilter.open`: to be asked, and not changed.
///
/// It takes no memory of its own. What is asked for comes from the disk, and stays in memory that all processes of a machine
/// share, as long as the system has it to spare. The header of the file is checked; call `check` for the rest where files come
/// over a network. `save` puts a new file in the place of an old one, so what is open stays what it was: open it anew. A file
/// that somebody cuts off ends the process that asks for what was there.
///
/// >>> import os, tempfile
/// >>> from concurrent_cuckoo_filter import CuckooFilter
/// >>> path = os.path.join(tempfile.mkdtemp(), "blocked.cuckoo")
/// >>> blocked = CuckooFilter(100)
/// >>> _ = blocked.insert(["mailinator.com"])
/// >>> blocked.save(path)
/// >>> mapped = CuckooFilter.open(path)
/// >>> mapped.check()
/// >>> "mailinator.com" in mapped, mapped.contains(["example.com", None]).to_pylist(), len(mapped)
/// (True, [False, None], 1)
#[pyclass(module = "concurrent_cuckoo_filter", frozen)]
pub(crate) struct MappedFilter {
    filter: ccf::MappedFilter<ccf::CuckooFilter<Key<'static>, StableHashBuilder>>,
    hashing: Hashing,
}

impl MappedFilter {
    pub(crate) fn open(path: PathBuf) -> PyResult<Self> {
        let reader = SnapshotReader::new(BufReader::new(regular(&path)?)).map_err(error::snapshot)?;
        let key_type = KeyType::of(reader.header())?;
        let filter = ccf::MappedFilter::open(&path).map_err(error::snapshot)?;
        let hashing = Hashing { key_type, hasher: StableHashBuilder::clone(filter.hasher()) };
        Ok(MappedFilter { filter, hashing })
    }
}

#[pymethods]
impl MappedFilter {
    /// Checks every byte of the file, as `CuckooFilter.load` does. Others may ask meanwhile.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.filter.check()).map_err(error::snapshot)
    }

    /// Says of each key whether it is present, as a `pyarrow.BooleanArray`; of a null, null. As `CuckooFilter.contains`.
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

    /// The type of the keys: "str", "bytes", "i64" or "u64".
    #[getter]
    fn key(&self) -> &'static str {
        self.hashing.key_type.name()
    }

    /// The keys of the hash function.
    #[getter]
    fn keys(&self) -> (u64, u64) {
        self.hashing.keys()
    }

    /// The part of absent keys that is taken for present.
    #[getter]
    fn expected_false_positive_rate(&self) -> f64 {
        self.filter.expected_false_positive_rate()
    }

    fn __repr__(&self) -> String {
        format!("<MappedFilter of {} keys, key={:?}>", self.__len__(), self.key())
    }
}
