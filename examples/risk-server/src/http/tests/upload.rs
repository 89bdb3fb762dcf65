use super::*;
use crate::http::upload::GROUP;
use flate2::Compression;
use flate2::read::GzEncoder;
use serde_json::json;
use std::io::Read;

#[tokio::test]
async fn each_line_is_a_key() {
    let server = start().await;
    server.put(&["a"]).await;
    let answer = server.ask("POST", "/v1/keys", "a\nb\r\n\n  \nb\nlast one").await;
    assert_eq!((answer.status, answer.json()), (200, json!({"lines": 4, "added": 2, "already": 2})));
    assert_eq!(server.listed(&["a", "b", "last one", "last"]).await, [true, true, true, false]);
    assert_eq!(server.ask("POST", "/v1/keys", "").await.json(), json!({"lines": 0, "added": 0, "already": 0}));
}

#[tokio::test]
async fn keys_and_characters_may_be_cut_by_pieces() {
    let body = "first\r\nzwei ü😀\nlast";
    for size in 1..=body.len() {
        let server = start().await;
        let answer = server.ask("POST", "/v1/keys", in_pieces(body.as_bytes().chunks(size))).await;
        assert_eq!(answer.json(), json!({"lines": 3, "added": 3, "already": 0}));
        assert_eq!(server.listed(&["first", "zwei ü😀", "last"]).await, [true; 3]);
    }
}

#[tokio::test]
async fn more_keys_than_one_group_are_all_added() {
    let server = start().await;
    let body: String = (0..9000).map(|number| format!("{number}\n")).collect();
    let answer = server.ask("POST", "/v1/keys", in_pieces(body.as_bytes().chunks(1000))).await;
    assert_eq!(answer.json(), json!({"lines": 9000, "added": 9000, "already": 0}));
    assert_eq!(server.get("/v1/stats").await.json()["keys"], 9000);
}

#[tokio::test]
async fn a_full_group_is_on_the_list_while_the_upload_goes_on() {
    let server = start().await;
    let (sender, body) = channel();
    let group: &'static str = (0..GROUP).map(|number| format!("{number}\n")).collect::<String>().leak();
    let sends = async {
        sender.send(group).await.unwrap();
        sender.send("a\n").await.unwrap();
        sender.send("b\n").await.unwrap(); // there is room when the piece after the group was read
        assert_eq!(server.get("/v1/stats").await.json()["keys"], GROUP);
        drop(sender);
    };
    let (answer, ()) = tokio::join!(server.ask("POST", "/v1/keys", body), sends);
    assert_eq!(answer.json()["added"], GROUP + 2);
}

#[tokio::test]
async fn what_came_before_a_bad_line_is_kept_and_told() {
    let server = start().await;
    let long = "x".repeat(1 << 20);
    for (line, expected) in
        [("a\tb", "line 4: the key has the control character U+0009"), (&long, "line 4: the line is")]
    {
        let answer = server.ask("POST", "/v1/keys", format!("a\n\nb\n{line}\nc\n")).await;
        let error = answer.error(400);
        assert!(error.starts_with(expected), "{error}");
        assert_eq!(answer.json()["lines"], 2);
        assert_eq!(server.listed(&["a", "b", "c"]).await, [true, true, false]);
    }
}

#[tokio::test]
async fn an_upload_is_answered_when_its_client_has_sent_everything() {
    let server = start().await;
    for (path, status) in [("/v1/keys", 400), ("/v1/keys?replace=true", 400), ("/v1/keys?replace=maybe", 400)] {
        let (sender, body) = channel();
        let sends = async {
            sender.send("b\0d\n").await.unwrap();
            for _ in 0..10 {
                sender.send("a\n").await.unwrap(); // fails if nobody reads any more
            }
            drop(sender);
        };
        let (answer, ()) = tokio::join!(server.ask("POST", path, body), sends);
        answer.error(status);
    }
    assert_eq!(server.listed(&["a"]).await, [false]);
}

