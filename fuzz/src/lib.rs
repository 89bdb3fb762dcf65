//! What is fuzzed: `testkit::sequence` and `snapshot`. The targets in `fuzz_targets` hand over their bytes, and nothing
//! here knows of the fuzzer: what it finds can be run again by itself (`examples/replay.rs`).

pub mod snapshot;

use concurrent_cuckoo_filter::{CuckooFilter, StableHashBuilder};
use testkit::sequence;

type Filter = CuckooFilter<u64, StableHashBuilder>;

/// Runs the bytes as a sequence of operations on a plain filter, and as one on a filter with tags.
pub fn operations(bytes: &[u8]) {
    sequence::run(bytes);
    sequence::tagged::run(bytes);
}
