//! The fixed properties of a filter, its load and its counters.

use crate::filter::Life;
use crate::layout::{self, Plan};
use crate::raw::{Growing, RawFilter, SlotKind};
use core::time::Duration;

/// The fixed properties of a filter, requested or derived. Returned by
/// [`Filter::config`](crate::Filter::config), and part of the header of each snapshot.
///
/// ```
/// use concurrent_cuckoo_filter::{CountingFilter, CuckooFilter};
/// use std::time::Duration;
///
/// let config = CuckooFilter::<String>::with_capacity(1_000_000).config();
/// assert_eq!((config.capacity, config.max_capacity, config.shards), (1_000_000, 1_000_000, 4));
/// assert_eq!((config.false_positive_rate, config.fingerprint_bits), (Some(0.001), 13));
///
/// let builder = CountingFilter::<String>::builder().capacity(100).counter_bits(3);
/// let config = builder.time_to_idle(Duration::from_secs(60)).build()?.config();
/// assert_eq!((config.max_count, config.tick), (8, Some(Duration::from_secs(10))));
/// assert_eq!((config.time_to_live, config.time_to_idle), (None, Some(Duration::from_secs(60))));
/// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// The requested number of keys.
    pub capacity: usize,
    /// The number of keys that the filter grows to; `capacity` if it does not grow.
    pub max_capacity: usize,
    /// The requested false-positive rate; `None` if a width was requested.
    pub false_positive_rate: Option<f64>,
    /// The bits of a fingerprint, 4 to 32. For a growing filter, these are the bits of a filter that had the largest size from the
    /// beginning.
    pub fingerprint_bits: u32,
    /// The number of shards: small filters of their own, between which no key ever moves.
    pub shards: usize,
    /// The time that a key lives at least, or a count from the first addition of its window; `None` if nothing dies by it.
    pub time_to_live: Option<Duration>,
    /// The time that a count lives at least, from the last addition of its key; `None` if counts do not die by it.
    pub time_to_idle: Option<Duration>,
    /// The time between two ticks: the time to live or to idle, divided by the number of steps that fit its bits. `None` if nothing dies.
    pub tick: Option<Duration>,
    /// The largest count: 8 copies, or in a counting filter the count at which a counter stays, 2^bits - 1, and 2^bits with a time to live
    /// or to idle.
    pub max_count: u32,
    /// The largest tag of a tagged filter, whose smallest one is 0; 0 for other kinds.
    pub max_tag: u32,
}

impl Config {
    /// The kind is named as in snapshots.
    pub(crate) fn new(
        kind: &str,
        plan: &Plan,
        [capacity, max_capacity]: [usize; 2],
        false_positive_rate: Option<f64>,
        life: Option<&Life>,
    ) -> Self {
        let dies_by = |renews| life.filter(|life| life.renews == renews).map(|life| life.time);
        // A header is described before the widths in it are checked.
        let largest = |bits: u32| u32::MAX.checked_shr(u32::BITS.saturating_sub(bits)).unwrap_or(0);
        Config {
            capacity,
            max_capacity,
            false_positive_rate,
            fingerprint_bits: plan.told_bits(),
            shards: plan.shards,
            time_to_live: dies_by(false),
            time_to_idle: dies_by(true),
            tick: life.map(|life| life.tick),
            max_count: match (kind, plan.count_bits) {
                ("counting", 0) => largest(plan.tag_bits),
                ("counting", bits) => largest(bits).saturating_add(1),
                _ => 2 * layout::SLOTS as u32,
            },
            max_tag: if kind == "tagged" { largest(plan.tag_bits).saturating_sub(1) } else { 0 },
        }
    }
}

/// The load of a filter, and counters since it was built or loaded; returned by [`Filter::stats`](crate::Filter::stats).
///
/// Repeated lookups are not counted: a lookup writes no shared memory. Of the changes that make it repeat
/// ([`Filter`](crate::Filter), "Consistency"), relocations and splits are counted here.
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
    /// The number of ticks since the filter was first built or joined from parts; 0 where nothing dies.
    pub epoch: u64,
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
    /// How often the table that was split most often has been split. Each split takes one bit of the requested growth.
    pub doublings: u32,
    /// The number of splits of tables.
    pub splits: u64,
    /// The time that all threads together have spent on splits, waiting for locks included.
    pub time_in_splits: Duration,
}

impl Stats {
    pub(crate) fn of<K: SlotKind>(raw: &RawFilter<K>) -> Self {
        let (totals, len, slots, growing) = (raw.totals(), raw.len(), raw.slots(), raw.growing());
        // In a growing filter, an absent key is compared with the keys of one table only.
        let plan = raw.plan();
        let final_load = len as f64 / (plan.first_slots() as f64 * 2f64.powi(plan.reserve_bits as i32));
        Stats {
            len,
            slots,
            load_factor: len as f64 / slots as f64,
            expected_false_positive_rate: layout::expected_false_positive_rate(final_load, plan.core_bits()),
            epoch: raw.epoch(),
            relocations: totals.relocations,
            longest_path: totals.longest_path,
            refused_full: totals.refused_full,
            refused_too_many_copies: totals.refused_copies,
            tables: growing.map_or(plan.shards, Growing::tables),
            doublings: growing.map_or(0, Growing::doublings),
            splits: growing.map_or(0, |growing| growing.splits.get()),
            time_in_splits: Duration::from_nanos(growing.map_or(0, |growing| growing.nanos_in_splits.get())),
        }
    }
}
