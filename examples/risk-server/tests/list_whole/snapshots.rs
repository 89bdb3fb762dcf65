//! Snapshots, and what is made of those that are not as they should be.

use crate::common::{boxed, check, delete, key, open, options, put, until};
use concurrent_cuckoo_filter::{CuckooFilter, SnapshotReader, StableHashBuilder};
use risk_server::list::{Options, Saved, Start};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn why(how: Start) -> String {
    match how {
        Start::BulkLoad { why } => why,
        other => panic!("{other:?}"),
    }
}

fn snapshot(folder: &Path) -> std::path::PathBuf {
    folder.join("filter.snapshot")
}

/// A list of the keys 0 to 99 but 50, whose last snapshot lacks the last 10 changes.
async fn list(folder: &Path) -> BTreeSet<u64> {
    let list = open(&options(folder, 200)).list;
    list.change((0..91).map(put).collect()).await.unwrap();
    assert!(matches!(list.save_snapshot().await.unwrap(), Saved::Written { .. }));
    assert_eq!(list.save_snapshot().await.unwrap(), Saved::NothingNew);
    list.change((91..100).map(put).chain([delete(50)]).collect()).await.unwrap();
    assert_eq!(list.stats().changes_since_snapshot, 10);
    (0..100).filter(|&number| number != 50).collect()
}

#[tokio::test]
async fn the_changes_since_the_snapshot_are_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut model = list(folder.path()).await;
    for round in 0..5 {
        let opened = open(&options(folder.path(), 200));
        assert_eq!(opened.how, Start::Snapshot { changes: 10 + 2 * round });
        assert_eq!(opened.keys, model.len() as u64);
        check(&opened.list, &model, 150);
        let stats = opened.list.stats();
        assert_eq!(stats.last_snapshot.unwrap().bytes, fs::metadata(snapshot(folder.path())).unwrap().len());
        opened.list.change(vec![delete(round), put(100 + round), put(99)]).await.unwrap();
        model.remove(&round);
        model.insert(100 + round);
    }
    let opened = open(&options(folder.path(), 200));
    opened.list.close().await.unwrap();
    let opened = open(&options(folder.path(), 200));
    assert_eq!(opened.how, Start::Snapshot { changes: 0 });
    check(&opened.list, &model, 150);
    opened.list.close().await.unwrap();
}

#[tokio::test]
async fn a_snapshot_that_is_not_as_it_should_be_is_set_aside_and_the_store_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let model = list(folder.path()).await;
    // Wait until it is closed.
    drop(open(&options(folder.path(), 200)));
    let good = fs::read(snapshot(folder.path())).unwrap();
    let stamp = SnapshotReader::new(&good[..]).unwrap().header().metadata().to_vec();
    let made = |keys: std::ops::Range<u64>, stamp: &[u8]| {
        let filter = CuckooFilter::<str, _>::builder().capacity(200).false_positive_rate(0.001);
        let filter = filter.hasher(StableHashBuilder::new()).build().unwrap();
        keys.for_each(|number| filter.insert(&key(number)).unwrap());
        let mut bytes = vec![];
        filter.snapshot().metadata(stamp).write_to(&mut bytes).unwrap();
        bytes
    };
    let mut without_keys = vec![];
    let filter: CuckooFilter<str, StableHashBuilder> =
        SnapshotReader::new(&good[..]).unwrap().into_filter_with_its_keys().unwrap();
    filter.snapshot().metadata(&stamp).without_keys().write_to(&mut without_keys).unwrap();
    let damaged = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        bytes
    };
    let cases = [
        (good[..good.len() / 2].to_vec(), "the snapshot ends within shard 0"),
        (vec![], "the snapshot ends within the header"),
        (damaged(good.len() / 2), "shard 0 of the snapshot is damaged: its checksum does not match"),
        (damaged(0), "this is not a snapshot of a filter: it does not begin as one"),
        ([good.as_slice(), b"x"].concat(), "something follows the snapshot in its file"),
        (without_keys, "the snapshot does not keep the keys of its hasher \"siphash-1-3\"; give the hasher"),
        (made(0..91, b"something else"), "the snapshot is not one of a list"),
        (made(0..90, &stamp), "the snapshot and the 10 changes since make 98 keys, with 0 faults; the store has 99"),
    ];
    for (bytes, expected) in cases {
        fs::write(snapshot(folder.path()), &bytes).unwrap();
        let opened = open(&options(folder.path(), 200));
        assert_eq!(why(opened.how), expected);
        assert_eq!(opened.keys, 99);
        check(&opened.list, &model, 150);
        drop(opened.list);
        assert!(!snapshot(folder.path()).exists());
        assert_eq!(fs::read(folder.path().join("filter.snapshot.refused")).unwrap(), bytes);
    }
    let opened = open(&options(folder.path(), 200));
    assert_eq!(why(opened.how), "there is no snapshot");
    drop(opened.list);
    // The good one is still good.
    fs::write(snapshot(folder.path()), &good).unwrap();
    let opened = open(&options(folder.path(), 200));
    assert_eq!(opened.how, Start::Snapshot { changes: 10 });
    check(&opened.list, &model, 150);
    opened.list.close().await.unwrap();
}

#[tokio::test]
async fn a_snapshot_of_another_list_is_refused() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let model = list(first.path()).await;
    list(second.path()).await;
    drop((open(&options(first.path(), 200)), open(&options(second.path(), 200))));
    fs::copy(snapshot(first.path()), snapshot(second.path())).unwrap();
    let opened = open(&options(second.path(), 200));
    assert_eq!(why(opened.how), "the snapshot is of another list");
    check(&opened.list, &model, 150);
    opened.list.close().await.unwrap();
}

