//! How often a key was added: a counter beside each fingerprint.

use super::clock::timed_methods;
use super::expiring::DEFAULT_STEPS;
use super::{Core, Life, common_methods, common_settings};
use crate::batch::assert_same_length;
use crate::builder::Builder;
use crate::error::{BuildError, InsertError, MergeError};
use crate::hashing::DefaultHashBuilder;
use crate::layout::{Mixed, Plan};
use crate::raw::{Answers, Counted, IfPresent, Put};
use crate::report::{BulkReport, MergeReport, RemoveReport};
use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;
use core::time::Duration;

/// Bits of a counter that was not asked for.
const DEFAULT_BITS: u32 = 4;

/// A concurrent cuckoo filter that counts: how often was this key added?
///
/// A counter of some bits stands beside each fingerprint, so that a key takes one slot, however often it is added. A count is
/// **never too low**, but where the counter is full ([`max_count`](CountingFilter::max_count), at which it stays) and after
/// removals; it is too high as often as a lookup is wrong, by the counts of keys that cannot be told from this one.
///
/// Counting locks the one or two stripes of the key; [`count`](CountingFilter::count) and
/// [`contains`](CountingFilter::contains) take no lock and wait for no writer. What
/// [`CuckooFilter`](crate::CuckooFilter) says of threads, of classes and of what may block holds here.
///
/// # Counts within a window
/// With a [`time_to_live`](CountingBuilder::time_to_live), the first addition of a key begins its *window*, the count dies when the
/// window ends, and the next addition begins another window at 1. With a
/// [`time_to_idle`](CountingBuilder::time_to_idle), each addition begins the time anew, so that a count dies when its key has not been
/// added for so long. As in an [`ExpiringFilter`](crate::ExpiringFilter), there is no clock inside: a timer calls
/// [`advance_to`](CountingFilter::advance_to), and a count lives at least its time and at most one tick longer.
///
/// ```
/// use concurrent_cuckoo_filter::CountingFilter;
/// use std::time::Duration;
///
/// let minute = Duration::from_secs(60);
/// let failures = CountingFilter::<str>::builder().capacity(100_000).time_to_live(10 * minute).build()?;
/// assert_eq!([failures.add("192.0.2.1")?, failures.add("192.0.2.1")?], [1, 2]);
/// failures.advance_to(12 * minute); // from a timer: `start.elapsed()`
/// assert_eq!(failures.count("192.0.2.1"), 0);
/// assert_eq!(failures.add("192.0.2.1")?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A count is that of the key's class since the window of that class began. Two keys share a class as often as a lookup is wrong, and
/// then the first addition of either begins the window of both. For additions that succeeded, without removals, subtractions and full
/// counters, this is promised:
///
/// | | `time_to_live` | `time_to_idle` |
/// |---|---|---|
/// | A count is at least the additions of the key since the window of its class began. | yes | yes |
/// | A count is at least the additions of the key within the last such time. | **no**, whether or not its class is shared: a window may have ended between them | yes |
/// | A count is at least that of a filter in which no key shares a class. | **no**, if its class is shared: another key began the window earlier, and it ends earlier | yes |
/// | Additions of a key that [`try_add`](CountingFilter::try_add) with the limit L makes within any such time: at most | 2 L - 1, also if its class is shared | L, also if its class is shared |
/// | A count is never too high. | no, if its class is shared | no, also because a key that is added again and again never begins anew |
///
/// Where a count must never be too low, use `time_to_idle`. A call of `advance_to` that is late takes its lateness from the windows
/// that began in the meantime.
///
/// ```
/// use concurrent_cuckoo_filter::CountingFilter;
///
/// let logins = CountingFilter::<str>::builder().capacity(100_000).build()?;
/// std::thread::scope(|scope| {
///     for _ in 0..3 {
///         scope.spawn(|| logins.add("192.0.2.1"));
///     }
/// });
/// assert_eq!(logins.count("192.0.2.1"), 3);
/// assert_eq!(logins.add("192.0.2.1")?, 4); // with this time
/// assert_eq!(logins.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CountingFilter<K: ?Sized, S = DefaultHashBuilder> {
    pub(crate) core: Core<S>,
    key: PhantomData<fn(&K)>,
}

