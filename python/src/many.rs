//! Many keys at once: their hashes, and a result for each.

use crate::keys::{Column, Hashing, helper};
use crate::kinds::{Place, Tags};
use crate::sys::{call, malformed};
use crate::threads::{KEYS_IN_A_SLICE, MANY_KEYS, in_slices, pool};
use arrow_array::{Array, BooleanArray, UInt32Array, ffi};
use concurrent_cuckoo_filter::{self as ccf, BulkReport};
use pyo3::prelude::*;
use rayon::ThreadPool;
use rayon::prelude::*;

/// The number of keys that are hashed before they are looked up. Their hashes fit the nearest cache.
const BLOCK: usize = 512;

/// The number of keys that a thread of a pool takes at a time.
const PIECE: usize = 1 << 14;

/// The outcome of an insertion, for `Report` in Python.
#[derive(Default, IntoPyObject)]
pub(crate) struct Report {
    pub(crate) inserted: usize,
    pub(crate) present: usize,
    pub(crate) nulls: usize,
    pub(crate) refused: usize,
    pub(crate) stored: Option<Py<PyAny>>,
    pub(crate) refused_at: Vec<usize>,
}

impl Report {
    /// Adds the outcome of some keys. `at` returns their positions.
    pub(crate) fn add(&mut self, report: BulkReport, at: impl Fn(usize) -> usize) {
        self.inserted += report.inserted;
        self.present += report.present;
        self.refused += report.refused.len() + report.refused_unlisted;
        let room = LISTED - self.refused_at.len();
        self.refused_at.extend(report.refused.iter().take(room).map(|refusal| at(refusal.index)));
    }
}

/// The outcome of a removal, for `RemoveReport` in Python.
#[derive(Default, IntoPyObject)]
pub(crate) struct RemoveReport {
    removed: usize,
    missing: usize,
    nulls: usize,
    missing_at: Vec<usize>,
}

/// The number of refused or missing keys that are listed.
const LISTED: usize = 1_000_000;

/// Returns an array to Python, in the form of the keys.
pub(crate) fn answers<'py>(keys: &Bound<'py, PyAny>, array: &impl Array) -> PyResult<Bound<'py, PyAny>> {
    let (mut array, mut schema) = ffi::to_ffi(&array.to_data()).map_err(|error| malformed(&error.to_string()))?;
    let addresses = (keys, &raw mut array as usize, &raw mut schema as usize);
    call(&helper(keys.py(), "answers")?, addresses.into_pyobject(keys.py())?)
}

/// Looks up keys by `ask`, which takes hashes, and returns the results to Python.
pub(crate) fn contains<'py>(
    hashing: &Hashing,
    keys: &Bound<'py, PyAny>,
    check_utf8: bool,
    parallel: bool,
    ask: impl Fn(&[u64], &mut [bool]) + Sync,
) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    let column = Column::new(hashing, keys, check_utf8, parallel)?;
    let pool = if parallel { Some(pool(py)?) } else { None };
    let mut found = vec![false; column.len()];
    in_slices(py, column.len(), |slice| {
        let work = |(number, to): (usize, &mut [bool])| {
            let begin = slice.start + number * PIECE;
            let (mut hashes, mut done, mut count) = ([0; BLOCK], 0, 0);
            column.for_each(begin..begin + to.len(), |hash| {
                hashes[count] = hash;
                count += 1;
                if count == BLOCK {
                    ask(&hashes, &mut to[done..done + BLOCK]);
                    (done, count) = (done + BLOCK, 0);
                }
            })?;
            ask(&hashes[..count], &mut to[done..]);
            Ok(())
        };
        let found = &mut found[slice.clone()];
        match &pool {
            Some(pool) => pool.install(|| found.par_chunks_mut(PIECE).enumerate().try_for_each(work)),
            None => found.chunks_mut(PIECE).enumerate().try_for_each(work),
        }
    })?;
    answers(keys, &BooleanArray::new(found.into(), column.validity(0..column.len())))
}

