//! The loaded filter is the saved one, at every width, size and load, with any hash function. (`model` tests that it continues to
//! work.)

use crate::support::{bytes_of, check_equal};
use concurrent_cuckoo_filter::kind::Plain;
use concurrent_cuckoo_filter::{CuckooFilter, DefaultHashBuilder, SavedHasher, SnapshotError, SnapshotReader};
use proptest::prelude::*;
use std::hash::{BuildHasher, DefaultHasher, Hasher};
use testkit::{Shape, Width, written};

type Filter<S> = CuckooFilter<u64, S>;

/// A user-defined hash function with a seed. (`header` has one without.)
#[derive(Clone)]
struct Seeded(u64);

impl BuildHasher for Seeded {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.0);
        hasher
    }
}

impl SavedHasher for Seeded {
    const NAME: &'static str = "std, seeded";

    fn seeds(&self) -> Option<[u64; 4]> {
        Some([self.0, 0, 0, 0])
    }

    fn from_seeds([seed, ..]: [u64; 4]) -> Option<Self> {
        Some(Seeded(seed))
    }
}

/// A filter, the number of keys for it, and metadata.
fn cases() -> impl Strategy<Value = (Shape, u64, Vec<u8>)> {
    let width = prop_oneof![7 => (4..=32_u32).prop_map(Width::Bits), 3 => (1e-6..0.5).prop_map(Width::Rate)];
    let metadata = prop::collection::vec(any::<u8>(), 0..100);
    (0..3000_usize, width, 1..100_usize, 0.0..1.2, metadata).prop_map(|(capacity, width, stripes, load, metadata)| {
        let shape = Shape { capacity, width, stripes: Some(stripes), seed: 0 };
        (shape, (capacity as f64 * load) as u64, metadata)
    })
}

/// Inserts keys, one in seven twice, and removes one in five again.
fn fill<S: BuildHasher>(filter: &Filter<S>, keys: u64) {
    let twice = (0..keys).flat_map(|key| std::iter::repeat_n(key, if key % 7 == 0 { 2 } else { 1 }));
    let stored: Vec<u64> = twice.filter(|key| filter.insert(key).is_ok()).collect();
    stored.iter().filter(|&key| key % 5 == 0).for_each(|key| _ = filter.remove(key));
}

fn check_round_trip<S: SavedHasher + Clone>((shape, keys, metadata): &(Shape, u64, Vec<u8>), hasher: S) {
    let filter: Filter<S> = shape.builder().hasher(hasher.clone()).build().unwrap();
    fill(&filter, *keys);
    let asked = 2 * keys + 100;

    let bytes = bytes_of(&filter, metadata);
    let reader = SnapshotReader::new(&bytes[..]).unwrap();
    let header = reader.header();
    assert_eq!(header.metadata, *metadata);
    assert_eq!((&header.hasher_name[..], header.has_seeds), (S::NAME, true));
    assert_eq!((header.config, &header.part), (filter.config(), &(0..filter.config().shards)));
    let loaded = reader.into_filter::<u64, S, Plain>().unwrap();
    check_equal(&loaded, &filter, asked);
    assert_eq!(bytes_of(&loaded, metadata), bytes);

    let without_keys = written(|to| filter.snapshot().without_seeds().write_to(to));
    let reader = SnapshotReader::new(&without_keys[..]).unwrap();
    assert!(!reader.header().has_seeds);
    assert!(matches!(reader.into_filter::<u64, S, Plain>(), Err(SnapshotError::NoSeeds { .. })));
    check_equal(&Filter::read_from(&without_keys[..], hasher).unwrap(), &filter, asked);
}

proptest! {
    #[test]
    fn with_the_default_hasher(case in cases(), seeds: [u64; 4]) {
        let [a, b, c, d] = seeds;
        check_round_trip(&case, DefaultHashBuilder::with_seeds(a, b, c, d));
    }

    #[test]
    fn with_a_users_own_hasher(case in cases(), seed: u64) {
        check_round_trip(&case, Seeded(seed));
    }
}

#[test]
fn the_keys_of_the_hasher_are_nowhere_if_they_are_left_out() {
    let seeds = [0x1234_5678_9abc_def0, 0x0fed_cba9_8765_4321, 0x1122_3344_5566_7788, 0x99aa_bbcc_ddee_ff00];
    let [a, b, c, d] = seeds;
    let filter = Filter::with_capacity_and_hasher(1000, DefaultHashBuilder::with_seeds(a, b, c, d));
    fill(&filter, 1000);
    let without_keys = written(|to| filter.snapshot().without_seeds().write_to(to));
    for seed in seeds {
        let stands_in = |bytes: &[u8]| bytes.windows(8).any(|window| window == seed.to_le_bytes());
        assert!(!stands_in(&without_keys), "{seed:#x}");
        assert!(stands_in(&bytes_of(&filter, &[])), "{seed:#x}");
    }
}
