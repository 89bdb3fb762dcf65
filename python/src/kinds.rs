//! The kinds of filters in memory, and their operations on hashes of many keys.

use crate::error;
use crate::keys::{Hashing, Key, imported};
use crate::threads::KEYS_IN_A_SLICE;
use arrow_buffer::ScalarBuffer;
use concurrent_cuckoo_filter::{self as ccf, BulkReport, RemoveReport, StableHashBuilder, kind};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rayon::ThreadPool;

type Of<T> = ccf::Filter<Key<'static>, StableHashBuilder, T>;
pub(crate) type Builder<T> = ccf::Builder<Key<'static>, StableHashBuilder, T>;

/// The kinds of filters.
#[pyclass(frozen, from_py_object)]
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Plain,
    Expiring,
    Counting,
    Tagged,
}

/// A filter in memory.
pub(crate) enum Memory {
    Plain(Of<kind::Plain>),
    Expiring(Of<kind::Expiring>),
    Counting(Of<kind::Counting>),
    Tagged(Of<kind::Tagged>),
}

/// Evaluates an expression with the filter, whatever its kind.
macro_rules! of_each_kind {
    ($memory:expr, $filter:ident => $result:expr) => {
        match $memory {
            Memory::Plain($filter) => $result,
            Memory::Expiring($filter) => $result,
            Memory::Counting($filter) => $result,
            Memory::Tagged($filter) => $result,
        }
    };
}
pub(crate) use of_each_kind;

/// Returns a builder with the arguments of all kinds: capacity, false-positive rate and maximum capacity.
pub(crate) fn builder<T: kind::Kind>(
    (hashing, capacity, rate, max_capacity): (&Hashing, usize, f64, Option<usize>),
) -> Builder<T> {
    let builder = ccf::Filter::builder().capacity(capacity).false_positive_rate(rate);
    max_capacity.into_iter().fold(builder.hasher(hashing.hasher.clone()), Builder::max_capacity)
}

/// The function from the index of a hash to that of its key.
pub(crate) type Place<'a> = &'a dyn Fn(usize) -> usize;

impl Memory {
    pub(crate) fn copy(&self) -> PyResult<Memory> {
        match self {
            Memory::Plain(filter) => filter.try_clone().map(Memory::Plain),
            Memory::Expiring(filter) => filter.try_clone().map(Memory::Expiring),
            Memory::Counting(filter) => filter.try_clone().map(Memory::Counting),
            Memory::Tagged(filter) => filter.try_clone().map(Memory::Tagged),
        }
        .map_err(error::build)
    }

    pub(crate) fn merge(&self, other: &Memory, unique: bool) -> PyResult<ccf::MergeReport> {
        match (self, other) {
            (Memory::Plain(to), Memory::Plain(from)) if unique => to.merge_unique_from(from),
            (Memory::Plain(to), Memory::Plain(from)) => to.merge_from(from),
            (Memory::Expiring(to), Memory::Expiring(from)) => to.merge_from(from),
            (Memory::Counting(to), Memory::Counting(from)) => to.merge_from(from),
            (Memory::Tagged(to), Memory::Tagged(from)) => to.merge_from(from),
            _ => return Err(error::other_filter()),
        }
        .map_err(error::merge)
    }

    /// Stores keys, and notes which ones were stored: with `unique`, only those that are absent or were not seen; with a limit, those whose
    /// count is below it. Threads store equal keys in any order, unless `in_order` is set.
    pub(crate) fn insert(
        &self,
        (unique, in_order, limit, tags): (bool, bool, Option<u32>, &Tags),
        keys: &[u64],
        stored: &mut [bool],
        pool: Option<&ThreadPool>,
        at: Place<'_>,
    ) -> PyResult<BulkReport> {
        Ok(match (self, pool) {
            (Memory::Plain(filter), Some(pool)) => pool.install(|| {
                let bulk = || filter.hashed().bulk().max_listed(KEYS_IN_A_SLICE);
                if !unique {
                    return noted(stored, bulk().insert(keys));
                }
                let look_up = |keys: &[u64], found: &mut [bool]| bulk().contains(keys, found);
                insert_absent(keys, stored, look_up, |keys, stored| match in_order {
                    true => filter.hashed().insert_unique_batch(keys, stored),
                    false => bulk().insert_unique(keys, stored),
                })
            }),
            (Memory::Plain(filter), None) if unique => {
                let look_up = |keys: &[u64], found: &mut [bool]| filter.hashed().contains_batch(keys, found);
                let insert = |keys: &[u64], stored: &mut [bool]| filter.hashed().insert_unique_batch(keys, stored);
                insert_absent(keys, stored, look_up, insert)
            }
            (Memory::Plain(filter), None) => noted(stored, filter.hashed().insert_batch(keys)),
            (Memory::Expiring(filter), _) if unique => {
                let mut seen = vec![false; keys.len()];
                let report = filter.hashed().see_batch(keys, &mut seen);
                let report = noted(stored, report);
                stored.iter_mut().zip(seen).for_each(|(stored, seen)| *stored &= !seen);
                report
            }
            (Memory::Expiring(filter), _) => noted(stored, filter.hashed().insert_batch(keys)),
            (Memory::Counting(filter), _) => {
                let mut counts = vec![0; keys.len()];
                let report = match limit {
                    Some(limit) => filter.hashed().try_add_batch(keys, limit, &mut counts),
                    None => filter.hashed().add_batch(keys, &mut counts),
                };
                stored.iter_mut().zip(counts).for_each(|(stored, count)| *stored = count > 0);
                report
            }
            (Memory::Tagged(filter), _) => {
                let mut report = BulkReport::default();
                tags.each(keys, at, |tag, keys, index| {
                    let mut of_tag = filter.hashed().insert_batch(keys, tag).map_err(error::insert)?;
                    report.inserted += of_tag.inserted;
                    of_tag.refused.iter_mut().for_each(|refusal| refusal.index = index(refusal.index));
                    report.refused.append(&mut of_tag.refused);
                    Ok(())
                })?;
                report.refused.sort_by_key(|refusal| refusal.index);
                noted(stored, report)
            }
        })
    }