impl<K: ?Sized> CountingFilter<K> {
    /// Begins a filter. It needs a [capacity](CountingBuilder::capacity).
    pub fn builder() -> CountingBuilder<K> {
        CountingBuilder { inner: Builder::new(), counter_bits: DEFAULT_BITS, life: None, steps: DEFAULT_STEPS }
    }
}

common_methods!(
    CountingFilter,
    "CountingFilter::<u64>::builder().capacity(100).build()?",
    "add(&1)",
    "Counts the distinct keys, or rather their classes, whatever their counts.",
    "Says whether the key was ever added, and its count has not died.",
    shown: max_count, time_to_live, time_to_idle
);

timed_methods!(
    CountingFilter,
    "CountingFilter::<u64>::builder().capacity(100).time_to_live(std::time::Duration::from_secs(60)).build()?",
    "add(&1)"
);

impl<K: ?Sized, S> CountingFilter<K, S> {
    /// The largest count, at which a counter stays: 2^bits - 1, and 2^bits with a time to live or to idle.
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
        self.core.raw.tags().max_count()
    }

    /// The time that a count lives at least, from the first addition of its window; `None` if counts do not die by it.
    #[must_use]
    pub fn time_to_live(&self) -> Option<Duration> {
        self.core.life().filter(|life| !life.renews).map(|life| life.time)
    }

    /// The time that a count lives at least, from the last addition of its key; `None` if counts do not die by it.
    #[must_use]
    pub fn time_to_idle(&self) -> Option<Duration> {
        self.core.life().filter(|life| life.renews).map(|life| life.time)
    }

    /// The time between two ticks, if counts die: the time to live or to idle by the steps that fit its bits.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    /// use std::time::Duration;
    ///
    /// let filter = CountingFilter::<u64>::builder().capacity(100).time_to_idle(Duration::from_secs(60)).build()?;
    /// assert_eq!(filter.tick(), Some(Duration::from_secs(10)));
    /// assert_eq!((filter.time_to_live(), filter.time_to_idle()), (None, Some(Duration::from_secs(60))));
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[must_use]
    pub fn tick(&self) -> Option<Duration> {
        self.core.life().map(|life| life.tick)
    }

    fn renews(&self) -> bool {
        self.core.life().is_some_and(|life| life.renews)
    }

    /// One more time.
    #[inline]
    fn one(&self) -> Put {
        Put { value: self.core.whole, if_present: IfPresent::Add { renews: self.renews() } }
    }

    /// The same below this limit, and what it returns; `None` if nothing is below it.
    #[inline]
    fn one_below(&self, limit: u32) -> Option<(Put, Counted)> {
        let limit = limit.min(self.max_count());
        let most = limit.checked_sub(1)? as u16;
        let if_present = IfPresent::AddUpTo { renews: self.renews(), most };
        Some((Put { if_present, ..self.one() }, Counted { tags: self.core.raw.tags(), limit, at_limit: 0 }))
    }

    #[inline]
    fn counted(&self) -> Counted {
        let (tags, limit) = (self.core.raw.tags(), self.max_count());
        Counted { tags, limit, at_limit: limit }
    }

    /// The count of a key of which there is one copy, or the two of a relocation.
    fn count_of(&self, mixed: Mixed) -> u32 {
        let values = self.core.raw.values(mixed).into_iter();
        values.map(|value| self.core.raw.tags().count(value)).max().unwrap_or(0)
    }

    fn subtract_from(&self, mixed: Mixed) -> Option<u32> {
        let tags = self.core.raw.tags();
        let had = self.core.raw.update(mixed, None, |had| tags.less_one(had));
        (had != 0).then(|| tags.count(tags.less_one(had)))
    }
}

