//! A filter copied, shard by shard.

use crate::error::BuildError;
use crate::filter::CuckooFilter;
use crate::raw::{RawFilter, SlotKind};

impl<K: ?Sized, S: Clone> Clone for CuckooFilter<K, S> {
    /// As [`try_clone`](CuckooFilter::try_clone).
    ///
    /// # Panics
    /// As `Vec` does, if the system refuses the memory.
    fn clone(&self) -> Self {
        self.try_clone().unwrap_or_else(|error| panic!("{error}"))
    }
}

impl<K: ?Sized, S: Clone> CuckooFilter<K, S> {
    /// Copies the filter, while it serves. The copy has the same hash function with the same keys, so the two can be
    /// [merged](CuckooFilter::merge_from) and [compared](CuckooFilter::hash); its [`stats`](CuckooFilter::stats) begin anew.
    ///
    /// A shard at a time is copied under its locks: every key that is in the filter from the beginning of the call to its end
    /// is in the copy; one that is inserted or removed meanwhile may be or not. Lookups go on.
    ///
    /// # Errors
    /// If the system refuses the memory.
    ///
    /// # Complexity
    /// Each word once.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::with_capacity(100);
    /// filter.insert("a")?;
    /// let copy = filter.clone();
    /// filter.remove("a");
    /// assert!(copy.contains("a") && !filter.contains("a"));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        let raw = cloned(&self.raw, self.memory_usage())?;
        let capacities = [self.capacity(), self.max_capacity];
        Ok(CuckooFilter::from_raw(capacities, self.false_positive_rate(), raw, self.hasher().clone()))
    }
}

/// Copies a filter that takes so many bytes.
pub(crate) fn cloned<K: SlotKind>(raw: &RawFilter<K>, bytes: usize) -> Result<RawFilter<K>, BuildError> {
    let (words, mut room) = (raw.plan().words, Vec::new());
    let refused = BuildError::OutOfMemory { bytes };
    room.try_reserve_exact(words).map_err(|_| refused.clone())?;
    room.resize(words, 0);
    raw.try_clone(&mut room).ok_or(refused)
}
