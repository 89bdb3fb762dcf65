//! Keys that the filter refuses, while no larger one may be built.

use super::*;

/// A list that is full of keys beyond its filter: the flag that keeps filters from being built is set.
async fn overflowing(folder: &tempfile::TempDir) -> (List, HashSet<usize>) {
    let list = List::open(options(folder, 10), |_| {}).unwrap().list;
    list.0.shared.closing.store(true, Ordering::Relaxed);
    list.change((0..500).map(put).collect()).await.unwrap();
    let stats = list.stats();
    assert!(stats.overflow_keys > 400, "{stats:?}");
    assert_eq!(stats.refusals.full + stats.refusals.too_many_copies, stats.overflow_keys);
    (list, (0..500).collect())
}

#[tokio::test]
async fn refused_keys_are_listed_put_once_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let (list, mut model) = overflowing(&folder).await;
    check(&list, &model, 510);
    assert_eq!(list.change((0..500).map(put).collect()).await.unwrap(), [false; 500]);
    check(&list, &model, 510);
    for first in (0..500).step_by(50) {
        let some = first + 7..first + 40;
        let deleted = list.change(some.clone().chain(some.clone()).map(delete).collect()).await.unwrap();
        assert_eq!(deleted, [[true; 33], [false; 33]].concat());
        model.retain(|key| !some.contains(key));
        check(&list, &model, 510);
        // Out of the overflow and in again, within one transaction and in two.
        let again = list.change(vec![put(first + 7), delete(first + 7), put(first + 7), delete(first)]).await.unwrap();
        assert_eq!(again, [true; 4]);
        model.insert(first + 7);
        model.remove(&first);
        check(&list, &model, 510);
    }
    list.change((0..500).map(delete).collect()).await.unwrap();
    check(&list, &HashSet::new(), 510);
    assert_eq!(list.stats().overflow_keys, 0);
    list.close().await.unwrap();
}

#[tokio::test]
async fn no_snapshot_is_saved_of_a_filter_that_lacks_keys() {
    let folder = tempfile::tempdir().unwrap();
    let (list, model) = overflowing(&folder).await;
    assert_eq!(list.save_snapshot().await.unwrap(), Saved::Overflowing);
    list.0.shared.closing.store(false, Ordering::Relaxed);
    // A larger filter is built at the next occasion, and saved.
    list.change(vec![]).await.unwrap();
    while list.stats().rebuilds == 0 || list.stats().last_snapshot.is_none() {
        tokio::task::yield_now().await;
    }
    check(&list, &model, 510);
    assert_eq!(list.stats().overflow_keys, 0);
    list.close().await.unwrap();
    let Opened { list, how, .. } = List::open(options(&folder, 10), |_| {}).unwrap();
    assert_eq!(how, Start::Snapshot { changes: 0 });
    check(&list, &model, 510);
    list.close().await.unwrap();
}

#[tokio::test]
async fn puts_wait_for_room_and_deletes_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { overflow_limit: 100, ..options(&folder, 10) };
    let list = List::open(options, |_| {}).unwrap().list;
    list.0.shared.closing.store(true, Ordering::Relaxed);
    list.change((0..500).map(put).collect()).await.unwrap();
    assert!(list.0.shared.is_overflowing());
    // Closing is what keeps filters from being built here, and what ends a wait.
    assert!(matches!(list.change(vec![put(500)]).await, Err(ChangeError::Closed)));
    assert_eq!(list.change(vec![delete(1)]).await.unwrap(), [true]);
    list.0.shared.closing.store(false, Ordering::Relaxed);
    assert_eq!(list.change(vec![put(500)]).await.unwrap(), [true]);
    assert_eq!(list.stats().rebuilds, 1);
    let mut model: HashSet<usize> = (0..=500).collect();
    model.remove(&1);
    check(&list, &model, 510);
    list.close().await.unwrap();
}

/// A fingerprint that is gone, as by a fault of the memory or of this code.
#[tokio::test]
async fn a_filter_that_lacks_a_key_is_found_out_and_built_anew() {
    let folder = tempfile::tempdir().unwrap();
    let list = List::open(options(&folder, 1000), |_| {}).unwrap().list;
    list.change((0..100).map(put).collect()).await.unwrap();
    assert!(list.0.shared.front.current().filter.remove(&key(7)));
    assert_eq!(list.change(vec![delete(7)]).await.unwrap(), [true]);
    while list.stats().rebuilds == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(list.stats().filter_faults, 1);
    assert_eq!(list.stats().filter.len, 99);
    list.close().await.unwrap();
}
