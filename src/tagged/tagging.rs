//! A tag of the user's beside each key: which list, which reason.

use super::{Core, common_methods, common_settings};
use crate::builder::Builder;
use crate::error::{BuildError, InsertError, MergeError};
use crate::hashing::DefaultHashBuilder;
use crate::layout::Plan;
use crate::raw::{Answers, IfPresent, Put};
use crate::report::{BulkReport, MergeReport, RemoveReport};
use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;

/// Tags of a filter that was not asked for a number: with 3 bits of a tag, 13 are left to a fingerprint in slots of 16.
const DEFAULT_TAGS: u32 = 7;

/// A concurrent cuckoo filter with a small number beside each key, its *tag*: on which of these lists is it, for which
/// reason, in which shard?
///
/// A filter of keys and tags: what was inserted is a key with a tag, and so is what is removed. [`tags`](TaggedFilter::tags)
/// **never leaves out** a tag that the key was inserted with; it tells more as often as a lookup is wrong, those of keys that
/// cannot be told from this one. [`tag`](TaggedFilter::tag) is for keys that have one tag each.
///
/// Reading takes no lock and waits for no writer. What [`CuckooFilter`](crate::CuckooFilter) says of threads, of classes and
/// of what may block holds here.
///
/// ```
/// use concurrent_cuckoo_filter::TaggedFilter;
///
/// const MALWARE: u32 = 0;
/// const PHISHING: u32 = 1;
/// let blocked = TaggedFilter::<str>::builder().capacity(100_000).build()?;
/// blocked.insert_batch(&["a.com", "b.com"], MALWARE);
/// blocked.insert("c.com", PHISHING)?;
/// assert_eq!(blocked.tag("c.com"), Some(PHISHING));
/// assert_eq!(blocked.tag("d.com"), None);
/// assert!(blocked.retag("b.com", MALWARE, PHISHING));
/// assert!(blocked.remove("b.com", PHISHING) && !blocked.contains("b.com"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TaggedFilter<K: ?Sized, S = DefaultHashBuilder> {
    pub(crate) core: Core<S>,
    key: PhantomData<fn(&K)>,
}

impl<K: ?Sized> TaggedFilter<K> {
    /// Begins a filter. It needs a [capacity](TaggedBuilder::capacity).
    pub fn builder() -> TaggedBuilder<K> {
        TaggedBuilder { inner: Builder::new(), tags: DEFAULT_TAGS }
    }
}

common_methods!(
    TaggedFilter,
    "TaggedFilter::<u64>::builder().capacity(100).build()?",
    "insert(&1, 0)",
    "Counts the keys, each as often as it was inserted.",
    "Says whether the key is present, with whatever tag.",
    shown: max_tag
);

impl<K: ?Sized, S> TaggedFilter<K, S> {
    /// The largest tag. The smallest is 0.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::TaggedFilter;
    ///
    /// let filter = TaggedFilter::<u64>::builder().capacity(100).tags(8).build()?;
    /// assert_eq!(filter.max_tag(), 14); // 4 bits are good for 15 tags
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[must_use]
    pub fn max_tag(&self) -> u32 {
        self.core.raw.tags().most() - 1
    }

    /// The value of a tag: what is dead has 0.
    #[track_caller]
    fn value(&self, tag: u32) -> u32 {
        assert!(tag <= self.max_tag(), "a tag of {tag}; the largest is {}", self.max_tag());
        tag + 1
    }
}

