//! The feature `serde`: by way of it a filter is the one that its snapshot is, and what a snapshot refuses is refused.

use concurrent_cuckoo_filter::{CuckooFilter, DefaultHashBuilder, SavedHasher, StableHashBuilder};
use rmp_serde::{from_slice, to_vec};
use serde::de::Deserialize;
use serde::de::value::{BytesDeserializer, Error, SeqDeserializer};
use serde_json::{from_str, from_value, json, to_string, to_value};
use std::fmt::Debug;
use std::hash::{BuildHasher, Hash};

type Stable<K> = CuckooFilter<K, StableHashBuilder>;

fn stable() -> StableHashBuilder {
    StableHashBuilder::with_seeds(1, 2)
}

fn written<K: ?Sized + 'static, S: SavedHasher>(filter: &CuckooFilter<K, S>) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.write_to(&mut bytes).expect("memory takes all");
    bytes
}

/// Both formats give what the bytes of the snapshot give.
fn round_trips<K, S>(filter: &CuckooFilter<K, S>, keys: &[K])
where
    K: Hash + 'static,
    S: SavedHasher + Clone,
{
    let bytes = written(filter);
    let read = CuckooFilter::<K, S>::read_from(&bytes[..], filter.hasher().clone()).expect("it was just written");
    assert_eq!(written(&read), bytes);

    let binary = to_vec(filter).expect("it can be saved");
    assert!(binary.ends_with(&bytes), "the bytes are not those of the snapshot");
    let text = to_string(filter).expect("it can be saved");
    assert_eq!(from_str::<Vec<u8>>(&text).expect("an array of bytes"), bytes);

    for loaded in [from_slice(&binary).expect("whole"), from_str::<CuckooFilter<K, S>>(&text).expect("whole")] {
        assert_eq!(written(&loaded), bytes);
        assert_eq!((loaded.len(), loaded.capacity()), (filter.len(), filter.capacity()));
        for key in keys {
            assert!(loaded.contains(key));
            assert!(loaded.remove(key));
        }
        assert_eq!(loaded.len() + keys.len(), filter.len());
    }
}

fn keys(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{number}.example")).collect()
}

fn filled<S>(capacity: usize, bits: u32, hasher: S) -> (CuckooFilter<String, S>, Vec<String>)
where
    S: BuildHasher,
{
    let filter = CuckooFilter::<String>::builder().capacity(capacity).fingerprint_bits(bits).hasher(hasher).build();
    let (filter, keys) = (filter.expect("a possible filter"), keys(capacity));
    for key in &keys {
        filter.insert(key).expect("below the capacity");
    }
    (filter, keys)
}

#[test]
fn both_routes_give_an_equal_filter() {
    for bits in [6, 8, 13, 16, 27, 32] {
        for capacity in [0, 1, 10, 1000] {
            let (filter, keys) = filled(capacity, bits, stable());
            round_trips(&filter, &keys);
            let (filter, keys) = filled(capacity, bits, DefaultHashBuilder::default());
            round_trips(&filter, &keys);
        }
    }
    // Of several shards, and longer than any buffer.
    let (filter, keys) = filled(300_000, 6, stable());
    assert!(filter.config().shards > 1);
    round_trips(&filter, &keys[..10]);
    let builder = CuckooFilter::<String>::builder().capacity(10).max_capacity(10).hasher(stable());
    let (filter, keys) = (builder.build().expect("a possible filter"), keys[..30].to_vec());
    keys.iter().for_each(|key| filter.insert(key).expect("it grows"));
    assert_eq!(filter.stats().tables, 2);
    round_trips(&filter, &keys);
}

#[test]
fn filters_within_other_values() {
    let (filter, keys) = filled(100, 13, stable());
    let (offset, loaded, name): (u32, Stable<String>, String) =
        from_value(to_value((17, &filter, "list")).expect("it can be saved")).expect("whole");
    assert_eq!((offset, name.as_str()), (17, "list"));
    assert!(keys.iter().all(|key| loaded.contains(key)));
    let two: Vec<Stable<String>> =
        from_slice(&to_vec(&vec![&filter, &loaded]).expect("it can be saved")).expect("whole");
    assert!(two.iter().all(|filter| written(filter) == written(&loaded)));
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
    let (filter, _) = filled(5, 6, stable());
    let bytes = written(&filter);
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
    let mut without_keys = Vec::new();
    filter.snapshot().without_seeds().write_to(&mut without_keys).expect("memory takes all");
    refused::<str, StableHashBuilder>(&without_keys, "the snapshot does not contain the seeds");
}

#[test]
fn other_values_are_errors() {
    fn refuses(text: &str) {
        assert!(from_str::<Stable<String>>(text).is_err(), "{text}");
    }
    let bytes = written(&filled(5, 6, stable()).0);
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
    #[derive(Clone, Debug)]
    struct Keyless;

    impl BuildHasher for Keyless {
        type Hasher = std::hash::DefaultHasher;

        fn build_hasher(&self) -> Self::Hasher {
            std::hash::DefaultHasher::new()
        }
    }

    impl SavedHasher for Keyless {
        const NAME: &'static str = "keyless";
    }

    let (filter, _) = filled(5, 6, Keyless);
    let error = to_string(&filter).expect_err("it could not be read").to_string();
    assert!(error.contains("\"keyless\""), "{error}");
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
