//! A batch does what a loop of single operations does: the same answers, the same refusals at the same places, the same
//! filter afterwards. Filters of one shape with equal seeds are compared, so false positives must be equal too.

use crate::singles::{WIDTHS, answers, build, check_overfull, hashes_of, indices};
use crate::singles::{inserted_one_by_one, is_one_too_many, refused};
use concurrent_cuckoo_filter::{CuckooFilter, InsertError};
use std::hash::{Hash, Hasher};
use testkit::watchdog;
use testkit::{ABSENT, Filter};

/// Around the groups of 4, the window of 16, and the 4096 from which a bulk operation is no batch.
const LENGTHS: [usize; 12] = [0, 1, 3, 4, 15, 16, 17, 127, 129, 4095, 4096, 4097];

/// Each key twice, here and there the one that is too many.
fn with_copies(length: usize) -> Vec<u64> {
    (0..length as u64).map(|i| if i % 11 == 0 { 0 } else { i / 2 + 1 }).collect()
}

/// One filter is given batches of keys, one batches of their hashes, one a key at a time.
struct Trio {
    keys: Filter,
    hashes: Filter,
    singles: Filter,
}

impl Trio {
    fn new(capacity: usize, bits: u32) -> Self {
        Trio { keys: build(capacity, bits), hashes: build(capacity, bits), singles: build(capacity, bits) }
    }

    /// Says what was refused.
    fn insert(&self, keys: &[u64]) -> Vec<(usize, InsertError)> {
        let expected = inserted_one_by_one(&self.singles, keys);
        let report = self.keys.insert_batch(keys);
        assert_eq!(refused(&report), expected);
        assert_eq!((report.inserted, report.rejected_unlisted), (keys.len() - expected.len(), 0));
        assert_eq!(self.hashes.hashed().insert_batch(&hashes_of(&self.hashes, keys)), report);
        expected
    }

    /// Says what was missing.
    fn remove(&self, keys: &[u64]) -> Vec<usize> {
        let missing: Vec<usize> = (0..keys.len()).filter(|&index| !self.singles.remove(&keys[index])).collect();
        let report = self.keys.remove_batch(keys);
        assert_eq!(report.missing, missing);
        assert_eq!((report.removed, report.missing_unlisted), (keys.len() - missing.len(), 0));
        assert_eq!(self.hashes.hashed().remove_batch(&hashes_of(&self.hashes, keys)), report);
        missing
    }

    fn ask(&self, keys: &[u64]) {
        let expected = answers(&self.singles, keys);
        // What is not answered stays wrong.
        let wrong: Vec<bool> = expected.iter().map(|present| !present).collect();
        let mut found = wrong.clone();
        self.keys.contains_batch(keys, &mut found);
        assert!(found == expected, "by key");
        found.clone_from(&wrong);
        self.hashes.hashed().contains_batch(&hashes_of(&self.hashes, keys), &mut found);
        assert!(found == expected, "by hash");
        assert!(answers(&self.keys, keys) == expected, "one by one");
    }

    /// As many keys are asked as were inserted: those, absent ones, and some of both.
    fn check(&self, keys: &[u64]) {
        assert_eq!((self.keys.len(), self.hashes.len()), (self.singles.len(), self.singles.len()));
        for key in keys {
            let count = self.singles.count(key);
            assert_eq!((self.keys.count(key), self.hashes.count(key)), (count, count), "copies of key {key}");
        }
        let absent: Vec<u64> = (ABSENT..).take(keys.len()).collect();
        let both: Vec<u64> = keys.iter().zip(&absent).map(|(&a, &b)| if a % 3 == 0 { b } else { a }).collect();
        self.ask(keys);
        self.ask(&absent);
        self.ask(&both);
    }

    fn run(&self, length: usize) {
        let keys = with_copies(length);
        let refused = self.insert(&keys);
        if length > 100 {
            assert!(refused.iter().any(|&(index, _)| index == 8 * 11), "the ninth copy of key 0");
        }
        self.check(&keys);
        // Half of what is there, and as much that is not.
        let taken: Vec<u64> = keys.iter().map(|&key| if key % 2 == 0 { key } else { key + ABSENT }).collect();
        self.remove(&taken);
        self.check(&keys);
        self.remove(&keys);
        self.check(&keys);
        self.insert(&keys);
        self.check(&keys);
    }
}

