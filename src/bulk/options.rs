//! A bulk operation with its options: keys are gathered into blocks, tasks work on them, outcomes become a report.

use super::block::{Block, InBlocks, Keys};
use super::tasks::{BATCH_KEYS, FEW_KEYS, GROUP_KEYS, NotStored, Outcome, batches, budgets, ranges};
use crate::batch::assert_same_length;
use crate::filter::CuckooFilter;
use crate::layout::Mixed;
use crate::raw::{Answers, Bare, Next, Put, RawFilter, SlotKind};
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
    put: Put,
    max_listed: usize,
    progress: P,
}

impl<K: ?Sized, S> CuckooFilter<K, S> {
    /// Begins an operation on many keys with options. [`par_insert`](CuckooFilter::par_insert) and its likes are the
    /// same without any.
    pub fn bulk(&self) -> Bulk<'_, K, S> {
        Bulk { filter: self, put: Put::COPY, max_listed: usize::MAX, progress: |_| {} }
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
        Bulk { put: Put::UNIQUE, ..self }
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
        Bulk { filter: self.filter, put: self.put, max_listed: self.max_listed, progress: tell }
    }
}

impl<K: ?Sized, S: Sync, P: FnMut(usize)> Bulk<'_, K, S, P> {
    /// As [`par_insert_hash`](CuckooFilter::par_insert_hash), with these options.
    pub fn insert_hash(self, hashes: &[u64]) -> BulkReport {
        self.on_hashes(hashes, |work, keys| work.insert(keys, None))
    }

    /// As [`par_insert_unique_hash`](CuckooFilter::par_insert_unique_hash), with these options.
    ///
    /// # Panics
    /// If `hashes` and `admitted` differ in length.
    #[track_caller]
    pub fn insert_unique_hash(self, hashes: &[u64], admitted: &mut [bool]) -> BulkReport {
        assert_same_length(hashes.len(), admitted.len());
        self.unique().on_hashes(hashes, |work, keys| work.insert(keys, Some(admitted)))
    }

    /// As [`par_insert_iter_hash`](CuckooFilter::par_insert_iter_hash), with these options.
    pub fn insert_iter_hash(self, hashes: impl IntoIterator<Item = u64>) -> BulkReport {
        self.insert_stream(hashes.into_iter().map(Mixed::of))
    }

    /// As [`par_remove_hash`](CuckooFilter::par_remove_hash), with these options.
    pub fn remove_hash(self, hashes: &[u64]) -> RemoveReport {
        self.on_hashes(hashes, |work, keys| work.remove(keys))
    }

    /// As [`par_contains_hash`](CuckooFilter::par_contains_hash), with these options.
    ///
    /// # Panics
    /// If `hashes` and `found` differ in length.
    #[track_caller]
    pub fn contains_hash(self, hashes: &[u64], found: &mut [bool]) {
        assert_same_length(hashes.len(), found.len());
        self.on_hashes(hashes, |work, keys| work.contains(keys, found));
    }

    fn on_hashes<R>(self, hashes: &[u64], work: impl FnOnce(Work<'_, Bare>, Keys<'_>) -> R) -> R {
        self.on(hashes, |&hash| Mixed::of(hash), work)
    }

    /// Does the work on these keys.
    fn on<T: Sync, R>(
        mut self,
        keys: &[T],
        mixed: impl Fn(&T) -> Mixed + Sync,
        work: impl FnOnce(Work<'_, Bare>, Keys<'_>) -> R,
    ) -> R {
        Keys::with(keys, mixed, |keys| work(self.work(), keys))
    }

    fn insert_stream(mut self, hashes: impl Iterator<Item = Mixed>) -> BulkReport {
        let most = hashes.size_hint().1.unwrap_or(usize::MAX);
        let mut hashes = hashes.fuse();
        let mut next = |to: &mut [Mixed]| {
            let hashed = to.iter_mut().zip(&mut hashes).map(|(to, mixed)| *to = mixed);
            hashed.count()
        };
        self.work().insert_stream(&mut next, most)
    }

    fn work(&mut self) -> Work<'_, Bare> {
        let Bulk { filter, put, max_listed, ref mut progress } = *self;
        Work { raw: &filter.raw, put, max_listed, progress }
    }
}

/// A bulk operation without the types of its keys and of who is told of its progress: it is compiled once.
struct Work<'a, T: SlotKind> {
    raw: &'a RawFilter<T>,
    put: Put,
    max_listed: usize,
    progress: &'a mut dyn FnMut(usize),
}

