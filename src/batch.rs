//! Batches on the calling thread. The buckets of some keys are fetched from memory while the keys before them are worked
//! on: lookups in blocks (`raw/block`), insertions and removals in a window (`raw/window`).

use crate::error::InsertError;
use crate::filter::CuckooFilter;
use crate::layout::{Aim, Class, Mixed, SearchBudget};
use crate::raw::{Admission, BLOCK, Fixed, Growing, RawFilter, Shard, rolling};
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
        self.raw.insert_hashes(hashes.iter().copied().map(Mixed::of), Admission::Copies, |_, _| {})
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
        assert_same_length(hashes, admitted);
        let hashes = hashes.iter().copied().map(Mixed::of);
        self.raw.insert_hashes(hashes, Admission::Unique, |index, stored| admitted[index] = stored)
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
        self.raw.remove_batch(hashes.iter().copied().map(Mixed::of))
    }
}

/// Looks up the keys, a block at a time.
///
/// # Panics
/// If `keys` and `found` differ in length.
#[track_caller]
pub(crate) fn lookup_batch<T>(raw: &RawFilter, keys: &[T], mixed: impl Fn(&T) -> Mixed, found: &mut [bool]) {
    assert_same_length(keys, found);
    let mut blocks = keys.chunks(BLOCK);
    let mut next = |hashes: &mut [Mixed; BLOCK]| {
        for (key, to) in blocks.next().unwrap_or_default().iter().zip(hashes) {
            *to = mixed(key);
        }
    };
    raw.contains_each(&mut next, found);
}

/// # Panics
/// If there is not one answer for each key.
#[track_caller]
pub(crate) fn assert_same_length<T, A>(keys: &[T], answers: &[A]) {
    assert_eq!(keys.len(), answers.len(), "the number of keys and the number of places for their answers differ");
}

/// What becomes of a batch of insertions.
struct Noted<F> {
    report: BulkReport,
    stored: F,
    index: usize,
}

impl<F: FnMut(usize, bool)> Noted<F> {
    #[inline(always)]
    fn new(stored: F) -> Self {
        Noted { report: BulkReport::default(), stored, index: 0 }
    }

    #[inline(always)]
    fn note(&mut self, result: Result<bool, InsertError>) {
        (self.stored)(self.index, result == Ok(true));
        self.report.note(self.index, result, usize::MAX);
        self.index += 1;
    }
}

impl RawFilter {
    /// Where keys lie.
    #[inline(always)]
    pub(crate) fn places(&self, hashes: impl Iterator<Item = Mixed>) -> impl Iterator<Item = (Shard<'_>, Class)> {
        hashes.map(|mixed| self.locate(mixed))
    }

    /// Inserts one after the other, each under locks of its own, lists all that were refused, and tells of each key by
    /// its number whether it was stored.
    #[inline(always)]
    pub(crate) fn insert_batch<'a>(
        &'a self,
        places: impl Iterator<Item = (Shard<'a>, Class)>,
        admission: Admission,
        stored: impl FnMut(usize, bool),
    ) -> BulkReport {
        let mut noted = Noted::new(stored);
        self.insert_each(places, admission, |result| noted.note(result));
        noted.report
    }

    /// The same for keys of the whole filter, which may grow.
    #[inline(always)]
    fn insert_hashes(
        &self,
        hashes: impl Iterator<Item = Mixed>,
        admission: Admission,
        stored: impl FnMut(usize, bool),
    ) -> BulkReport {
        let mut noted = Noted::new(stored);
        self.insert_each_hash(hashes, admission, |result| noted.note(result));
        noted.report
    }

    /// As [`RawFilter::insert_each`], for keys of the whole filter, which may grow.
    #[inline(always)]
    pub(crate) fn insert_each_hash(
        &self,
        hashes: impl Iterator<Item = Mixed>,
        admission: Admission,
        note: impl FnMut(Result<bool, InsertError>),
    ) {
        match self.growing() {
            Some(growing) => growing.insert_each(hashes, admission, note),
            None => self.insert_each(self.places(hashes), admission, note),
        }
    }

    /// Inserts one after the other, each under locks of its own.
    #[inline(always)]
    pub(crate) fn insert_each<'a>(
        &'a self,
        places: impl Iterator<Item = (Shard<'a>, Class)>,
        admission: Admission,
        note: impl FnMut(Result<bool, InsertError>),
    ) {
        if self.is_near_to_writers() {
            self.insert_in_order::<ONE_AHEAD>(places, admission, note);
        } else {
            self.insert_in_order::<FAR_AHEAD>(places, admission, note);
        }
    }

