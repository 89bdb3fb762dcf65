//! The kinds of filters: sets, and those that keep a number beside each key, its time, its count or its tag.

use crate::error;
use crate::files;
use crate::filter::{Filter, Of, Reader, Typed};
use crate::keys::{self, Hashing, Key};
use crate::many;
use crate::mapped::MappedFilter;
use crate::report::{RemoveReport, Report};
use crate::threads::{KEYS_IN_A_SLICE, detached};
use arrow_buffer::ScalarBuffer;
use concurrent_cuckoo_filter::{self as ccf, BulkReport, SnapshotReader, StableHashBuilder, kind};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3::{PyClass, PyClassInitializer};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

type Builder<T> = ccf::Builder<Key<'static>, StableHashBuilder, T>;

/// A kind, and its class in Python.
pub(crate) trait Class: kind::Kind {
    const NAME: &'static str;
    fn wrap(py: Python<'_>, filter: Of<Self>) -> PyResult<Py<PyAny>>;
}

macro_rules! class {
    ($(#[$doc:meta])* $name:ident, $kind:ident) => {
        $(#[$doc])*
        #[pyclass(module = "concurrent_cuckoo_filter", extends = Filter, frozen)]
        pub(crate) struct $name(Arc<Of<kind::$kind>>);

        impl From<Of<kind::$kind>> for PyClassInitializer<$name> {
            fn from(filter: Of<kind::$kind>) -> Self {
                let filter = Arc::new(filter);
                let reader = PyClassInitializer::from(Reader(filter.clone()));
                reader.add_subclass(Filter(filter.clone())).add_subclass($name(filter))
            }
        }

        impl Class for kind::$kind {
            const NAME: &'static str = stringify!($name);

            fn wrap(py: Python<'_>, filter: Of<Self>) -> PyResult<Py<PyAny>> {
                Ok(Py::<$name>::new(py, filter)?.into_any())
            }
        }
    };
}

/// Builds what the arguments of all kinds ask for, and `with` those of one kind.
fn build<T: Class, C: PyClass>(
    (capacity, max_capacity): (usize, Option<usize>),
    false_positive_rate: f64,
    (key, keys): (&str, Option<(u64, u64)>),
    with: impl FnOnce(Builder<T>) -> Builder<T>,
) -> PyResult<PyClassInitializer<C>>
where
    Of<T>: Into<PyClassInitializer<C>>,
{
    let hashing = Hashing::new(key, keys)?;
    let builder = ccf::Filter::builder().capacity(capacity).false_positive_rate(false_positive_rate);
    let builder = builder.hasher(hashing.hasher.clone());
    let builder = match max_capacity {
        Some(keys) => builder.max_capacity(keys),
        None => builder,
    };
    Ok(Typed { filter: with(builder).build().map_err(error::build)?, hashing }.into())
}

class! {
    /// An approximate set of strings, bytes or integers in about 14 bits per key.
    ///
    /// "No" is certain. "Yes" is wrong for one absent key in 1,000, or for the fraction `false_positive_rate` of them. `capacity` is the
    /// number of keys that fit. With `max_capacity`, the filter starts with room for `capacity` keys and grows up to that number. `key` is
    /// the type of the keys: "str", "bytes", "i64" or "u64". `keys` are the two 64-bit keys of the hash function, random by default;
    /// filters with equal `keys` hash alike and can be merged.
    ///
    /// Keys are passed as Arrow arrays (pyarrow, polars, pandas, DuckDB, or any other library with Arrow's C interface), numpy arrays, or
    /// lists. Integers of other widths and dictionaries are cast. Any number of threads may use one filter; methods that take many keys
    /// release the GIL.
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
    CuckooFilter, Plain
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
        build((capacity, max_capacity), false_positive_rate, (key, keys), |builder: Builder<kind::Plain>| builder)
    }

    /// Stores a copy of each key and returns a `Report`. A key can be stored up to 8 times, and has to be removed as often. All keys
    /// that were inserted this way can be removed without loss of other keys. Large inputs are stored by all cores.
    ///
    /// With `unique=True`, a key is stored only if it is absent. The mask `report.stored` is true for the stored keys, which are the new
    /// ones. **Remove only these:** a key that was not stored shares its place with another key, or with an equal one that was stored
    /// before, and its removal would remove that one.
    ///
    /// Raises `RefusedError` if keys found no room. All other keys are stored, and `error.report` lists the refused ones. Ctrl-C ends the
    /// call between two parts of the input; the keys of earlier parts stay stored.
    ///
    /// >>> from concurrent_cuckoo_filter import CuckooFilter
    /// >>> seen = CuckooFilter(1_000_000)
    /// >>> report = seen.insert(["a", "b"])
    /// >>> seen.insert(["b", "c", None, "c"], unique=True).stored.to_pylist()
    /// [False, True, None, False]
    #[pyo3(signature = (keys, *, unique = false))]
    fn insert(&self, keys: &Bound<'_, PyAny>, unique: bool) -> PyResult<Report> {
        let filter = self.0.filter.hashed();
        many::insert(&self.0.hashing, keys, |keys, stored, pool, _| {
            let bulk = || filter.bulk().max_listed(KEYS_IN_A_SLICE);
            match (pool, unique) {
                (Some(pool), true) => pool.install(|| {
                    let look_up = |keys: &[u64], found: &mut [bool]| bulk().contains(keys, found);
                    insert_absent(keys, stored, look_up, |keys, stored| bulk().insert_unique(keys, stored))
                }),
                (None, true) => {
                    let look_up = |keys: &[u64], found: &mut [bool]| filter.contains_batch(keys, found);
                    insert_absent(keys, stored, look_up, |keys, stored| filter.insert_unique_batch(keys, stored))
                }
                (Some(pool), false) => noted(stored, pool.install(|| bulk().insert(keys)), None),
                (None, false) => noted(stored, filter.insert_batch(keys), None),
            }
        })
    }

    /// Stores one key if it is absent, and returns whether it was stored. Remove only keys that were, as after `insert` with `unique=True`.
    ///
    /// >>> from concurrent_cuckoo_filter import CuckooFilter
    /// >>> seen = CuckooFilter(100)
    /// >>> seen.add("event 1"), seen.add("event 1")
    /// (True, False)
    fn add(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let stored = self.0.filter.hashed().insert_unique(&self.0.hashing.one(key)?);
        stored.map_err(|error| error::RefusedError::new_err(error.to_string()))
    }

    /// Removes a copy of each key and returns a `RemoveReport`. Remove only keys that were stored: removing any other key may
    /// remove a stored one.
    ///
    /// >>> from concurrent_cuckoo_filter import CuckooFilter
    /// >>> numbers = CuckooFilter(100, key="i64")
    /// >>> numbers.insert([1, -2]).inserted
    /// 2
    /// >>> report = numbers.remove([-2, 3])
    /// >>> report.removed, report.missing_at
    /// (1, [1])
    fn remove(&self, keys: &Bound<'_, PyAny>) -> PyResult<RemoveReport> {
        many::remove(&self.0.hashing, keys, |keys, _| self.0.filter.hashed().remove_batch(keys))
    }

    /// Maps a file that `save` has written into memory, to query it in place. It takes less than a millisecond for a file of any size, and
    /// all processes of a machine share the memory. See `MappedFilter`.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Py<MappedFilter>> {
        MappedFilter::open(py, path)
    }

    /// Applies a `delta` to a filter with the contents of its older file, which then has the contents of the newer one. Returns the
    /// numbers of inserted and removed copies. Other threads may query the filter during the call, but not change it. Filters that grow
    /// have no deltas.
    ///
    /// Raises `SnapshotError` without a change if the delta is damaged, or the contents are not those of the older file.
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

/// Returns the difference between two saved states of a filter, as bytes for `CuckooFilter.apply_delta`: 6 bytes per key that was inserted
/// or removed. Each state is a path, an fsspec URL, a file object, or the bytes of `to_bytes`.
#[pyfunction]
pub(crate) fn delta<'py>(older: &Bound<'py, PyAny>, newer: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let (py, mut bytes) = (older.py(), Vec::new());
    let (older, newer) = (files::open(older)?, files::open(newer)?);
    let write = || SnapshotReader::new(newer)?.write_delta_since(SnapshotReader::new(older)?, &mut bytes);
    py.detach(write).map_err(error::snapshot)?;
    Ok(PyBytes::new(py, &bytes))
}

class! {
    /// A filter whose keys expire. It has no clock: pass the time to `advance_to`.
    ///
    /// A key lives for `time_to_live`, a `timedelta`, and at most 1 / `steps` of it longer. `capacity` is the number of keys that live at the
    /// same time. The other arguments are those of `CuckooFilter`.
    ///
    /// >>> from datetime import timedelta
    /// >>> from concurrent_cuckoo_filter import ExpiringFilter
    /// >>> seen = ExpiringFilter(1_000, time_to_live=timedelta(hours=24))
    /// >>> seen.see(["a", "b", "a"]).stored.to_pylist()
    /// [True, True, False]
    /// >>> _ = seen.advance_to(timedelta(hours=36))
    /// >>> "a" in seen
    /// False
    ExpiringFilter, Expiring
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
        build((capacity, max_capacity), false_positive_rate, (key, keys), |builder: Builder<kind::Expiring>| {
            let builder = builder.time_to_live(time_to_live);
            steps.into_iter().fold(builder, Builder::<kind::Expiring>::steps)
        })
    }

