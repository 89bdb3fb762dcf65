//! What a snapshot says of itself before it is read.

use concurrent_cuckoo_filter::{CuckooFilter, SavedHasher, SnapshotReader, StableHashBuilder};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

/// A hash function of somebody's own, without keys.
#[derive(Clone, Default)]
struct Own(BuildHasherDefault<DefaultHasher>);

impl BuildHasher for Own {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        self.0.build_hasher()
    }
}

impl SavedHasher for Own {
    const NAME: &'static str = "own";
}

#[test]
fn a_header_says_what_was_asked_for() {
    let builder = CuckooFilter::<u32>::builder().capacity(300_000).fingerprint_bits(11);
    let filter = builder.hasher(StableHashBuilder::with_keys(1, 2)).build().unwrap();
    let mut bytes = Vec::new();
    filter.snapshot().metadata(b"today's").write_to(&mut bytes).unwrap();
    let reader = SnapshotReader::new(&bytes[..]).unwrap();
    let header = reader.header();
    assert_eq!((header.hasher_name(), header.has_keys()), ("siphash-1-3", true));
    assert_eq!((header.capacity(), header.fingerprint_bits()), (300_000, 11));
    assert_eq!((header.shards(), header.part(), header.metadata()), (2, 0..2, &b"today's"[..]));
}

#[test]
fn a_hash_function_has_no_keys_unless_it_says_so() {
    let filter = CuckooFilter::<u32, Own>::with_capacity_and_hasher(100, Own::default());
    filter.insert(&7).unwrap();
    let mut bytes = Vec::new();
    filter.write_to(&mut bytes).unwrap();
    let reader = SnapshotReader::new(&bytes[..]).unwrap();
    assert_eq!((reader.header().hasher_name(), reader.header().has_keys()), ("own", false));
    assert_eq!((filter.hasher().keys(), Own::from_keys([0; 4]).is_none()), (None, true));
    let loaded: CuckooFilter<u32, Own> = reader.into_filter(Own::default()).unwrap();
    assert!(loaded.contains(&7));
}
