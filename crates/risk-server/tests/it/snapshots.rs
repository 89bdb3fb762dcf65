//! A start from a snapshot, and one without.

use crate::common::{Server, made, start, wait_until};
use std::fs;

/// A list that is opened says where its filter came from.
fn opened_from(server: &Server) -> String {
    server.wait_for_log("the list is open");
    let log = server.log();
    let line = log.lines().find(|line| line.contains("the list is open")).unwrap();
    let (_, from) = line.split_once("from=").unwrap();
    from.into()
}

#[test]
fn a_snapshot_is_saved_from_time_to_time_and_what_came_after_it_is_made_up_for() {
    let (folder, server, client) = start(&["--snapshot-minutes", "0.002"]);
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
    assert!(opened_from(&server).starts_with("Snapshot { changes: 0 }"), "{}", server.log());
    server.client().remove("before-0");
    server.client().add("after");
    server.kill();
    assert_eq!(fs::read(folder.snapshot()).unwrap(), saved);

    let server = Server::start(&folder);
    assert!(opened_from(&server).starts_with("Snapshot { changes: 2 }"), "{}", server.log());
    assert_eq!(server.client().which_listed(&["before-0", "after"]), [false, true]);
    assert_eq!(server.client().count_listed(&made("before", 1000)), 999);
    fs::write(folder.snapshot(), "damaged").unwrap();
    server.kill();
    let server = Server::start(&folder);
    assert!(opened_from(&server).starts_with("BulkLoad") && server.log().contains("WARN"), "{}", server.log());
    assert_eq!(server.client().stats()["filter"]["len"], 1000);
}
