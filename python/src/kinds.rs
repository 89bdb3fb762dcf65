//! The kinds of filters: sets, and those that keep a number beside each key, its time, its count or its tag.

use crate::error;
use crate::files;
use crate::filter::{Filter, Kind, Lookups, Reader, Typed};
use crate::hashed::{Hashed, Hashers};
use crate::keys::{self, Hashing};
use crate::many;
use crate::mapped::MappedFilter;
use crate::report::{RemoveReport, Report};
use crate::threads::{KEYS_IN_A_SLICE, detached};
use arrow_buffer::ScalarBuffer;
use concurrent_cuckoo_filter::{self as ccf, BulkReport, SnapshotError, SnapshotReader};
use pyo3::PyClassInitializer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::any::Any;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A class of a kind, its beginning, and what all kinds do alike.
macro_rules! kind {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[pyclass(module = "concurrent_cuckoo_filter", extends = Filter, frozen)]
        pub(crate) struct $name(Arc<Typed<ccf::$name<Hashed, Hashers>>>);

        impl $name {
            fn class(filter: Typed<ccf::$name<Hashed, Hashers>>) -> PyClassInitializer<Self> {
                let filter = Arc::new(filter);
                let reader = PyClassInitializer::from(Reader(filter.clone()));
                reader.add_subclass(Filter(filter.clone())).add_subclass($name(filter))
            }

            pub(crate) fn wrap(py: Python<'_>, filter: Typed<ccf::$name<Hashed, Hashers>>) -> PyResult<Py<Self>> {
                Py::new(py, Self::class(filter))
            }
        }

        impl Lookups for Typed<ccf::$name<Hashed, Hashers>> {
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

        impl Kind for Typed<ccf::$name<Hashed, Hashers>> {
            fn len(&self) -> usize {
                self.filter.len()
            }

            fn capacity(&self) -> usize {
                self.filter.capacity()
            }

            fn max_capacity(&self) -> usize {
                self.filter.max_capacity()
            }

            fn memory_usage(&self) -> usize {
                self.filter.memory_usage()
            }

            fn stats(&self) -> ccf::Stats {
                self.filter.stats()
            }

            fn clear(&self) {
                self.filter.clear();
            }

            fn save(&self, path: &Path) -> Result<(), SnapshotError> {
                self.filter.snapshot().key_type(self.hashing.key_type.saved()).save(path)
            }

            fn write_to(&self, writer: &mut (dyn Write + Send)) -> Result<(), SnapshotError> {
                self.filter.snapshot().key_type(self.hashing.key_type.saved()).write_to(writer)
            }

            fn copy(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
                let filter = detached(py, || self.filter.try_clone()).map_err(error::build)?;
                Ok($name::wrap(py, Typed { filter, hashing: self.hashing.clone() })?.into_any())
            }

            fn merge(&self, py: Python<'_>, other: &dyn Kind) -> PyResult<ccf::MergeReport> {
                let other: &dyn Any = other;
                let other = other.downcast_ref::<Self>().ok_or_else(|| {
                    PyTypeError::new_err(concat!("only a ", stringify!($name), " can be merged into one"))
                })?;
                detached(py, || self.filter.merge_from(&other.filter)).map_err(error::merge)
            }
        }
    };
}

/// What every kind is built with: `begun!(CuckooFilter, hashing, capacity, rate, max_capacity)`.
macro_rules! begun {
    ($kind:ident, $hashing:ident, $capacity:ident, $rate:ident, $max_capacity:ident) => {{
        let builder = ccf::$kind::builder().capacity($capacity).false_positive_rate($rate);
        let builder = builder.hasher(Hashers($hashing.hasher.clone()));
        match $max_capacity {
            Some(keys) => builder.max_capacity(keys),
            None => builder,
        }
    }};
}

/// The class of what a builder builds.
macro_rules! built {
    ($kind:ident, $hashing:ident, $builder:expr) => {
        Ok($kind::class(Typed { filter: $builder.build().map_err(error::build)?, hashing: $hashing }))
    };
}

