//! Filters in memory that a program in Rust shares while it writes them.

use crate::error;
use crate::filter::{Reader, Typed, lookups};
use crate::keys::{Hashing, Key, KeyType};
use concurrent_cuckoo_filter::{self as ccf, SharedError, SharedState, SnapshotError, StableHashBuilder};
use pyo3::PyClassInitializer;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;

type Shared = ccf::SharedReader<ccf::CuckooFilter<Key<'static>, StableHashBuilder>>;

/// A read-only view of a filter that a Rust program on the same machine changes as a `SharedFilter<CuckooFilter<_, StableHashBuilder>>`.
/// It exists on Linux only.
///
/// Lookups take no lock and wait for no writer. Any number of threads and processes may query the filter. When another filter replaces
/// it, `state` becomes "replaced"; open the new one then.
///
/// >>> from concurrent_cuckoo_filter import SharedReader
/// >>> SharedReader("/dev/shm/no-such-filter")
/// Traceback (most recent call last):
/// FileNotFoundError: ...
#[pyclass(module = "concurrent_cuckoo_filter", extends = Reader, frozen)]
pub(crate) struct SharedReader(Arc<Typed<Shared>>);

lookups!(Shared);

#[pymethods]
impl SharedReader {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<PyClassInitializer<Self>> {
        let reader = Arc::new(py.detach(|| open(&path))?);
        Ok(PyClassInitializer::from(Reader(reader.clone())).add_subclass(SharedReader(reader)))
    }

    /// The state of the filter: "live", "closed" or "replaced". A writer that was killed leaves it "live".
    #[getter]
    fn state(&self) -> &'static str {
        match self.0.filter.state() {
            SharedState::Closed => "closed",
            SharedState::Replaced => "replaced",
            _ => "live",
        }
    }

    fn __repr__(&self) -> String {
        format!("<SharedReader of a filter that is {}, key={:?}>", self.state(), self.0.hashing.key_type.name())
    }
}

/// Opens a filter. The type of its keys is in the error of whoever takes them for another one.
fn open(path: &Path) -> PyResult<Typed<Shared>> {
    let saved = match ccf::SharedReader::<ccf::CuckooFilter<u8, StableHashBuilder>>::open(path) {
        Err(SharedError::Header(SnapshotError::KeyTypeMismatch { saved, .. })) => saved,
        Err(error) => return Err(error::shared(error)),
        Ok(_) => return Err(error::other_keys("u8, or without a name")),
    };
    let filter = Shared::open(path).map_err(error::shared)?;
    let hashing = Hashing { key_type: KeyType::saved_as(&saved)?, hasher: filter.hasher().clone() };
    Ok(Typed { filter, hashing })
}
