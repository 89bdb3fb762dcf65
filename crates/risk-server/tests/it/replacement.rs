//! A whole new list in place of the old one.

use crate::common::{Raw, Server, domains, domains_text, lines, made, start, wait_until};
use serde_json::json;
use std::fs;

/// A replacement that has begun, and waits for keys.
fn begin(server: &Server) -> Raw {
    let mut raw = Raw::open(server);
    let headers = ["transfer-encoding: chunked", "connection: close", "expect: 100-continue"];
    raw.head("POST /v1/keys?replace=true", &headers);
    // The body is asked for when there is a list to put it on.
    assert!(raw.answer_head().starts_with("http/1.1 100 "));
    raw
}

#[test]
fn the_new_list_is_what_was_sent_and_nothing_else() {
    let (_folder, _server, client) = start(&["--capacity", "1000"]);
    client.add_all(&made("old", 500));

    let answer = client.post_keys("?replace=true", domains_text()).json(200);
    assert_eq!(answer["keys"], domains().len());
    assert!(answer["took_ms"].is_u64());
    assert_eq!(client.count_listed(domains()), domains().len());
    assert_eq!(client.count_listed(&made("old", 500)), 0);
    let stats = client.stats();
    assert_eq!((&stats["keys"], &stats["filter"]["len"]), (&json!(121_570), &json!(121_570)));
    assert_eq!(stats["replacements"], 1);

    // The keys of the new list are as firmly on it as those that were put: each is in the filter once.
    assert!(!client.add(domains()[0]));
    assert!(client.remove(domains()[1]));
    assert!(!client.listed(domains()[1]));
    let answer = client.post_keys("?replace=true", "a\r\nb\n\na\nb").json(200);
    assert_eq!(answer["keys"], 2, "a key that comes again counts once");
    assert_eq!(client.stats()["filter"]["len"], 2);
    for nothing in ["", "\n \r\n"] {
        let error = client.post_keys("?replace=true", nothing).error(400);
        assert!(error.contains("the body has no key"), "{error}");
    }
    assert!(client.listed("a") && client.listed("b"), "an export that failed unlists nothing");
}

#[test]
fn a_replacement_that_breaks_off_changes_nothing() {
    let (folder, server, client) = start(&[]);
    let (old, new) = (made("old", 2000), made("new", 200_000));
    client.add_all(&old);
    let as_before = || {
        let stats = client.stats();
        assert_eq!((&stats["keys"], &stats["replacements"]), (&json!(2000), &json!(0)));
        assert_eq!((client.count_listed(&old), client.count_listed(&new)), (2000, 0));
    };
    // So many keys that some are in the store before all have come.
    let store_bytes = || fs::metadata(folder.store()).unwrap().len();
    let (mut raw, before) = (begin(&server), store_bytes());
    raw.chunk(lines(&new));
    wait_until("keys of the new list in the store", || store_bytes() > before);
    // One change is made after the other: when this one is, they are committed.
    assert!(!client.remove("none"));
    drop(raw);
    wait_until("the replacement to be given up", || client.metrics()["risk_requests_in_progress"] == 0.0);
    as_before();
    let bad = client.post_keys("?replace=true", &format!("{}a\0b\n", lines(&new[..5000])));
    assert!(bad.error(400).starts_with("line 5001: "));
    as_before();
    // Nothing of what was given up comes with the next one.
    assert_eq!(client.post_keys("?replace=true", "next\n").json(200)["keys"], 1);
    assert_eq!((&client.stats()["keys"], client.count_listed(&new)), (&json!(1), 0));
}

#[test]
fn a_replacement_may_be_cancelled() {
    let (_folder, server, client) = start(&[]);
    client.add("old");
    let mut raw = begin(&server);
    raw.chunk(lines(&made("new", 10_000)));
    let second = client.post_keys("?replace=true", "second\n");
    assert_eq!((second.status, second.header("retry-after")), (409, "10"));
    assert!(second.error(409).contains("one is made at a time"));
    // A replacement is told of this only when its keys come in.
    assert_eq!(client.delete("/v1/replacement").json(200), json!({ "cancelled": true }));
    assert_eq!(client.delete("/v1/replacement").json(200), json!({ "cancelled": false }));
    assert_eq!(client.post_keys("?replace=true", "third\n").json(200)["keys"], 1);
    raw.chunk("");
    let answer = raw.rest();
    assert!(answer.starts_with("HTTP/1.1 409 ") && answer.contains("was cancelled"), "{answer}");
    assert_eq!(client.which_listed(&["old", "new-0", "third"]), [false, false, true]);
}
