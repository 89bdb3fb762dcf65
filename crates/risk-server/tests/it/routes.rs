//! What is at which path.

use crate::common::{made, start};
use serde_json::json;

#[test]
fn the_state_is_told_with_every_field() {
    let (_folder, _server, client) = start(&["--capacity", "5000", "--false-positive-rate", "0.01"]);

    let new = client.stats();
    assert_eq!((&new["keys"], &new["lookups"], &new["ready"]), (&json!(0), &json!(0), &json!(true)));
    assert!(new["observed_false_positive_rate"].is_null(), "no key was asked for");
    assert!(new["snapshot"].is_null(), "nothing was saved");
    assert_eq!(new["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(new["filter"]["capacity"], 5000);
    assert_eq!(new["filter"]["load_factor"], 0.0);

    client.add_all(&made("key", 1000));
    client.remove("key-0");
    client.listed("key-0");
    client.listed("key-1");
    let stats = client.stats();
    for (name, value) in
        [("keys", 999), ("inserts", 1000), ("removals", 1), ("lookups", 2), ("confirmed_hits", 1), ("overflow_keys", 0)]
    {
        assert_eq!(stats[name], value, "{name} in {stats}");
    }
    let whole = ["refusals", "rebuilds", "replacements", "snapshot_failures"];
    for name in whole.into_iter().chain(["rebuild_failures", "filter_faults", "store_reopenings", "write_failures"]) {
        assert_eq!(stats[name], 0, "{name} in {stats}");
    }
    assert_eq!(stats["changes_since_snapshot"], 1001);
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
