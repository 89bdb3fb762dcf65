//! Models of the protocol: loom explores the interleavings of a few threads in the code that ships. `cargo xtask loom`
//! runs them all, and their teeth.
//!
//! Each model is a `Race`: a world that is built anew for each execution, and the steps of each thread in it. The results of the steps
//! and the final state must be those of some order of the steps without concurrency; these orders run first, by the same code.
//!
//! Each model prints the number of executions that loom explored, asserts nine tenths of the committed number, and asserts that each
//! of those results occurred: a model that explores a single interleaving would pass with every fault. Two rules keep loom exploring.
//! Reads under locks go through `sys::sync::load_locked`. And path searches, which read words that their thread writes later, are not
//! part of a model: paths are data, stale ones included. The exceptions are the search under all locks, which reads by `load_locked`
//! (exclusive), and a few models of whole insertions, where the order of the locks decides what the look without locks finds
//! (one_lock).
//!
//! | file              | hazards            | which threads run concurrently                                        |
//! |-------------------|--------------------|-----------------------------------------------------------------------|
//! | relocation        | H1, H6             | lookups; moves, stable neighbours in the same words                   |
//! | block             | H1                 | lookups in blocks; moves of one of the keys or of both                |
//! | equal_fingerprint | H2                 | lookups; insertion and removal of another key of the class            |
//! | paths             | H1, H4, H5         | lookups and removals; paths of two and three hops                     |
//! | writers           | H3, H4, H9         | insertions, removals, moves, counts                                   |
//! | one_lock          | H2, H3, H4, H9     | insertions under one lock; lookups and other single writers           |
//! | unique            | H4                 | `insert_unique`; itself and `insert`                                  |
//! | refused           | H14                | refusals without locks; moves, removals, insertions, tasks, splits    |
//! | visibility        |                    | writes of two keys, each by a thread that then asks for the other key |
//! | clear             | H7                 | clear; lookups, insertions                                            |
//! | copy              | H7                 | copies of a shard; lookups, all that changes it                       |
//! | growth            | (I), H1 to H7, H9  | splits of tables; lookups, batches and every writer, clears, copies   |
//! | exclusive         | H1, H2, H3, H4, H9 | tasks under all locks; lookups, single writers                        |
//! | tagged            | H10 to H13         | ticks and sweeps; lookups, insertions, renewals, relocations          |
//! | growing_tags      | (I), H10 to H13    | splits of tables with tags; ticks, lookups, batches, changes of tags  |
//! | windows           | H10 to H12         | additions, subtractions, lookups of counts; ticks, relocations        |
//!
//! The tables in `teeth` are faults: each entry breaks the code, and names the models that must then fail, and their message.

macro_rules! models {
    ($($(#[$doc:meta])* $name:ident => $model:expr;)+) => {
        $($(#[$doc])* #[test] fn $name() { $model; })+
    };
}

mod block;
mod clear;
mod copy;
mod equal_fingerprint;
mod exclusive;
mod growing_tags;
mod growth;
mod harness;
mod one_lock;
mod paths;
mod refused;
mod relocation;
mod tagged;
mod unique;
mod visibility;
mod windows;
mod writers;