kind! {
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
    CuckooFilter
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
    ) -> PyResult<PyClassInitializer<Self>> {
        let hashing = Hashing::new(key, keys)?;
        built!(CuckooFilter, hashing, begun!(CuckooFilter, hashing, capacity, false_positive_rate, max_capacity))
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
        let filter = &self.0.filter;
        many::insert(&self.0.hashing, keys, |keys, stored, pool, _| {
            let bulk = || filter.bulk().max_listed(KEYS_IN_A_SLICE);
            match (pool, unique) {
                (Some(pool), true) => pool.install(|| bulk().insert_unique(keys, stored)),
                (None, true) => filter.insert_unique_batch(keys, stored),
                (Some(pool), false) => noted(stored, pool.install(|| bulk().insert(keys)), None),
                (None, false) => noted(stored, filter.insert_batch(keys), None),
            }
        })
    }

    /// Stores a key if it is absent, and says whether it was. As `insert` with `unique=True`: remove only a key that was stored.
    ///
    /// >>> from concurrent_cuckoo_filter import CuckooFilter
    /// >>> seen = CuckooFilter(100)
    /// >>> seen.add("event 1"), seen.add("event 1")
    /// (True, False)
    fn add(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let stored = self.0.filter.insert_unique(&Hashed(self.0.hashing.one(key)?));
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
        many::remove(&self.0.hashing, keys, |keys, _| self.0.filter.remove_batch(keys))
    }

    /// Opens a file that `save` has written, to be asked where it lies: in less than a millisecond whatever its size, in memory
    /// that all processes of a machine share. See `MappedFilter`.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Py<MappedFilter>> {
        MappedFilter::open(py, path)
    }

    /// Takes over what a `delta` says: a filter that holds what the older file held, as one that was loaded from it does, holds
    /// what the newer one held. Returns the numbers of copies that were inserted and removed. Lookups may go on; no other
    /// thread may write. Of filters that do not grow.
    ///
    /// Raises `SnapshotError`, and changes nothing, if the delta is damaged, or the filter does not hold what the older file held.
    ///
    /// >>> from concurrent_cuckoo_filter import CuckooFilter, delta
    /// >>> blocked = CuckooFilter(100)
    /// >>> yesterday = blocked.to_bytes()
    /// >>> _ = blocked.insert(["a", "b"])
    /// >>> replica = CuckooFilter.from_bytes(yesterday)
    /// >>> replica.apply_delta(delta(yesterday, blocked.to_bytes()))
    /// (2, 0)
    /// >>> "a" in replica
    /// True
    fn apply_delta(&self, source: &Bound<'_, PyAny>) -> PyResult<(usize, usize)> {
        let delta = files::open(source)?;
        let report = detached(source.py(), || self.0.filter.apply_delta(delta)).map_err(error::snapshot)?;
        Ok((report.inserted, report.removed))
    }
}

/// What has changed from an older file of a filter to a newer one, as bytes for `CuckooFilter.apply_delta`: 6 of them for each key
/// that came or went. Both are paths, URLs, open files, or what `to_bytes` returned.
#[pyfunction]
pub(crate) fn delta<'py>(older: &Bound<'py, PyAny>, newer: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let (py, mut bytes) = (older.py(), Vec::new());
    let (older, newer) = (files::open(older)?, files::open(newer)?);
    let write = || SnapshotReader::new(newer)?.write_delta_since(SnapshotReader::new(older)?, &mut bytes);
    py.detach(write).map_err(error::snapshot)?;
    Ok(PyBytes::new(py, &bytes))
}

kind! {
    /// A filter that forgets keys after a time, which is told by `advance_to`.
    ///
    /// `time_to_live` is a `timedelta`: a key lives at least so long, and at most 1 / `steps` longer. The other arguments are those
    /// of `CuckooFilter`; `capacity` is the number of keys that live at a time.
    ///
    /// >>> from datetime import timedelta
    /// >>> from concurrent_cuckoo_filter import ExpiringFilter
    /// >>> seen = ExpiringFilter(1_000, time_to_live=timedelta(hours=24))
    /// >>> seen.see(["a", "b", "a"]).stored.to_pylist()
    /// [True, True, False]
    /// >>> _ = seen.advance_to(timedelta(hours=36))
    /// >>> "a" in seen
    /// False
    ExpiringFilter
}