/// Stores keys by `store`, which takes hashes, a slice for whether each was stored, a pool if there are many keys, and a function from the
/// index of a hash to that of its key.
pub(crate) fn insert(
    hashing: &Hashing,
    keys: &Bound<'_, PyAny>,
    tags: &Tags,
    mut store: impl FnMut(&[u64], &mut [bool], Option<&ThreadPool>, Place<'_>) -> PyResult<BulkReport> + Send,
) -> PyResult<Report> {
    let column = checked(hashing, keys, true)?;
    tags.check(column.len())?;
    let pool = if column.len() < MANY_KEYS { None } else { Some(pool(keys.py())?) };
    let (mut report, mut stored) = (Report::default(), vec![false; column.len()]);
    report.nulls = change(keys.py(), &column, pool.as_deref(), |hashes, at| {
        let mut of_these = vec![false; hashes.len()];
        report.add(store(hashes, &mut of_these, pool.as_deref(), at)?, at);
        of_these.iter().enumerate().for_each(|(index, &is)| stored[at(index)] = is);
        Ok(())
    })?;
    let stored = BooleanArray::new(stored.into(), column.validity(0..column.len()));
    report.stored = Some(answers(keys, &stored)?.unbind());
    Ok(report)
}

/// Removes keys by `remove`, which takes hashes, and a function from the index of a hash to that of its key.
pub(crate) fn remove(
    hashing: &Hashing,
    keys: &Bound<'_, PyAny>,
    tags: &Tags,
    mut remove: impl FnMut(&[u64], Place<'_>) -> PyResult<ccf::RemoveReport> + Send,
) -> PyResult<RemoveReport> {
    let column = checked(hashing, keys, false)?;
    tags.check(column.len())?;
    let mut report = RemoveReport::default();
    report.nulls = change(keys.py(), &column, None, |hashes, at| {
        let removed = remove(hashes, at)?;
        report.removed += removed.removed;
        report.missing += removed.missing.len();
        let room = LISTED - report.missing_at.len();
        report.missing_at.extend(removed.missing.iter().take(room).map(|&index| at(index)));
        Ok(())
    })?;
    Ok(report)
}

/// Returns a number per key from `ask`, which takes hashes and may change the filter, and a null for nulls and for keys without one.
pub(crate) fn numbers<'py>(
    hashing: &Hashing,
    keys: &Bound<'py, PyAny>,
    mut ask: impl FnMut(&[u64], &mut [Option<u32>]) + Send,
) -> PyResult<Bound<'py, PyAny>> {
    let column = checked(hashing, keys, false)?;
    let mut all = vec![None; column.len()];
    change(keys.py(), &column, None, |hashes, at| {
        let mut numbers = vec![None; hashes.len()];
        ask(hashes, &mut numbers);
        numbers.iter().enumerate().for_each(|(index, &number)| all[at(index)] = number);
        Ok(())
    })?;
    answers(keys, &UInt32Array::from(all))
}

/// The keys of a call that changes a filter: it takes all of them or none.
fn checked<'a>(hashing: &'a Hashing, keys: &Bound<'_, PyAny>, parallel: bool) -> PyResult<Column<'a>> {
    let mut column = Column::new(hashing, keys, true, parallel)?;
    if column.len() > KEYS_IN_A_SLICE {
        column.check_all(keys.py())?;
    }
    Ok(column)
}

/// Calls `work` per slice with the hashes of all keys but nulls, and a function from the index of a hash to that of its key in the column.
/// Returns the number of nulls.
fn change(
    py: Python<'_>,
    column: &Column<'_>,
    pool: Option<&ThreadPool>,
    mut work: impl FnMut(&[u64], Place<'_>) -> PyResult<()> + Send,
) -> PyResult<usize> {
    let mut nulls = 0;
    in_slices(py, column.len(), |slice| {
        let mut all = vec![0; slice.len()];
        match pool {
            None => hashes(column, slice.start, &mut all)?,
            Some(pool) => pool.install(|| {
                let pieces = all.par_chunks_mut(PIECE).enumerate();
                pieces.try_for_each(|(number, to)| hashes(column, slice.start + number * PIECE, to))
            })?,
        }
        let Some(valid) = column.validity(slice.clone()) else {
            return work(&all, &|index| slice.start + index);
        };
        let positions: Vec<_> = valid.valid_indices().map(|index| slice.start + index).collect();
        let present: Vec<_> = positions.iter().map(|&at| all[at - slice.start]).collect();
        nulls += slice.len() - present.len();
        work(&present, &|index| positions[index])
    })?;
    Ok(nulls)
}

/// Hashes the keys of a column from `begin` on.
pub(crate) fn hashes(column: &Column<'_>, begin: usize, to: &mut [u64]) -> PyResult<()> {
    let mut places = to.iter_mut();
    column.for_each(begin..begin + places.len(), |hash| {
        if let Some(place) = places.next() {
            *place = hash;
        }
    })
}