    pub(crate) fn remove(&self, tags: &Tags, keys: &[u64], at: Place<'_>) -> PyResult<RemoveReport> {
        Ok(match self {
            Memory::Plain(filter) => filter.hashed().remove_batch(keys),
            Memory::Expiring(filter) => filter.hashed().remove_batch(keys),
            Memory::Counting(filter) => filter.hashed().remove_batch(keys),
            Memory::Tagged(filter) => {
                let mut report = RemoveReport::default();
                tags.each(keys, at, |tag, keys, index| {
                    let of_tag = filter.hashed().remove_batch(keys, tag);
                    report.removed += of_tag.removed;
                    report.missing.extend(of_tag.missing.into_iter().map(index));
                    Ok(())
                })?;
                report.missing.sort_unstable();
                report
            }
        })
    }

    /// Returns the numbers of keys, if any: their tags, their counts, or with `subtract` the remaining counts.
    pub(crate) fn numbers(&self, subtract: bool, keys: &[u64], to: &mut [Option<u32>]) {
        match self {
            Memory::Tagged(filter) => filter.hashed().tag_batch(keys, to),
            Memory::Counting(filter) if subtract => filter.hashed().subtract_batch(keys, to),
            Memory::Counting(filter) => {
                let mut counts = vec![0; keys.len()];
                filter.hashed().count_batch(keys, &mut counts);
                to.iter_mut().zip(counts).for_each(|(to, count)| *to = Some(count));
            }
            Memory::Plain(_) | Memory::Expiring(_) => {}
        }
    }
}

/// The tags of keys.
pub(crate) enum Tags {
    OfAll(u32),
    OfEach(ScalarBuffer<u32>),
}

impl Tags {
    /// Takes the result of `tags` of the helper module: one tag, or the capsules of an array.
    pub(crate) fn new(tags: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(tags) = tags else { return Ok(Tags::OfAll(0)) };
        match tags.extract() {
            Ok(tag) => Ok(Tags::OfAll(tag)),
            Err(_) => Ok(Tags::OfEach(imported(tags)?)),
        }
    }

    /// Fails unless there is one for each of the keys.
    pub(crate) fn check(&self, keys: usize) -> PyResult<()> {
        match self {
            Tags::OfEach(tags) if tags.len() != keys => {
                Err(PyValueError::new_err(format!("{} tags were given for {keys} keys", tags.len())))
            }
            _ => Ok(()),
        }
    }

    /// Calls `work` with each tag, its keys, and a function from their indices to those of all keys. `at` returns the index in the input.
    fn each(
        &self,
        keys: &[u64],
        at: Place<'_>,
        mut work: impl FnMut(u32, &[u64], Place<'_>) -> PyResult<()>,
    ) -> PyResult<()> {
        let tags = match self {
            Tags::OfAll(tag) => return work(*tag, keys, &|index| index),
            Tags::OfEach(tags) => tags,
        };
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_by_key(|&index| tags[at(index)]);
        for of_tag in order.chunk_by(|&one, &other| tags[at(one)] == tags[at(other)]) {
            let keys: Vec<u64> = of_tag.iter().map(|&index| keys[index]).collect();
            work(tags[at(of_tag[0])], &keys, &|index| of_tag[index])?;
        }
        Ok(())
    }
}

/// Notes all keys as stored, except the refused ones.
fn noted(stored: &mut [bool], report: BulkReport) -> BulkReport {
    stored.fill(true);
    report.refused.iter().for_each(|refusal| stored[refusal.index] = false);
    report
}

/// Stores absent keys by `insert`. If most of the first keys are present, `look_up` finds the present ones first, in a fraction of the time
/// of an insertion that finds its key, and `insert` decides on the others.
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