    /// Stores the keys that were not seen within the time to live, and renews the others. `report.stored` is true for the stored ones.
    fn see(&self, keys: &Bound<'_, PyAny>) -> PyResult<Report> {
        many::insert(&self.0.hashing, keys, |keys, stored, _, _| {
            let mut seen = vec![false; keys.len()];
            let report = self.0.filter.hashed().see_batch(keys, &mut seen);
            noted(stored, report, Some(&seen))
        })
    }

    /// Stores a copy of each key for the whole time to live.
    fn insert(&self, keys: &Bound<'_, PyAny>) -> PyResult<Report> {
        many::insert(&self.0.hashing, keys, |keys, stored, _, _| {
            noted(stored, self.0.filter.hashed().insert_batch(keys), None)
        })
    }

    /// Removes a copy of each key. Remove only keys that were stored.
    fn remove(&self, keys: &Bound<'_, PyAny>) -> PyResult<RemoveReport> {
        many::remove(&self.0.hashing, keys, |keys, _| self.0.filter.hashed().remove_batch(keys))
    }

    /// Sets the time since the filter was created or loaded, and drops expired keys. Returns the number of ticks since the last call. An
    /// earlier time than that of the last call changes nothing.
    fn advance_to(&self, py: Python<'_>, elapsed: Duration) -> u64 {
        detached(py, || self.0.filter.advance_to(elapsed))
    }

