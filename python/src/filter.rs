//! The filter.

use crate::error;
use crate::files::{Interruptible, regular};
use crate::hashing::{Hashing, Keyed, answers, hashes, keyed, keys_of, made};
use crate::keys::{Column, Key, KeyType, one};
use crate::mapped::MappedFilter;
use crate::report::{LISTED, RemoveReport, Report};
use crate::threads::{in_slices, pool};
use concurrent_cuckoo_filter::{self as ccf, BulkReport, SnapshotError, SnapshotReader, StableHashBuilder};
use pyo3::prelude::*;
use rayon::ThreadPool;
use rayon::prelude::*;
use std::io::{BufReader, Read};
use std::ops::Range;
use std::path::PathBuf;

type Of<K> = ccf::CuckooFilter<K, StableHashBuilder>;
type Filter = Keyed<Of<str>, Of<[u8]>, Of<i64>, Of<u64>>;

/// Fewer keys are stored by the calling thread.
const MANY_KEYS: usize = 1 << 15;

/// Keys that a thread hashes at a time.
const HASHED_AT_A_TIME: usize = 1 << 14;

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
#[pyclass(module = "concurrent_cuckoo_filter", frozen)]
pub(crate) struct CuckooFilter(Filter);

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
    ) -> PyResult<Self> {
        let hasher =
            || keys.map_or_else(StableHashBuilder::new, |(first, second)| StableHashBuilder::with_keys(first, second));
        let filter: Result<Filter, _> = made!(KeyType::parse(key)?, K => {
            let builder = ccf::CuckooFilter::<K>::builder()
                .capacity(capacity)
                .false_positive_rate(false_positive_rate)
                .hasher(hasher());
            max_capacity.into_iter().fold(builder, ccf::Builder::max_capacity).build()
        });
        filter.map(CuckooFilter).map_err(error::build)
    }

    /// Stores keys, and says what came of them. With `unique=True` a key that is present is not stored again; without, each
    /// takes a place of its own, and has to be removed as often. Large arrays are stored by all cores.
    ///
    /// Raises `RefusedError` if some keys found no room. The others are stored all the same, and `error.report` tells
    /// which were refused. An interruption ends the call between two parts of the input; what was stored stays.
    ///
    /// >>> import numpy as np
    /// >>> from concurrent_cuckoo_filter import CuckooFilter
    /// >>> seen = CuckooFilter(1_000_000, key="u64")
    /// >>> report = seen.insert(np.arange(1_000_000, dtype=np.uint64))
    /// >>> report.inserted + report.present, report.refused
    /// (1000000, 0)
    #[pyo3(signature = (keys, *, unique = true))]
    fn insert(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, unique: bool) -> PyResult<Report> {
        let column = Column::new(self.0.key_type(), keys)?;
        let pool = if column.len() < MANY_KEYS { None } else { Some(pool(py)?) };
        let mut report = Report::default();
        in_slices(
            py,
            column.len(),
            |slice| keyed!(&self.0, filter => insert(filter, &column, slice, unique, pool.as_deref(), &mut report)),
        )?;
        error::unless_refused(py, report)
    }

    /// Stores a key if it is absent, and says whether it was.
    ///
    /// >>> from concurrent_cuckoo_filter import CuckooFilter
    /// >>> seen = CuckooFilter(100)
    /// >>> seen.add("event 1"), seen.add("event 1")
    /// (True, False)
    fn add(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = self.hash(key)?;
        let stored = keyed!(&self.0, filter => filter.insert_unique_hash(hash));
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
    fn remove(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<RemoveReport> {
        let column = Column::new(self.0.key_type(), keys)?;
        let mut report = RemoveReport::default();
        in_slices(py, column.len(), |slice| {
            keyed!(&self.0, filter => {
                let (hashes, positions) = present_hashes(filter, &column, slice.clone(), None)?;
                let removed = filter.remove_batch_hash(&hashes);
                report.removed += removed.removed;
                report.missing += removed.missing.len();
                report.nulls += slice.len() - hashes.len();
                let room = LISTED - report.missing_at.len();
                let missing = removed.missing.iter().take(room);
                report.missing_at.extend(missing.map(|&index| positions.at(slice.start, index)));
                Ok(())
            })
        })?;
        Ok(report)
    }

    /// Says of each key whether it is present, as a `pyarrow.BooleanArray`; of a null, null. Runs on the calling thread; for
    /// more speed call it from several.
    ///
    /// >>> import pyarrow as pa
    /// >>> from concurrent_cuckoo_filter import CuckooFilter
    /// >>> blocked = CuckooFilter(100)
    /// >>> _ = blocked.insert(["a"])
    /// >>> blocked.contains(pa.array(["a", "b"])).to_pylist()
    /// [True, False]
    ///
    /// With `check_utf8=False` texts that are not UTF-8 are asked for as they are.
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
        let hash = self.hash(key)?;
        Ok(keyed!(&self.0, filter => filter.contains_hash(hash)))
    }

    fn __len__(&self) -> usize {
        keyed!(&self.0, filter => filter.len())
    }

    /// Stores all that another filter holds, which was made with the same capacity, rate, `key` and `keys`. Keys of both are
    /// held twice afterwards.
    ///
    /// >>> from concurrent_cuckoo_filter import CuckooFilter
    /// >>> one, other = (CuckooFilter(100, keys=(1, 2)) for _ in range(2))
    /// >>> _ = one.insert(["a"]), other.insert(["b"])
    /// >>> one.merge(other)
    /// Report(inserted=1, present=0, nulls=0, refused=0)
    /// >>> "b" in one
    /// True
    fn merge(&self, py: Python<'_>, other: &Self) -> PyResult<Report> {
        let merged = py.detach(|| match (&self.0, &other.0) {
            (Keyed::Str(filter), Keyed::Str(other)) => Some(filter.merge_from(other)),
            (Keyed::Bytes(filter), Keyed::Bytes(other)) => Some(filter.merge_from(other)),
            (Keyed::I64(filter), Keyed::I64(other)) => Some(filter.merge_from(other)),
            (Keyed::U64(filter), Keyed::U64(other)) => Some(filter.merge_from(other)),
            _ => None,
        });
        let merged = merged.ok_or_else(|| {
            let (one, other) = (self.0.key_type().name(), other.0.key_type().name());
            error::merge_of_types(one, other)
        })?;
        let ccf::MergeReport { inserted, refused, .. } = merged.map_err(error::merge)?;
        error::unless_refused(py, Report { inserted, refused, ..Report::default() })
    }

    /// Writes the filter to a file, in place of an older one: whatever stops the program meanwhile, the file is the old
    /// one or the new one. Other threads may go on.
    ///
    /// >>> import os, tempfile
    /// >>> from concurrent_cuckoo_filter import CuckooFilter
    /// >>> path = os.path.join(tempfile.mkdtemp(), "blocked.cuckoo")
    /// >>> blocked = CuckooFilter(100)
    /// >>> _ = blocked.insert(["a"])
    /// >>> blocked.save(path)
    /// >>> "a" in CuckooFilter.load(path)
    /// True
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| keyed!(&self.0, filter => filter.save(path))).map_err(error::snapshot)
    }

    /// Reads a filter from a file that `save` has written, in Python or in Rust, with everything checked.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| load(path)).map(CuckooFilter)
    }

    /// Opens a file that `save` has written, to be asked where it lies: in less than a millisecond whatever its size, in memory
    /// that all processes of a machine share. See `MappedFilter`.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<MappedFilter> {
        py.detach(|| MappedFilter::open(path))
    }

    /// The number of keys that was asked for.
    #[getter]
    fn capacity(&self) -> usize {
        keyed!(&self.0, filter => filter.capacity())
    }

    /// The number of keys that it grows to: the capacity, if it does not grow.
    ///
    /// >>> from concurrent_cuckoo_filter import CuckooFilter
    /// >>> growing = CuckooFilter(1_000, max_capacity=1_000_000, key="i64")
    /// >>> before = growing.nbytes
    /// >>> growing.insert(range(100_000)).refused, growing.nbytes > 2 * before, growing.max_capacity
    /// (0, True, 1000000)
    #[getter]
    fn max_capacity(&self) -> usize {
        keyed!(&self.0, filter => filter.max_capacity())
    }

    /// The type of the keys: "str", "bytes", "i64" or "u64".
    #[getter]
    fn key(&self) -> &'static str {
        self.0.key_type().name()
    }

    /// The keys of the hash function. Whoever knows them can compute keys that collide.
    #[getter]
    fn keys(&self) -> (u64, u64) {
        keyed!(&self.0, filter => keys_of(filter.hasher()))
    }

    /// Bytes of memory, everything included.
    #[getter]
    fn nbytes(&self) -> usize {
        keyed!(&self.0, filter => filter.memory_usage())
    }

    /// The part of absent keys that is taken for present now. It grows with what the filter holds.
    #[getter]
    fn expected_false_positive_rate(&self) -> f64 {
        keyed!(&self.0, filter => filter.expected_false_positive_rate())
    }

    fn __repr__(&self) -> String {
        format!("<CuckooFilter of {} of {} keys, key={:?}>", self.__len__(), self.capacity(), self.key())
    }
}