#[tokio::test]
async fn a_refused_upload_that_does_not_end_is_answered_all_the_same() {
    let mut setup = Setup::default();
    setup.limits.request = Duration::from_millis(20);
    let server = setup.start().await;
    server.ask("POST", "/v1/keys", stalled_after("b\0d\n")).await.error(400);
}

#[tokio::test]
async fn the_end_of_a_body_that_broke_off_is_no_key() {
    let server = start().await;
    let answer = server.ask("POST", "/v1/keys", broken_after("a\nexample.co")).await;
    let error = answer.error(400);
    assert!(error.contains("broke off"), "{error}");
    assert_eq!(answer.json()["added"], 1);
    assert_eq!(server.listed(&["a", "example.co"]).await, [true, false]);
}

#[tokio::test]
async fn a_body_that_keeps_silent_is_not_waited_for() {
    let mut setup = Setup::default();
    setup.limits.idle = Duration::from_millis(20);
    let server = setup.start().await;
    for (path, says) in [
        ("/v1/keys", "nothing more of the body came for 0.02 s"),
        ("/v1/keys?replace=true", "fewer than 1024 bytes of the body came in 0.02 s"),
    ] {
        let error = server.ask("POST", path, stalled_after("a\n")).await.error(408);
        assert!(error.contains(says), "{error}");
    }
    // What came before the silence was added, but replaced nothing.
    assert_eq!(server.listed(&["a"]).await, [true]);
}

#[tokio::test]
async fn a_replacement_is_the_whole_list() {
    let server = start().await;
    server.put(&["old", "both"]).await;
    let answer = server.ask("POST", "/v1/keys?replace=true", "both\nnew\nnew\n").await;
    assert_eq!((answer.status, &answer.json()["keys"]), (200, &json!(2)));
    assert!(answer.json()["took_ms"].is_u64());
    assert_eq!(server.listed(&["old", "both", "new"]).await, [false, true, true]);
    assert_eq!(server.ask("POST", "/v1/keys?replace=false", "old").await.json()["added"], 1);
    assert_eq!(server.listed(&["old", "both", "new"]).await, [true, true, true]);
}

#[tokio::test]
async fn a_replacement_that_fails_changes_nothing() {
    let server = start().await;
    server.put(&["old"]).await;
    let path = "/v1/keys?replace=true";
    let error = server.ask("POST", path, "new\nb\0d\n").await.error(400);
    assert!(error.starts_with("line 2: "), "{error}");
    let error = server.ask("POST", path, broken_after("new\n")).await.error(400);
    assert!(error.contains("broke off"), "{error}");
    assert_eq!(server.listed(&["old", "new"]).await, [true, false]);
}

#[tokio::test]
async fn one_replacement_is_made_at_a_time() {
    let server = start().await;
    let path = "/v1/keys?replace=true";
    let (sender, body) = channel();
    let first = server.ask("POST", path, body);
    let second = async {
        sender.send("first\n").await.unwrap();
        // There is room for this one when that one was taken: by a replacement that has begun.
        sender.send("zwei\n").await.unwrap();
        let error = server.ask("POST", path, "second\n").await.error(409);
        assert!(error.contains("another replacement is under way"), "{error}");
        drop(sender);
    };
    let (first, ()) = tokio::join!(first, second);
    assert_eq!(first.json()["keys"], 2);
    assert_eq!(server.listed(&["first", "second"]).await, [true, false]);
}