    /// Advances the time by one tick. Returns the number of cleared slots.
    fn advance(&self, py: Python<'_>) -> usize {
        detached(py, || self.0.filter.advance())
    }

    /// The lifetime of a key.
    #[getter]
    fn time_to_live(&self) -> Option<Duration> {
        self.0.filter.config().time_to_live
    }

    /// The time between two ticks.
    #[getter]
    fn tick(&self) -> Option<Duration> {
        self.0.filter.config().tick
    }
}

class! {
    /// A filter that counts how often each key was added, in one slot per key.
    ///
    /// A count is never too low, up to `max_count`, which follows from `counter_bits` (1 to 16). The other arguments are those of
    /// `CuckooFilter`.
    ///
    /// With `time_to_live`, a count expires this long after the first addition of its key, and the next addition starts at 1. With
    /// `time_to_idle`, it expires this long after the last addition. The caller passes the time to `advance_to`; it is divided into `steps`,
    /// and a count lives at most one step longer.
    ///
    /// >>> from concurrent_cuckoo_filter import CountingFilter
    /// >>> words = CountingFilter(1_000)
    /// >>> _ = words.add(["a", "b", "a"])
    /// >>> words.count(["a", "b", "c", None]).to_pylist()
    /// [2, 1, 0, None]
    CountingFilter, Counting
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
        if time_to_live.is_some() && time_to_idle.is_some() {
            return Err(PyValueError::new_err("give time_to_live or time_to_idle, not both"));
        }
        build((capacity, max_capacity), false_positive_rate, (key, keys), |builder: Builder<kind::Counting>| {
            let builder = builder.counter_bits(counter_bits);
            let builder = time_to_live.into_iter().fold(builder, Builder::<kind::Counting>::time_to_live);
            let builder = time_to_idle.into_iter().fold(builder, Builder::<kind::Counting>::time_to_idle);
            steps.into_iter().fold(builder, Builder::<kind::Counting>::steps)
        })
    }

    /// Adds 1 to the count of each key. `report.stored` is true for the counted keys.
    fn add(&self, keys: &Bound<'_, PyAny>) -> PyResult<Report> {
        many::insert(&self.0.hashing, keys, |keys, stored, _, _| {
            noted(stored, self.0.filter.hashed().add_batch(keys, &mut vec![0; keys.len()]), None)
        })
    }

    /// Adds 1 to the count of each key whose count is below `limit`. `report.stored` is true for the counted keys: with `time_to_live`,
    /// these are the ones within a rate limit.
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
            let report = self.0.filter.hashed().try_add_batch(keys, limit, &mut counts);
            stored.iter_mut().zip(counts).for_each(|(stored, count)| *stored = count > 0);
            report
        })
    }

    /// Subtracts 1 from the count of each key, and returns the new counts as a `pyarrow.UInt32Array` or a Series of integers; null for
    /// absent keys. A count at `max_count` stays, since it may stand for a larger one. Subtract only keys that were added.
    fn subtract<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        many::numbers(&self.0.hashing, keys, |keys, to| self.0.filter.hashed().subtract_batch(keys, to))
    }

    /// Returns how often each key was added, as a `pyarrow.UInt32Array` or a Series of integers.
    fn count<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        many::numbers(&self.0.hashing, keys, |keys, to| {
            let mut counts = vec![0; keys.len()];
            self.0.filter.hashed().count_batch(keys, &mut counts);
            to.iter_mut().zip(counts).for_each(|(to, count)| *to = Some(count));
        })
    }

    /// Removes keys with their counts.
    fn remove(&self, keys: &Bound<'_, PyAny>) -> PyResult<RemoveReport> {
        many::remove(&self.0.hashing, keys, |keys, _| self.0.filter.hashed().remove_batch(keys))
    }

    /// Sets the time and drops expired counts, like `ExpiringFilter.advance_to`. Returns 0 if counts do not expire.
    fn advance_to(&self, py: Python<'_>, elapsed: Duration) -> u64 {
        detached(py, || self.0.filter.advance_to(elapsed))
    }

    /// Advances the time by one tick, like `ExpiringFilter.advance`.
    fn advance(&self, py: Python<'_>) -> usize {
        detached(py, || self.0.filter.advance())
    }

    /// The largest count. A counter stays there.
    #[getter]
    fn max_count(&self) -> u32 {
        self.0.filter.config().max_count
    }

    /// The lifetime of a count from its first addition, or None.
    #[getter]
    fn time_to_live(&self) -> Option<Duration> {
        self.0.filter.config().time_to_live
    }

    /// The lifetime of a count from its last addition, or None.
    #[getter]
    fn time_to_idle(&self) -> Option<Duration> {
        self.0.filter.config().time_to_idle
    }

    /// The time between two ticks, or None.
    #[getter]
    fn tick(&self) -> Option<Duration> {
        self.0.filter.config().tick
    }
}

