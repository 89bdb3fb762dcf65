use super::*;
use axum::body::HttpBody;
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A front that takes every key for possible, or none.
struct Always(bool);

impl Front for Always {
    fn may_be_listed(&self, _: &str) -> bool {
        self.0
    }

    fn may_be_listed_batch(&self, _: &[&str], answers: &mut [bool]) {
        answers.fill(self.0);
    }
}

#[tokio::test]
async fn a_key_is_listed_or_not() {
    let server = start().await;
    server.put(&["example.com", "a/ü?"]).await;
    for (path, key, listed) in
        [("example.com", "example.com", true), ("example.org", "example.org", false), ("a%2f%C3%bc%3F", "a/ü?", true)]
    {
        let answer = server.get(&format!("/v1/check/{path}")).await;
        assert_eq!((answer.status, answer.json()), (200, serde_json::json!({"key": key, "listed": listed})));
    }
    let head = server.ask("HEAD", "/v1/check/example.com", Body::empty()).await;
    assert_eq!((head.status, head.text.as_str()), (200, ""));
}

#[tokio::test]
async fn a_bad_key_is_refused_with_its_reason() {
    let server = start().await;
    let long = "x".repeat(1025);
    for (path, expected) in [
        ("", "empty"),
        ("%zz", "write %25"),
        ("%ff", "not UTF-8"),
        ("%00", "U+0000"),
        ("a?b=c", "%3F"),
        (&long, "1025"),
    ] {
        let error = server.get(&format!("/v1/check/{path}")).await.error(400);
        assert!(error.contains(expected), "{path}: {error}");
    }
}

#[tokio::test]
async fn a_batch_is_answered_in_its_order() {
    let server = start().await;
    server.put(&["a", "b"]).await;
    assert_eq!(server.listed(&["x", "a", "y", "b", "a"]).await, [false, true, false, true, true]);
    assert_eq!(server.listed(&[]).await, [false; 0]);
    let escaped = server.ask("POST", "/v1/check", r#"["\u0061", "\u0062c"]"#).await;
    assert_eq!(escaped.text, r#"{"listed":[true,false]}"#);
}

#[tokio::test]
async fn a_long_batch_is_answered_as_a_short_one() {
    let server = start().await;
    let keys: Vec<String> = (0..1000).map(|number| format!("{number:0>100}")).collect();
    let even: Vec<&str> = keys.iter().step_by(2).map(String::as_str).collect();
    server.put(&even).await;
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let expected: Vec<bool> = (0..1000).map(|number| number % 2 == 0).collect();
    assert!(server.listed(&keys).await == expected);
}

#[tokio::test]
async fn a_bad_batch_is_refused_with_its_reason() {
    let server = start().await;
    let many = serde_json::to_vec(&vec!["x"; 1001]).unwrap();
    // Both ways of reading: this one is long enough for a thread of its own.
    let long = format!("[\"{}\", 7]", "x".repeat(1 << 17));
    for (body, expected) in [
        (&b""[..], "not a JSON array"),
        (b"[\"a\"", "not a JSON array"),
        (b"{}", "expected an array of keys"),
        (b"[\"a\", 5]", "expected a string at index 1"),
        (b"[\"a\", \"\"]", "index 1: the key is empty"),
        (b"[\"\xff\"]", "not a JSON array"),
        (&many, "more than 1000 keys"),
        (long.as_bytes(), "index 0: the key has 131072 bytes"),
    ] {
        let error = server.ask("POST", "/v1/check", body.to_vec()).await.error(400);
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_whether_it_says_so_or_not() {
    let mut setup = Setup::default();
    setup.limits.body_bytes = 10;
    let server = setup.start().await;
    assert_eq!(server.ask("POST", "/v1/check", r#"["abcdef"]"#).await.status, 200);
    for body in [Body::from(r#"["abcdefg"]"#), in_pieces([&b"[\"abc"[..], b"defg\"]"])] {
        let error = server.ask("POST", "/v1/check", body).await.error(413);
        assert!(error.contains("more than 10 bytes"), "{error}");
    }
}

/// A body of which only the length comes, and which is longer than any memory.
struct Endless;

impl HttpBody for Endless {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Pending
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(u64::MAX)
    }
}

#[tokio::test]
async fn a_body_that_says_that_it_is_too_long_is_not_waited_for() {
    let server = start().await;
    server.ask("POST", "/v1/check", Body::new(Endless)).await.error(413);
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let mut setup = Setup::default();
    setup.limits.request = Duration::from_millis(20);
    let server = setup.start().await;
    let error = server.ask("POST", "/v1/check", stalled_after("[")).await.error(408);
    assert!(error.contains("took longer than 0.02 s"), "{error}");
    let error = server.ask("POST", "/v1/check", broken_after("[")).await.error(400);
    assert!(error.contains("broke off"), "{error}");
}

#[tokio::test]
async fn what_the_front_takes_for_possible_is_confirmed_by_the_store() {
    let server = Setup::default().start_with(|_| Arc::new(Always(true))).await;
    server.put(&["a"]).await;
    assert_eq!(server.get("/v1/check/a").await.json()["listed"], true);
    assert_eq!(server.get("/v1/check/b").await.json()["listed"], false);
    assert_eq!(server.listed(&["b", "a", "c"]).await, [false, true, false]);
    let stats = server.get("/v1/stats").await.json();
    assert_eq!((&stats["lookups"], &stats["filter_hits"], &stats["confirmed_hits"]), (&5.into(), &5.into(), &2.into()));
    assert_eq!((&stats["store_reads_avoided"], &stats["observed_false_positive_rate"]), (&0.into(), &1.0.into()));
}

#[tokio::test]
async fn what_the_front_rules_out_is_not_looked_up_in_the_store() {
    let server = Setup::default().start_with(|_| Arc::new(Always(false))).await;
    server.put(&["a"]).await;
    assert_eq!(server.get("/v1/check/a").await.json()["listed"], false);
    assert_eq!(server.listed(&["b", "a"]).await, [false, false]);
    let stats = server.get("/v1/stats").await.json();
    assert_eq!((&stats["lookups"], &stats["filter_hits"], &stats["confirmed_hits"]), (&3.into(), &0.into(), &0.into()));
    assert_eq!((&stats["store_reads_avoided"], &stats["observed_false_positive_rate"]), (&3.into(), &0.0.into()));
}
