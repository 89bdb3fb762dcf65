//! Bulk operations with options: blocks of keys are processed by tasks, and outcomes are collected into a report.

use super::block::{Block, InBlocks, Keys};
use super::tasks::{BATCH_KEYS, FEW_KEYS, GROUP_KEYS, NotStored, Outcome, batches, budgets, ranges};
use crate::error::InsertError;
use crate::filter::key::BatchKey;
use crate::filter::kind::{Counting, Expiring, Insert, Kind, Plain, Remove, Tagged, sealed};
use crate::filter::{Filter, assert_same_length};
use crate::layout::Mixed;
use crate::raw::{Answers, IfPresent, Next, Put, RawFilter, SlotKind};
use crate::report::{BulkReport, RemoveReport};
use core::fmt;
use core::hash::BuildHasher;
use rayon::prelude::*;

/// The number of keys per shard from which lookups are sorted by shard: then each line is used often enough to repay
/// the sorting.
const LOOKUPS_PER_SHARD: usize = 1 << 14;

/// The number of unsorted lookups per job of a thread, and between two calls for progress.
const LOOKUPS_PER_JOB: usize = 1 << 14;
const LOOKUPS_PER_BLOCK: usize = 1 << 22;

/// An operation on many keys, on all threads of the rayon pool that the caller is in, or of the global one, with
/// options: the length of the list of refused keys, and a callback for progress. [`Filter::bulk`] returns one;
/// [`par_insert`](Filter::par_insert) documents the common properties of all operations.
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
#[must_use = "nothing is done before an operation is called"]
pub struct Bulk<'a, K: ?Sized, S, T: Kind = Plain, P = fn(usize)> {
    filter: &'a Filter<K, S, T>,
    max_listed: usize,
    progress: P,
}

impl<K: ?Sized, S, T: Kind> Filter<K, S, T> {
    /// Returns a bulk operation for many keys on many threads, with options.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<u64>::with_capacity(10_000);
    /// assert_eq!(filter.bulk().insert_iter(0..10_000_u64).inserted, 10_000);
    /// ```
    pub fn bulk(&self) -> Bulk<'_, K, S, T> {
        Bulk { filter: self, max_listed: usize::MAX, progress: |_| {} }
    }
}

impl<'a, K: ?Sized, S, T: Kind, P> Bulk<'a, K, S, T, P> {
    /// Limits the list of refused or absent keys to the first `keys`; the report counts the others. By default all are
    /// listed, at 16 bytes per refused and 8 per absent key.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<String>::with_capacity(1_000);
    /// let report = filter.bulk().max_listed(1).insert(&["again"; 10]);
    /// assert_eq!((report.inserted, report.rejected.len(), report.rejected_unlisted), (8, 1, 1));
    /// ```
    pub fn max_listed(self, keys: usize) -> Self {
        Bulk { max_listed: keys, ..self }
    }

    /// Sets a callback, which the calling thread calls with the number of finished keys after each block, of at most
    /// 2^24 keys, and at the end. The calling thread has no stripe locked during the call, so the callback may
    /// use the filter.
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
    pub fn progress<C: FnMut(usize)>(self, callback: C) -> Bulk<'a, K, S, T, C> {
        Bulk { filter: self.filter, max_listed: self.max_listed, progress: callback }
    }
}

impl<K: ?Sized, S: BuildHasher, T: Kind, P: FnMut(usize)> Bulk<'_, K, S, T, P> {
    fn on<Q: BatchKey<K, F> + Sync, F, R>(
        mut self,
        keys: &[Q],
        work: impl FnOnce(Work<'_, T::Slots>, Keys<'_>) -> R,
    ) -> R
    where
        S: Sync,
    {
        let filter = self.filter;
        Keys::with(keys, |key| filter.mixed(key), |keys| work(self.work(), keys))
    }

    fn put<Q: BatchKey<K, F> + Sync, F>(self, keys: &[Q], put: Put, answers: InsertAnswers<'_>) -> BulkReport
    where
        S: Sync,
    {
        self.on(keys, |work, keys| work.insert(keys, put, answers))
    }

    fn put_stream<Q: BatchKey<K, F>, F>(mut self, keys: impl IntoIterator<Item = Q>, put: Put) -> BulkReport {
        let filter = self.filter;
        let hashes = keys.into_iter().map(|key| filter.mixed(&key));
        let most = hashes.size_hint().1.unwrap_or(usize::MAX);
        let mut hashes = hashes.fuse();
        let mut next = |to: &mut [Mixed]| {
            let hashed = to.iter_mut().zip(&mut hashes).map(|(to, mixed)| *to = mixed);
            hashed.count()
        };
        self.work().insert_stream(&mut next, put, most)
    }

    fn work(&mut self) -> Work<'_, T::Slots> {
        let Bulk { filter, max_listed, ref mut progress } = *self;
        Work { raw: &filter.raw, max_listed, progress }
    }
}

