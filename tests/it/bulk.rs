//! A bulk operation does what a loop of single operations does, on pools of any size, concurrently with anything else
//! that uses the filter, and whatever panics meanwhile.
//!
//! Filters of one shape with equal seeds are compared, so false positives must be equal too. What a bulk operation has
//! in memory at a time is a block: up to 32,768 keys for each shard, of an iterator half as many. A filter of up to
//! about 250,000 keys is one shard.

use crate::singles::{answers, build, check_overfull, hashes_of, indices};
use crate::singles::{inserted_one_by_one, is_one_too_many, refused};
use crate::support::{self, Bomb, bombs, panics, pool};
use concurrent_cuckoo_filter::kind::BatchKey;
use concurrent_cuckoo_filter::{BuildError, BulkReport, CuckooFilter, DefaultHashBuilder, InsertError, RemoveReport};
use rayon::ThreadPool;
use std::borrow::{Borrow, Cow};
use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use testkit::Done;
use testkit::watchdog;
use testkit::{ABSENT, Filter};

const ONE_SHARD: usize = 240_000;
const SOME_SHARDS: usize = 1_000_000;
/// 13 shards. With 24 bits the table is out of cache.
const MANY_SHARDS: usize = 3_200_000;

/// Of an iterator, to a filter of one shard.
const BLOCK: u64 = 1 << 14;

fn pools() -> [ThreadPool; 3] {
    [1, 2, 7].map(pool)
}

/// Most keys twice, one far too often.
fn with_copies(length: usize) -> Vec<u64> {
    (0..length as u64).map(|i| if i % 1001 == 0 { 0 } else { i / 2 + 1 }).collect()
}

/// Asks for all of them at once, and may not leave an answer out.
fn par_answers(filter: &Filter, keys: &[u64], expected: &[bool]) -> Vec<bool> {
    let mut found: Vec<bool> = expected.iter().map(|present| !present).collect();
    filter.par_contains(keys, &mut found);
    let mut by_hash: Vec<bool> = expected.iter().map(|present| !present).collect();
    filter.hashed().par_contains(&hashes_of(filter, keys), &mut by_hash);
    assert!(found == by_hash, "by key and by hash");
    found
}

/// A loop of single operations, for bulk operations to be compared with.
struct Singles {
    filter: Filter,
    keys: Vec<u64>,
    absent: Vec<u64>,
    refused: Vec<(usize, InsertError)>,
    /// Half of the keys, and as many that are not there, mixed.
    taken: Vec<u64>,
    missing: Vec<usize>,
    /// Copies of each key, and whether each absent one is found, before and after these are taken away.
    before: State,
    after: State,
}

#[derive(PartialEq)]
struct State {
    len: usize,
    counts: Vec<usize>,
    absent: Vec<bool>,
}

impl State {
    fn of(filter: &Filter, keys: &[u64], absent: &[u64]) -> Self {
        State {
            len: filter.len(),
            counts: keys.iter().map(|key| filter.count(key) as usize).collect(),
            absent: answers(filter, absent),
        }
    }
}

impl Singles {
    fn new(capacity: usize, bits: u32, keys: Vec<u64>) -> Self {
        let filter = build(capacity, bits);
        let absent: Vec<u64> = (ABSENT..).take(keys.len()).collect();
        let refused = inserted_one_by_one(&filter, &keys);
        let before = State::of(&filter, &keys, &absent);
        let taken: Vec<u64> = keys.iter().zip(&absent).map(|(&a, &b)| if a % 3 == 0 { b } else { a }).collect();
        let missing = (0..keys.len()).filter(|&index| !filter.remove(&taken[index])).collect();
        let after = State::of(&filter, &keys, &absent);
        Singles { filter, keys, absent, refused, taken, missing, before, after }
    }

    fn same_shape(&self) -> Filter {
        build(self.filter.capacity(), self.filter.fingerprint_bits())
    }

    fn check_insert(&self, filter: &Filter, report: &BulkReport) {
        assert!(refused(report) == self.refused, "{} and {}", report.rejected.len(), self.refused.len());
        assert_eq!((report.inserted, report.rejected_unlisted), (self.keys.len() - self.refused.len(), 0));
        self.check(filter, &self.before);
    }

    fn check_remove(&self, filter: &Filter, report: &RemoveReport) {
        assert!(report.missing == self.missing);
        assert_eq!((report.removed, report.missing_unlisted), (self.taken.len() - self.missing.len(), 0));
        self.check(filter, &self.after);
    }

    fn check(&self, filter: &Filter, expected: &State) {
        assert_eq!(filter.len(), expected.len);
        let now = State::of(filter, &self.keys, &self.absent);
        assert!(now.counts == expected.counts, "copies");
        assert!(now.absent == expected.absent, "absent keys");
        // In the order in which they were asked.
        let mixed = answers(filter, &self.taken);
        assert!(par_answers(filter, &self.taken, &mixed) == mixed, "present and absent keys at once");
        let present: Vec<bool> = expected.counts.iter().map(|&count| count > 0).collect();
        assert!(par_answers(filter, &self.keys, &present) == present, "present keys");
    }

