//! User code that uses the filter during an operation on it, or lets rayon do other work meanwhile.

use super::{MANY_SHARDS, ONE_SHARD, build, pools};
use concurrent_cuckoo_filter::CuckooFilter;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use testkit::{ABSENT, Filter, watchdog};

/// Runs every operation, on keys that no other thread uses.
fn use_it(filter: &Filter, number: u64) {
    let key = 2 * ABSENT + number;
    assert_eq!(filter.insert_unique(&key), Ok(true));
    assert!(filter.contains(&key) && filter.remove(&key));
    let more: Vec<u64> = (3 * ABSENT..).take(5000).collect();
    assert_eq!(filter.par_insert(&more).inserted, more.len());
    assert_eq!(filter.bulk().insert_iter(&more).inserted, more.len());
    let mut found = vec![false; more.len()];
    filter.par_contains(&more, &mut found);
    assert!(found.iter().all(|&found| found));
    assert_eq!(filter.remove_batch(&more).removed + filter.bulk().remove(&more).removed, 2 * more.len());
}

#[test]
fn an_iterator_or_a_progress_may_use_the_filter() {
    let _watchdog = watchdog();
    for pool in pools() {
        let (filter, keys) = (build(ONE_SHARD, 32), (0..100_000).collect::<Vec<u64>>());
        let progress = |done: usize| use_it(&filter, done as u64);
        pool.install(|| {
            let report = filter.bulk().progress(progress).insert(&keys);
            assert_eq!((report.inserted, filter.len()), (keys.len(), keys.len()));
            filter.bulk().progress(progress).contains(&keys, &mut vec![false; keys.len()]);
            assert_eq!(filter.bulk().progress(progress).remove(&keys).removed, keys.len());
            assert_eq!(filter.bulk().progress(progress).insert_iter(&keys).inserted, keys.len());
        });
        assert_eq!(filter.remove_batch(&keys).removed, keys.len());
        let load = || {
            let asked = keys[..50_000].iter().inspect(|&&key| {
                assert!(!filter.contains(&key), "blocks are stored when they are full: {key}");
                if key % 10_000 == 0 {
                    use_it(&filter, key);
                }
            });
            assert_eq!(filter.bulk().insert_iter(asked).inserted, 50_000);
        };
        load();
        assert_eq!(filter.remove_batch(&keys[..50_000]).removed, 50_000);
        pool.install(load);
    }
}

/// In each kind of batch.
#[test]
fn a_hash_may_use_the_filter() {
    struct Nested<'a>(u64, &'a CuckooFilter<Nested<'a>>);

    impl Hash for Nested<'_> {
        fn hash<H: Hasher>(&self, state: &mut H) {
            let hash = self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            assert!(self.1.hashed().insert_unique(&hash).is_ok());
            assert!(self.1.hashed().contains(&hash));
            assert!(self.1.hashed().remove(&hash));
            self.0.hash(state);
        }
    }

    let _watchdog = watchdog();
    let filter = CuckooFilter::builder().capacity(200).fingerprint_bits(32).stripes(1).build().unwrap();
    let keys: Vec<Nested<'_>> = (0..100).map(|number| Nested(number, &filter)).collect();
    assert_eq!(filter.insert_batch(&keys).inserted, 100);
    let mut found = [false; 100];
    filter.contains_batch(&keys, &mut found);
    assert_eq!((found, filter.len()), ([true; 100], 100));
    assert_eq!(filter.remove_batch(&keys).removed, 100);
}

/// A key whose `Hash` uses rayon, so that its thread takes other work during the hash.
struct Helped(u64);

impl Hash for Helped {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (a, b) = rayon::join(|| self.0 / 3, || self.0 - self.0 / 3);
        state.write_u64(a + b);
        if self.0.is_multiple_of(10_000) {
            // Long enough that another thread takes one half, and this one must wait for it.
            let (begun, nap) = (AtomicBool::new(false), |micros| thread::sleep(Duration::from_micros(micros)));
            let wait = || (0..5).take_while(|_| !begun.load(Ordering::Relaxed)).for_each(|_| nap(50));
            rayon::join(wait, || {
                begun.store(true, Ordering::Relaxed);
                nap(500);
            });
        }
    }
}

#[test]
fn a_hash_that_has_rayon_do_other_work_does_not_deadlock() {
    let _watchdog = watchdog();
    let keys: Vec<Helped> = (0..220_000).map(Helped).collect();
    for pool in pools() {
        for (capacity, bits) in [(ONE_SHARD, 32), (MANY_SHARDS, 24)] {
            let filter = CuckooFilter::<Helped>::builder().capacity(capacity).fingerprint_bits(bits).build().unwrap();
            let mut found = vec![false; keys.len()];
            pool.install(|| {
                assert_eq!(filter.par_insert(&keys).inserted, keys.len());
                filter.par_contains(&keys, &mut found);
                assert!(found.iter().all(|&found| found));
                assert_eq!(filter.bulk().remove(&keys).removed, keys.len());
                assert_eq!(filter.bulk().insert_iter(keys.iter()).inserted, keys.len());
                // Two operations at a time, each of which may take tasks of the other during a hash.
                let (a, b) =
                    rayon::join(|| filter.bulk().remove(&keys[..90_000]), || filter.bulk().remove(&keys[90_000..]));
                assert_eq!((a.removed, b.removed), (90_000, 130_000));
            });
            assert!(filter.is_empty());
        }
    }
}
