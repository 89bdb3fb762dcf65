//! A concurrent cuckoo filter: a thread-safe approximate set with removal, in about 14 bits per key.
//!
//! `false` is certain; `true` is wrong at the requested rate, 0.1 % by default. Lookups take no lock and wait for no
//! writer.
//!
//! Use [`insert`](Filter::insert) for keys that will be removed: each inserted key has a copy of its own, so removing
//! it never removes the copy of another key. [`insert_unique`](Filter::insert_unique) stores a key only if it is
//! absent. A false positive then leaves a key without a copy, so do not remove keys that it admitted.
//!
//! ```
//! use concurrent_cuckoo_filter::CuckooFilter;
//!
//! let blocked = CuckooFilter::<String>::builder().capacity(100_000).false_positive_rate(0.001).build()?;
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
//! | [`CuckooFilter`] | a set: [`insert`](Filter::insert), [`insert_unique`](Filter::insert_unique), [`contains`](Filter::contains), [`remove`](Filter::remove) |
//! | [`ExpiringFilter`] | keys that expire: "was this key seen in the last 24 hours?" |
//! | [`CountingFilter`] | how often a key was added, ever or within a window |
//! | [`TaggedFilter`] | a small number beside each key: which list, which reason |
//! | [`Filter`] | the type behind these four aliases, with their common documentation: consistency, determinism, calls that may block |
//! | [`Builder`] | capacity, rate or width, hash function, time to live, memory in advance |
//! | [`hashed`](Filter::hashed) | the same filter with hashes in place of keys |
//! | batches | [`contains_batch`](Filter::contains_batch), [`insert_batch`](Filter::insert_batch), [`remove_batch`](Filter::remove_batch), on the calling thread |
//! | [`Bulk`] | [`par_insert`](Filter::par_insert), [`par_contains`](Filter::par_contains) and more, on the threads of rayon, with progress |
//! | snapshots | [`save`](Filter::save), [`load`](Filter::load), [`Snapshot`], [`SnapshotReader`]; [`merge_from`](Filter::merge_from) |
//! | parts | [`Layout`] and [`FilterPart`]: one filter built on several machines, each with the memory of its part; [`join`](Filter::join) |
//! | [`MappedFilter`], [`FilterView`] | snapshots queried in place: mapped files, and bytes in memory |
//! | hashing | [`DefaultHashBuilder`], [`StableHashBuilder`] for saved filters, [`WellMixed`], [`Prehashed`] |
//! | [`Config`], [`Stats`] | fixed properties; load and counters |
//!
//! Filters of all four kinds have a fixed size or grow. The guide in `docs/guide.md` of the repository has a table of the operations of each
//! kind; it covers sizes, persistence, async servers and limits.
//!
//! # Features
//! Features are additive. The first three are on by default.
//! - `rayon`: bulk operations on all cores, [`Bulk`] and all methods named `par_*`.
//! - `snapshot`: filters saved to files and bytes, and [`StableHashBuilder`].
//! - `mmap`: large tables on fresh pages of the system, huge pages where available, and with `snapshot`
//!   [`MappedFilter`].
//! - `shared`: `SharedFilter` and `SharedReader`, one filter shared by several processes, on Linux.
//! - `serde`: `Serialize` and `Deserialize` for filters, through a snapshot; `Serialize` for [`Stats`] and reports.
//!
//! Without features, filters have all operations on single keys and batches, [`Filter::merge_from`], [`FilterPart`] and
//! [`Stats`], with four dependencies: ahash, arrayvec, crossbeam-utils and parking_lot. This configuration also builds
//! for `wasm32-unknown-unknown`. That target provides no random seeds: choose them with
//! [`DefaultHashBuilder::with_seeds`].
// Without bulk operations, snapshots and shared filters, parts of the core are unused.
#![cfg_attr(
    not(all(feature = "rayon", feature = "snapshot", feature = "shared", target_os = "linux")),
    allow(dead_code, unused_imports)
)]
#![cfg_attr(docsrs, feature(doc_cfg))]
// clippy.toml: atomics and locks are used in one module.
#![deny(clippy::disallowed_types)]
// Models and schedules use some of the test helpers.
#![cfg_attr(cuckoo_model, allow(dead_code, unused_imports))]

mod builder;
#[cfg(feature = "rayon")]
mod bulk;
mod error;
mod filter;
mod hashing;
mod layout;
mod parts;
mod raw;
mod report;
#[cfg(feature = "serde")]
mod serde;
#[cfg(all(feature = "shared", target_os = "linux"))]
mod shared;
#[cfg(feature = "snapshot")]
mod snapshot;
mod stats;
mod sys;
#[cfg(feature = "snapshot")]
mod view;

pub use builder::Builder;
#[cfg(feature = "rayon")]
pub use bulk::Bulk;
#[cfg(all(feature = "shared", target_os = "linux"))]
pub use error::SharedError;
pub use error::{BuildError, InsertError, MergeError, PartError, SnapshotError, SnapshotPlace};
pub use filter::{CountingFilter, CuckooFilter, ExpiringFilter, Filter, TaggedFilter};
pub use hashing::{
    DefaultHashBuilder, DefaultHasher, Prehashed, PrehashedHasher, SavedHasher, WellMixed, WellMixedHasher,
};
#[cfg(feature = "snapshot")]
pub use hashing::{StableHashBuilder, StableHasher};
pub use parts::{FilterPart, Layout};
pub use report::{BulkReport, MergeReport, Refusal, RemoveReport};
#[cfg(all(feature = "shared", target_os = "linux"))]
pub use shared::{SharedFilter, SharedReader, SharedState};
#[cfg(feature = "snapshot")]
pub use snapshot::{DeltaReport, Snapshot, SnapshotHeader, SnapshotReader};
pub use stats::{Config, Stats};
#[cfg(all(feature = "mmap", feature = "snapshot"))]
pub use view::MappedFilter;
#[cfg(feature = "snapshot")]
pub use view::{FilterView, Viewed};

/// The kinds of filters, and the bounds of their operations.
pub mod kind {
    pub use crate::filter::key::{BatchKey, Dereferenced, Owned, Reference};
    pub use crate::filter::kind::{Counting, Expiring, Insert, Kind, Plain, Remove, Tagged, Timed, Timeless};
}

#[cfg(all(test, cuckoo_loom))]
#[path = "../loom-tests/mod.rs"]
#[allow(clippy::disallowed_types)]
mod loom_tests;

#[cfg(all(test, not(cuckoo_loom)))]
#[path = "../tests/internal/linearizability/mod.rs"]
#[allow(clippy::disallowed_types)]
mod linearizability;

#[cfg(all(test, not(cuckoo_model)))]
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
