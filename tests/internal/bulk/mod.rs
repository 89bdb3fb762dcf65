//! Of `src/bulk`: which keys are sorted, when progress is reported, and how long a task holds its locks.

use super::tasks::batches;
use crate::CuckooFilter;

use crate::sys::steps::{Step, with_hook};
use std::cell::Cell;
use std::rc::Rc;

fn filter(capacity: usize) -> CuckooFilter<u64> {
    CuckooFilter::builder().capacity(capacity).fingerprint_bits(16).build().unwrap()
}

#[test]
fn few_keys_are_not_sorted() {
    let sorted = |filter: &CuckooFilter<u64>, keys| filter.raw.block::<bool>(keys).is_some();
    let small = filter(1000);
    assert!(!sorted(&small, 4095) && sorted(&small, 4096));
    // Its memory is reserved, not written.
    let large = filter(10_000_000);
    let enough = large.config().shards * 256;
    assert!(enough > 4096 && !sorted(&large, enough - 1) && sorted(&large, enough));
}

#[test]
fn few_keys_are_one_batch() {
    let lengths = |count: usize| batches(0..count, None, |keys, _| keys.len());
    assert_eq!(lengths(0), [0]);
    assert_eq!(lengths(4096), [4096]);
    assert_eq!(lengths(4097), [4096, 1]);
}

/// Into a filter of one shard, and of forty: the keys of few batches, and of blocks of which the last is not full.
#[test]
fn progress_is_reported_after_each_block() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let told = |work: &dyn Fn(&mut Vec<usize>)| {
        let mut told = Vec::new();
        work(&mut told);
        told
    };
    for (capacity, count, in_a_slice, in_a_stream) in [
        (100_000, 0, vec![0], vec![0]),
        (100_000, 100, vec![100], vec![100]),
        (100_000, 4095, vec![4095], vec![4095]),
        (100_000, 4096, vec![4096], vec![2048, 4096]),
        (100_000, 40_000, vec![32_768, 40_000], vec![16_384, 32_768, 40_000]),
        (10_000_000, 9000, vec![9000], vec![4500, 9000]),
    ] {
        let keys: Vec<u64> = (0..count).collect();
        pool.install(|| {
            let filter = filter(capacity);
            let bulk = || filter.bulk();
            let inserted = |told: &mut Vec<_>| {
                assert_eq!(bulk().progress(|done| told.push(done)).insert(&keys).inserted, keys.len());
            };
            let removed = |told: &mut Vec<_>| {
                assert_eq!(bulk().progress(|done| told.push(done)).remove(&keys).removed, keys.len());
            };
            let streamed = |told: &mut Vec<_>| {
                assert_eq!(bulk().progress(|done| told.push(done)).insert_iter(&keys).inserted, keys.len());
            };
            let looked_up = |told: &mut Vec<_>| {
                let mut found = vec![false; keys.len()];
                bulk().progress(|done| told.push(done)).contains(&keys, &mut found);
                assert!(found.iter().all(|&found| found));
            };
            assert_eq!(told(&inserted), in_a_slice);
            assert_eq!(told(&removed), in_a_slice);
            assert_eq!(told(&streamed), in_a_stream);
            // The table fits the cache, or a shard has few keys: not sorted.
            assert_eq!(told(&looked_up), [keys.len()]);
        });
    }
}

/// A task lets other writers of its shard proceed. On one thread a block has four tiles, each with a run of keys for the only
/// shard.
#[test]
fn a_task_locks_its_shard_anew_after_at_most_4096_keys() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    // 4 runs of 1024, of 2048 and of 2500; 4 runs of 8192, and a block of 4096 and 3136 in one tile.
    for (count, expected) in [(4096, 1), (8192, 2), (10_000, 4), (40_000, 10)] {
        let hashes: Vec<u64> = (0..count).collect();
        let times = pool.install(|| {
            let filter = filter(100_000);
            let counted = |work: &dyn Fn()| {
                let locked = Rc::new(Cell::new(0));
                let noted = Rc::clone(&locked);
                with_hook(move |step| noted.set(noted.get() + usize::from(step == Step::Locked)), work);
                locked.get()
            };
            let inserted = counted(&|| assert_eq!(filter.hashed().par_insert(&hashes).inserted, hashes.len()));
            (inserted, counted(&|| assert_eq!(filter.hashed().bulk().remove(&hashes).removed, hashes.len())))
        });
        assert_eq!(times, (expected, expected), "{count} keys");
    }
}
