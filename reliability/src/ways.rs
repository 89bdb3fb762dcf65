//! Every way to do one thing to many keys, by name.

use crate::shape::Filter;
use concurrent_cuckoo_filter::{BulkReport, RemoveReport};

pub(crate) type LookUp = (&'static str, fn(&Filter, &[u64], &mut [bool]));
pub(crate) type Insert = (&'static str, fn(&Filter, &[u64]) -> BulkReport);
pub(crate) type Remove = (&'static str, fn(&Filter, &[u64]) -> RemoveReport);

pub(crate) const LOOKUPS: [LookUp; 8] = [
    ("contains", |filter, keys, found| answer(keys, found, |key| filter.contains(key))),
    ("contains_batch", |filter, keys, found| filter.contains_batch(keys, found)),
    ("par_contains", |filter, keys, found| filter.par_contains(keys, found)),
    ("contains_hash", |filter, keys, found| answer(keys, found, |key| filter.contains_hash(filter.hash(key)))),
    ("contains_batch_hash", |filter, keys, found| filter.contains_batch_hash(&hashes(filter, keys), found)),
    ("par_contains_hash", |filter, keys, found| filter.par_contains_hash(&hashes(filter, keys), found)),
    ("bulk().contains", |filter, keys, found| filter.bulk().progress(|_| {}).contains(keys, found)),
    ("bulk().contains_hash", |filter, keys, found| filter.bulk().contains_hash(&hashes(filter, keys), found)),
];

pub(crate) const INSERTS: [Insert; 9] = [
    ("insert_batch", |filter, keys| filter.insert_batch(keys)),
    ("par_insert", |filter, keys| filter.par_insert(keys)),
    ("par_insert_iter", |filter, keys| filter.par_insert_iter(keys.iter().copied())),
    ("insert_batch_hash", |filter, keys| filter.insert_batch_hash(&hashes(filter, keys))),
    ("par_insert_hash", |filter, keys| filter.par_insert_hash(&hashes(filter, keys))),
    ("par_insert_iter_hash", |filter, keys| filter.par_insert_iter_hash(hashes(filter, keys))),
    ("bulk().insert", |filter, keys| filter.bulk().progress(|_| {}).insert(keys)),
    ("bulk().insert_iter", |filter, keys| filter.bulk().insert_iter(keys.iter().copied())),
    ("bulk().insert_hash", |filter, keys| filter.bulk().insert_hash(&hashes(filter, keys))),
];

pub(crate) const REMOVES: [Remove; 6] = [
    ("remove_batch", |filter, keys| filter.remove_batch(keys)),
    ("par_remove", |filter, keys| filter.par_remove(keys)),
    ("remove_batch_hash", |filter, keys| filter.remove_batch_hash(&hashes(filter, keys))),
    ("par_remove_hash", |filter, keys| filter.par_remove_hash(&hashes(filter, keys))),
    ("bulk().remove", |filter, keys| filter.bulk().progress(|_| {}).remove(keys)),
    ("bulk().remove_hash", |filter, keys| filter.bulk().remove_hash(&hashes(filter, keys))),
];

fn hashes(filter: &Filter, keys: &[u64]) -> Vec<u64> {
    keys.iter().map(|key| filter.hash(key)).collect()
}

fn answer(keys: &[u64], found: &mut [bool], contains: impl Fn(&u64) -> bool) {
    assert_eq!(keys.len(), found.len());
    for (key, found) in keys.iter().zip(found) {
        *found = contains(key);
    }
}
