//! Sequences of operations: `cargo +nightly fuzz run operations`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::sequence;

fuzz_target!(|bytes: &[u8]| {
    sequence::run(bytes);
    sequence::tagged::run(bytes);
});
