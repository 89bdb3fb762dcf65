//! Batches on the calling thread. The buckets of some keys are fetched from memory while the keys before them are worked
//! on: lookups in blocks (`raw/block`), insertions and removals in a window (`raw/window`).

use crate::error::InsertError;
use crate::filter::CuckooFilter;
use crate::layout::{Aim, Class, Geometry, Mixed, SearchBudget};
use crate::raw::{Admission, Fixed, Growing, RawFilter, Shard, rolling};
use crate::report::{BulkReport, RemoveReport};
use crate::sys::prefetch::CacheLevel;
use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};

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
        self.raw.insert_each(hashes, Admission::Copies, usize::MAX, None)
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
        self.raw.insert_each(hashes, Admission::Unique, usize::MAX, Some(admitted))
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
        self.raw.remove_each(&mut hashes.iter().copied().map(Mixed::of), usize::MAX)
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
pub(crate) fn lookup_batch<T>(raw: &RawFilter, keys: &[T], mixed: impl Fn(&T) -> Mixed, found: &mut [bool]) {
    assert_same_length(keys.len(), found.len());
    raw.contains_each(&mut hashing(keys, mixed), found);
}

/// # Panics
/// If there is not one answer for each key.
#[track_caller]
pub(crate) fn assert_same_length(keys: usize, answers: usize) {
    assert_eq!(keys, answers, "the number of keys and the number of places for their answers differ");
}

/// The hashes of keys in turn, for writers: each is asked for while those before it wait for their locks. The user's types are
/// behind it, and all else is compiled once.
pub(crate) type Hashes<'a> = &'a mut dyn Iterator<Item = Mixed>;

/// Where keys lie in a filter, or in a part of one: numbered like the shards of the whole filter, of which `first` is the first
/// that is there.
#[derive(Clone, Copy)]
pub(crate) struct Places<'a> {
    pub(crate) raw: &'a RawFilter,
    pub(crate) geometry: &'a Geometry,
    pub(crate) first: usize,
}

/// What became of the keys of a batch of insertions. At most `max_listed` refused ones are listed.
struct Noted<'a> {
    report: BulkReport,
    index: usize,
    max_listed: usize,
    /// Of each key whether it was stored, if that was asked.
    admitted: Option<&'a mut [bool]>,
}

impl<'a> Noted<'a> {
    fn new(max_listed: usize, admitted: Option<&'a mut [bool]>) -> Self {
        Noted { report: BulkReport::default(), index: 0, max_listed, admitted }
    }

    #[inline(always)]
    fn note(&mut self, result: Result<bool, InsertError>) {
        if let Some(admitted) = &mut self.admitted {
            admitted[self.index] = result == Ok(true);
        }
        if result != Ok(true) {
            self.report.note(self.index, result, self.max_listed);
        }
        self.index += 1;
    }

    fn report(mut self) -> BulkReport {
        let BulkReport { present, ref rejected, rejected_unlisted, .. } = self.report;
        self.report.inserted = self.index - present - rejected.len() - rejected_unlisted;
        self.report
    }
}

impl RawFilter {
    /// Inserts one after the other, each under locks of its own, lists those that were refused, at most `max_listed`, and
    /// notes of each key whether it was stored.
    pub(crate) fn insert_each(
        &self,
        hashes: Hashes<'_>,
        admission: Admission,
        max_listed: usize,
        admitted: Option<&mut [bool]>,
    ) -> BulkReport {
        let Some(growing) = self.growing() else {
            let places = Places { raw: self, geometry: self.geometry(), first: 0 };
            return places.insert_each(hashes, admission, max_listed, admitted);
        };
        let (mut noted, mut budget) = (Noted::new(max_listed, admitted), SearchBudget::full());
        let mut insert = |aim, admission| noted.note(growing.insert_fetched(aim, admission, &mut budget));
        match admission {
            Admission::Copies => growing.in_order(hashes, |aim| insert(aim, Admission::Copies)),
            Admission::Unique => growing.in_order(hashes, |aim| insert(aim, Admission::Unique)),
        }
        noted.report()
    }