    fn check_all(&self) {
        for pool in pools() {
            let filter = self.same_shape();
            self.check_insert(&filter, &pool.install(|| filter.par_insert(&self.keys)));
            self.check_remove(&filter, &pool.install(|| filter.bulk().remove(&self.taken)));

            let filter = self.same_shape();
            self.check_insert(&filter, &pool.install(|| filter.par_insert_iter(&self.keys)));
        }
        let filter = self.same_shape();
        self.check_insert(&filter, &filter.hashed().par_insert(&hashes_of(&filter, &self.keys)));
        self.check_remove(&filter, &filter.hashed().bulk().remove(&hashes_of(&filter, &self.taken)));
        let filter = self.same_shape();
        let hashes = hashes_of(&filter, &self.keys);
        self.check_insert(&filter, &filter.hashed().par_insert_iter(hashes));
    }
}

#[test]
fn few_keys_are_treated_as_by_a_loop_on_any_pool() {
    for (capacity, bits) in [(5000, 4), (5000, 6), (5000, 13), (ONE_SHARD, 16), (SOME_SHARDS, 8), (SOME_SHARDS, 32)] {
        for length in [0, 1, 17, 4095, 4096, 4097] {
            Singles::new(capacity, bits, with_copies(length)).check_all();
        }
    }
}

/// Blocks that are exactly full, and those with one key more or less.
#[test]
fn keys_around_a_block_are_treated_as_by_a_loop_on_any_pool() {
    for length in [BLOCK, 2 * BLOCK, 3 * BLOCK, 4 * BLOCK] {
        for length in [length - 1, length, length + 1] {
            Singles::new(ONE_SHARD, 12, with_copies(length as usize)).check_all();
        }
    }
}

#[test]
fn many_keys_are_treated_as_by_a_loop_on_any_pool() {
    for (capacity, bits) in [(ONE_SHARD, 17), (SOME_SHARDS, 12)] {
        Singles::new(capacity, bits, (0..capacity as u64).collect()).check_all();
        Singles::new(capacity, bits, with_copies(100_000)).check_all();
    }
}

/// Lookups are sorted by shard here, in several blocks.
#[test]
fn many_keys_are_treated_as_by_a_loop_out_of_cache() {
    Singles::new(MANY_SHARDS, 24, with_copies(430_000)).check_all();
}

#[test]
fn sorted_lookups_are_answered_in_the_order_of_the_caller() {
    for bits in [24, 32] {
        let filter = build(MANY_SHARDS, bits);
        let keys: Vec<u64> = (0..MANY_SHARDS as u64 * 9 / 10).collect();
        assert_eq!(filter.par_insert(&keys).inserted, keys.len());
        let mut rng = fastrand::Rng::with_seed(1);
        // From 13 * 16,384 on they are sorted. A block is twice that.
        for length in [212_991, 212_992, 212_993, 425_983, 425_984, 425_985, 1_000_000] {
            let asked: Vec<u64> = (0..length).map(|_| rng.u64(..2 * keys.len() as u64)).collect();
            let expected = answers(&filter, &asked);
            for pool in pools() {
                let found = pool.install(|| par_answers(&filter, &asked, &expected));
                assert!(found == expected, "{length} keys, {bits} bits");
            }
        }
    }
}

/// What is stored under one form of a key is found under every other, by a batch and on many threads.
fn every_form_is_one_key<K, A, B, F, G>(a: &[A], b: &[B])
where
    K: ?Sized + Hash + Borrow<K>,
    A: BatchKey<K, F> + Sync,
    B: BatchKey<K, G> + Sync + Clone,
{
    let filter = CuckooFilter::<K>::builder().capacity(a.len() + 100).fingerprint_bits(32).build().unwrap();
    for few in [77, a.len()] {
        let (a, b) = (&a[..few], &b[..few]);
        let mut found = vec![false; few];
        assert_eq!(filter.insert_batch(a).inserted, few);
        filter.contains_batch(b, &mut found);
        assert!(found.iter().all(|&found| found));
        assert_eq!(filter.remove_batch(b).removed, few);
        assert_eq!(filter.par_insert(a).inserted, few);
        found.fill(false);
        filter.par_contains(b, &mut found);
        assert!(found.iter().all(|&found| found));
        assert_eq!(filter.bulk().remove(b).removed, few);
        filter.contains_batch(a, &mut found);
        assert!(filter.is_empty() && !found.iter().any(|&found| found));
        assert_eq!(filter.par_insert_iter(b.iter().cloned()).inserted, few);
        assert_eq!(filter.bulk().remove(a).removed, few);
    }
}

#[test]
fn keys_are_anything_that_borrows_as_the_key_type() {
    let owned: Vec<String> = (0..20_000).map(|i| format!("word {i}")).collect();
    let words: Vec<&str> = owned.iter().map(String::as_str).collect();
    let boxed: Vec<Box<str>> = words.iter().map(|&word| word.into()).collect();
    let shared: Vec<Arc<str>> = words.iter().map(|&word| word.into()).collect();
    let mixed: Vec<Cow<'_, str>> = words.iter().map(|&word| word.into()).collect();
    every_form_is_one_key::<str, _, _, _, _>(&owned, &words);
    every_form_is_one_key::<str, _, _, _, _>(&words, &boxed);
    every_form_is_one_key::<str, _, _, _, _>(&boxed, &shared);
    every_form_is_one_key::<str, _, _, _, _>(&mixed, &owned);
    every_form_is_one_key::<String, _, _, _, _>(&owned, &owned.iter().collect::<Vec<_>>());
    let bytes: Vec<Vec<u8>> = owned.iter().map(|word| word.clone().into_bytes()).collect();
    let slices: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
    let arrays: Vec<[u8; 2]> = (0..20_000_u16).map(u16::to_le_bytes).collect();
    every_form_is_one_key::<[u8], _, _, _, _>(&bytes, &slices);
    every_form_is_one_key::<[u8], _, _, _, _>(&arrays, &arrays.iter().map(|array| array.to_vec()).collect::<Vec<_>>());
    let numbers: Vec<u64> = (0..20_000).collect();
    every_form_is_one_key::<u64, _, _, _, _>(&numbers, &numbers.iter().collect::<Vec<_>>());
}

