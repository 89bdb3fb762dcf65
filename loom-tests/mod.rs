//! Models of the protocol, explored by loom through the code that ships. Run them all, and their teeth, with `ci/loom.sh`.
//!
//! Each model prints how many executions loom explored and asserts 90 % of the committed number, and the outcomes that
//! must have been seen: a model that explores a single interleaving passes with every fault in it. What makes them
//! explore is `sync::load_locked`; what keeps them small is that the path search, which reads words that its thread
//! writes later, stands outside: paths are data here, stale ones included. Only the search under all locks, which reads by
//! `load_locked`, is inside (alone).
//!
//! | file              | hazards        | what meets what                                                |
//! |-------------------|----------------|----------------------------------------------------------------|
//! | relocation        | H1, H6         | look-ups, batches', too; moves, stable neighbours in the words |
//! | equal_fingerprint | H2             | look-ups, insertion and removal of another key of the class    |
//! | paths             | H1, H4, H5     | look-ups and removals, paths of two and three hops             |
//! | writers           | H3, H4, H9     | insertions, removals, moves, counts                            |
//! | unique            | H4             | `insert_unique` against itself and `insert`                    |
//! | visibility        |                | writes of two keys, each by a thread that then asks for the other |
//! | clear             | H7             | clear, look-ups, insertions                                    |
//! | copy              | H7             | copies of a shard, look-ups, all who change it                 |
//! | alone             | H1, H2, H3, H4 | tasks under all locks, look-ups, single writers                |
//!
//! The files in `teeth` are faults: each is a patch that breaks the code by hand, and names the models that must then
//! fail and what they say.

mod alone;
mod clear;
mod copy;
mod equal_fingerprint;
mod harness;
mod paths;
mod relocation;
mod unique;
mod visibility;
mod writers;