impl<K: ?Sized + Hash, S: BuildHasher> TaggedFilter<K, S> {
    /// Stores a copy of the key with this tag, whatever is there already. A key takes a slot for each time that it is
    /// inserted, up to 8.
    ///
    /// # Errors
    /// [`InsertError::Full`] and [`InsertError::TooManyCopies`] leave the filter as it was.
    ///
    /// # Panics
    /// If the tag is above [`max_tag`](TaggedFilter::max_tag).
    ///
    /// # Complexity
    /// As [`CuckooFilter::insert`](crate::CuckooFilter::insert).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::TaggedFilter;
    ///
    /// let filter = TaggedFilter::<str>::builder().capacity(100).build()?;
    /// filter.insert("key", 5)?;
    /// assert_eq!(filter.tag("key"), Some(5));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn insert(&self, key: &K, tag: u32) -> Result<(), InsertError> {
        let value = self.value(tag);
        self.core.raw.put(self.core.mixed(key), Put { value, ..Put::COPY }).map(|_| ())
    }

    /// The tag of the key, the smallest if there are more; `None` if the key is absent, which is certain.
    ///
    /// # Complexity
    /// As [`CuckooFilter::contains`](crate::CuckooFilter::contains), which is faster where the tag does not matter.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::TaggedFilter;
    ///
    /// let filter = TaggedFilter::<str>::builder().capacity(100).build()?;
    /// filter.insert("key", 0)?;
    /// assert_eq!((filter.tag("key"), filter.tag("another")), (Some(0), None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn tag(&self, key: &K) -> Option<u32> {
        self.tags(key).min()
    }

    /// The tags of the key, in no order: one for each copy that was there throughout, and perhaps those that came or went
    /// meanwhile. A copy that another writer moves may show its tag twice.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::TaggedFilter;
    ///
    /// let filter = TaggedFilter::<str>::builder().capacity(100).build()?;
    /// filter.insert("key", 3)?;
    /// filter.insert("key", 1)?;
    /// let mut tags: Vec<u32> = filter.tags("key").collect();
    /// tags.sort();
    /// assert_eq!(tags, [1, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tags(&self, key: &K) -> impl ExactSizeIterator<Item = u32> + use<K, S> {
        self.core.raw.values(self.core.mixed(key)).into_iter().map(|value| value - 1)
    }

    /// Gives a copy of the key another tag, and says whether there was one with the tag `from`. A reader sees the one tag or
    /// the other.
    ///
    /// # Panics
    /// If one of the tags is above [`max_tag`](TaggedFilter::max_tag).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::TaggedFilter;
    ///
    /// let filter = TaggedFilter::<str>::builder().capacity(100).build()?;
    /// filter.insert("key", 3)?;
    /// assert!(filter.retag("key", 3, 1) && !filter.retag("key", 3, 2));
    /// assert_eq!(filter.tag("key"), Some(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn retag(&self, key: &K, from: u32, to: u32) -> bool {
        let (from, to) = (self.value(from), self.value(to));
        self.core.raw.update(self.core.mixed(key), Some(from), |_| to) != 0
    }

    /// Removes a copy of the key with this tag, and says whether there was one. Remove only what was inserted: else, as often as
    /// a lookup is wrong, that of another key goes.
    ///
    /// # Panics
    /// If the tag is above [`max_tag`](TaggedFilter::max_tag).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::TaggedFilter;
    ///
    /// let filter = TaggedFilter::<str>::builder().capacity(100).build()?;
    /// filter.insert("key", 3)?;
    /// assert!(!filter.remove("key", 2) && filter.remove("key", 3));
    /// assert!(filter.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn remove(&self, key: &K, tag: u32) -> bool {
        let value = self.value(tag);
        self.core.raw.remove_value(self.core.mixed(key), Some(value)) != 0
    }

    /// Removes a copy of each key with this tag, as a loop of [`remove`](TaggedFilter::remove) would, and lists those that were missing.
    ///
    /// # Panics
    /// If the tag is above [`max_tag`](TaggedFilter::max_tag).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::TaggedFilter;
    ///
    /// let filter = TaggedFilter::<str>::builder().capacity(100).build()?;
    /// assert_eq!(filter.insert_batch(&["a", "b"], 2).inserted, 2);
    /// let report = filter.remove_batch(&["a", "c"], 2);
    /// assert_eq!((report.removed, report.missing), (1, vec![1]));
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[track_caller]
    pub fn remove_batch<T: Borrow<K>>(&self, keys: &[T], tag: u32) -> RemoveReport {
        self.core.remove_batch::<K, T>(keys, Some(self.value(tag)))
    }

    /// Stores a copy of each key with this tag, as a loop of [`insert`](TaggedFilter::insert) would, and lists those that
    /// were refused: a list, say, whose number is the tag.
    ///
    /// # Panics
    /// If the tag is above [`max_tag`](TaggedFilter::max_tag).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::TaggedFilter;
    ///
    /// let lists = TaggedFilter::<str>::builder().capacity(100).build()?;
    /// assert_eq!(lists.insert_batch(&["a", "b"], 0).inserted + lists.insert_batch(&["c"], 1).inserted, 3);
    /// let mut tags = [None; 4];
    /// lists.tag_batch(&["a", "b", "c", "d"], &mut tags);
    /// assert_eq!(tags, [Some(0), Some(0), Some(1), None]);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[track_caller]
    pub fn insert_batch<T: Borrow<K>>(&self, keys: &[T], tag: u32) -> BulkReport {
        self.core.put_batch::<K, T>(keys, Put { value: self.value(tag), ..Put::COPY }, Answers::Nothing)
    }

    /// The same on all threads of the rayon pool that the caller is in, or of the global one.
    ///
    /// # Panics
    /// If the tag is above [`max_tag`](TaggedFilter::max_tag); as
    /// [`CuckooFilter::par_insert`](crate::CuckooFilter::par_insert), if the system refuses rayon its threads.
    #[cfg(feature = "rayon")]
    #[cfg_attr(docsrs, doc(cfg(feature = "rayon")))]
    #[track_caller]
    pub fn par_insert<T: Borrow<K> + Sync>(&self, keys: &[T], tag: u32) -> BulkReport
    where
        S: Sync,
    {
        self.core.par_put::<K, T>(keys, Put { value: self.value(tag), ..Put::COPY })
    }

    /// The tag of each key: `tags[i]` is what [`tag`](TaggedFilter::tag) answers for `keys[i]`.
    ///
    /// # Panics
    /// If `keys` and `tags` differ in length.
    #[track_caller]
    pub fn tag_batch<T: Borrow<K>>(&self, keys: &[T], tags: &mut [Option<u32>]) {
        let ask = |mixed| self.core.raw.values(mixed).into_iter().min().map(|value| value - 1);
        self.core.look_at_each::<K, T, _>(keys, tags, ask);
    }

    /// Stores all that the other filter holds, keys with their tags, while both serve. As
    /// [`CuckooFilter::merge_from`](crate::CuckooFilter::merge_from).
    ///
    /// # Errors
    /// [`MergeError`] if the two were built differently or there is no memory; nothing has changed then.
    pub fn merge_from(&self, other: &Self) -> Result<MergeReport, MergeError> {
        self.core.merge_from(&other.core, IfPresent::Another)
    }
}

