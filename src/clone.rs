//! A filter copied, shard by shard.

use crate::error::{BuildError, InsertError};
use crate::filter::CuckooFilter;
use crate::merge::merge_growing;
use crate::raw::RawFilter;
use crate::sys::memory::HugePages;

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
    /// Each word once. Of a filter that grows, an insertion for each key.
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
        let plan = *self.plan();
        let refused = BuildError::OutOfMemory { bytes: self.memory_usage() };
        let mut words = Vec::new();
        words.try_reserve_exact(plan.words).map_err(|_| refused.clone())?;
        words.resize(plan.words, 0);
        let raw = RawFilter::new(&plan, HugePages::Advised).ok_or(refused.clone())?;
        if let (Some(from), Some(to)) = (self.raw.growing(), raw.growing()) {
            // The tables of the copy may have doubled otherwise, so each key is stored anew.
            let report = merge_growing(to, from, plan.words).map_err(|_| refused.clone())?;
            if report.refused > 0 {
                return Err(BuildError::Refused { index: report.inserted, error: InsertError::Full });
            }
        }
        for (from, to) in self.raw.shards().zip(raw.shards()) {
            let count = from.copy_to(&mut words);
            to.fill_with(words.iter().copied(), count);
        }
        let mut copy = CuckooFilter::from_raw(self.capacity(), self.false_positive_rate(), raw, self.hasher().clone());
        copy.max_capacity = self.max_capacity;
        Ok(copy)
    }
}
