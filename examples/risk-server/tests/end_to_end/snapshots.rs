//! A start from a snapshot, and one without.

use crate::common::folder::Folder;
use crate::common::keys::{domains, domains_text, made};
use crate::common::server::{Server, program_on};
use crate::common::wait::wait_until;
use serde_json::json;
use std::fs;

/// A list that is opened says where its filter came from.
fn opened_from(server: &Server) -> String {
    server.wait_for_log("the list is open");
    let log = server.log();
    let line = log.lines().find(|line| line.contains("the list is open")).unwrap();
    let (_, from) = line.split_once("from=").unwrap();
    from.into()
}

/// All of the real list but its first key, one key more, and nothing else.
fn check(server: &Server) {
    let client = server.client();
    assert_eq!(client.count_listed(domains()), domains().len() - 1);
    assert!(!client.listed(domains()[0]) && client.listed("one more"));
    let stats = client.stats();
    assert_eq!((&stats["keys"], &stats["filter"]["len"]), (&json!(121_570), &json!(121_570)));
}

/// Leaves a folder with the list that [`check`] expects, and a snapshot of it.
fn prepare(folder: &Folder) {
    let server = Server::start(folder);
    let client = server.client();
    client.post_keys("", domains_text()).json(200);
    client.remove(domains()[0]);
    client.add("one more");
    server.stop();
    assert!(folder.snapshot().is_file());
}

#[test]
fn a_server_that_was_stopped_starts_from_its_snapshot() {
    let folder = Folder::new();
    prepare(&folder);
    let server = Server::start(&folder);
    assert!(opened_from(&server).starts_with("Snapshot { changes: 0 }"), "{}", server.log());
    let stats = server.client().stats();
    assert_eq!(stats["changes_since_snapshot"], 0);
    assert_eq!(stats["snapshot"]["bytes"], fs::metadata(folder.snapshot()).unwrap().len());
    check(&server);
}

#[test]
fn a_snapshot_is_saved_from_time_to_time_and_what_came_after_it_is_made_up_for() {
    let folder = Folder::new();
    let server = Server::with(&folder, &["--snapshot-minutes", "0.002"]);
    let client = server.client();
    client.add_all(&made("before", 1000));
    wait_until("a snapshot of all changes", || {
        let stats = client.stats();
        stats["snapshot"].is_object() && stats["changes_since_snapshot"] == 0
    });
    let snapshot = client.stats()["snapshot"].clone();
    assert_eq!(snapshot["bytes"], fs::metadata(folder.snapshot()).unwrap().len());
    assert!(snapshot["duration_seconds"].as_f64().unwrap() > 0.0);
    let saved = fs::read(folder.snapshot()).unwrap();
    server.stop();

    // From here on no snapshot is saved: the server is killed.
    let server = Server::with(&folder, &["--snapshot-minutes", "0"]);
    let client = server.client();
    client.remove("before-0");
    client.add("after");
    client.add("after, and gone again");
    client.remove("after, and gone again");
    assert_eq!(client.stats()["changes_since_snapshot"], 4);
    server.kill();
    assert_eq!(fs::read(folder.snapshot()).unwrap(), saved);

    let server = Server::start(&folder);
    assert!(opened_from(&server).starts_with("Snapshot { changes: 4 }"), "{}", server.log());
    let client = server.client();
    assert_eq!(client.which_listed(&["before-0", "after", "after, and gone again"]), [false, true, false]);
    assert_eq!(client.count_listed(&made("before", 1000)), 999);
    let stats = client.stats();
    assert_eq!((&stats["keys"], &stats["filter"]["len"]), (&json!(1000), &json!(1000)));
}

