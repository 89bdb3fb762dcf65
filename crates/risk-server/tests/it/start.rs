//! The start: options, folders, and what is answered while the list is being loaded.

use crate::common::{Folder, Server, made, program, program_on, refused, start};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

#[test]
fn bad_options_are_refused_wherever_they_come_from() {
    let mut from_environment = program();
    from_environment.env("RISK_SERVER_CAPACITY", "none");
    let mut from_arguments = program();
    from_arguments.args(["--listen", "127.0.0.1"]);
    for (mut command, says) in [(from_environment, "from 1 on"), (from_arguments, "localhost:8080 or :8080")] {
        let (status, error) = refused(&mut command);
        assert_eq!(status, Some(2), "{error}");
        let first = error.lines().next().unwrap();
        assert!(first.starts_with("error: ") && first.contains(says), "{error}");
    }
}

#[test]
fn what_is_not_possible_is_told_in_one_line() {
    let folder = Folder::new();
    let file = folder.file("file", "");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let listener = TcpListener::bind(&taken).unwrap();
    let one_line = |command: &mut std::process::Command, says: &str| {
        let (status, error) = refused(command);
        assert_eq!(status, Some(1), "{error}");
        assert!(error.starts_with("risk-server: ") && error.lines().count() == 1 && error.contains(says), "{error}");
    };
    one_line(program().args(["--listen", &taken, "--data"]).arg(folder.path()), &format!("cannot listen on {taken}"));
    one_line(program_on(&folder).args(["--log", "risk_server=loud"]), "risk_server=loud");
    drop(listener);

    // What is found out while it listens already comes after the log: no folder, and no list.
    folder.file("list.redb", "something else, and of some length at that".repeat(1000));
    for (data, says) in [(file.as_path(), "file cannot be used"), (folder.path(), "list.redb: the store failed: ")] {
        let ended = Server::loading(program().args(["--listen", "127.0.0.1:0", "--data"]).arg(data)).wait();
        assert_eq!(ended.status.code(), Some(1));
        let last = ended.log.lines().last().unwrap();
        assert!(last.starts_with("risk-server: ") && last.contains(says), "{}", ended.log);
    }
}

#[test]
fn options_may_come_from_the_environment() {
    let folder = Folder::new();
    let mut command = program();
    command.env("RISK_SERVER_LISTEN", "127.0.0.1:0").env("RISK_SERVER_DATA", folder.path().join("made/by/it"));
    command.env("RISK_SERVER_MAX_CAPACITY", "4321000").env("RISK_SERVER_LOG_FORMAT", "json");
    let server = Server::loading(&mut command);
    server.wait_until_ready();
    assert_eq!(server.client().stats()["filter"]["max_capacity"], 4_321_000);
    let ended = server.stop();
    for line in ended.log.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(line["level"].is_string() && line["fields"]["message"].is_string(), "{line}");
    }
    assert!(ended.log.lines().count() >= 3);
    assert!(folder.path().join("made/by/it/filter.snapshot").exists() || ended.log.contains("closed"));
}

#[test]
fn the_list_is_for_its_owner_alone() {
    let outer = Folder::new();
    let folder = outer.path().join("made/by/it");
    let mut command = program();
    command.args(["--listen", "127.0.0.1:0", "--data"]).arg(&folder);
    let server = Server::loading(&mut command);
    server.wait_until_ready();
    server.client().add("a");
    server.stop();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(folder.parent().unwrap())), (0o700, 0o700));
    for name in ["list.redb", "filter.snapshot"] {
        assert_eq!(mode(&folder.join(name)), 0o600, "{name}");
    }
}

#[test]
fn a_list_is_served_by_one_process() {
    let folder = Folder::new();
    let first = Server::start(&folder);
    first.client().add("a");
    let second = Server::loading(&mut program_on(&folder)).wait();
    assert_eq!(second.status.code(), Some(1));
    let last = second.log.lines().last().unwrap();
    assert!(last.contains("is in use"), "{}", second.log);
    assert!(last.contains(folder.path().to_str().unwrap()), "the file is named: {last}");
    assert!(first.client().listed("a") && first.client().add("b"), "the first one is not disturbed");
    first.kill();
    assert_eq!(Server::start(&folder).client().which_listed(&["a", "b"]), [true, true]);
}

#[test]
fn while_the_list_is_being_loaded_only_what_needs_no_list_is_answered() {
    let (folder, server, client) = start(&[]);
    client.add_all(&made("key", 1000));
    server.kill();
    folder.block_loading();

    // It may be stopped meanwhile.
    Server::loading(&mut program_on(&folder)).stop();
    let server = Server::loading(&mut program_on(&folder));
    let client = server.client();
    for (method, path) in [
        ("GET", "/v1/check/key-0"),
        ("POST", "/v1/check"),
        ("PUT", "/v1/keys/new"),
        ("DELETE", "/v1/keys/key-0"),
        ("POST", "/v1/keys"),
        ("POST", "/v1/keys?replace=true"),
        ("GET", "/v1/stats"),
    ] {
        // A body that is not read ends its connection.
        let answer = server.client().send(method, path, &[], "[\"key-0\"]");
        assert_eq!(answer.error(503), "the list is being loaded", "{method} {path}");
        assert_eq!(answer.header("retry-after"), "1");
    }
    assert_eq!(client.get("/readyz").json(503), json!({ "ready": false, "loaded_keys": 0 }));
    assert_eq!((client.get("/healthz").status, client.get("/").status), (200, 200));
    assert_eq!(client.metrics()["risk_ready"], 0.0);

    File::options().write(true).open(folder.snapshot()).unwrap().write_all(b"no snapshot").unwrap();
    server.wait_until_ready();
    assert_eq!(client.count_listed(&made("key", 1000)), 1000);
    assert!(!client.listed("new"));
    assert_eq!(client.metrics()["risk_ready"], 1.0);
    let ready = client.get("/readyz").json(200);
    assert_eq!(ready, json!({ "ready": true, "loaded_keys": 1000 }));
}
