//! Filters whose slots have a number beside the fingerprint: ticks left to live, a count, a tag of the user's. The same
//! shards, stripes and versions as without; slots with a tag (`layout/tags`), and an epoch that says which tags are dead.
//!
//! | operation             | locks                                | bumps the version           | file   |
//! |-----------------------|--------------------------------------|-----------------------------|--------|
//! | lookup, values        | none                                 | no                          | lookup |
//! | put                   | the pair                             | no                          | put    |
//! | ... by a path         | two stripes a hop, three at the last | at each relocation          | put    |
//! | ... refused as full   | all of the shard                     | no                          | put    |
//! | raise, replace        | the pair                             | no                          | pair   |
//! | remove                | the pair                             | if copies of the class stay | pair   |
//! | copy                  | all of the shard                     | no                          | copy   |
//! | sweep, advance        | one stripe after the other           | no                          | tick   |
//!
//! Two rules beyond those of `raw`. A writer reads the epoch after it holds all its locks: `Held` is the only way to it.
//! And whoever asks whether a class is absent, without locks, looks at the epoch before and after. DESIGN.md, "Time in the
//! slot", has the cases.

mod copy;
mod epoch;
mod filter;
mod lookup;
mod pair;
mod put;
mod tick;

#[cfg(test)]
mod tests;

pub(crate) use filter::{Tagged, TaggedShard};
pub(crate) use pair::{IfPresent, Put};
