#![doc = include_str!("../README.md")]
// clippy.toml: atomics and locks have one room.
#![deny(clippy::disallowed_types)]
// Models and schedules use what they need of the tests' helpers.
#![cfg_attr(any(cuckoo_loom, cuckoo_shuttle), allow(dead_code, unused_imports))]

mod batch;
mod builder;
mod bulk;
mod error;
mod filter;
mod hashing;
mod layout;
mod raw;
mod report;
mod snapshot;
mod stats;
mod sys;

pub use builder::Builder;
pub use bulk::Bulk;
pub use error::{BuildError, InsertError, MergeError, SnapshotError, SnapshotPlace};
pub use filter::CuckooFilter;
pub use hashing::{
    DefaultHashBuilder, DefaultHasher, SavedHasher, StableHashBuilder, StableHasher, WellMixed, WellMixedHasher,
};
pub use report::{BulkReport, MergeReport, Rejection, RemoveReport};
pub use snapshot::{Snapshot, SnapshotHeader, SnapshotReader};
pub use stats::Stats;

#[cfg(all(test, cuckoo_loom))]
#[path = "../loom-tests/mod.rs"]
#[allow(clippy::disallowed_types)]
mod loom_tests;

#[cfg(all(test, not(cuckoo_loom)))]
#[path = "../tests/internal/mod.rs"]
#[allow(clippy::disallowed_types)]
mod internal;