impl<K: ?Sized + Hash, S: BuildHasher> CountingFilter<K, S> {
    /// Adds one to the count of the key, and returns it with this time. One critical section: of several threads that add a
    /// key at the same time, each is told another count, up to the largest.
    ///
    /// # Errors
    /// [`InsertError::Full`]: the key is new, and there is no room for it.
    ///
    /// # Complexity
    /// Two buckets under one lock or two; for a new key whose buckets are full, relocations as of
    /// [`CuckooFilter::insert`](crate::CuckooFilter::insert).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    ///
    /// let words = CountingFilter::<str>::builder().capacity(100).build()?;
    /// assert_eq!([words.add("a")?, words.add("b")?, words.add("a")?], [1, 1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn add(&self, key: &K) -> Result<u32, InsertError> {
        let had = self.core.raw.put(self.core.mixed(key), self.one())?;
        Ok(self.counted().after(had))
    }

    /// Adds one to the count of the key if that is below the limit, and returns it with this time; `None` if it was not below, and
    /// then nothing has changed. A limit above [`max_count`](CountingFilter::max_count) is the same as that.
    ///
    /// One critical section: of several threads that do this with a key at the same time, no more than the limit allows are told
    /// `Some`. [The type](CountingFilter#counts-within-a-window) says what that promises within a window.
    ///
    /// # Errors
    /// As [`add`](CountingFilter::add).
    ///
    /// # Complexity
    /// As [`add`](CountingFilter::add).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    /// use std::time::Duration;
    ///
    /// let minute = Duration::from_secs(60);
    /// let requests = CountingFilter::<str>::builder().capacity(100_000).time_to_live(minute).build()?;
    /// assert_eq!(requests.try_add("192.0.2.1", 2)?, Some(1));
    /// assert_eq!(requests.try_add("192.0.2.1", 2)?, Some(2));
    /// assert_eq!(requests.try_add("192.0.2.1", 2)?, None);
    /// requests.advance_to(2 * minute);
    /// assert_eq!(requests.try_add("192.0.2.1", 2)?, Some(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn try_add(&self, key: &K, limit: u32) -> Result<Option<u32>, InsertError> {
        let Some((put, counted)) = self.one_below(limit) else { return Ok(None) };
        let had = self.core.raw.put(self.core.mixed(key), put)?;
        Ok(Some(counted.after(had)).filter(|&count| count != 0))
    }

    /// Takes one from the count of the key, and returns what is left of it; `None` if the key is absent. At 0 the key is gone. A
    /// count at [`max_count`](CountingFilter::max_count) stays, since it may stand for a larger one, until the key is
    /// [removed](CountingFilter::remove) or its window ends.
    ///
    /// Subtract only what was added, and only while that addition counts: after the end of its window, one is taken from the count
    /// of the next window. A subtraction does not change when a window ends.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    ///
    /// let open = CountingFilter::<str>::builder().capacity(100).build()?;
    /// open.add("a")?;
    /// open.add("a")?;
    /// assert_eq!(open.subtract("a"), Some(1));
    /// assert_eq!(open.subtract("a"), Some(0));
    /// assert_eq!(open.subtract("a"), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn subtract(&self, key: &K) -> Option<u32> {
        self.subtract_from(self.core.mixed(key))
    }

    /// How often the key was added in its window, 0 if never. Takes no lock.
    ///
    /// # Complexity
    /// As [`CuckooFilter::contains`](crate::CuckooFilter::contains).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    ///
    /// let words = CountingFilter::<str>::builder().capacity(100).build()?;
    /// words.add("a")?;
    /// assert_eq!((words.count("a"), words.count("b")), (1, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn count(&self, key: &K) -> u32 {
        self.count_of(self.core.mixed(key))
    }

    /// Adds one to the count of each key, as a loop of [`add`](CountingFilter::add) would: `counts[i]` is what it returns for
    /// `keys[i]`, and 0 for keys that are refused. The report counts new keys as inserted and the others as present, and lists
    /// those that were refused.
    ///
    /// # Panics
    /// If `keys` and `counts` differ in length.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    ///
    /// let words = CountingFilter::<str>::builder().capacity(100).build()?;
    /// let mut counts = [0; 3];
    /// let report = words.add_batch(&["a", "b", "a"], &mut counts);
    /// assert_eq!((report.inserted, report.present), (2, 1));
    /// assert_eq!(counts, [1, 1, 2]);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[track_caller]
    pub fn add_batch<T: Borrow<K>>(&self, keys: &[T], counts: &mut [u32]) -> BulkReport {
        assert_same_length(keys.len(), counts.len());
        self.core.put_batch::<K, T>(keys, self.one(), Answers::Counts(counts, self.counted()))
    }

    /// Adds one to the count of each key that is below the limit, as a loop of [`try_add`](CountingFilter::try_add) would: `counts[i]`
    /// is the count with this time, and 0 where nothing was added. The report counts new keys as inserted, lists those that were
    /// refused for lack of room, and counts all others as present.
    ///
    /// # Panics
    /// If `keys` and `counts` differ in length.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    ///
    /// let words = CountingFilter::<str>::builder().capacity(100).build()?;
    /// let mut counts = [9; 4];
    /// words.try_add_batch(&["a", "b", "a", "a"], 2, &mut counts);
    /// assert_eq!(counts, [1, 1, 2, 0]);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[track_caller]
    pub fn try_add_batch<T: Borrow<K>>(&self, keys: &[T], limit: u32, counts: &mut [u32]) -> BulkReport {
        assert_same_length(keys.len(), counts.len());
        let Some((put, counted)) = self.one_below(limit) else {
            counts.fill(0);
            return BulkReport { present: keys.len(), ..BulkReport::default() };
        };
        self.core.put_batch::<K, T>(keys, put, Answers::Counts(counts, counted))
    }

    /// Takes one from the count of each key: `left[i]` is what [`subtract`](CountingFilter::subtract) returns for `keys[i]`.
    ///
    /// # Panics
    /// If `keys` and `left` differ in length.
    #[track_caller]
    pub fn subtract_batch<T: Borrow<K>>(&self, keys: &[T], left: &mut [Option<u32>]) {
        self.core.look_at_each::<K, T, _>(keys, left, |mixed| self.subtract_from(mixed));
    }

    /// Adds one to the count of each key, on all threads of the rayon pool that the caller is in, or of the global one.
    ///
    /// # Panics
    /// As [`CuckooFilter::par_insert`](crate::CuckooFilter::par_insert), if the system refuses rayon its threads.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    ///
    /// let numbers = CountingFilter::<u64>::builder().capacity(1_000).build()?;
    /// let keys: Vec<u64> = (0..10_000).map(|number| number % 1_000).collect();
    /// assert!(numbers.par_add(&keys).rejected.is_empty());
    /// assert!(numbers.count(&7) >= 10);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[cfg(feature = "rayon")]
    #[cfg_attr(docsrs, doc(cfg(feature = "rayon")))]
    pub fn par_add<T: Borrow<K> + Sync>(&self, keys: &[T]) -> BulkReport
    where
        S: Sync,
    {
        self.core.par_put::<K, T>(keys, self.one())
    }

    /// How often each key was added: `counts[i]` is what [`count`](CountingFilter::count) answers for `keys[i]`.
    ///
    /// # Panics
    /// If `keys` and `counts` differ in length.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    ///
    /// let words = CountingFilter::<str>::builder().capacity(100).build()?;
    /// words.add("a")?;
    /// let mut counts = [9; 2];
    /// words.count_batch(&["a", "b"], &mut counts);
    /// assert_eq!(counts, [1, 0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn count_batch<T: Borrow<K>>(&self, keys: &[T], counts: &mut [u32]) {
        self.core.look_at_each::<K, T, _>(keys, counts, |mixed| self.count_of(mixed));
    }

    /// Adds the counts of all keys of the other filter to those of this one, while both serve. As
    /// [`CuckooFilter::merge_from`](crate::CuckooFilter::merge_from); the report counts keys. Of two windows of a key, the sum has
    /// the later end, and one tick more, as of [`ExpiringFilter::merge_from`](crate::ExpiringFilter::merge_from). Both filters must
    /// have been built with the same bits of a counter, steps and time to live or to idle, too.
    ///
    /// # Errors
    /// [`MergeError`] if the two were built differently or there is no memory; nothing has changed then.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CountingFilter, StableHashBuilder};
    ///
    /// let builder = CountingFilter::<str>::builder().capacity(100).hasher(StableHashBuilder::new());
    /// let (one, other) = (builder.clone().build()?, builder.build()?);
    /// one.add("a")?;
    /// other.add("a")?;
    /// assert_eq!(one.merge_from(&other)?.inserted, 1);
    /// assert_eq!(one.count("a"), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn merge_from(&self, other: &Self) -> Result<MergeReport, MergeError> {
        self.core.merge_from(&other.core, IfPresent::Add { renews: true })
    }

    /// Removes the key with its whole count, and says whether it was there. Remove only what was added, and has not died: the removal
    /// of a key that is absent may, as often as a lookup is wrong, take another key and its count.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    ///
    /// let words = CountingFilter::<str>::builder().capacity(100).build()?;
    /// words.add("a")?;
    /// words.add("a")?;
    /// assert!(words.remove("a"));
    /// assert_eq!(words.count("a"), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove(&self, key: &K) -> bool {
        self.core.raw.remove(self.core.mixed(key))
    }

    /// Removes each key, as a loop of [`remove`](CountingFilter::remove) would, and lists those that were missing.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    ///
    /// let filter = CountingFilter::<str>::builder().capacity(100).build()?;
    /// assert_eq!(filter.add_batch(&["a", "b"], &mut [0; 2]).inserted, 2);
    /// let report = filter.remove_batch(&["a", "c"]);
    /// assert_eq!((report.removed, report.missing), (1, vec![1]));
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn remove_batch<T: Borrow<K>>(&self, keys: &[T]) -> RemoveReport {
        self.core.remove_batch::<K, T>(keys, None)
    }
}

