//! Tests of the whole list that need more than its face: a file that fails, a front that is looked into.

mod faults;
mod faulty;
mod groups;
mod overflow;

use super::*;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Options for a list of so many keys in this folder.
fn options(folder: &tempfile::TempDir, capacity: usize) -> Options {
    Options::of_test(folder.path(), capacity)
}

fn key(number: usize) -> String {
    format!("key {number}")
}

fn put(number: usize) -> Change {
    Change::Put(key(number).into())
}

fn delete(number: usize) -> Change {
    Change::Delete(key(number).into())
}

/// The store and the front are those of the model, whose keys are below `most`.
fn check(list: &List, model: &HashSet<usize>, most: usize) {
    let stats = list.stats();
    assert_eq!(stats.keys, model.len() as u64, "the count of keys");
    assert_eq!(stats.filter.len + stats.overflow_keys, stats.keys, "each key is in the front once: {stats:?}");
    assert_eq!(stats.filter_faults, 0);
    let keys: Vec<String> = (0..most).map(key).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let mut may = vec![false; most];
    list.may_be_listed_batch(&keys, &mut may);
    for (number, listed) in list.confirm(&keys).unwrap().into_iter().enumerate() {
        assert_eq!(listed, model.contains(&number), "{number} in the store");
        assert!(may[number] || !listed, "{number} is on the list, and the front says no");
        assert_eq!(may[number], list.may_be_listed(keys[number]));
    }
}

/// Each thread that waits to save holds what the list's threads share.
#[test]
fn saves_that_are_due_do_not_pile_up() {
    let folder = tempfile::tempdir().unwrap();
    let list = List::open(options(&folder, 10), |_| {}).unwrap().list;
    let (shared, sender) = (Arc::clone(&list.0.shared), list.0.sender.clone());
    let saving = shared.saving.lock();
    let before = Arc::strong_count(&shared);
    for _ in 0..5 {
        snapshot::save_later(Arc::clone(&shared), sender.clone());
    }
    assert_eq!(Arc::strong_count(&shared), before + 1, "one waits");
    drop(saving);
    while Arc::strong_count(&shared) > before {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(shared.options.snapshot().exists());
    assert!(!shared.save_waits.load(Ordering::Acquire), "the next one is saved too");
}
