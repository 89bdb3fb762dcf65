//! Parts of a filter, each with its own memory, and the places of keys without any memory.

use concurrent_cuckoo_filter::{
    BuildError, Builder, CuckooFilter, DefaultHashBuilder, FilterPart, PartError, SnapshotError, StableHashBuilder,
    WellMixed,
};
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;
use testkit::{assert_matches, hasher, written};

fn builder() -> Builder<u64, StableHashBuilder> {
    CuckooFilter::builder().capacity(1_000_000).hasher(hasher())
}

const SHARDS: usize = 4;

#[test]
fn a_layout_of_what_cannot_be_built() {
    let error = || CuckooFilter::<u64>::builder().capacity(10).fingerprint_bits(40);
    assert_eq!(error().layout().unwrap_err(), error().build().unwrap_err());
    let growing = || CuckooFilter::<u64>::builder().capacity(100).max_capacity(100_000);
    assert_eq!(growing().layout().unwrap_err(), BuildError::GrowingPart);
    assert_eq!(growing().build_shards(0..1).unwrap_err(), BuildError::GrowingPart);
    assert_eq!(error().build_shards(0..1).unwrap_err(), error().build().unwrap_err());
}

/// The hashes of keys in these shards, in order.
fn hashes(shards: Range<usize>) -> Vec<u64> {
    let layout = builder().layout().unwrap();
    (0..20_000).map(|key| layout.hash(&key)).filter(|&hash| shards.contains(&layout.shard_of_hash(hash))).collect()
}

/// A part of the shards 1 and 2 with the keys of both, some of them twice.
fn filled(insert: impl Fn(&FilterPart<u64, StableHashBuilder>, &[u64])) -> Vec<u8> {
    let part = builder().build_shards(1..3).unwrap();
    insert(&part, &hashes(1..3));
    written(|to| part.snapshot().write_to(to))
}

/// A part is written as the whole filter would write these shards.
#[test]
fn a_part_is_written_as_the_filter_would_write_it() {
    let whole = builder().build().unwrap();
    let mine = hashes(1..3);
    assert_eq!(whole.hashed().insert_batch(&mine).inserted, mine.len());
    let expected = written(|to| whole.snapshot().shards(1..3).write_to(to));

    let copies = filled(|part, hashes| {
        assert_eq!(part.insert_batch(hashes).unwrap().inserted, hashes.len());
    });
    assert!(copies == expected);
    let unique = filled(|part, hashes| {
        let mut admitted = vec![false; hashes.len()];
        let report = part.insert_unique_batch(hashes, &mut admitted).unwrap();
        // The others are false positives.
        assert!(report.inserted > hashes.len() * 999 / 1000);
        assert_eq!(report.inserted + report.present, hashes.len());
        let again = part.insert_unique_batch(hashes, &mut admitted).unwrap();
        assert_eq!((again.inserted, again.present), (0, hashes.len()));
        assert!(!admitted.contains(&true));
    });
    let rest = [0..1, 3..4].map(|shards| written(|to| builder().build_shards(shards).unwrap().snapshot().write_to(to)));
    let parts = [&rest[1][..], &unique, &rest[0]];
    let joined = CuckooFilter::<u64, _>::join(parts, hasher()).unwrap();
    assert!(mine.iter().all(|&hash| joined.hashed().contains(&hash)));
}

#[test]
fn a_key_of_another_part_is_an_error_and_nothing_is_stored() {
    let layout = builder().layout().unwrap();
    for (shards, other) in [(0..1, 1), (1..3, 0), (1..3, 3), (3..4, 2), (0..3, 3)] {
        let part = builder().build_shards(shards.clone()).unwrap();
        let mut list = hashes(shards.clone())[..100].to_vec();
        list[60] = hashes(other..other + 1)[0];
        list[70] = hashes(other..other + 1)[1];
        let errors =
            [part.insert_batch(&list).unwrap_err(), part.insert_unique_batch(&list, &mut [true; 100]).unwrap_err()];
        for error in errors {
            let PartError { index, shard, part, .. } = &error;
            assert_eq!((*index, *shard, part), (60, other, &shards));
            let told =
                format!("key 60 belongs to shard {other}; this part has shards {}..{}", shards.start, shards.end);
            assert!(error.to_string().contains(&told), "{error}");
        }
        assert!(format!("{part:?}").contains("len: 0"), "{part:?}");
        assert_eq!(layout.shard_of_hash(list[60]), other);
    }
}