#[test]
fn keys_without_a_size_are_counted_right() {
    let filter = CuckooFilter::<()>::with_capacity(100);
    let report = filter.bulk().max_listed(2).insert(&[(); 40_000]);
    assert_eq!((report.inserted, indices(&report), report.rejected_unlisted), (8, vec![8, 9], 39_990));
    let report = filter.bulk().max_listed(1).remove(&[(); 40_000]);
    assert_eq!((report.removed, report.missing, report.missing_unlisted), (8, vec![8], 39_991));
}

#[test]
fn answers_that_are_not_as_many_as_the_keys_are_a_panic_that_says_so() {
    let filter = build(100, 16);
    for (keys, places) in [(0, 1), (1, 0), (15, 16), (16, 15), (4096, 4095), (100_000, 100_001)] {
        let (keys, mut found) = (vec![1; keys], vec![true; places]);
        for message in [
            panics(|| filter.contains_batch(&keys, &mut found)),
            panics(|| filter.hashed().contains_batch(&keys, &mut found)),
            panics(|| filter.par_contains(&keys, &mut found)),
            panics(|| filter.hashed().par_contains(&keys, &mut found)),
            panics(|| filter.insert_unique_batch(&keys, &mut found)),
            panics(|| filter.hashed().insert_unique_batch(&keys, &mut found)),
            panics(|| filter.bulk().insert_unique(&keys, &mut found)),
            panics(|| filter.hashed().bulk().insert_unique(&keys, &mut found)),
            panics(|| filter.bulk().progress(|_| panic!("there is no progress")).contains(&keys, &mut found)),
        ] {
            assert!(message.contains("differ"), "{message}");
            assert!(message.contains(&keys.len().to_string()) && message.contains(&places.to_string()), "{message}");
        }
        assert!(found.iter().all(|&found| found) && filter.is_empty(), "nothing was answered or stored");
    }
}

#[test]
fn an_iterator_of_any_kind_is_loaded() {
    let count = 150_000;
    let owned: Vec<String> = (0..count).map(|i| format!("word {i}")).collect();
    let check = |load: &(dyn Fn(&CuckooFilter<String>) -> BulkReport + Sync)| {
        for pool in pools() {
            let filter = CuckooFilter::builder().capacity(count).fingerprint_bits(32).build().unwrap();
            let report = pool.install(|| load(&filter));
            assert_eq!((report.inserted, report.rejected.len(), filter.len()), (count, 0, count));
            assert_eq!(filter.remove_batch(&owned).removed, count);
        }
    };
    check(&|filter| filter.par_insert_iter(owned.clone()));
    check(&|filter| filter.par_insert_iter(owned.iter().map(String::as_str)));
    check(&|filter| filter.par_insert_iter((0..count).map(|i| format!("word {i}"))));
    // No exact size, and keys that stay in one thread.
    check(&|filter| filter.par_insert_iter((0..).take_while(|&i| i < count).map(|i| format!("word {i}"))));
    check(&|filter| {
        let words = (0..2 * count).filter(|i| i % 2 == 0).map(|i| Rc::<str>::from(format!("word {}", i / 2)));
        filter.par_insert_iter(words)
    });
    check(&|filter| {
        let number = Rc::new(Cell::new(0));
        filter.par_insert_iter(std::iter::from_fn(|| {
            let i = number.replace(number.get() + 1);
            (i < count).then(|| format!("word {i}"))
        }))
    });
    check(&|filter| filter.hashed().par_insert_iter(owned.iter().map(|word| filter.hash(word))));
}

/// An iterator without `fuse` may give more after it has said that there is no more.
#[test]
fn an_iterator_is_not_asked_again_after_its_end() {
    for end in [0, 1, 15, 16, 100, BLOCK - 1, BLOCK, BLOCK + 1, 100_000] {
        let filter = build(ONE_SHARD, 32);
        let mut asked = 0;
        let report = filter.par_insert_iter(std::iter::from_fn(|| {
            asked += 1;
            (asked != end + 1 && asked < 150_000).then_some(asked)
        }));
        assert_eq!((report.inserted as u64, filter.len() as u64), (end, end));
        assert_eq!(asked, end + 1);
    }
}

#[test]
fn an_iterator_may_use_the_filter() {
    let _watchdog = watchdog();
    for pool in pools() {
        let filter = build(ONE_SHARD, 32);
        let keys = (0..50_000).inspect(|&key| {
            assert!(!filter.contains(&key));
            filter.insert(&(key + ABSENT)).unwrap();
            assert!(filter.contains(&(key + ABSENT)));
            if key % 2 == 0 {
                assert!(filter.remove(&(key + ABSENT)));
            }
        });
        assert_eq!(filter.par_insert_iter(keys).inserted, 50_000);
        assert_eq!(filter.len(), 75_000);
        // Also in the pool, and on many threads.
        let report = pool.install(|| {
            filter.par_insert_iter((0..30_000).map(|key| {
                if key % 10_000 == 0 {
                    let more: Vec<u64> = (0..5000).map(|more| 2 * ABSENT + key + more).collect();
                    assert_eq!(filter.par_insert(&more).inserted, 5000);
                    let mut found = [false; 5000];
                    filter.par_contains(&more, &mut found);
                    assert!(found.iter().all(|&found| found));
                    assert_eq!(filter.par_insert_iter(more.iter()).inserted, 5000);
                    assert_eq!(filter.bulk().remove(&more).removed, 5000);
                }
                3 * ABSENT + key
            }))
        });
        assert_eq!(report.inserted, 30_000);
        assert_eq!(filter.len(), 75_000 + 30_000 + 3 * 5000);
    }
}

