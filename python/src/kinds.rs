//! Filters with a number beside each key: its time, its count or its tag.

use crate::error;
use crate::keys::{Column, Hashing, KeyType};
use crate::many::{self, answers, each};
use crate::report::{RemoveReport, Report};
use crate::threads::detached;
use arrow_array::UInt32Array;
use concurrent_cuckoo_filter::{self as ccf, BulkReport, SavedHasher, SnapshotReader, StableHashBuilder, StableHasher};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::hash::{BuildHasher, Hash, Hasher};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A key that is hashed: its own hash, by `Hashers`.
#[derive(Clone, Copy)]
struct Hashed(u64);

/// Its address tells that a hash follows. No key lies there.
static A_HASH: [u8; 1] = [0];

impl Hash for Hashed {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&A_HASH);
        state.write_u64(self.0);
    }
}

/// The stable hash function, which leaves hashes as they are.
struct Hashers(StableHashBuilder);

impl BuildHasher for Hashers {
    type Hasher = OrHash;

    fn build_hasher(&self) -> OrHash {
        OrHash { hasher: self.0.build_hasher(), hash: None }
    }
}

impl SavedHasher for Hashers {
    const NAME: &'static str = StableHashBuilder::NAME;

    fn keys(&self) -> Option<[u64; 4]> {
        self.0.keys()
    }

    fn from_keys(keys: [u64; 4]) -> Option<Self> {
        StableHashBuilder::from_keys(keys).map(Hashers)
    }
}

struct OrHash {
    hasher: StableHasher,
    hash: Option<u64>,
}

/// The methods of the stable hasher, by which each type is hashed there.
macro_rules! passed_on {
    ($($method:ident: $type:ty),*) => {
        $(
            fn $method(&mut self, value: $type) {
                self.hasher.$method(value);
            }
        )*
    };
}

impl Hasher for OrHash {
    #[inline]
    fn finish(&self) -> u64 {
        self.hash.unwrap_or_else(|| self.hasher.finish())
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        if std::ptr::eq(bytes, &A_HASH[..]) {
            self.hash = Some(0);
        } else {
            self.hasher.write(bytes);
        }
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        match &mut self.hash {
            Some(hash) => *hash = value,
            None => self.hasher.write_u64(value),
        }
    }

    passed_on! {
        write_u8: u8, write_u16: u16, write_u32: u32, write_u128: u128, write_usize: usize,
        write_i8: i8, write_i16: i16, write_i32: i32, write_i64: i64, write_i128: i128, write_isize: isize
    }
}

fn hashed(hashes: &[u64]) -> Vec<Hashed> {
    hashes.iter().copied().map(Hashed).collect()
}

/// Notes which keys were stored: those that are neither `present` nor refused.
fn noted(stored: &mut [bool], report: BulkReport, present: &[bool]) -> BulkReport {
    stored.iter_mut().zip(present).for_each(|(stored, present)| *stored = !present);
    report.rejected.iter().for_each(|rejection| stored[rejection.index] = false);
    report
}

fn removed(hashes: &[u64], remove: impl Fn(&Hashed) -> bool) -> ccf::RemoveReport {
    let mut report = ccf::RemoveReport::default();
    for (index, &hash) in hashes.iter().enumerate() {
        match remove(&Hashed(hash)) {
            true => report.removed += 1,
            false => report.missing.push(index),
        }
    }
    report
}

/// The type of the keys of a file: what is asked for, if the file does not say another one.
fn key_type(path: &Path, asked: &str) -> PyResult<KeyType> {
    let asked = KeyType::parse(asked)?;
    let reader = SnapshotReader::new(BufReader::new(crate::files::regular(path)?)).map_err(error::snapshot)?;
    let saved = reader.header().key_type();
    if saved.is_empty() || saved == asked.saved() {
        return Ok(asked);
    }
    Err(error::SnapshotError::new_err(format!(
        "the filter was saved with keys of type {saved}, not key={:?}",
        asked.name()
    )))
}

