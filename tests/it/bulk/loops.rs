//! The answers, the refusals and the final filter of a loop of single operations.

use super::{BLOCK, MANY_SHARDS, ONE_SHARD, SOME_SHARDS, build, pools};
use concurrent_cuckoo_filter::InsertError;
use testkit::operations::{INSERTS, LOOKUPS, REMOVES};
use testkit::{ABSENT, Filter};

/// At least one width of each way in which slots lie in words.
const WIDTHS: [u32; 9] = [4, 6, 8, 12, 13, 16, 17, 24, 32];

/// Around the groups of 4, the window of 16, and the 4096 from which a bulk operation is no batch.
const LENGTHS: [usize; 12] = [0, 1, 3, 4, 15, 16, 17, 127, 129, 4095, 4096, 4097];

/// Each key twice, and one key far too often.
fn with_copies(length: usize, every: usize) -> Vec<u64> {
    (0..length).map(|index| if index % every == 0 { 0 } else { index as u64 / 2 + 1 }).collect()
}

fn answers(filter: &Filter, keys: &[u64]) -> Vec<bool> {
    keys.iter().map(|key| filter.contains(key)).collect()
}

struct Singles {
    capacity: usize,
    bits: u32,
    keys: Vec<u64>,
    refused: Vec<(usize, InsertError)>,
    /// Half of the keys, mixed with as many absent ones.
    taken: Vec<u64>,
    missing: Vec<usize>,
    /// Before and after the removals.
    states: [State; 2],
}

#[derive(PartialEq)]
struct State {
    len: usize,
    copies: Vec<u32>,
    found: Vec<bool>,
}

impl State {
    fn of(filter: &Filter, keys: &[u64], taken: &[u64]) -> Self {
        let copies = keys.iter().map(|key| filter.count(key)).collect();
        State { len: filter.len(), copies, found: answers(filter, taken) }
    }
}

impl Singles {
    fn new(capacity: usize, bits: u32, keys: Vec<u64>) -> Self {
        let filter = build(capacity, bits);
        let refused = (0..keys.len()).filter_map(|index| Some((index, filter.insert(&keys[index]).err()?))).collect();
        let taken: Vec<u64> = keys.iter().zip(ABSENT..).map(|(&a, b)| if a % 3 == 0 { b } else { a }).collect();
        let before = State::of(&filter, &keys, &taken);
        let missing = (0..keys.len()).filter(|&index| !filter.remove(&taken[index])).collect();
        let after = State::of(&filter, &keys, &taken);
        Singles { capacity, bits, keys, refused, taken, missing, states: [before, after] }
    }

    /// Every way to insert, each with a way to remove, on pools of each size.
    fn check(&self) {
        let pools = pools();
        for (number, (name, insert)) in INSERTS.iter().enumerate() {
            let (filter, pool) = (build(self.capacity, self.bits), &pools[number % pools.len()]);
            let report = pool.install(|| insert(&filter, &self.keys));
            let refused = report.refused.iter().map(|refusal| (refusal.index, refusal.error));
            assert!(refused.eq(self.refused.iter().copied()), "{name}: {} refused", report.refused.len());
            assert_eq!((report.inserted, report.refused_unlisted), (self.keys.len() - self.refused.len(), 0));
            self.check_state(&filter, &self.states[0], name, number);

            let (name, remove) = REMOVES[number % REMOVES.len()];
            let report = pool.install(|| remove(&filter, &self.taken));
            assert!(report.missing == self.missing, "{name}: {} missing", report.missing.len());
            assert_eq!((report.removed, report.missing_unlisted), (self.taken.len() - self.missing.len(), 0));
            self.check_state(&filter, &self.states[1], name, number);
        }
    }

    fn check_state(&self, filter: &Filter, expected: &State, name: &str, number: usize) {
        assert!(State::of(filter, &self.keys, &self.taken) == *expected, "after {name} at {} bits", self.bits);
        let (name, look_up) = LOOKUPS[number % LOOKUPS.len()];
        // Set to the wrong answers, so that each must be written.
        let mut found: Vec<bool> = expected.found.iter().map(|found| !found).collect();
        look_up(filter, &self.taken, &mut found);
        assert!(found == expected.found, "{name} at {} bits", self.bits);
    }
}

#[test]
fn few_keys_are_treated_as_by_a_loop_at_every_width() {
    for bits in WIDTHS {
        for length in LENGTHS {
            // A class of 4 bits may be full long before the filter is.
            let capacity = if bits == 4 { 2 * length } else { length };
            Singles::new(capacity, bits, with_copies(length, 11)).check();
        }
        // In a table beyond the cache: 9 MiB.
        Singles::new(9 * (8 << 20) / bits as usize, bits, with_copies(20_003, 1001)).check();
    }
}

/// Blocks that are exactly full, and those with one key more or less; a few keys for each of some shards, and so few for each of
/// many that they are not sorted.
#[test]
fn keys_around_a_block_are_treated_as_by_a_loop() {
    for length in [BLOCK, 2 * BLOCK, 4 * BLOCK].into_iter().flat_map(|block| block - 1..=block + 1) {
        Singles::new(ONE_SHARD, 12, with_copies(length, 1001)).check();
    }
    Singles::new(SOME_SHARDS, 8, with_copies(8000, 501)).check();
    Singles::new(SOME_SHARDS, 32, with_copies(8000, 501)).check();
    Singles::new(8_000_000, 32, (0..8000).collect()).check();
}

#[test]
fn many_keys_are_treated_as_by_a_loop() {
    for (capacity, bits) in [(ONE_SHARD, 17), (SOME_SHARDS, 12)] {
        Singles::new(capacity, bits, (0..capacity as u64).collect()).check();
    }
    // Lookups are sorted by shard here, in several blocks.
    Singles::new(MANY_SHARDS, 24, with_copies(430_000, 1001)).check();
}

#[test]
fn sorted_lookups_are_answered_in_the_order_of_the_caller() {
    let filter = build(MANY_SHARDS, 24);
    let keys: Vec<u64> = (0..MANY_SHARDS as u64 * 9 / 10).collect();
    assert_eq!(filter.par_insert(&keys).inserted, keys.len());
    let mut rng = fastrand::Rng::with_seed(1);
    // Keys are sorted from 13 * 16,384 on. A block is twice that.
    for length in [212_991, 212_992, 212_993, 425_983, 425_984, 425_985, 1_000_000] {
        let asked: Vec<u64> = (0..length).map(|_| rng.u64(..2 * keys.len() as u64)).collect();
        let expected = answers(&filter, &asked);
        for (pool, (name, look_up)) in pools().iter().zip([LOOKUPS[2], LOOKUPS[5], LOOKUPS[6]]) {
            let mut found: Vec<bool> = expected.iter().map(|found| !found).collect();
            pool.install(|| look_up(&filter, &asked, &mut found));
            assert!(found == expected, "{length} keys by {name}");
        }
    }
}
