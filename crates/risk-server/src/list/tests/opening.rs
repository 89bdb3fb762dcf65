//! Opening and closing, snapshots in any state, and replacements that are cut off.

use super::*;
use concurrent_cuckoo_filter::{CuckooFilter, SnapshotReader, StableHashBuilder};
use std::fs;

#[test]
fn what_is_not_a_list_is_refused_by_name() {
    let folder = folder();
    let file = folder.path().join("list.redb");
    fs::write(&file, "something else, and of some length at that".repeat(1000)).unwrap();
    let error = |options| List::open(options, |_| {}).err().unwrap();
    let not_a_store = error(options(folder.path(), 100));
    assert!(not_a_store.to_string().starts_with(&format!("{}: the store failed: ", file.display())), "{not_a_store}");
    assert!(matches!(error(options(&file, 100)), OpenError::Folder(..)));
    let new = folder.path().join("new");
    let impossible = error(Options { false_positive_rate: 2.0, ..options(&new, 100) });
    assert!(matches!(impossible, OpenError::Load(_)) && !new.exists(), "{impossible}");
}

#[tokio::test]
async fn a_closed_list_refuses_everything_and_what_was_sent_before_is_done() {
    let folder = folder();
    let options = options(&folder.path().join("made/with/parents"), 100);
    let opened = open(&options);
    assert_eq!((opened.how, opened.keys), (Start::Empty, 0));
    let list = opened.list;
    let replacement = list.begin_replacement().await.unwrap();
    // Each is polled once, and so sent, before the list is closed.
    let changes = futures_util::future::join_all((0..50).map(|number| list.change(vec![put(number)])));
    let (made, closed) = tokio::join!(biased; changes, list.clone().close());
    closed.unwrap();
    assert!(made.into_iter().all(|made| made.unwrap() == [true]));
    assert!(list.may_be_listed(&key(1)));
    assert!(list.confirm(&[&key(1)]).is_err());
    let closed = "the list is closed";
    assert_eq!(list.change(vec![put(2)]).await.unwrap_err().to_string(), closed);
    assert_eq!(list.save_snapshot().await.unwrap_err().to_string(), closed);
    assert_eq!(list.begin_replacement().await.err().unwrap().to_string(), closed);
    assert_eq!(replacement.commit().await.unwrap_err().to_string(), closed);
    list.close().await.unwrap();
    let opened = open(&options);
    assert_eq!((opened.how, opened.keys), (Start::Snapshot { changes: 0 }, 50));
    check(&opened.list, &(0..50).collect(), 60);
    opened.list.close().await.unwrap();
}

/// A list of the keys 0 to 99 but 50, whose last snapshot lacks the last 10 changes.
async fn list_of_99(folder: &Path) -> BTreeSet<u64> {
    let list = open(&options(folder, 200)).list;
    list.change((0..91).map(put).collect()).await.unwrap();
    assert_eq!(list.save_snapshot().await.unwrap(), Saved::Written);
    assert_eq!(list.save_snapshot().await.unwrap(), Saved::NothingNew);
    list.change((91..100).map(put).chain([delete(50)]).collect()).await.unwrap();
    assert_eq!(list.stats().changes_since_snapshot, 10);
    (0..100).filter(|&number| number != 50).collect()
}

