//! The load of a filter and its counters.

use crate::layout;
use crate::raw::{RawFilter, SlotKind};
use core::time::Duration;

/// The load of a filter, and counters since it was built or loaded; returned by [`Filter::stats`](crate::Filter::stats).
///
/// Repeated lookups are not counted: a lookup writes no shared memory. It repeats only if, in the meantime and in its stripe, a key was
/// relocated, one of several copies of a class was removed, or the filter was cleared; or if its table was split and its key moved to
/// the new table. Of these, relocations and splits are counted here.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// The slots in use, as [`len`](crate::Filter::len) returns them.
    pub len: usize,
    /// All slots of the present size: a few percent more than the capacity.
    pub slots: usize,
    /// The slots in use divided by all slots.
    pub load_factor: f64,
    /// The probability that a lookup of an absent key returns `true`.
    pub expected_false_positive_rate: f64,
    /// The number of fingerprints that were moved to their other bucket to make room.
    pub relocations: u64,
    /// The largest number of relocations that made room for one key.
    pub longest_path: u64,
    /// The number of insertions refused as [`InsertError::Full`](crate::InsertError::Full), without those that a split made room for.
    pub refused_full: u64,
    /// The number of insertions refused as [`InsertError::TooManyCopies`](crate::InsertError::TooManyCopies).
    pub refused_too_many_copies: u64,
    /// The number of tables of a growing filter, or of shards of a filter of fixed size.
    pub tables: usize,
    /// The number of splits behind the table that was split most often: each takes one bit of the requested growth.
    pub doublings: u32,
    /// The number of splits of tables.
    pub splits: u64,
    /// The time that all threads together have spent on splits, waiting for locks included.
    pub time_in_splits: Duration,
}

impl Stats {
    pub(crate) fn of<K: SlotKind>(raw: &RawFilter<K>) -> Self {
        let (totals, len, slots, grown) = (raw.totals(), raw.len(), raw.slots(), raw.grown());
        // In a growing filter, an absent key is compared with the keys of one table only.
        let plan = raw.plan();
        let final_load = len as f64 / (plan.first_slots() as f64 * 2f64.powi(plan.reserve_bits as i32));
        Stats {
            len,
            slots,
            load_factor: len as f64 / slots as f64,
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