/// Keys of which a few come far more often than 8 times, and the places of the copies that are too many.
fn far_apart(length: u64, often: impl Iterator<Item = u64>) -> (Vec<u64>, Vec<usize>) {
    let mut keys: Vec<u64> = (ABSENT..).take(length as usize).collect();
    for (number, place) in often.enumerate() {
        keys[place as usize] = number as u64 % 2;
    }
    let mut copies = HashMap::new();
    let too_many = keys.iter().enumerate().filter(|&(_, key)| {
        let copies = copies.entry(key).or_insert(0);
        *copies += 1;
        *copies > 8
    });
    let too_many = too_many.map(|(index, _)| index).collect();
    (keys, too_many)
}

fn check_refused_far_apart(capacity: usize, length: u64, often: &[u64]) {
    let (keys, too_many) = far_apart(length, often.iter().copied());
    assert!(too_many.len() > 5);
    for pool in pools() {
        let check = |report: BulkReport, listed: usize| {
            assert_eq!(indices(&report), too_many[..listed.min(too_many.len())]);
            assert!(report.rejected.iter().all(|rejection| is_one_too_many(&rejection.error)));
            assert_eq!(report.rejected_unlisted, too_many.len().saturating_sub(listed));
            assert_eq!(report.inserted, keys.len() - too_many.len());
        };
        for listed in [usize::MAX, 0, 1, 5] {
            let filter = build(capacity, 32);
            check(pool.install(|| filter.bulk().max_listed(listed).insert(&keys)), listed);
            assert_eq!(filter.len(), keys.len() - too_many.len());
            let filter = build(capacity, 32);
            check(pool.install(|| filter.bulk().max_listed(listed).insert_iter(&keys)), listed);
            let filter = build(capacity, 32);
            let hashes = hashes_of(&filter, &keys);
            check(filter.hashed().bulk().max_listed(listed).insert_iter(hashes), listed);
        }
        let filter = build(capacity, 32);
        check(pool.install(|| filter.par_insert_iter(&keys)), usize::MAX);
        assert!(keys.iter().all(|&key| filter.count(&key) == if key < 2 { 8 } else { 1 }));
    }
}

#[test]
fn refused_keys_are_numbered_across_blocks() {
    // On both sides of each border, first a key of eight copies, then only ones that are too many.
    let borders = (1..=12).flat_map(|block| [block * BLOCK - 2, block * BLOCK - 1, block * BLOCK, block * BLOCK + 1]);
    check_refused_far_apart(ONE_SHARD, 200_000, &borders.collect::<Vec<_>>());
    let mut rng = fastrand::Rng::with_seed(1);
    let mut anywhere: Vec<u64> = (0..40).map(|_| rng.u64(..500_000)).collect();
    anywhere.sort_unstable();
    anywhere.dedup();
    check_refused_far_apart(MANY_SHARDS, 500_000, &anywhere);
}

#[test]
fn missing_keys_are_numbered_across_blocks_and_listed_up_to_a_number() {
    for capacity in [3000, ONE_SHARD, SOME_SHARDS] {
        let keys: Vec<u64> = (0..capacity as u64 * 4 / 5).collect();
        let missing: Vec<usize> = (0..keys.len()).filter(|index| index % 16_383 == 0 || index % 700 == 699).collect();
        let taken: Vec<u64> = keys
            .iter()
            .map(|&key| if missing.binary_search(&(key as usize)).is_ok() { key + ABSENT } else { key })
            .collect();
        for pool in pools() {
            for listed in [usize::MAX, 0, 1, 5] {
                let filter = build(capacity, 32);
                assert_eq!(filter.par_insert(&keys).inserted, keys.len());
                let report = pool.install(|| filter.bulk().max_listed(listed).remove(&taken));
                assert_eq!(report.missing, missing[..listed.min(missing.len())]);
                assert_eq!(report.missing_unlisted, missing.len().saturating_sub(listed));
                assert_eq!(report.removed, keys.len() - missing.len());
                assert_eq!(filter.len(), missing.len());
            }
        }
    }
}

/// So few keys a shard that they are not sorted.
#[test]
fn keys_thinly_spread_are_numbered_right() {
    // Copies of one key in the middle: whichever thread stores the keys around them, these keep their order.
    let often = 4200..4230;
    let keys: Vec<u64> = (0..8000).map(|key| if often.contains(&key) { ABSENT } else { key }).collect();
    let too_many: Vec<usize> = (4208..4230).collect();
    let taken: Vec<u64> = (0..8000).map(|key| if key % 1000 == 999 { 2 * ABSENT } else { keys[key] }).collect();
    let missing: Vec<usize> = (0..8000).filter(|index| index % 1000 == 999 || too_many.contains(index)).collect();
    for pool in pools() {
        for listed in [usize::MAX, 0, 1, 5] {
            // 33 shards.
            let filter = build(8_000_000, 32);
            let report = pool.install(|| filter.bulk().max_listed(listed).insert(&keys));
            assert_eq!(indices(&report), too_many[..listed.min(too_many.len())]);
            assert_eq!(report.rejected_unlisted, too_many.len().saturating_sub(listed));
            assert_eq!((report.inserted, filter.len()), (keys.len() - too_many.len(), keys.len() - too_many.len()));
            let present = vec![true; keys.len()];
            assert!(pool.install(|| par_answers(&filter, &keys, &present)) == present);
            let report = pool.install(|| filter.bulk().max_listed(listed).remove(&taken));
            assert_eq!(report.missing, missing[..listed.min(missing.len())]);
            assert_eq!(report.missing_unlisted, missing.len().saturating_sub(listed));
            assert_eq!((report.removed, filter.len()), (keys.len() - missing.len(), 8));
        }
    }
}

