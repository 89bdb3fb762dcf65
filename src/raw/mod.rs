//! The filter without keys and hash functions: shards, stripes and the protocol. Everything that locks or names a memory
//! ordering is here.
//!
//! | operation               | locks                                | bumps the version           | file      |
//! |-------------------------|--------------------------------------|-----------------------------|-----------|
//! | lookup                  | none                                 | no                          | lookup    |
//! | lookups of a block      | none                                 | no                          | block     |
//! | insert                  | the stripe of an empty slot          | no                          | insert    |
//! | ... unique              | the pair                             | no                          | insert    |
//! | ... by a path           | two stripes a hop, or three (unique) | at each relocation          | relocate  |
//! | ... refused as too many | the pair                             | no                          | pair      |
//! | ... refused as full     | each stripe for a look; or all       | no                          | refusal   |
//! | count                   | the pair                             | no                          | pair      |
//! | remove, remove_all      | the pair                             | if copies of the class stay | pair      |
//! | many inserts, removes   | all of the shard                     | as each by itself           | exclusive |
//! | clear                   | all of the shard                     | yes                         | exclusive |
//! | copy                    | all of the shard                     | no                          | copy      |
//!
//! Why this is enough is argued case by case in DESIGN.md, "The protocol".

#[expect(clippy::disallowed_types, reason = "a lock around tables of a filter that nobody else has")]
mod assembly;
mod batch;
mod block;
mod bucket_array;
#[cfg(test)]
mod bucket_array_tests;
mod copy;
mod counters;
mod epoch;
mod exclusive;
mod filter;
mod flat;
mod growing;
mod insert;
mod intent;
mod locks;
mod lookup;
#[cfg(any(all(test, cuckoo_loom), all(feature = "shared", target_os = "linux")))]
mod observed;
mod owner;
mod pair;
mod poison;
pub(crate) mod probe;
#[cfg(all(feature = "shared", target_os = "linux"))]
mod recovery;
mod refusal;
mod relocate;
mod shard;
mod shards;
mod slots;
mod stripe;
mod tick;
#[cfg(test)]
mod tick_tests;
mod window;
mod writers;

pub(crate) use assembly::{Assembly, Unfilled, fill_alone};
pub(crate) use batch::{Answers, Counted};
#[cfg(feature = "snapshot")]
pub(crate) use block::contains_each_in;
pub(crate) use block::{BLOCK, Next};
pub(crate) use exclusive::{Exclusive, KEYS_UNDER_LOCKS};
pub(crate) use filter::RawFilter;
pub(crate) use flat::Flat;
pub(crate) use growing::Growing;
#[cfg(feature = "snapshot")]
pub(crate) use growing::layout_of;
#[cfg(feature = "snapshot")]
pub(crate) use lookup::{Contains, contains_in};
#[cfg(any(all(test, cuckoo_loom), all(feature = "shared", target_os = "linux")))]
pub(crate) use observed::Observed;
pub(crate) use owner::Fixed;
pub(crate) use pair::{IfPresent, Put};
#[cfg(feature = "snapshot")]
pub(crate) use probe::{Positions, Probed, Shape};
#[cfg(all(feature = "shared", target_os = "linux"))]
pub(crate) use recovery::Unrecoverable;
pub(crate) use shard::Shard;
pub(crate) use shards::Shards;
#[cfg(all(test, cuckoo_loom))]
pub(crate) use slots::Tagged;
pub(crate) use slots::{Bare, SlotKind, Slots, Tagging};
#[cfg(feature = "snapshot")]
pub(crate) use slots::{Compare, Fingerprints};
#[cfg(all(feature = "shared", target_os = "linux"))]
pub(crate) use stripe::Stripe;
pub(crate) use window::rolling;
