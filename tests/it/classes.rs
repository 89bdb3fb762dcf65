//! Classes: keys of one class are treated as one key, and keys of two classes are not.

use concurrent_cuckoo_filter::{Builder, CuckooFilter, InsertError};
use std::collections::HashMap;

type Filter = CuckooFilter<u64>;

/// The copies of each class, kept beside a filter.
#[derive(Default)]
struct Copies(HashMap<u128, usize>);

impl Copies {
    fn of(&self, filter: &Filter, hash: u64) -> usize {
        self.0.get(&filter.hashed().class_of(&hash)).copied().unwrap_or(0)
    }

    fn insert(&mut self, filter: &Filter, hash: u64) {
        let copies = self.0.entry(filter.hashed().class_of(&hash)).or_default();
        match filter.hashed().insert(&hash) {
            Ok(()) => *copies += 1,
            Err(error) => assert_eq!((error, *copies), (InsertError::TooManyCopies, 8), "{hash}"),
        }
    }

    fn assert_are_those_of(&self, filter: &Filter, hashes: impl Iterator<Item = u64>) {
        for hash in hashes {
            let copies = self.of(filter, hash);
            assert_eq!(
                (filter.hashed().count(&hash) as usize, filter.hashed().contains(&hash)),
                (copies, copies > 0),
                "{hash}"
            );
        }
    }
}

/// With so few bits that some absent keys belong to present classes, at each size.
fn check(builder: Builder<u64>, keys: u64) {
    let (filter, mut copies) = (builder.fingerprint_bits(6).build().unwrap(), Copies::default());
    let classes: Vec<_> = (0..keys).map(|hash| filter.hashed().class_of(&hash)).collect();
    let begun_with = filter.stats().tables;
    for step in 1..=4 {
        (keys * (step - 1) / 4..keys * step / 4).for_each(|hash| copies.insert(&filter, hash));
        copies.assert_are_those_of(&filter, 0..2 * keys);
    }
    assert_eq!(filter.stats().tables > begun_with, filter.config().max_capacity > filter.capacity());
    assert!((keys..2 * keys).any(|hash| filter.hashed().contains(&hash)), "no two keys of one class");

    let mut snapshot = Vec::new();
    filter.write_to(&mut snapshot).unwrap();
    let loaded = Filter::read_from(&snapshot[..], filter.hasher().clone()).unwrap();
    for filter in [&filter, &filter.clone(), &loaded] {
        let copies = &mut Copies(copies.0.clone());
        assert!((0..keys).map(|hash| filter.hashed().class_of(&hash)).eq(classes.iter().copied()));
        copies.assert_are_those_of(filter, 0..2 * keys);
        // Also with keys that were never inserted and whose class is present.
        for hash in (0..2 * keys).filter(|hash| hash % 3 != 0) {
            let had = copies.of(filter, hash);
            assert_eq!(filter.hashed().remove(&hash), had > 0, "{hash}");
            copies.0.insert(filter.hashed().class_of(&hash), had.saturating_sub(1));
        }
        copies.assert_are_those_of(filter, 0..2 * keys);
    }
}

#[test]
fn keys_are_treated_alike_exactly_if_they_are_of_one_class() {
    check(Filter::builder().capacity(100), 100);
    check(Filter::builder().capacity(3_000), 3_000);
    check(Filter::builder().capacity(600_000), 20_000);
    check(Filter::builder().capacity(1_000).max_capacity(120_000), 60_000);
}

/// A caller who removes only keys that were admitted removes no other key's copy. (`crates/reliability` removes others.)
#[test]
fn what_was_admitted_can_be_removed_and_nothing_else_is_lost() {
    // Narrow fingerprints, so that many keys share a class.
    let filter = CuckooFilter::<u64>::builder().capacity(20_000).fingerprint_bits(8).build().unwrap();
    let (admitted, taken_for_present): (Vec<u64>, Vec<u64>) =
        (0..20_000).partition(|key| filter.insert_unique(key).unwrap());
    assert!(taken_for_present.len() > 100, "some keys share a class with another");
    let (leaving, staying) = admitted.split_at(admitted.len() / 2);
    assert!(leaving.iter().all(|key| filter.remove(key)));
    assert!(staying.iter().all(|key| filter.contains(key)), "no other key lost a copy");
    assert_eq!(filter.len(), staying.len());
}
