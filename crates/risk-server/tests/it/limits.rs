//! What one client may take from the others: places, connections and time.

use crate::common::{Client, Folder, Raw, Server, start, wait_until};
use std::thread::sleep;
use std::time::Duration;

/// Waits until this many requests are in progress.
fn wait_for_requests(server: &Server, number: usize) {
    let client = server.client();
    wait_until("requests to be in progress", || client.metrics()["risk_requests_in_progress"] == number as f64);
}

/// A batch whose body does not come, until the test wants it to.
fn hold_a_place(server: &Server) -> Raw {
    let mut raw = Raw::open(server);
    raw.head("POST /v1/check", &["content-length: 5"]);
    raw
}

#[test]
fn beyond_the_limit_of_requests_one_is_told_to_come_again() {
    let (_folder, server, client) = start(&["--max-requests", "2"]);
    let held = [hold_a_place(&server), hold_a_place(&server)];
    wait_for_requests(&server, 2);

    for _ in 0..3 {
        for (method, path) in [("GET", "/v1/check/a"), ("GET", "/v1/stats"), ("PUT", "/v1/keys/a"), ("GET", "/")] {
            let answer = client.send(method, path, &[], "");
            assert!(answer.error(503).contains("2 requests are in progress"), "{method} {path}");
            assert_eq!(answer.header("retry-after"), "1");
        }
    }
    // A busy server must not be mistaken for a dead one.
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(client.get(path).status, 200, "{path}");
    }

    for mut raw in held {
        raw.send("[\"a\"]");
        assert!(raw.answer_head().starts_with("http/1.1 200 "), "those in progress are answered");
    }
    wait_for_requests(&server, 0);
    assert!(!client.listed("a"), "nothing was changed by those that were refused");
    // A client that goes away gives its place back.
    for _ in 0..5 {
        let held = [hold_a_place(&server), hold_a_place(&server)];
        wait_for_requests(&server, 2);
        drop(held);
        wait_for_requests(&server, 0);
    }
}

#[test]
fn beyond_the_limit_of_connections_one_waits_for_another_to_end() {
    let (_folder, server, _client) = start(&["--max-connections", "2", "--idle-seconds", "60"]);
    let mut open = [Raw::open(&server), Raw::open(&server)];
    for raw in &mut open {
        raw.head("GET /healthz", &[]);
        assert!(raw.answer_head().starts_with("http/1.1 200 "));
        assert_eq!(raw.body("ok".len()), "ok");
    }
    let mut third = Raw::open(&server);
    third.head("GET /metrics", &["connection: close"]);
    // Time enough for a server that accepts it all the same to answer with what it knows then.
    sleep(Duration::from_millis(200));
    let [mut first, second] = open;
    first.head("GET /healthz", &[]);
    assert!(first.answer_head().starts_with("http/1.1 200 "));
    drop((first, second));
    assert!(third.answer_head().starts_with("http/1.1 200 "));
    let metrics = third.rest();
    let healths = "risk_requests_total{route=\"healthz\",status=\"2xx\"} 3";
    assert!(metrics.contains(healths), "it was answered before its turn: {metrics}");
}

/// The address that is told in the log.
fn admin(server: &Server) -> Client {
    server.wait_for_log("health and metrics are answered here too");
    let log = server.log();
    let address = log.split("address=").nth(1).unwrap().split_whitespace().next().unwrap();
    Client::new(&format!("http://{address}"))
}

#[test]
fn health_and_metrics_have_an_address_of_their_own_if_asked_for() {
    let folder = Folder::new();
    let args = ["--admin", "127.0.0.1:0", "--max-connections", "3", "--first-byte-seconds", "3600"];
    let args = [&args[..], &["--idle-seconds", "3600"]].concat();
    let server = Server::with(&folder, &args);
    let admin = admin(&server);
    let full = || admin.metrics()["risk_connections"] == 3.0;
    // One that has just been closed may still have its place.
    let mut open = Vec::new();
    wait_until("as many connections as may be", || {
        open.push(Raw::open(&server));
        full()
    });
    assert_eq!(admin.metrics()["risk_max_connections"], 3.0);
    server.wait_for_log("the limit of connections is reached");

    for path in ["/healthz", "/readyz"] {
        assert_eq!(admin.get(path).status, 200, "{path}");
    }
    for path in ["/", "/v1/stats", "/v1/check/a"] {
        admin.get(path).error(404);
    }
    admin.put("/v1/keys/a").error(404);
    admin.send("GET", "/metrics", &[("host", "evil.example.com")], ()).error(421);
    assert!(full());
    drop(open);
    wait_until("connections to be closed", || admin.metrics()["risk_connections"] == 0.0);
}

