//! What is fuzzed. The targets in `fuzz_targets` hand over their bytes, and nothing here knows of the fuzzer: what it
//! finds can be run again by itself (`examples/replay.rs`).

pub mod operations;
pub mod snapshot;

mod format;
mod input;

use concurrent_cuckoo_filter::{CuckooFilter, StableHashBuilder};

type Filter = CuckooFilter<u64, StableHashBuilder>;
