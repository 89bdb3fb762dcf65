//! The feature `serde`: by way of it a filter is the one that its snapshot is, and what a snapshot refuses is refused.

use crate::support::{self, Own, StableOf as Stable, hasher};
use concurrent_cuckoo_filter::{CuckooFilter, DefaultHashBuilder, SavedHasher, StableHashBuilder};
use rmp_serde::{from_slice, to_vec};
use serde::de::Deserialize;
use serde::de::value::{BytesDeserializer, Error, SeqDeserializer};
use serde_json::{from_str, from_value, json, to_string, to_value};
use std::fmt::Debug;
use std::hash::BuildHasher;
use testkit::written;

fn bytes_of<K: ?Sized + 'static, S: SavedHasher>(filter: &CuckooFilter<K, S>) -> Vec<u8> {
    support::bytes_of(filter, b"")
}

/// Both formats give what the bytes of the snapshot give: a filter with the same bytes, and so with the same answers.
fn round_trips<K: 'static, S: SavedHasher + Clone>(filter: &CuckooFilter<K, S>) {
    let bytes = bytes_of(filter);
    let read = CuckooFilter::<K, S>::read_from(&bytes[..], filter.hasher().clone()).expect("it was just written");
    assert_eq!(bytes_of(&read), bytes);

    let binary = to_vec(filter).expect("it can be saved");
    assert!(binary.ends_with(&bytes), "the bytes are not those of the snapshot");
    let text = to_string(filter).expect("it can be saved");
    assert_eq!(from_str::<Vec<u8>>(&text).expect("an array of bytes"), bytes);

    for loaded in [from_slice(&binary).expect("whole"), from_str::<CuckooFilter<K, S>>(&text).expect("whole")] {
        assert_eq!(bytes_of(&loaded), bytes);
        assert_eq!((loaded.len(), loaded.capacity()), (filter.len(), filter.capacity()));
    }
}

fn keys(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{number}.example")).collect()
}

fn filled<S: BuildHasher>(capacity: usize, bits: u32, hasher: S) -> CuckooFilter<String, S> {
    let filter = CuckooFilter::<String>::builder().capacity(capacity).fingerprint_bits(bits).hasher(hasher).build();
    let filter = filter.expect("a possible filter");
    keys(capacity).iter().for_each(|key| filter.insert(key).expect("below the capacity"));
    filter
}

#[test]
fn both_routes_give_an_equal_filter() {
    for bits in [6, 8, 13, 16, 27, 32] {
        for capacity in [0, 1, 10, 1000] {
            round_trips(&filled(capacity, bits, hasher()));
            round_trips(&filled(capacity, bits, DefaultHashBuilder::default()));
        }
    }
    // Of several shards, and longer than any buffer.
    let filter = filled(300_000, 6, hasher());
    assert!(filter.config().shards > 1);
    round_trips(&filter);
    let builder = CuckooFilter::<String>::builder().capacity(10).max_capacity(10).hasher(hasher());
    let filter = builder.build().expect("a possible filter");
    keys(30).iter().for_each(|key| filter.insert(key).expect("it grows"));
    assert_eq!(filter.stats().tables, 2);
    round_trips(&filter);
}

#[test]
fn filters_within_other_values() {
    let filter = filled(100, 13, hasher());
    let (offset, loaded, name): (u32, Stable<String>, String) =
        from_value(to_value((17, &filter, "list")).expect("it can be saved")).expect("whole");
    assert_eq!((offset, name.as_str()), (17, "list"));
    assert!(keys(100).iter().all(|key| loaded.contains(key)));
    let two: Vec<Stable<String>> =
        from_slice(&to_vec(&vec![&filter, &loaded]).expect("it can be saved")).expect("whole");
    assert!(two.iter().all(|filter| bytes_of(filter) == bytes_of(&loaded)));
}