#[test]
fn an_overfull_load_fills_the_filter_and_names_what_it_refused() {
    check_overfull_loads(10_000, &[1, 2, 7]);
}

#[test]
#[ignore = "long: .ci/run runs it"]
fn an_overfull_load_fills_two_shards() {
    check_overfull_loads(260_000, &[2]);
}

fn check_overfull_loads(capacity: usize, threads: &[usize]) {
    let keys: Vec<u64> = (0..capacity as u64 * 6 / 5).collect();
    let singles = build(capacity, 32);
    inserted_one_by_one(&singles, &keys);
    let nearly_as_full = |filter: &Filter| {
        assert!(filter.load_factor() > singles.load_factor() - 0.01, "{} of {}", filter.len(), singles.len());
    };
    for pool in threads.iter().copied().map(pool) {
        let filter = build(capacity, 32);
        let report = pool.install(|| filter.par_insert(&keys));
        check_overfull(&keys, &filter, &report);
        nearly_as_full(&filter);

        // In a full filter there is no room to speak of, and what is there stays.
        let more: Vec<u64> = (ABSENT..).take(10_000).collect();
        let before = filter.len();
        let again = pool.install(|| filter.par_insert(&more));
        assert_eq!(again.inserted + again.rejected.len(), more.len());
        assert_eq!(filter.len(), before + again.inserted);
        assert!(again.inserted * 100 < filter.len(), "{} more", again.inserted);
        let refused = indices(&report);
        let stays = |index: usize| refused.binary_search(&index).is_ok() || filter.contains(&keys[index]);
        assert!((0..keys.len()).all(stays));

        let filter = build(capacity, 32);
        let report = pool.install(|| filter.par_insert_iter(&keys));
        check_overfull(&keys, &filter, &report);
        nearly_as_full(&filter);

        // The first ones, whatever the number that is listed.
        for listed in [0, 1, 5] {
            let filter = build(capacity, 32);
            let capped = pool.install(|| filter.bulk().max_listed(listed).insert_iter(&keys));
            assert_eq!(capped.rejected, report.rejected[..listed]);
            assert_eq!(capped.rejected_unlisted, report.rejected.len() - listed);
            assert_eq!(capped.inserted, report.inserted);
        }
    }
}

/// What was refused goes in when there is room again: a refusal is not remembered.
#[test]
fn a_filter_that_was_overfull_takes_its_capacity_again() {
    let filter = build(40_000, 32);
    let keys: Vec<u64> = (0..80_000).collect();
    for half in [&keys[..40_000], &keys[40_000..]] {
        let report = filter.par_insert(&keys);
        assert!(report.rejected.len() > 30_000);
        assert_eq!(filter.bulk().remove(&keys).removed, report.inserted);
        assert_eq!(filter.par_insert(half).inserted, half.len());
        assert_eq!(filter.bulk().remove(half).removed, half.len());
    }
}

type Operation = fn(&Filter, &[u64], &mut dyn FnMut(usize));

/// The operations on many keys that tell of their progress, those on hashes last.
const OPERATIONS: [Operation; 8] = [
    |filter, keys, tell| drop(filter.bulk().progress(tell).insert(keys)),
    |filter, keys, tell| drop(filter.bulk().progress(tell).insert_iter(keys)),
    |filter, keys, tell| filter.bulk().progress(tell).contains(keys, &mut vec![false; keys.len()]),
    |filter, keys, tell| drop(filter.bulk().progress(tell).remove(keys)),
    |filter, hashes, tell| drop(filter.hashed().bulk().progress(tell).insert(hashes)),
    |filter, hashes, tell| drop(filter.hashed().bulk().progress(tell).insert_iter(hashes.iter().copied())),
    |filter, hashes, tell| filter.hashed().bulk().progress(tell).contains(hashes, &mut vec![false; hashes.len()]),
    |filter, hashes, tell| drop(filter.hashed().bulk().progress(tell).remove(hashes)),
];

#[test]
fn progress_is_told_on_the_calling_thread_up_to_the_last_key() {
    for (capacity, bits) in [(1000, 16), (ONE_SHARD, 16), (MANY_SHARDS, 24)] {
        let filter = build(capacity, bits);
        for length in [0, 1, 5, 4095, 4096, 32_768, 32_769, 250_000] {
            let keys: Vec<u64> = (0..length).collect();
            for operation in OPERATIONS {
                for pool in [None, Some(pool(2))] {
                    let told = || {
                        let (caller, mut told) = (thread::current().id(), vec![]);
                        operation(&filter, &keys, &mut |done| {
                            assert_eq!(thread::current().id(), caller);
                            told.push(done);
                        });
                        told
                    };
                    let told = pool.map_or_else(told, |pool| pool.install(told));
                    assert!(told.is_sorted(), "{told:?}");
                    assert_eq!(told.last(), Some(&keys.len()), "{told:?}");
                }
                filter.clear();
            }
        }
    }
}

