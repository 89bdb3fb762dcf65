//! Operations on one key, and every way to insert, look up or remove many keys, by name.

use crate::Answer;
use concurrent_cuckoo_filter::{BulkReport, CuckooFilter, DefaultHashBuilder, RemoveReport};
use std::hash::BuildHasher;
use std::marker::PhantomData;

/// An operation on one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Single {
    Insert,
    InsertUnique,
    Contains,
    Count,
    Remove,
    RemoveAll,
}

/// Runs the operation on a key, given as itself or by its hash.
pub fn single<S: BuildHasher>(filter: &CuckooFilter<u64, S>, what: Single, key: u64, by_hash: bool) -> Answer {
    let hash = filter.hash(&key);
    match (what, by_hash) {
        (Single::Insert, false) => Answer::of_insert(filter.insert(&key)),
        (Single::Insert, true) => Answer::of_insert(filter.hashed().insert(&hash)),
        (Single::InsertUnique, false) => Answer::of_unique(filter.insert_unique(&key)),
        (Single::InsertUnique, true) => Answer::of_unique(filter.hashed().insert_unique(&hash)),
        (Single::Contains, false) => Answer::Found(filter.contains(&key)),
        (Single::Contains, true) => Answer::Found(filter.hashed().contains(&hash)),
        (Single::Count, false) => Answer::counted(filter.count(&key) as usize),
        (Single::Count, true) => Answer::counted(filter.hashed().count(&hash) as usize),
        (Single::Remove, false) => Answer::Removed(filter.remove(&key)),
        (Single::Remove, true) => Answer::Removed(filter.hashed().remove(&hash)),
        (Single::RemoveAll, false) => Answer::removed_all(filter.remove_all(&key)),
        (Single::RemoveAll, true) => Answer::removed_all(filter.hashed().remove_all(&hash)),
    }
}

/// A way to look keys up.
pub type Lookup<S> = (&'static str, fn(&CuckooFilter<u64, S>, &[u64], &mut [bool]));
/// A way to insert keys.
pub type Insert<S> = (&'static str, fn(&CuckooFilter<u64, S>, &[u64]) -> BulkReport);
/// A way to remove keys.
pub type Remove<S> = (&'static str, fn(&CuckooFilter<u64, S>, &[u64]) -> RemoveReport);

/// The ways for filters with this hash function.
pub struct Ways<S>(PhantomData<S>);

impl<S: BuildHasher + Sync> Ways<S> {
    /// Every way to look keys up. Only the last four use other threads.
    pub const LOOKUPS: [Lookup<S>; 8] = [
        ("contains", |filter, keys, found| answer(keys, found, |key| filter.contains(key))),
        ("contains_batch", |filter, keys, found| filter.contains_batch(keys, found)),
        ("hashed().contains", |filter, keys, found| {
            answer(keys, found, |key| filter.hashed().contains(&filter.hash(key)))
        }),
        ("hashed().contains_batch", |filter, keys, found| filter.hashed().contains_batch(&hashes(filter, keys), found)),
        ("par_contains", |filter, keys, found| filter.par_contains(keys, found)),
        ("hashed().par_contains", |filter, keys, found| filter.hashed().par_contains(&hashes(filter, keys), found)),
        ("bulk().contains", |filter, keys, found| filter.bulk().progress(|_| {}).contains(keys, found)),
        ("hashed().bulk().contains", |filter, keys, found| {
            filter.hashed().bulk().contains(&hashes(filter, keys), found)
        }),
    ];

    /// Every way to insert keys.
    pub const INSERTS: [Insert<S>; 7] = [
        ("insert_batch", |filter, keys| filter.insert_batch(keys)),
        ("par_insert", |filter, keys| filter.par_insert(keys)),
        ("bulk().insert", |filter, keys| filter.bulk().progress(|_| {}).insert(keys)),
        ("bulk().insert_iter", |filter, keys| filter.bulk().insert_iter(keys.iter().copied())),
        ("hashed().insert_batch", |filter, keys| filter.hashed().insert_batch(&hashes(filter, keys))),
        ("hashed().par_insert", |filter, keys| filter.hashed().par_insert(&hashes(filter, keys))),
        ("hashed().bulk().insert_iter", |filter, keys| filter.hashed().bulk().insert_iter(hashes(filter, keys))),
    ];

    /// Every way to remove keys.
    pub const REMOVES: [Remove<S>; 4] = [
        ("remove_batch", |filter, keys| filter.remove_batch(keys)),
        ("bulk().remove", |filter, keys| filter.bulk().progress(|_| {}).remove(keys)),
        ("hashed().remove_batch", |filter, keys| filter.hashed().remove_batch(&hashes(filter, keys))),
        ("hashed().bulk().remove", |filter, keys| filter.hashed().bulk().remove(&hashes(filter, keys))),
    ];
}

/// [`Ways::LOOKUPS`] for the default hash function.
pub const LOOKUPS: [Lookup<DefaultHashBuilder>; 8] = Ways::LOOKUPS;
/// [`Ways::INSERTS`] for the default hash function.
pub const INSERTS: [Insert<DefaultHashBuilder>; 7] = Ways::INSERTS;
/// [`Ways::REMOVES`] for the default hash function.
pub const REMOVES: [Remove<DefaultHashBuilder>; 4] = Ways::REMOVES;

fn hashes<S: BuildHasher>(filter: &CuckooFilter<u64, S>, keys: &[u64]) -> Vec<u64> {
    keys.iter().map(|key| filter.hash(key)).collect()
}

fn answer(keys: &[u64], found: &mut [bool], contains: impl Fn(&u64) -> bool) {
    assert_eq!(keys.len(), found.len());
    for (key, found) in keys.iter().zip(found) {
        *found = contains(key);
    }
}
