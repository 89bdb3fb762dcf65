#![doc = include_str!("../README.md")]

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
mod loom_tests;

#[cfg(all(test, not(any(cuckoo_loom, cuckoo_shuttle))))]
mod stopped_writer_tests;

#[cfg(all(test, not(any(cuckoo_loom, cuckoo_shuttle))))]
mod killed_writer_tests;

#[cfg(all(test, not(any(cuckoo_loom, cuckoo_shuttle))))]
mod storm_tests;

#[cfg(all(test, not(any(cuckoo_loom, cuckoo_shuttle))))]
mod raced_lookup_tests;

#[cfg(all(test, not(cuckoo_loom)))]
mod histories_tests;
