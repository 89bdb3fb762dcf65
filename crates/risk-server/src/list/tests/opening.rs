//! Opening and closing, snapshots in any state, and replacements that are cut off.

use super::*;
use concurrent_cuckoo_filter::SnapshotReader;
use std::fs;

#[test]
fn a_filter_that_is_not_possible_is_refused_before_there_is_a_folder() {
    let folder = folder().path().join("new");
    let impossible = Options { false_positive_rate: 2.0, ..options(&folder) };
    assert!(matches!(List::open(impossible, |_| {}), Err(OpenError::Filter(_))) && !folder.exists());
}

#[tokio::test]
async fn a_closed_list_refuses_everything_and_what_was_sent_before_is_done() {
    let folder = folder();
    let options = options(&folder.path().join("made/with/parents"));
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
    let list = open(&options(folder)).list;
    list.change((0..91).map(put).collect()).await.unwrap();
    assert!(list.save_snapshot().await.unwrap());
    assert!(!list.save_snapshot().await.unwrap(), "there is nothing new");
    list.change((91..100).map(put).chain([delete(50)]).collect()).await.unwrap();
    assert_eq!(list.stats().totals.changes_since_snapshot, 10);
    (0..100).filter(|&number| number != 50).collect()
}

#[tokio::test]
async fn a_snapshot_that_is_not_as_it_should_be_is_set_aside_and_the_store_loaded() {
    let (folder, other) = (folder(), folder());
    let model = list_of_99(folder.path()).await;
    list_of_99(other.path()).await;
    let options = options(folder.path());
    // Wait until it is closed.
    drop(open(&options));
    let path = options.snapshot();
    let good = fs::read(&path).unwrap();
    let stamp = SnapshotReader::new(&good[..]).unwrap().header().metadata().to_vec();
    let made = |options: &Options, keys: u64, stamp: &[u8]| {
        let filter = options.filter(0).unwrap();
        (0..keys).for_each(|number| filter.insert(&key(number)).unwrap());
        let mut bytes = vec![];
        filter.snapshot().metadata(stamp).write_to(&mut bytes).unwrap();
        bytes
    };
    let mut damaged = good.clone();
    damaged[good.len() / 2] ^= 0x10;
    let newer = [&stamp[..24], &102_u64.to_le_bytes()].concat();
    let of_rate = Options { false_positive_rate: 0.0001, ..options.clone() };
    let to_more = Options { max_capacity: 20_000_000, ..options.clone() };
    for (bytes, expected) in [
        (vec![], "the snapshot ends within the header"),
        (damaged, "table 0 of the snapshot is damaged: its checksum does not match"),
        (made(&options, 91, b"something else"), "the snapshot is not one of a list"),
        (fs::read(other.path().join("filter.snapshot")).unwrap(), "the snapshot is of another list"),
        (made(&of_rate, 91, &stamp), "the snapshot is of a filter for another rate, or for another number of keys"),
        (made(&to_more, 91, &stamp), "the snapshot is of a filter for another rate, or for another number of keys"),
        (
            made(&options, 90, &stamp),
            "the snapshot and the 10 changes since then make 98 keys, with 0 faults; the store has 99",
        ),
        (made(&options, 91, &newer), "the snapshot is newer than the store: it ends at change 102, the store at 101"),
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
    // The good one is still good, also for another capacity at the start. What a killed process left goes.
    fs::write(&path, &good).unwrap();
    fs::write(folder.path().join(".filter.snapshot.abc.tmp"), "half").unwrap();
    let opened = open(&Options { capacity: 100_000, ..options.clone() });
    assert_eq!(opened.how, Start::Snapshot { changes: 10 });
    check(&opened.list, &model, 150);
    opened.list.close().await.unwrap();
    // The log is trimmed up to the newest snapshot at the next start at the latest.
    let opened = open(&options);
    opened.list.change(vec![put(120), delete(120)]).await.unwrap();
    opened.list.close().await.unwrap();
    let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["filter.snapshot", "filter.snapshot.refused", "list.redb"]);
    fs::write(&path, &good).unwrap();
    let opened = open(&options);
    let why = "the snapshot is too old: it ends at change 91, and the log begins after 101";
    assert_eq!(opened.how, Start::BulkLoad { why: why.to_owned() });
    check(&opened.list, &model, 150);
    opened.list.close().await.unwrap();
}

#[tokio::test]
async fn a_snapshot_that_cannot_be_written_leaves_the_list_as_it_was() {
    let folder = folder();
    let options = options(folder.path());
    let list = open(&options).list;
    list.change(vec![put(1)]).await.unwrap();
    // A folder in its place, which no file can take.
    fs::create_dir_all(options.snapshot().join("in the way")).unwrap();
    let error = list.save_snapshot().await.unwrap_err().to_string();
    assert!(error.contains(&options.snapshot().display().to_string()), "{error}");
    assert_eq!(list.stats().totals.snapshot_failures, 1);
    assert_eq!(list.change(vec![put(2)]).await.unwrap(), [true]);
    fs::remove_dir_all(options.snapshot()).unwrap();
    assert!(list.save_snapshot().await.unwrap());
    check(&list, &BTreeSet::from([1, 2]), 5);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing temporary is left");
    list.close().await.unwrap();
}

#[tokio::test]
async fn a_replacement_that_is_cut_off_leaves_nothing_and_one_that_is_made_voids_older_snapshots() {
    let folder = folder();
    let options = options(folder.path());
    let list = open(&options).list;
    list.change((0..50).map(put).collect()).await.unwrap();
    // So many that some are in the table already.
    let mut replacement = list.begin_replacement().await.unwrap();
    replacement.add((40..140_000).map(boxed).collect()).await.unwrap();
    drop((list, replacement));
    let list = open(&options).list;
    check(&list, &(0..50).collect(), 20_000);
    assert_eq!(replace(&list, 45..47).await, 2);
    check(&list, &BTreeSet::from([45, 46]), 20_000);

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
