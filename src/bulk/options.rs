//! Bulk operations with options.

use super::block::Keys;
use super::work::Work;
use crate::error::InsertError;
use crate::filter::key::BatchKey;
use crate::filter::kind::{Counting, Expiring, Insert, Kind, Plain, Remove, Tagged};
use crate::filter::{Filter, assert_same_length};
use crate::layout::Mixed;
use crate::raw::{Answers, IfPresent, Put};
use crate::report::{BulkReport, RemoveReport};
use core::fmt;
use core::hash::BuildHasher;

/// An operation on many keys, on all threads of the rayon pool that the caller is in, or of the global one, with
/// options: the length of the list of refused keys, and a callback for progress. [`Filter::bulk`] returns one;
/// [`par_insert`](Filter::par_insert) documents the common properties of all operations.
///
/// # Panics
/// Operations panic if the system provides no threads, like `par_insert`, and if the keys and the places for their answers differ in
/// number.
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
    /// assert_eq!((report.inserted, report.refused.len(), report.refused_unlisted), (8, 1, 1));
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
    /// assert_eq!(filter.bulk().progress(|done| steps.push(done)).insert_iter(0..10_000_u64).inserted, 10_000);
    /// assert_eq!(steps.last(), Some(&10_000));
    /// ```
    pub fn progress<C: FnMut(usize)>(self, callback: C) -> Bulk<'a, K, S, T, C> {
        Bulk { filter: self.filter, max_listed: self.max_listed, progress: callback }
    }
}

impl<K: ?Sized, S: BuildHasher, T: Kind, P: FnMut(usize)> Bulk<'_, K, S, T, P> {
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
    fn on<Q: BatchKey<K, F> + Sync, F, R>(
        mut self,
        keys: &[Q],
        work: impl FnOnce(Work<'_, T::Slots>, Keys<'_>) -> R,
    ) -> R {
        let filter = self.filter;
        Keys::with(keys, |key| filter.mixed(key), |keys| work(self.work(), keys))
    }

    fn put<Q: BatchKey<K, F> + Sync, F>(self, keys: &[Q], put: Put, answers: Answers<'_>) -> BulkReport {
        self.on(keys, |work, keys| work.insert(keys, put, answers))
    }

    /// Looks up many keys, as [`par_contains`](Filter::par_contains) does.
    #[track_caller]
    pub fn contains<Q: BatchKey<K, F> + Sync, F>(self, keys: &[Q], found: &mut [bool]) {
        assert_same_length(keys.len(), found.len());
        self.on(keys, |work, keys| work.contains(keys, found));
    }
}

impl<K: ?Sized, S: BuildHasher, T: Insert, P: FnMut(usize)> Bulk<'_, K, S, T, P> {
    /// Stores a copy of each key, as [`par_insert`](Filter::par_insert) does.
    pub fn insert<Q: BatchKey<K, F> + Sync, F>(self, keys: &[Q]) -> BulkReport
    where
        S: Sync,
    {
        let put = self.filter.put(IfPresent::Another);
        self.put(keys, put, Answers::Nothing)
    }

    /// Stores a copy of each key of an iterator, owned or borrowed: a list of any length streams through. The report numbers keys in the
    /// order of the iterator, from 0.
    ///
    /// The iterator and the hash function run on the calling thread, and fill one block while the threads of the pool store the one
    /// before; an iterator must not wait for other work of the same pool. If either panics, the panic propagates to the caller; up to 2^24
    /// keys before it may not be stored.
    ///
    /// # Complexity
    /// That of [`par_insert`](Filter::par_insert), with two blocks of half the size.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    /// use std::io::{BufRead, BufReader};
    ///
    /// let file = BufReader::new("a.com\nb.com\n".as_bytes()); // or a `File`
    /// let blocked = CuckooFilter::<String>::with_capacity(1_000);
    /// let mut broken = None;
    /// let lines = file.lines().map_while(|line| line.map_err(|error| broken = Some(error)).ok());
    /// assert_eq!(blocked.bulk().insert_iter(lines).inserted, 2);
    /// assert!(broken.is_none() && blocked.contains("b.com"));
    ///
    /// let more = vec![String::from("c.com")];
    /// assert_eq!(blocked.bulk().insert_iter(more.iter()).inserted, 1);
    /// ```
    pub fn insert_iter<Q: BatchKey<K, F>, F>(self, keys: impl IntoIterator<Item = Q>) -> BulkReport {
        let put = self.filter.put(IfPresent::Another);
        self.put_stream(keys, put)
    }

    /// Stores each absent key: `admitted[i]` is whether `keys[i]` was stored. Of equal keys exactly one is stored,
    /// across this call and the calls of all other threads; a false positive counts as present. `admitted` is `false`
    /// for refused and for present keys, which the report distinguishes.
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
        let put = self.filter.put(IfPresent::Keep);
        self.put(keys, put, Answers::Stored(admitted))
    }

    /// Stores each absent key of an iterator; the report counts the present keys.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let seen = CuckooFilter::<u64>::with_capacity(1_000);
    /// let report = seen.bulk().insert_unique_iter((0..1_000).map(|number| number % 100));
    /// assert_eq!((report.inserted, report.present), (100, 900));
    /// ```
    pub fn insert_unique_iter<Q: BatchKey<K, F>, F>(self, keys: impl IntoIterator<Item = Q>) -> BulkReport {
        let put = self.filter.put(IfPresent::Keep);
        self.put_stream(keys, put)
    }
}

impl<K: ?Sized, S: BuildHasher + Sync, T: Remove, P: FnMut(usize)> Bulk<'_, K, S, T, P> {
    /// Removes one copy of each key, and lists absent keys. Remove only keys that were inserted.
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
        let put = self.filter.put(IfPresent::Raise);
        self.put(keys, put, Answers::Present(seen))
    }
}

impl<K: ?Sized, S: BuildHasher + Sync, P: FnMut(usize)> Bulk<'_, K, S, Counting, P> {
    /// Adds one to the count of each key. The report counts new keys as inserted and the others as present.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    ///
    /// let numbers = CountingFilter::<u64>::with_capacity(1_000);
    /// let keys: Vec<u64> = (0..10_000).map(|number| number % 1_000).collect();
    /// assert!(numbers.bulk().add(&keys).refused.is_empty());
    /// assert!(numbers.count(&7) >= 10);
    /// ```
    #[expect(clippy::should_implement_trait, reason = "it adds to counts, and is named as the single operation")]
    pub fn add<Q: BatchKey<K, F> + Sync, F>(self, keys: &[Q]) -> BulkReport {
        let put = self.filter.one();
        self.put(keys, put, Answers::Nothing)
    }
}

impl<K: ?Sized, S: BuildHasher + Sync, P: FnMut(usize)> Bulk<'_, K, S, Tagged, P> {
    /// Stores a copy of each key with this tag.
    ///
    /// # Errors
    /// [`InsertError::TagTooLarge`], before anything is stored.
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
        Ok(self.put(keys, put, Answers::Nothing))
    }

    /// Removes a copy of each key with this tag, and lists absent keys.
    pub fn remove<Q: BatchKey<K, F> + Sync, F>(self, keys: &[Q], tag: u32) -> RemoveReport {
        let value = self.filter.sought(tag);
        self.on(keys, |work, keys| work.remove(keys, value))
    }
}

impl<K: ?Sized, S, T: Kind, P> fmt::Debug for Bulk<'_, K, S, T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bulk").field("max_listed", &self.max_listed).finish_non_exhaustive()
    }
}