#[pymethods]
impl ExpiringFilter {
    #[new]
    #[pyo3(signature = (
        capacity, false_positive_rate = 0.001, *, time_to_live, steps = None, max_capacity = None, key = "str", keys = None
    ))]
    fn new(
        capacity: usize,
        false_positive_rate: f64,
        time_to_live: Duration,
        steps: Option<u32>,
        max_capacity: Option<usize>,
        key: &str,
        keys: Option<(u64, u64)>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let hashing = Hashing::new(key, keys)?;
        let builder = begun!(ExpiringFilter, hashing, capacity, false_positive_rate, max_capacity);
        let builder = builder.time_to_live(time_to_live);
        built!(ExpiringFilter, hashing, steps.into_iter().fold(builder, ccf::ExpiringBuilder::steps))
    }

    /// Notes that keys were seen: stores those that were not seen within the time to live, and renews the others.
    /// `report.stored` says which were new.
    fn see(&self, keys: &Bound<'_, PyAny>) -> PyResult<Report> {
        many::insert(&self.0.hashing, keys, |keys, stored, _, _| {
            let mut seen = vec![false; keys.len()];
            let report = self.0.filter.see_batch(keys, &mut seen);
            noted(stored, report, Some(&seen))
        })
    }

    /// Stores a copy of each key, for the whole time to live.
    fn insert(&self, keys: &Bound<'_, PyAny>) -> PyResult<Report> {
        many::insert(&self.0.hashing, keys, |keys, stored, _, _| noted(stored, self.0.filter.insert_batch(keys), None))
    }

    /// Removes a copy of each key. Remove only what was stored.
    fn remove(&self, keys: &Bound<'_, PyAny>) -> PyResult<RemoveReport> {
        many::remove(&self.0.hashing, keys, |keys, _| self.0.filter.remove_batch(keys))
    }

    /// Says how much time has passed since the filter was made or loaded: what has lived its time is forgotten. Returns the
    /// number of ticks that have passed. A time before the last one changes nothing.
    fn advance_to(&self, py: Python<'_>, elapsed: Duration) -> u64 {
        detached(py, || self.0.filter.advance_to(elapsed))
    }

    /// Makes one tick, for who counts time by himself. Returns how many places were cleared.
    fn advance(&self, py: Python<'_>) -> usize {
        detached(py, || self.0.filter.advance())
    }

    /// The time that a key lives.
    #[getter]
    fn time_to_live(&self) -> Duration {
        self.0.filter.time_to_live()
    }

    /// The time between two ticks.
    #[getter]
    fn tick(&self) -> Duration {
        self.0.filter.tick()
    }
}

kind! {
    /// A filter that counts how often each key was added, in one place for a key.
    ///
    /// A count is never too low, up to `max_count`, which follows from `counter_bits` (1 to 16). The other arguments are those of
    /// `CuckooFilter`.
    ///
    /// With `time_to_live` a count dies that long after the first addition of its key, and the next addition begins at 1; with
    /// `time_to_idle` it dies when its key was not added for so long. Time is told by `advance_to`, and divided into `steps`: a count
    /// lives at most one of them longer.
    ///
    /// >>> from concurrent_cuckoo_filter import CountingFilter
    /// >>> words = CountingFilter(1_000)
    /// >>> _ = words.add(["a", "b", "a"])
    /// >>> words.count(["a", "b", "c", None]).to_pylist()
    /// [2, 1, 0, None]
    CountingFilter
}

