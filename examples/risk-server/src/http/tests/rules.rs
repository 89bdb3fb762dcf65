use super::*;
use crate::http::route::Route;
use axum::http::{Uri, Version};

#[tokio::test]
async fn until_the_list_is_loaded_only_what_needs_none_is_answered() {
    let (app, service) = Setup::default().loading();
    app.loading(12_345);
    for (method, path) in [
        ("GET", "/v1/check/a"),
        ("POST", "/v1/check"),
        ("PUT", "/v1/keys/a"),
        ("DELETE", "/v1/keys/a"),
        ("POST", "/v1/keys"),
        ("GET", "/v1/stats"),
    ] {
        let answer = ask(&service, request(method, path, "[]")).await;
        assert_eq!(answer.error(503), "the list is being loaded", "{method} {path}");
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    for path in ["/", "/healthz", "/metrics"] {
        assert_eq!(ask(&service, request("GET", path, "")).await.status, 200, "{path}");
    }
    let ready = ask(&service, request("GET", "/readyz", "")).await;
    assert_eq!((ready.status, ready.json()), (503, serde_json::json!({"ready": false, "loaded_keys": 12345})));
}

#[tokio::test]
async fn it_is_ready_from_the_list_to_the_shutdown() {
    let server = start().await;
    assert_eq!((server.get("/readyz").await.status, server.get("/healthz").await.text.as_str()), (200, "ok"));
    server.app.begin_shutdown();
    assert_eq!((server.get("/readyz").await.status, server.get("/healthz").await.status), (503, 200));
    // Requests that came before are still answered.
    assert_eq!(server.get("/v1/check/a").await.status, 200);
}

#[tokio::test]
async fn it_is_not_ready_once_nothing_writes() {
    let server = start().await;
    server.list.clone().close().await.unwrap();
    assert_eq!(server.get("/readyz").await.json()["ready"], false);
    assert_eq!((server.get("/readyz").await.status, server.get("/healthz").await.status), (503, 200));
    assert!(server.get("/metrics").await.text.contains("\nrisk_ready 0\n"));
}

#[tokio::test]
async fn who_watches_is_answered_elsewhere_and_nobody_else() {
    let server = Setup::token("secret").start().await;
    let admin = Service::admin(server.app.clone(), Hosts::Any);
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(ask(&admin, request("GET", path, "")).await.status, 200, "{path}");
        ask(&admin, request("POST", path, "")).await.error(405);
    }
    for (method, path) in [("GET", "/"), ("GET", "/v1/stats"), ("GET", "/v1/check/a"), ("PUT", "/v1/keys/a")] {
        ask(&admin, request(method, path, "")).await.error(404);
    }
}

#[tokio::test]
async fn every_path_and_method_has_its_answer_and_its_name_in_metrics() {
    let server = start().await;
    let paths = [
        "/",
        "/healthz",
        "/readyz",
        "/metrics",
        "/v1/stats",
        "/v1/check",
        "/v1/check/a",
        "/v1/keys",
        "/v1/keys/a",
        "/v1/replacement",
    ];
    let mut named = 0;
    for path in paths {
        for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
            let answer = server.ask(method, path, "[\"a\"]").await;
            let known = Route::of(&method.parse().unwrap(), path) != Route::Other;
            if known {
                assert!(answer.status < 300, "{method} {path}: {}", answer.text);
                named += usize::from(method != "HEAD");
            } else {
                assert_eq!(answer.status, 405, "{method} {path}");
                assert!(method == "HEAD" || answer.error(405).contains("no such method"), "{method} {path}");
                assert!(answer.header("allow").is_some(), "{method} {path}");
            }
        }
    }
    assert_eq!(named, Route::ALL.len() - 1);
    for path in ["/v1", "/v2/check/a", "/v1/checks", "/index.html", "//", "/v1/check/../keys/a"] {
        let answer = server.get(path).await;
        assert!(answer.status == 404 || path.contains("..") && answer.status == 200, "{path}: {}", answer.text);
    }
    assert_eq!(server.get("/nowhere").await.error(404), "there is nothing at this path");
}

#[tokio::test]
async fn a_writing_request_needs_the_token() {
    let server = Setup::token("secret").start().await;
    let writing = [
        ("PUT", "/v1/keys/a"),
        ("DELETE", "/v1/keys/a"),
        ("POST", "/v1/keys"),
        ("POST", "/v1/keys?replace=true"),
        ("DELETE", "/v1/replacement"),
    ];
    let with = async |(method, path): (&str, &str), authorization: Option<&'static str>| {
        let mut request = request(method, path, "a\n");
        if let Some(authorization) = authorization {
            request.headers_mut().insert("authorization", authorization.parse().unwrap());
        }
        ask(&server.service, request).await
    };
    for route in writing {
        for shown in [None, Some(""), Some("secret"), Some("Basic secret"), Some("Bearer"), Some("Bearersecret")] {
            let answer = with(route, shown).await;
            assert!(answer.error(401).contains("Authorization: Bearer"), "{shown:?}");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        }
        for shown in ["Bearer ", "Bearer secre", "Bearer secrets", "Bearer  secret", "Bearer SECRET"] {
            let answer = with(route, Some(shown)).await;
            assert!(answer.error(401).contains("not the right one"), "{shown:?}");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer error=\"invalid_token\""));
        }
        assert_eq!(server.get("/v1/stats").await.json()["keys"], 0);
    }
    for (route, shown) in writing.into_iter().zip(["Bearer secret", "bearer secret", "BEARER secret", "Bearer secret"])
    {
        assert!(with(route, Some(shown)).await.status < 300, "{route:?}");
    }
    // Reading needs none.
    assert_eq!(server.listed(&["a"]).await, [true]);
    assert_eq!(server.get("/v1/check/a").await.status, 200);
}

