//! Statistics of a list, under the names that `/v1/stats` has for them.

use super::Shared;
use serde::Serialize;
use std::ops::Deref;
use std::time::{Duration, SystemTime};

/// Totals since the list was opened. Nothing is decided by them, but for `keys`, which only the writer changes.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Totals {
    pub(crate) keys: u64,
    /// Puts that changed the list.
    pub(crate) inserts: u64,
    /// Deletes that changed the list.
    pub(crate) removals: u64,
    /// Keys that a filter refused.
    #[serde(skip)]
    pub(crate) refused_full: u64,
    #[serde(skip)]
    pub(crate) refused_too_many_copies: u64,
    /// Larger filters that replaced a full one.
    pub(crate) rebuilds: u64,
    /// Larger filters that could not be built. Another attempt follows.
    pub(crate) rebuild_failures: u64,
    pub(crate) replacements: u64,
    /// Keys that the filter should have had: 0, unless something is broken. Another filter is built then.
    pub(crate) filter_faults: u64,
    /// How often the store was reopened because its file had failed.
    pub(crate) store_reopenings: u64,
    pub(crate) store_bytes: u64,
    /// Requests to change the list that the store failed, or may have failed.
    pub(crate) write_failures: u64,
    pub(crate) snapshot_failures: u64,
    /// The last change of the list, and of the snapshot.
    #[serde(skip)]
    pub(super) sequence: u64,
    #[serde(skip)]
    pub(super) saved_sequence: u64,
    /// The newest snapshot saved since the list was opened, or the one that it was opened from.
    pub(crate) snapshot: Option<SnapshotStats>,
}

/// The state of a list.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ListStats {
    #[serde(flatten)]
    totals: Totals,
    pub(crate) filter: FilterStats,
    /// Keys that the filter refused; they wait for a larger one.
    pub(crate) overflow_keys: u64,
    pub(crate) refusals: u64,
    /// Changes that the newest snapshot lacks; all that were ever made if there is none.
    pub(crate) changes_since_snapshot: u64,
}

impl Deref for ListStats {
    type Target = Totals;

    fn deref(&self) -> &Totals {
        &self.totals
    }
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct FilterStats {
    pub(crate) len: u64,
    pub(crate) capacity: u64,
    pub(crate) load_factor: f64,
    pub(crate) fingerprint_bits: u32,
    pub(crate) expected_false_positive_rate: f64,
    pub(crate) memory_bytes: u64,
    pub(crate) relocations: u64,
    pub(crate) longest_path: u64,
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

impl SnapshotStats {
    pub(crate) fn age_seconds(&self) -> u64 {
        SystemTime::now().duration_since(self.saved).unwrap_or_default().as_secs()
    }
}

fn age<S: serde::Serializer>(saved: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(SystemTime::now().duration_since(*saved).unwrap_or_default().as_secs())
}

fn seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

impl Shared {
    pub(super) fn stats(&self) -> ListStats {
        let (mut totals, side) = (self.totals.lock().clone(), self.front.current());
        let filter = side.filter.stats();
        totals.refused_full += filter.refused_full;
        totals.refused_too_many_copies += filter.refused_too_many_copies;
        ListStats {
            filter: FilterStats {
                len: filter.len as u64,
                capacity: side.filter.capacity() as u64,
                load_factor: filter.load_factor,
                fingerprint_bits: side.filter.fingerprint_bits(),
                expected_false_positive_rate: filter.expected_false_positive_rate,
                memory_bytes: side.filter.memory_usage() as u64,
                relocations: filter.relocations,
                longest_path: filter.longest_path,
            },
            overflow_keys: side.overflow.len() as u64,
            refusals: totals.refused_full + totals.refused_too_many_copies,
            changes_since_snapshot: totals.sequence - totals.saved_sequence,
            totals,
        }
    }
}
