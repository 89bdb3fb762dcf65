//! Every operation on filters of capacity 0 and 1. (`builder` tests sizes beyond the memory.)

use crate::support::{Stable as Filter, bytes_of, stable};
use concurrent_cuckoo_filter::{InsertError, SnapshotReader};
use testkit::watchdog;

/// Inserts keys until the filter refuses one, and returns those that were stored.
fn fill(filter: &Filter) -> Vec<u64> {
    let refused = |key: &u64| match filter.insert(key) {
        Ok(()) => false,
        Err(error) => {
            assert!(matches!(error, InsertError::Full | InsertError::TooManyCopies));
            true
        }
    };
    let keys: Vec<u64> = (0..1000).take_while(|key| !refused(key)).collect();
    assert!(keys.len() < 1000, "the smallest filters hold few keys");
    assert!(keys.len() >= filter.capacity() && filter.len() == keys.len());
    keys
}

fn holds(filter: &Filter, keys: &[u64]) {
    assert_eq!(filter.len(), keys.len());
    let (mut found, mut par_found) = (vec![false; keys.len()], vec![false; keys.len()]);
    filter.contains_batch(keys, &mut found);
    filter.par_contains(keys, &mut par_found);
    assert!(keys.iter().all(|key| filter.contains(key) && filter.count(key) > 0));
    assert!(found.iter().chain(&par_found).all(|&found| found));
}

#[test]
fn every_operation_on_filters_for_no_key_and_for_one() {
    let _watchdog = watchdog();
    for capacity in [0, 1] {
        for bits in 4..=32 {
            let filter = stable(capacity, bits);
            assert_eq!((filter.capacity(), filter.config().shards, filter.shard_of(&7)), (capacity, 1, 0));
            assert!(format!("{filter:?}").contains("len: 0"));
            assert_eq!((filter.load_factor(), filter.stats().expected_false_positive_rate), (0.0, 0.0));
            assert!(!filter.contains(&7) && !filter.remove(&7) && filter.remove_all(&7) == 0);
            assert_eq!(filter.remove_batch(&[1, 2]).missing, [0, 1]);
            assert_eq!(filter.bulk().remove(&[1, 2]).missing, [0, 1]);

            let keys = fill(&filter);
            holds(&filter, &keys);
            let stats = filter.stats();
            assert_eq!((stats.len, stats.refused_full + stats.refused_too_many_copies), (keys.len(), 1));
            // Each of many more keys is stored or refused, one by one and in blocks.
            let more: Vec<u64> = (1000..5200).collect();
            for report in [filter.insert_batch(&more), filter.par_insert(&more), filter.bulk().insert_iter(&more)] {
                assert_eq!(report.inserted + report.refused.len(), more.len());
                assert!(filter.len() <= 32);
                let refused: Vec<usize> = report.refused.iter().map(|refusal| refusal.index).collect();
                let stored = (0..more.len()).filter(|index| refused.binary_search(index).is_err());
                let stored: Vec<u64> = stored.map(|index| more[index]).collect();
                assert!(filter.bulk().remove(&stored).missing.is_empty());
            }
            holds(&filter, &keys);

            let bytes = bytes_of(&filter, b"");
            let hasher = || filter.hasher().clone();
            holds(&Filter::read_from(&bytes[..], hasher()).unwrap(), &keys);
            holds(
                &SnapshotReader::new(&bytes[..]).unwrap().in_parallel().into_filter_with_hasher(hasher()).unwrap(),
                &keys,
            );
            holds(&Filter::join([&bytes[..]], hasher()).unwrap(), &keys);
            let merged = stable(capacity, bits);
            assert_eq!(merged.merge_from(&filter).map(|report| report.refused), Ok(0));
            holds(&merged, &keys);

            assert!(filter.remove_batch(&keys).missing.is_empty());
            assert!(filter.is_empty());
            assert_eq!(filter.par_insert(&keys).refused, []);
            filter.clear();
            assert!(filter.is_empty() && keys.iter().all(|key| !filter.contains(key)));
        }
    }
    println!(
        "\nfigure 5.8: every operation on filters of capacity 0 and 1 at 29 widths, filled until they refuse and beyond"
    );
}
