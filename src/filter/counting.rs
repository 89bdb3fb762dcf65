//! Counting filters: a counter beside each fingerprint.

use super::CountingFilter;
use super::batch::assert_same_length;
use super::key::BatchKey;
use super::kind::{Counting, sealed::Sealed};
use crate::error::InsertError;
use crate::layout::Mixed;
use crate::raw::{Answers, Counted, IfPresent, Put};
use crate::report::BulkReport;
use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};
use core::time::Duration;

impl<K: ?Sized, S> CountingFilter<K, S> {
    /// Returns the largest count, at which a counter stays: 2^bits - 1, and 2^bits with a time to live or to idle.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    ///
    /// let filter = CountingFilter::<u64>::builder().capacity(100).counter_bits(3).build()?;
    /// assert_eq!(filter.max_count(), 7);
    /// for _ in 0..20 {
    ///     filter.add(&1)?;
    /// }
    /// assert_eq!(filter.count(&1), 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn max_count(&self) -> u32 {
        self.raw.tags().max_count()
    }

    /// Returns the time that a count lives at least, from the last addition of its key; `None` if counts do not die by it.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    /// use std::time::Duration;
    ///
    /// let filter = CountingFilter::<u64>::builder().capacity(100).time_to_idle(Duration::from_secs(60)).build()?;
    /// assert_eq!((filter.time_to_live(), filter.time_to_idle()), (None, Some(Duration::from_secs(60))));
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[must_use]
    pub fn time_to_idle(&self) -> Option<Duration> {
        self.life().filter(|life| life.renews).map(|life| life.time)
    }

    fn renews(&self) -> bool {
        self.life().is_some_and(|life| life.renews)
    }

    /// An addition of one.
    #[inline]
    pub(crate) fn one(&self) -> Put {
        Put { value: self.time.whole, if_present: IfPresent::Add { renews: self.renews() } }
    }

    /// An addition of one below this limit, and its result; `None` if nothing is below the limit.
    #[inline]
    fn one_below(&self, limit: u32) -> Option<(Put, Counted)> {
        let limit = limit.min(self.max_count());
        let most = limit.checked_sub(1)? as u16;
        let if_present = IfPresent::AddUpTo { renews: self.renews(), most };
        Some((Put { if_present, ..self.one() }, Counted { tags: self.raw.tags(), limit, at_limit: 0 }))
    }

    #[inline]
    fn counted(&self) -> Counted {
        let (tags, limit) = (self.raw.tags(), self.max_count());
        Counted { tags, limit, at_limit: limit }
    }

    fn subtract_from(&self, mixed: Mixed) -> Option<u32> {
        let tags = self.raw.tags();
        let had = self.raw.update(mixed, None, |had| tags.less_one(had));
        (had != 0).then(|| tags.count(tags.less_one(had)))
    }
}

impl<K: ?Sized, S: BuildHasher> CountingFilter<K, S> {
    /// Adds one to the count of the key, and returns the new count. One critical section: of several threads that add a key at the same
    /// time, each gets another count, up to the largest.
    ///
    /// # Errors
    /// [`InsertError::Full`] and, in a growing filter, [`InsertError::OutOfMemory`]: the key is new, and there is no room for it.
    ///
    /// # Complexity
    /// Two buckets under one lock or two; for a new key whose buckets are full, relocations as of an
    /// [insertion](crate::CuckooFilter::insert).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    ///
    /// let words = CountingFilter::<String>::with_capacity(100);
    /// assert_eq!([words.add("a")?, words.add("b")?, words.add("a")?], [1, 1, 2]);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[inline]
    pub fn add<Q: ?Sized + Hash>(&self, key: &Q) -> Result<u32, InsertError>
    where
        K: Borrow<Q>,
    {
        let had = self.raw.put(self.mixed(key), self.one())?;
        Ok(self.counted().after(had))
    }

    /// Adds one to the count of the key if that is below the limit, and returns the new count; `None` if it was not below, and then nothing
    /// has changed. A limit above [`max_count`](CountingFilter::max_count) has the effect of `max_count`.
    ///
    /// One critical section: of several threads that do this with one key at the same time, no more than the limit allows get `Some`.
    /// [`CountingFilter`](CountingFilter#counts-within-a-window) lists the resulting promises within a window.
    ///
    /// # Errors
    /// Those of [`add`](CountingFilter::add).
    ///
    /// # Complexity
    /// That of [`add`](CountingFilter::add).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    /// use std::time::Duration;
    ///
    /// let minute = Duration::from_secs(60);
    /// let requests = CountingFilter::<String>::builder().capacity(100_000).time_to_live(minute).build()?;
    /// assert_eq!(requests.try_add("192.0.2.1", 2)?, Some(1));
    /// assert_eq!(requests.try_add("192.0.2.1", 2)?, Some(2));
    /// assert_eq!(requests.try_add("192.0.2.1", 2)?, None);
    /// requests.advance_to(2 * minute);
    /// assert_eq!(requests.try_add("192.0.2.1", 2)?, Some(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn try_add<Q: ?Sized + Hash>(&self, key: &Q, limit: u32) -> Result<Option<u32>, InsertError>
    where
        K: Borrow<Q>,
    {
        let Some((put, counted)) = self.one_below(limit) else { return Ok(None) };
        let had = self.raw.put(self.mixed(key), put)?;
        Ok(Some(counted.after(had)).filter(|&count| count != 0))
    }

