//! Batches on the calling thread: lookups in blocks (`raw/block`), insertions and removals in a window (`raw/batch`).

use crate::filter::CuckooFilter;
use crate::layout::Mixed;
use crate::raw::{Answers, Put, RawFilter, SlotKind};
use crate::report::{BulkReport, RemoveReport};
use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};

impl<K: ?Sized, S> CuckooFilter<K, S> {
    /// Looks up the keys with these hashes. As [`contains_batch`](CuckooFilter::contains_batch).
    ///
    /// # Panics
    /// As [`contains_batch`](CuckooFilter::contains_batch).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::with_capacity(100);
    /// filter.insert("b")?;
    /// let mut found = [false; 2];
    /// filter.contains_batch_hash(&["a", "b"].map(|key| filter.hash(key)), &mut found);
    /// assert_eq!(found, [false, true]);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[track_caller]
    pub fn contains_batch_hash(&self, hashes: &[u64], found: &mut [bool]) {
        lookup_batch(&self.raw, hashes, |&hash| Mixed::of(hash), found);
    }

    /// Stores a copy of each key with these hashes. As [`insert_batch`](CuckooFilter::insert_batch).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::with_capacity(100);
    /// let report = filter.insert_batch_hash(&["a", "b"].map(|key| filter.hash(key)));
    /// assert_eq!(report.inserted, 2);
    /// assert!(filter.contains("a"));
    /// ```
    pub fn insert_batch_hash(&self, hashes: &[u64]) -> BulkReport {
        let hashes = &mut hashes.iter().copied().map(Mixed::of);
        self.raw.insert_each(hashes, Put::COPY, usize::MAX, Answers::Nothing)
    }

    /// Stores each key with these hashes that is absent. As [`insert_unique_batch`](CuckooFilter::insert_unique_batch).
    ///
    /// # Panics
    /// As [`insert_unique_batch`](CuckooFilter::insert_unique_batch).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::with_capacity(100);
    /// let mut admitted = [false; 3];
    /// let report = filter.insert_unique_batch_hash(&["a", "b", "a"].map(|key| filter.hash(key)), &mut admitted);
    /// assert_eq!((report.inserted, report.present), (2, 1));
    /// assert_eq!(admitted, [true, true, false]);
    /// ```
    #[track_caller]
    pub fn insert_unique_batch_hash(&self, hashes: &[u64], admitted: &mut [bool]) -> BulkReport {
        assert_same_length(hashes.len(), admitted.len());
        let hashes = &mut hashes.iter().copied().map(Mixed::of);
        self.raw.insert_each(hashes, Put::UNIQUE, usize::MAX, Answers::Stored(admitted))
    }

    /// Removes one copy of each key with these hashes. As [`remove_batch`](CuckooFilter::remove_batch).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::with_capacity(100);
    /// filter.insert("a")?;
    /// let report = filter.remove_batch_hash(&["a", "b"].map(|key| filter.hash(key)));
    /// assert_eq!((report.removed, report.missing), (1, vec![1]));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    pub fn remove_batch_hash(&self, hashes: &[u64]) -> RemoveReport {
        self.raw.remove_each(&mut hashes.iter().copied().map(Mixed::of), None, usize::MAX)
    }
}

/// Hashes the keys of a slice in turn.
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

/// Looks up the keys, a block at a time.
///
/// # Panics
/// If `keys` and `found` differ in length.
#[track_caller]
pub(crate) fn lookup_batch<K: SlotKind, T>(
    raw: &RawFilter<K>,
    keys: &[T],
    mixed: impl Fn(&T) -> Mixed,
    found: &mut [bool],
) {
    assert_same_length(keys.len(), found.len());
    raw.contains_each(&mut hashing(keys, mixed), found);
}

/// # Panics
/// If there is not one answer for each key.
#[track_caller]
pub(crate) fn assert_same_length(keys: usize, answers: usize) {
    assert_eq!(keys, answers, "the number of keys and the number of places for their answers differ");
}

