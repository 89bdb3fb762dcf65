//! Filters that grow by themselves.

use crate::error::InsertError;
use crate::filter::CuckooFilter;
use crate::raw::{RawFilter, SlotKind};
use core::ops::RangeInclusive;

impl<K: ?Sized> CuckooFilter<K> {
    /// Builds a filter that grows by itself, from room for the first number of keys to room for the second one, at a
    /// false-positive rate of 0.1 % when it holds as many. It is hashed with random seeds.
    ///
    /// At the end it takes from 8 to 10 % more memory than a filter that was built for as many keys. Before the end it takes more: all
    /// tables keep a bit per slot for each doubling to come, and are half empty just after one. With a second number of 64 times
    /// the first, that is 20 bits per key when the first tables are full and 39 just after they have doubled, where a filter of
    /// fixed size takes 13.6; `1_000..=1_000_000_000` takes 49 at a million keys. So choose a second number that is expected
    /// (16 to 64 times the first); [`Builder::memory_usage_at`](crate::Builder::memory_usage_at) returns the bytes at any number
    /// of keys, and docs/guide.md has a table. It begins with room for at least a 2^17th of the second number.
    ///
    /// # Panics
    /// As [`with_capacity`](CuckooFilter::with_capacity), and if the range is empty.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::growing(1_000..=1_000_000_000);
    /// assert_eq!(filter.max_capacity(), 1_000_000_000);
    /// assert!(filter.memory_usage() < 500_000);
    /// filter.insert("key")?;
    /// assert!(filter.contains("key"));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub fn growing(keys: RangeInclusive<usize>) -> Self {
        match Self::builder().capacity(*keys.start()).max_capacity(*keys.end()).build() {
            Ok(filter) => filter,
            Err(error) => panic!("{error}"),
        }
    }
}

impl<K: ?Sized, S> CuckooFilter<K, S> {
    /// The number of keys that the filter grows to: [`capacity`](CuckooFilter::capacity) if it does not grow.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// assert_eq!(CuckooFilter::<str>::growing(100..=10_000_000).max_capacity(), 10_000_000);
    /// assert_eq!(CuckooFilter::<str>::with_capacity(100).max_capacity(), 100);
    /// ```
    #[must_use]
    pub fn max_capacity(&self) -> usize {
        self.max_capacity
    }

    /// Makes room for this many keys more than there are, so that their insertions need not: for a thread that has the
    /// time, while others go on. Lookups wait for nothing, and writers for the split of their table at the most.
    ///
    /// # Errors
    /// [`InsertError::Full`] if the filter cannot hold as many by what was asked for, before anything is done;
    /// [`InsertError::OutOfMemory`] if the system refuses the memory: it has grown as far as that allowed.
    ///
    /// # Complexity
    /// Proportional to the slots of the tables that are split, of up to 250,000 keys each. In the record (docs/reliability.md, 10.4) a split
    /// took 0.72 ms in the mean, with four writers and two readers on two cores.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, InsertError};
    ///
    /// let filter = CuckooFilter::<u32>::growing(1_000..=1_000_000);
    /// filter.reserve(500_000)?;
    /// let bytes = filter.memory_usage();
    /// for key in 0..500_000 {
    ///     filter.insert(&key)?;
    /// }
    /// assert_eq!(filter.memory_usage(), bytes);
    /// assert_eq!(filter.reserve(600_000), Err(InsertError::Full));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    pub fn reserve(&self, additional: usize) -> Result<(), InsertError> {
        reserve(&self.raw, self.max_capacity, additional)
    }
}

/// Makes room in a filter for this many keys more.
pub(crate) fn reserve<K: SlotKind>(
    raw: &RawFilter<K>,
    max_capacity: usize,
    additional: usize,
) -> Result<(), InsertError> {
    let keys = raw.len().saturating_add(additional);
    if keys > max_capacity {
        return Err(InsertError::Full);
    }
    raw.growing().map_or(Ok(()), |growing| growing.reserve(keys))
}
