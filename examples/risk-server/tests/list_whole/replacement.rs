//! Whole new lists.

use crate::common::{boxed, check, delete, key, open, options, put, runtime, until, while_asked};
use risk_server::list::{List, ReplaceError, Replaced, Start};
use std::collections::BTreeSet;
use std::ops::Range;

async fn replace(list: &List, keys: impl Iterator<Item = u64>) -> Replaced {
    let mut replacement = list.begin_replacement().await.unwrap();
    let keys: Vec<u64> = keys.collect();
    for keys in keys.chunks(1000) {
        replacement.add(keys.iter().copied().map(boxed).collect()).await.unwrap();
    }
    replacement.commit().await.unwrap()
}

#[test]
fn no_key_of_both_lists_is_missed_at_any_moment() {
    let (folder, runtime) = (tempfile::tempdir().unwrap(), runtime());
    let options = options(folder.path(), 100);
    let list = open(&options).list;
    let stable: Vec<u64> = (0..500).collect();
    runtime.block_on(list.change(stable.iter().copied().map(put).collect())).unwrap();
    let mut last = BTreeSet::new();
    while_asked(&list, &stable, || {
        for round in 1..=12 {
            // Others put and delete meanwhile what is on neither list.
            let other = runtime.spawn({
                let list = list.clone();
                async move {
                    for number in 0..30 {
                        list.change(vec![put(900_000 + number)]).await.unwrap();
                        list.change(vec![delete(900_000 + number)]).await.unwrap();
                    }
                }
            });
            last = stable.iter().copied().chain(round * 10_000..round * 10_000 + 300 * round).collect();
            let replaced = runtime.block_on(replace(&list, last.iter().copied()));
            assert_eq!(replaced.keys, last.len() as u64);
            runtime.block_on(other).unwrap();
        }
    });
    check(&list, &last, 130_000);
    assert_eq!(list.stats().replacements, 12);
    runtime.block_on(list.close()).unwrap();
    let opened = open(&options);
    assert_eq!(opened.how, Start::Snapshot { changes: 0 });
    check(&opened.list, &last, 130_000);
    runtime.block_on(opened.list.close()).unwrap();
}

#[tokio::test]
async fn a_key_twice_counts_once_and_the_new_list_alone_counts() {
    let folder = tempfile::tempdir().unwrap();
    let list = open(&options(folder.path(), 100)).list;
    list.change((0..50).map(put).collect()).await.unwrap();
    let mut replacement = list.begin_replacement().await.unwrap();
    replacement.add(vec![boxed(1), boxed(2), boxed(1)]).await.unwrap();
    replacement.add(vec![boxed(2), boxed(60)]).await.unwrap();
    replacement.add(vec![]).await.unwrap();
    // Until the commit, the list is asked and changed as ever; it goes with all that was changed.
    check(&list, &(0..50).collect(), 70);
    list.change(vec![put(61), delete(1)]).await.unwrap();
    check(&list, &(0..50).filter(|&number| number != 1).chain([61]).collect(), 70);
    assert_eq!(replacement.commit().await.unwrap().keys, 3);
    check(&list, &BTreeSet::from([1, 2, 60]), 70);
    assert_eq!(list.change(vec![delete(61), delete(60), put(1)]).await.unwrap(), [false, true, false]);
    check(&list, &BTreeSet::from([1, 2]), 70);
    assert_eq!(replace(&list, std::iter::empty()).await.keys, 0);
    check(&list, &BTreeSet::new(), 70);
    list.close().await.unwrap();
}

#[tokio::test]
async fn one_replacement_is_made_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let list = open(&options(folder.path(), 100)).list;
    let mut first = list.begin_replacement().await.unwrap();
    assert!(matches!(list.begin_replacement().await, Err(ReplaceError::UnderWay)));
    first.add(vec![boxed(1)]).await.unwrap();
    assert!(matches!(list.begin_replacement().await, Err(ReplaceError::UnderWay)));
    first.commit().await.unwrap();
    let second = list.begin_replacement().await.unwrap();
    drop(second);
    assert_eq!(list.begin_replacement().await.unwrap().commit().await.unwrap().keys, 0);
    list.close().await.unwrap();
}