#[tokio::test]
async fn only_names_of_this_machine_are_answered_to_if_asked() {
    let mut setup = Setup::default();
    setup.access.hosts = Hosts::Only([].into());
    let (_, service) = setup.loading();
    let get = async |uri: &'static str, version, hosts: &[&'static str]| {
        let mut request = Request::new(Body::empty());
        (*request.uri_mut(), *request.version_mut()) = (Uri::from_static(uri), version);
        for host in hosts {
            request.headers_mut().append("host", host.parse().unwrap());
        }
        ask(&service, request).await.status
    };
    let (old, new) = (Version::HTTP_10, Version::HTTP_11);
    assert_eq!(get("/healthz", new, &["127.0.0.1:8080"]).await, 200);
    assert_eq!(get("/healthz", new, &["localhost"]).await, 200);
    assert_eq!(get("/healthz", new, &["example.com"]).await, 421);
    assert_eq!(get("/healthz", new, &[]).await, 400);
    assert_eq!(get("/healthz", old, &[]).await, 200);
    assert_eq!(get("/healthz", old, &["example.com"]).await, 421);
    assert_eq!(get("/healthz", new, &["localhost", "example.com"]).await, 400);
    assert_eq!(get("http://example.com/healthz", new, &["localhost"]).await, 421);
    assert_eq!(get("http://localhost/healthz", new, &["localhost"]).await, 200);

    let (_, anywhere) = Setup::default().loading();
    let mut request = request("GET", "/healthz", "");
    request.headers_mut().insert("host", "example.com".parse().unwrap());
    assert_eq!(ask(&anywhere, request).await.status, 200);
}

#[tokio::test]
async fn a_page_of_another_origin_changes_nothing() {
    let server = start().await;
    let from = async |(method, path): (&str, &str), header: &'static str, value: &'static str| {
        let mut request = request(method, path, "[]");
        request.headers_mut().insert(header, value.parse().unwrap());
        ask(&server.service, request).await
    };
    let strangers = [
        ("origin", "http://example.com"),
        ("origin", "http://localhost:81"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ];
    let own = [("origin", "http://localhost"), ("sec-fetch-site", "same-origin"), ("sec-fetch-site", "none")];
    for route in [("PUT", "/v1/keys/a"), ("DELETE", "/v1/keys/a"), ("POST", "/v1/keys"), ("POST", "/v1/check")] {
        for (header, value) in strangers {
            assert!(from(route, header, value).await.error(403).contains("another origin"), "{value}");
            assert_eq!(server.get("/v1/stats").await.json()["keys"], 0);
        }
    }
    for (header, value) in own {
        assert!(from(("PUT", "/v1/keys/a"), header, value).await.status < 300);
        assert!(from(("DELETE", "/v1/keys/a"), header, value).await.status < 300);
    }
    for (header, value) in strangers {
        assert_eq!(from(("GET", "/v1/check/a"), header, value).await.status, 200);
    }
}

#[tokio::test]
async fn beyond_the_limit_a_request_is_told_to_come_again() {
    let mut setup = Setup::default();
    setup.limits.requests = 1;
    let server = setup.start().await;
    let (sender, body) = channel();
    let first = server.ask("POST", "/v1/keys", body);
    let others = async {
        sender.send("a\n").await.unwrap();
        sender.send("b\n").await.unwrap(); // there is room when the first request has read something
        let refused = server.get("/v1/check/a").await;
        assert_eq!(refused.error(503), "1 requests are in progress already");
        assert_eq!(refused.header("retry-after"), Some("1"));
        for path in ["/healthz", "/readyz", "/metrics"] {
            assert_eq!(server.get(path).await.status, 200, "{path}");
        }
        drop(sender);
    };
    let (first, ()) = tokio::join!(first, others);
    assert_eq!(first.status, 200);
    assert_eq!(server.get("/v1/check/a").await.status, 200);
}

#[tokio::test]
async fn a_request_whose_client_went_away_gives_its_place_back() {
    let mut setup = Setup::default();
    setup.limits.requests = 1;
    let server = setup.start().await;
    let given_up = tokio::time::timeout(Duration::ZERO, server.ask("POST", "/v1/keys", stalled_after("a\n"))).await;
    assert!(given_up.is_err());
    assert_eq!(server.get("/v1/check/a").await.status, 200);
}

#[tokio::test]
async fn a_panic_ends_only_its_own_request() {
    struct Panics;
    impl Front for Panics {
        fn may_be_listed(&self, key: &str) -> bool {
            assert_ne!(key, "panic", "as asked for");
            false
        }
        fn may_be_listed_batch(&self, _: &[&str], _: &mut [bool]) {}
    }
    let mut setup = Setup::default();
    setup.limits.requests = 1;
    let server = setup.start_with(|_| Arc::new(Panics)).await;
    assert!(server.get("/v1/check/panic").await.error(500).contains("panic"));
    assert_eq!(server.get("/v1/check/a").await.status, 200);
}
