//! The header of a snapshot, before the rest is read.

use crate::support::Own;
use concurrent_cuckoo_filter::{CuckooFilter, DefaultHashBuilder, SavedHasher, SnapshotReader};
use std::hash::BuildHasher;
use testkit::format::Sealed;
use testkit::written;

#[test]
fn a_hash_function_has_no_keys_unless_it_says_so() {
    let filter = CuckooFilter::<u32, Own>::with_capacity_and_hasher(100, Own::default());
    filter.insert(&7).unwrap();
    let bytes = written(|to| filter.write_to(to));
    let reader = SnapshotReader::new(&bytes[..]).unwrap();
    assert_eq!((&reader.header().hasher_name[..], reader.header().has_seeds), ("own", false));
    assert_eq!((filter.hasher().seeds(), <Own>::from_seeds([0; 4]).is_none()), (None, true));
    let loaded: CuckooFilter<u32, Own> = reader.into_filter_with_hasher(Own::default()).unwrap();
    assert!(loaded.contains(&7));
}

/// The compiled code path, since the function differs with other instructions. Its version is left to the probe, so that Cargo may
/// choose it.
#[test]
fn the_name_of_the_default_hash_function_is_its_code_path() {
    let manifest = include_str!("../../../Cargo.toml");
    assert_eq!(manifest.matches("\nahash = { version = \"0.8\",").count(), 2, "a pinned version excludes all others");
    let name = DefaultHashBuilder::NAME;
    let path = name.strip_prefix("ahash-").expect(name);
    let aes = cfg!(all(any(target_arch = "x86", target_arch = "x86_64"), target_feature = "aes"));
    assert!(path.starts_with(if aes { "aes" } else { "fallback" }), "{name}");
    if cfg!(any(target_arch = "x86", target_arch = "x86_64")) {
        assert_eq!(path.contains("short"), !aes && cfg!(target_arch = "x86"), "{name}");
    }
    assert_eq!(path.ends_with("-be"), cfg!(target_endian = "big"), "{name}");
    let known =
        [("fallback", 0x9716_1657_c07a_c4ac), ("aes", 0xa9ba_e16d_d79a_e9cd), ("aes-sse2", 0x08b5_b01d_3465_88c9)];
    if let Some((_, hash)) = known.into_iter().find(|&(known, _)| known == path) {
        // The output of ahash itself, under the inverse of the filter's mix (`WellMixed`). If it changes with the locked version,
        // the probe refuses earlier files of the default hash function: note that in the changelog.
        let mix = |hash: u64| (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let mixed = mix(mix(DefaultHashBuilder::with_seeds(1, 2, 3, 4).hash_one(7_u64)));
        assert_eq!(mixed ^ (mixed >> 32), hash, "{name}");
    }
    let filter = CuckooFilter::<u32>::with_capacity(100);
    let bytes = written(|to| filter.write_to(to));
    assert_eq!(SnapshotReader::new(&bytes[..]).unwrap().header().hasher_name, name);
}

#[test]
fn the_name_of_a_hash_function_has_64_bytes_at_the_most() {
    assert_eq!(Own::<true>::NAME.len(), 64);
    let filter = CuckooFilter::<u32, Own<true>>::with_capacity_and_hasher(100, Own::default());
    filter.insert(&7).unwrap();
    let mut bytes = Vec::new();
    // A part of it may be taken for a longer name.
    filter.snapshot().metadata(b"!!!").write_to(&mut bytes).unwrap();
    let reader = SnapshotReader::new(&bytes[..]).unwrap();
    assert_eq!(reader.header().hasher_name, Own::<true>::NAME);
    let filter: CuckooFilter<u32, _> = reader.into_filter_with_hasher(Own::<true>::default()).unwrap();
    assert!(filter.contains(&7));

    let longer =
        |by: u32| Sealed::new(bytes.clone()).with(140, (64 + by).to_le_bytes()).with(144, (3 - by).to_le_bytes()).bytes;
    assert_eq!(longer(0), bytes);
    for by in 1..=3 {
        let error = SnapshotReader::new(&longer(by)[..]).map(drop).unwrap_err();
        assert!(error.to_string().contains("length of the hasher's name"), "{error}");
    }
}
