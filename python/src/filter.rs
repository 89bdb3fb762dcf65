//! The base class of everything that answers lookups. The Python classes inherit from it, and have the names, defaults and documentation
//! of the operations of their filters.

use crate::error;
use crate::files::{Source, Written};
use crate::keys::{Hashing, Key, KeyType};
use crate::kinds::{Builder, Kind, Memory, Tags, builder, of_each_kind};
use crate::many::{self, RemoveReport, Report};
use crate::threads::detached;
#[cfg(target_os = "linux")]
use concurrent_cuckoo_filter::SharedState;
use concurrent_cuckoo_filter::{self as ccf, SnapshotError, SnapshotReader, StableHashBuilder};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

type Plain = ccf::CuckooFilter<Key<'static>, StableHashBuilder>;

/// A filter of the library, and the hash function of its keys.
struct Hashed {
    hashing: Hashing,
    filter: Filter,
}

#[expect(clippy::large_enum_variant, reason = "each is in an Arc")]
enum Filter {
    Memory(Memory),
    /// A mapped file.
    Mapped(ccf::MappedFilter<Plain>),
    /// Memory that a program in Rust shares and writes.
    #[cfg(target_os = "linux")]
    Shared(ccf::SharedReader<Plain>),
}

/// Evaluates an expression with the filter, whatever its source.
macro_rules! of_each {
    ($all:expr, $filter:ident => $result:expr) => {
        match $all {
            Filter::Memory(memory) => of_each_kind!(memory, $filter => $result),
            Filter::Mapped($filter) => $result,
            #[cfg(target_os = "linux")]
            Filter::Shared($filter) => $result,
        }
    };
}

/// A source of lookups: a filter, a mapped file or a shared one. Each Python class calls the methods of its kind.
#[pyclass(frozen, subclass)]
pub(crate) struct Reader(Arc<Hashed>);

/// The configuration of a filter.
#[pyclass(frozen, get_all)]
pub(crate) struct Config {
    capacity: usize,
    max_capacity: usize,
    false_positive_rate: Option<f64>,
    time_to_live: Option<Duration>,
    time_to_idle: Option<Duration>,
    tick: Option<Duration>,
    max_count: u32,
    max_tag: u32,
}

#[pymethods]
impl Reader {
    /// Returns this filter as an instance of a class.
    #[new]
    fn new(of: &Bound<'_, Self>) -> Self {
        Reader(Arc::clone(&of.get().0))
    }

