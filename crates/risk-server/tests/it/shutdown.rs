//! The end of a server, when it is asked to.

use crate::common::{Raw, Server, key_path, made, start, wait_until};
use rustix::process::Signal;
use std::fs::File;
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::thread::sleep;
use std::time::Duration;

/// An upload that has begun.
fn begin(server: &Server) -> Raw {
    let mut raw = Raw::open(server);
    raw.head("POST /v1/keys", &["transfer-encoding: chunked"]);
    raw.chunk("first\n");
    wait_until("the upload", || server.client().metrics()["risk_requests_in_progress"] == 1.0);
    raw
}

#[test]
fn requests_in_progress_are_answered_and_new_ones_are_not() {
    let (folder, server, _client) = start(&["--shutdown-seconds", "60"]);
    let mut upload = begin(&server);
    server.signal(Signal::TERM);
    server.wait_for_log("shutting down");
    wait_until("new connections to be refused", || TcpStream::connect(server.address()).is_err());
    upload.chunk("last\n");
    upload.chunk("");
    let answer = upload.rest();
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && answer.ends_with(r#"{"lines":2,"added":2,"already":0}"#),
        "{answer}"
    );
    let ended = server.wait();
    assert!(ended.status.success(), "{}", ended.log);

    let server = Server::start(&folder);
    server.wait_for_log("from=Snapshot { changes: 0 }");
    assert_eq!(server.client().which_listed(&["first", "last"]), [true, true]);
}

#[test]
fn requests_that_do_not_end_in_time_are_cut_off() {
    let (folder, server, client) = start(&["--shutdown-seconds", "0.2"]);
    client.add("a");
    let mut upload = begin(&server);
    server.signal(Signal::TERM);
    assert_eq!(upload.rest(), "");
    let ended = server.wait();
    assert!(ended.status.success() && ended.log.contains("cut off"), "{}: {}", ended.status, ended.log);
    assert!(Server::start(&folder).client().listed("a"));
}

#[test]
fn idle_connections_do_not_delay_the_end() {
    let (_folder, server, _client) = start(&["--shutdown-seconds", "3600", "--idle-seconds", "3600"]);
    let mut silent = Raw::open(&server);
    let mut kept = Raw::open(&server);
    kept.head("GET /healthz", &[]);
    assert!(kept.answer_head().starts_with("http/1.1 200 "));
    server.signal(Signal::INT);
    assert_eq!(kept.rest(), "ok");
    assert_eq!(silent.rest(), "");
    let ended = server.wait();
    assert!(ended.status.success(), "Ctrl-C, too, is a good end: {}", ended.log);
    assert_eq!(ended.output, "", "the address is the one line on stdout");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let (folder, server, client) = start(&["--shutdown-seconds", "3600"]);
    let _upload = begin(&server);
    client.add("acknowledged");
    server.signal(Signal::TERM);
    server.wait_for_log("shutting down");
    // Sooner, it would be an echo of the first one.
    sleep(Duration::from_millis(1100));
    server.signal(Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.status.code(), Some(1), "{}", ended.log);
    assert!(Server::start(&folder).client().listed("acknowledged"));
}

#[test]
fn two_signals_at_the_same_time_are_one_and_a_terminal_that_is_closed_is_none() {
    let (folder, server, client) = start(&[]);
    server.signal(Signal::HUP);
    client.add("a");
    // While it is stopped, both wait for it.
    for signal in [Signal::STOP, Signal::TERM, Signal::INT, Signal::CONT] {
        server.signal(signal);
    }
    let ended = server.wait();
    assert!(ended.status.success(), "{}: {}", ended.status, ended.log);
    Server::start(&folder).wait_for_log("from=Snapshot { changes: 0 }");
}

#[test]
fn a_server_that_drains_is_not_ready_and_answers_all_the_same() {
    let (folder, server, _client) = start(&["--drain-seconds", "3600"]);
    server.signal(Signal::TERM);
    let client = server.client();
    wait_until("the server to be not ready", || client.get("/readyz").status == 503);
    // Each on a connection of its own.
    assert!(server.client().add("a") && server.client().listed("a"));
    assert_eq!(server.client().get("/healthz").status, 200);
    assert_eq!(server.client().get("/readyz").status, 503);
    drop(server);

    let server = Server::with(&folder, &["--drain-seconds", "0.2"]);
    assert!(server.stop().log.contains("drain=200ms"));
    let server = Server::with(&folder, &["--drain-seconds", "3600"]);
    server.signal(Signal::INT);
    assert!(server.wait().status.success(), "Ctrl-C does not wait");
}

/// redb panics where it reads a page that is none.
#[test]
fn a_writer_that_panics_ends_the_server_with_a_message() {
    let (folder, server, client) = start(&["--cache-mib", "1", "--snapshot-minutes", "0"]);
    client.add_all(&made("key", 200_000));
    let store = File::options().write(true).open(folder.store()).unwrap();
    let length = store.metadata().unwrap().len() as usize;
    store.write_all_at(&vec![0xff; length - (1 << 16)], 1 << 16).unwrap();

    let mut number = 0;
    wait_until("the writer to panic", || {
        number += 1;
        let put = client.try_send("PUT", &key_path(&format!("new-{number}")), &[], "");
        server.log().contains("list-writer") || put.is_err()
    });
    let ended = server.wait();
    assert_eq!(ended.status.code(), Some(1), "{}", ended.log);
    assert!(ended.log.contains("list-writer"), "{}", ended.log);
    let last = ended.log.lines().last().unwrap();
    assert!(last.starts_with("risk-server: ") && last.contains("the thread that changes the list panicked"), "{last}");
}