/// A kind of filter: what all have in common, and methods of its own.
macro_rules! kind {
    ($(#[$doc:meta])* $name:ident, { $($own:tt)* }) => {
        $(#[$doc])*
        #[pyclass(module = "concurrent_cuckoo_filter", frozen)]
        pub(crate) struct $name {
            filter: ccf::$name<Hashed, Hashers>,
            hashing: Hashing,
        }

        #[pymethods]
        impl $name {
            $($own)*

            /// As `CuckooFilter.contains`.
            #[pyo3(signature = (keys, *, check_utf8 = true, parallel = false))]
            fn contains<'py>(
                &self,
                keys: &Bound<'py, PyAny>,
                check_utf8: bool,
                parallel: bool,
            ) -> PyResult<Bound<'py, PyAny>> {
                many::contains(&self.hashing, keys, check_utf8, parallel, |hashes, found| {
                    self.filter.contains_batch(&hashed(hashes), found);
                })
            }

            fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
                Ok(self.filter.contains(&Hashed(self.hashing.one(key)?)))
            }

            fn __len__(&self) -> usize {
                self.filter.len()
            }

            /// Removes all keys.
            fn clear(&self, py: Python<'_>) {
                detached(py, || self.filter.clear());
            }

            /// Writes the filter to a file, as `CuckooFilter.save`.
            fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
                detached(py, || self.filter.save(path)).map_err(error::snapshot)
            }

            /// The number of keys that was asked for.
            #[getter]
            fn capacity(&self) -> usize {
                self.filter.capacity()
            }

            /// Bytes of memory, everything included.
            #[getter]
            fn nbytes(&self) -> usize {
                self.filter.memory_usage()
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

            fn __repr__(&self) -> String {
                let (len, capacity, key) = (self.__len__(), self.capacity(), self.key());
                format!(concat!("<", stringify!($name), " of {} keys, capacity={}, key={:?}>"), len, capacity, key)
            }
        }

        impl $name {
            fn of(filter: ccf::$name<Hashed, Hashers>, key_type: KeyType) -> Self {
                let hasher = filter.hasher().0.clone();
                $name { filter, hashing: Hashing { key_type, hasher } }
            }
        }
    };
}

kind! {
    /// A filter that forgets keys after a time, which is told by `advance_to`.
    ///
    /// `time_to_live` is a number of seconds or a `timedelta`: a key lives at least so long, and at most 1 / `steps` longer.
    ///
    /// >>> from datetime import timedelta
    /// >>> from concurrent_cuckoo_filter import ExpiringFilter
    /// >>> seen = ExpiringFilter(1_000, time_to_live=timedelta(hours=24))
    /// >>> seen.see(["a", "b", "a"]).stored.to_pylist()
    /// [True, True, False]
    /// >>> _ = seen.advance_to(timedelta(hours=36))
    /// >>> "a" in seen
    /// False
    ExpiringFilter, {
        #[new]
        #[pyo3(signature = (capacity, false_positive_rate = 0.001, *, time_to_live, steps = None, key = "str", keys = None))]
        fn new(
            capacity: usize,
            false_positive_rate: f64,
            time_to_live: Duration,
            steps: Option<u32>,
            key: &str,
            keys: Option<(u64, u64)>,
        ) -> PyResult<Self> {
            let hashing = Hashing::new(key, keys)?;
            let builder = ccf::ExpiringFilter::builder()
                .capacity(capacity)
                .false_positive_rate(false_positive_rate)
                .time_to_live(time_to_live)
                .hasher(Hashers(hashing.hasher.clone()));
            let filter = steps.into_iter().fold(builder, ccf::ExpiringBuilder::steps).build().map_err(error::build)?;
            Ok(ExpiringFilter { filter, hashing })
        }

        /// Notes that keys were seen: stores those that were not seen within the time to live, and renews the others.
        /// `report.stored` says which were new.
        fn see(&self, keys: &Bound<'_, PyAny>) -> PyResult<Report> {
            many::insert(&self.hashing, keys, |hashes, stored, _| {
                let mut seen = vec![false; hashes.len()];
                let report = self.filter.see_batch(&hashed(hashes), &mut seen);
                noted(stored, report, &seen)
            })
        }

        /// Stores a copy of each key, for the whole time to live.
        fn insert(&self, keys: &Bound<'_, PyAny>) -> PyResult<Report> {
            many::insert(&self.hashing, keys, |hashes, stored, _| {
                let report = self.filter.insert_batch(&hashed(hashes));
                noted(stored, report, &vec![false; hashes.len()])
            })
        }

        /// Removes a copy of each key. Remove only what was stored.
        fn remove(&self, keys: &Bound<'_, PyAny>) -> PyResult<RemoveReport> {
            many::remove(&self.hashing, keys, |hashes| removed(hashes, |key| self.filter.remove(key)))
        }

        /// Says how much time has passed since the filter was made or loaded: what has lived its time is forgotten. Returns the
        /// number of ticks that have passed. A time before the last one changes nothing.
        fn advance_to(&self, py: Python<'_>, elapsed: Duration) -> u64 {
            detached(py, || self.filter.advance_to(elapsed))
        }

        /// Reads a filter from a file. `passed` is the time since the last `advance_to` before it was saved.
        #[staticmethod]
        #[pyo3(signature = (path, *, passed, key = "str"))]
        fn load(py: Python<'_>, path: PathBuf, passed: Duration, key: &str) -> PyResult<Self> {
            let key_type = key_type(&path, key)?;
            let filter = py.detach(|| ccf::ExpiringFilter::load(path, passed)).map_err(error::snapshot)?;
            Ok(Self::of(filter, key_type))
        }

        /// The time that a key lives.
        #[getter]
        fn time_to_live(&self) -> Duration {
            self.filter.time_to_live()
        }
    }
}

