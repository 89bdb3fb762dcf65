use super::*;
use serde_json::json;

#[tokio::test]
async fn a_key_put_twice_is_added_once_and_taken_off_once() {
    let server = start().await;
    let path = "/v1/keys/a%2Fb";
    for (method, status, answer) in [
        ("PUT", 201, json!({"key": "a/b", "added": true})),
        ("PUT", 200, json!({"key": "a/b", "added": false})),
        ("DELETE", 200, json!({"key": "a/b", "removed": true})),
        ("DELETE", 200, json!({"key": "a/b", "removed": false})),
    ] {
        let got = server.ask(method, path, Body::empty()).await;
        assert_eq!((got.status, got.json()), (status, answer));
        assert_eq!(server.get("/v1/check/a%2Fb").await.json()["listed"], method == "PUT");
    }
}

#[tokio::test]
async fn a_bad_key_changes_nothing() {
    let server = start().await;
    for method in ["PUT", "DELETE"] {
        for (path, expected) in [("", "empty"), ("a%0Ab", "U+000A"), ("%f0%9f", "not UTF-8"), ("a?", "%3F")] {
            let error = server.ask(method, &format!("/v1/keys/{path}"), Body::empty()).await.error(400);
            assert!(error.contains(expected), "{method} {path}: {error}");
        }
    }
    assert_eq!(server.get("/v1/stats").await.json()["keys"], 0);
}
