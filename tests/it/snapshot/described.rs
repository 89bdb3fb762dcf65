//! docs/format.md says what there is: its example is what is written, and a reader made from it alone answers as the
//! filter does.

use concurrent_cuckoo_filter::{CuckooFilter, StableHashBuilder};
use std::fmt::Write;
use testkit::format::{hash_of_text, may_hold, place};

type Filter = CuckooFilter<str, StableHashBuilder>;

const PAGE: &str = include_str!("../../../docs/format.md");
const KEYS: [&str; 5] = ["key", "one", "two", "a.example", "seventeen letters"];

fn filter(capacity: usize, bits: u32) -> Filter {
    let builder = CuckooFilter::builder().capacity(capacity).fingerprint_bits(bits);
    builder.hasher(StableHashBuilder::with_keys(1, 2)).build().unwrap()
}

fn bytes_of(filter: &Filter) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.snapshot().metadata(b"offset 17").write_to(&mut bytes).unwrap();
    bytes
}

/// Written anew, the page would say this. The probe has a number of arrays as they lie in memory.
#[cfg(all(target_pointer_width = "64", target_endian = "little"))]
#[test]
fn the_example_is_what_is_written() {
    let filter = filter(5, 8);
    KEYS.iter().for_each(|key| filter.insert(key).unwrap());
    let bytes = bytes_of(&filter);
    let mut expected = String::new();
    for key in KEYS {
        let hash = hash_of_text([1, 2], key);
        let place = place(&bytes, hash).unwrap();
        let ([first, second], fingerprint) = (place.buckets, place.fingerprint);
        writeln!(expected, "| `{key}` | `{hash:016x}` | {} | `{fingerprint:02x}` | {first}, {second} |", place.shard)
            .unwrap();
    }
    expected.push_str("\n```hex\n");
    for (line, sixteen) in bytes.chunks(16).enumerate() {
        let in_hex: Vec<String> = sixteen.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(expected, "{:04x}  {}", line * 16, in_hex.join(" ")).unwrap();
    }
    assert!(PAGE.contains(&expected), "docs/format.md should say:\n{expected}");
}

#[test]
fn the_keys_of_the_example_are_in_its_bytes() {
    let hex = PAGE.split("```hex\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let in_hex = hex.lines().flat_map(|line| line.split_whitespace().skip(1));
    let bytes: Vec<u8> = in_hex.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    let loaded = Filter::read_from(&bytes[..], StableHashBuilder::with_keys(1, 2)).unwrap();
    assert_eq!(loaded.len(), KEYS.len());
    for key in KEYS {
        assert!(loaded.contains(key) && may_hold(&bytes, hash_of_text([1, 2], key)).unwrap(), "{key:?}");
    }
}

#[test]
fn a_reader_that_was_made_from_the_page_answers_as_the_filter() {
    for (capacity, bits) in
        [(1, 4), (20, 5), (100, 8), (300, 13), (300, 16), (300, 17), (100, 31), (100, 32), (260_000, 4)]
    {
        let filter = filter(capacity, bits);
        let keys: Vec<String> = (0..200).map(|number| format!("{number} {}", "x".repeat(number % 23))).collect();
        keys.iter().take(capacity.min(100)).for_each(|key| filter.insert(key).unwrap());
        let bytes = bytes_of(&filter);
        for key in &keys {
            let hash = hash_of_text([1, 2], key);
            assert_eq!(hash, filter.hash(key));
            assert_eq!(place(&bytes, hash).unwrap().shard, filter.shard_of(key) as u64);
            assert_eq!(may_hold(&bytes, hash), Some(filter.contains(key)), "{key:?} at {bits} bits");
        }
    }
}