    /// Removes one after the other, each under locks of its own, and lists those that were missing, at most `max_listed`.
    pub(crate) fn remove_each(&self, hashes: Hashes<'_>, max_listed: usize) -> RemoveReport {
        let (mut report, mut index) = (RemoveReport::default(), 0);
        let note = |removed| {
            report.note(index, removed, max_listed);
            index += 1;
        };
        let places = Places { raw: self, geometry: self.geometry(), first: 0 };
        if let Some(growing) = self.growing() {
            let mut note = note;
            growing.in_order(hashes, |aim| note(growing.remove_fetched(aim)));
        } else if self.is_near_to_writers() {
            places.remove_in_order::<ONE_AHEAD>(hashes, note);
        } else {
            places.remove_in_order::<FAR_AHEAD>(hashes, note);
        }
        report
    }

    fn is_near_to_writers(&self) -> bool {
        self.table_bytes() <= NEAR_TO_WRITERS
    }
}

impl<'a> Places<'a> {
    /// As [`RawFilter::insert_each`].
    pub(crate) fn insert_each(
        self,
        hashes: Hashes<'_>,
        admission: Admission,
        max_listed: usize,
        admitted: Option<&mut [bool]>,
    ) -> BulkReport {
        let mut noted = Noted::new(max_listed, admitted);
        match (admission, self.raw.is_near_to_writers()) {
            (Admission::Copies, true) => self.insert_in_order::<ONE_AHEAD, false>(hashes, &mut noted),
            (Admission::Copies, false) => self.insert_in_order::<FAR_AHEAD, false>(hashes, &mut noted),
            (Admission::Unique, true) => self.insert_in_order::<ONE_AHEAD, true>(hashes, &mut noted),
            (Admission::Unique, false) => self.insert_in_order::<FAR_AHEAD, true>(hashes, &mut noted),
        }
        noted.report()
    }

    #[inline(never)]
    fn insert_in_order<const AHEAD: usize, const UNIQUE: bool>(self, hashes: Hashes<'_>, noted: &mut Noted<'_>) {
        let admission = if UNIQUE { Admission::Unique } else { Admission::Copies };
        let mut budget = SearchBudget::full();
        self.in_order::<AHEAD>(hashes, Shard::fetch_path, |shard, class| {
            let Ok(result) = shard.insert_fetched(Fixed, class, admission, &mut budget);
            noted.note(result);
        });
    }

    #[inline(never)]
    fn remove_in_order<const AHEAD: usize>(self, hashes: Hashes<'_>, mut note: impl FnMut(bool)) {
        self.in_order::<AHEAD>(
            hashes,
            |_, _| {},
            |shard, class| {
                let Ok(removed) = shard.remove_fetched(Fixed, class);
                note(removed);
            },
        );
    }

    /// Calls `work` with the place of each key, in order. What it needs begins to be fetched `AHEAD` keys before, and
    /// half way in between it may ask for more, unless the table is in the cache anyway.
    #[inline(always)]
    fn in_order<const AHEAD: usize>(
        self,
        hashes: Hashes<'_>,
        half_way: impl Fn(Shard<'a>, Class),
        mut work: impl FnMut(Shard<'a>, Class),
    ) {
        let level = if AHEAD == ONE_AHEAD || self.raw.is_near() { CacheLevel::L1 } else { CacheLevel::L2 };
        let fetched = hashes.map(|mixed| {
            let (number, class) = self.geometry.locate(mixed);
            let shard = self.raw.shards.at(number - self.first);
            shard.fetch(class, level);
            (shard, class)
        });
        let half_way = |&(shard, class): &(Shard<'a>, Class)| {
            if AHEAD > ONE_AHEAD {
                half_way(shard, class);
            }
        };
        let change = self.raw.shards.begin_change();
        rolling::<AHEAD, _>(fetched, half_way, |(shard, class)| work(shard, class));
        change.end();
    }
}

impl Growing {
    /// Where a key is looked for when its turn comes may be another table than the one from which its buckets were fetched.
    #[inline(always)]
    fn in_order(&self, hashes: Hashes<'_>, work: impl FnMut(Aim)) {
        let fetched = hashes.map(|mixed| self.aim(mixed)).inspect(|&aim| self.fetch(aim, CacheLevel::L1));
        rolling::<FAR_AHEAD, _>(fetched, |_| {}, work);
    }
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
        self.raw.insert_each(&mut self.mixed_each(keys), Admission::Copies, usize::MAX, None)
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
        self.raw.insert_each(&mut self.mixed_each(keys), Admission::Unique, usize::MAX, Some(admitted))
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
        self.raw.remove_each(&mut self.mixed_each(keys), usize::MAX)
    }

    fn mixed_each<T: Borrow<K>>(&self, keys: &[T]) -> impl Iterator<Item = Mixed> {
        keys.iter().map(|key| self.mixed(key.borrow()))
    }
}