/// Plans a [`TaggedFilter`] and builds it.
///
/// ```
/// use concurrent_cuckoo_filter::TaggedFilter;
///
/// let filter = TaggedFilter::<str>::builder().capacity(100_000).false_positive_rate(0.001).build()?;
/// assert_eq!((filter.max_tag(), filter.fingerprint_bits()), (6, 13)); // slots of 16 bits
/// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
/// ```
#[must_use = "a builder does nothing until `build` is called"]
pub struct TaggedBuilder<K: ?Sized, S = DefaultHashBuilder> {
    inner: Builder<K, S>,
    tags: u32,
}

impl<K: ?Sized, S> TaggedBuilder<K, S> {
    /// Sets the number of keys that the filter is to hold, each as often as it is inserted. Required.
    pub fn capacity(self, keys: usize) -> Self {
        TaggedBuilder { inner: self.inner.capacity(keys), ..self }
    }

    /// Sets the part of absent keys that may be taken for present, and of present ones that may have the tag of another
    /// one, too. As [`Builder::false_positive_rate`](crate::Builder::false_positive_rate); bits that are left over in a slot make it
    /// lower.
    pub fn false_positive_rate(self, rate: f64) -> Self {
        TaggedBuilder { inner: self.inner.false_positive_rate(rate), ..self }
    }

    /// Sets the number of different tags, 1 to 65,535: they are 0 to one less. 7 without it. It is raised to what fits its
    /// bits, 2^bits - 1. The width of a slot is a multiple of 4 with 3 or 4 bits, of 8 with 5 to 8, and of 16 with more.
    pub fn tags(self, tags: u32) -> Self {
        TaggedBuilder { tags, ..self }
    }

    /// Builds the filter, empty.
    ///
    /// # Errors
    /// [`BuildError`] for each wish that cannot be met, and when the system refuses the memory.
    pub fn build(self) -> Result<TaggedFilter<K, S>, BuildError> {
        let (plan, bytes) = self.plan()?;
        Ok(TaggedFilter::from_core(self.inner.build_tagged(&plan, bytes, None)?))
    }

    fn plan(&self) -> Result<(Plan, usize), BuildError> {
        if !(1..1 << 16).contains(&self.tags) {
            return Err(BuildError::TagsOutOfRange { asked: self.tags });
        }
        // One value more than tags: that of what is dead.
        self.inner.tagged_plan(u32::BITS - self.tags.leading_zeros(), 0.0, size_of::<TaggedFilter<K, S>>())
    }
}

common_settings!(TaggedBuilder, tags);