impl<K: ?Sized, S: BuildHasher + Sync, T: Kind, P: FnMut(usize)> Bulk<'_, K, S, T, P> {
    /// Looks up many keys, as [`par_contains`](Filter::par_contains) does.
    ///
    /// # Panics
    /// If `keys` and `found` differ in length; if the system refuses rayon its threads.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<u64>::with_capacity(100);
    /// filter.insert(&1)?;
    /// let mut found = [false; 2];
    /// filter.bulk().contains(&[0, 1], &mut found);
    /// assert_eq!(found, [false, true]);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[track_caller]
    pub fn contains<Q: BatchKey<K, F> + Sync, F>(self, keys: &[Q], found: &mut [bool]) {
        assert_same_length(keys.len(), found.len());
        self.on(keys, |work, keys| work.contains(keys, found));
    }
}

impl<K: ?Sized, S: BuildHasher, T: Insert, P: FnMut(usize)> Bulk<'_, K, S, T, P> {
    /// Stores a copy of each key, as [`par_insert`](Filter::par_insert) does.
    ///
    /// # Panics
    /// If the system refuses rayon its threads.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<u64>::with_capacity(100);
    /// assert_eq!(filter.bulk().insert(&[1, 2]).inserted, 2);
    /// ```
    pub fn insert<Q: BatchKey<K, F> + Sync, F>(self, keys: &[Q]) -> BulkReport
    where
        S: Sync,
    {
        let put = T::put(&self.filter.time, IfPresent::Another);
        self.put(keys, put, InsertAnswers::None)
    }

    /// Stores a copy of each key of an iterator, as [`par_insert_iter`](Filter::par_insert_iter) does.
    ///
    /// # Panics
    /// If the system refuses rayon its threads.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<u64>::with_capacity(100);
    /// assert_eq!(filter.bulk().insert_iter(0..100_u64).inserted, 100);
    /// ```
    pub fn insert_iter<Q: BatchKey<K, F>, F>(self, keys: impl IntoIterator<Item = Q>) -> BulkReport {
        let put = T::put(&self.filter.time, IfPresent::Another);
        self.put_stream(keys, put)
    }

    /// Stores each absent key: `admitted[i]` is whether `keys[i]` was stored. Of equal keys exactly one is stored,
    /// across this call and the calls of all other threads; a false positive counts as present. `admitted` is `false`
    /// for refused and for present keys, which the report distinguishes.
    ///
    /// # Panics
    /// If `keys` and `admitted` differ in length; if the system refuses rayon its threads.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let seen = CuckooFilter::<String>::with_capacity(100);
    /// let mut admitted = [false; 3];
    /// let report = seen.bulk().insert_unique(&["a.com/1", "a.com/2", "a.com/1"], &mut admitted);
    /// assert_eq!((report.inserted, report.present), (2, 1));
    /// assert!(admitted[1] && admitted[0] != admitted[2]);
    /// ```
    #[track_caller]
    pub fn insert_unique<Q: BatchKey<K, F> + Sync, F>(self, keys: &[Q], admitted: &mut [bool]) -> BulkReport
    where
        S: Sync,
    {
        assert_same_length(keys.len(), admitted.len());
        let put = T::put(&self.filter.time, IfPresent::Keep);
        self.put(keys, put, InsertAnswers::Admitted(admitted))
    }

    /// Stores each absent key of an iterator; the report counts the present keys.
    ///
    /// # Panics
    /// If the system refuses rayon its threads.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let seen = CuckooFilter::<u64>::with_capacity(1_000);
    /// let report = seen.bulk().insert_unique_iter((0..1_000).map(|number| number % 100));
    /// assert_eq!((report.inserted, report.present), (100, 900));
    /// ```
    pub fn insert_unique_iter<Q: BatchKey<K, F>, F>(self, keys: impl IntoIterator<Item = Q>) -> BulkReport {
        let put = T::put(&self.filter.time, IfPresent::Keep);
        self.put_stream(keys, put)
    }
}

