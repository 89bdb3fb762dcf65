//! What is printed of values for whoever debugs: their names, and nothing of keys or of the keys of hash functions.

use concurrent_cuckoo_filter::{CuckooFilter, DefaultHashBuilder, SnapshotReader, StableHashBuilder};
use std::fmt::Debug;
use std::hash::BuildHasher;

#[track_caller]
fn check(value: &impl Debug, shown: &str) {
    assert_eq!(format!("{value:?}"), shown);
}

#[test]
fn hash_functions_show_none_of_their_keys() {
    let hasher = DefaultHashBuilder::with_seeds(1, 2, 3, 4);
    check(&hasher, "DefaultHashBuilder { .. }");
    check(&hasher.build_hasher(), "DefaultHasher { .. }");
    let hasher = StableHashBuilder::with_keys(1, 2);
    check(&hasher, "StableHashBuilder { .. }");
    check(&hasher.build_hasher(), "StableHasher { .. }");
}

#[test]
fn what_is_under_way_shows_what_was_asked_for() {
    let builder = CuckooFilter::<str>::builder().capacity(10).stripes(3);
    let shown =
        "Builder { capacity: Some(10), false_positive_rate: None, fingerprint_bits: None, stripes: Some(3), .. }";
    check(&builder, shown);
    let filter = builder.build().unwrap();
    filter.insert("secret").unwrap();
    check(&filter.bulk().list_at_most(7), "Bulk { list_at_most: 7, .. }");
    let mut bytes = Vec::new();
    filter.write_to(&mut bytes).unwrap();
    for shown in [format!("{:?}", filter.snapshot()), format!("{:?}", SnapshotReader::new(&bytes[..]).unwrap())] {
        assert!(shown.starts_with("Snapshot") && !shown.contains("secret"), "{shown}");
    }
}
