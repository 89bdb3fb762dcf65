//! Tagged filters: refusals and merges. (`model` checks every answer.)

use crate::support::hasher;
use concurrent_cuckoo_filter::kind::Tagged;
use concurrent_cuckoo_filter::{BuildError, Builder, InsertError, MergeError, StableHashBuilder, TaggedFilter};

fn builder(capacity: usize) -> Builder<u64, StableHashBuilder, Tagged> {
    TaggedFilter::builder().capacity(capacity).hasher(hasher())
}

#[test]
fn build_refuses_impossible_numbers_of_tags_and_rates() {
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
fn a_tag_beyond_the_largest_is_refused() {
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

#[test]
fn merged_filters_have_the_tags_of_both() {
    let [one, other] = [(); 2].map(|()| builder(1_000).build().unwrap());
    for key in 0..400 {
        one.insert(&key, (key % 7) as u32).unwrap();
        other.insert(&(key + 200), 3).unwrap();
    }
    let report = one.merge_from(&other).unwrap();
    assert_eq!((report.inserted, report.refused, one.len()), (400, 0, 800));
    let has = |key: u64, wanted| one.tags(&key).any(|tag| tag == wanted);
    assert!((0..600).all(|key| (key >= 400 || has(key, (key % 7) as u32)) && (key < 200 || has(key, 3))));
    assert_eq!(one.merge_from(&builder(1_000).tags(8).build().unwrap()), Err(MergeError::SizesDiffer));
}