#[test]
fn progress_is_told_on_the_way() {
    // Lookups that are not sorted go longest without a word.
    let filter = build(1000, 16);
    let hashes: Vec<u64> = (0..(1 << 24) + 1).collect();
    let mut told = vec![];
    let (last, mut found) = (hashes[hashes.len() - 1], vec![false; hashes.len()]);
    filter.hashed().insert(&last).unwrap();
    filter.hashed().bulk().progress(|done| told.push(done)).contains(&hashes, &mut found);
    assert!(told.len() > 1 && told[0] <= 1 << 24, "{told:?}");
    assert_eq!(told.last(), Some(&hashes.len()));
    assert!(hashes.iter().zip(found).all(|(&hash, found)| found == filter.hashed().contains(&hash)));

    let filter = build(ONE_SHARD, 16);
    for operation in [0, 1, 3, 4, 5, 7].map(|number: usize| OPERATIONS[number]) {
        let mut told = vec![];
        operation(&filter, &hashes[..ONE_SHARD], &mut |done| told.push(done));
        assert!(told.len() >= 7, "{told:?}");
    }
}

#[test]
fn progress_may_use_the_filter() {
    let _watchdog = watchdog();
    for pool in pools() {
        let filter = build(ONE_SHARD, 32);
        let keys: Vec<u64> = (0..100_000).collect();
        let more: Vec<u64> = (ABSENT..).take(5000).collect();
        let use_it = |done: usize| {
            let key = 2 * ABSENT + done as u64;
            assert_eq!(filter.insert_unique(&key), Ok(true));
            assert!(filter.contains(&key) && filter.remove(&key));
            assert_eq!(filter.par_insert(&more).inserted, more.len());
            assert_eq!(filter.par_insert_iter(&more).inserted, more.len());
            let mut found = vec![false; more.len()];
            filter.par_contains(&more, &mut found);
            assert!(found.iter().all(|&found| found));
            assert_eq!(filter.remove_batch(&more).removed, more.len());
            assert_eq!(filter.bulk().remove(&more).removed, more.len());
        };
        pool.install(|| {
            let report = filter.bulk().progress(use_it).insert(&keys);
            assert_eq!((report.inserted, filter.len()), (keys.len(), keys.len()));
            filter.bulk().progress(use_it).contains(&keys, &mut vec![false; keys.len()]);
            assert_eq!(filter.bulk().progress(use_it).remove(&keys).removed, keys.len());
            assert_eq!(filter.bulk().progress(use_it).insert_iter(&keys).inserted, keys.len());
        });
        assert_eq!(filter.remove_batch(&keys).removed, keys.len());
        assert!(filter.is_empty());
    }
}

/// There is room for two more copies of this many.
fn is_usable(filter: &CuckooFilter<Bomb>, keys: &[Bomb]) {
    support::is_usable(filter, &keys[..keys.len().min(OLD_KEYS as usize)]);
}

const OLD_KEYS: u64 = 20_000;
const NEW_KEYS: u64 = 100_000;

/// New keys, one of which panics; the same, none of which does; and a filter that holds other ones.
struct Armed {
    batch: Vec<Bomb>,
    harmless: Vec<Bomb>,
    old: Vec<Bomb>,
    filter: CuckooFilter<Bomb>,
}

impl Armed {
    fn new(at: u64) -> Self {
        let (harmless, old) = (bombs(0..NEW_KEYS), bombs(ABSENT..ABSENT + OLD_KEYS));
        let mut batch = harmless.clone();
        batch[at as usize].armed = true;
        // One stripe: any lock left is in everybody's way.
        let filter = CuckooFilter::builder().capacity(ONE_SHARD).fingerprint_bits(32).stripes(1).build().unwrap();
        assert_eq!(filter.par_insert(&old).inserted, old.len());
        Armed { batch, harmless, old, filter }
    }

    /// Nothing old is lost, and of the new keys a first part is there, all before the bomb. Takes those away.
    fn check(&self, at: u64) -> usize {
        let new = self.filter.len() - self.old.len();
        assert!(new as u64 <= at, "{new} keys are stored before {at}");
        let is_there = |key: &Bomb| self.filter.count(key) == u32::from(key.number < new as u64);
        assert!(self.harmless.iter().all(is_there), "the first {new}");
        is_usable(&self.filter, &self.old);
        assert_eq!(self.filter.bulk().remove(&self.harmless).removed, new);
        assert_eq!(self.filter.par_insert(&self.harmless).inserted, self.harmless.len());
        is_usable(&self.filter, &self.harmless);
        assert_eq!(self.filter.bulk().remove(&self.harmless).removed, self.harmless.len());
        assert_eq!(self.filter.bulk().remove(&self.old).removed, self.old.len());
        assert!(self.filter.is_empty());
        new
    }
}

#[test]
fn a_hash_that_panics_during_a_load_loses_nothing() {
    let _watchdog = watchdog();
    for pool in pools() {
        for at in [0, 1, 32_767, 40_000, NEW_KEYS - 1] {
            let armed = Armed::new(at);
            let message = pool.install(|| panics(|| armed.filter.par_insert(&armed.batch)));
            assert_eq!(message, format!("the bomb of key {at}"));
            let stored = armed.check(at);
            // What the documentation says of blocks: 7 threads share one of a few keys more.
            assert!((at as usize).saturating_sub(stored) < 33_000, "{stored} of {at}");

            let armed = Armed::new(at);
            pool.install(|| panics(|| armed.filter.par_insert_iter(armed.batch.iter())));
            armed.check(at);
        }
    }
}