#[test]
fn a_connection_that_sends_nothing_is_closed() {
    let (_folder, server, client) =
        start(&["--max-connections", "2", "--first-byte-seconds", "1", "--idle-seconds", "3600"]);
    let mut silent = [Raw::open(&server), Raw::open(&server), Raw::open(&server), Raw::open(&server)];
    assert_eq!(client.get("/healthz").status, 200);
    for raw in &mut silent {
        assert_eq!(raw.rest(), "");
    }
}

#[test]
fn a_head_that_does_not_come_is_cut_off() {
    let (_folder, server, _client) = start(&["--idle-seconds", "0.3"]);
    for begun in ["", "G", "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: "] {
        let mut raw = Raw::open(&server);
        raw.send(begun);
        let answer = raw.rest();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408 "), "{begun:?}: {answer}");
    }
    // One that sends a little again and again, and one that has been answered before.
    let mut raw = Raw::open(&server);
    raw.send("GET /healthz HTTP/1.1\r\nhost: localhost\r\n");
    wait_until("a slow head to be cut off", || raw.try_send("x: y\r\n").is_err());
    let mut raw = Raw::open(&server);
    raw.head("GET /healthz", &[]);
    assert!(raw.answer_head().starts_with("http/1.1 200 "));
    assert_eq!(raw.rest(), "ok", "a connection without a request is closed");
}

#[test]
fn a_json_body_that_does_not_come_is_cut_off() {
    let (_folder, server, client) = start(&["--request-seconds", "0.3"]);
    let mut silent = hold_a_place(&server);
    assert!(silent.answer_head().starts_with("http/1.1 408 "));

    let mut slow = Raw::open(&server);
    slow.head("POST /v1/check", &["transfer-encoding: chunked"]);
    // Not the pauses count, but the whole.
    wait_until("a slow body to be cut off", || slow.try_send("1\r\n \r\n").is_err());
    wait_for_requests(&server, 0);
    assert_eq!(client.metrics()[r#"risk_requests_total{route="check_batch",status="4xx"}"#], 2.0);
}

#[test]
fn a_body_of_lines_may_take_long_but_not_keep_silent() {
    let (_folder, server, client) = start(&["--request-seconds", "1", "--idle-seconds", "2"]);
    let mut steady = Raw::open(&server);
    steady.head("POST /v1/keys", &["transfer-encoding: chunked"]);
    for i in 0..25 {
        steady.chunk(format!("steady-{i}\n"));
        sleep(Duration::from_millis(100));
    }
    steady.chunk("");
    let head = steady.answer_head();
    assert!(head.starts_with("http/1.1 200 "), "longer than both limits, and never silent: {head}");
    assert_eq!(client.stats()["keys"], 25);

    let mut silent = Raw::open(&server);
    silent.head("POST /v1/keys", &["transfer-encoding: chunked"]);
    silent.chunk("before\nbegun");
    let mut replacing = Raw::open(&server);
    replacing.head("POST /v1/keys?replace=true", &["transfer-encoding: chunked"]);
    replacing.chunk("replaced\n");
    for raw in [&mut silent, &mut replacing] {
        let head = raw.answer_head();
        assert!(head.starts_with("http/1.1 408 "), "{head}");
    }
    assert_eq!(client.which_listed(&["before", "begun", "replaced", "steady-0"]), [true, false, false, true]);
    assert_eq!(client.stats()["keys"], 26);

    // Nor may a new list come so slowly that no other one ever can.
    let mut dripping = Raw::open(&server);
    dripping.head("POST /v1/keys?replace=true", &["transfer-encoding: chunked", "connection: close"]);
    wait_for_requests(&server, 1);
    wait_until("a dripping list to be given up", || {
        sleep(Duration::from_millis(50));
        let _ = dripping.try_send("1\r\n\n\r\n");
        client.metrics()["risk_requests_in_progress"] == 0.0
    });
    assert_eq!(client.post_keys("?replace=true", "a\n").json(200)["keys"], 1, "the next one may replace the list");
}