#[tokio::test]
async fn a_snapshot_from_before_the_log_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let model = list(folder.path()).await;
    let old = fs::read(snapshot(folder.path())).unwrap();
    // A snapshot of change 101: the log is trimmed up to there, at the next start at the latest.
    let opened = open(&options(folder.path(), 200));
    opened.list.close().await.unwrap();
    let opened = open(&options(folder.path(), 200));
    opened.list.change(vec![put(120), delete(120)]).await.unwrap();
    opened.list.close().await.unwrap();
    fs::write(snapshot(folder.path()), old).unwrap();
    let opened = open(&options(folder.path(), 200));
    let why = why(opened.how);
    assert_eq!(why, "the snapshot is too old: it ends at change 91, and the log begins after change 101");
    check(&opened.list, &model, 150);
    opened.list.close().await.unwrap();
}

#[tokio::test]
async fn a_snapshot_from_after_the_store_is_refused_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let model = list(folder.path()).await;
    let opened = open(&options(folder.path(), 200));
    opened.list.close().await.unwrap();
    let store = folder.path().join("list.redb");
    let old = fs::read(&store).unwrap();
    let opened = open(&options(folder.path(), 200));
    opened.list.change((200..205).map(put).collect()).await.unwrap();
    opened.list.close().await.unwrap();
    // A store from a backup goes on another way, past the change that the snapshot names.
    fs::write(&store, old).unwrap();
    let opened = open(&options(folder.path(), 200));
    let reason = why(opened.how);
    assert_eq!(reason, "the snapshot is newer than the store: it ends at change 106, the store at change 101");
    check(&opened.list, &model, 250);
    opened.list.change((300..310).map(put).collect()).await.unwrap();
    drop(opened.list);
    let opened = open(&options(folder.path(), 200));
    assert_eq!(why(opened.how), "there is no snapshot");
    check(&opened.list, &model.into_iter().chain(300..310).collect(), 350);
    opened.list.close().await.unwrap();
}

#[tokio::test]
async fn another_rate_or_a_larger_capacity_calls_for_another_filter() {
    let folder = tempfile::tempdir().unwrap();
    let model = list(folder.path()).await;
    let rarer = Options { false_positive_rate: 0.0001, ..options(folder.path(), 200) };
    let opened = open(&rarer);
    assert_eq!(why(opened.how), "the snapshot has fingerprints of 13 bits; 16 are asked for");
    assert_eq!(opened.list.stats().filter.fingerprint_bits, 16);
    check(&opened.list, &model, 150);
    opened.list.close().await.unwrap();
    let larger = Options { capacity: 1000, ..rarer };
    let opened = open(&larger);
    assert_eq!(why(opened.how), "the snapshot is of a filter for 200 keys; 1000 are asked for");
    assert_eq!(opened.list.stats().filter.capacity, 1000);
    check(&opened.list, &model, 150);
    opened.list.close().await.unwrap();
    // A smaller one is no reason.
    let opened = open(&Options { capacity: 10, ..larger });
    assert_eq!(opened.how, Start::Snapshot { changes: 0 });
    assert_eq!(opened.list.stats().filter.capacity, 1000);
    opened.list.close().await.unwrap();
}

#[tokio::test]
async fn a_bulk_load_tells_how_far_it_is_and_leaves_room() {
    let folder = tempfile::tempdir().unwrap();
    let list = open(&options(folder.path(), 100)).list;
    let mut replacement = list.begin_replacement().await.unwrap();
    for first in 0..30 {
        replacement.add((first * 5000..(first + 1) * 5000).map(boxed).collect()).await.unwrap();
    }
    replacement.commit().await.unwrap();
    until(|| list.stats().last_snapshot.is_some());
    list.close().await.unwrap();
    fs::remove_file(snapshot(folder.path())).unwrap();
    let mut told = vec![];
    let opened = risk_server::list::List::open(options(folder.path(), 100), |keys| told.push(keys)).unwrap();
    assert_eq!(told, [131_072, 150_000]);
    assert_eq!(opened.keys, 150_000);
    assert_eq!(opened.list.stats().filter.capacity, 187_500);
    check(&opened.list, &(0..150_000).collect(), 151_000);
    opened.list.close().await.unwrap();
}

#[tokio::test]
async fn a_snapshot_that_cannot_be_written_leaves_the_list_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let list = open(&options(folder.path(), 100)).list;
    list.change(vec![put(1)]).await.unwrap();
    // A folder in its place, which no file can take.
    fs::create_dir_all(snapshot(folder.path()).join("in the way")).unwrap();
    let error = list.save_snapshot().await.unwrap_err();
    let text = format!("{} cannot be written: ", snapshot(folder.path()).display());
    assert!(error.to_string().starts_with(&text), "{error}");
    assert_eq!(list.stats().snapshot_failures, 1);
    assert_eq!(list.change(vec![put(2)]).await.unwrap(), [true]);
    fs::remove_dir_all(snapshot(folder.path())).unwrap();
    assert!(matches!(list.save_snapshot().await.unwrap(), Saved::Written { .. }));
    check(&list, &BTreeSet::from([1, 2]), 5);
    let names = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names, 2, "nothing temporary is left");
    list.close().await.unwrap();
}