class! {
    /// A filter that stores a small integer with each key, its tag: the list the key is on, or a reason.
    ///
    /// `tags` is the number of different tags, 1 to 65,535; the smallest tag is 0. The other arguments are those of `CuckooFilter`.
    ///
    /// >>> from concurrent_cuckoo_filter import TaggedFilter
    /// >>> lists = TaggedFilter(1_000)
    /// >>> _ = lists.insert(["a", "b"], 3)
    /// >>> lists.tag(["a", "c"]).to_pylist()
    /// [3, None]
    TaggedFilter, Tagged
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
        build((capacity, max_capacity), false_positive_rate, (key, keys), |builder: Builder<kind::Tagged>| {
            builder.tags(tags)
        })
    }

    /// Stores a copy of each key with its tag. `tag` is one for all keys, or an array of the length of `keys`.
    ///
    /// >>> from concurrent_cuckoo_filter import TaggedFilter
    /// >>> lists = TaggedFilter(1_000)
    /// >>> _ = lists.insert(["a", "b"], [3, 1])
    /// >>> lists.tag(["a", "b"]).to_pylist()
    /// [3, 1]
    fn insert(&self, keys: &Bound<'_, PyAny>, tag: &Bound<'_, PyAny>) -> PyResult<Report> {
        let (filter, tags) = (self.0.filter.hashed(), self.tags(keys, tag)?);
        many::insert(&self.0.hashing, keys, |keys, stored, _, at| {
            let mut report = BulkReport::default();
            tags.each(keys, at, |tag, keys, index| {
                let Ok(of_tag) = filter.insert_batch(keys, tag) else { return };
                report.inserted += of_tag.inserted;
                report.refused.extend(of_tag.refused.into_iter().map(|mut refusal| {
                    refusal.index = index(refusal.index);
                    refusal
                }));
            });
            report.refused.sort_by_key(|refusal| refusal.index);
            noted(stored, report, None)
        })
    }

    /// Returns the tag of each key, the smallest of several, as a `pyarrow.UInt32Array` or a Series of integers; null for absent keys.
    fn tag<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        many::numbers(&self.0.hashing, keys, |keys, to| self.0.filter.hashed().tag_batch(keys, to))
    }

    /// Removes a copy of each key with its tag, which is given as for `insert`.
    fn remove(&self, keys: &Bound<'_, PyAny>, tag: &Bound<'_, PyAny>) -> PyResult<RemoveReport> {
        let (filter, tags) = (self.0.filter.hashed(), self.tags(keys, tag)?);
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
        self.0.filter.config().max_tag
    }
}

