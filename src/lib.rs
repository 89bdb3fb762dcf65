//! A concurrent cuckoo filter: an approximate set of keys with removal, shared by all the threads of a program.
//!
//! "No" is certain; "yes" is wrong as rarely as you ask for, once in a thousand times by default, in about 14 bits a key.
//! Lookups take no lock and wait for no writer. Everything starts at [`CuckooFilter`].
//!
//! ```
//! use concurrent_cuckoo_filter::CuckooFilter;
//!
//! let blocked = CuckooFilter::<str>::builder().capacity(100_000).false_positive_rate(0.001).build()?;
//! std::thread::scope(|scope| {
//!     scope.spawn(|| blocked.insert("mailinator.com")); // every method takes &self
//!     scope.spawn(|| blocked.contains("example.com"));
//! });
//! assert!(blocked.contains("mailinator.com"));
//! assert!(blocked.remove("mailinator.com"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | | |
//! |---|---|
//! | [`CuckooFilter`] | one key at a time: [`insert`](CuckooFilter::insert), [`insert_unique`](CuckooFilter::insert_unique), [`contains`](CuckooFilter::contains), [`count`](CuckooFilter::count), [`remove`](CuckooFilter::remove); twins that end in `_hash`; what may block, and what is exact |
//! | [`Builder`] | capacity, rate or width, hash function, memory beforehand |
//! | batches | [`contains_batch`](CuckooFilter::contains_batch), [`insert_batch`](CuckooFilter::insert_batch), [`remove_batch`](CuckooFilter::remove_batch), on the calling thread |
//! | [`Bulk`] | [`par_insert`](CuckooFilter::par_insert), [`par_insert_iter`](CuckooFilter::par_insert_iter), [`par_contains`](CuckooFilter::par_contains), [`par_remove`](CuckooFilter::par_remove), on rayon's threads, with progress |
//! | snapshots | [`save`](CuckooFilter::save), [`load`](CuckooFilter::load), [`Snapshot`], [`SnapshotReader`]; filters built in parts; [`merge_from`](CuckooFilter::merge_from) |
//! | hashing | [`DefaultHashBuilder`], [`StableHashBuilder`] for saved filters, [`WellMixed`] |
//! | [`Stats`] | how full a filter is and what has happened in it |
//!
//! The guide in `docs/guide.md` of the repository leads through sizes, persistence and async servers, and lists the limits.
//!
//! # Features
//! - `serde`: `Serialize` and `Deserialize` for filters, by way of a snapshot. Off by default.
#![cfg_attr(docsrs, feature(doc_cfg))]
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
mod merge;
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

/// The code in the README and the guide, as tests.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../README.md")]
    struct Readme;

    #[doc = include_str!("../docs/guide.md")]
    struct Guide;
}
