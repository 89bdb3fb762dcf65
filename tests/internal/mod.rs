//! Tests of the protocol from inside, with hooks at the steps of an operation (`sys::steps`).
//!
//! | folder or file          | property                                                                                       |
//! |-------------------------|------------------------------------------------------------------------------------------------|
//! | stalled_writer          | a writer that is stopped at any step delays no lookup                                          |
//! | panic_safety            | a thread that dies at any step leaves the filter usable                                        |
//! | raced_lookup            | every kind of lookup finds a key that moves at each of its steps                               |
//! | few_threads             | keys that stay are found beside a writer, few enough for Miri                                  |
//! | contention              | how often lookups repeat where keys move without pause                                         |
//! | shared                  | a process killed at any step, or its successor, leaves a correct shared filter                 |
//! | face, bulk, stable_hash | unit tests of the faces, of the blocks of bulk operations, and of the stable hash function     |
//! | replaced_file           | unit tests of the replacement of files                                                         |
//! | linearizability         | histories of real threads and of shuttle's schedules, each explained by some order             |
//!
//! `linearizability` is a module of the crate's root, since schedules are built with it and without the others.

mod contention;
mod face;
mod few_threads;
mod panic_safety;
mod raced_lookup;
#[cfg(all(feature = "shared", target_os = "linux"))]
mod shared;
mod stalled_writer;
#[allow(unreachable_pub)]
pub(crate) mod thousands;