impl TaggedFilter {
    fn tags(&self, keys: &Bound<'_, PyAny>, tag: &Bound<'_, PyAny>) -> PyResult<Tags> {
        let tags = match tag.extract() {
            Ok(tag) => Tags::OfAll(tag),
            Err(_) => Tags::OfEach(keys::numbers(keys.py(), "tags", (keys, tag))?),
        };
        let (largest, most) = (tags.largest(), self.0.filter.config().max_tag);
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
        keys: &[u64],
        at: &dyn Fn(usize) -> usize,
        mut work: impl FnMut(u32, &[u64], &dyn Fn(usize) -> usize),
    ) {
        let tags = match self {
            Tags::OfAll(tag) => return work(*tag, keys, &|index| index),
            Tags::OfEach(tags) => tags,
        };
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_by_key(|&index| tags[at(index)]);
        for of_tag in order.chunk_by(|&one, &other| tags[at(one)] == tags[at(other)]) {
            let keys: Vec<u64> = of_tag.iter().map(|&index| keys[index]).collect();
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
    report.refused.iter().for_each(|refusal| stored[refusal.index] = false);
    report
}

/// Stores absent keys by `insert`. If most of the first keys are present, `look_up` finds the present ones beforehand, in a fraction of the
/// time that an insertion takes to find its key, and `insert` decides on the others.
fn insert_absent(
    keys: &[u64],
    stored: &mut [bool],
    look_up: impl Fn(&[u64], &mut [bool]),
    insert: impl Fn(&[u64], &mut [bool]) -> BulkReport,
) -> BulkReport {
    const SAMPLE: usize = 256;
    let sample = keys.len().min(SAMPLE);
    look_up(&keys[..sample], &mut stored[..sample]);
    if stored[..sample].iter().filter(|&&present| present).count() <= sample / 2 {
        return insert(keys, stored);
    }
    look_up(keys, stored);
    let absent: Vec<_> = (0..keys.len()).filter(|&index| !stored[index]).collect();
    let mut admitted = vec![false; absent.len()];
    let mut report = insert(&absent.iter().map(|&index| keys[index]).collect::<Vec<_>>(), &mut admitted);
    report.present += keys.len() - absent.len();
    report.refused.iter_mut().for_each(|rejection| rejection.index = absent[rejection.index]);
    stored.fill(false);
    absent.iter().zip(admitted).for_each(|(&index, is)| stored[index] = is);
    report
}