    fn _contains<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        check_utf8: bool,
        parallel: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        many::contains(
            &self.0.hashing,
            keys,
            check_utf8,
            parallel,
            |keys, found| of_each!(&self.0.filter, filter => filter.hashed().contains_batch(keys, found)),
        )
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = self.0.hashing.one(key)?;
        Ok(of_each!(&self.0.filter, filter => filter.hashed().contains(&hash)))
    }

    /// The type of the keys: "str", "bytes", "i64" or "u64".
    #[getter]
    fn key(&self) -> &'static str {
        self.0.hashing.key_type.name()
    }

    /// The two keys of the hash function. Colliding keys can be computed from them: do not show them to clients who choose keys.
    #[getter]
    fn keys(&self) -> (u64, u64) {
        self.0.hashing.keys()
    }

    #[getter]
    fn _config(&self) -> Config {
        let config = match &self.0.filter {
            Filter::Memory(memory) => of_each_kind!(memory, filter => filter.config()),
            Filter::Mapped(filter) => filter.header().config,
            #[cfg(target_os = "linux")]
            Filter::Shared(filter) => filter.header().config,
        };
        let ccf::Config { capacity, max_capacity, false_positive_rate, max_count, max_tag, .. } = config;
        let ccf::Config { time_to_live, time_to_idle, tick, .. } = config;
        Config { capacity, max_capacity, false_positive_rate, time_to_live, time_to_idle, tick, max_count, max_tag }
    }

    fn _len(&self) -> PyResult<usize> {
        match &self.0.filter {
            Filter::Mapped(filter) => Ok(filter.header().stored as usize),
            _ => Ok(of_each_kind!(self.memory()?, filter => filter.len())),
        }
    }

    fn _nbytes(&self) -> PyResult<usize> {
        Ok(of_each_kind!(self.memory()?, filter => filter.memory_usage()))
    }

    fn _expected_false_positive_rate(&self) -> PyResult<f64> {
        Ok(of_each_kind!(self.memory()?, filter => filter.stats()).expected_false_positive_rate)
    }

    /// With `in_order`, the first of equal keys is the stored one.
    #[pyo3(signature = (keys, unique = false, limit = None, tags = None, in_order = false))]
    fn _insert(
        &self,
        keys: &Bound<'_, PyAny>,
        unique: bool,
        limit: Option<u32>,
        tags: Option<&Bound<'_, PyAny>>,
        in_order: bool,
    ) -> PyResult<Report> {
        let (memory, tags) = (self.memory()?, Tags::new(tags)?);
        let how = (unique, in_order, limit, &tags);
        many::insert(&self.0.hashing, keys, &tags, |keys, stored, pool, at| memory.insert(how, keys, stored, pool, at))
    }

    fn _add(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let stored = self.plain()?.hashed().insert_unique(&self.0.hashing.one(key)?);
        stored.map_err(|error| error::RefusedError::new_err(error.to_string()))
    }

    #[pyo3(signature = (keys, tags = None))]
    fn _remove(&self, keys: &Bound<'_, PyAny>, tags: Option<&Bound<'_, PyAny>>) -> PyResult<RemoveReport> {
        let (memory, tags) = (self.memory()?, Tags::new(tags)?);
        many::remove(&self.0.hashing, keys, &tags, |keys, at| memory.remove(&tags, keys, at))
    }

    #[pyo3(signature = (keys, subtract = false))]
    fn _numbers<'py>(&self, keys: &Bound<'py, PyAny>, subtract: bool) -> PyResult<Bound<'py, PyAny>> {
        let memory = self.memory()?;
        many::numbers(&self.0.hashing, keys, |keys, to| memory.numbers(subtract, keys, to))
    }

    fn _advance_to(&self, py: Python<'_>, elapsed: Duration) -> PyResult<u64> {
        match self.memory()? {
            Memory::Expiring(filter) => Ok(detached(py, || filter.advance_to(elapsed))),
            Memory::Counting(filter) => Ok(detached(py, || filter.advance_to(elapsed))),
            _ => Err(error::other_filter()),
        }
    }

    fn _advance(&self, py: Python<'_>) -> PyResult<usize> {
        match self.memory()? {
            Memory::Expiring(filter) => Ok(detached(py, || filter.advance())),
            Memory::Counting(filter) => Ok(detached(py, || filter.advance())),
            _ => Err(error::other_filter()),
        }
    }

    fn _merge(&self, py: Python<'_>, other: &Self, unique: bool) -> PyResult<Report> {
        let (to, from) = (self.memory()?, other.memory()?);
        let ccf::MergeReport { inserted, present, refused, .. } = detached(py, || to.merge(from, unique))?;
        Ok(Report { inserted, present, refused, ..Report::default() })
    }

    fn _clear(&self, py: Python<'_>) -> PyResult<()> {
        of_each_kind!(self.memory()?, filter => detached(py, || filter.clear()));
        Ok(())
    }

    fn _copy(&self, py: Python<'_>) -> PyResult<Self> {
        let memory = self.memory()?;
        Ok(Reader::of(self.0.hashing.clone(), Filter::Memory(detached(py, || memory.copy())?)))
    }

    fn _save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let snapshot = self.snapshot()?;
        detached(py, || snapshot.save(&path)).map_err(error::snapshot)
    }

    fn _to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let (snapshot, mut bytes) = (self.snapshot()?, Written::default());
        detached(py, || snapshot.write_to(&mut bytes)).map_err(error::snapshot)?;
        bytes.to_python(py)
    }

    fn _apply_delta(&self, py: Python<'_>, source: Source) -> PyResult<(usize, usize)> {
        let (filter, delta) = (self.plain()?, source.read(py)?);
        let report = detached(py, || filter.apply_delta(delta)).map_err(error::snapshot)?;
        Ok((report.inserted, report.removed))
    }

    fn _check(&self, py: Python<'_>) -> PyResult<()> {
        match &self.0.filter {
            Filter::Mapped(filter) => py.detach(|| filter.check()).map_err(error::snapshot),
            _ => Err(error::other_filter()),
        }
    }

    #[cfg(target_os = "linux")]
    fn _state(&self) -> PyResult<&'static str> {
        match &self.0.filter {
            Filter::Shared(filter) => match filter.state() {
                SharedState::Closed => Ok("closed"),
                SharedState::Replaced => Ok("replaced"),
                _ => Ok("live"),
            },
            _ => Err(error::other_filter()),
        }
    }
}

impl Reader {
    fn of(hashing: Hashing, filter: Filter) -> Self {
        Reader(Arc::new(Hashed { hashing, filter }))
    }

    fn memory(&self) -> PyResult<&Memory> {
        match &self.0.filter {
            Filter::Memory(memory) => Ok(memory),
            _ => Err(error::other_filter()),
        }
    }

    fn plain(&self) -> PyResult<&Plain> {
        match self.memory()? {
            Memory::Plain(filter) => Ok(filter),
            _ => Err(error::other_filter()),
        }
    }

