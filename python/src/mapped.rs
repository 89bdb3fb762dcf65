//! Filters in files, asked where they lie.

use crate::error;
use crate::files::regular;
use crate::hashing::{Hashing, Keyed, answers, keyed, keys_of, made};
use crate::keys::{Column, Key, KeyType, one};
use concurrent_cuckoo_filter::{self as ccf, SnapshotReader, StableHashBuilder};
use pyo3::prelude::*;
use std::io::BufReader;
use std::path::PathBuf;

type Of<K> = ccf::MappedFilter<K, StableHashBuilder>;

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
pub(crate) struct MappedFilter(Keyed<Of<str>, Of<[u8]>, Of<i64>, Of<u64>>);

impl MappedFilter {
    pub(crate) fn open(path: PathBuf) -> PyResult<Self> {
        let reader = SnapshotReader::new(BufReader::new(regular(&path)?)).map_err(error::snapshot)?;
        let filter = made!(KeyType::of(reader.header())?, K => Of::<K>::open(&path));
        filter.map(MappedFilter).map_err(error::snapshot)
    }
}

#[pymethods]
impl MappedFilter {
    /// Checks every byte of the file, as `CuckooFilter.load` does. Others may ask meanwhile.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| keyed!(&self.0, filter => filter.check())).map_err(error::snapshot)
    }

    /// Says of each key whether it is present, as a `pyarrow.BooleanArray`; of a null, null. As `CuckooFilter.contains`.
    #[pyo3(signature = (keys, *, check_utf8 = true))]
    fn contains<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        check_utf8: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let column = Column::new(self.0.key_type(), keys)?;
        keyed!(&self.0, filter => answers(py, filter, &column, check_utf8, |hashes, found| {
            filter.contains_batch_hash(hashes, found);
        }))
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        one(self.0.key_type(), key, |key: Key<'_>| keyed!(&self.0, filter => filter.contains_hash(filter.hash_of(key))))
    }

    fn __len__(&self) -> usize {
        keyed!(&self.0, filter => filter.len())
    }

    /// The type of the keys: "str", "bytes", "i64" or "u64".
    #[getter]
    fn key(&self) -> &'static str {
        self.0.key_type().name()
    }

    /// The keys of the hash function.
    #[getter]
    fn keys(&self) -> (u64, u64) {
        keyed!(&self.0, filter => keys_of(filter.hasher()))
    }

    /// The part of absent keys that is taken for present.
    #[getter]
    fn expected_false_positive_rate(&self) -> f64 {
        keyed!(&self.0, filter => filter.expected_false_positive_rate())
    }

    fn __repr__(&self) -> String {
        format!("<MappedFilter of {} keys, key={:?}>", self.__len__(), self.key())
    }
}