impl<K: ?Sized, S: BuildHasher + Sync, T: Remove, P: FnMut(usize)> Bulk<'_, K, S, T, P> {
    /// Removes one copy of each key, and lists absent keys. Remove only keys that were inserted.
    ///
    /// # Panics
    /// If the system refuses rayon its threads.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<u64>::with_capacity(100);
    /// filter.insert(&1)?;
    /// let report = filter.bulk().remove(&[0, 1]);
    /// assert_eq!((report.removed, report.missing), (1, vec![0]));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    pub fn remove<Q: BatchKey<K, F> + Sync, F>(self, keys: &[Q]) -> RemoveReport {
        self.on(keys, |work, keys| work.remove(keys, None))
    }
}

impl<K: ?Sized, S: BuildHasher + Sync, P: FnMut(usize)> Bulk<'_, K, S, Expiring, P> {
    /// Sees each key: `seen[i]` is the result of [`see`](crate::ExpiringFilter::see) for `keys[i]`, and `false` if it is refused. Of
    /// equal keys that are new, one gets `false`. The report counts new keys as inserted and the others as present.
    ///
    /// # Panics
    /// If `keys` and `seen` differ in length; if the system refuses rayon its threads.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::ExpiringFilter;
    /// use std::time::Duration;
    ///
    /// let filter = ExpiringFilter::<u64>::builder().capacity(100).time_to_live(Duration::from_secs(60)).build()?;
    /// filter.insert(&1)?;
    /// let mut seen = [false; 2];
    /// assert_eq!(filter.bulk().see(&[0, 1], &mut seen).inserted, 1);
    /// assert_eq!(seen, [false, true]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn see<Q: BatchKey<K, F> + Sync, F>(self, keys: &[Q], seen: &mut [bool]) -> BulkReport {
        assert_same_length(keys.len(), seen.len());
        let put = <Expiring as sealed::Insert>::put(&self.filter.time, IfPresent::Raise);
        self.put(keys, put, InsertAnswers::Seen(seen))
    }
}

impl<K: ?Sized, S: BuildHasher + Sync, P: FnMut(usize)> Bulk<'_, K, S, Counting, P> {
    /// Adds one to the count of each key. The report counts new keys as inserted and the others as present.
    ///
    /// # Panics
    /// If the system refuses rayon its threads.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    ///
    /// let numbers = CountingFilter::<u64>::with_capacity(1_000);
    /// let keys: Vec<u64> = (0..10_000).map(|number| number % 1_000).collect();
    /// assert!(numbers.bulk().add(&keys).rejected.is_empty());
    /// assert!(numbers.count(&7) >= 10);
    /// ```
    #[expect(clippy::should_implement_trait, reason = "it adds to counts, and is named as the single operation")]
    pub fn add<Q: BatchKey<K, F> + Sync, F>(self, keys: &[Q]) -> BulkReport {
        let put = self.filter.one();
        self.put(keys, put, InsertAnswers::None)
    }
}

impl<K: ?Sized, S: BuildHasher + Sync, P: FnMut(usize)> Bulk<'_, K, S, Tagged, P> {
    /// Stores a copy of each key with this tag.
    ///
    /// # Errors
    /// [`InsertError::TagTooLarge`], before anything is stored.
    ///
    /// # Panics
    /// If the system refuses rayon its threads.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::TaggedFilter;
    ///
    /// let lists = TaggedFilter::<u64>::with_capacity(10_000);
    /// let keys: Vec<u64> = (0..10_000).collect();
    /// assert_eq!(lists.bulk().insert(&keys, 3)?.inserted, 10_000);
    /// assert_eq!(lists.bulk().remove(&keys, 3).removed, 10_000);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    pub fn insert<Q: BatchKey<K, F> + Sync, F>(self, keys: &[Q], tag: u32) -> Result<BulkReport, InsertError> {
        let put = self.filter.copy_with(tag)?;
        Ok(self.put(keys, put, InsertAnswers::None))
    }

    /// Removes a copy of each key with this tag, and lists absent keys.
    ///
    /// # Panics
    /// If the system refuses rayon its threads.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::TaggedFilter;
    ///
    /// let lists = TaggedFilter::<u64>::with_capacity(100);
    /// lists.insert(&1, 3)?;
    /// let report = lists.bulk().remove(&[0, 1], 3);
    /// assert_eq!((report.removed, report.missing), (1, vec![0]));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    pub fn remove<Q: BatchKey<K, F> + Sync, F>(self, keys: &[Q], tag: u32) -> RemoveReport {
        let value = self.filter.value(tag);
        self.on(keys, |work, keys| match value {
            Ok(value) => work.remove(keys, Some(value)),
            Err(_) => work.remove_none(keys),
        })
    }
}