    #[inline(never)]
    fn insert_in_order<'a, const AHEAD: usize>(
        &'a self,
        places: impl Iterator<Item = (Shard<'a>, Class)>,
        admission: Admission,
        mut note: impl FnMut(Result<bool, InsertError>),
    ) {
        let mut budget = SearchBudget::full();
        self.in_order::<AHEAD>(places, Shard::fetch_path, |shard, class| {
            let Ok(result) = shard.insert_fetched(Fixed, class, admission, &mut budget);
            note(result);
        });
    }

    /// Removes one after the other, each under locks of its own, and lists all that were missing.
    #[inline(always)]
    fn remove_batch(&self, hashes: impl Iterator<Item = Mixed>) -> RemoveReport {
        let (mut report, mut index) = (RemoveReport::default(), 0);
        self.remove_each(hashes, |removed| {
            report.note(index, removed, usize::MAX);
            index += 1;
        });
        report
    }

    /// Removes one after the other, each under locks of its own.
    #[inline(always)]
    pub(crate) fn remove_each(&self, hashes: impl Iterator<Item = Mixed>, note: impl FnMut(bool)) {
        if let Some(growing) = self.growing() {
            growing.remove_each(hashes, note);
        } else if self.is_near_to_writers() {
            self.remove_in_order::<ONE_AHEAD>(hashes, note);
        } else {
            self.remove_in_order::<FAR_AHEAD>(hashes, note);
        }
    }

    #[inline(never)]
    fn remove_in_order<const AHEAD: usize>(&self, hashes: impl Iterator<Item = Mixed>, mut note: impl FnMut(bool)) {
        self.in_order::<AHEAD>(
            self.places(hashes),
            |_, _| {},
            |shard, class| {
                let Ok(removed) = shard.remove_fetched(Fixed, class);
                note(removed);
            },
        );
    }

    fn is_near_to_writers(&self) -> bool {
        self.table_bytes() <= NEAR_TO_WRITERS
    }

    /// Calls `work` with the place of each key, in order. What it needs begins to be fetched `AHEAD` keys before, and
    /// half way in between it may ask for more, unless the table is in the cache anyway.
    #[inline(always)]
    fn in_order<'a, const AHEAD: usize>(
        &'a self,
        places: impl Iterator<Item = (Shard<'a>, Class)>,
        half_way: impl Fn(Shard<'a>, Class),
        mut work: impl FnMut(Shard<'a>, Class),
    ) {
        let level = if AHEAD == ONE_AHEAD || self.is_near() { CacheLevel::L1 } else { CacheLevel::L2 };
        let fetched = places.inspect(|&(shard, class)| shard.fetch(class, level));
        let half_way = |&(shard, class): &(Shard<'a>, Class)| {
            if AHEAD > ONE_AHEAD {
                half_way(shard, class);
            }
        };
        let change = self.begin_change();
        rolling::<AHEAD, _>(fetched, half_way, |(shard, class)| work(shard, class));
        change.end();
    }
}

/// Where a key is looked for when its turn comes may be another table than the one from which its buckets were fetched.
impl Growing {
    #[inline(never)]
    fn insert_each(
        &self,
        hashes: impl Iterator<Item = Mixed>,
        admission: Admission,
        mut note: impl FnMut(Result<bool, InsertError>),
    ) {
        let mut budget = SearchBudget::full();
        self.in_order(hashes, |aim| note(self.insert_fetched(aim, admission, &mut budget)));
    }

    #[inline(never)]
    fn remove_each(&self, hashes: impl Iterator<Item = Mixed>, mut note: impl FnMut(bool)) {
        self.in_order(hashes, |aim| note(self.remove_fetched(aim)));
    }

    #[inline(always)]
    fn in_order(&self, hashes: impl Iterator<Item = Mixed>, work: impl FnMut(Aim)) {
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
        self.raw.insert_hashes(self.mixed_each(keys), Admission::Copies, |_, _| {})
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
        assert_same_length(keys, admitted);
        self.raw.insert_hashes(self.mixed_each(keys), Admission::Unique, |index, stored| admitted[index] = stored)
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
        self.raw.remove_batch(self.mixed_each(keys))
    }

    fn mixed_each<T: Borrow<K>>(&self, keys: &[T]) -> impl Iterator<Item = Mixed> {
        keys.iter().map(|key| self.mixed(key.borrow()))
    }
}
