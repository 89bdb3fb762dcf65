//! A filter copied, shard by shard.

use crate::error::BuildError;
use crate::filter::CuckooFilter;
use crate::raw::{NewTable, RawFilter};
use crate::sys::memory::{Arena, HugePages};

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
        let plan = *self.plan();
        let refused = BuildError::OutOfMemory { bytes: self.memory_usage() };
        let mut words = Vec::new();
        words.try_reserve_exact(plan.words).map_err(|_| refused.clone())?;
        words.resize(plan.words, 0);
        let raw = if let Some(growing) = self.raw.growing() {
            let (arena, mut tables) = (Arena::new(HugePages::Advised), Vec::new());
            growing.copy_each(0..plan.shards, &mut words, |copy, words| {
                let table = NewTable::new(&plan, &copy.extent, &arena).ok_or(refused.clone())?;
                table.shard().fill_with(words.iter().copied(), copy.count);
                tables.push(table);
                Ok(())
            })?;
            RawFilter::of_tables(&plan, tables, arena).ok_or(refused)?
        } else {
            let raw = RawFilter::new(&plan, HugePages::Reused).ok_or(refused)?;
            for (from, to) in self.raw.shards.each().zip(raw.shards.each()) {
                let count = from.copy_to(&mut words);
                to.fill_with(words.iter().copied(), count);
            }
            raw
        };
        let capacities = [self.capacity(), self.max_capacity];
        Ok(CuckooFilter::from_raw(capacities, self.false_positive_rate(), raw, self.hasher().clone()))
    }
}
