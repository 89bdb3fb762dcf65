//! Tagged filters: a tag beside each fingerprint.

use super::Filter;
use super::key::BatchKey;
use super::kind::Tagged;
use crate::builder::Builder;
use crate::error::InsertError;
use crate::hashing::DefaultHashBuilder;
use crate::layout::Mixed;
use crate::raw::{Answers, Put};
use crate::report::{BulkReport, RemoveReport};
use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};

/// A [`Filter`] with a small number beside each key, its *tag*: which list, which reason, which shard?
///
/// It is a multiset of pairs of a key and a tag: `insert` and `remove` take both.
/// [`tags`](Filter::tags) **never omits** a tag that the key was inserted with; with the probability of a false positive it also returns tags
/// of other keys of the class. [`tag`](Filter::tag) is for keys with one tag each. Reading takes no lock.
///
/// ```
/// use concurrent_cuckoo_filter::TaggedFilter;
///
/// const MALWARE: u32 = 0;
/// const PHISHING: u32 = 1;
/// let blocked = TaggedFilter::<String>::with_capacity(100_000);
/// assert_eq!(blocked.insert_batch(&["a.com", "b.com"], MALWARE)?.inserted, 2);
/// blocked.insert("c.com", PHISHING)?;
/// assert_eq!(blocked.tag("c.com"), Some(PHISHING));
/// assert_eq!(blocked.tag("d.com"), None);
/// assert!(blocked.retag("b.com", MALWARE, PHISHING)?);
/// assert!(blocked.remove("b.com", PHISHING) && !blocked.contains("b.com"));
/// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
/// ```
pub type TaggedFilter<K, S = DefaultHashBuilder> = Filter<K, S, Tagged>;

impl<K: ?Sized, S> Builder<K, S, Tagged> {
    /// Sets the number of different tags, 1 to 65,535: they are 0 to one less. 7 unless set. It is raised to the largest number of as many
    /// bits, 2^bits - 1. The width of a slot is a multiple of 4 with 3 or 4 bits, of 8 with 5 to 8, and of 16 with more.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::TaggedFilter;
    ///
    /// let filter = TaggedFilter::<String>::builder().capacity(100_000).tags(100).build()?;
    /// assert_eq!((filter.config().max_tag, filter.config().fingerprint_bits), (126, 17)); // slots of 24 bits
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn tags(mut self, tags: u32) -> Self {
        self.options.tags = tags;
        self
    }
}

impl<K: ?Sized, S> TaggedFilter<K, S> {
    /// The value of a tag: that of a dead slot is 0.
    fn value(&self, tag: u32) -> Result<u32, InsertError> {
        if tag < self.raw.tags().most { Ok(tag + 1) } else { Err(InsertError::TagTooLarge) }
    }

    /// The value of the copies with this tag: 0, which no live copy has, if it is too large.
    pub(crate) fn sought(&self, tag: u32) -> Option<u32> {
        Some(self.value(tag).unwrap_or(0))
    }

    /// An insertion with this tag.
    pub(crate) fn copy_with(&self, tag: u32) -> Result<Put, InsertError> {
        Ok(Put { value: self.value(tag)?, ..Put::COPY })
    }

    fn least_tag(&self, mixed: Mixed) -> Option<u32> {
        self.raw.values(mixed).into_iter().min().map(|value| value - 1)
    }
}

impl<K: ?Sized, S: BuildHasher> TaggedFilter<K, S> {
    /// Stores a copy of the key with this tag, whether the key is present or not. A key takes a slot per insertion, up to 8.
    ///
    /// # Errors
    /// [`InsertError::TagTooLarge`] for a tag above [`max_tag`](crate::Config::max_tag), [`InsertError::Full`],
    /// [`InsertError::TooManyCopies`] and, in a growing filter, [`InsertError::OutOfMemory`]; nothing is stored then.
    ///
    /// # Complexity
    /// That of an [insertion](crate::CuckooFilter::insert) without a tag.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{InsertError, TaggedFilter};
    ///
    /// let filter = TaggedFilter::<String>::with_capacity(100);
    /// filter.insert("key", 5)?;
    /// assert_eq!(filter.tag("key"), Some(5));
    /// assert_eq!((filter.config().max_tag, filter.insert("key", 7)), (6, Err(InsertError::TagTooLarge)));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    pub fn insert<Q: ?Sized + Hash>(&self, key: &Q, tag: u32) -> Result<(), InsertError>
    where
        K: Borrow<Q>,
    {
        let put = self.copy_with(tag)?;
        self.raw.put(self.mixed(key), put).map(|_| ())
    }

