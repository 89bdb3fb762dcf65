//! The functions that are fuzzed. Nothing here depends on the fuzzer, so `examples/replay.rs` runs saved inputs without it.

pub mod snapshot;

use concurrent_cuckoo_filter::{CuckooFilter, StableHashBuilder};
use testkit::sequence;

type Filter = CuckooFilter<u64, StableHashBuilder>;

/// Runs the bytes as a sequence of operations on a plain filter, and as one on a filter with tags.
pub fn operations(bytes: &[u8]) {
    sequence::run(bytes);
    sequence::tagged::run(bytes);
}
