//! A bulk operation with its options: keys are gathered into blocks, tasks work on them, outcomes become a report.

use super::block::Block;
use super::tasks::{FEW_KEYS, NotStored, Outcome, batches, budgets, groups};
use crate::batch::{assert_same_length, lookup_batch};
use crate::filter::CuckooFilter;
use crate::layout::Mixed;
use crate::raw::Admission;
use crate::report::{BulkReport, RemoveReport};
use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use rayon::prelude::*;

/// Lookups are sorted by shard from this many keys a shard on: then a line is used often enough to make up for that.
const LOOKUPS_PER_SHARD: usize = 1 << 14;

/// Lookups that are not sorted: as many to a thread at a time, and as many between two calls for progress.
const LOOKUPS_PER_JOB: usize = 1 << 14;
const LOOKUPS_PER_BLOCK: usize = 1 << 22;

/// A bulk operation with options: how long the list of refused keys may grow, and who is told of the progress.
/// [`CuckooFilter::bulk`] makes one. The operations panic as [`par_insert`](CuckooFilter::par_insert) does if the system
/// refuses rayon its threads.
///
/// ```
/// use concurrent_cuckoo_filter::CuckooFilter;
///
/// let filter = CuckooFilter::<u64>::with_capacity(100_000);
/// let keys: Vec<u64> = (0..100_000).collect();
/// let mut done = 0;
/// let report = filter.bulk().max_listed(100).progress(|keys| done = keys).insert(&keys);
/// assert_eq!((report.inserted, done), (100_000, 100_000));
/// ```
#[must_use = "nothing is done before an operation is chosen"]
pub struct Bulk<'a, K: ?Sized, S, P = fn(usize)> {
    filter: &'a CuckooFilter<K, S>,
    admission: Admission,
    max_listed: usize,
    progress: P,
}

impl<K: ?Sized, S> CuckooFilter<K, S> {
    /// Begins an operation on many keys with options. [`par_insert`](CuckooFilter::par_insert) and its likes are the
    /// same without any.
    pub fn bulk(&self) -> Bulk<'_, K, S> {
        Bulk { filter: self, admission: Admission::Copies, max_listed: usize::MAX, progress: |_| {} }
    }
}

impl<'a, K: ?Sized, S, P> Bulk<'a, K, S, P> {
    /// Stores only keys that are absent: `insert` and its kind then do to each key what
    /// [`insert_unique`](CuckooFilter::insert_unique) does, and the report counts the keys that were present.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::with_capacity(1_000);
    /// for (inserted, present) in [(2, 1), (0, 3)] {
    ///     let report = filter.bulk().unique().insert_iter(["a", "b", "a"]);
    ///     assert_eq!((report.inserted, report.present), (inserted, present));
    /// }
    /// ```
    pub fn unique(self) -> Self {
        Bulk { admission: Admission::Unique, ..self }
    }

    /// Lists only the first `keys` refused or missing keys; the report only counts the others. Without this
    /// all are listed, 16 bytes each for refused and 8 for missing ones, which is the caller's memory to spend.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::with_capacity(1_000);
    /// let report = filter.bulk().max_listed(1).insert(&["again"; 10]);
    /// assert_eq!((report.inserted, report.rejected.len(), report.rejected_unlisted), (8, 1, 1));
    /// ```
    pub fn max_listed(self, keys: usize) -> Self {
        Bulk { max_listed: keys, ..self }
    }

    /// Calls this on the calling thread with the number of keys that are done: after each block, which is 2^24 keys at
    /// the most, and at the end. This thread has no stripe locked meanwhile, so it may use the filter.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<u64>::with_capacity(10_000);
    /// let mut steps = vec![];
    /// let report = filter.bulk().progress(|done| steps.push(done)).insert_iter(0..10_000_u64);
    /// assert_eq!(report.inserted, 10_000);
    /// assert_eq!(steps.last(), Some(&10_000));
    /// ```
    pub fn progress<Q: FnMut(usize)>(self, tell: Q) -> Bulk<'a, K, S, Q> {
        Bulk { filter: self.filter, admission: self.admission, max_listed: self.max_listed, progress: tell }
    }
}