impl<T: SlotKind> Work<'_, T> {
    /// Says of each key whether it was stored, if there is a place for the answers.
    fn insert(self, keys: Keys<'_>, mut admitted: Option<&mut [bool]>) -> BulkReport {
        let raw = self.raw;
        let mut report = BulkReport::default();
        let Some(mut block) = raw.block(keys.count) else {
            for group in ranges(keys.count, GROUP_KEYS) {
                let answers = admitted.as_mut().map(|admitted| &mut admitted[group.clone()]);
                let reports = batches(group.clone(), answers, |batch, admitted| {
                    raw.insert_each(
                        &mut InBlocks::new(&mut keys.hashing(batch)),
                        self.put,
                        self.max_listed,
                        admitted.map_or(Answers::Nothing, Answers::Stored),
                    )
                });
                for (batch, keys) in reports.into_iter().enumerate() {
                    report.append(group.start + batch * BATCH_KEYS, keys, self.max_listed);
                }
                (self.progress)(group.end);
            }
            return report;
        };
        let mut budgets = budgets(&block);
        for range in ranges(keys.count, block.max_keys()) {
            block.fill(keys, range.clone());
            let not_stored = raw.insert_block(&mut block, &mut budgets, self.put);
            self.note(&mut report, &block, range.start, not_stored);
            if let Some(admitted) = &mut admitted {
                block.read(&mut admitted[range.clone()], |outcome| outcome == Outcome::Inserted);
            }
            (self.progress)(range.end);
        }
        report
    }

    /// One block is stored while the next one is filled. There are `most` keys at the most.
    fn insert_stream(self, next: Next<'_>, most: usize) -> BulkReport {
        let raw = self.raw;
        let mut first = vec![Mixed::default(); FEW_KEYS];
        let count = next(&mut first);
        let mut first = &first[..count];
        let mut next = |to: &mut [Mixed]| {
            let (now, later) = first.split_at(first.len().min(to.len()));
            first = later;
            to[..now.len()].copy_from_slice(now);
            now.len() + next(&mut to[now.len()..])
        };
        // Once for both halves: another writer may take the filter over a doubling between them.
        let sorter = raw.sorter(most);
        let half = || if count < FEW_KEYS { None } else { Block::for_stream(sorter, most) };
        let blocks = half().zip(half());
        let scratch = blocks.as_ref().and_then(|(block, _)| block.scratch());
        let Some(((mut now, mut later), mut scratch)) = blocks.zip(scratch) else {
            let report = raw.insert_each(&mut InBlocks::new(&mut next), self.put, self.max_listed, Answers::Nothing);
            (self.progress)(report.inserted + report.present + report.rejected.len() + report.rejected_unlisted);
            return report;
        };
        let mut report = BulkReport::default();
        let mut budgets = budgets(&now);
        let mut done = 0;
        now.fill_from(&mut next, &mut scratch);
        while now.keys() > 0 {
            let mut not_stored = NotStored::default();
            rayon::in_place_scope(|scope| {
                scope.spawn(|_| not_stored = raw.insert_block(&mut now, &mut budgets, self.put));
                later.fill_from(&mut next, &mut scratch);
            });
            self.note(&mut report, &now, done, not_stored);
            done += now.keys();
            (self.progress)(done);
            core::mem::swap(&mut now, &mut later);
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

    fn remove(self, keys: Keys<'_>) -> RemoveReport {
        let raw = self.raw;
        let mut report = RemoveReport::default();
        let block = raw.flat_block(keys.count);
        let Some((flat, mut block)) = block else {
            for group in ranges(keys.count, GROUP_KEYS) {
                let reports = batches(group.clone(), None, |batch, _| {
                    raw.remove_each(&mut InBlocks::new(&mut keys.hashing(batch)), None, self.max_listed)
                });
                for (batch, keys) in reports.into_iter().enumerate() {
                    report.append(group.start + batch * BATCH_KEYS, keys, self.max_listed);
                }
                (self.progress)(group.end);
            }
            return report;
        };
        for range in ranges(keys.count, block.max_keys()) {
            block.fill(keys, range.clone());
            if flat.remove_block(&mut block) == 0 {
                report.removed += range.len();
            } else {
                block.for_each(|index, removed| report.note(range.start + index, removed, self.max_listed));
            }
            (self.progress)(range.end);
        }
        report
    }

    fn contains(self, keys: Keys<'_>, found: &mut [bool]) {
        let raw = self.raw;
        let mut block = raw.lookup_block(keys.count, LOOKUPS_PER_SHARD);
        let at_a_time = block.as_ref().map_or(LOOKUPS_PER_BLOCK, |(_, block)| block.max_keys());
        for range in ranges(keys.count, at_a_time) {
            let found = &mut found[range.clone()];
            if let Some((flat, block)) = &mut block {
                block.fill(keys, range.clone());
                flat.look_up_block(block);
                block.read(found, |found| found);
            } else {
                found.par_chunks_mut(LOOKUPS_PER_JOB).enumerate().for_each(|(job, found)| {
                    let begin = range.start + job * LOOKUPS_PER_JOB;
                    raw.contains_each(&mut keys.hashing(begin..begin + found.len()), found);
                });
            }
            (self.progress)(range.end);
        }
    }
}

/// Insertions of many keys into a filter of any kind, on all threads.
pub(crate) fn par_put<T: SlotKind, A: Sync>(
    raw: &RawFilter<T>,
    keys: &[A],
    mixed: impl Fn(&A) -> Mixed + Sync,
    put: Put,
) -> BulkReport {
    let work = Work { raw, put, max_listed: usize::MAX, progress: &mut |_| {} };
    Keys::with(keys, mixed, |keys| work.insert(keys, None))
}

/// Lookups of many keys in a filter of any kind, on all threads.
///
/// # Panics
/// If there is not one answer for each key.
#[track_caller]
pub(crate) fn par_contains<T: SlotKind, A: Sync>(
    raw: &RawFilter<T>,
    keys: &[A],
    mixed: impl Fn(&A) -> Mixed + Sync,
    found: &mut [bool],
) {
    assert_same_length(keys.len(), found.len());
    let work = Work { raw, put: Put::COPY, max_listed: usize::MAX, progress: &mut |_| {} };
    Keys::with(keys, mixed, |keys| work.contains(keys, found));
}

impl<K: ?Sized + Hash, S: BuildHasher + Sync, P: FnMut(usize)> Bulk<'_, K, S, P> {
    /// As [`par_insert`](CuckooFilter::par_insert), with these options.
    pub fn insert<T: Borrow<K> + Sync>(self, keys: &[T]) -> BulkReport {
        self.on_keys(keys, |work, keys| work.insert(keys, None))
    }

    /// As [`par_insert_unique`](CuckooFilter::par_insert_unique), with these options.
    ///
    /// # Panics
    /// If `keys` and `admitted` differ in length.
    #[track_caller]
    pub fn insert_unique<T: Borrow<K> + Sync>(self, keys: &[T], admitted: &mut [bool]) -> BulkReport {
        assert_same_length(keys.len(), admitted.len());
        self.unique().on_keys(keys, |work, keys| work.insert(keys, Some(admitted)))
    }

    /// As [`par_insert_iter`](CuckooFilter::par_insert_iter), with these options.
    pub fn insert_iter<T: Borrow<K>>(self, keys: impl IntoIterator<Item = T>) -> BulkReport {
        let filter = self.filter;
        self.insert_stream(keys.into_iter().map(|key| filter.mixed(key.borrow())))
    }

    /// As [`par_remove`](CuckooFilter::par_remove), with these options.
    pub fn remove<T: Borrow<K> + Sync>(self, keys: &[T]) -> RemoveReport {
        self.on_keys(keys, |work, keys| work.remove(keys))
    }

    /// As [`par_contains`](CuckooFilter::par_contains), with these options.
    ///
    /// # Panics
    /// If `keys` and `found` differ in length.
    #[track_caller]
    pub fn contains<T: Borrow<K> + Sync>(self, keys: &[T], found: &mut [bool]) {
        assert_same_length(keys.len(), found.len());
        self.on_keys(keys, |work, keys| work.contains(keys, found));
    }

    fn on_keys<T: Borrow<K> + Sync, R>(self, keys: &[T], work: impl FnOnce(Work<'_, Bare>, Keys<'_>) -> R) -> R {
        let filter = self.filter;
        self.on(keys, |key| filter.mixed(key.borrow()), work)
    }
}

impl<K: ?Sized, S, P> fmt::Debug for Bulk<'_, K, S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bulk").field("max_listed", &self.max_listed).finish_non_exhaustive()
    }
}
