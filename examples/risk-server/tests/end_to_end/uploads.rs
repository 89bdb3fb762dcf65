//! Many keys at once, one a line, of any length.

use crate::common::folder::Folder;
use crate::common::keys::{domains, domains_text, lines, made};
use crate::common::raw::Raw;
use crate::common::server::Server;
use crate::common::wait::wait_until;
use serde_json::json;
use std::io::{self, Read};

/// Hands over a text in pieces of odd sizes, as a network does.
struct Pieces<'a>(&'a [u8], usize);

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1 = self.1 * 5 % 9973 + 1;
        let length = self.1.min(buffer.len()).min(self.0.len());
        let (piece, rest) = self.0.split_at(length);
        buffer[..length].copy_from_slice(piece);
        self.0 = rest;
        Ok(length)
    }
}

#[test]
fn the_real_list_is_loaded_and_found_key_by_key() {
    let folder = Folder::new();
    let server = Server::with(&folder, &["--capacity", "130000"]);
    let client = server.client();
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
    assert_eq!((&stats["overflow_keys"], &stats["rebuilds"]), (&json!(0), &json!(0)));
}

#[test]
fn a_body_in_pieces_of_any_size_is_the_same_list() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let client = server.client();
    let keys: Vec<&str> = domains().iter().step_by(6).copied().collect();
    let answer = client.post_chunked("", Pieces(lines(&keys).as_bytes(), 1));
    assert_eq!(answer.json(200)["added"], keys.len());
    assert_eq!(client.count_listed(&keys), keys.len());
    assert_eq!(client.stats()["keys"], keys.len());

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
    let folder = Folder::new();
    let server = Server::start(&folder);
    let client = server.client();
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
    let folder = Folder::new();
    let server = Server::start(&folder);
    let client = server.client();
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
fn uploads_at_the_same_time_add_each_key_once() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let client = server.client();
    let keys = made("key", 20_000);
    // Four threads, each with all the keys from another place on.
    let added: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let (client, mut keys) = (&client, keys.clone());
                keys.rotate_left(thread * 5000);
                scope.spawn(move || client.add_all(&keys))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(added, keys.len() as u64);
    let stats = client.stats();
    assert_eq!((&stats["keys"], &stats["filter"]["len"]), (&json!(20_000), &json!(20_000)));
    assert_eq!(client.count_listed(&keys), keys.len());
}

#[test]
fn an_upload_that_breaks_off_keeps_whole_lines_only() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let client = server.client();
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