#[tokio::test]
async fn a_snapshot_that_is_not_as_it_should_be_is_set_aside_and_the_store_loaded() {
    let (folder, other) = (folder(), folder());
    let model = list_of_99(folder.path()).await;
    list_of_99(other.path()).await;
    let options = options(folder.path(), 200);
    // Wait until it is closed.
    drop(open(&options));
    let path = options.snapshot();
    let good = fs::read(&path).unwrap();
    let reader = SnapshotReader::new(&good[..]).unwrap();
    let stamp = reader.header().metadata().to_vec();
    let mut without_keys = vec![];
    let filter: Filter = reader.into_filter_with_stored_keys().unwrap();
    filter.snapshot().metadata(&stamp).without_keys().write_to(&mut without_keys).unwrap();
    let made = |capacity: usize, rate: f64, keys: u64, stamp: &[u8]| {
        let filter = CuckooFilter::<str, _>::builder().capacity(capacity).false_positive_rate(rate);
        let filter = filter.hasher(StableHashBuilder::new()).build().unwrap();
        (0..keys).for_each(|number| filter.insert(&key(number)).unwrap());
        let mut bytes = vec![];
        filter.snapshot().metadata(stamp).write_to(&mut bytes).unwrap();
        bytes
    };
    let damaged = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        bytes
    };
    let newer = [&stamp[..24], &102_u64.to_le_bytes()].concat();
    for (bytes, expected) in [
        (good[..good.len() / 2].to_vec(), "the snapshot ends within shard 0"),
        (vec![], "the snapshot ends within the header"),
        (damaged(good.len() / 2), "shard 0 of the snapshot is damaged: its checksum does not match"),
        (damaged(0), "this is not a snapshot of a filter: it does not begin as one"),
        ([good.as_slice(), b"x"].concat(), "something follows the snapshot in its file"),
        (without_keys, "the snapshot does not keep the keys of its hasher \"siphash-1-3\"; give the hasher"),
        (made(200, 0.001, 91, b"something else"), "the snapshot is not one of a list"),
        (fs::read(other.path().join("filter.snapshot")).unwrap(), "the snapshot is of another list"),
        (made(100, 0.001, 91, &stamp), "the snapshot is of a filter for 100 keys; 200 are asked for"),
        (made(200, 0.0001, 91, &stamp), "the snapshot has fingerprints of 16 bits; 13 are asked for"),
        (
            made(200, 0.001, 90, &stamp),
            "the snapshot and the 10 changes since then make 98 keys, with 0 faults; the store has 99",
        ),
        (
            made(200, 0.001, 91, &newer),
            "the snapshot is newer than the store: it ends at change 102, the store at change 101",
        ),
    ] {
        fs::write(&path, &bytes).unwrap();
        let opened = open(&options);
        assert_eq!((opened.how, opened.keys), (Start::BulkLoad { why: expected.to_owned() }, 99));
        check(&opened.list, &model, 150);
        drop(opened.list);
        // Later it could be mistaken for one of this store.
        assert!(!path.exists());
        assert_eq!(fs::read(folder.path().join("filter.snapshot.refused")).unwrap(), bytes);
    }
    let opened = open(&options);
    assert_eq!(opened.how, Start::BulkLoad { why: "there is no snapshot".to_owned() });
    drop(opened.list);
    // The good one is still good, also for a smaller capacity.
    fs::write(&path, &good).unwrap();
    let opened = open(&Options { capacity: 10, ..options.clone() });
    assert_eq!(opened.how, Start::Snapshot { changes: 10 });
    check(&opened.list, &model, 150);
    opened.list.close().await.unwrap();
    // The log is trimmed up to the newest snapshot at the next start at the latest.
    let opened = open(&options);
    opened.list.change(vec![put(120), delete(120)]).await.unwrap();
    opened.list.close().await.unwrap();
    fs::write(&path, &good).unwrap();
    let opened = open(&options);
    let why = "the snapshot is too old: it ends at change 91, and the log begins after change 101";
    assert_eq!(opened.how, Start::BulkLoad { why: why.to_owned() });
    check(&opened.list, &model, 150);
    opened.list.close().await.unwrap();
}