/// The results requested from an insertion of many keys.
enum InsertAnswers<'a> {
    None,
    /// Whether a key was stored.
    Admitted(&'a mut [bool]),
    /// Whether a key was present.
    Seen(&'a mut [bool]),
}

impl<'a> InsertAnswers<'a> {
    fn places(self) -> (Option<&'a mut [bool]>, Outcome) {
        match self {
            InsertAnswers::None => (None, Outcome::Inserted),
            InsertAnswers::Admitted(places) => (Some(places), Outcome::Inserted),
            InsertAnswers::Seen(places) => (Some(places), Outcome::Present),
        }
    }
}

/// A bulk operation without the types of its keys and of its callback, compiled once per kind of slot.
struct Work<'a, T: SlotKind> {
    raw: &'a RawFilter<T>,
    max_listed: usize,
    progress: &'a mut dyn FnMut(usize),
}

impl<T: SlotKind> Work<'_, T> {
    fn insert(self, keys: Keys<'_>, put: Put, answers: InsertAnswers<'_>) -> BulkReport {
        let raw = self.raw;
        let (mut places, wanted) = answers.places();
        let mut report = BulkReport::default();
        let Some(mut block) = raw.block(keys.count) else {
            for group in ranges(keys.count, GROUP_KEYS) {
                let places = places.as_mut().map(|places| &mut places[group.clone()]);
                let reports = batches(group.clone(), places, |batch, places| {
                    let answers = match places {
                        None => Answers::Nothing,
                        Some(places) if wanted == Outcome::Present => Answers::Present(places),
                        Some(places) => Answers::Stored(places),
                    };
                    raw.insert_each(&mut InBlocks::new(&mut keys.hashing(batch)), put, self.max_listed, answers)
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
            let not_stored = raw.insert_block(&mut block, &mut budgets, put);
            self.note(&mut report, &block, range.start, not_stored);
            if let Some(places) = &mut places {
                block.read(&mut places[range.clone()], |outcome| outcome == wanted);
            }
            (self.progress)(range.end);
        }
        report
    }

    /// Stores one block while the next one is filled. There are at most `most` keys.
    fn insert_stream(self, next: Next<'_>, put: Put, most: usize) -> BulkReport {
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
        // Computed once for both halves, since another writer may double the filter between them.
        let sorter = raw.sorter(most);
        let half = || if count < FEW_KEYS { None } else { Block::for_stream(sorter, most) };
        let blocks = half().zip(half());
        let scratch = blocks.as_ref().and_then(|(block, _)| block.scratch());
        let Some(((mut now, mut later), mut scratch)) = blocks.zip(scratch) else {
            let report = raw.insert_each(&mut InBlocks::new(&mut next), put, self.max_listed, Answers::Nothing);
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
                scope.spawn(|_| not_stored = raw.insert_block(&mut now, &mut budgets, put));
                later.fill_from(&mut next, &mut scratch);
            });
            self.note(&mut report, &now, done, not_stored);
            done += now.keys();
            (self.progress)(done);
            core::mem::swap(&mut now, &mut later);
        }
        report
    }

    /// Adds a block to the report. The keys are visited only if some were refused.
    fn note(&self, report: &mut BulkReport, block: &Block<Outcome>, before: usize, not_stored: NotStored) {
        if not_stored.refused == 0 {
            report.inserted += block.keys() - not_stored.present;
            report.present += not_stored.present;
        } else {
            block.for_each(|index, outcome| report.note(before + index, outcome.result(), self.max_listed));
        }
    }

    fn remove(self, keys: Keys<'_>, value: Option<u32>) -> RemoveReport {
        let raw = self.raw;
        let mut report = RemoveReport::default();
        let block = raw.flat_block(keys.count);
        let Some((flat, mut block)) = block else {
            for group in ranges(keys.count, GROUP_KEYS) {
                let reports = batches(group.clone(), None, |batch, _| {
                    raw.remove_each(&mut InBlocks::new(&mut keys.hashing(batch)), value, self.max_listed)
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
            if flat.remove_block(&mut block, value) == 0 {
                report.removed += range.len();
            } else {
                block.for_each(|index, removed| report.note(range.start + index, removed, self.max_listed));
            }
            (self.progress)(range.end);
        }
        report
    }

    /// Returns the report of removals that match no copy.
    fn remove_none(self, keys: Keys<'_>) -> RemoveReport {
        let mut report = RemoveReport::default();
        (0..keys.count).for_each(|index| report.note(index, false, self.max_listed));
        (self.progress)(keys.count);
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

impl<K: ?Sized, S, T: Kind, P> fmt::Debug for Bulk<'_, K, S, T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bulk").field("max_listed", &self.max_listed).finish_non_exhaustive()
    }
}