impl<K: ?Sized, S: Sync, P: FnMut(usize)> Bulk<'_, K, S, P> {
    /// As [`par_insert_hash`](CuckooFilter::par_insert_hash), with these options.
    pub fn insert_hash(self, hashes: &[u64]) -> BulkReport {
        self.insert_keys(hashes, |&hash| Mixed::of(hash), None)
    }

    /// As [`par_insert_unique_hash`](CuckooFilter::par_insert_unique_hash), with these options.
    ///
    /// # Panics
    /// If `hashes` and `admitted` differ in length.
    #[track_caller]
    pub fn insert_unique_hash(self, hashes: &[u64], admitted: &mut [bool]) -> BulkReport {
        assert_same_length(hashes, admitted);
        self.unique().insert_keys(hashes, |&hash| Mixed::of(hash), Some(admitted))
    }

    /// As [`par_insert_iter_hash`](CuckooFilter::par_insert_iter_hash), with these options.
    pub fn insert_iter_hash(self, hashes: impl IntoIterator<Item = u64>) -> BulkReport {
        self.insert_stream(hashes.into_iter().map(Mixed::of))
    }

    /// As [`par_remove_hash`](CuckooFilter::par_remove_hash), with these options.
    pub fn remove_hash(self, hashes: &[u64]) -> RemoveReport {
        self.remove_keys(hashes, |&hash| Mixed::of(hash))
    }

    /// As [`par_contains_hash`](CuckooFilter::par_contains_hash), with these options.
    ///
    /// # Panics
    /// If `hashes` and `found` differ in length.
    #[track_caller]
    pub fn contains_hash(self, hashes: &[u64], found: &mut [bool]) {
        self.lookup_keys(hashes, |&hash| Mixed::of(hash), found);
    }

    /// Says of each key whether it was stored, if there is a place for the answers.
    fn insert_keys<T: Sync>(
        mut self,
        keys: &[T],
        hash: impl Fn(&T) -> Mixed + Sync,
        mut admitted: Option<&mut [bool]>,
    ) -> BulkReport {
        let raw = &self.filter.raw;
        let mut report = BulkReport::default();
        let Some(mut block) = raw.block(keys.len()) else {
            let mut done = 0;
            for keys in groups(keys) {
                let results = batches(keys, |keys| {
                    let mut results = Vec::with_capacity(keys.len());
                    raw.insert_each_hash(keys.iter().map(&hash), self.admission, |result| results.push(result));
                    results
                });
                for result in results.into_iter().flatten() {
                    report.note(done, result, self.max_listed);
                    if let Some(admitted) = &mut admitted {
                        admitted[done] = result == Ok(true);
                    }
                    done += 1;
                }
                (self.progress)(done);
            }
            return report;
        };
        let mut budgets = budgets(&block);
        let mut done = 0;
        for keys in keys.chunks(block.max_keys()) {
            block.fill(keys, &hash);
            let not_stored = raw.insert_block(&mut block, &mut budgets, self.admission);
            self.note(&mut report, &block, done, not_stored);
            if let Some(admitted) = &mut admitted {
                block.read(&mut admitted[done..][..keys.len()], |outcome| outcome == Outcome::Inserted);
            }
            done += keys.len();
            (self.progress)(done);
        }
        report
    }

    /// One block is stored while the next one is filled from the iterator.
    fn insert_stream(mut self, hashes: impl Iterator<Item = Mixed>) -> BulkReport {
        let raw = &self.filter.raw;
        let mut report = BulkReport::default();
        let mut hashes = hashes.fuse();
        let first: Vec<Mixed> = hashes.by_ref().take(FEW_KEYS).collect();
        let few = first.len() < FEW_KEYS;
        let expected = hashes.size_hint().1.unwrap_or(usize::MAX).saturating_add(first.len());
        let mut hashes = first.into_iter().chain(hashes);
        let half = || if few { None } else { Block::for_stream(raw.sorter(expected), expected) };
        let blocks = half().zip(half());
        let scratch = blocks.as_ref().and_then(|(block, _)| block.scratch());
        let Some(((mut now, mut next), mut scratch)) = blocks.zip(scratch) else {
            let mut done = 0;
            raw.insert_each_hash(hashes, self.admission, |result| {
                report.note(done, result, self.max_listed);
                done += 1;
            });
            (self.progress)(done);
            return report;
        };
        let mut budgets = budgets(&now);
        let mut done = 0;
        now.fill_from(&mut hashes, &mut scratch);
        while now.keys() > 0 {
            let mut not_stored = NotStored::default();
            rayon::in_place_scope(|scope| {
                scope.spawn(|_| not_stored = raw.insert_block(&mut now, &mut budgets, self.admission));
                next.fill_from(&mut hashes, &mut scratch);
            });
            self.note(&mut report, &now, done, not_stored);
            done += now.keys();
            (self.progress)(done);
            core::mem::swap(&mut now, &mut next);
        }
        report
    }

    /// Adds a block to the report. The keys are only gone through if some were refused.
    fn note(&self, report: &mut BulkReport, block: &Block<Outcome>, before: usize, not_stored: NotStored) {
        if not_stored.refused == 0 {
            report.inserted += block.keys() - not_stored.present;
            report.present += not_stored.present;
        } else {
            block.for_each(|index, outcome| report.note(before + index, outcome.result(), self.max_listed));
        }
    }

    fn remove_keys<T: Sync>(mut self, keys: &[T], hash: impl Fn(&T) -> Mixed + Sync) -> RemoveReport {
        let raw = &self.filter.raw;
        let mut report = RemoveReport::default();
        let block = if raw.growing().is_none() { raw.block(keys.len()) } else { None };
        let Some(mut block) = block else {
            let mut done = 0;
            for keys in groups(keys) {
                let results = batches(keys, |keys| {
                    let mut results = Vec::with_capacity(keys.len());
                    raw.remove_each(keys.iter().map(&hash), |removed| results.push(removed));
                    results
                });
                for removed in results.into_iter().flatten() {
                    report.note(done, removed, self.max_listed);
                    done += 1;
                }
                (self.progress)(done);
            }
            return report;
        };
        let mut done = 0;
        for keys in keys.chunks(block.max_keys()) {
            block.fill(keys, &hash);
            if raw.remove_block(&mut block) == 0 {
                report.removed += keys.len();
            } else {
                block.for_each(|index, removed| report.note(done + index, removed, self.max_listed));
            }
            done += keys.len();
            (self.progress)(done);
        }
        report
    }

    #[track_caller]
    fn lookup_keys<T: Sync>(mut self, keys: &[T], hash: impl Fn(&T) -> Mixed + Sync, found: &mut [bool]) {
        assert_same_length(keys, found);
        let raw = &self.filter.raw;
        let many = raw.growing().is_none()
            && !raw.is_near()
            && Block::<bool>::is_dense(raw.sorter(0), keys.len(), LOOKUPS_PER_SHARD);
        let mut block = if many { Block::<bool>::new(raw.sorter(0), keys.len()) } else { None };
        let at_a_time = block.as_ref().map_or(LOOKUPS_PER_BLOCK, Block::max_keys);
        let mut done = 0;
        for (keys, found) in keys.chunks(at_a_time).zip(found.chunks_mut(at_a_time)) {
            if let Some(block) = &mut block {
                block.fill(keys, &hash);
                raw.lookup_block(block);
                block.read(found, |found| found);
            } else {
                let jobs = keys.par_chunks(LOOKUPS_PER_JOB).zip(found.par_chunks_mut(LOOKUPS_PER_JOB));
                jobs.for_each(|(keys, found)| lookup_batch(raw, keys, &hash, found));
            }
            done += keys.len();
            (self.progress)(done);
        }
        if keys.is_empty() {
            (self.progress)(0);
        }
    }
}

