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
//! | [`ExpiringFilter`] | keys that are forgotten after a time: "was it seen in the last 24 hours?" |
//! | [`CountingFilter`] | how often a key was added, for ever or within a window: a counter of a few bits beside each |
//! | [`TaggedFilter`] | which list, which reason: a tag of a few bits beside each |
//! | [`Builder`] | capacity, rate or width, hash function, memory beforehand |
//! | batches | [`contains_batch`](CuckooFilter::contains_batch), [`insert_batch`](CuckooFilter::insert_batch), [`remove_batch`](CuckooFilter::remove_batch), on the calling thread |
//! | [`Bulk`] | [`par_insert`](CuckooFilter::par_insert), [`par_insert_iter`](CuckooFilter::par_insert_iter), [`par_contains`](CuckooFilter::par_contains), [`par_remove`](CuckooFilter::par_remove), on rayon's threads, with progress |
//! | snapshots | [`save`](CuckooFilter::save), [`load`](CuckooFilter::load), [`Snapshot`], [`SnapshotReader`]; [`merge_from`](CuckooFilter::merge_from) |
//! | parts | [`Layout`] and [`FilterPart`]: one filter built on several machines, each with its part of the memory; [`join`](CuckooFilter::join) |
//! | [`MappedFilter`], [`FilterView`] | snapshots that are queried in place: files, mapped and shared by processes; bytes in the program |
//! | hashing | [`DefaultHashBuilder`], [`StableHashBuilder`] for saved filters, [`WellMixed`] |
//! | [`Stats`] | how full a filter is and what has happened in it |
//!
//! Filters of all four kinds are fixed in size or grow. The guide in `docs/guide.md` of the repository has a table of what each kind can
//! do; it leads through sizes, persistence and async servers, and lists the limits.
//!
//! # Features
//! All add to what there is without any. The first three are on by default.
//! - `rayon`: bulk operations on all cores, [`Bulk`] and all whose names begin with `par_`.
//! - `snapshot`: filters in files and in bytes, and [`StableHashBuilder`].
//! - `mmap`: large tables on fresh pages of the system, huge ones where it has them, and with `snapshot` [`MappedFilter`].
//! - `shared`: `SharedFilter` and `SharedReader`, one filter that processes share, on Linux.
//! - `serde`: `Serialize` and `Deserialize` for filters, by way of a snapshot; `Serialize` for [`Stats`] and reports.
//!
//! Without any, filters have all operations on one key and on batches, [`CuckooFilter::merge_from`], [`FilterPart`] and [`Stats`],
//! from four dependencies: ahash, arrayvec, crossbeam-utils and parking_lot. That builds for `wasm32-unknown-unknown`, too,
//! where no system gives random seeds: choose them, with [`DefaultHashBuilder::with_seeds`].
// Without bulk operations, snapshots and shared filters, less is used of the core.
#![cfg_attr(
    not(all(feature = "rayon", feature = "snapshot", feature = "shared", target_os = "linux")),
    allow(dead_code, unused_imports)
)]
#![cfg_attr(docsrs, feature(doc_cfg))]
// clippy.toml: atomics and locks have one room.
#![deny(clippy::disallowed_types)]
// Models and schedules use what they need of the tests' helpers.
#![cfg_attr(any(cuckoo_loom, cuckoo_shuttle), allow(dead_code, unused_imports))]

mod batch;
mod builder;
#[cfg(feature = "rayon")]
mod bulk;
mod clone;
mod error;
mod filter;
mod growth;
mod hashing;
mod layout;
mod merge;
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
mod tagged;
#[cfg(feature = "snapshot")]
mod view;

pub use builder::Builder;
#[cfg(feature = "rayon")]
pub use bulk::Bulk;
#[cfg(all(feature = "shared", target_os = "linux"))]
pub use error::SharedError;
pub use error::{BuildError, InsertError, InsertForError, MergeError, PartError, SnapshotError, SnapshotPlace};
pub use filter::CuckooFilter;
pub use hashing::{DefaultHashBuilder, DefaultHasher, SavedHasher, WellMixed, WellMixedHasher};
#[cfg(feature = "snapshot")]
pub use hashing::{StableHashBuilder, StableHasher};
pub use parts::{FilterPart, Layout};
pub use report::{BulkReport, MergeReport, Rejection, RemoveReport};
#[cfg(all(feature = "shared", target_os = "linux"))]
pub use shared::{SharedFilter, SharedReader, SharedState};
#[cfg(feature = "snapshot")]
pub use snapshot::{DeltaReport, Snapshot, SnapshotHeader, SnapshotReader};
pub use stats::Stats;
pub use tagged::{CountingBuilder, CountingFilter, ExpiringBuilder, ExpiringFilter, TaggedBuilder, TaggedFilter};
#[cfg(all(feature = "mmap", feature = "snapshot"))]
pub use view::MappedFilter;
#[cfg(feature = "snapshot")]
pub use view::{FilterView, Timeless, Viewed};

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