#[test]
fn a_hash_that_panics_during_lookups_or_a_removal_loses_nothing() {
    let _watchdog = watchdog();
    for pool in pools() {
        for at in [0, 50_000, NEW_KEYS - 1] {
            let armed = Armed::new(at);
            pool.install(|| panics(|| armed.filter.par_contains(&armed.batch, &mut vec![false; armed.batch.len()])));
            assert_eq!(armed.check(at), 0);

            let Armed { batch, harmless, old, filter } = Armed::new(at);
            assert_eq!(filter.par_insert(&harmless).inserted, harmless.len());
            pool.install(|| panics(|| filter.bulk().remove(&batch)));
            // The first keys are gone, all before the bomb.
            let gone = old.len() + harmless.len() - filter.len();
            assert!(gone as u64 <= at);
            assert!(harmless.iter().all(|key| filter.count(key) == u32::from(key.number >= gone as u64)));
            is_usable(&filter, &old);
            is_usable(&filter, &harmless[gone..]);
            assert_eq!(filter.bulk().remove(&harmless[gone..]).removed, harmless.len() - gone);
            assert_eq!(filter.bulk().remove(&old).removed, old.len());
            assert!(filter.is_empty());
        }
    }
}

/// The lookups that are sorted.
#[test]
fn a_hash_that_panics_during_sorted_lookups_loses_nothing() {
    let _watchdog = watchdog();
    let filter = CuckooFilter::<Bomb>::builder().capacity(MANY_SHARDS).fingerprint_bits(32).build().unwrap();
    let keys = bombs(0..300_000);
    assert_eq!(filter.par_insert(&keys).inserted, keys.len());
    let mut batch = keys.clone();
    batch[200_000].armed = true;
    for pool in pools() {
        pool.install(|| panics(|| filter.par_contains(&batch, &mut vec![false; batch.len()])));
        assert_eq!(filter.len(), keys.len());
        is_usable(&filter, &keys);
    }
}

#[test]
fn an_iterator_or_a_progress_that_panics_loses_nothing() {
    let _watchdog = watchdog();
    for pool in pools() {
        for at in [0, 1, BLOCK, 50_000, NEW_KEYS - 1] {
            let armed = Armed::new(at);
            let keys = || armed.harmless.iter().inspect(|key| assert_ne!(key.number, at, "the iterator"));
            let message = pool.install(|| panics(|| armed.filter.par_insert_iter(keys())));
            assert!(message.contains("the iterator"), "{message}");
            armed.check(at);
        }
        for calls in [1, 2] {
            let armed = Armed::new(0);
            let Armed { filter, harmless, .. } = &armed;
            let panicking = || {
                let mut left = calls;
                move |done| {
                    left -= 1;
                    assert_ne!(left, 0, "{done} were done");
                }
            };
            let message = pool.install(|| panics(|| filter.bulk().progress(panicking()).insert_iter(harmless.iter())));
            assert!(message.contains(" were done"), "{message}");
            assert!(filter.len() > armed.old.len());
            armed.check(NEW_KEYS);

            let armed = Armed::new(0);
            let Armed { filter, harmless, .. } = &armed;
            pool.install(|| panics(|| filter.bulk().progress(panicking()).insert(harmless)));
            let stored = filter.len();
            assert!(stored > armed.old.len());
            pool.install(|| panics(|| filter.bulk().progress(|_| panic!("at once")).remove(&harmless[..5])));
            assert_eq!(filter.len(), stored - 5);
            assert_eq!(filter.par_insert(&harmless[..5]).inserted, 5);
            let found = &mut vec![false; harmless.len()];
            pool.install(|| panics(|| filter.bulk().progress(|_| panic!("at once")).contains(harmless, found)));
            armed.check(NEW_KEYS);
        }
    }
}

/// A key whose `Hash` asks rayon for help, so that its thread takes other work amid the hash.
struct Helped(u64);

fn nap(micros: u64) {
    thread::sleep(Duration::from_micros(micros));
}

