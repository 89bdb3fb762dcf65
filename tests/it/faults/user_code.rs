//! The location of panics that callers cause.

use crate::support::panics;
use concurrent_cuckoo_filter::CuckooFilter;
use std::cell::RefCell;
use std::hash::RandomState;
use std::panic;

thread_local! {
    /// The file of the last panic of this thread.
    static BLAMED: RefCell<String> = const { RefCell::new(String::new()) };
}

type Filter = CuckooFilter<u64>;

type Call = (&'static str, fn(&Filter, &[u64], &mut [bool]));

/// With a number of answers that differs from that of the keys.
const CALLS: [Call; 11] = [
    ("contains_batch", |filter, keys, found| filter.contains_batch(keys, found)),
    ("contains_batch_hash", |filter, keys, found| filter.hashed().contains_batch(keys, found)),
    ("par_contains", |filter, keys, found| filter.par_contains(keys, found)),
    ("par_contains_hash", |filter, keys, found| filter.hashed().par_contains(keys, found)),
    ("insert_unique_batch", |filter, keys, found| drop(filter.insert_unique_batch(keys, found))),
    ("insert_unique_batch_hash", |filter, keys, found| drop(filter.hashed().insert_unique_batch(keys, found))),
    ("par_insert_unique", |filter, keys, found| drop(filter.bulk().insert_unique(keys, found))),
    ("par_insert_unique_hash", |filter, keys, found| drop(filter.hashed().bulk().insert_unique(keys, found))),
    ("Bulk::contains", |filter, keys, found| filter.bulk().contains(keys, found)),
    ("Bulk::contains_hash", |filter, keys, found| filter.hashed().bulk().contains(keys, found)),
    ("Bulk::progress", |filter, keys, found| {
        filter.bulk().progress(|_| panic!("there is no progress")).contains(keys, found);
    }),
];

/// A panic that a caller causes by its arguments names the caller's line, not one of the crate, and states what is wrong.
#[test]
fn panics_by_contract_name_the_line_of_the_caller() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let location = panic.location().expect("std gives it always");
        BLAMED.set(location.file().into());
        print(panic);
    }));
    let blames_the_caller = |name, work: &dyn Fn(&mut [bool])| {
        let mut found = vec![true; 16];
        let message = panics(|| work(&mut found));
        assert_eq!(BLAMED.take(), file!(), "{name}");
        assert!(found.iter().all(|&found| found), "{name} has answered");
        message
    };
    let message = blames_the_caller("with_capacity", &|_| drop(Filter::with_capacity(usize::MAX)));
    assert!(message.contains("address space"), "{message}");
    blames_the_caller("with_capacity_and_hasher", &|_| {
        drop(CuckooFilter::<u64, _>::with_capacity_and_hasher(usize::MAX, RandomState::new()));
    });
    let filter = Filter::with_capacity(10);
    for (name, call) in CALLS {
        for keys in [0, 15, 17, 4095, 100_001] {
            let message = blames_the_caller(name, &|found| call(&filter, &vec![1; keys], found));
            assert!(message.contains("differ") && message.contains("16"), "{name}: {message}");
            assert!(message.contains(&keys.to_string()) && filter.is_empty(), "{name}: {message}");
        }
    }
}
