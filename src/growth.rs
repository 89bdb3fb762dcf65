//! Filters that grow by themselves.

use crate::error::InsertError;
use crate::filter::CuckooFilter;
use crate::raw::{RawFilter, SlotKind};
use core::ops::RangeInclusive;

impl<K: ?Sized> CuckooFilter<K> {
    /// Builds a filter that grows by itself, from room for the first number of keys to room for the second one, at a
    /// false-positive rate of 0.1 % when it holds as many. It is hashed with random seeds.
    ///
    /// It takes the memory of the keys that it holds, and from 8 to 10 % more at the end than one that was built for as many
    /// ([`Builder::max_capacity`](crate::Builder::max_capacity) says what growth costs), so that the second number can be
    /// far beyond what is expected. It begins with room for at least 30,000 keys, or for the second number if that is less, and
    /// for at least a 2^14th of the second number.
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
    /// 0.2 to 0.5 ms for each table that is split, of up to 250,000 keys; 1 to 2 ms where all cores are busy with other writers.
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