#[pymethods]
impl CountingFilter {
    #[new]
    #[pyo3(signature = (
        capacity, false_positive_rate = 0.001, *, counter_bits = 4, time_to_live = None, time_to_idle = None, steps = None,
        max_capacity = None, key = "str", keys = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "named ones, in Python")]
    fn new(
        capacity: usize,
        false_positive_rate: f64,
        counter_bits: u32,
        time_to_live: Option<Duration>,
        time_to_idle: Option<Duration>,
        steps: Option<u32>,
        max_capacity: Option<usize>,
        key: &str,
        keys: Option<(u64, u64)>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let hashing = Hashing::new(key, keys)?;
        let builder = begun!(CountingFilter, hashing, capacity, false_positive_rate, max_capacity);
        let builder = match (time_to_live, time_to_idle) {
            (Some(_), Some(_)) => return Err(PyValueError::new_err("give time_to_live or time_to_idle, not both")),
            (Some(time), None) => builder.time_to_live(time),
            (None, Some(time)) => builder.time_to_idle(time),
            (None, None) => builder,
        };
        let builder = steps.into_iter().fold(builder.counter_bits(counter_bits), ccf::CountingBuilder::steps);
        built!(CountingFilter, hashing, builder)
    }

    /// Adds one to the count of each key. `report.stored` is true of the keys that were counted.
    fn add(&self, keys: &Bound<'_, PyAny>) -> PyResult<Report> {
        many::insert(&self.0.hashing, keys, |keys, stored, _, _| {
            noted(stored, self.0.filter.add_batch(keys, &mut vec![0; keys.len()]), None)
        })
    }

    /// Adds one to the count of each key of which it is below `limit`. `report.stored` is true of the keys that were counted: with a
    /// window, those that may pass.
    ///
    /// >>> from datetime import timedelta
    /// >>> from concurrent_cuckoo_filter import CountingFilter
    /// >>> requests = CountingFilter(1_000, time_to_live=timedelta(minutes=1))
    /// >>> requests.try_add(["a", "a", "b", "a"], 2).stored.to_pylist()
    /// [True, True, True, False]
    /// >>> _ = requests.advance_to(timedelta(minutes=2))
    /// >>> requests.try_add(["a"], 2).stored.to_pylist()
    /// [True]
    fn try_add(&self, keys: &Bound<'_, PyAny>, limit: u32) -> PyResult<Report> {
        many::insert(&self.0.hashing, keys, |keys, stored, _, _| {
            let mut counts = vec![0; keys.len()];
            let report = self.0.filter.try_add_batch(keys, limit, &mut counts);
            stored.iter_mut().zip(counts).for_each(|(stored, count)| *stored = count > 0);
            report
        })
    }

    /// Takes one from the count of each key, and returns what is left of them as a `pyarrow.UInt32Array` or such a Series; null of
    /// those that are absent. A count at `max_count` stays, as it may stand for more. Subtract only what was added.
    fn subtract<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        many::numbers(&self.0.hashing, keys, |keys, to| self.0.filter.subtract_batch(keys, to))
    }

    /// How often each key was added, as a `pyarrow.UInt32Array` or such a Series.
    fn count<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        many::numbers(&self.0.hashing, keys, |keys, to| {
            let mut counts = vec![0; keys.len()];
            self.0.filter.count_batch(keys, &mut counts);
            to.iter_mut().zip(counts).for_each(|(to, count)| *to = Some(count));
        })
    }

    /// Forgets keys, whatever their counts.
    fn remove(&self, keys: &Bound<'_, PyAny>) -> PyResult<RemoveReport> {
        many::remove(&self.0.hashing, keys, |keys, _| self.0.filter.remove_batch(keys))
    }

    /// As `ExpiringFilter.advance_to`, of counts with a window; 0 without one.
    fn advance_to(&self, py: Python<'_>, elapsed: Duration) -> u64 {
        detached(py, || self.0.filter.advance_to(elapsed))
    }

    /// As `ExpiringFilter.advance`.
    fn advance(&self, py: Python<'_>) -> usize {
        detached(py, || self.0.filter.advance())
    }

    /// The largest count, at which a counter stays.
    #[getter]
    fn max_count(&self) -> u32 {
        self.0.filter.max_count()
    }

    /// The time that a count lives from its first addition, or None.
    #[getter]
    fn time_to_live(&self) -> Option<Duration> {
        self.0.filter.time_to_live()
    }

    /// The time that a count lives from its last addition, or None.
    #[getter]
    fn time_to_idle(&self) -> Option<Duration> {
        self.0.filter.time_to_idle()
    }

    /// The time between two ticks, or None.
    #[getter]
    fn tick(&self) -> Option<Duration> {
        self.0.filter.tick()
    }
}

kind! {
    /// A filter with a small number beside each key, its tag: on which list it is, or for which reason.
    ///
    /// `tags` is the number of different tags, 1 to 65,535: they begin with 0. The other arguments are those of `CuckooFilter`.
    ///
    /// >>> from concurrent_cuckoo_filter import TaggedFilter
    /// >>> lists = TaggedFilter(1_000)
    /// >>> _ = lists.insert(["a", "b"], 3)
    /// >>> lists.tag(["a", "c"]).to_pylist()
    /// [3, None]
    TaggedFilter
}

