//! How often a key was added: a counter beside each fingerprint.

use super::{Core, common_methods, common_settings};
use crate::batch::assert_same_length;
use crate::builder::Builder;
use crate::error::{BuildError, InsertError, MergeError};
use crate::hashing::DefaultHashBuilder;
use crate::layout::Plan;
use crate::raw::{Answers, IfPresent, Put};
use crate::report::{BulkReport, MergeReport};
use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;

/// One more time.
const ADD: Put = Put { value: 1, if_present: IfPresent::Add };

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
        CountingBuilder { inner: Builder::new(), counter_bits: DEFAULT_BITS }
    }
}

common_methods!(
    CountingFilter,
    "CountingFilter::<u64>::builder().capacity(100).build()?",
    "add(&1)",
    "Counts the distinct keys, or rather their classes, whatever their counts.",
    "Says whether the key was ever added.",
    shown: max_count
);

impl<K: ?Sized, S> CountingFilter<K, S> {
    pub(crate) fn from_core(core: Core<S>) -> Self {
        CountingFilter { core, key: PhantomData }
    }

    fn with_core(&self, core: Core<S>) -> Self {
        Self::from_core(core)
    }

    /// The largest count: 2^bits - 1, at which a counter stays.
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
        self.core.raw.most()
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
        let had = self.core.raw.put(self.core.mixed(key), ADD)?;
        Ok((had + 1).min(self.max_count()))
    }

    /// How often the key was added, 0 if never. Takes no lock.
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
        self.core.largest(self.core.mixed(key))
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
        self.core.put_batch::<K, T>(keys, ADD, Answers::Sums(counts, self.max_count()))
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
        self.core.par_put::<K, T>(keys, ADD)
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
        self.core.look_at_each::<K, T, _>(keys, counts, |mixed| self.core.largest(mixed));
    }

    /// Adds the counts of all keys of the other filter to those of this one, while both serve. As
    /// [`CuckooFilter::merge_from`](crate::CuckooFilter::merge_from); the report counts keys.
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
        self.core.merge_from(&other.core, |value| Put { value, ..ADD })
    }

    /// Removes the key with its whole count, and says whether it was there. Remove only what was added: the removal of a
    /// key that never was may, as often as a lookup is wrong, take another key and its count.
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
}

impl<K: ?Sized, S> CountingBuilder<K, S> {
    /// Sets the number of distinct keys that the filter is to hold. Required.
    pub fn capacity(self, keys: usize) -> Self {
        CountingBuilder { inner: self.inner.capacity(keys), ..self }
    }

    /// Sets the part of absent keys that may be taken for present, and of present ones of which the count may be too high. As
    /// [`Builder::false_positive_rate`](crate::Builder::false_positive_rate); bits that are left over in a slot make it
    /// lower.
    pub fn false_positive_rate(self, rate: f64) -> Self {
        CountingBuilder { inner: self.inner.false_positive_rate(rate), ..self }
    }

    /// Sets the bits of a counter, 1 to 16, which counts up to 2^bits - 1. 4 without it. The width of a slot is a multiple
    /// of 4 with 3 or 4 bits, of 8 with 5 to 8, and of 16 with more.
    pub fn counter_bits(self, bits: u32) -> Self {
        CountingBuilder { counter_bits: bits, ..self }
    }

    /// Builds the filter, empty.
    ///
    /// # Errors
    /// [`BuildError`] for each wish that cannot be met, and when the system refuses the memory.
    pub fn build(self) -> Result<CountingFilter<K, S>, BuildError> {
        let (plan, bytes) = self.plan()?;
        Ok(CountingFilter::from_core(self.inner.build_tagged(&plan, bytes)?))
    }

    fn plan(&self) -> Result<(Plan, usize), BuildError> {
        if !(1..=16).contains(&self.counter_bits) {
            return Err(BuildError::CounterBitsOutOfRange { asked: self.counter_bits });
        }
        self.inner.tagged_plan(self.counter_bits, 0.0, size_of::<CountingFilter<K, S>>())
    }
}

common_settings!(CountingBuilder, counter_bits);
