//! The filter without keys and hash functions: shards, stripes and the protocol, with all of its locks and memory
//! orderings.
//!
//! | operation               | locks                                  | bumps the version           | file      |
//! |-------------------------|----------------------------------------|-----------------------------|-----------|
//! | lookup                  | none                                   | no                          | lookup    |
//! | lookups of a block      | none                                   | no                          | block     |
//! | insert                  | the stripe of an empty slot            | no                          | insert    |
//! | ... unique              | the pair                               | no                          | insert    |
//! | ... by a path           | two stripes per hop, or three (unique) | at each relocation          | relocate  |
//! | ... refused as too many | the pair                               | no                          | pair      |
//! | ... refused as full     | stripes that others hold; or all       | no                          | refusal   |
//! | count                   | the pair                               | no                          | pair      |
//! | remove, remove_all      | the pair                               | if copies of the class stay | pair      |
//! | many inserts, removes   | all of the shard                       | like each by itself         | exclusive |
//! | clear                   | all of the shard                       | yes                         | exclusive |
//! | copy                    | all of the shard                       | no                          | copy      |
//!
//! DESIGN.md, "The protocol", proves case by case that this is enough.

#[expect(clippy::disallowed_types, reason = "a lock around tables of a filter that nobody else has")]
mod assembly;
mod batch;
mod block;
mod bucket_array;
#[cfg(all(test, not(cuckoo_model)))]
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
#[cfg(all(test, not(cuckoo_model)))]
mod tick_tests;
mod window;
mod writers;

#[cfg(feature = "snapshot")]
pub(crate) use self::{
    block::{LookupBatch, contains_each_in},
    growing::layout_of,
    lookup::{Contains, contains_in},
    probe::{Positions, Probed, Shape},
    stripe::Watch,
};
pub(crate) use assembly::{Assembly, Unfilled, fill_alone};
pub(crate) use batch::{Answers, Counted};
pub(crate) use block::{BLOCK, Next};
pub(crate) use exclusive::{Exclusive, KEYS_UNDER_LOCKS};
pub(crate) use filter::RawFilter;
pub(crate) use flat::Flat;
pub(crate) use growing::Growing;
#[cfg(any(all(test, cuckoo_loom), all(feature = "shared", target_os = "linux")))]
pub(crate) use observed::Observed;
pub(crate) use owner::Fixed;
pub(crate) use pair::{IfPresent, Put};
pub(crate) use shard::Shard;
pub(crate) use shards::Shards;
#[cfg(all(test, cuckoo_loom))]
pub(crate) use slots::Tagged;
pub(crate) use slots::{Bare, SlotKind, Slots, Tagging};
#[cfg(all(feature = "shared", target_os = "linux"))]
pub(crate) use stripe::Stripe;
pub(crate) use window::rolling;