#[test]
fn a_snapshot_that_is_damaged_missing_or_of_another_list_does_no_harm() {
    let folder = Folder::new();
    prepare(&folder);
    let good = fs::read(folder.snapshot()).unwrap();
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 1;
    let mut longer = good.clone();
    longer.push(0);
    let another = {
        let folder = Folder::new();
        prepare(&folder);
        fs::read(folder.snapshot()).unwrap()
    };
    for (what, bytes) in [
        ("with one bit flipped", &flipped[..]),
        ("cut off", &good[..good.len() / 3]),
        ("with a byte too many", &longer),
        ("empty", &[]),
        ("of another kind", b"hello"),
        ("of another list", &another),
    ] {
        fs::write(folder.snapshot(), bytes).unwrap();
        let server = Server::start(&folder);
        assert!(opened_from(&server).starts_with("BulkLoad"), "{what}: {}", server.log());
        assert!(server.log().contains("WARN"), "{what}: {}", server.log());
        if bytes == &flipped[..] || bytes == &another[..] {
            check(&server);
        }
        assert_eq!(server.client().stats()["filter"]["len"], 121_570, "{what}");
        server.kill();
    }
    // A bad one is set aside, or there is none.
    let _ = fs::remove_file(folder.snapshot());
    let server = Server::start(&folder);
    assert!(opened_from(&server).starts_with("BulkLoad"));
    check(&server);
    server.stop();
    let server = Server::start(&folder);
    assert!(opened_from(&server).starts_with("Snapshot"), "a good one took the place of the bad one");
    check(&server);
}

#[test]
fn a_snapshot_that_is_older_than_the_log_of_changes_is_not_used() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    server.client().add_all(&made("first", 1000));
    server.stop();
    let old = fs::read(folder.snapshot()).unwrap();
    let server = Server::start(&folder);
    server.client().add_all(&made("second", 1000));
    assert_eq!(server.client().post_keys("?replace=true", "a\nb\n").json(200)["keys"], 2);
    server.stop();

    fs::write(folder.snapshot(), old).unwrap();
    let server = Server::start(&folder);
    let client = server.client();
    assert!(opened_from(&server).starts_with("BulkLoad"), "{}", server.log());
    assert_eq!(client.which_listed(&["a", "b", "first-0", "second-0"]), [true, true, false, false]);
    assert_eq!(client.stats()["filter"]["len"], 2);
}

/// Neither at once nor later, when the store has come to the change up to which the snapshot goes.
#[test]
fn a_store_from_a_backup_is_not_mixed_up_with_a_newer_snapshot() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    server.client().add_all(&made("both", 500));
    server.stop();
    let backup = folder.path().join("backup");
    fs::copy(folder.store(), &backup).unwrap();
    let server = Server::start(&folder);
    server.client().add_all(&made("lost", 500));
    server.stop();

    fs::copy(&backup, folder.store()).unwrap();
    let server = Server::start(&folder);
    assert!(opened_from(&server).starts_with("BulkLoad"), "{}", server.log());
    assert_eq!(server.client().count_listed(&made("lost", 500)), 0);
    server.client().add_all(&made("other", 600));
    server.kill();

    let server = Server::start(&folder);
    let client = server.client();
    assert_eq!(client.count_listed(&[made("both", 500), made("other", 600)].concat()), 1100);
    assert_eq!(client.count_listed(&made("lost", 500)), 0);
    assert_eq!(client.stats()["filter"]["len"], 1100, "{}", server.log());
}

#[test]
fn another_rate_is_another_filter() {
    let folder = Folder::new();
    prepare(&folder);
    let server = Server::with(&folder, &["--false-positive-rate", "0.00001"]);
    assert!(opened_from(&server).starts_with("BulkLoad"), "{}", server.log());
    check(&server);
    let expected = server.client().stats()["filter"]["expected_false_positive_rate"].as_f64().unwrap();
    assert!(expected < 0.00001, "{expected}");
}

#[test]
fn a_start_that_cannot_save_its_snapshot_keeps_the_list() {
    let folder = Folder::new();
    let server = Server::with(&folder, &["--snapshot-minutes", "0.001"]);
    let client = server.client();
    // A folder in its place: no file can be renamed to it.
    fs::create_dir_all(folder.snapshot().join("in the way")).unwrap();
    client.add("a");
    wait_until("a snapshot to fail", || client.stats()["snapshot_failures"].as_u64() > Some(0));
    assert!(client.add("b") && client.listed("a"));
    drop(client);
    server.kill();
    let server = Server::loading(&mut program_on(&folder));
    server.wait_until_ready();
    assert_eq!(server.client().which_listed(&["a", "b"]), [true, true]);
}