#[test]
fn a_batch_does_what_a_loop_does_at_every_width_and_length() {
    for bits in WIDTHS {
        for length in LENGTHS {
            // A class of 4 bits may be full long before the filter is.
            Trio::new(if bits == 4 { 2 * length } else { length }, bits).run(length);
        }
    }
}

/// In tables whose lines come from memory, and in tables that sit in a cache.
#[test]
fn a_batch_of_many_does_what_a_loop_does() {
    for (capacity, bits) in [(200_000, 13), (5_000_000, 16), (3_000_000, 32)] {
        let trio = Trio::new(capacity, bits);
        let keys = with_copies(200_000);
        trio.insert(&keys);
        trio.check(&keys);
        trio.remove(&keys[..100_000]);
        trio.check(&keys);
    }
}

#[test]
fn every_width_is_looked_up_right_in_a_table_out_of_cache() {
    for bits in WIDTHS {
        // 9 MiB and more.
        let filter = build(9 * 8 * (1 << 20) / bits as usize, bits);
        let keys: Vec<u64> = (0..100_003).collect();
        assert_eq!(filter.insert_batch(&keys).inserted, keys.len());
        let asked: Vec<u64> = keys.iter().map(|&key| if key % 2 == 0 { key } else { key + ABSENT }).collect();
        let mut found: Vec<bool> = asked.iter().map(|&key| key >= ABSENT).collect();
        filter.contains_batch(&asked, &mut found);
        assert!(found == answers(&filter, &asked), "{bits} bits");
        assert_eq!(filter.remove_batch(&keys).removed, keys.len());
        assert!(filter.is_empty());
    }
}

#[test]
fn copies_beyond_the_eighth_are_refused_by_their_index() {
    for bits in WIDTHS {
        for others in [0, 1, 5, 16, 100] {
            let filter = build(10_000, bits);
            // The one key stands between `others` others each time.
            let mut keys = vec![];
            for round in 0..12 {
                keys.push(0);
                keys.extend((0..others).map(|other| 1 + round * others + other));
            }
            let report = filter.insert_batch(&keys);
            assert!(report.rejected.iter().all(|rejection| is_one_too_many(&rejection.error)));
            let refused = indices(&report).into_iter().map(|index| index as u64);
            if bits >= 24 {
                let expected = (8..12).map(|round| round * (others + 1));
                assert!(refused.eq(expected), "{others} others");
            } else {
                // Others may be of the same class.
                let ninth = 8 * (others + 1);
                assert!(refused.into_iter().any(|index| index == ninth), "{others} others");
            }
            assert_eq!(report.inserted, filter.len());
        }
    }
}

#[test]
fn a_batch_beyond_what_the_filter_holds_is_refused_key_by_key() {
    for capacity in [0, 10, 100, 1000, 20_000] {
        let (filter, singles) = (build(capacity, 32), build(capacity, 32));
        let keys: Vec<u64> = (0..(capacity + capacity / 4 + 40) as u64).collect();
        let expected = inserted_one_by_one(&singles, &keys);
        let report = filter.insert_batch(&keys);
        // Up to the first refusal both search as hard for a place.
        assert_eq!(refused(&report)[0], expected[0]);
        check_overfull(&keys, &filter, &report);
        assert!(filter.len() * 100 >= singles.len() * 99, "{} of {}", filter.len(), singles.len());

        // Only what was stored can be taken away, and then there is room again.
        let (stored, out) = (report.inserted, indices(&report));
        let report = filter.remove_batch(&keys);
        assert_eq!((report.removed, report.missing), (stored, out));
        assert!(filter.is_empty());
        let fitting = &keys[..capacity];
        assert_eq!(filter.insert_batch(fitting).inserted, capacity);
        let mut found = vec![false; capacity];
        filter.contains_batch(fitting, &mut found);
        assert!(found.iter().all(|&found| found));
    }
}

#[test]
fn a_batch_of_keys_without_a_size_is_counted_right() {
    let filter = CuckooFilter::<()>::with_capacity(100);
    let report = filter.insert_batch(&[(); 20]);
    assert_eq!((report.inserted, report.rejected[0].index, report.rejected.len()), (8, 8, 12));
    let mut found = [false; 19];
    filter.contains_batch(&[(); 19], &mut found);
    assert_eq!(found, [true; 19]);
    let report = filter.remove_batch(&[(); 10]);
    assert_eq!((report.removed, report.missing), (8, vec![8, 9]));
}

/// A `Hash` that uses the filter that asks for it, in each kind of batch.
#[test]
fn a_hash_may_use_the_filter_during_a_batch() {
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
    assert!(filter.is_empty());
}
