//! Bytes read as a snapshot: `cargo +nightly fuzz run snapshot`.

#![no_main]

use concurrent_cuckoo_filter_fuzz::snapshot;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| snapshot::run(bytes));
