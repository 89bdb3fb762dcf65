//! What a list tells of itself.

use serde::Serialize;
use std::time::Duration;

/// The state of a list and what it has done since it was opened.
#[derive(Clone, Debug, Serialize)]
pub struct ListStats {
    /// Keys on the list.
    pub keys: u64,
    /// The filter in front of the store.
    pub filter: FilterStats,
    /// Keys that the filter refused; they wait beside it for a larger one.
    pub overflow_keys: u64,
    /// Puts that changed the list.
    pub puts: u64,
    /// Deletes that changed the list.
    pub deletes: u64,
    /// Keys that a filter refused, by reason.
    pub refusals: Refusals,
    /// Filters that were built anew, larger, and took the place of a full one.
    pub rebuilds: u64,
    /// Larger filters that could not be built; others are tried.
    pub rebuild_failures: u64,
    /// Lists that took the place of another one.
    pub replacements: u64,
    /// Keys that a filter should have had and did not: 0, unless something is broken. Another filter is built then.
    pub filter_faults: u64,
    /// How often the store was opened anew because its file had failed.
    pub store_reopenings: u64,
    /// The size of the store's file.
    pub store_bytes: u64,
    /// Requests to change the list that the store failed, or may have failed.
    pub write_failures: u64,
    /// Changes that the newest snapshot does not have; all that were ever made, without a snapshot.
    pub changes_since_snapshot: u64,
    /// The newest snapshot that was saved since the list was opened, or that it was opened from.
    pub last_snapshot: Option<SnapshotStats>,
    /// Snapshots that could not be saved.
    pub snapshot_failures: u64,
}

/// The state of a filter.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FilterStats {
    /// Keys in it.
    pub len: u64,
    /// Keys that it was built for.
    pub capacity: u64,
    /// The part of its slots that is taken.
    pub load_factor: f64,
    /// Bits of a fingerprint.
    pub fingerprint_bits: u32,
    /// The part of absent keys that it takes for present, at this load.
    pub expected_false_positive_rate: f64,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Fingerprints that it moved to make room.
    pub relocations: u64,
    /// The most of them for one key.
    pub longest_path: u64,
}

/// Keys that a filter refused.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Refusals {
    /// No relocation made room.
    pub full: u64,
    /// All slots of the key held its fingerprint.
    pub too_many_copies: u64,
}

/// A snapshot on disk.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SnapshotStats {
    /// When it was saved, in seconds since 1970.
    pub unix_seconds: u64,
    /// Its size.
    pub bytes: u64,
    /// From the request to the file on disk, in seconds; 0 if the list was opened from it.
    #[serde(serialize_with = "seconds")]
    pub took: Duration,
    /// The part of that in which writes waited, in seconds; 0 if the list was opened from it.
    #[serde(serialize_with = "seconds")]
    pub copy: Duration,
}

fn seconds<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}
