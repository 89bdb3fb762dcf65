//! Statistics of a list, under the names that `/v1/stats` has for them.

use super::Shared;
use serde::{Serialize, Serializer};
use std::time::{Duration, SystemTime};

/// Totals since the list was opened. Nothing is decided by them, but for `keys`, which only the writer changes.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Totals {
    pub(crate) keys: u64,
    /// Puts that changed the list.
    pub(crate) inserts: u64,
    /// Deletes that changed the list.
    pub(crate) removals: u64,
    pub(crate) replacements: u64,
    /// Keys that the filter should have had: 0, unless something is broken. It is loaded from the store then.
    pub(crate) filter_faults: u64,
    /// How often the store was reopened because its file had failed.
    pub(crate) store_reopenings: u64,
    pub(crate) store_bytes: u64,
    /// Requests to change the list that the store failed, or may have failed, and those that the filter had no room for.
    pub(crate) write_failures: u64,
    pub(crate) snapshot_failures: u64,
    /// Changes that the newest snapshot lacks; all that were ever made if there is none.
    pub(crate) changes_since_snapshot: u64,
    /// The newest snapshot saved since the list was opened, or the one that it was opened from.
    pub(crate) snapshot: Option<SnapshotStats>,
}

/// The state of a list.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ListStats {
    #[serde(flatten)]
    pub(crate) totals: Totals,
    pub(crate) filter: FilterStats,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct FilterStats {
    pub(crate) len: u64,
    pub(crate) slots: u64,
    pub(crate) max_capacity: u64,
    pub(crate) load_factor: f64,
    pub(crate) fingerprint_bits: u32,
    pub(crate) expected_false_positive_rate: f64,
    pub(crate) memory_bytes: u64,
    pub(crate) relocations: u64,
    pub(crate) longest_path: u64,
    /// Tables that were split to make room.
    pub(crate) splits: u64,
    /// Keys that were refused, since there was no room or by too many others that look alike.
    pub(crate) refused_full: u64,
    pub(crate) refused_too_many_copies: u64,
}

/// A snapshot on disk. The durations are 0 if the list was opened from it.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct SnapshotStats {
    #[serde(rename = "age_seconds", serialize_with = "age")]
    pub(super) saved: SystemTime,
    pub(crate) bytes: u64,
    /// From the request to the file on disk.
    #[serde(rename = "duration_seconds", serialize_with = "seconds")]
    pub(crate) took: Duration,
    /// The part of it in which changes waited.
    #[serde(rename = "copy_seconds", serialize_with = "seconds")]
    pub(crate) copy: Duration,
}

fn age<S: Serializer>(saved: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(saved.elapsed().unwrap_or_default().as_secs())
}

fn seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

impl Shared {
    pub(super) fn stats(&self) -> ListStats {
        let (totals, filter) = (self.totals.lock().clone(), self.front.current());
        let stats = filter.stats();
        let filter = FilterStats {
            len: stats.len as u64,
            slots: filter.slots() as u64,
            max_capacity: filter.max_capacity() as u64,
            load_factor: stats.load_factor,
            fingerprint_bits: filter.fingerprint_bits(),
            expected_false_positive_rate: stats.expected_false_positive_rate,
            memory_bytes: filter.memory_usage() as u64,
            relocations: stats.relocations,
            longest_path: stats.longest_path,
            splits: stats.splits,
            refused_full: stats.refused_full,
            refused_too_many_copies: stats.refused_too_many_copies,
        };
        ListStats { totals, filter }
    }
}
