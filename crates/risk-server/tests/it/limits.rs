//! Limits per client: connections, memory and time.

use crate::common::{Client, Raw, Server, lines, made, snapshot, start, wait_until};
use crate::restarts::shell;
use crate::uploads::gzip;
use rustix::fs::OFlags;
use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::process::Signal;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::process::Command;
use std::thread::{scope, sleep};
use std::time::Duration;
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

fn free(client: &Client, what: &str) -> u64 {
    client.stats()[format!("{what}_free")].as_u64().unwrap()
}

#[test]
fn beyond_the_limit_of_connections_one_waits_for_another_to_end() {
    let (_folder, server, _client) = start(&["--max-connections", "2", "--idle-seconds", "60"]);
    let mut open = [Raw::open(&server), Raw::open(&server)];
    for raw in &mut open {
        raw.head("GET /healthz", &[]);
        assert_eq!(raw.status(), "200");
    }
    let mut third = Raw::open(&server);
    third.head("GET /metrics", &["connection: close"]);
    third.0.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert_eq!(third.0.read_exact(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    third.0.set_read_timeout(None).unwrap();
    drop(open);
    assert_eq!(third.status(), "200");
}

#[test]
fn silent_and_slow_clients_are_cut_off() {
    let (_folder, server, client) = start(&["--max-connections", "8", "--idle-seconds", "1", "--request-seconds", "2"]);
    let mut heads: Vec<Raw> = (0..20).map(|_| Raw::open(&server)).collect();
    heads[0].send("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: ");
    assert_eq!(client.get("/healthz").status, 200);
    for raw in &mut heads {
        assert!(raw.rest().is_empty());
    }
    // One that sends a few bytes from time to time, and one that has had a response.
    let mut slow = Raw::open(&server);
    slow.send("GET /healthz HTTP/1.1\r\nhost: localhost\r\n");
    wait_until("a slow head to be cut off", || slow.0.write_all(b"x: y\r\n").is_err());
    let mut kept = Raw::open(&server);
    kept.head("GET /healthz", &[]);
    assert_eq!((kept.status().as_str(), kept.rest().as_str()), ("200", "ok"));

    let mut silent = Raw::open(&server);
    silent.head("POST /v1/check", &["content-length: 5"]);
    assert_eq!(silent.status(), "408");
    let mut slow = Raw::open(&server);
    slow.head("POST /v1/check", &["transfer-encoding: chunked"]);
    wait_until("a slow body to be cut off", || slow.0.write_all(b"1\r\n \r\n").is_err());

    // Lines may take longer than a request, but must keep arriving.
    let (_folder, patient, _client) = start(&["--request-seconds", "1"]);
    let mut steady = Raw::upload(&patient, "");
    for _ in 0..6 {
        steady.chunk("steady\n".repeat(200));
        sleep(Duration::from_millis(250));
    }
    steady.chunk("");
    assert_eq!(steady.status(), "200");
    let mut silent = Raw::upload(&server, "?replace=true");
    silent.chunk("before\nbegun");
    assert_eq!(silent.status(), "408");
    let mut dripping = Raw::upload(&server, "");
    wait_until("a dripping body to be cut off", || {
        sleep(Duration::from_millis(20));
        dripping.0.write_all(b"1\r\n\n\r\n").is_err()
    });
    assert_eq!((client.listed("before"), client.len()), (false, 0));
    wait_until("all memory to be free", || free(&client, "body_bytes") == 64 * MIB);
}

#[test]
fn clients_that_never_read_are_cut_off_and_do_not_delay_the_end() {
    let (_folder, server, client) =
        start(&["--max-connections", "4", "--idle-seconds", "0.5", "--request-seconds", "3600"]);
    let never_read = || {
        let mut raw = Raw::open(&server);
        set_socket_recv_buffer_size(&raw.0, 4096).unwrap();
        raw.0.set_nonblocking(true).unwrap();
        // As many requests as the system buffers; then the server waits for this client.
        let page = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(1000);
        while raw.0.write_all(&page).is_ok() {}
        raw
    };
    let mut held: Vec<Raw> = (0..4).map(|_| never_read()).collect();
    assert_eq!(client.get("/healthz").status, 200, "a place is free again");
    held.extend((0..4).map(|_| never_read()));
    server.stop();
}

#[test]
fn newlines_in_gzip_freeze_nothing() {
    let (_folder, server, client) = start(&[]);
    let members = gzip("\n".repeat(1 << 20)).repeat(1000);
    let mut bombs: Vec<Raw> = (0..8).map(|_| Raw::open(&server)).collect();
    for raw in &mut bombs {
        raw.head("POST /v1/keys", &["content-encoding: gzip", &format!("content-length: {}", members.len())]);
        let _ = raw.0.write_all(&members);
        assert_eq!(client.get("/healthz").status, 200);
    }
    for raw in &mut bombs {
        assert_eq!(raw.status(), "413");
    }
    assert_eq!((client.len(), free(&client, "body_bytes")), (0, 64 * MIB));
}

#[test]
fn bodies_of_all_requests_share_a_budget_of_memory() {
    let (_folder, server, client) =
        start(&["--max-bodies-mib=32", "--max-body-bytes=99999999", "--idle-seconds=3600", "--request-seconds=3600"]);
    // Bodies without their last byte.
    let mut held = Vec::new();
    for number in 1..=30 {
        let mut raw = Raw::open(&server);
        raw.head("POST /v1/check", &[&format!("content-length: {MIB}")]);
        raw.send(" ".repeat(MIB as usize - 1));
        held.push(raw);
        wait_until("the body", || free(&client, "body_bytes") == 32 * MIB - number * (MIB - 1));
    }
    let upload = Raw::upload(&server, "");
    wait_until("an upload", || free(&client, "body_bytes") < MIB);
    let too_much =
        [client.batch(&" ".repeat(MIB as usize)), client.post("", "a\n"), client.post("?replace=true", "a\n")];
    for answer in too_much {
        assert!(answer.error(503).contains("--max-bodies-mib") && answer.header("retry-after") == "1");
    }
    // Requests without a body, or with a short one, succeed.
    assert!(client.add("a") && client.listed("a") && client.which_listed(&["b"]) == [false]);
    // What can never be held is not to be sent again.
    assert!(client.batch(&" ".repeat(33 << 20)).error(413).contains("more than 33554432 bytes"));
    drop((held, upload));
    wait_until("all memory to be free", || free(&client, "body_bytes") == 32 * MIB);
    assert_eq!(client.post("?replace=true", "b\n").status, 200);
}

#[test]
fn the_memory_of_a_new_list_is_free_only_when_nothing_of_it_remains() {
    let (folder, server, client) = start(&[]);
    let keys = lines(&made("key", 20_000));
    // Disconnects while keys are added, or while the list is completed.
    for millis in [0, 50, 100, 200, 400, 600] {
        let mut raw = Raw::open(&server);
        raw.head("POST /v1/keys?replace=true", &["transfer-encoding: chunked"]);
        raw.chunk(&keys);
        wait_until("the upload", || free(&client, "body_bytes") < 64 * MIB);
        raw.chunk("");
        sleep(Duration::from_millis(millis));
        drop(raw);
        wait_until("all memory to be free", || free(&client, "body_bytes") == 64 * MIB);
        assert_eq!(folder.path().join("unfinished").read_dir().unwrap().count(), 0);
    }
}

/// Starts a server with `a` on its list, whose writer waits until the file is dropped: for the log, a pipe that is full.
fn with_waiting_writer(args: &str) -> (TempDir, Server, File) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let nonblocking = OFlags::NONBLOCK.bits() as i32;
    let mut pipe = File::options().read(true).write(true).custom_flags(nonblocking).open(&path).unwrap();
    let script = format!("exec \"$0\" --snapshot-seconds 0.05 {args} 2>\"$1\"");
    let server = Server::start(shell(folder.path(), &script).arg(&path));
    let mut log = Vec::new();
    wait_until("a snapshot", || {
        let _ = pipe.read_to_end(&mut log);
        String::from_utf8_lossy(&log).contains("a snapshot was saved")
    });
    while pipe.write(b"\n").is_ok() {}
    // The next snapshot, of which the writer cannot tell.
    let saved = || snapshot(&folder).metadata().unwrap().ino();
    let before = saved();
    assert!(server.client().add("a"));
    wait_until("another snapshot", || saved() != before);
    (folder, server, pipe)
}

#[test]
fn of_changes_that_time_out_only_those_in_the_queue_are_made() {
    let (folder, server, pipe) = with_waiting_writer("--request-seconds 2");
    let client = server.client();
    scope(|scope| {
        for upload in 0..16 {
            let keys = lines(&made(&format!("upload-{upload}"), 8000));
            let client = &client;
            scope.spawn(move || assert!(client.post("", &keys).error(503).contains("may still be made")));
        }
    });
    drop(pipe);
    // Ends after all changes that were sent before.
    server.stop();
    // 110 KB each, and 512 KiB in all.
    assert_eq!(Server::on(&folder).client().len(), 1 + 4 * 8000);
}

#[test]
fn a_put_that_is_refused_fails_no_other_change_of_its_transaction() {
    let (_folder, server, pipe) = with_waiting_writer("--capacity 1 --max-capacity 8");
    let client = server.client();
    let put = |key: &str| client.send("PUT", &format!("/v1/keys/{key}"), &[], "").status;
    let mut statuses = scope(|scope| {
        let new = ["b,c,d,e,f,g,h,i,j,k".split(',').collect::<Vec<_>>(), vec!["a"; 10]].concat();
        let puts: Vec<_> = new.into_iter().map(|key| scope.spawn(move || put(key))).collect();
        sleep(Duration::from_millis(500));
        drop(pipe);
        puts.into_iter().map(|put| put.join().unwrap()).collect::<Vec<_>>()
    });
    statuses.sort();
    assert_eq!(statuses, [&[200; 10][..], &[201; 7], &[507; 3]].concat());
    assert_eq!(client.len(), 8);
}

#[test]
fn requests_in_progress_end_well_unless_they_take_too_long_or_a_second_signal_comes() {
    for (time, second) in [("3600", false), ("2", false), ("3600", true)] {
        let (folder, server, client) = start(&["--request-seconds", time]);
        client.add("before");
        let mut upload = Raw::upload(&server, "");
        upload.chunk("first\n");
        wait_until("the upload", || free(&client, "body_bytes") < 64 * MIB);
        server.signal(Signal::TERM);
        wait_until("new connections to be refused", || std::net::TcpStream::connect(server.address).is_err());
        if second {
            server.signal(Signal::INT);
        } else if time == "3600" {
            upload.chunk("last\n");
            upload.chunk("");
            assert!(upload.rest().ends_with(r#"{"added":2,"already":0,"lines":2}"#));
        } else {
            let mut number = 0;
            wait_until("the upload to be cut off", || {
                number += 1;
                let keys = lines(&made(&format!("{number}-{}", "x".repeat(1000)), 60));
                upload.0.write_all(format!("{:x}\r\n{keys}\r\n", keys.len()).as_bytes()).is_err()
            });
        }
        let (status, log) = server.wait();
        assert_eq!(status.code(), Some(i32::from(second)), "{log}");
        let has_snapshot = snapshot(&folder).exists();
        assert_eq!((log.contains("cut off"), has_snapshot), (time == "2", !second), "{log}");
        assert_eq!(Server::on(&folder).log().contains("source=\"snapshot\""), !second);
    }
}
