//! Filters that become too small.

use crate::common::{check, delete, open, options, put, runtime, until, while_asked};
use risk_server::list::{Options, Start};
use std::collections::BTreeSet;

#[test]
fn a_list_grows_from_one_key_while_it_is_changed_and_asked() {
    let (folder, runtime) = (tempfile::tempdir().unwrap(), runtime());
    let options = Options { overflow_limit: 500, ..options(folder.path(), 1) };
    let list = open(&options).list;
    let stable: Vec<u64> = (0..100).collect();
    runtime.block_on(list.change(stable.iter().copied().map(put).collect())).unwrap();
    // Four writers, each with numbers of its own; each takes back a third of what it puts.
    let writer = |writer: u64| {
        let list = list.clone();
        async move {
            for round in 0..60 {
                let first = 1000 + (round * 4 + writer) * 100;
                let puts = list.change((first..first + 100).map(put).collect()).await.unwrap();
                assert_eq!(puts, [true; 100]);
                let deletes = list.change((first..first + 100).step_by(3).map(delete).collect()).await.unwrap();
                assert_eq!(deletes, [true; 34]);
            }
        }
    };
    while_asked(&list, &stable, || {
        let writers: Vec<_> = (0..4).map(|number| runtime.spawn(writer(number))).collect();
        runtime.block_on(async {
            // Snapshots let the log be trimmed, but for what a filter that is being built needs.
            let saver = list.clone();
            let saver = tokio::spawn(async move {
                loop {
                    saver.save_snapshot().await.unwrap();
                }
            });
            for writer in writers {
                writer.await.unwrap();
            }
            saver.abort();
        });
    });
    let model: BTreeSet<u64> =
        stable.into_iter().chain((0..240 * 100).filter(|at| at % 100 % 3 != 0).map(|at| 1000 + at)).collect();
    until(|| list.stats().overflow_keys == 0);
    check(&list, &model, 26_000);
    let stats = list.stats();
    assert!(stats.rebuilds > 3 && stats.rebuild_failures == 0, "{stats:?}");
    assert!(stats.filter.capacity >= stats.keys && stats.refusals.full > 0, "{stats:?}");
    runtime.block_on(list.close()).unwrap();
    let opened = open(&options);
    assert_eq!(opened.how, Start::Snapshot { changes: 0 });
    check(&opened.list, &model, 26_000);
    // Every key goes: none was there twice.
    runtime.block_on(opened.list.change(model.iter().copied().map(delete).collect())).unwrap();
    check(&opened.list, &BTreeSet::new(), 26_000);
    assert_eq!(opened.list.stats().filter.load_factor, 0.0);
    runtime.block_on(opened.list.close()).unwrap();
}

#[tokio::test]
async fn a_larger_filter_is_saved_and_stays_after_a_start() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 10);
    let list = open(&options).list;
    list.change((0..10).map(put).collect()).await.unwrap();
    until(|| list.stats().rebuilds == 1 && list.stats().last_snapshot.is_some());
    assert_eq!(list.stats().filter.capacity, 20);
    drop(list);
    let opened = open(&options);
    assert_eq!((opened.how, opened.list.stats().filter.capacity), (Start::Snapshot { changes: 0 }, 20));
    opened.list.close().await.unwrap();
}