    /// Returns the tag of the key, the smallest if there are several; `None` if the key is absent, which is certain.
    ///
    /// # Complexity
    /// That of [`contains`](TaggedFilter::contains), which is faster where the tag does not matter.
    #[must_use]
    pub fn tag<Q: ?Sized + Hash>(&self, key: &Q) -> Option<u32>
    where
        K: Borrow<Q>,
    {
        self.least_tag(self.mixed(key))
    }

    /// Returns the tags of the key, in no order: one per copy that was there throughout, and perhaps those of copies that came or went in
    /// the meantime. A copy that another writer relocates may show its tag twice.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::TaggedFilter;
    ///
    /// let filter = TaggedFilter::<String>::with_capacity(100);
    /// filter.insert("key", 3)?;
    /// filter.insert("key", 1)?;
    /// let mut tags: Vec<u32> = filter.tags("key").collect();
    /// tags.sort();
    /// assert_eq!(tags, [1, 3]);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    pub fn tags<Q: ?Sized + Hash>(&self, key: &Q) -> impl ExactSizeIterator<Item = u32> + use<K, S, Q>
    where
        K: Borrow<Q>,
    {
        self.raw.values(self.mixed(key)).into_iter().map(|value| value - 1)
    }

    /// Replaces the tag of one copy of the key, and returns whether there was one with the tag `from`. A reader sees the one tag or the
    /// other.
    ///
    /// # Errors
    /// [`InsertError::TagTooLarge`] if `to` is above [`max_tag`](crate::Config::max_tag).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::TaggedFilter;
    ///
    /// let filter = TaggedFilter::<String>::with_capacity(100);
    /// filter.insert("key", 3)?;
    /// assert!(filter.retag("key", 3, 1)? && !filter.retag("key", 3, 2)?);
    /// assert_eq!(filter.tag("key"), Some(1));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    pub fn retag<Q: ?Sized + Hash>(&self, key: &Q, from: u32, to: u32) -> Result<bool, InsertError>
    where
        K: Borrow<Q>,
    {
        let to = self.value(to)?;
        Ok(self.raw.update(self.mixed(key), self.sought(from), |_| to) != 0)
    }

    /// Removes a copy of the key with this tag, and returns whether there was one. Remove only pairs that were inserted: removing another
    /// one may remove the copy of another key of the class, with the probability of a false positive.
    pub fn remove<Q: ?Sized + Hash>(&self, key: &Q, tag: u32) -> bool
    where
        K: Borrow<Q>,
    {
        self.raw.remove_value(self.mixed(key), self.sought(tag)) != 0
    }

    /// Stores a copy of each key with this tag, as a loop of [`insert`](TaggedFilter::insert) would, and lists refused keys.
    ///
    /// # Errors
    /// [`InsertError::TagTooLarge`], before anything is stored.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::TaggedFilter;
    ///
    /// let lists = TaggedFilter::<String>::with_capacity(100);
    /// assert_eq!(lists.insert_batch(&["a", "b"], 0)?.inserted + lists.insert_batch(&["c"], 1)?.inserted, 3);
    /// let mut tags = [None; 4];
    /// lists.tag_batch(&["a", "b", "c", "d"], &mut tags);
    /// assert_eq!(tags, [Some(0), Some(0), Some(1), None]);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    pub fn insert_batch<Q: BatchKey<K, F>, F>(&self, keys: &[Q], tag: u32) -> Result<BulkReport, InsertError> {
        Ok(self.put_batch(keys, self.copy_with(tag)?, Answers::Nothing))
    }

    /// Removes a copy of each key with this tag, as a loop of [`remove`](TaggedFilter::remove) would, and lists absent keys.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::TaggedFilter;
    ///
    /// let filter = TaggedFilter::<String>::with_capacity(100);
    /// assert_eq!(filter.insert_batch(&["a", "b"], 2)?.inserted, 2);
    /// let report = filter.remove_batch(&["a", "c"], 2);
    /// assert_eq!((report.removed, report.missing), (1, vec![1]));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    pub fn remove_batch<Q: BatchKey<K, F>, F>(&self, keys: &[Q], tag: u32) -> RemoveReport {
        self.remove_each(keys, self.sought(tag))
    }

    /// Returns the tag of each key: `tags[i]` is the result of [`tag`](TaggedFilter::tag) for `keys[i]`.
    ///
    /// # Panics
    /// If `keys` and `tags` differ in length.
    #[track_caller]
    pub fn tag_batch<Q: BatchKey<K, F>, F>(&self, keys: &[Q], tags: &mut [Option<u32>]) {
        self.answer_each(keys, tags, |mixed| self.least_tag(mixed));
    }
}
