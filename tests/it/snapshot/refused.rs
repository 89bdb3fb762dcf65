//! Bytes that are no snapshot, or not one of the requested filter, are refused, and the error states what is wrong and where. All
//! checksums match here.

use crate::support::{StableOf, bytes_of, hasher, stable_of};
use concurrent_cuckoo_filter::{
    CuckooFilter, DefaultHashBuilder, SavedHasher, SnapshotError, SnapshotPlace, SnapshotReader, StableHashBuilder,
};
use std::error::Error;
use std::hash::Hash;
use std::io::{self, ErrorKind, Write};
use testkit::format::Sealed;
use testkit::{assert_matches, written};

type Filter = StableOf<str>;

/// The bytes of a header without metadata: its fields, the names of the hash function and of the key type, zeros, the checksum.
const HEADER: usize = 256;

/// The bytes before the words of a shard, and of the trailer.
const HEAD: usize = 64;

/// 18 buckets of 52 bits in 15 words, with 24 spare bits behind the last one.
fn empty() -> Filter {
    stable_of(40, 13)
}

fn filter() -> Filter {
    let filter = empty();
    for number in 0..40 {
        filter.insert(&format!("key {number}")).unwrap();
    }
    filter
}

fn bytes() -> Vec<u8> {
    bytes_of(&filter(), b"")
}

fn sealed() -> Sealed {
    Sealed::new(bytes())
}

#[track_caller]
fn error<T>(result: Result<T, SnapshotError>) -> SnapshotError {
    let Err(error) = result else { panic!("this was to be refused") };
    let message = error.to_string();
    assert!(message.chars().next().is_some_and(|first| !first.is_uppercase()), "{message}");
    assert!(!message.ends_with('.') && !message.contains('\n'), "{message}");
    error
}

#[track_caller]
fn refusal(bytes: &[u8]) -> SnapshotError {
    error(Filter::read_from(bytes, hasher()))
}

#[test]
fn something_else_is_no_snapshot() {
    for other in [&b"The first line of some text."[..], &[0; 200], &bytes()[1..], &[bytes(), bytes()].concat()[7..]] {
        assert!(matches!(refusal(other), SnapshotError::NotASnapshot));
    }
    // Shorter than a header, too. (`kinds` cuts a snapshot off anywhere.)
    for short in [&b"h"[..], b"hi", b"text\n", b"\xc0cuckoo\r\n", b"fifteen letters"] {
        assert!(matches!(refusal(short), SnapshotError::NotASnapshot), "{short:?}");
    }
    let mut as_text = bytes();
    as_text[7] = b'\r';
    assert!(matches!(refusal(&as_text), SnapshotError::NotASnapshot));
}

#[test]
fn a_version_that_is_not_known() {
    for version in [0_u32, 1, 3, u32::MAX] {
        let error = refusal(&sealed().with(8, version.to_le_bytes()).bytes);
        assert_matches!(error, SnapshotError::UnknownVersion { found, known: 2, .. } if found == version);
        assert!(error.to_string().contains(&format!("format {version};")), "{error}");
    }
}