#[tokio::test]
async fn an_abandoned_replacement_changes_nothing_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let list = open(&options(folder.path(), 100)).list;
    list.change((0..50).map(put).collect()).await.unwrap();
    for round in 0..3 {
        let mut replacement = list.begin_replacement().await.unwrap();
        // In the table already, in one of the rounds.
        for first in 0..round * 70 {
            replacement.add((first * 1000..first * 1000 + 1000).map(boxed).collect()).await.unwrap();
        }
        drop(replacement);
        check(&list, &(0..50).collect(), 20_000);
    }
    let mut replacement = list.begin_replacement().await.unwrap();
    let error = replacement.add(vec![boxed(1), "".into()]).await.unwrap_err();
    assert_eq!(error.to_string(), "key 1: the key is empty; a key has 1 to 1024 bytes");
    replacement.add(vec![boxed(7)]).await.unwrap();
    assert_eq!(replacement.commit().await.unwrap().keys, 1);
    check(&list, &BTreeSet::from([7]), 20_000);
    list.close().await.unwrap();
}

#[tokio::test]
async fn a_start_amid_a_replacement_knows_the_old_list_only() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 100);
    let list = open(&options).list;
    list.change((0..50).map(put).collect()).await.unwrap();
    let mut replacement = list.begin_replacement().await.unwrap();
    // So many that they are in the table already.
    replacement.add((40..140_000).map(boxed).collect()).await.unwrap();
    drop((list, replacement));
    let list = open(&options).list;
    check(&list, &(0..50).collect(), 30_000);
    // What was left is removed before another one begins.
    assert_eq!(replace(&list, 45..47).await.keys, 2);
    check(&list, &BTreeSet::from([45, 46]), 30_000);
    list.close().await.unwrap();
}

#[tokio::test]
async fn a_start_right_after_a_replacement_refuses_the_snapshot_from_before() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 100);
    let list = open(&options).list;
    list.change((0..50).map(put).collect()).await.unwrap();
    list.save_snapshot().await.unwrap();
    let before = std::fs::read(folder.path().join("filter.snapshot")).unwrap();
    replace(&list, 25..75).await;
    list.change(vec![put(80), delete(30)]).await.unwrap();
    list.close().await.unwrap();
    // As if the process had been killed before the snapshot that follows a replacement.
    std::fs::write(folder.path().join("filter.snapshot"), before).unwrap();
    let opened = open(&options);
    let Start::BulkLoad { why } = opened.how else { panic!("{:?}", opened.how) };
    assert!(
        why.starts_with("the snapshot is too old: it ends at change 50, and the log begins after change 5"),
        "{why}"
    );
    let model = (25..75).filter(|&number| number != 30).chain([80]).collect();
    check(&opened.list, &model, 100);
    opened.list.close().await.unwrap();
}

#[test]
fn a_replacement_amid_growth_wins() {
    let (folder, runtime) = (tempfile::tempdir().unwrap(), runtime());
    let list = open(&options(folder.path(), 1)).list;
    for round in 0..20 {
        let numbers = |range: Range<u64>| range.map(move |number| round * 1000 + number);
        // The filter is full now, and a larger one is being built.
        runtime.block_on(list.change(numbers(0..300).map(put).collect())).unwrap();
        let replaced = runtime.block_on(replace(&list, numbers(200..400)));
        assert_eq!(replaced.keys, 200);
        check(&list, &numbers(200..400).collect(), 21_000);
        runtime.block_on(list.change(numbers(400..900).map(put).collect())).unwrap();
        check(&list, &numbers(200..900).collect(), 21_000);
    }
    until(|| list.stats().overflow_keys == 0);
    // A build that a replacement makes void ends; it does not fail.
    assert_eq!(list.stats().rebuild_failures, 0);
    assert!(list.may_be_listed(&key(19_899)));
    runtime.block_on(list.close()).unwrap();
}
