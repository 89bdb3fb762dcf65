//! Tests of the list as a whole.

mod concurrent;
mod faults;
mod opening;
mod sequences;

use super::open::Start;
use super::*;
use std::collections::BTreeSet;
use std::path::Path;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn options(folder: &Path) -> Options {
    let (folder, cache_bytes) = (folder.to_owned(), 1 << 20);
    Options { folder, capacity: 1, max_capacity: 10_000_000, false_positive_rate: 0.001, cache_bytes }
}

fn key(number: u64) -> String {
    format!("{number:x}.example")
}

fn boxed(number: u64) -> Box<str> {
    key(number).into()
}

fn put(number: u64) -> Change {
    Change { key: boxed(number), put: true }
}

fn delete(number: u64) -> Change {
    Change { key: boxed(number), put: false }
}

/// Opens a list; one that was dropped just before may still be letting go of its file.
fn open(options: &Options) -> Opened {
    loop {
        match List::open(options.clone(), |_| {}) {
            Ok(opened) => return opened,
            Err(OpenError::InUse(_)) => thread::sleep(Duration::from_millis(1)),
            Err(error) => panic!("{error}"),
        }
    }
}

/// The store and the front are those of the model, whose keys are below `max`.
#[track_caller]
fn check(list: &List, model: &BTreeSet<u64>, max: u64) {
    let stats = list.stats();
    assert_eq!(stats.totals.keys, model.len() as u64, "the count of keys");
    assert_eq!(stats.filter.len, stats.totals.keys, "each key is in the filter once: {stats:?}");
    assert_eq!(stats.totals.filter_faults, 0, "{stats:?}");
    let keys: Vec<String> = (0..max).map(key).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let mut may = vec![false; keys.len()];
    list.may_be_listed_batch(&keys, &mut may);
    for ((number, listed), may) in (0..).zip(list.confirm(&keys).unwrap()).zip(may) {
        assert_eq!(listed, model.contains(&number), "{number} in the store");
        assert_eq!(may, list.may_be_listed(&key(number)));
        assert!(may || !listed, "{number} is on the list, and the front says no");
    }
}

async fn replace(list: &List, numbers: impl IntoIterator<Item = u64>) -> u64 {
    let mut replacement = list.begin_replacement().await.unwrap();
    for keys in numbers.into_iter().collect::<Vec<_>>().chunks(1000) {
        replacement.add(keys.iter().copied().map(boxed).collect()).await.unwrap();
    }
    replacement.commit().await.unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}
