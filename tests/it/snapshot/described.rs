//! docs/format.md describes the actual format: its example has the written bytes, and a reader made from the description alone
//! gives the answers of the filter.

use crate::support::{StableOf, bytes_of, stable_growing, stable_of};
use std::fmt::Write;
use testkit::format::{hash_of_text, may_hold, place};

type Filter = StableOf<str>;

const PAGE: &str = include_str!("../../../docs/format.md");
const KEYS: [&str; 5] = ["key", "one", "two", "a.example", "seventeen letters"];
const GROWING: [&str; 5] = ["key 0", "key 1", "key 2", "key 3", "key 4"];

fn growing(capacity: usize, max_capacity: usize, bits: u32, keys: usize) -> Filter {
    let filter: Filter = stable_growing(capacity, max_capacity, bits);
    (0..keys).for_each(|number| filter.insert(&format!("key {number}")).unwrap());
    filter
}

/// The text of the page for these keys and all bytes.
fn in_words(bytes: &[u8], keys: &[&str]) -> String {
    let mut said = String::new();
    for key in keys {
        let hash = hash_of_text([1, 2], key);
        let place = place(bytes, hash).unwrap();
        let ([first, second], fingerprint) = (place.buckets, place.fingerprint);
        writeln!(said, "| `{key}` | `{hash:016x}` | {} | `{fingerprint:02x}` | {first}, {second} |", place.shard)
            .unwrap();
    }
    said.push_str("\n```hex\n");
    for (line, sixteen) in bytes.chunks(16).enumerate() {
        let in_hex: Vec<String> = sixteen.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(said, "{:04x}  {}", line * 16, in_hex.join(" ")).unwrap();
    }
    said
}

/// The example, as it would be written now. The probe has a number that depends on the layout of arrays in memory.
#[cfg(all(target_pointer_width = "64", target_endian = "little"))]
#[test]
fn the_examples_are_what_is_written() {
    let filter: Filter = stable_of(5, 8);
    KEYS.iter().for_each(|key| filter.insert(key).unwrap());
    let growing = growing(5, 10, 8, 23);
    assert_eq!(growing.stats().tables, 2);
    let bytes = [bytes_of(&filter, b"offset 17"), bytes_of(&growing, b"")];
    for (bytes, keys) in bytes.iter().zip([&KEYS, &GROWING]) {
        let expected = in_words(bytes, keys);
        assert!(PAGE.contains(&expected), "docs/format.md should say:\n{expected}");
    }
}

#[test]
fn a_reader_that_was_made_from_the_page_answers_as_the_filter() {
    for (capacity, bits) in
        [(1, 4), (20, 5), (100, 8), (300, 13), (300, 16), (300, 17), (100, 31), (100, 32), (260_000, 4)]
    {
        let filter: Filter = stable_of(capacity, bits);
        let keys: Vec<String> = (0..200).map(|number| format!("{number} {}", "x".repeat(number % 23))).collect();
        keys.iter().take(capacity.min(100)).for_each(|key| filter.insert(key).unwrap());
        let bytes = bytes_of(&filter, b"offset 17");
        for key in &keys {
            let hash = hash_of_text([1, 2], key);
            assert_eq!(hash, filter.hash(key));
            assert_eq!(place(&bytes, hash).unwrap().shard, filter.shard_of(key) as u64);
            assert_eq!(may_hold(&bytes, hash), Some(filter.contains(key)), "{key:?} at {bits} bits");
        }
    }
}

#[test]
fn a_reader_that_was_made_from_the_page_answers_as_a_filter_that_grows() {
    for (capacity, max_capacity, bits, keys) in
        [(5, 10, 8, 23), (100, 100, 13, 128), (1_000, 120_000, 14, 80_000), (1_000, 60_000, 29, 40_000)]
    {
        let filter = growing(capacity, max_capacity, bits, keys);
        assert!(filter.stats().tables > 1);
        let bytes = bytes_of(&filter, b"");
        for number in (0..2 * keys).step_by(1 + keys / 50) {
            let key = format!("key {number}");
            assert_eq!(may_hold(&bytes, filter.hash(&key)), Some(filter.contains(&key)), "{key:?} at {bits} bits");
        }
    }
}
