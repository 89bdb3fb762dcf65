//! Counting filters: a counter beside each fingerprint.

use super::Filter;
use super::batch::assert_same_length;
use super::key::BatchKey;
use super::kind::{Counting, sealed::Sealed};
use crate::builder::Builder;
use crate::error::InsertError;
use crate::hashing::DefaultHashBuilder;
use crate::layout::Mixed;
use crate::raw::{Answers, Counted, IfPresent, Put};
use crate::report::BulkReport;
use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};
use core::time::Duration;

/// A [`Filter`] that counts: how often was this key added, ever or within a window?
///
/// The low bits of each slot are a counter, so that a key takes one slot, however often it is added. A count is **never too low**,
/// except at the largest count ([`max_count`](crate::Config::max_count), at which a counter stays) and after removals; it is too high with the
/// probability of a false positive, by the counts of other keys of the class. Counting locks the one or two stripes of the key;
/// [`count`](Filter::count) and [`contains`](Filter::contains) take no lock.
///
/// ```
/// use concurrent_cuckoo_filter::CountingFilter;
///
/// let logins = CountingFilter::<String>::with_capacity(100_000);
/// std::thread::scope(|scope| {
///     for _ in 0..3 {
///         scope.spawn(|| logins.add("192.0.2.1"));
///     }
/// });
/// assert_eq!(logins.count("192.0.2.1"), 3);
/// assert_eq!(logins.add("192.0.2.1")?, 4); // this addition included
/// assert_eq!(logins.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Counts within a window
/// With a [`time_to_live`](crate::Builder::time_to_live), the first addition of a key begins its *window*, the count dies when the window
/// ends, and the next addition begins another window at 1. With a [`time_to_idle`](crate::Builder::time_to_idle), each addition restarts
/// the time, so that a count dies when its key has not been added for that long. As in an [`ExpiringFilter`](crate::ExpiringFilter), a timer calls
/// [`advance_to`](Filter::advance_to), and a count lives at least its time and at most one tick longer.
///
/// ```
/// use concurrent_cuckoo_filter::CountingFilter;
/// use std::time::Duration;
///
/// let minute = Duration::from_secs(60);
/// let failures = CountingFilter::<String>::builder().capacity(100_000).time_to_live(10 * minute).build()?;
/// assert_eq!([failures.add("192.0.2.1")?, failures.add("192.0.2.1")?], [1, 2]);
/// failures.advance_to(12 * minute); // from a timer: `start.elapsed()`
/// assert_eq!(failures.count("192.0.2.1"), 0);
/// assert_eq!(failures.add("192.0.2.1")?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A count is that of the key's class since the window of that class began. Two keys share a class with the probability of a false positive, and
/// then the first addition of either begins the window of both. The promises below hold for additions that succeeded, without removals,
/// subtractions and full counters:
///
/// | | `time_to_live` | `time_to_idle` |
/// |---|---|---|
/// | A count is at least the number of additions of the key since the window of its class began. | yes | yes |
/// | A count is at least the number of additions of the key within the last such time. | **no**, whether or not its class is shared: a window may have ended between them | yes |
/// | A count is at least that of a filter in which no key shares a class. | **no**, if its class is shared: another key began the window earlier, and it ends earlier | yes |
/// | Additions of a key that [`try_add`](Filter::try_add) with the limit L makes within any such time: at most | 2 L - 1, also if its class is shared | L, also if its class is shared |
/// | A count is never too high. | no, if its class is shared | no, also because a key that is added again and again never begins anew |
///
/// Where a count must never be too low, use `time_to_idle`. A late call of `advance_to` shortens the windows that began in the meantime
/// by its lateness.
pub type CountingFilter<K, S = DefaultHashBuilder> = Filter<K, S, Counting>;

impl<K: ?Sized, S> Builder<K, S, Counting> {
    /// Sets the bits of a counter, 1 to 16, which counts up to 2^bits - 1, or to 2^bits with a time to live or to idle. 4 unless set. The
    /// width of a slot is a multiple of 4 with 3 or 4 bits, of 8 with 5 to 8, and of 16 with more; the bits of
    /// [steps](Builder::steps) count, too.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    ///
    /// let filter = CountingFilter::<String>::builder().capacity(100_000).counter_bits(8).build()?;
    /// assert_eq!((filter.config().max_count, filter.config().fingerprint_bits), (255, 16)); // slots of 24 bits
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn counter_bits(mut self, bits: u32) -> Self {
        self.options.counter_bits = bits;
        self
    }

    /// Sets the time that a count lives at least, counted from the last addition of its key. Replaces a
    /// [`time_to_live`](Builder::time_to_live). Lookups, and additions that [`try_add`](crate::CountingFilter::try_add) refuses, do not
    /// restart the time.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    /// use std::time::Duration;
    ///
    /// let minute = Duration::from_secs(60);
    /// let failures = CountingFilter::<String>::builder().capacity(100).time_to_idle(10 * minute).build()?;
    /// failures.add("192.0.2.1")?;
    /// failures.advance_to(9 * minute);
    /// assert_eq!(failures.add("192.0.2.1")?, 2);
    /// failures.advance_to(18 * minute);
    /// assert_eq!(failures.count("192.0.2.1"), 2);
    /// failures.advance_to(21 * minute);
    /// assert_eq!(failures.count("192.0.2.1"), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn time_to_idle(mut self, time: Duration) -> Self {
        self.options.life = Some((time, true));
        self
    }
}

impl<K: ?Sized, S> CountingFilter<K, S> {
    fn max_count(&self) -> u32 {
        self.raw.tags().max_count()
    }

    fn renews(&self) -> bool {
        self.life().is_some_and(|life| life.renews)
    }

    /// An addition of one.
    #[inline]
    pub(crate) fn one(&self) -> Put {
        self.put(IfPresent::Add { renews: self.renews() })
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
    /// has changed. A limit above [`max_count`](crate::Config::max_count) has the effect of `max_count`.
    ///
    /// One critical section: of several threads that do this with one key at the same time, no more than the limit allows get `Some`.
    /// [`CountingFilter`](CountingFilter#counts-within-a-window) lists the resulting promises within a window.
    ///
    /// # Errors
    /// Those of [`add`](CountingFilter::add), whose complexity it has, too.
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

    /// Subtracts one from the count of the key, and returns the new count; `None` if the key is absent. At 0 the key is absent. A count at
    /// [`max_count`](crate::Config::max_count) stays, since it may stand for a larger one, until the key is
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

    /// Subtracts one from the count of each key: `left[i]` is the result of [`subtract`](CountingFilter::subtract) for `keys[i]`.
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
        self.answer_each(keys, left, |mixed| self.subtract_from(mixed));
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
        self.answer_each(keys, counts, |mixed| Counting::count(&self.raw, mixed));
    }
}
