//! Sequences of operations: `cargo +nightly fuzz run operations`.

#![no_main]

use concurrent_cuckoo_filter_fuzz::operations;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| operations(bytes));