impl<K: ?Sized + Hash, S: BuildHasher + Sync, P: FnMut(usize)> Bulk<'_, K, S, P> {
    /// As [`par_insert`](CuckooFilter::par_insert), with these options.
    pub fn insert<T: Borrow<K> + Sync>(self, keys: &[T]) -> BulkReport {
        let filter = self.filter;
        self.insert_keys(keys, |key| filter.mixed(key.borrow()), None)
    }

    /// As [`par_insert_unique`](CuckooFilter::par_insert_unique), with these options.
    ///
    /// # Panics
    /// If `keys` and `admitted` differ in length.
    #[track_caller]
    pub fn insert_unique<T: Borrow<K> + Sync>(self, keys: &[T], admitted: &mut [bool]) -> BulkReport {
        assert_same_length(keys, admitted);
        let filter = self.filter;
        self.unique().insert_keys(keys, |key| filter.mixed(key.borrow()), Some(admitted))
    }

    /// As [`par_insert_iter`](CuckooFilter::par_insert_iter), with these options.
    pub fn insert_iter<T: Borrow<K>>(self, keys: impl IntoIterator<Item = T>) -> BulkReport {
        let filter = self.filter;
        self.insert_stream(keys.into_iter().map(|key| filter.mixed(key.borrow())))
    }

    /// As [`par_remove`](CuckooFilter::par_remove), with these options.
    pub fn remove<T: Borrow<K> + Sync>(self, keys: &[T]) -> RemoveReport {
        let filter = self.filter;
        self.remove_keys(keys, |key| filter.mixed(key.borrow()))
    }

    /// As [`par_contains`](CuckooFilter::par_contains), with these options.
    ///
    /// # Panics
    /// If `keys` and `found` differ in length.
    #[track_caller]
    pub fn contains<T: Borrow<K> + Sync>(self, keys: &[T], found: &mut [bool]) {
        let filter = self.filter;
        self.lookup_keys(keys, |key| filter.mixed(key.borrow()), found);
    }
}

impl<K: ?Sized, S, P> fmt::Debug for Bulk<'_, K, S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bulk").field("max_listed", &self.max_listed).finish_non_exhaustive()
    }
}