kind! {
    /// A filter that counts how often each key was added, in one place for a key.
    ///
    /// A count is never too low, up to `max_count`, which follows from `counter_bits` (1 to 16).
    ///
    /// >>> from concurrent_cuckoo_filter import CountingFilter
    /// >>> words = CountingFilter(1_000)
    /// >>> _ = words.add(["a", "b", "a"])
    /// >>> words.count(["a", "b", "c", None]).to_pylist()
    /// [2, 1, 0, None]
    CountingFilter, {
        #[new]
        #[pyo3(signature = (capacity, false_positive_rate = 0.001, *, counter_bits = 4, key = "str", keys = None))]
        fn new(
            capacity: usize,
            false_positive_rate: f64,
            counter_bits: u32,
            key: &str,
            keys: Option<(u64, u64)>,
        ) -> PyResult<Self> {
            let hashing = Hashing::new(key, keys)?;
            let builder = ccf::CountingFilter::builder()
                .capacity(capacity)
                .false_positive_rate(false_positive_rate)
                .counter_bits(counter_bits)
                .hasher(Hashers(hashing.hasher.clone()));
            Ok(CountingFilter { filter: builder.build().map_err(error::build)?, hashing })
        }

        /// Adds one to the count of each key. `report.stored` is true of the keys that were counted.
        fn add(&self, keys: &Bound<'_, PyAny>) -> PyResult<Report> {
            many::insert(&self.hashing, keys, |hashes, stored, _| {
                let report = self.filter.add_batch(&hashed(hashes), &mut vec![0; hashes.len()]);
                noted(stored, report, &vec![false; hashes.len()])
            })
        }

        /// The count of each key, as a `pyarrow.UInt32Array` or such a Series.
        fn count<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
            let (py, column) = (keys.py(), Column::new(&self.hashing, keys, true)?);
            let counts = each(py, &column, None, |hashes, to: &mut [u32]| self.filter.count_batch(&hashed(hashes), to))?;
            answers(py, keys, &UInt32Array::new(counts.into(), column.validity(0..column.len())))
        }

        /// Takes keys out, whatever their count. Remove only what was added.
        fn remove(&self, keys: &Bound<'_, PyAny>) -> PyResult<RemoveReport> {
            many::remove(&self.hashing, keys, |hashes| removed(hashes, |key| self.filter.remove(key)))
        }

        /// Reads a filter from a file.
        #[staticmethod]
        #[pyo3(signature = (path, *, key = "str"))]
        fn load(py: Python<'_>, path: PathBuf, key: &str) -> PyResult<Self> {
            let key_type = key_type(&path, key)?;
            let filter = py.detach(|| ccf::CountingFilter::load(path)).map_err(error::snapshot)?;
            Ok(Self::of(filter, key_type))
        }

        /// The largest count, at which a counter stays.
        #[getter]
        fn max_count(&self) -> u32 {
            self.filter.max_count()
        }
    }
}

