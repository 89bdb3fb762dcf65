//! Many keys at once, one a line, of any length.

use crate::common::{Raw, Server, domains, domains_text, lines, made, start, wait_until};
use flate2::Compression;
use flate2::read::GzEncoder;
use serde_json::json;
use std::io::{self, Read};
use std::thread;

#[test]
fn the_real_list_is_loaded_and_found_key_by_key() {
    let (_folder, _server, client) = start(&["--capacity", "130000"]);
    let number = domains().len();
    assert_eq!(number, 121_570);
    let answer = client.post_keys("", domains_text());
    assert_eq!(answer.json(200), json!({ "lines": number, "added": number, "already": 0 }));
    assert_eq!(client.count_listed(domains()), number);
    let absent: Vec<String> = domains().iter().map(|domain| format!("not.{domain}")).collect();
    assert_eq!(client.count_listed(&absent), 0);

    let again = client.post_keys("", domains_text());
    assert_eq!(again.json(200), json!({ "lines": number, "added": 0, "already": number }));
    let stats = client.stats();
    assert_eq!((&stats["keys"], &stats["filter"]["len"]), (&json!(number), &json!(number)));
}

#[test]
fn a_body_in_pieces_of_any_size_is_the_same_list() {
    let (_folder, server, client) = start(&[]);
    let mut raw = Raw::open(&server);
    raw.head("POST /v1/keys", &["transfer-encoding: chunked", "connection: close"]);
    for byte in "zwölf\r\nläßt".as_bytes() {
        raw.chunk([*byte]);
    }
    raw.chunk("");
    let answer = raw.rest();
    assert!(answer.ends_with(r#"{"lines":2,"added":2,"already":0}"#), "{answer}");
    assert_eq!(client.which_listed(&["zwölf", "läßt"]), [true, true]);
}

#[test]
fn lines_may_end_in_either_way_and_be_blank() {
    let (_folder, _server, client) = start(&[]);
    let answer = client.post_keys("", "\u{feff}first\r\n\n   \n\t\r\nfirst\n two words \n\r\nlast");
    assert_eq!(answer.json(200), json!({ "lines": 4, "added": 3, "already": 1 }));
    assert_eq!(client.which_listed(&["first", " two words ", "last", "two words"]), [true, true, true, false]);
    assert_eq!(client.stats()["keys"], 3);
    for nothing in ["", "\n", " \r\n\n"] {
        assert_eq!(client.post_keys("", nothing).json(200), json!({ "lines": 0, "added": 0, "already": 0 }));
    }
}

#[test]
fn of_a_bad_line_the_number_is_told_and_what_came_before_it_is_kept() {
    let (_folder, _server, client) = start(&[]);
    let keys = made("key", 9999);
    let too_long = "x".repeat(1025);
    for (number, (bad, reason)) in
        [(too_long.as_str(), "1025 bytes"), ("a\0b", "control character U+0000"), ("a\rb", "U+000D")].iter().enumerate()
    {
        let name = format!("after-{number}");
        let answer = client.post_keys("", &format!("{}{bad}\n{name}\n", lines(&keys)));
        let error = answer.error(400);
        assert!(error.starts_with("line 10000: ") && error.contains(reason), "{error}");
        let body = answer.json(400);
        let added = if number == 0 { 9999 } else { 0 };
        assert_eq!((&body["lines"], &body["added"]), (&json!(9999), &json!(added)), "{body}");
        assert!(!client.listed(&name));
    }
    let not_text = client.post_keys("", &b"fine\nnot \xff fine\n"[..]).error(400);
    assert!(not_text.starts_with("line 2: ") && not_text.contains("not UTF-8"), "{not_text}");
    assert_eq!(client.count_listed(&keys), keys.len());
    assert_eq!(client.stats()["keys"], 10_000);

    // A line without end does not fill the memory.
    let endless = client.post_chunked("", io::repeat(b'x').take(64 << 20)).error(400);
    assert!(endless.starts_with("line 1: "), "{endless}");
}

#[test]
fn an_upload_that_breaks_off_keeps_whole_lines_only() {
    let (_folder, server, client) = start(&[]);
    for header in ["transfer-encoding: chunked", "content-length: 1000000"] {
        let mut raw = Raw::open(&server);
        raw.head("POST /v1/keys", &[header]);
        if header.starts_with("transfer") {
            raw.chunk("whole\nbroken");
        } else {
            raw.send("whole\nbroken");
        }
        wait_until("the upload to have begun", || client.metrics()["risk_requests_in_progress"] == 1.0);
        drop(raw);
        wait_until("the upload to be over", || client.metrics()["risk_requests_in_progress"] == 0.0);
        assert!(!client.listed("broken"), "half a line is no key");
        assert!(client.stats()["keys"].as_u64().unwrap() <= 1);
    }
    let metrics = client.metrics();
    let failed = metrics.get(r#"risk_requests_total{route="upload",status="5xx"}"#);
    assert_eq!(failed, None, "a client that goes away is not the server's error");
}

#[test]
fn only_a_text_is_taken_for_lines() {
    let (_folder, _server, client) = start(&[]);
    let post = |content_type| client.send("POST", "/v1/keys", &[("content-type", content_type)], "a\n");
    for content_type in
        ["multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "Application/JSON", "text"]
    {
        let error = post(content_type).error(415);
        assert!(error.contains("curl -H 'Content-Type: text/plain' --data-binary @FILE"), "{error}");
    }
    assert!(!client.listed("a"));
    for content_type in ["text/plain", "Text/CSV; charset=utf-8", "application/octet-stream"] {
        assert_eq!(post(content_type).json(200)["lines"], 1, "{content_type}");
    }
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzEncoder::new(text, Compression::default()).read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn an_upload_may_come_in_gzip_but_not_decode_without_end() {
    let (_folder, _server, client) = start(&["--max-decoded-bytes", "1000000"]);
    let post = |encoding, body: &[u8]| client.send("POST", "/v1/keys", &[("content-encoding", encoding)], body);
    let text = lines(&made("key", 9000));
    let bytes = gzip(text.as_bytes());
    assert_eq!(post("gzip", &bytes).json(200), json!({ "lines": 9000, "added": 9000, "already": 0 }));
    assert_eq!(post("identity", text.as_bytes()).json(200)["already"], 9000);
    for broken in [&bytes[..bytes.len() / 2], text.as_bytes()] {
        let error = post("gzip", broken).error(400);
        assert!(error.contains("broke off, or is not in gzip"), "{error}");
    }
    for other in ["zstd", "br", "deflate", "gzip, gzip"] {
        assert!(post(other, b"a\n").error(415).contains("with gzip"), "{other}");
    }
    let bomb = "a\n".repeat(500_001);
    assert!(gzip(bomb.as_bytes()).len() < 10_000);
    assert!(post("gzip", &gzip(bomb.as_bytes())).error(413).contains("--max-decoded-bytes"));
    assert_eq!(client.post_keys("", &bomb).json(200)["lines"], 500_001, "without encoding it may have any length");
}

#[test]
fn keys_are_listed_as_they_arrive_and_an_invalid_body_is_read_to_its_end() {
    let (_folder, server, client) = start(&[]);
    let mut raw = Raw::open(&server);
    raw.head("POST /v1/keys", &["transfer-encoding: chunked", "connection: close"]);
    raw.chunk(lines(&made("key", 10_000)));
    wait_until("two groups of keys", || client.stats()["keys"] == 8192);
    raw.chunk("");
    assert!(raw.rest().ends_with(r#"{"lines":10000,"added":10000,"already":0}"#));
    // A client that reads no answer before it has sent everything.
    for path in ["/v1/keys", "/v1/keys?replace=true", "/v1/keys?replace=maybe"] {
        let mut raw = Raw::open(&server);
        raw.head(&format!("POST {path}"), &["transfer-encoding: chunked"]);
        raw.chunk("b\0d\n");
        for _ in 0..100 {
            raw.chunk("a\n".repeat(1 << 15));
        }
        raw.chunk("");
        assert!(raw.answer_head().starts_with("http/1.1 400 "), "{path}");
    }
    assert!(!client.listed("a"));
}

#[test]
fn the_filter_grows_while_it_is_asked_changed_and_saved() {
    let (folder, server, client) = start(&["--capacity", "1", "--snapshot-minutes", "0.001"]);
    let (stable, keys) = (made("stable", 100), made("key", 80_000));
    client.add_all(&stable);
    thread::scope(|scope| {
        let client = &client;
        let uploads = keys.chunks(20_000).map(|part| scope.spawn(move || assert_eq!(client.add_all(part), 20_000)));
        let uploads: Vec<_> = uploads.collect();
        while uploads.iter().any(|upload| !upload.is_finished()) {
            assert_eq!(client.count_listed(&stable), 100);
        }
    });
    let stats = client.stats();
    assert!(stats["filter"]["splits"].as_u64() > Some(0), "{stats}");
    assert_eq!((&stats["keys"], &stats["filter"]["len"]), (&json!(80_100), &json!(80_100)));
    server.stop();
    let server = Server::start(&folder);
    server.wait_for_log("from=Snapshot { changes: 0 }");
    assert_eq!(server.client().count_listed(&keys), keys.len());
}

#[test]
fn beyond_the_largest_size_of_the_filter_puts_are_refused_and_a_smaller_list_makes_room() {
    let (_folder, _server, client) = start(&["--capacity", "1", "--max-capacity", "10000"]);
    let keys = made("key", 60_000);
    let answer = client.post_keys("", &lines(&keys));
    assert!(answer.error(503).contains("the filter is full") && answer.header("retry-after") == "1");
    let listed = answer.json(503)["lines"].as_u64().unwrap() as usize;
    assert!((10_000..59_000).contains(&listed), "{listed} lines");
    for _ in 0..2 {
        let stats = client.stats();
        assert_eq!((&stats["keys"], &stats["filter"]["len"]), (&json!(listed), &json!(listed)));
        assert_eq!((client.count_listed(&keys[..listed]), client.count_listed(&keys)), (listed, listed));
        let replaced = client.post_keys("?replace=true", &lines(&keys));
        assert!(replaced.error(503).contains("the list was not changed"), "{}", replaced.body);
    }
    assert_eq!(client.post_keys("?replace=true", &lines(&keys[..1000])).json(200)["keys"], 1000);
    assert!(client.add("another"));
}
