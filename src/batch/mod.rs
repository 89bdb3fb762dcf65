//! Batches on the calling thread. The buckets of some keys are on their way from memory while those before them are
//! looked at.

mod look_ups;

use crate::filter::CuckooFilter;
use crate::geometry::{Candidates, Mixed};
use crate::path::Effort;
use crate::prefetch::Into;
use crate::report::{BulkReport, RemoveReport};
use crate::shard::{Admission, Change, Shard};
use crate::window::rolling;
use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};
use look_ups::{Among, In, look_up};

/// Tables up to this size are fetched into the nearest cache; the lines of larger ones come from memory, most of them.
const NEAR_TABLE: usize = 8 << 20;

/// Writers have no use for a window in tables up to this size. Measured: twice as large they are 20 % faster with one,
/// half as large 10 % slower.
const NEAR_TO_WRITERS: usize = 5 << 20;

/// Keys whose lines are on their way while a writer works on one.
const FAR_AHEAD: usize = 16;

/// The same in tables near to writers: a longer window costs more than it gains.
const ONE_AHEAD: usize = 1;

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
        self.look_up_batch(hashes, |&hash| Mixed::of(hash), found);
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
        self.insert_each(hashes.iter().copied(), usize::MAX)
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
        self.remove_each(hashes.iter().copied(), usize::MAX)
    }

    /// How near the lines of this filter's table are fetched.
    #[inline]
    pub(crate) fn reach(&self) -> Into {
        if self.table_bytes() <= NEAR_TABLE { Into::L1 } else { Into::L2 }
    }

    #[inline(always)]
    #[track_caller]
    pub(crate) fn look_up_batch<T>(&self, keys: &[T], mix: impl Fn(&T) -> Mixed, found: &mut [bool]) {
        assert_eq!(keys.len(), found.len(), "the number of keys and the number of places for their answers differ");
        let place = Among { geometry: &self.geometry, shards: &self.shards };
        look_up(place, &self.format, self.reach(), keys, mix, found);
    }

    /// Looks up keys that all lie in this shard.
    pub(crate) fn look_up_in_shard(&self, shard: &Shard, keys: &[Mixed], found: &mut [bool]) {
        let place = In { geometry: &self.geometry, shard };
        look_up(place, &self.format, self.reach(), keys, |&mixed| mixed, found);
    }

    /// Inserts one after the other, each under locks of its own.
    #[inline(always)]
    pub(crate) fn insert_each(&self, hashes: impl Iterator<Item = u64>, list_at_most: usize) -> BulkReport {
        if self.is_near_to_writers() {
            self.insert_in_order::<ONE_AHEAD>(hashes, list_at_most)
        } else {
            self.insert_in_order::<FAR_AHEAD>(hashes, list_at_most)
        }
    }

    #[inline(never)]
    fn insert_in_order<const AHEAD: usize>(
        &self,
        hashes: impl Iterator<Item = u64>,
        list_at_most: usize,
    ) -> BulkReport {
        let (mut report, mut index, mut effort) = (BulkReport::default(), 0, Effort::full());
        let fetch_path = |shard: &Shard, key| shard.fetch_path(&self.geometry, &self.format, key);
        self.in_order::<AHEAD>(hashes, fetch_path, |shard, key| {
            let result = shard.insert_fetched(&self.geometry, &self.format, key, Admission::Copies, &mut effort);
            report.note(index, result.map(|_| ()), list_at_most);
            index += 1;
        });
        report
    }

    /// Removes one after the other, each under locks of its own.
    #[inline(always)]
    pub(crate) fn remove_each(&self, hashes: impl Iterator<Item = u64>, list_at_most: usize) -> RemoveReport {
        if self.is_near_to_writers() {
            self.remove_in_order::<ONE_AHEAD>(hashes, list_at_most)
        } else {
            self.remove_in_order::<FAR_AHEAD>(hashes, list_at_most)
        }
    }

    #[inline(never)]
    fn remove_in_order<const AHEAD: usize>(
        &self,
        hashes: impl Iterator<Item = u64>,
        list_at_most: usize,
    ) -> RemoveReport {
        let (mut report, mut index) = (RemoveReport::default(), 0);
        self.in_order::<AHEAD>(
            hashes,
            |_, _| {},
            |shard, key| {
                report.note(index, shard.remove_fetched(&self.format, key), list_at_most);
                index += 1;
            },
        );
        report
    }

    fn is_near_to_writers(&self) -> bool {
        self.table_bytes() <= NEAR_TO_WRITERS
    }

    /// Calls `work` with the place of each key, in order. What it needs begins to be fetched `AHEAD` keys before, and
    /// half way in between it may ask for more, unless the table is in the cache anyway.
    #[inline(always)]
    fn in_order<'a, const AHEAD: usize>(
        &'a self,
        hashes: impl Iterator<Item = u64>,
        half_way: impl Fn(&Shard, Candidates),
        mut work: impl FnMut(&'a Shard, Candidates),
    ) {
        let into = self.reach();
        let located = hashes.map(|hash| {
            let (shard, key) = self.geometry.locate(hash);
            (&self.shards[shard], key)
        });
        let fetched = located.inspect(|&(shard, key)| {
            shard.fetch(&self.format, key, if AHEAD == ONE_AHEAD { Into::L1 } else { into });
        });
        let half_way = |&(shard, key): &(&Shard, Candidates)| {
            if AHEAD > ONE_AHEAD {
                half_way(shard, key);
            }
        };
        let change = Change::of(&self.shards);
        rolling::<AHEAD, _>(fetched, half_way, |(shard, key)| work(shard, key));
        change.end();
    }
}

impl<K: ?Sized + Hash, S: BuildHasher> CuckooFilter<K, S> {
    /// Says of each key whether it is present: `found[i]` is what [`contains`](CuckooFilter::contains) answers for
    /// `keys[i]`, asked at some moment during the call. Out of cache it is several times as fast as a loop, in cache it
    /// is somewhat faster.
    ///
    /// `keys` holds anything that borrows as the key type: a filter of `str` takes `&[&str]` and `&[String]`, but not
    /// `&[&String]`.
    ///
    /// # Panics
    /// If `keys` and `found` differ in length.
    ///
    /// # Complexity
    /// As a loop of `contains`. The lines of 16 keys are fetched at a time.
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
        self.look_up_batch(keys, |key| Mixed::of(self.hash(key.borrow())), found);
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
        self.insert_each(keys.iter().map(|key| self.hash(key.borrow())), usize::MAX)
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
        self.remove_each(keys.iter().map(|key| self.hash(key.borrow())), usize::MAX)
    }
}