/// Checks that both kinds of formats refuse the bytes, and pass on why.
fn refused<K: ?Sized + 'static, S: SavedHasher + Debug>(bytes: &[u8], why: &str) {
    let check = |error: Error| assert!(error.to_string().contains(why), "{error} is not: {why}");
    check(CuckooFilter::<K, S>::deserialize(BytesDeserializer::new(bytes)).expect_err(why));
    check(CuckooFilter::<K, S>::deserialize(SeqDeserializer::new(bytes.iter().copied())).expect_err(why));
    let error = from_value::<CuckooFilter<K, S>>(json!(bytes)).expect_err(why);
    assert!(error.to_string().contains(why), "{error} is not: {why}");
    assert!(from_slice::<CuckooFilter<K, S>>(&to_vec(&ByteSlice(bytes)).expect("bytes")).is_err());
}

/// Serialized as bytes; a slice is a sequence.
struct ByteSlice<'a>(&'a [u8]);

impl serde::Serialize for ByteSlice<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

#[test]
fn what_is_wrong_is_told() {
    let filter = filled(5, 6, hasher());
    let bytes = bytes_of(&filter);
    refused::<str, StableHashBuilder>(
        b"something else, of some length",
        "the data does not begin with the header of a snapshot",
    );
    for len in [0, 1, 300, bytes.len() - 1] {
        refused::<str, StableHashBuilder>(&bytes[..len], "the snapshot ends within");
    }
    refused::<str, StableHashBuilder>(&[&bytes[..], b"!"].concat(), "something follows the snapshot");
    refused::<u64, StableHashBuilder>(&bytes, "the snapshot has keys of type str");
    refused::<str, DefaultHashBuilder>(&bytes, "the snapshot was made with the hasher \"siphash-1-3\"");
    let mut damaged = bytes.clone();
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    refused::<str, StableHashBuilder>(&damaged, "the trailer of the snapshot is damaged");
    let without_keys = written(|to| filter.snapshot().without_seeds().write_to(to));
    refused::<str, StableHashBuilder>(&without_keys, "the snapshot does not contain the seeds");
}

#[test]
fn other_values_are_errors() {
    fn refuses(text: &str) {
        assert!(from_str::<Stable<String>>(text).is_err(), "{text}");
    }
    let bytes = bytes_of(&filled(5, 6, hasher()));
    for text in ["null", "true", "7", "\"text\"", "{}", "[]", "[[]]", "[192, ", "[192, 256]", "[192, -1]", "[192, 1.5]"]
    {
        refuses(text);
    }
    // The format's own error is told, not that the bytes ended.
    let mut elements = json!(bytes);
    elements[100] = json!("x");
    let error = from_value::<Stable<String>>(elements).expect_err("no byte").to_string();
    assert!(error.contains("invalid type: string \"x\""), "{error}");
    let error = from_str::<Stable<String>>("7").expect_err("no bytes").to_string();
    assert!(error.contains("the bytes of a snapshot of a filter"), "{error}");
    // A length that lies.
    for bytes_or_array in [0xc6, 0xdd] {
        assert!(from_slice::<Stable<String>>(&[bytes_or_array, 0xff, 0xff, 0xff, 0xff, 0xc0]).is_err());
    }
}

#[test]
fn a_hasher_without_keys_is_not_serialized() {
    let error = to_string(&filled(5, 6, <Own>::default())).expect_err("it could not be read").to_string();
    assert!(error.contains("\"own\""), "{error}");
}

#[test]
fn what_a_filter_tells_is_told_in_other_formats() {
    let filter = CuckooFilter::<u64>::with_capacity(100);
    let report = filter.insert_batch(&[7; 9]);
    let told = serde_json::to_value(&report).unwrap();
    let expected = serde_json::json!({
        "inserted": 8, "present": 0, "refused": [{ "index": 8, "error": "TooManyCopies" }], "refused_unlisted": 0
    });
    assert_eq!(told, expected);
    let told = serde_json::to_value(filter.remove_batch(&[7, 8])).unwrap();
    assert_eq!(told, serde_json::json!({ "removed": 1, "missing": [1], "missing_unlisted": 0 }));
    let told = serde_json::to_value(filter.stats()).unwrap();
    assert_eq!((&told["len"], &told["refused_too_many_copies"]), (&7.into(), &1.into()));
    assert_eq!(told.as_object().unwrap().len(), 13);
    let told = serde_json::to_value(filter.merge_from(&filter).unwrap()).unwrap();
    assert_eq!(told, serde_json::json!({ "inserted": 1, "present": 0, "refused": 6 }));
}
