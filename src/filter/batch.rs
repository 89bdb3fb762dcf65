//! Batches on the calling thread: lookups in blocks (`raw/block`), insertions and removals in a window (`raw/batch`).

use super::Filter;
use super::key::BatchKey;
use super::kind::{Insert, Kind, Remove};
use crate::layout::Mixed;
use crate::raw::{Answers, IfPresent, Put};
use crate::report::{BulkReport, RemoveReport};
use core::hash::BuildHasher;

/// Returns a function that hashes the next keys of a slice.
pub(crate) fn hashing<T>(mut keys: &[T], mixed: impl Fn(&T) -> Mixed) -> impl FnMut(&mut [Mixed]) -> usize {
    move |to| {
        let (now, later) = keys.split_at(keys.len().min(to.len()));
        keys = later;
        for (key, to) in now.iter().zip(to) {
            *to = mixed(key);
        }
        now.len()
    }
}

/// # Panics
/// If there is not one answer per key.
#[track_caller]
pub(crate) fn assert_same_length(keys: usize, answers: usize) {
    assert_eq!(keys, answers, "the number of keys and the number of places for their answers differ");
}

impl<K: ?Sized, S: BuildHasher, T: Kind> Filter<K, S, T> {
    /// Looks up many keys: `found[i]` is the answer of [`contains`](Filter::contains) for `keys[i]`, at some moment during the call.
    /// Faster than a loop, out of cache several times as fast.
    ///
    /// # Panics
    /// If `keys` and `found` differ in length.
    ///
    /// # Complexity
    /// That of a loop of `contains`, in blocks of 32 keys: the cache lines of one block are fetched while the block before is compared.
    /// Where `contains` would repeat, the block is looked up again, key by key.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let blocked = CuckooFilter::<String>::with_capacity(100);
    /// blocked.insert("b.com")?;
    /// let mut found = [false; 2];
    /// blocked.contains_batch(&["a.com", "b.com"], &mut found);
    /// assert_eq!(found, [false, true]);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[track_caller]
    pub fn contains_batch<Q: BatchKey<K, F>, F>(&self, keys: &[Q], found: &mut [bool]) {
        assert_same_length(keys.len(), found.len());
        self.raw.contains_each(&mut hashing(keys, |key| self.mixed(key)), found);
    }

    /// Stores the answer for each key, some keys after its buckets were prefetched.
    #[track_caller]
    pub(super) fn answer_each<Q: BatchKey<K, F>, F, A>(
        &self,
        keys: &[Q],
        answers: &mut [A],
        answer: impl Fn(Mixed) -> A,
    ) {
        assert_same_length(keys.len(), answers.len());
        self.raw.fetch_each(self.mixed_each(keys).zip(answers), |mixed, to| *to = answer(mixed));
    }

    fn mixed_each<Q: BatchKey<K, F>, F>(&self, keys: &[Q]) -> impl Iterator<Item = Mixed> {
        keys.iter().map(|key| self.mixed(key))
    }

    pub(super) fn put_batch<Q: BatchKey<K, F>, F>(&self, keys: &[Q], put: Put, answers: Answers<'_>) -> BulkReport {
        self.raw.insert_each(&mut self.mixed_each(keys), put, usize::MAX, answers)
    }

    /// Removes from each key the copy with this value, or the one that dies first.
    pub(super) fn remove_each<Q: BatchKey<K, F>, F>(&self, keys: &[Q], value: Option<u32>) -> RemoveReport {
        self.raw.remove_each(&mut self.mixed_each(keys), value, usize::MAX)
    }
}

impl<K: ?Sized, S: BuildHasher, T: Insert> Filter<K, S, T> {
    /// Stores a copy of each key, as a loop of [`insert`](Filter::insert) would, and lists refused keys. A refusal does not end the batch.
    /// Other threads may use the filter concurrently: each key is stored by itself. To use several threads for a long list, see
    /// [`par_insert`](Filter::par_insert).
    ///
    /// # Complexity
    /// That of a loop of `insert`, with the cache lines of up to 16 keys fetched ahead. After a refusal, the searches for room of the
    /// following keys visit fewer and fewer buckets, down to 32, until a search succeeds: of a batch beyond the capacity, some keys may
    /// be refused that a loop would have stored.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let blocked = CuckooFilter::<String>::with_capacity(100);
    /// let report = blocked.insert_batch(&["a.com", "b.com"]);
    /// assert_eq!(report.inserted, 2);
    /// assert!(report.refused.is_empty());
    /// ```
    pub fn insert_batch<Q: BatchKey<K, F>, F>(&self, keys: &[Q]) -> BulkReport {
        self.put_batch(keys, self.put(IfPresent::Another), Answers::Nothing)
    }

    /// Stores each absent key, as a loop of [`insert_unique`](Filter::insert_unique) would: `admitted[i]` is whether `keys[i]` was stored.
    /// Of equal keys in the batch the first is stored. A refusal does not end the batch; `admitted` is `false` for refused and for present
    /// keys, which the report distinguishes. Of several threads that insert one key at the same time, at most one gets `true`.
    ///
    /// # Panics
    /// If `keys` and `admitted` differ in length.
    ///
    /// # Complexity
    /// That of [`insert_batch`](Filter::insert_batch), with both stripes of a key locked instead of one.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let seen = CuckooFilter::<String>::with_capacity(100);
    /// seen.insert("a.com")?;
    /// let mut admitted = [false; 4];
    /// let report = seen.insert_unique_batch(&["a.com", "b.com", "b.com", "c.com"], &mut admitted);
    /// assert_eq!(admitted, [false, true, false, true]);
    /// assert_eq!((report.inserted, report.present, report.refused.len()), (2, 2, 0));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[track_caller]
    pub fn insert_unique_batch<Q: BatchKey<K, F>, F>(&self, keys: &[Q], admitted: &mut [bool]) -> BulkReport {
        assert_same_length(keys.len(), admitted.len());
        self.put_batch(keys, self.put(IfPresent::Keep), Answers::Stored(admitted))
    }
}

impl<K: ?Sized, S: BuildHasher, T: Remove> Filter<K, S, T> {
    /// Removes one copy of each key, as a loop of [`remove`](Filter::remove) would, and lists absent keys. Remove only keys that were
    /// inserted.
    ///
    /// # Complexity
    /// That of a loop of `remove`, with the cache lines of up to 16 keys fetched ahead.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let blocked = CuckooFilter::<String>::with_capacity(100);
    /// assert_eq!(blocked.insert_batch(&["a.com", "b.com"]).inserted, 2);
    /// let report = blocked.remove_batch(&["b.com", "c.com"]);
    /// assert_eq!((report.removed, report.missing), (1, vec![1]));
    /// ```
    pub fn remove_batch<Q: BatchKey<K, F>, F>(&self, keys: &[Q]) -> RemoveReport {
        self.remove_each(keys, None)
    }
}