    fn snapshot(&self) -> PyResult<ccf::Snapshot<'_, Key<'static>, StableHashBuilder>> {
        let key_type = self.0.hashing.key_type.saved();
        Ok(of_each_kind!(self.memory()?, filter => filter.snapshot()).key_type(key_type))
    }
}

/// Builds a filter in memory.
#[pyfunction]
#[pyo3(signature = (
    kind, capacity, false_positive_rate, max_capacity, key, keys, *,
    counter_bits = 0, tags = 0, time_to_live = None, time_to_idle = None, steps = None
))]
#[expect(clippy::too_many_arguments, reason = "named ones, in Python")]
pub(crate) fn build(
    kind: Kind,
    capacity: usize,
    false_positive_rate: f64,
    max_capacity: Option<usize>,
    key: &str,
    keys: Option<(u64, u64)>,
    counter_bits: u32,
    tags: u32,
    time_to_live: Option<Duration>,
    time_to_idle: Option<Duration>,
    steps: Option<u32>,
) -> PyResult<Reader> {
    let hashing = Hashing::new(key, keys)?;
    let common = (&hashing, capacity, false_positive_rate, max_capacity);
    let memory = match kind {
        Kind::Plain => builder(common).build().map(Memory::Plain),
        Kind::Expiring => {
            let builder = time_to_live.into_iter().fold(builder(common), Builder::time_to_live);
            steps.into_iter().fold(builder, Builder::steps).build().map(Memory::Expiring)
        }
        Kind::Counting => {
            let builder = time_to_live.into_iter().fold(builder(common), Builder::time_to_live);
            let builder = time_to_idle.into_iter().fold(builder, Builder::time_to_idle).counter_bits(counter_bits);
            steps.into_iter().fold(builder, Builder::steps).build().map(Memory::Counting)
        }
        Kind::Tagged => builder(common).tags(tags).build().map(Memory::Tagged),
    };
    Ok(Reader::of(hashing, Filter::Memory(memory.map_err(error::build)?)))
}

/// Reads a filter of this kind, and checks that nothing follows it.
#[pyfunction]
pub(crate) fn load(py: Python<'_>, kind: Kind, source: Source) -> PyResult<Reader> {
    let mut source = source.open()?;
    py.detach(|| {
        let reader = SnapshotReader::new(&mut source).map_err(error::snapshot)?;
        let key_type = KeyType::saved_as(&reader.header().key_type)?;
        let memory = match kind {
            Kind::Plain => reader.into_filter().map(Memory::Plain),
            Kind::Expiring => reader.into_filter().map(Memory::Expiring),
            Kind::Counting => reader.into_filter().map(Memory::Counting),
            Kind::Tagged => reader.into_filter().map(Memory::Tagged),
        };
        let memory = memory.map_err(error::snapshot)?;
        let hasher = of_each_kind!(&memory, filter => filter.hasher().clone());
        match io::copy(&mut source.take(1), &mut io::sink()) {
            Ok(0) => Ok(Reader::of(Hashing { key_type, hasher }, Filter::Memory(memory))),
            Ok(_) => Err(error::snapshot(SnapshotError::TrailingBytes)),
            Err(error) => Err(error::snapshot(error.into())),
        }
    })
}

/// Opens a filter in a file. Most of the file is read only where lookups need it.
#[pyfunction]
pub(crate) fn open_mapped(py: Python<'_>, path: PathBuf) -> PyResult<Reader> {
    py.detach(|| {
        let filter = ccf::MappedFilter::open(&path).map_err(error::snapshot)?;
        let key_type = KeyType::saved_as(&filter.header().key_type)?;
        let hasher = StableHashBuilder::clone(filter.hasher());
        Ok(Reader::of(Hashing { key_type, hasher }, Filter::Mapped(filter)))
    })
}

/// Opens a filter to which another process writes.
#[cfg(target_os = "linux")]
#[pyfunction]
pub(crate) fn open_shared(py: Python<'_>, path: PathBuf) -> PyResult<Reader> {
    py.detach(|| {
        let filter = ccf::SharedReader::<Plain>::open(&path).map_err(error::shared)?;
        let key_type = KeyType::saved_as(&filter.header().key_type)?;
        let hashing = Hashing { key_type, hasher: filter.hasher().clone() };
        Ok(Reader::of(hashing, Filter::Shared(filter)))
    })
}

/// Writes the difference between two saved states of a filter.
#[pyfunction]
pub(crate) fn delta<'py>(py: Python<'py>, older: Source, newer: Source) -> PyResult<Bound<'py, PyBytes>> {
    let (older, newer, mut bytes) = (older.open()?, newer.open()?, Written::default());
    let write = || SnapshotReader::new(newer)?.write_delta_since(SnapshotReader::new(older)?, &mut bytes);
    py.detach(write).map_err(error::snapshot)?;
    bytes.to_python(py)
}
