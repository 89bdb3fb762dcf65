//! Opening: folders, files, and who may.

use crate::common::{check, key, open, options, put};
use risk_server::list::{List, OpenError, Start};
use std::collections::BTreeSet;
use std::process::Command;

/// Set for the process that is to open a folder that is open.
const FOLDER: &str = "RISK_LIST_OPEN_FOLDER";

#[tokio::test]
async fn a_new_list_is_empty_and_keeps_what_was_put() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(&folder.path().join("made/with/parents"), 100);
    let opened = open(&options);
    assert_eq!((opened.how, opened.keys), (Start::Empty, 0));
    check(&opened.list, &BTreeSet::new(), 5);
    assert_eq!(opened.list.change(vec![put(1), put(2)]).await.unwrap(), [true, true]);
    opened.list.close().await.unwrap();
    let opened = open(&options);
    assert_eq!((opened.how, opened.keys), (Start::Snapshot { changes: 0 }, 2));
    check(&opened.list, &BTreeSet::from([1, 2]), 5);
    opened.list.close().await.unwrap();
}

#[tokio::test]
async fn a_folder_is_opened_once_at_a_time() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let error = List::open(options(folder.as_ref(), 100), |_| {}).unwrap_err();
        assert!(matches!(error, OpenError::InUse { .. }));
        println!("told: {error}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let first = open(&options(folder.path(), 100)).list;
    let second = List::open(options(folder.path(), 100), |_| {}).unwrap_err();
    let path = folder.path().join("list.redb");
    let text = format!("{} is in use; a list is opened by one process at a time", path.display());
    assert_eq!(second.to_string(), text);
    let process = Command::new(std::env::current_exe().unwrap())
        .args(["opening::a_folder_is_opened_once_at_a_time", "--exact", "--nocapture"])
        .env(FOLDER, folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8(process.stdout).unwrap();
    assert!(process.status.success() && said.contains(&format!("told: {text}")), "{said}");
    first.change(vec![put(1)]).await.unwrap();
    first.close().await.unwrap();
    open(&options(folder.path(), 100)).list.close().await.unwrap();
}

#[test]
fn what_is_no_list_is_refused_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("list.redb");
    std::fs::write(&file, "something else, and of some length at that".repeat(1000)).unwrap();
    let error = List::open(options(folder.path(), 100), |_| {}).unwrap_err();
    assert!(matches!(error, OpenError::Store { .. }), "{error}");
    assert!(error.to_string().starts_with(&format!("{}: the store failed: ", file.display())), "{error}");
    let error = List::open(options(&file, 100), |_| {}).unwrap_err();
    assert!(matches!(error, OpenError::Folder { .. }), "{error}");
    let impossible =
        risk_server::list::Options { false_positive_rate: 2.0, ..options(&folder.path().join("new"), 100) };
    let error = List::open(impossible, |_| {}).unwrap_err();
    assert!(matches!(error, OpenError::Filter(_)), "{error}");
    assert!(!folder.path().join("new").exists());
}

#[tokio::test]
async fn a_closed_list_refuses_everything_and_its_front_still_answers() {
    let folder = tempfile::tempdir().unwrap();
    let list = open(&options(folder.path(), 100)).list;
    list.change(vec![put(1)]).await.unwrap();
    let replacement = list.begin_replacement().await.unwrap();
    list.clone().close().await.unwrap();
    assert!(list.may_be_listed(&key(1)));
    assert!(list.confirm(&[&key(1)]).is_err());
    assert_eq!(list.change(vec![put(2)]).await.unwrap_err().to_string(), "the list is closed");
    assert_eq!(list.save_snapshot().await.unwrap_err().to_string(), "the list is closed");
    assert_eq!(list.begin_replacement().await.unwrap_err().to_string(), "the list is closed");
    assert_eq!(replacement.commit().await.unwrap_err().to_string(), "the list is closed");
    list.close().await.unwrap();
    let opened = open(&options(folder.path(), 100));
    check(&opened.list, &BTreeSet::from([1]), 5);
    opened.list.close().await.unwrap();
}

#[tokio::test]
async fn what_was_sent_before_a_close_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let list = open(&options(folder.path(), 100)).list;
    // Each is polled once, and so sent, before the list is closed.
    let changes = futures_util::future::join_all((0..50).map(|number| list.change(vec![put(number)])));
    let (made, closed) = tokio::join!(biased; changes, list.clone().close());
    closed.unwrap();
    assert!(made.into_iter().all(|made| made.unwrap() == [true]));
    let opened = open(&options(folder.path(), 100));
    assert_eq!(opened.how, Start::Snapshot { changes: 0 });
    check(&opened.list, &(0..50).collect(), 60);
    opened.list.close().await.unwrap();
}
