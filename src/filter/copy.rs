//! Clones and merges of filters.

use super::kind::Kind;
use super::time::Time;
use super::{CuckooFilter, Filter};
use crate::error::{BuildError, MergeError};
use crate::hashing::probe;
use crate::raw::{IfPresent, Put};
use crate::report::MergeReport;
use crate::sys::memory::zeros;
use core::hash::BuildHasher;

impl<K: ?Sized, S: Clone, T: Kind> Clone for Filter<K, S, T> {
    /// Copies the filter as [`try_clone`](Filter::try_clone) does.
    ///
    /// # Panics
    /// If allocation fails.
    fn clone(&self) -> Self {
        self.try_clone().unwrap_or_else(|error| panic!("{error}"))
    }
}

impl<K: ?Sized, S: Clone, T: Kind> Filter<K, S, T> {
    /// Copies the filter, while other threads use it. The copy has the same hash function with the same seeds, so that the two can be
    /// [merged](Filter::merge_from); its [`stats`](Filter::stats) begin at zero, and its time continues from the same moment.
    ///
    /// A shard at a time is copied under its locks: every key that is in the filter from the beginning of the call to its end is in the
    /// copy; a key that is inserted or removed in the meantime may be in it or not. Lookups proceed.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`].
    ///
    /// # Complexity
    /// Each word once.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<String>::with_capacity(100);
    /// filter.insert("a")?;
    /// let copy = filter.try_clone()?;
    /// filter.remove("a");
    /// assert!(copy.contains("a") && !filter.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        let refused = BuildError::OutOfMemory { bytes: self.memory_usage() };
        let room = zeros(self.plan().words as usize);
        let raw = room.and_then(|mut room| self.raw.try_clone(&mut room)).ok_or(refused)?;
        let (capacities, time) = ([self.capacity, self.max_capacity], self.time.clone());
        Ok(Filter::from_raw(capacities, self.rate(), raw, time, self.hasher.clone()))
    }
}

impl<K: ?Sized, S: BuildHasher, T: Kind> Filter<K, S, T> {
    /// Stores the copies of the other filter in this one, while other threads use both. Counts are added. The report has the number of
    /// copies refused for lack of room; all others are stored.
    ///
    /// Both must have been built with the same capacity, rate or width and options of their kind, and with the same hash function with the
    /// same seeds: two filters with default hash functions have seeds of their own, and cannot be merged. Give both a clone of one function
    /// ([`Builder::hasher`](crate::Builder::hasher)), or begin the second as a [clone](Filter::try_clone) of the first. Every key that the
    /// other filter holds from the beginning of the call to its end is merged; a key that is inserted or removed there in the meantime may
    /// be merged or not. Keys of both filters then have two copies, and take two removals. A filter may be merged with itself, which
    /// doubles its copies, and two with each other at the same time.
    ///
    /// Live copies are stored with the time that they have left. The ticks of two filters do not come at the same moments, so a merged
    /// key or count may live one tick longer, and as many more as are made while its shard is merged. Of two windows of a count, the sum
    /// has the later end.
    ///
    /// # Errors
    /// [`MergeError`] if the two were built differently or allocation fails; nothing has changed then.
    ///
    /// # Complexity
    /// One shard at a time is copied under the locks of the other filter, and stored under the locks of this one, never under both. Lookups
    /// proceed in both filters. Memory: a copy of one shard.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CountingFilter, StableHashBuilder};
    ///
    /// let builder = CountingFilter::<String>::builder().capacity(100).hasher(StableHashBuilder::with_seeds(1, 2));
    /// let (one, other) = (builder.clone().build()?, builder.build()?);
    /// one.add("a.com")?;
    /// other.add("a.com")?;
    /// other.add("b.com")?;
    /// let report = one.merge_from(&other)?;
    /// assert_eq!((report.inserted, report.refused), (2, 0));
    /// assert_eq!([one.count("a.com"), one.count("b.com")], [2, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn merge_from(&self, other: &Self) -> Result<MergeReport, MergeError> {
        self.merge(other, |value| Put { value: self.time.one_tick_later(value), if_present: T::MERGED })
    }

    fn merge(&self, other: &Self, put: impl Fn(u32) -> Put) -> Result<MergeReport, MergeError> {
        if !self.plan().places_alike(other.plan()) || self.life() != other.life() {
            return Err(MergeError::SizesDiffer);
        }
        if probe(&self.hasher) != probe(&other.hasher) {
            return Err(MergeError::HashersDiffer);
        }
        let words = self.plan().words as usize;
        let mut room = zeros(words).ok_or(MergeError::OutOfMemory { bytes: words * size_of::<u64>() })?;
        let (mut report, unique) = (MergeReport::default(), put(1).if_present == IfPresent::Keep);
        self.raw.merge_from(&other.raw, &mut room, put, |result| match result {
            Ok(had) if unique && had != 0 => report.present += 1,
            Ok(_) => report.inserted += 1,
            Err(_) => report.refused += 1,
        });
        Ok(report)
    }
}

impl<K: ?Sized, S: BuildHasher> CuckooFilter<K, S> {
    /// Stores the keys of the other filter that are absent from this one, like [`insert_unique`](Filter::insert_unique): a key of both
    /// filters then has one copy. All else is as documented for [`merge_from`](Filter::merge_from).
    ///
    /// A key of the other filter that is a false positive in this one is not stored, and relies on the copy of another key. Afterwards
    /// remove only keys that were removed from the sources of both filters; even then, a removal may also remove such a key.
    ///
    /// # Errors
    /// [`MergeError`] if the two were built differently or allocation fails; nothing has changed then.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, StableHashBuilder};
    ///
    /// let builder = CuckooFilter::<String>::builder().capacity(100).hasher(StableHashBuilder::with_seeds(1, 2));
    /// let (one, other) = (builder.clone().build()?, builder.build()?);
    /// one.insert("a.com")?;
    /// other.insert("a.com")?;
    /// other.insert("b.com")?;
    /// let report = one.merge_unique_from(&other)?;
    /// assert_eq!((report.inserted, report.present, one.len()), (1, 1, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn merge_unique_from(&self, other: &Self) -> Result<MergeReport, MergeError> {
        self.merge(other, |_| Put::UNIQUE)
    }
}