#[tokio::test]
async fn a_snapshot_that_cannot_be_written_leaves_the_list_as_it_was() {
    let folder = folder();
    let options = options(folder.path(), 100);
    let list = open(&options).list;
    list.change(vec![put(1)]).await.unwrap();
    // A folder in its place, which no file can take.
    fs::create_dir_all(options.snapshot().join("in the way")).unwrap();
    let error = list.save_snapshot().await.unwrap_err();
    assert!(error.to_string().starts_with(&format!("{} cannot be written: ", options.snapshot().display())), "{error}");
    assert_eq!(list.stats().snapshot_failures, 1);
    assert_eq!(list.change(vec![put(2)]).await.unwrap(), [true]);
    fs::remove_dir_all(options.snapshot()).unwrap();
    assert_eq!(list.save_snapshot().await.unwrap(), Saved::Written);
    check(&list, &BTreeSet::from([1, 2]), 5);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing temporary is left");
    list.close().await.unwrap();
}

#[tokio::test]
async fn a_new_list_takes_effect_as_a_whole_and_one_is_made_at_a_time() {
    let folder = folder();
    let list = open(&options(folder.path(), 100)).list;
    list.change((0..50).map(put).collect()).await.unwrap();
    let mut replacement = list.begin_replacement().await.unwrap();
    assert!(matches!(list.begin_replacement().await, Err(ReplaceError::InProgress)));
    replacement.add(vec![boxed(1), boxed(2), boxed(1)]).await.unwrap();
    let error = replacement.add(vec![boxed(3), "".into()]).await.unwrap_err();
    assert_eq!(error.to_string(), "key 1: the key is empty; a key has 1 to 1024 bytes");
    replacement.add(vec![boxed(2), boxed(60)]).await.unwrap();
    // Until the commit, the list is asked and changed as ever; those changes vanish with it.
    check(&list, &(0..50).collect(), 70);
    list.change(vec![put(61), delete(1)]).await.unwrap();
    check(&list, &(0..50).filter(|&number| number != 1).chain([61]).collect(), 70);
    assert_eq!(replacement.commit().await.unwrap(), 3);
    check(&list, &BTreeSet::from([1, 2, 60]), 70);
    assert_eq!(list.change(vec![delete(61), delete(60), put(1)]).await.unwrap(), [false, true, false]);
    assert_eq!(replace(&list, []).await, 0);
    check(&list, &BTreeSet::new(), 70);
    list.close().await.unwrap();
}

#[tokio::test]
async fn a_replacement_that_is_abandoned_or_cut_off_changes_nothing_and_leaves_nothing() {
    let folder = folder();
    let options = options(folder.path(), 100);
    let list = open(&options).list;
    list.change((0..50).map(put).collect()).await.unwrap();
    for keys in [0, 70_000, 140_000] {
        // In the table already, the last time.
        let mut replacement = list.begin_replacement().await.unwrap();
        replacement.add((40..40 + keys).map(boxed).collect()).await.unwrap();
        drop(replacement);
        check(&list, &(0..50).collect(), 20_000);
    }
    assert_eq!(replace(&list, 0..50).await, 50);
    let mut replacement = list.begin_replacement().await.unwrap();
    replacement.add((40..140_000).map(boxed).collect()).await.unwrap();
    drop((list, replacement));
    let list = open(&options).list;
    check(&list, &(0..50).collect(), 20_000);
    assert_eq!(replace(&list, 45..47).await, 2);
    check(&list, &BTreeSet::from([45, 46]), 20_000);

    // A start right after a replacement refuses the snapshot from before.
    list.save_snapshot().await.unwrap();
    let before = fs::read(options.snapshot()).unwrap();
    assert_eq!(replace(&list, 46..75).await, 29);
    list.change(vec![put(80), delete(50)]).await.unwrap();
    list.close().await.unwrap();
    fs::write(options.snapshot(), before).unwrap();
    let opened = open(&options);
    assert!(
        matches!(&opened.how, Start::BulkLoad { why } if why.starts_with("the snapshot is too old")),
        "{:?}",
        opened.how
    );
    check(&opened.list, &(46..75).filter(|&number| number != 50).chain([80]).collect(), 100);
    opened.list.close().await.unwrap();
}
