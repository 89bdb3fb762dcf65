//! Bad input is told what is wrong with it, and is never the server's error.

use crate::common::{Raw, start};
use serde_json::json;

#[test]
fn what_is_no_key_is_refused_in_a_path_with_its_reason() {
    let (_folder, _server, client) = start(&[]);
    let too_long = "x".repeat(1025);
    for (path, reason) in [
        ("", "the key is empty"),
        (too_long.as_str(), "the key has 1025 bytes; a key has 1 to 1024 bytes"),
        ("a%0Ab", "control character U+000A at byte 1"),
        ("%00", "control character U+0000 at byte 0"),
        ("%7F", "control character U+007F"),
        ("%FF", "not UTF-8"),
        ("%C3", "not UTF-8"),
        ("%", "two hexadecimal digits"),
        ("a%G0", "two hexadecimal digits"),
        ("a?b=c", "%3F"),
    ] {
        for answer in [
            client.get(&format!("/v1/check/{path}")),
            client.put(&format!("/v1/keys/{path}")),
            client.delete(&format!("/v1/keys/{path}")),
        ] {
            let error = answer.error(400);
            assert!(error.contains(reason), "{path:?}: {error}");
        }
    }
    assert_eq!(client.stats()["keys"], 0);
    assert_eq!(client.stats()["lookups"], 0, "what is no key was not looked up");
}

#[test]
fn what_is_no_batch_is_refused_with_its_reason() {
    let (_folder, _server, client) = start(&["--max-batch", "3"]);
    let too_long = json!(["a", "x".repeat(1025)]).to_string();
    for (body, reason) in [
        ("", "not a JSON array"),
        ("[\"a\"", "not a JSON array"),
        ("[\"a\"] and more", "not a JSON array"),
        ("a\nb\n", "not a JSON array"),
        ("{\"keys\": [\"a\"]}", "not a JSON array of keys: invalid type"),
        ("\"a\"", "not a JSON array of keys: invalid type"),
        ("null", "not a JSON array of keys: invalid type"),
        ("[1]", "expected a string"),
        ("[\"a\", null]", "expected a string"),
        ("[\"a\", [\"b\"]]", "expected a string"),
        ("[\"a\", \"b\", \"\"]", "index 2: the key is empty"),
        ("[\"a\\nb\"]", "index 0: the key has the control character U+000A"),
        (&too_long, "index 1: the key has 1025 bytes"),
        ("[\"\\ud800\"]", "not a JSON array"),
        ("[\"a\",\"b\",\"c\",\"d\"]", "more than 3 keys in one batch"),
    ] {
        let error = client.post_batch(body).error(400);
        assert!(error.contains(reason), "{body:?}: {error}");
    }
    let not_text = client.send("POST", "/v1/check", &[], &b"[\"\xff\"]"[..]);
    assert!(not_text.error(400).contains("not a JSON array"));
    // An array that never ends its depth is no way to exhaust the stack.
    assert!(client.post_batch(&"[".repeat(100_000)).error(400).contains("expected a string"));
    assert_eq!(client.post_batch("[\"a\",\"b\",\"c\"]").json(200), json!({ "listed": [false, false, false] }));
}

#[test]
fn a_body_that_is_too_long_is_refused_whether_its_length_is_said_or_not() {
    let (_folder, server, client) = start(&["--max-body-bytes", "1000"]);
    let fits = format!("[\"{}\"]", "x".repeat(996));
    assert_eq!(fits.len(), 1000);
    client.post_batch(&fits).json(200);
    assert!(client.post_batch(&format!("{fits} ")).error(413).contains("more than 1000 bytes"));

    let mut raw = Raw::open(&server);
    raw.head("POST /v1/check", &["content-length: 999999999999"]);
    assert!(raw.answer_head().starts_with("http/1.1 413 "), "refused before it is sent");

    let mut raw = Raw::open(&server);
    raw.head("POST /v1/check", &["transfer-encoding: chunked"]);
    for _ in 0..11 {
        raw.chunk(" ".repeat(100));
    }
    assert!(raw.answer_head().starts_with("http/1.1 413 "), "refused before it ends");
    assert!(!client.listed("alive"));
}

#[test]
fn an_unknown_query_is_refused() {
    let (_folder, _server, client) = start(&[]);
    client.add("stay");
    for query in ["?replace=yes", "?replace=True", "?replace", "?replace=true&replace=false", "?remove=true", "?x"] {
        let error = client.post_keys(query, "a\n").error(400);
        assert!(error.contains("replace=true or replace=false"), "{query}: {error}");
    }
    assert_eq!(client.which_listed(&["stay", "a"]), [true, false]);
    assert_eq!(client.post_keys("?replace=false", "a\n").json(200)["added"], 1);
    assert_eq!(client.which_listed(&["stay", "a"]), [true, true]);
}

#[test]
fn an_unknown_path_and_a_wrong_method_are_told_so() {
    let (_folder, _server, client) = start(&[]);
    for path in ["/nothing", "/v1", "/v1/", "/v2/check/a", "//", "/v1/replacement/a"] {
        client.get(path).error(404);
    }
    for (method, path, allowed) in [
        ("POST", "/", "GET,HEAD"),
        ("PUT", "/v1/check/a", "GET,HEAD"),
        ("GET", "/v1/check", "POST"),
        ("DELETE", "/v1/check", "POST"),
        ("GET", "/v1/keys/a", "PUT,DELETE"),
        ("POST", "/v1/keys/a", "PUT,DELETE"),
        ("GET", "/v1/keys", "POST"),
        ("PUT", "/v1/keys", "POST"),
        ("POST", "/v1/replacement", "DELETE"),
        ("DELETE", "/v1/stats", "GET,HEAD"),
        ("POST", "/metrics", "GET,HEAD"),
        ("POST", "/healthz", "GET,HEAD"),
        ("PUT", "/readyz", "GET,HEAD"),
    ] {
        let answer = client.send(method, path, &[], "");
        answer.error(405);
        assert_eq!(answer.header("allow"), allowed, "{method} {path}");
    }
}
