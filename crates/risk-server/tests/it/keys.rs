//! Single keys and batches, bad requests, tokens, names, and figures.

use crate::common::{Answer, Client, Raw, Server, made, program, program_on, refused, start};
use serde_json::json;

#[test]
fn a_key_is_listed_from_its_put_to_its_delete_and_repeats_do_no_harm() {
    let (_folder, _server, client) = start(&[]);
    assert!(!client.remove("never.there"));
    assert_eq!(client.send("PUT", "/v1/keys/a%2Fb", &[], "").json(201), json!({ "key": "a/b", "added": true }));
    assert_eq!(client.get("/v1/check/a/b").json(200), json!({ "key": "a/b", "listed": true }));
    assert_eq!(client.send("HEAD", "/v1/check/a/b", &[], ()).body, "");
    assert!(!client.listed("a/"));
    assert!(client.remove("a/b") && !client.listed("a/b"));
    assert!(client.add("twice.there") && !client.add("twice.there"));
    assert_eq!(client.len(), 1);

    assert!(client.remove("twice.there"));
    // A put too many would leave a copy in the filter; a delete too many would remove another key's fingerprint.
    let stay = made("stay", 500);
    client.add_all(&stay);
    for key in &stay {
        assert!(!client.remove("twice.there") && !client.remove(&format!("not {key}")));
    }
    assert_eq!((client.count_listed(&stay), client.len()), (500, 500));
    let stats = client.stats();
    assert_eq!((&stats["inserts"], &stats["removals"]), (&json!(502), &json!(2)));
}

#[test]
fn any_text_of_one_line_is_a_key() {
    let (_folder, _server, client) = start(&[]);
    let longest = "ü".repeat(512);
    #[rustfmt::skip]
    let keys = [
        "a", ".", "..", "../..", "/", "a/b//c/", "a b", " ", "100%", "%41", "a+b", "who?me=1&x", "#here", "\"quoted\\\"",
        "<b>", "schlüssel.de", "鍵", "😀", "e\u{301}", "é", "MAILINATOR.com", "mailinator.com", &longest,
    ];
    for (number, key) in keys.iter().enumerate() {
        assert!(!client.listed(key) && client.add(key) && client.listed(key), "{key:?} is a key of its own");
        assert_eq!(client.len(), number as u64 + 1);
    }
    assert_eq!(client.count_listed(&keys), keys.len());
    for key in keys {
        assert!(client.remove(key) && !client.listed(key), "{key:?}");
    }
}

