//! What is at which path.

use crate::common::{made, start};
use serde_json::json;

#[test]
fn the_state_is_told_with_every_field() {
    let (_folder, _server, client) = start(&["--capacity", "5000", "--false-positive-rate", "0.01"]);

    let new = client.stats();
    assert!(new["observed_false_positive_rate"].is_null() && new["snapshot"].is_null(), "{new}");
    assert_eq!((&new["version"], &new["ready"]), (&json!(env!("CARGO_PKG_VERSION")), &json!(true)));
    assert_eq!((&new["filter"]["capacity"], &new["filter"]["load_factor"]), (&json!(5000), &json!(0.0)));

    client.add_all(&made("key", 1000));
    client.remove("key-0");
    client.listed("key-0");
    client.listed("key-1");
    let stats = client.stats();
    let known = [("keys", 999), ("inserts", 1000), ("removals", 1), ("lookups", 2), ("confirmed_hits", 1)];
    let zero = "overflow_keys refusals rebuilds replacements snapshot_failures rebuild_failures filter_faults";
    let zero = zero.split(' ').chain(["store_reopenings", "write_failures"]).map(|name| (name, 0));
    for (name, value) in known.into_iter().chain(zero).chain([("changes_since_snapshot", 1001)]) {
        assert_eq!(stats[name], value, "{name} in {stats}");
    }
    assert!(stats["uptime_seconds"].as_f64().unwrap() > new["uptime_seconds"].as_f64().unwrap());
    let filter = &stats["filter"];
    assert_eq!(filter["len"], 999);
    let load = filter["load_factor"].as_f64().unwrap();
    assert!((0.15..0.2).contains(&load), "999 of some 5,300 slots are taken: {load}");
    assert!(filter["memory_bytes"].as_u64().unwrap() > 5000);
    assert!((9..=12).contains(&filter["fingerprint_bits"].as_u64().unwrap()), "for a rate of 0.01: {filter}");
}

#[test]
fn an_unknown_path_and_a_wrong_method_are_told_so() {
    let (_folder, _server, client) = start(&[]);
    for path in ["/nothing", "/v1", "/v1/", "/v1/check/../../etc/passwd/..", "/v2/check/a", "/v1/keys/a/../..", "//"] {
        let answer = client.get(path);
        if answer.status != 404 {
            // A path with steps may also be taken as a key: it is answered, and never by a file.
            assert!([200, 405].contains(&answer.status), "{path}: {}", answer.status);
            answer.json(answer.status);
        } else {
            answer.error(404);
        }
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
