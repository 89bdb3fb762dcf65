//! What Prometheus reads.

use crate::common::{made, start, wait_until};
use serde_json::json;
use std::time::{SystemTime, UNIX_EPOCH};

#[test]
fn every_family_is_there_with_its_type_and_moves_with_what_happens() {
    let (folder, _server, client) = start(&["--capacity", "1000", "--snapshot-minutes", "0.002"]);
    let before = client.metrics();
    assert_eq!((before["risk_keys"], before["risk_lookups_total"], before["risk_ready"]), (0.0, 0.0, 1.0));

    client.add_all(&made("key", 900));
    client.remove("key-0");
    client.listed("key-0");
    client.listed("key-1");
    client.which_listed(&made("key", 10));
    client.get("/v1/check/").error(400);
    client.get("/nothing").error(404);
    wait_until("a snapshot", || client.stats()["snapshot"].is_object());

    let answer = client.get("/metrics");
    assert!(answer.header("content-type").starts_with("application/openmetrics-text; version=1.0.0"));
    assert!(answer.body.ends_with("# EOF\n"));
    for (kind, families) in [
        (
            "counter",
            "lookups filter_hits confirmed_hits store_reads_avoided filter_relocations filter_faults filter_splits",
        ),
        (
            "counter",
            "inserts removals filter_refused_full filter_refused_copies store_reopenings replacements requests",
        ),
        ("counter", "snapshot_failures write_failures"),
        (
            "gauge",
            "ready uptime_seconds keys filter_keys filter_slots filter_max_capacity filter_memory_bytes load_factor",
        ),
        ("gauge", "filter_longest_path expected_false_positive_rate snapshot_age_seconds store_bytes snapshot_bytes"),
        ("gauge", "snapshot_duration_seconds snapshot_copy_seconds connections max_connections requests_in_progress"),
        ("histogram", "request_duration_seconds"),
        ("info", "build"),
    ] {
        for family in families.split(' ') {
            let line = format!("# TYPE risk_{family} {kind}\n");
            assert!(answer.body.contains(&line), "{line} is not in\n{}", answer.body);
            assert!(answer.body.contains(&format!("# HELP risk_{family} ")), "{family}");
        }
    }

    let metrics = client.metrics();
    for (name, value) in [
        ("risk_keys", 899.0),
        ("risk_filter_max_capacity", 1e8),
        ("risk_inserts_total", 900.0),
        ("risk_lookups_total", 12.0),
        ("risk_confirmed_hits_total", 10.0),
        ("risk_connections", 1.0),
        (r#"risk_requests_total{route="upload",status="2xx"}"#, 1.0),
        (r#"risk_requests_total{route="check",status="2xx"}"#, 2.0),
        (r#"risk_requests_total{route="check",status="4xx"}"#, 1.0),
        (r#"risk_requests_total{route="other",status="4xx"}"#, 1.0),
        (r#"risk_request_duration_seconds_count{route="check"}"#, 3.0),
        (r#"risk_request_duration_seconds_bucket{le="+Inf",route="check"}"#, 3.0),
    ] {
        assert_eq!(metrics.get(name), Some(&value), "{name} in\n{}", answer.body);
    }
    assert_eq!(metrics["risk_store_bytes"], folder.store().metadata().unwrap().len() as f64);
    let build = format!("risk_build_info{{version=\"{}\",", env!("CARGO_PKG_VERSION"));
    assert!(answer.body.contains(&build), "{}", answer.body);
    for name in ["load_factor", "expected_false_positive_rate", "filter_memory_bytes", "snapshot_bytes"] {
        assert!(metrics[&format!("risk_{name}")] > 0.0, "{name}");
    }
}

/// `/metrics` takes its numbers from it.
#[test]
fn the_state_is_told_with_every_field() {
    let (_folder, _server, client) =
        start(&["--max-capacity", "500000", "--capacity", "5000", "--false-positive-rate", "0.01"]);
    let new = client.stats();
    assert!(new["observed_false_positive_rate"].is_null() && new["snapshot"].is_null(), "{new}");
    assert_eq!((&new["version"], &new["ready"]), (&json!(env!("CARGO_PKG_VERSION")), &json!(true)));

    client.add_all(&made("key", 1000));
    client.remove("key-0");
    client.listed("key-0");
    client.listed("key-1");
    let stats = client.stats();
    let known = [("keys", 999), ("inserts", 1000), ("removals", 1), ("lookups", 2), ("confirmed_hits", 1)];
    let zero = ["replacements", "snapshot_failures", "filter_faults", "store_reopenings", "write_failures"];
    for (name, value) in known.into_iter().chain(zero.map(|name| (name, 0))).chain([("changes_since_snapshot", 1001)]) {
        assert_eq!(stats[name], value, "{name} in {stats}");
    }
    assert!(stats["uptime_seconds"].as_f64().unwrap() > new["uptime_seconds"].as_f64().unwrap());
    let filter = &stats["filter"];
    assert_eq!((&filter["len"], &filter["max_capacity"]), (&json!(999), &json!(500_000)));
    let [load, slots] = ["load_factor", "slots"].map(|name| filter[name].as_f64().unwrap());
    assert!((load * slots - 999.0).abs() < 1e-6 && slots > 5000.0, "{load} of {slots}");
    assert!(filter["memory_bytes"].as_u64().unwrap() > 5000);
    assert!((9..=14).contains(&filter["fingerprint_bits"].as_u64().unwrap()), "for a rate of 0.01: {filter}");
}

#[test]
fn whoever_asks_for_text_is_answered_in_the_older_format() {
    let (_folder, _server, client) = start(&[]);
    client.add("a");
    let get = |accept: &str| client.send("GET", "/metrics", &[("accept", accept)], ());
    // What Prometheus itself sends.
    let both = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
    for accept in [both, "*/*"] {
        assert!(get(accept).header("content-type").starts_with("application/openmetrics-text"), "{accept}");
    }
    let text = get("text/plain;version=0.0.4, text/plain;q=0.5");
    assert_eq!(text.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    for part in [
        "# HELP risk_inserts_total Puts that changed the list.\n# TYPE risk_inserts_total counter\nrisk_inserts_total 1\n",
        "# TYPE risk_keys gauge\nrisk_keys 1\n",
        "# TYPE risk_build_info gauge\nrisk_build_info{",
        "# TYPE risk_request_duration_seconds histogram\nrisk_request_duration_seconds_sum{route=\"",
    ] {
        assert!(text.body.contains(part), "{part} is not in\n{}", text.body);
    }
    // Each family once, before its samples, and nothing of the newer format.
    assert!(!text.body.contains("# EOF") && !text.body.contains(" info\n"));
    let mut family = "";
    for line in text.body.lines() {
        match line.strip_prefix("# TYPE ") {
            Some(rest) => family = rest.split(' ').next().unwrap(),
            None => assert!(line.starts_with("# HELP ") || line.starts_with(family), "{line} in the family {family}"),
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_process_is_told_of() {
    let (_folder, _server, client) = start(&[]);
    let metrics = client.metrics();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    for (name, range) in [
        ("cpu_seconds_total", 0.0..3600.0),
        ("start_time_seconds", now - 3600.0..now + 60.0),
        ("resident_memory_bytes", 1e6..1e10),
        ("open_fds", 5.0..1000.0),
        ("max_fds", 20.0..1e10),
    ] {
        let value = metrics[&format!("process_{name}")];
        assert!(range.contains(&value), "{name}: {value}");
    }
}
