//! Filters with tags: against exact lists of tags.

use concurrent_cuckoo_filter::kind::Tagged;
use concurrent_cuckoo_filter::{
    BuildError, Builder, FilterView, InsertError, MergeError, SnapshotError, StableHashBuilder, TaggedFilter,
};
use fastrand::Rng;
use std::thread;
use testkit::written;

type Filter = TaggedFilter<u64, StableHashBuilder>;

fn builder(capacity: usize) -> Builder<u64, StableHashBuilder, Tagged> {
    TaggedFilter::builder().capacity(capacity).hasher(StableHashBuilder::with_seeds(1, 2))
}

fn sorted(tags: impl IntoIterator<Item = u32>) -> Vec<u32> {
    let mut tags: Vec<u32> = tags.into_iter().collect();
    tags.sort_unstable();
    tags
}

#[test]
fn what_cannot_be_built_is_said() {
    for tags in [0, 65_536] {
        let error = builder(100).tags(tags).build().unwrap_err();
        assert_eq!(error.to_string(), format!("{tags} different tags were requested; 1 to 65535 are possible"));
    }
    let error = builder(100).tags(65_535).false_positive_rate(1e-5).build().unwrap_err();
    assert!(matches!(error, BuildError::RateTooLow { widest: 16, .. }), "{error:?}");
    let made = |tags| {
        let filter = builder(1000).tags(tags).false_positive_rate(0.01).build().unwrap();
        (filter.config().max_tag, filter.config().fingerprint_bits)
    };
    assert_eq!(
        [1, 2, 3, 7, 8, 255, 65_535].map(made),
        [(0, 10), (2, 10), (2, 10), (6, 13), (14, 12), (254, 16), (65_534, 16)]
    );
    let shown = format!("{:?} {:?}", builder(100), builder(100).build().unwrap());
    assert!(shown.contains("TaggedFilter") && shown.contains("tags: 7") && shown.contains("max_tag: 6"), "{shown}");
}

#[test]
fn a_tag_that_is_too_large_is_refused() {
    let filter = builder(100).build().unwrap();
    let refused = InsertError::TagTooLarge;
    assert_eq!((filter.insert(&1, 7), filter.retag(&1, 0, 7)), (Err(refused), Err(refused)));
    assert_eq!((filter.insert_batch(&[1, 2], 7), filter.bulk().insert(&[1, 2], 7)), (Err(refused), Err(refused)));
    filter.insert(&1, 6).unwrap();
    assert_eq!((filter.retag(&1, 7, 0), filter.remove(&1, 7), filter.len()), (Ok(false), false, 1));
    assert_eq!(
        (filter.remove_batch(&[1, 2], 7).missing, filter.bulk().remove(&[1, 2], 7).missing),
        (vec![0, 1], vec![0, 1])
    );
}

/// Every lookup has all tags of a key (of every change: `model`); others as often as a lookup is wrong.
#[test]
fn every_lookup_finds_the_tags_of_a_key() {
    for (tags, capacity) in [(1, 2_000), (3, 20_000), (15, 8_000), (200, 8_000), (65_535, 5_000)] {
        let filter = builder(capacity).tags(tags).build().unwrap();
        let (mut random, mut exact) = (Rng::with_seed(tags.into()), vec![Vec::new(); capacity]);
        for _ in 0..capacity {
            let key = random.usize(..capacity);
            let tag = random.u32(..=filter.config().max_tag.min(20));
            // Copies of a key may fill its buckets before the table is full.
            exact[key].extend(filter.insert(&(key as u64), tag).is_ok().then_some(tag));
        }
        let (keys, mut strange) = (Vec::from_iter(0..capacity as u64), 0);
        let (mut batch, mut found) = (vec![None; keys.len()], vec![false; keys.len()]);
        filter.tag_batch(&keys, &mut batch);
        filter.contains_batch(&keys, &mut found);
        // Slots of 16 bits, of one run that straddles words, and of two runs.
        let bytes = written(|to| filter.write_to(to));
        let view = FilterView::<Filter>::from_bytes(&bytes).unwrap();
        assert_eq!(view.header().stored, filter.len() as u64);
        for (key, mine) in keys.iter().zip(&exact) {
            let (mut told, index) = (sorted(filter.tags(key)), *key as usize);
            assert_eq!(sorted(view.tags(key)), told);
            assert_eq!((batch[index], found[index]), (told.first().copied(), !told.is_empty()));
            assert_eq!((filter.tag(key), filter.contains(key)), (batch[index], found[index]));
            for tag in mine {
                let place = told.iter().position(|other| other == tag);
                told.remove(place.unwrap_or_else(|| panic!("{key} has no tag {tag}")));
            }
            strange += told.len();
        }
        let expected = filter.stats().expected_false_positive_rate * capacity as f64;
        assert!((strange as f64) < 2.0 * expected + 10.0, "{strange} strange tags, {expected} expected");
    }
}

/// A reader finds the tag that a key has, or the one that it gets.
#[test]
fn tags_are_read_while_they_change_and_others_move() {
    let filter = builder(3_000).build().unwrap();
    let keys = Vec::from_iter(0..1_000);
    assert_eq!(filter.bulk().insert(&keys, 0).unwrap().inserted, 1_000);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 0..6 {
                assert!(keys.iter().all(|key| filter.retag(key, round, round + 1) == Ok(true)));
                // At the edge of the capacity, so that keys move.
                assert_eq!(filter.insert_batch(&Vec::from_iter(10_000..12_000), 6).unwrap().inserted, 2_000);
                assert!((10_000..12_000).all(|key| filter.remove(&key, 6)));
            }
        });
        while !writer.is_finished() {
            let mut last = 0;
            for _ in 0..50 {
                let most = filter.tags(&7).max().expect("a key that is there throughout");
                assert!(most >= last, "a tag went back");
                last = most;
            }
            assert!(keys.iter().all(|key| filter.tags(key).len() > 0));
        }
    });
    assert!(keys.iter().all(|key| filter.tags(key).any(|tag| tag == 6)));
}

#[test]
fn tags_are_kept_and_merged() {
    let (one, other) = (builder(1_000).build().unwrap(), builder(1_000).build().unwrap());
    for key in 0..400 {
        one.insert(&key, (key % 7) as u32).unwrap();
        other.insert(&(key + 200), 3).unwrap();
    }
    let bytes = written(|to| one.write_to(to));
    let read = Filter::read_from(&bytes[..], StableHashBuilder::with_seeds(1, 2)).unwrap();
    assert_eq!((read.len(), read.config().max_tag, read.capacity()), (400, 6, 1_000));
    assert!((0..400).all(|key| sorted(read.tags(&key)) == sorted(one.tags(&key))));
    let report = read.merge_from(&other).unwrap();
    assert_eq!((report.inserted, report.refused, read.len()), (400, 0, 800));
    assert!(
        (200..400)
            .all(|key| sorted(read.tags(&key)).contains(&3) && read.tags(&key).any(|tag| tag == (key % 7) as u32))
    );
    assert_eq!(read.merge_from(&builder(1_000).tags(8).build().unwrap()), Err(MergeError::SizesDiffer));
    // A counter is no tag.
    let error = concurrent_cuckoo_filter::CountingFilter::<u64, StableHashBuilder>::read_from(
        &bytes[..],
        StableHashBuilder::with_seeds(1, 2),
    );
    let error = error.unwrap_err();
    assert!(matches!(error, SnapshotError::KindMismatch { requested: "counting", .. }), "{error}");
}