impl Hash for Helped {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (a, b) = rayon::join(|| self.0 / 3, || self.0 - self.0 / 3);
        state.write_u64(a + b);
        if self.0.is_multiple_of(10_000) {
            // Long enough that another thread takes one half, and this one must wait for it.
            let begun = AtomicBool::new(false);
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
    for threads in [1, 2, 7] {
        let pool = pool(threads);
        for (capacity, bits) in [(ONE_SHARD, 32), (MANY_SHARDS, 24)] {
            let filter = CuckooFilter::<Helped>::builder().capacity(capacity).fingerprint_bits(bits).build().unwrap();
            let keys: Vec<Helped> = (0..220_000).map(Helped).collect();
            let mut found = vec![false; keys.len()];
            pool.install(|| {
                assert_eq!(filter.par_insert(&keys).inserted, keys.len());
                filter.par_contains(&keys, &mut found);
                assert!(found.iter().all(|&found| found));
                assert_eq!(filter.bulk().remove(&keys).removed, keys.len());
                assert_eq!(filter.par_insert_iter(keys.iter()).inserted, keys.len());
                filter.contains_batch(&keys, &mut found);
                assert!(found.iter().all(|&found| found));
                // Two loads at a time, each of which may take tasks of the other amid a hash.
                let (a, b) =
                    rayon::join(|| filter.bulk().remove(&keys[..90_000]), || filter.bulk().remove(&keys[90_000..]));
                assert_eq!((a.removed, b.removed), (90_000, 130_000));
            });
            assert!(filter.is_empty());
        }
    }
}

/// Loads up to the capacity and takes off again, while stable keys are looked up and a thread changes keys of its own.
fn load_concurrently(capacity: usize, bits: u32, rounds: usize, threads: usize) {
    let filter = &build(capacity, bits);
    // Fingerprints of 32 bits: no two of these keys share a class.
    let exact = bits == 32;
    let stable: &Vec<u64> = &(ABSENT..).take(capacity / 2).collect();
    let own = 500;
    let load: Vec<u64> = (0..(capacity - stable.len() - own as usize) as u64).collect();
    assert_eq!(filter.par_insert(stable).inserted, stable.len());
    let loading = &AtomicUsize::new(1);
    let go_on = || loading.load(Ordering::Relaxed) > 0;
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut rng = fastrand::Rng::with_seed(1);
            while go_on() {
                for _ in 0..1000 {
                    let key = rng.choice(stable).unwrap();
                    assert!(filter.contains(key), "key {key} was missed");
                    assert!(!exact || !filter.contains(&(key + 2 * ABSENT)));
                }
            }
        });
        scope.spawn(move || {
            let mut found = vec![false; 4099];
            while go_on() {
                for stable in stable.chunks(found.len()) {
                    let found = &mut found[..stable.len()];
                    found.fill(false);
                    filter.contains_batch(stable, found);
                    assert!(found.iter().all(|&found| found), "a key of a batch was missed");
                }
            }
        });
        scope.spawn(move || {
            let keys = 2 * ABSENT..2 * ABSENT + own;
            let mut rounds = 0;
            while go_on() || rounds == 0 {
                for key in keys.clone() {
                    assert_eq!(filter.insert(&key), Ok(()));
                    assert!(filter.contains(&key));
                    if exact {
                        assert_eq!(filter.count(&key), 1);
                        assert_eq!(filter.insert_unique(&key), Ok(false));
                    }
                }
                for key in keys.clone() {
                    assert!(filter.remove(&key));
                    if exact {
                        assert!(!filter.contains(&key));
                        assert!(!filter.remove(&key));
                        assert_eq!(filter.insert_unique(&key), Ok(true));
                        assert_eq!(filter.insert(&key), Ok(()));
                        assert_eq!(filter.remove_all(&key), 2);
                    }
                }
                rounds += 1;
            }
        });
        let _done = Done(loading);
        let pool = pool(threads);
        for round in 0..rounds {
            let report = pool.install(|| match round % 2 {
                0 => filter.par_insert(&load),
                _ => filter.par_insert_iter(&load),
            });
            assert_eq!(report.inserted, load.len());
            let mut found = vec![false; load.len()];
            pool.install(|| filter.par_contains(&load, &mut found));
            assert!(found.iter().all(|&found| found));
            let report = pool.install(|| filter.bulk().remove(&load));
            assert_eq!((report.removed, report.missing.len()), (load.len(), 0));
        }
    });
    assert_eq!(filter.len(), stable.len());
    assert!(stable.iter().all(|key| filter.contains(key)));
    assert_eq!(filter.bulk().remove(stable).removed, stable.len());
    assert!(filter.is_empty());
}

#[test]
fn every_answer_during_a_load_is_exact_with_32_bits() {
    let _watchdog = watchdog();
    // Few keys over and over: the last ones of each load relocate many.
    load_concurrently(3000, 32, 200, 1);
    load_concurrently(10_000, 32, 300, 1);
    load_concurrently(ONE_SHARD, 32, 6, 2);
    load_concurrently(SOME_SHARDS, 32, 3, 2);
}

#[test]
#[ignore = "long: .ci/run runs it"]
fn no_key_is_missed_during_a_load_at_any_width() {
    let _watchdog = watchdog();
    for bits in [6, 8, 12, 13, 16, 17, 24] {
        load_concurrently(10_000, bits, 100, 2);
        load_concurrently(100_000, bits, 3, 2);
    }
}

/// Keys are taken in groups where there are fewer than 256 for each shard, and where a filter that grows removes them. Those of a
/// later group are named by their places, too.
#[test]
fn keys_of_later_groups_are_named_by_their_places() {
    const GROUP: usize = 1 << 22;
    let seeds = || DefaultHashBuilder::with_seeds(1, 2, 3, 4);
    let keys: Vec<u64> = vec![7; GROUP + 1000];
    let many_shards =
        CuckooFilter::<u64>::builder().capacity(4_400_000_000).fingerprint_bits(4).hasher(seeds()).build();
    match many_shards {
        Ok(filter) => {
            assert!(filter.shards() > keys.len() / 256);
            let report = filter.par_insert(&keys);
            assert_eq!((report.inserted, report.rejected.len()), (8, keys.len() - 8));
            assert!(report.rejected.windows(2).all(|pair| pair[0].index < pair[1].index));
        }
        Err(BuildError::OutOfMemory { .. }) => println!("not tried: this system has no 2.3 GB"),
        Err(error) => panic!("{error}"),
    }
    let growing = CuckooFilter::<u64>::builder().capacity(100).max_capacity(100_000).hasher(seeds()).build().unwrap();
    growing.insert(&7).unwrap();
    let missing = growing.bulk().remove(&keys).missing;
    assert!(missing.len() == keys.len() - 1 && missing.windows(2).all(|pair| pair[0] < pair[1]));
}