#[test]
fn a_part_takes_its_part_of_the_memory() {
    let whole = builder().memory_usage().unwrap();
    let part = builder().build_shards(1..2).unwrap();
    assert!((whole / SHARDS).abs_diff(part.memory_usage()) < 1000, "{} of {whole}", part.memory_usage());
    let (all, filter) = (builder().build_shards(0..SHARDS).unwrap(), builder().build().unwrap());
    assert_eq!(all.memory_usage() - size_of_val(&all), filter.memory_usage() - size_of_val(&filter));
    // The whole filter would exceed the memory of any machine.
    let large = CuckooFilter::<u64>::builder().capacity(usize::MAX >> 19);
    assert!(large.build_shards(7..9).unwrap().memory_usage() < 2 << 20);
}

#[test]
fn a_part_refuses_what_is_too_much_for_it() {
    let part = CuckooFilter::<u64>::builder().capacity(1_000_000).build_shards(0..1).unwrap();
    let hash = (0..).find(|&hash| part.layout().shard_of_hash(hash) == 0).unwrap();
    let report = part.insert_batch(&[hash; 10]).unwrap();
    assert_eq!((report.inserted, report.refused.len()), (8, 2));
}

#[test]
fn shards_that_a_filter_does_not_have() {
    for (start, end) in [(0, 0), (4, 4), (3, 5), (4, 5), (2, 1), (7, usize::MAX)] {
        let asked = Range { start, end };
        let error = builder().build_shards(asked.clone()).unwrap_err();
        assert_matches!(&error, BuildError::NoSuchShards { requested, shards: SHARDS, .. } if *requested == asked);
        assert!(error.to_string().contains(&format!("shards {start}..{end} ")), "{error}");
    }
    // A part has no shards of another part, and a filter of one shard has no second.
    let (part, filter) = (builder().build_shards(1..3).unwrap(), CuckooFilter::<u64>::with_capacity(10));
    for (start, end) in [(0, 2), (2, 4), (0, 1), (1, 1), (1, 2), (7, usize::MAX)] {
        let (asked, mut bytes) = (Range { start, end }, Vec::new());
        let of_part = part.snapshot().shards(asked.clone()).write_to(&mut bytes);
        for (result, shards) in [(of_part, 1..3), (filter.snapshot().shards(asked.clone()).write_to(&mut bytes), 0..1)]
        {
            match result {
                Err(SnapshotError::NoSuchShards { requested: told, there, .. }) => {
                    assert_eq!((told, there), (asked.clone(), shards))
                }
                result => {
                    let is_there = shards.start <= asked.start && asked.end <= shards.end && !asked.is_empty();
                    assert!(result.is_ok() && is_there, "{result:?} of {asked:?}");
                }
            }
        }
        bytes.clear();
    }
    assert!(part.snapshot().shards(2..3).write_to(Vec::new()).is_ok());
}

/// As the documentation of `hash` states.
fn hash_of_text(hasher: &impl BuildHasher, text: &[u8]) -> u64 {
    let mut state = hasher.build_hasher();
    state.write(text);
    state.write_u8(0xff);
    state.finish()
}

fn hashes_text_as_its_bytes<S: BuildHasher + Clone>(hasher: S) {
    let filter = CuckooFilter::<String, _>::with_capacity_and_hasher(10, hasher.clone());
    let layout = CuckooFilter::<String>::builder().capacity(10).hasher(hasher.clone()).layout().unwrap();
    for length in (0..300).step_by(3) {
        let text: String = "aß\u{1F426}".chars().cycle().take(length).collect();
        assert_eq!(hash_of_text(&hasher, text.as_bytes()), filter.hash(&text), "{length}");
        assert_eq!(layout.hash(&text), filter.hash(&text), "{length}");
    }
}

#[test]
fn text_given_as_bytes_has_the_hash_of_the_text() {
    hashes_text_as_its_bytes(hasher());
    hashes_text_as_its_bytes(DefaultHashBuilder::with_seeds(1, 2, 3, 4));
    hashes_text_as_its_bytes(std::hash::RandomState::new());
    hashes_text_as_its_bytes(WellMixed(std::hash::RandomState::new()));
}