impl CuckooFilter {
    fn hash(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        one(self.0.key_type(), key, |key: Key<'_>| keyed!(&self.0, filter => filter.hash_of(key)))
    }
}

/// Where keys stood before nulls were taken out.
struct Positions(Option<Vec<u32>>);

impl Positions {
    fn at(&self, start: usize, index: usize) -> usize {
        start + self.0.as_ref().map_or(index, |positions| positions[index] as usize)
    }
}

/// The hashes of the keys of a slice that are not null, and where they stood in it.
fn present_hashes(
    by: &(impl Hashing + Sync),
    column: &Column,
    slice: Range<usize>,
    pool: Option<&ThreadPool>,
) -> PyResult<(Vec<u64>, Positions)> {
    let mut all = vec![0; slice.len()];
    match pool {
        None => hashes(by, column, slice.clone(), true, &mut all)?,
        Some(pool) => pool.install(|| {
            all.par_chunks_mut(HASHED_AT_A_TIME).enumerate().try_for_each(|(number, to)| {
                let begin = slice.start + number * HASHED_AT_A_TIME;
                hashes(by, column, begin..begin + to.len(), true, to)
            })
        })?,
    }
    let Some(valid) = column.validity(slice) else { return Ok((all, Positions(None))) };
    let positions: Vec<u32> = valid.valid_indices().map(|index| index as u32).collect();
    let present = positions.iter().map(|&index| all[index as usize]).collect();
    Ok((present, Positions(Some(positions))))
}

fn insert<K: ?Sized>(
    filter: &Of<K>,
    column: &Column,
    slice: Range<usize>,
    unique: bool,
    pool: Option<&ThreadPool>,
    report: &mut Report,
) -> PyResult<()>
where
    Of<K>: Hashing + Sync,
{
    let (hashes, positions) = present_hashes(filter, column, slice.clone(), pool)?;
    report.nulls += slice.len() - hashes.len();
    let stored: BulkReport = match (pool, unique) {
        (Some(pool), true) => pool.install(|| filter.bulk().unique().max_listed(LISTED).insert_hash(&hashes)),
        (Some(pool), false) => pool.install(|| filter.bulk().max_listed(LISTED).insert_hash(&hashes)),
        (None, true) => filter.insert_unique_batch_hash(&hashes, &mut vec![false; hashes.len()]),
        (None, false) => filter.insert_batch_hash(&hashes),
    };
    report.add(stored, |index| positions.at(slice.start, index));
    Ok(())
}

/// Reads a file that holds a filter and nothing else.
fn load(path: PathBuf) -> PyResult<Filter> {
    let mut file = BufReader::with_capacity(1 << 20, Interruptible::new(regular(&path)?));
    let filter = SnapshotReader::new(&mut file).map_err(error::snapshot).and_then(|reader| {
        let key_type = KeyType::of(reader.header())?;
        let filter: Result<Filter, SnapshotError> = made!(key_type, K => reader.into_filter_with_stored_keys::<K, _>());
        filter.map_err(error::snapshot)
    })?;
    if file.read(&mut [0]).map_err(|error| error::snapshot(error.into()))? > 0 {
        return Err(error::snapshot(SnapshotError::TrailingBytes));
    }
    Ok(filter)
}