    /// Takes one from the count of the key, and returns the new count; `None` if the key is absent. At 0 the key is gone. A count at
    /// [`max_count`](CountingFilter::max_count) stays, since it may stand for a larger one, until the key is
    /// [removed](CountingFilter::remove) or its window ends.
    ///
    /// Subtract only additions that were made, and only within their window: after its end, a subtraction reduces the count of the next
    /// window. A subtraction does not change the end of a window.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    ///
    /// let open = CountingFilter::<String>::with_capacity(100);
    /// open.add("a")?;
    /// open.add("a")?;
    /// assert_eq!(open.subtract("a"), Some(1));
    /// assert_eq!(open.subtract("a"), Some(0));
    /// assert_eq!(open.subtract("a"), None);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    pub fn subtract<Q: ?Sized + Hash>(&self, key: &Q) -> Option<u32>
    where
        K: Borrow<Q>,
    {
        self.subtract_from(self.mixed(key))
    }

    /// Adds one to the count of each key, as a loop of [`add`](CountingFilter::add) would: `counts[i]` is the new count of `keys[i]`, and 0
    /// for refused keys. The report counts new keys as inserted and the others as present, and lists refused keys.
    ///
    /// # Panics
    /// If `keys` and `counts` differ in length.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    ///
    /// let words = CountingFilter::<String>::with_capacity(100);
    /// let mut counts = [0; 3];
    /// let report = words.add_batch(&["a", "b", "a"], &mut counts);
    /// assert_eq!((report.inserted, report.present), (2, 1));
    /// assert_eq!(counts, [1, 1, 2]);
    /// ```
    #[track_caller]
    pub fn add_batch<Q: BatchKey<K, F>, F>(&self, keys: &[Q], counts: &mut [u32]) -> BulkReport {
        assert_same_length(keys.len(), counts.len());
        self.put_batch(keys, self.one(), Answers::Counts(counts, self.counted()))
    }

    /// Adds one to the count of each key that is below the limit, as a loop of [`try_add`](CountingFilter::try_add) would: `counts[i]`
    /// is the new count, and 0 if nothing was added. The report counts new keys as inserted, lists keys that were refused for lack of
    /// room, and counts all others as present.
    ///
    /// # Panics
    /// If `keys` and `counts` differ in length.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    ///
    /// let words = CountingFilter::<String>::with_capacity(100);
    /// let mut counts = [9; 4];
    /// let report = words.try_add_batch(&["a", "b", "a", "a"], 2, &mut counts);
    /// assert_eq!(counts, [1, 1, 2, 0]);
    /// assert_eq!((report.inserted, report.present), (2, 2));
    /// ```
    #[track_caller]
    pub fn try_add_batch<Q: BatchKey<K, F>, F>(&self, keys: &[Q], limit: u32, counts: &mut [u32]) -> BulkReport {
        assert_same_length(keys.len(), counts.len());
        let Some((put, counted)) = self.one_below(limit) else {
            counts.fill(0);
            return BulkReport { present: keys.len(), ..BulkReport::default() };
        };
        self.put_batch(keys, put, Answers::Counts(counts, counted))
    }

    /// Takes one from the count of each key: `left[i]` is the result of [`subtract`](CountingFilter::subtract) for `keys[i]`.
    ///
    /// # Panics
    /// If `keys` and `left` differ in length.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    ///
    /// let open = CountingFilter::<String>::with_capacity(100);
    /// open.add("a")?;
    /// let mut left = [None; 2];
    /// open.subtract_batch(&["a", "b"], &mut left);
    /// assert_eq!(left, [Some(0), None]);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[track_caller]
    pub fn subtract_batch<Q: BatchKey<K, F>, F>(&self, keys: &[Q], left: &mut [Option<u32>]) {
        assert_same_length(keys.len(), left.len());
        self.raw.fetch_each(self.mixed_each(keys).zip(left), |mixed, left| *left = self.subtract_from(mixed));
    }

    /// Returns the count of each key: `counts[i]` is the result of [`count`](CountingFilter::count) for `keys[i]`.
    ///
    /// # Panics
    /// If `keys` and `counts` differ in length.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    ///
    /// let words = CountingFilter::<String>::with_capacity(100);
    /// words.add("a")?;
    /// let mut counts = [9; 2];
    /// words.count_batch(&["a", "b"], &mut counts);
    /// assert_eq!(counts, [1, 0]);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[track_caller]
    pub fn count_batch<Q: BatchKey<K, F>, F>(&self, keys: &[Q], counts: &mut [u32]) {
        assert_same_length(keys.len(), counts.len());
        let counted = |mixed, count: &mut u32| *count = Counting::count(&self.raw, mixed);
        self.raw.fetch_each(self.mixed_each(keys).zip(counts), counted);
    }
}