/// Plans a [`CountingFilter`] and builds it.
///
/// ```
/// use concurrent_cuckoo_filter::CountingFilter;
///
/// let builder = CountingFilter::<str>::builder().capacity(100_000).false_positive_rate(0.001).counter_bits(8);
/// let bytes = builder.memory_usage()?;
/// let filter = builder.build()?;
/// assert_eq!((filter.max_count(), filter.fingerprint_bits()), (255, 16)); // slots of 24 bits
/// assert_eq!(filter.memory_usage(), bytes);
/// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
/// ```
#[must_use = "a builder does nothing until `build` is called"]
pub struct CountingBuilder<K: ?Sized, S = DefaultHashBuilder> {
    inner: Builder<K, S>,
    counter_bits: u32,
    /// The time of a window, and whether each addition begins it anew.
    life: Option<(Duration, bool)>,
    steps: u32,
}

impl<K: ?Sized, S> CountingBuilder<K, S> {
    /// Sets the number of distinct keys that the filter is to hold: of one in which counts die, those that come within their time.
    /// Required.
    pub fn capacity(self, keys: usize) -> Self {
        CountingBuilder { inner: self.inner.capacity(keys), ..self }
    }

    /// Sets the part of absent keys that may be taken for present, and of present ones of which the count may be too high. As
    /// [`Builder::false_positive_rate`](crate::Builder::false_positive_rate); bits that are left over in a slot make it
    /// lower.
    pub fn false_positive_rate(self, rate: f64) -> Self {
        CountingBuilder { inner: self.inner.false_positive_rate(rate), ..self }
    }