/// The field that the error must name, the number that it must contain, and changes.
type Case<N> = (&'static str, N, Vec<(usize, Vec<u8>)>);

fn check_header_fields<N: ToString>(cases: impl IntoIterator<Item = Case<N>>) {
    for (expected, number, changes) in cases {
        let number = number.to_string();
        let sealed = changes.iter().fold(sealed(), |sealed, (at, value)| sealed.with(*at, value));
        match refusal(&sealed.bytes) {
            SnapshotError::Invalid { place: SnapshotPlace::Header, field, found, .. } => {
                assert_eq!((field, found), (expected, number), "{changes:?}");
            }
            error => panic!("{expected}, {number}: {error:?}"),
        }
    }
}

/// A field of the header, its offset, its length in bytes, and values of which each is refused and named.
type Values<'a> = (&'static str, usize, usize, &'a [u64]);

fn check_values(cases: &[Values<'_>]) {
    check_header_fields(cases.iter().flat_map(|&(field, at, length, values)| {
        values.iter().map(move |&value| (field, value, vec![(at, value.to_le_bytes()[..length].to_vec())]))
    }));
}

const MAX_U32: u64 = u32::MAX as u64;

fn of_u32(at: usize, value: u32) -> (usize, Vec<u8>) {
    (at, value.to_le_bytes().into())
}

fn of_u64(at: usize, value: u64) -> (usize, Vec<u8>) {
    (at, value.to_le_bytes().into())
}

#[test]
fn a_size_that_no_filter_has() {
    let largest = || of_u32(40, 1 << 16);
    check_values(&[
        ("number of buckets", 40, 4, &[0, 1, 17, (1 << 16) + 2, MAX_U32 - 1]),
        ("bits of a fingerprint", 44, 4, &[3, 33]),
        ("size of a stripe", 48, 4, &[3, 17, MAX_U32]),
        ("capacity", 56, 8, &[73, u64::MAX]),
    ]);
    check_header_fields([
        // A filter with so few buckets per shard would have one shard.
        ("number of buckets", 18, vec![of_u64(16, 2)]),
        ("number of buckets", 1 << 15, vec![of_u64(16, 2), of_u32(40, 1 << 15)]),
        ("number of shards", 0, vec![of_u64(16, 0), largest()]),
        ("number of shards", 1 << 47, vec![of_u64(16, 1 << 47), largest()]),
        ("number of shards", u64::MAX, vec![of_u64(16, u64::MAX), largest()]),
    ]);
}

#[test]
fn a_part_that_no_filter_has() {
    check_header_fields([
        ("shards of this part", 0, vec![of_u64(32, 0)]),
        ("shards of this part", 2, vec![of_u64(32, 2)]),
        ("shards of this part", 1, vec![of_u64(24, 1)]),
        ("shards of this part", 1, vec![of_u64(24, u64::MAX)]),
        ("shards of this part", u64::MAX, vec![of_u64(24, 1), of_u64(32, u64::MAX)]),
    ]);
}

#[test]
fn a_wish_that_no_builder_takes() {
    let rates = [1.0, 1.5, -0.5, -0.0, 1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    let case = |rate: f64| ("false-positive rate", format!("{rate:?}"), vec![of_u64(64, rate.to_bits())]);
    check_header_fields(rates.map(case));
    let error = refusal(&sealed().with(64, f64::NAN.to_le_bytes()).bytes);
    assert_eq!(error.to_string(), "the header of the snapshot is not valid: false-positive rate is NaN");
}

#[test]
fn other_fields_that_no_writer_fills_so() {
    check_values(&[
        ("length of the header", 12, 4, &[0, 192, 255, 65_984]),
        // 0 although the seeds are present.
        ("flags", 136, 4, &[2, 1 << 31 | 1, 0]),
        ("length of the hasher's name", 140, 4, &[65]),
        ("length of the key type's name", 148, 4, &[65, MAX_U32]),
        ("length of the metadata", 144, 4, &[65_537, MAX_U32]),
    ]);
    check_header_fields([
        ("flags", 2, vec![of_u32(136, 2), (104, vec![0; 32])]),
        ("length of the hasher's name", MAX_U32, vec![of_u32(140, u32::MAX), of_u32(144, 12)]),
        // Longer texts than the header has room for, and shorter ones that leave too much.
        ("length of the header", 256, vec![of_u32(144, 47)]),
        ("length of the header", 256, vec![of_u32(144, 1000)]),
    ]);
    check_header_fields([
        ("hasher's name", "\"\\xffiphash-1-3\", not UTF-8", vec![(192, b"\xff".into())]),
        ("key type's name", "\"\\xfftr\", not UTF-8", vec![(203, b"\xff".into())]),
        // The bytes behind the texts are 0.
        ("end of the header", "not 0", vec![(206, vec![1])]),
        ("end of the header", "not 0", vec![(251, vec![1])]),
        ("end of the header", "not 0", vec![of_u32(148, 2)]),
    ]);
}

/// (`kinds` tests whole filters of another kind.)
#[test]
fn a_kind_that_no_filter_has() {
    check_values(&[
        // Only counts have deadlines that are renewed.
        ("kind of filter", 52, 4, &[16, 18, 20, 26, 12]),
        // Keys with tags do not expire.
        ("kind of filter", 52, 4, &[10, 32, MAX_U32]),
        ("bits of the reserve", 160, 1, &[1]),
        ("bits of a tag", 161, 1, &[3]),
        ("bits of a counter", 162, 1, &[4]),
        ("bits that extend buckets", 163, 1, &[1]),
        ("largest capacity", 168, 8, &[1]),
        ("time to live", 176, 8, &[9]),
        ("tick", 184, 8, &[1]),
    ]);
    check_header_fields([
        ("bits of a counter", 0, vec![of_u32(52, 8)]),
        ("bits of the reserve", 0, vec![of_u32(52, 1)]),
        ("bits of the reserve", 13, vec![of_u32(52, 1), (160, vec![13])]),
        // One doubling more than any filter has.
        ("bits of the reserve", 16, vec![of_u32(52, 1), of_u32(44, 30), (160, vec![16]), of_u64(168, 72)]),
        ("largest capacity", 39, vec![of_u32(52, 1), (160, vec![1]), of_u64(168, 39)]),
        ("bits of a tag", 0, vec![of_u32(52, 2)]),
        ("bits of a tag", 1, vec![of_u32(52, 2), (161, vec![1])]),
        ("bits of a tag", 17, vec![of_u32(52, 2), (161, vec![17])]),
        ("time to live", 0, vec![of_u32(52, 2), (161, vec![3])]),
        ("tick", 0, vec![of_u32(52, 2), (161, vec![3]), of_u64(176, 6)]),
        ("tick", 7, vec![of_u32(52, 2), (161, vec![3]), of_u64(176, 6), of_u64(184, 7)]),
        // Of 18 buckets, and of two shards.
        ("bits that extend buckets", 1, vec![of_u32(52, 1), (160, vec![3, 0, 0, 1]), of_u64(168, 72)]),
        (
            "bits that extend buckets",
            1,
            vec![of_u64(16, 2), of_u32(40, 1 << 16), of_u32(52, 1), (160, vec![3, 0, 0, 1]), of_u64(168, 72)],
        ),
        ("bits of a counter", 0, vec![of_u32(52, 4)]),
        ("bits of a counter", 17, vec![of_u32(52, 4), (162, vec![17])]),
        ("bits of a slot", 45, vec![of_u32(52, 6), (161, vec![16]), (162, vec![16]), of_u64(176, 6), of_u64(184, 1)]),
        // A growing filter with tags of one bit.
        ("bits of a slot", 31, vec![of_u32(52, 9), of_u32(44, 30), (160, vec![1]), (162, vec![1]), of_u64(168, 72)]),
    ]);
    check_header_fields([164, 167].map(|at| ("reserved bytes", "not 0", vec![(at, vec![1])])));
}

#[test]
fn a_header_of_another_length() {
    for wrong in [HEADER + 64, HEADER + 128] {
        let error = refusal(&sealed().with(12, (wrong as u32).to_le_bytes()).bytes);
        assert!(matches!(error, SnapshotError::Damaged { place: SnapshotPlace::Header, .. }), "{wrong}: {error:?}");
    }
    let error = refusal(&sealed().with(12, 65_920_u32.to_le_bytes()).bytes);
    assert!(matches!(error, SnapshotError::Truncated { place: SnapshotPlace::Header, .. }), "{error:?}");
}

#[test]
fn a_shard_that_no_writer_fills_so() {
    let stored = filter().len() as u64;
    let in_words = |number: u64| number.to_string();
    // The depth, and the bits of slots, fingerprints and tags, above a prefix of 0.
    let of_slots = |bits: [u8; 4]| u64::from(u32::from_le_bytes(bits)) << 32;
    for (expected, number, at, value) in [
        ("number of the shard", in_words(1), 8, 1_u64),
        ("number of the shard", in_words(u64::MAX), 8, u64::MAX),
        ("number of fingerprints", in_words(stored), 40, stored + 1),
        ("number of fingerprints", in_words(stored), 40, stored - 1),
        ("number of fingerprints", in_words(stored), 40, u64::MAX),
        ("number of words", in_words(14), 48, 14),
        ("number of words", in_words(16), 48, 16),
        ("number of words", in_words(u64::MAX), 48, u64::MAX),
        ("beginning of a record", "another one".into(), 0, 0),
        ("reserved bytes", "not 0".into(), 24, 1 << 8),
        ("reserved bytes", "not 0".into(), 24, 1 << 31),
        ("part of a tick", in_words(1 << 31), 24, 1 << 63),
        // No shard of a plain filter was split, and its slots have fingerprints only.
        ("prefix of the shard", in_words(1), 16, of_slots([0, 13, 13, 0]) | 1),
        ("depth of the shard", in_words(1), 16, of_slots([1, 13, 13, 0])),
        ("bits of a slot", in_words(14), 16, of_slots([0, 14, 13, 0])),
        ("bits of a fingerprint", in_words(12), 16, of_slots([0, 13, 12, 0])),
        ("bits of a tag", in_words(3), 16, of_slots([0, 13, 13, 3])),
        ("bits of a counter", in_words(4), 24, 4),
        ("epoch", in_words(1), 32, 1),
        // The lowest and the highest spare bit of the last word, and the padding of the line.
        ("end of the last bucket", "not 0".into(), HEAD + 14 * 8, 1 << 40),
        ("end of the last bucket", "not 0".into(), HEAD + 14 * 8, 1 << 63),
        ("end of the last bucket", "not 0".into(), HEAD + 15 * 8, 1),
        ("end of the last bucket", "not 0".into(), HEAD + 15 * 8, 1 << 63),
    ] {
        match refusal(&sealed().with(HEADER + at, value.to_le_bytes()).bytes) {
            SnapshotError::Invalid { place: SnapshotPlace::Shard { number: 0, .. }, field, found, .. } => {
                assert_eq!((field, found), (expected, number));
            }
            error => panic!("{expected}, {number}: {error:?}"),
        }
    }
}

/// Filters that differ in the seeds of their hash functions only: only the header shows which filter the shards belong to.
#[test]
fn the_shards_or_the_trailer_of_another_snapshot() {
    let trailer = HEADER + HEAD + 128;
    for at in [0, 8, 16, 24, 59] {
        let error = refusal(&sealed().with(trailer + at, [99]).bytes);
        assert!(matches!(error, SnapshotError::Damaged { place: SnapshotPlace::Trailer, .. }), "{at}: {error:?}");
    }
    let other = Filter::with_capacity_and_hasher(40, StableHashBuilder::with_seeds(1, 3));
    let one = Filter::with_capacity_and_hasher(40, hasher());
    let [bytes, others] = [one, other].map(|filter| written(|to| filter.write_to(to)));
    let error = refusal(&[&bytes[..HEADER], &others[HEADER..]].concat());
    assert!(matches!(error, SnapshotError::Damaged { place: SnapshotPlace::Shard { number: 0, .. }, .. }), "{error:?}");
}

#[test]
fn another_hasher() {
    let error = error(CuckooFilter::<String, _>::read_from(&bytes()[..], DefaultHashBuilder::with_seeds(1, 2, 0, 0)));
    let names = ("siphash-1-3", DefaultHashBuilder::NAME);
    assert_matches!(&error, SnapshotError::HasherMismatch { saved, given, .. } if (&saved[..], *given) == names);
    let message = error.to_string();
    assert!(message.contains("\"siphash-1-3\"") && message.contains("\"ahash-"), "{message}");
    let bytes = bytes();
    let reader = SnapshotReader::new(&bytes[..]).unwrap();
    let result: Result<CuckooFilter<String>, _> = reader.into_filter();
    assert!(matches!(result, Err(SnapshotError::HasherMismatch { .. })));
}

#[test]
fn other_keys_of_the_hasher() {
    for (first, second) in [(1, 3), (0, 2), (2, 1)] {
        let error = error(Filter::read_from(&bytes()[..], StableHashBuilder::with_seeds(first, second)));
        assert!(matches!(error, SnapshotError::HasherMismatch { .. }), "{error:?}");
        assert!(error.to_string().contains("and other seeds"), "{error}");
    }
    // The file has other seeds than those the filter was filled with. A caller with the right seeds does not need them.
    let changed = sealed().with(104, 7_u64.to_le_bytes()).bytes;
    let reader = SnapshotReader::new(&changed[..]).unwrap();
    let result: Result<CuckooFilter<String, StableHashBuilder>, _> = reader.into_filter();
    assert!(matches!(result, Err(SnapshotError::HasherMismatch { .. })));
    assert!(Filter::read_from(&changed[..], hasher()).is_ok());
    // A set of seeds that this hash function does not have.
    let refused = sealed().with(120, 7_u64.to_le_bytes()).bytes;
    let result: Result<Filter, _> = SnapshotReader::new(&refused[..]).unwrap().into_filter();
    assert!(matches!(result, Err(SnapshotError::Invalid { field: "set of seeds", .. })), "{result:?}");
}

#[test]
fn another_output_of_the_hasher() {
    let changed = |bytes: Vec<u8>, number: usize| Sealed::new(bytes).with(72 + 8 * number, 7_u64.to_le_bytes()).bytes;
    for number in 0..4 {
        let of_pairs = changed(saved(&(1_u8, 2_u32)), number);
        let error = error(CuckooFilter::<(u8, u32), _>::read_from(&of_pairs[..], hasher()));
        assert!(matches!(error, SnapshotError::HasherMismatch { .. }), "{error:?}");
    }
    for number in 0..3 {
        let error = refusal(&changed(bytes(), number));
        assert!(matches!(error, SnapshotError::HasherMismatch { .. }), "{error:?}");
    }
}

/// The last number of the probe depends on the layout of arrays in memory, which no string uses, so another platform may have
/// written it. It is checked if the snapshot is read as a type that the library does not know, or was written as one, whose hash
/// may depend on memory, too.
#[test]
fn known_keys_come_from_every_platform() {
    let elsewhere = |bytes| Sealed::new(bytes).with(72 + 8 * 3, 7_u64.to_le_bytes()).bytes;
    assert!(Filter::read_from(&elsewhere(bytes())[..], hasher()).is_ok());
    assert!(CuckooFilter::<u32, _>::read_from(&elsewhere(saved(&7_u32))[..], hasher()).is_ok());
    let as_unknown = CuckooFilter::<(u32,), _>::read_from(&elsewhere(saved(&7_u32))[..], hasher());
    let as_known = CuckooFilter::<u32, _>::read_from(&elsewhere(saved(&(7_u32,)))[..], hasher());
    for error in [error(as_unknown), error(as_known)] {
        assert!(matches!(error, SnapshotError::HasherMismatch { .. }), "{error:?}");
    }
}

fn saved<K: ?Sized + Hash + 'static>(key: &K) -> Vec<u8> {
    let filter = CuckooFilter::<K, _>::with_capacity_and_hasher(100, hasher());
    filter.insert(key).unwrap();
    written(|to| filter.write_to(to))
}

fn load_as<K: ?Sized + 'static>(bytes: &[u8]) -> Result<CuckooFilter<K, StableHashBuilder>, SnapshotError> {
    CuckooFilter::read_from(bytes, hasher())
}

#[test]
fn keys_of_another_type() {
    let error = error(load_as::<u64>(&saved(&7_u32)));
    assert!(matches!(error, SnapshotError::KeyTypeMismatch { .. }), "{error:?}");
    let message = error.to_string();
    assert!(message.contains("of type u32") && message.contains("a filter of u64"), "{message}");
    assert!(matches!(load_as::<[u8]>(&saved("key")), Err(SnapshotError::KeyTypeMismatch { .. })));
    assert!(matches!(load_as::<str>(&saved(&b"key"[..])), Err(SnapshotError::KeyTypeMismatch { .. })));
    assert!(matches!(load_as::<i64>(&saved(&7_u64)), Err(SnapshotError::KeyTypeMismatch { .. })));
    assert!(matches!(load_as::<usize>(&saved(&7_u64)), Err(SnapshotError::KeyTypeMismatch { .. })));
}

/// Types with equal hashes by the rules of `Borrow`, and types that the library does not know, are accepted.
#[test]
fn keys_of_a_type_that_may_be_the_same() {
    #[derive(Hash)]
    struct Number(u64);

    assert!(load_as::<String>(&saved("key")).unwrap().contains(&String::from("key")));
    assert!(load_as::<str>(&saved(&String::from("key"))).unwrap().contains("key"));
    assert!(load_as::<Vec<u8>>(&saved(&b"key"[..])).unwrap().contains(&b"key".to_vec()));
    assert!(load_as::<str>(&saved(&Box::<str>::from("key"))).unwrap().contains("key"));
    assert!(load_as::<Number>(&saved(&Number(7))).unwrap().contains(&Number(7)));
    assert!(load_as::<u64>(&saved(&Number(7))).unwrap().contains(&7));
    assert!(load_as::<Number>(&saved(&7_u64)).unwrap().contains(&Number(7)));
}

/// Types of the user's, which a snapshot can only distinguish by name.
#[test]
fn keys_of_a_type_with_a_name_of_its_own() {
    type Orders = CuckooFilter<(u8, u32), StableHashBuilder>;
    let orders = Orders::with_capacity_and_hasher(100, hasher());
    let saved = |name: &str| {
        let mut bytes = Vec::new();
        orders.snapshot().key_type(name).write_to(&mut bytes).map(|()| bytes)
    };
    let bytes = saved("order-1").unwrap();
    assert_eq!(SnapshotReader::new(&bytes[..]).unwrap().header().key_type, "order-1");
    assert!(Orders::read_from(&bytes[..], hasher()).is_ok(), "nothing is known of this type");
    assert!(matches!(error(load_as::<u64>(&bytes)), SnapshotError::KeyTypeMismatch { .. }));
    // A type that the library knows differs from one with a chosen name.
    let numbers = CuckooFilter::<u64, _>::with_capacity_and_hasher(100, hasher());
    let renamed = written(|to| numbers.snapshot().key_type("id").write_to(to));
    assert!(matches!(error(load_as::<u64>(&renamed)), SnapshotError::KeyTypeMismatch { .. }));
    let unnamed = saved("").unwrap();
    assert_eq!(SnapshotReader::new(&unnamed[..]).unwrap().header().key_type, "");
    assert!(saved(&"n".repeat(64)).is_ok());
    let longer = error(saved(&"n".repeat(65)));
    assert!(matches!(longer, SnapshotError::TooLong { len: 65, most: 64, .. }), "{longer:?}");
}

#[test]
fn what_follows_a_snapshot_is_left_unread() {
    let stream = [bytes(), bytes(), b"more".to_vec()].concat();
    let mut rest = &stream[..];
    for _ in 0..2 {
        assert_eq!(Filter::read_from(&mut rest, hasher()).unwrap().len(), 40);
    }
    assert_eq!(rest, b"more");
}

/// Also where a name of fewer than 64 bytes leaves room for more within the longest header.
#[test]
fn metadata_of_more_than_64_kib_is_refused() {
    let metadata = vec![7; (64 << 10) + 1];
    let written = |metadata| {
        let mut bytes = Vec::new();
        filter().snapshot().metadata(metadata).write_to(&mut bytes).map(|()| bytes)
    };
    let longer = error(written(&metadata));
    assert!(matches!(longer, SnapshotError::TooLong { len: 65_537, most: 65_536, .. }), "{longer:?}");
    let bytes = written(&metadata[1..]).unwrap();
    assert!(SnapshotReader::new(&bytes[..]).unwrap().header().metadata == metadata[1..]);
    assert!(Filter::read_from(&bytes[..], hasher()).is_ok());
    let longer = refusal(&Sealed::new(bytes).with(144, 65_537_u32.to_le_bytes()).bytes);
    assert!(longer.to_string().contains("length of the metadata is 65537"), "{longer}");
}

/// Accepts all bytes, and fails when it is flushed.
struct Unflushed;

impl Write for Unflushed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(ErrorKind::StorageFull.into())
    }
}

#[test]
fn what_is_written_is_flushed() {
    let (bytes, empty) = (bytes(), written(|to| empty().write_to(to)));
    let [new, old] = [&bytes, &empty].map(|bytes| SnapshotReader::new(&bytes[..]).unwrap());
    for result in [filter().write_to(Unflushed), new.write_delta_since(old, Unflushed)] {
        assert!(matches!(result, Err(SnapshotError::Io(error)) if error.kind() == ErrorKind::StorageFull));
    }
}

#[test]
fn an_error_of_the_system_is_the_source() {
    let error = SnapshotError::from(std::io::Error::from(ErrorKind::StorageFull));
    let source = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
    assert_eq!(source.map(std::io::Error::kind), Some(ErrorKind::StorageFull));
    assert!(SnapshotReader::new(&b"no snapshot"[..]).unwrap_err().source().is_none());
}