kind! {
    /// A filter with a small number beside each key, its tag: on which list it is, or for which reason.
    ///
    /// `tags` is the number of different tags, 1 to 65,535: they begin with 0.
    ///
    /// >>> from concurrent_cuckoo_filter import TaggedFilter
    /// >>> lists = TaggedFilter(1_000)
    /// >>> _ = lists.insert(["a", "b"], 3)
    /// >>> lists.tag(["a", "c"]).to_pylist()
    /// [3, None]
    TaggedFilter, {
        #[new]
        #[pyo3(signature = (capacity, false_positive_rate = 0.001, *, tags = 7, key = "str", keys = None))]
        fn new(
            capacity: usize,
            false_positive_rate: f64,
            tags: u32,
            key: &str,
            keys: Option<(u64, u64)>,
        ) -> PyResult<Self> {
            let hashing = Hashing::new(key, keys)?;
            let builder = ccf::TaggedFilter::builder()
                .capacity(capacity)
                .false_positive_rate(false_positive_rate)
                .tags(tags)
                .hasher(Hashers(hashing.hasher.clone()));
            Ok(TaggedFilter { filter: builder.build().map_err(error::build)?, hashing })
        }

        /// Stores a copy of each key with this tag.
        fn insert(&self, keys: &Bound<'_, PyAny>, tag: u32) -> PyResult<Report> {
            self.check(tag)?;
            many::insert(&self.hashing, keys, |hashes, stored, _| {
                let report = self.filter.insert_batch(&hashed(hashes), tag);
                noted(stored, report, &vec![false; hashes.len()])
            })
        }

        /// The tag of each key, the smallest if it has several, as a `pyarrow.UInt32Array` or such a Series; null if it has none.
        fn tag<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
            let (py, column) = (keys.py(), Column::new(&self.hashing, keys, true)?);
            let mut tags =
                each(py, &column, None, |hashes, to: &mut [Option<u32>]| self.filter.tag_batch(&hashed(hashes), to))?;
            if let Some(valid) = column.validity(0..column.len()) {
                tags.iter_mut().zip(&valid).filter(|(_, valid)| !valid).for_each(|(tag, _)| *tag = None);
            }
            answers(py, keys, &UInt32Array::from(tags))
        }

        /// Removes a copy of each key with this tag.
        fn remove(&self, keys: &Bound<'_, PyAny>, tag: u32) -> PyResult<RemoveReport> {
            self.check(tag)?;
            many::remove(&self.hashing, keys, |hashes| removed(hashes, |key| self.filter.remove(key, tag)))
        }

        /// Reads a filter from a file.
        #[staticmethod]
        #[pyo3(signature = (path, *, key = "str"))]
        fn load(py: Python<'_>, path: PathBuf, key: &str) -> PyResult<Self> {
            let key_type = key_type(&path, key)?;
            let filter = py.detach(|| ccf::TaggedFilter::load(path)).map_err(error::snapshot)?;
            Ok(Self::of(filter, key_type))
        }

        /// The largest tag.
        #[getter]
        fn max_tag(&self) -> u32 {
            self.filter.max_tag()
        }
    }
}

impl TaggedFilter {
    fn check(&self, tag: u32) -> PyResult<()> {
        let most = self.filter.max_tag();
        if tag <= most {
            return Ok(());
        }
        Err(PyValueError::new_err(format!("tag {tag} was given; this filter has the tags 0 to {most}: see `tags`")))
    }
}
