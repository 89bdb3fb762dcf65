//! Filters in files, queried in place.

use crate::error;
use crate::files::regular;
use crate::filter::{Reader, Typed, lookups};
use crate::keys::{Hashing, Key, KeyType};
use concurrent_cuckoo_filter::{self as ccf, SnapshotReader, StableHashBuilder};
use pyo3::PyClassInitializer;
use pyo3::prelude::*;
use std::io::BufReader;
use std::path::PathBuf;
use std::sync::Arc;

type Mapped = ccf::MappedFilter<ccf::CuckooFilter<Key<'static>, StableHashBuilder>>;

/// A read-only filter in a file that `CuckooFilter.save` has written. `CuckooFilter.open` returns one.
///
/// It allocates no memory for the keys: pages of the file are read on demand, and all processes of a machine share them. `open` checks the
/// header only; call `check` for the rest where files come over a network. `save` replaces a file, so an open one stays as it was until it
/// is opened again. If an open file is truncated, a query of the missing pages kills the process.
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
#[pyclass(module = "concurrent_cuckoo_filter", extends = Reader, frozen)]
pub(crate) struct MappedFilter(Arc<Typed<Mapped>>);

impl MappedFilter {
    pub(crate) fn open(py: Python<'_>, path: PathBuf) -> PyResult<Py<Self>> {
        let opened = py.detach(|| -> PyResult<_> {
            let reader = SnapshotReader::new(BufReader::new(regular(&path)?)).map_err(error::snapshot)?;
            let key_type = KeyType::saved_as(&reader.header().key_type)?;
            let filter = Mapped::open(&path).map_err(error::snapshot)?;
            let hashing = Hashing { key_type, hasher: filter.hasher().clone() };
            Ok(Arc::new(Typed { filter, hashing }))
        })?;
        Py::new(py, PyClassInitializer::from(Reader(opened.clone())).add_subclass(MappedFilter(opened)))
    }
}

lookups!(Mapped);

#[pymethods]
impl MappedFilter {
    /// Checks all bytes of the file, as `CuckooFilter.load` does. Other threads may query it during the call.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.filter.check()).map_err(error::snapshot)
    }

    fn __len__(&self) -> usize {
        self.0.filter.header().stored as usize
    }

    /// The requested rate of false positives, or None if a Rust program requested a width of fingerprints.
    #[getter]
    fn false_positive_rate(&self) -> Option<f64> {
        self.0.filter.header().config.false_positive_rate
    }

    fn __repr__(&self) -> String {
        format!("<MappedFilter of {} keys, key={:?}>", self.__len__(), self.0.hashing.key_type.name())
    }
}