#[pymethods]
impl TaggedFilter {
    #[new]
    #[pyo3(signature = (
        capacity, false_positive_rate = 0.001, *, tags = 7, max_capacity = None, key = "str", keys = None
    ))]
    fn new(
        capacity: usize,
        false_positive_rate: f64,
        tags: u32,
        max_capacity: Option<usize>,
        key: &str,
        keys: Option<(u64, u64)>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let hashing = Hashing::new(key, keys)?;
        let builder = begun!(TaggedFilter, hashing, capacity, false_positive_rate, max_capacity);
        built!(TaggedFilter, hashing, builder.tags(tags))
    }

    /// Stores a copy of each key with its tag. `tag` is one for all keys, or an array of the length of `keys`.
    ///
    /// >>> from concurrent_cuckoo_filter import TaggedFilter
    /// >>> lists = TaggedFilter(1_000)
    /// >>> _ = lists.insert(["a", "b"], [3, 1])
    /// >>> lists.tag(["a", "b"]).to_pylist()
    /// [3, 1]
    fn insert(&self, keys: &Bound<'_, PyAny>, tag: &Bound<'_, PyAny>) -> PyResult<Report> {
        let (filter, tags) = (&self.0.filter, self.tags(keys, tag)?);
        many::insert(&self.0.hashing, keys, |keys, stored, _, at| {
            let mut report = BulkReport::default();
            tags.each(keys, at, |tag, keys, index| {
                let of_tag = filter.insert_batch(keys, tag);
                report.inserted += of_tag.inserted;
                report.rejected.extend(of_tag.rejected.into_iter().map(|mut rejection| {
                    rejection.index = index(rejection.index);
                    rejection
                }));
            });
            report.rejected.sort_by_key(|rejection| rejection.index);
            noted(stored, report, None)
        })
    }

    /// The tag of each key, the smallest if it has several, as a `pyarrow.UInt32Array` or such a Series; null if it has none.
    fn tag<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        many::numbers(&self.0.hashing, keys, |keys, to| self.0.filter.tag_batch(keys, to))
    }

    /// Removes a copy of each key with its tag, which is given as for `insert`.
    fn remove(&self, keys: &Bound<'_, PyAny>, tag: &Bound<'_, PyAny>) -> PyResult<RemoveReport> {
        let (filter, tags) = (&self.0.filter, self.tags(keys, tag)?);
        many::remove(&self.0.hashing, keys, |keys, at| {
            let mut report = ccf::RemoveReport::default();
            tags.each(keys, at, |tag, keys, index| {
                let of_tag = filter.remove_batch(keys, tag);
                report.removed += of_tag.removed;
                report.missing.extend(of_tag.missing.into_iter().map(index));
            });
            report.missing.sort_unstable();
            report
        })
    }

    /// The largest tag.
    #[getter]
    fn max_tag(&self) -> u32 {
        self.0.filter.max_tag()
    }
}

impl TaggedFilter {
    fn tags(&self, keys: &Bound<'_, PyAny>, tag: &Bound<'_, PyAny>) -> PyResult<Tags> {
        let tags = match tag.extract() {
            Ok(tag) => Tags::OfAll(tag),
            Err(_) => Tags::OfEach(keys::tags(keys, tag)?),
        };
        let (largest, most) = (tags.largest(), self.0.filter.max_tag());
        if largest <= most {
            return Ok(tags);
        }
        Err(PyValueError::new_err(format!("tag {largest} was given; this filter has the tags 0 to {most}: see `tags`")))
    }
}

/// The tags of keys.
enum Tags {
    OfAll(u32),
    OfEach(ScalarBuffer<u32>),
}

impl Tags {
    fn largest(&self) -> u32 {
        match self {
            Tags::OfAll(tag) => *tag,
            Tags::OfEach(tags) => tags.iter().copied().max().unwrap_or(0),
        }
    }

    /// Calls `work` with each tag, the keys that have it, and a function from their indices to those of all keys. `at` returns the index
    /// in the input.
    fn each(
        &self,
        keys: &[Hashed],
        at: &dyn Fn(usize) -> usize,
        mut work: impl FnMut(u32, &[Hashed], &dyn Fn(usize) -> usize),
    ) {
        let tags = match self {
            Tags::OfAll(tag) => return work(*tag, keys, &|index| index),
            Tags::OfEach(tags) => tags,
        };
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_by_key(|&index| tags[at(index)]);
        for of_tag in order.chunk_by(|&one, &other| tags[at(one)] == tags[at(other)]) {
            let keys: Vec<Hashed> = of_tag.iter().map(|&index| keys[index]).collect();
            work(tags[at(of_tag[0])], &keys, &|index| of_tag[index]);
        }
    }
}

/// Notes which keys were stored: those that are neither `present` nor refused.
fn noted(stored: &mut [bool], report: BulkReport, present: Option<&[bool]>) -> BulkReport {
    match present {
        Some(present) => stored.iter_mut().zip(present).for_each(|(stored, present)| *stored = !present),
        None => stored.fill(true),
    }
    report.rejected.iter().for_each(|rejection| stored[rejection.index] = false);
    report
}
