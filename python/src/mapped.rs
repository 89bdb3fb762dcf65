//! Filters that lie in files, or in the memory of another process: to be asked.

use crate::error;
use crate::files::regular;
use crate::filter::{Lookups, Reader, Typed};
use crate::hashed::{Hashed, Hashers};
use crate::keys::{Hashing, KeyType};
use concurrent_cuckoo_filter::{self as ccf, SnapshotReader};
use pyo3::PyClassInitializer;
use pyo3::prelude::*;
use std::io::BufReader;
use std::path::PathBuf;
use std::sync::Arc;

type Mapped = ccf::MappedFilter<ccf::CuckooFilter<Hashed, Hashers>>;

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
#[pyclass(module = "concurrent_cuckoo_filter", extends = Reader, frozen)]
pub(crate) struct MappedFilter(Arc<Typed<Mapped>>);

impl MappedFilter {
    pub(crate) fn open(py: Python<'_>, path: PathBuf) -> PyResult<Py<Self>> {
        let opened = py.detach(|| -> PyResult<_> {
            let reader = SnapshotReader::new(BufReader::new(regular(&path)?)).map_err(error::snapshot)?;
            let key_type = KeyType::saved_as(reader.header().key_type())?;
            let filter = Mapped::open(&path).map_err(error::snapshot)?;
            let hashing = Hashing { key_type, hasher: filter.hasher().0.clone() };
            Ok(Arc::new(Typed { filter, hashing }))
        })?;
        Py::new(py, PyClassInitializer::from(Reader(opened.clone())).add_subclass(MappedFilter(opened)))
    }
}

impl Lookups for Typed<Mapped> {
    fn hashing(&self) -> &Hashing {
        &self.hashing
    }

    fn contains(&self, key: &Hashed) -> bool {
        self.filter.contains(key)
    }

    fn contains_batch(&self, keys: &[Hashed], found: &mut [bool]) {
        self.filter.contains_batch(keys, found);
    }
}

#[pymethods]
impl MappedFilter {
    /// Checks every byte of the file, as `CuckooFilter.load` does. Others may ask meanwhile.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.filter.check()).map_err(error::snapshot)
    }

    fn __len__(&self) -> usize {
        self.0.filter.len()
    }

    /// The part of absent keys that is taken for present.
    #[getter]
    fn expected_false_positive_rate(&self) -> f64 {
        self.0.filter.expected_false_positive_rate()
    }

    fn __repr__(&self) -> String {
        format!("<MappedFilter of {} keys, key={:?}>", self.__len__(), self.0.hashing.key_type.name())
    }
}