impl<K: ?Sized + Hash, S: BuildHasher> CuckooFilter<K, S> {
    /// Says of each key whether it is present: `found[i]` is what [`contains`](CuckooFilter::contains) answers for
    /// `keys[i]`, asked at some moment during the call. It is faster than a loop, out of cache several times as fast.
    ///
    /// `keys` holds anything that borrows as the key type: a filter of `str` takes `&[&str]` and `&[String]`, but not
    /// `&[&String]`.
    ///
    /// # Panics
    /// If `keys` and `found` differ in length.
    ///
    /// # Complexity
    /// As a loop of `contains`, in blocks of 32 keys: the lines of one block are fetched while the one before is compared.
    /// Where `contains` would repeat, the block is looked up again, key by key.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let blocked = CuckooFilter::<str>::with_capacity(100);
    /// blocked.insert("b.com")?;
    /// let asked = [String::from("a.com"), String::from("b.com")];
    /// let mut found = vec![false; asked.len()];
    /// blocked.contains_batch(&asked, &mut found);
    /// assert_eq!(found, [false, true]);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[track_caller]
    pub fn contains_batch<T: Borrow<K>>(&self, keys: &[T], found: &mut [bool]) {
        lookup_batch(&self.raw, keys, |key| self.mixed(key.borrow()), found);
    }

    /// Stores a copy of each key, as a loop of [`insert`](CuckooFilter::insert) would, and says which were refused. It
    /// goes on after a refusal. Other threads may do anything meanwhile; each key is stored at a moment of its own.
    ///
    /// `keys` as for [`contains_batch`](CuckooFilter::contains_batch). To use several threads for a long list, see
    /// [`par_insert`](CuckooFilter::par_insert).
    ///
    /// # Complexity
    /// As a loop of `insert`, with the lines of up to 16 keys fetched at a time. After a refusal, following keys are
    /// searched a place for less and less far, down to 32 buckets, until a search succeeds: of a batch beyond what the
    /// filter holds, some keys may be refused that a loop would have stored.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let blocked = CuckooFilter::<str>::with_capacity(100);
    /// let report = blocked.insert_batch(&["a.com", "b.com"]);
    /// assert_eq!(report.inserted, 2);
    /// assert!(report.rejected.is_empty());
    /// ```
    pub fn insert_batch<T: Borrow<K>>(&self, keys: &[T]) -> BulkReport {
        self.raw.insert_each(&mut self.mixed_each(keys), Put::COPY, usize::MAX, Answers::Nothing)
    }

    /// Stores each key that is absent, as a loop of [`insert_unique`](CuckooFilter::insert_unique) would: `admitted[i]`
    /// says whether `keys[i]` was stored. Of equal keys in the batch the first one is. It goes on after a refusal;
    /// `admitted` is false for refused keys and for present ones, and the report tells them apart.
    ///
    /// Of several threads that bring one key at the same time, at most one is told `true`. `keys` as for
    /// [`contains_batch`](CuckooFilter::contains_batch).
    ///
    /// # Panics
    /// If `keys` and `admitted` differ in length.
    ///
    /// # Complexity
    /// As [`insert_batch`](CuckooFilter::insert_batch), with both stripes of a key locked instead of one.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let seen = CuckooFilter::<str>::with_capacity(100);
    /// seen.insert("a.com")?;
    /// let mut admitted = [false; 4];
    /// let report = seen.insert_unique_batch(&["a.com", "b.com", "b.com", "c.com"], &mut admitted);
    /// assert_eq!(admitted, [false, true, false, true]);
    /// assert_eq!((report.inserted, report.present, report.rejected.len()), (2, 2, 0));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[track_caller]
    pub fn insert_unique_batch<T: Borrow<K>>(&self, keys: &[T], admitted: &mut [bool]) -> BulkReport {
        assert_same_length(keys.len(), admitted.len());
        self.raw.insert_each(&mut self.mixed_each(keys), Put::UNIQUE, usize::MAX, Answers::Stored(admitted))
    }

    /// Removes one copy of each key, as a loop of [`remove`](CuckooFilter::remove) would, and says of which there was
    /// none. Remove only what was inserted.
    ///
    /// `keys` as for [`contains_batch`](CuckooFilter::contains_batch).
    ///
    /// # Complexity
    /// As a loop of `remove`, with the lines of up to 16 keys fetched at a time.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let blocked = CuckooFilter::<str>::with_capacity(100);
    /// assert_eq!(blocked.insert_batch(&["a.com", "b.com"]).inserted, 2);
    /// let report = blocked.remove_batch(&["b.com", "c.com"]);
    /// assert_eq!((report.removed, report.missing), (1, vec![1]));
    /// ```
    pub fn remove_batch<T: Borrow<K>>(&self, keys: &[T]) -> RemoveReport {
        self.raw.remove_each(&mut self.mixed_each(keys), None, usize::MAX)
    }

    fn mixed_each<T: Borrow<K>>(&self, keys: &[T]) -> impl Iterator<Item = Mixed> {
        keys.iter().map(|key| self.mixed(key.borrow()))
    }
}