    /// Sets the bits of a counter, 1 to 16, which counts up to 2^bits - 1, or to 2^bits with a time to live or to idle. 4 without it.
    /// The width of a slot is a multiple of 4 with 3 or 4 bits, of 8 with 5 to 8, and of 16 with more; the bits of
    /// [steps](CountingBuilder::steps) count, too.
    pub fn counter_bits(self, bits: u32) -> Self {
        CountingBuilder { counter_bits: bits, ..self }
    }

    /// Lets a count die when at least this time has passed since the first addition of its window. Replaces a
    /// [`time_to_idle`](CountingBuilder::time_to_idle). [The type](CountingFilter#counts-within-a-window) says what it promises.
    pub fn time_to_live(self, time: Duration) -> Self {
        CountingBuilder { life: Some((time, false)), ..self }
    }

    /// Lets a count die when at least this time has passed since the last addition of its key. Replaces a
    /// [`time_to_live`](CountingBuilder::time_to_live). Lookups, and additions that [`try_add`](CountingFilter::try_add) does not make,
    /// do not count as additions.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    /// use std::time::Duration;
    ///
    /// let minute = Duration::from_secs(60);
    /// let failures = CountingFilter::<str>::builder().capacity(100).time_to_idle(10 * minute).build()?;
    /// failures.add("192.0.2.1")?;
    /// failures.advance_to(9 * minute);
    /// assert_eq!(failures.add("192.0.2.1")?, 2);
    /// failures.advance_to(18 * minute);
    /// assert_eq!(failures.count("192.0.2.1"), 2);
    /// failures.advance_to(21 * minute);
    /// assert_eq!(failures.count("192.0.2.1"), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn time_to_idle(self, time: Duration) -> Self {
        CountingBuilder { life: Some((time, true)), ..self }
    }

    /// Sets the least number of steps that the time to live or to idle is divided into, 1 to 254. 6 without it. As
    /// [`ExpiringBuilder::steps`](crate::ExpiringBuilder::steps); it means nothing where counts do not die.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    /// use std::time::Duration;
    ///
    /// // 2 bits for the steps, 2 for counts up to 4, and 12 for a fingerprint: slots of 16.
    /// let builder = CountingFilter::<u64>::builder().capacity(1_000).false_positive_rate(0.002).counter_bits(2);
    /// let filter = builder.time_to_live(Duration::from_secs(60)).steps(2).build()?;
    /// assert_eq!((filter.max_count(), filter.fingerprint_bits()), (4, 12));
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn steps(self, steps: u32) -> Self {
        CountingBuilder { steps, ..self }
    }

    /// Builds the filter, empty.
    ///
    /// # Errors
    /// [`BuildError`] for each wish that cannot be met, and when the system refuses the memory.
    pub fn build(self) -> Result<CountingFilter<K, S>, BuildError> {
        let (plan, bytes, life) = self.plan()?;
        Ok(CountingFilter::from_core(self.inner.build_tagged(&plan, bytes, life)?))
    }

    fn plan(&self) -> Result<(Plan, usize, Option<Life>), BuildError> {
        let (count_bits, value) = (self.counter_bits, size_of::<CountingFilter<K, S>>());
        if !(1..=16).contains(&count_bits) {
            return Err(BuildError::CounterBitsOutOfRange { asked: count_bits });
        }
        let Some((time, renews)) = self.life else {
            let (plan, bytes) = self.inner.tagged_plan(count_bits, 0.0, value)?;
            return Ok((plan, bytes, None));
        };
        let (life, bits, steps) = Life::plan(time, self.steps, renews)?;
        let (plan, bytes) = self.inner.tagged_plan(bits + count_bits, 1.0 / f64::from(steps), value)?;
        Ok((Plan { count_bits, ..plan }, bytes, Some(life)))
    }
}

common_settings!(CountingBuilder, counter_bits, life, steps);