#[tokio::test]
async fn a_replacement_is_cancelled_and_another_one_may_begin_at_once() {
    let server = start().await;
    server.put(&["old"]).await;
    let cancel = async || server.ask("DELETE", "/v1/replacement", "").await.json()["cancelled"] == true;
    assert!(!cancel().await, "there is none");
    let path = "/v1/keys?replace=true";
    let (sender, body) = channel();
    let other = async {
        sender.send("first\n").await.unwrap();
        sender.send("zwei\n").await.unwrap();
        let refused = server.ask("POST", path, "second\n").await;
        assert!(refused.error(409).contains("cancel it with DELETE /v1/replacement"));
        assert_eq!(refused.header("retry-after"), Some("10"));
        assert!(cancel().await && !cancel().await);
        assert_eq!(server.ask("POST", path, "second\n").await.json()["keys"], 1);
        drop(sender);
    };
    let (first, ()) = tokio::join!(server.ask("POST", path, body), other);
    assert!(first.error(409).contains("cancelled"));
    assert_eq!(first.header("retry-after"), None);
    assert_eq!(server.listed(&["old", "first", "second"]).await, [false, false, true]);
    assert!(!cancel().await, "it was made");
}

/// An upload with these headers.
async fn upload(server: &Server, headers: &[(&'static str, &str)], body: impl Into<Body>) -> Answer {
    let mut request = request("POST", "/v1/keys", body);
    for &(name, value) in headers {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    ask(&server.service, request).await
}

#[tokio::test]
async fn only_a_text_is_taken_for_lines() {
    let server = start().await;
    for content_type in
        ["multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "Application/JSON", "text", "\u{e9}"]
    {
        let error = upload(&server, &[("content-type", content_type)], "a\n").await.error(415);
        assert!(error.contains("curl -H 'Content-Type: text/plain' --data-binary @FILE"), "{error}");
    }
    assert_eq!(server.listed(&["a"]).await, [false]);
    for content_type in ["text/plain", "Text/CSV; charset=utf-8", "application/octet-stream"] {
        let answer = upload(&server, &[("content-type", content_type)], "a\n").await;
        assert_eq!(answer.json()["lines"], 1, "{content_type}");
    }
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzEncoder::new(text, Compression::default()).read_to_end(&mut bytes).unwrap();
    bytes
}

#[tokio::test]
async fn an_upload_may_come_in_gzip() {
    let server = start().await;
    let text: String = (0..9000).map(|number| format!("{number}\n")).collect();
    let bytes = gzip(text.as_bytes());
    let encoded = [("content-encoding", "gzip")];
    let answer = upload(&server, &encoded, in_pieces(bytes.chunks(100))).await;
    assert_eq!(answer.json(), json!({"lines": 9000, "added": 9000, "already": 0}));
    assert_eq!(upload(&server, &[("content-encoding", "identity")], text.clone()).await.json()["already"], 9000);

    for broken in [&bytes[..bytes.len() / 2], text.as_bytes()] {
        let error = upload(&server, &encoded, broken.to_vec()).await.error(400);
        assert!(error.contains("broke off, or is not in gzip"), "{error}");
    }
    for other in ["zstd", "br", "deflate", "gzip, gzip"] {
        let error = upload(&server, &[("content-encoding", other)], "a\n").await.error(415);
        assert!(error.contains("with gzip"), "{other}: {error}");
    }
}

#[tokio::test]
async fn what_comes_in_gzip_is_not_decoded_without_end() {
    let server = start().await;
    let limit = Setup::default().limits.decoded_bytes;
    let bomb = gzip(&b"a\n".repeat(limit as usize));
    assert!(bomb.len() < 10_000);
    let error = upload(&server, &[("content-encoding", "gzip")], bomb).await.error(413);
    assert!(error.contains("--max-decoded-bytes"), "{error}");
    let plain = upload(&server, &[], "a\n".repeat(limit as usize)).await;
    assert_eq!(plain.json()["lines"], limit, "what is not decoded may have any length");
}

#[tokio::test]
async fn another_query_is_refused() {
    let server = start().await;
    for query in ["replace", "replace=yes", "replace=TRUE", "replace=true&x=1", "x=1"] {
        let error = server.ask("POST", &format!("/v1/keys?{query}"), "a\n").await.error(400);
        assert!(error.contains("replace=true or replace=false"), "{error}");
    }
    assert_eq!(server.listed(&["a"]).await, [false]);
}
