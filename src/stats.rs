//! What a filter tells of itself while it serves.

use crate::filter::CuckooFilter;
use crate::layout;
use crate::raw::{RawFilter, SlotKind};
use core::time::Duration;

/// What has happened in a filter since it was built or loaded, and how full it is. [`CuckooFilter::stats`] takes it.
///
/// Repeated lookups are not among the counters: a lookup writes no shared memory, not even to be counted. It repeats only
/// if meanwhile, in its stripe, a key was relocated, one of several copies of a class was removed, or the filter was
/// cleared; or if its table was split and it is of the keys that went to the new one. Only relocations and splits are
/// counted here.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Stored copies, as [`CuckooFilter::len`].
    pub len: usize,
    /// As [`CuckooFilter::load_factor`].
    pub load_factor: f64,
    /// As [`CuckooFilter::expected_false_positive_rate`].
    pub expected_false_positive_rate: f64,
    /// Fingerprints that were moved to their other bucket to make room.
    pub relocations: u64,
    /// The most relocations that made room for one key.
    pub longest_path: u64,
    /// Insertions refused as [`InsertError::Full`](crate::InsertError::Full). Those that a split made room for are not among
    /// them.
    pub refused_full: u64,
    /// Insertions refused as [`InsertError::TooManyCopies`](crate::InsertError::TooManyCopies).
    pub refused_too_many_copies: u64,
    /// Tables that a filter that grows was split into, those that it began with among them; else the number of shards.
    pub tables: usize,
    /// How often the tables that were split most have been split: each time takes one bit of the growth that was asked for.
    pub doublings: u32,
    /// Tables that were split.
    pub splits: u64,
    /// The time that all threads together have spent on splitting tables, waiting for their locks included.
    pub time_in_splits: Duration,
}

impl<K: ?Sized, S> CuckooFilter<K, S> {
    /// Tells how full the filter is and what has happened in it, cheap enough to be asked every second.
    ///
    /// Like [`len`](CuckooFilter::len), it adds up numbers that are read one after the other while others write. The
    /// counters never fall: neither [`clear`](CuckooFilter::clear) nor a removal takes anything from them. A filter that
    /// was loaded begins with none.
    ///
    /// # Complexity
    /// Reads the line of each stripe twice, 1024 or about as many shards as there are at the most, or two or more in each of
    /// the tables of a filter that grows; takes no lock and waits for no writer.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::with_capacity(1_000);
    /// for _ in 0..9 {
    ///     let _ = filter.insert("again");
    /// }
    /// let stats = filter.stats();
    /// assert_eq!((stats.len, stats.refused_too_many_copies, stats.refused_full), (8, 1, 0));
    /// assert_eq!(stats.relocations, 0);
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats::of(&self.raw)
    }
}

impl Stats {
    pub(crate) fn of<K: SlotKind>(raw: &RawFilter<K>) -> Self {
        let (totals, len, grown) = (raw.totals(), raw.len(), raw.grown());
        let load_factor = len as f64 / raw.slots() as f64;
        // In a filter that grows, what is absent is looked for among the keys of its own table only.
        let plan = raw.plan();
        let final_load = len as f64 / (plan.first_slots() as f64 * 2f64.powi(plan.reserve_bits as i32));
        Stats {
            len,
            load_factor,
            expected_false_positive_rate: layout::expected_false_positive_rate(final_load, plan.core_bits()),
            relocations: totals.relocations,
            longest_path: totals.longest_path,
            refused_full: totals.refused_full,
            refused_too_many_copies: totals.refused_copies,
            tables: grown.tables,
            doublings: grown.doublings,
            splits: grown.splits,
            time_in_splits: Duration::from_nanos(grown.nanos_in_splits),
        }
    }
}