#[test]
fn a_batch_is_answered_in_its_order() {
    let (_folder, _server, client) = start(&[]);
    let keys = made("key", 10_000);
    client.add_all(&keys.iter().step_by(2).collect::<Vec<_>>());
    for (i, (key, listed)) in keys.iter().zip(client.which_listed(&keys)).enumerate() {
        assert_eq!(listed, i % 2 == 0, "{key}");
    }
    assert_eq!(client.batch("[]").json(200), json!({ "listed": [] }));
    // Repeated keys, and escapes of JSON.
    let answer = client.batch(r#"["key-0", "key-1", "key-0", "\u006bey-2"]"#);
    assert_eq!(answer.json(200), json!({ "listed": [true, false, true, true] }));
}

#[test]
fn few_absent_keys_cost_a_read_of_the_store_and_figures_tell() {
    let (_folder, _server, client) = start(&["--capacity", "20000", "--max-capacity", "20000"]);
    let (listed, absent) = (made("listed", 20_000), made("absent", 40_000));
    assert!(client.stats()["observed_false_positive_rate"].is_null());
    client.add_all(&listed);
    assert_eq!(client.count_listed(&absent), 0, "a key that the filter takes for listed is not confirmed");
    assert_eq!(client.count_listed(&listed[..10_000]), 10_000);

    let stats = client.stats();
    let number = |name: &str| stats[name].as_u64().unwrap();
    assert_eq!((number("lookups"), number("confirmed_hits")), (50_000, 10_000));
    // A rate of 0.001 of a full filter is 40 of 40,000.
    let wrong = number("filter_hits") - number("confirmed_hits");
    assert!((1..200).contains(&wrong), "{wrong} absent keys were read in the store");
    assert_eq!(stats["observed_false_positive_rate"], json!(wrong as f64 / 40_000.0));
    let metrics = client.get("/metrics");
    assert!(metrics.header("content-type").starts_with("application/openmetrics-text; version=1.0.0"));
    for line in [
        "# TYPE risk_lookups counter",
        "risk_lookups_total 50000.0",
        "risk_filter_len 20000.0",
        "risk_requests_total{route=\"/v1/check\",status=\"2xx\"} 5",
        "risk_request_seconds_count{route=\"/v1/keys\"} 1",
        "# EOF",
    ] {
        assert!(metrics.body.lines().any(|have| have == line), "{line} is not in\n{}", metrics.body);
    }
}

#[test]
fn bad_requests_are_told_what_is_wrong_with_them() {
    let (_folder, _server, client) = start(&[]);
    let long = "x".repeat(1025);
    for (path, reason) in [
        (long.as_str(), "the key has 1025 bytes; a key has 1 to 1024 bytes"),
        ("a%0Ab", "control character U+000A at byte 1"),
        ("%FF", "not UTF-8"),
        ("a?b=c", "%3F"),
    ] {
        for (method, prefix) in [("GET", "/v1/check/"), ("PUT", "/v1/keys/"), ("DELETE", "/v1/keys/")] {
            let error = client.send(method, &format!("{prefix}{path}"), &[], "").error(400);
            assert!(error.contains(reason), "{path:?}: {error}");
        }
    }
    for (body, reason) in [
        ("[\"a\", null]", "expected a string"),
        ("[\"a\", \"b\", \"\"]", "index 2: the key has 0 bytes"),
        ("[\"a\\nb\"]", "index 0: the key has the control character U+000A"),
        (&json!(made("key", 10_001)).to_string(), "more than 10000 keys in one batch"),
        (&"[".repeat(100_000), "expected a string"),
    ] {
        let error = client.batch(body).error(400);
        assert!(error.contains(reason), "{error}");
    }
    assert!(client.batch(&" ".repeat((1 << 20) + 1)).error(413).contains("more than 1048576 bytes"));
    for query in ["?replace=yes", "?replace", "?replace=true&replace=false", "?x"] {
        assert!(client.post(query, "a\n").error(400).contains("replace=true or replace=false"), "{query}");
    }
    for content_type in ["multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "Application/JSON"] {
        let answer = client.send("POST", "/v1/keys", &[("content-type", content_type)], "a\n");
        assert!(answer.error(415).contains("curl -H 'Content-Type: text/plain' --data-binary @FILE"));
    }
    for path in ["/nothing", "/v1/", "/v1/check/", "//"] {
        client.get(path).error(404);
    }
    for (method, path, allowed) in
        [("POST", "/", "GET,HEAD"), ("GET", "/v1/check", "POST"), ("GET", "/v1/keys/a", "PUT,DELETE")]
    {
        let answer = client.send(method, path, &[], "");
        answer.error(405);
        assert_eq!(answer.header("allow"), allowed, "{method} {path}");
    }
    assert_eq!((client.len(), client.stats()["lookups"].as_u64()), (0, Some(0)));
}

/// All requests that write.
fn writes(client: &Client, headers: &[(&str, &str)]) -> [Answer; 4] {
    [
        client.send("PUT", "/v1/keys/new", headers, ""),
        client.send("DELETE", "/v1/keys/old", headers, ()),
        client.send("POST", "/v1/keys", headers, "new\n"),
        client.send("POST", "/v1/keys?replace=true", headers, "new\n"),
    ]
}

#[test]
fn without_the_token_or_from_pages_of_other_origins_nothing_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let error = refused(program().args(["--listen", "0.0.0.0:0", "--data"]).arg(folder.path().join("list")));
    assert!(error.contains("can be reached from other machines, so a token is needed"), "{error}");
    assert!(!folder.path().join("list").exists(), "a server that is refused leaves nothing behind");
    assert!(refused(program_on(folder.path()).env("RISK_SERVER_TOKEN", "two words")).contains("is not a token"));

    let server = Server::start(program_on(folder.path()).env("RISK_SERVER_TOKEN", "right"));
    let client = server.client();
    let right = ("authorization", "bearer right");
    let named = [right, ("host", "list.example.com")];
    assert_eq!(client.send("PUT", "/v1/keys/old", &named, "").status, 201);
    for (value, says) in [("", "needed"), ("right", "needed"), ("Basic right", "needed"), ("Bearer righ", "wrong")] {
        for answer in writes(&client, &[("authorization", value)]) {
            assert!(answer.error(401).contains(says), "{value:?}");
            assert_eq!(answer.header("www-authenticate"), "Bearer");
        }
    }
    for header in [("origin", "https://evil.example.com"), ("sec-fetch-site", "cross-site")] {
        for answer in writes(&client, &[right, header]) {
            assert!(answer.error(403).contains("another origin"), "{header:?}");
        }
    }
    assert_eq!(client.which_listed(&["old", "new"]), [true, false], "reads need no token");
    assert_eq!(writes(&client, &[right]).map(|answer| answer.status), [201, 200, 200, 200]);
    assert!(!server.log().contains("right"), "a secret is not logged");
}

/// A page whose own host name resolves to this machine must not change the list.
#[test]
fn without_a_token_only_names_of_this_machine_are_answered_to() {
    let (_folder, server, _client) = start(&[]);
    for (host, status) in [
        ("localhost", "200"),
        ("LocalHost:8080", "200"),
        ("127.0.0.1:1", "200"),
        ("[::1]:80", "200"),
        ("evil.example.com", "421"),
        ("", "421"),
    ] {
        let mut raw = Raw::open(&server);
        raw.send(format!("GET / HTTP/1.1\r\nhost: {host}\r\n\r\n"));
        assert_eq!(raw.status(), status, "{host:?}");
    }
}
