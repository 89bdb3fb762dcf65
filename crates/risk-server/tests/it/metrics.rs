//! What Prometheus reads.

use crate::common::{Folder, Server, made, start, wait_until};
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
        ("counter", "lookups filter_hits confirmed_hits store_reads_avoided filter_relocations filter_faults inserts"),
        ("counter", "removals refusals rebuilds rebuild_failures store_reopenings replacements snapshot_failures"),
        ("counter", "write_failures requests"),
        ("gauge", "ready uptime_seconds keys filter_keys filter_capacity filter_memory_bytes filter_longest_path"),
        ("gauge", "load_factor expected_false_positive_rate overflow_keys snapshot_age_seconds store_bytes"),
        ("gauge", "snapshot_duration_seconds snapshot_copy_seconds snapshot_bytes connections max_connections"),
        ("gauge", "requests_in_progress"),
        ("histogram", "request_duration_seconds"),
        ("info", "build"),
    ] {
        for family in families.split(' ') {
            let line = format!("# TYPE risk_{family} {kind}\n");
            assert!(answer.body.contains(&line), "{line} is not in\n{}", answer.body);
            assert!(answer.body.contains(&format!("# HELP risk_{family} ")), "{family}");
        }
    }

    let (metrics, stats) = (client.metrics(), client.stats());
    for (name, value) in [
        ("risk_keys", 899.0),
        ("risk_filter_keys", 899.0),
        ("risk_filter_capacity", 1000.0),
        ("risk_inserts_total", 900.0),
        ("risk_removals_total", 1.0),
        ("risk_lookups_total", 12.0),
        ("risk_confirmed_hits_total", 10.0),
        ("risk_rebuilds_total", 0.0),
        (r#"risk_refusals_total{reason="full"}"#, 0.0),
        (r#"risk_refusals_total{reason="too_many_copies"}"#, 0.0),
        (r#"risk_requests_total{route="upload",status="2xx"}"#, 1.0),
        (r#"risk_requests_total{route="delete",status="2xx"}"#, 1.0),
        (r#"risk_requests_total{route="check",status="2xx"}"#, 2.0),
        (r#"risk_requests_total{route="check",status="4xx"}"#, 1.0),
        (r#"risk_requests_total{route="check_batch",status="2xx"}"#, 1.0),
        (r#"risk_requests_total{route="other",status="4xx"}"#, 1.0),
        (r#"risk_request_duration_seconds_count{route="check"}"#, 3.0),
        (r#"risk_request_duration_seconds_bucket{le="+Inf",route="check"}"#, 3.0),
    ] {
        assert_eq!(metrics.get(name), Some(&value), "{name} in\n{}", answer.body);
    }
    assert_eq!(metrics["risk_store_bytes"], folder.store().metadata().unwrap().len() as f64);
    assert_eq!((metrics["risk_write_failures_total"], metrics["risk_connections"]), (0.0, 1.0));
    let build = format!("risk_build_info{{version=\"{}\",", env!("CARGO_PKG_VERSION"));
    assert!(answer.body.contains(&build), "{}", answer.body);
    let relocations = stats["filter"]["relocations"].as_f64();
    assert_eq!(metrics.get("risk_filter_relocations_total").copied(), relocations);
    let avoided = metrics["risk_lookups_total"] - metrics["risk_filter_hits_total"];
    assert_eq!(metrics["risk_store_reads_avoided_total"], avoided);
    for (name, value) in [
        ("risk_load_factor", &stats["filter"]["load_factor"]),
        ("risk_expected_false_positive_rate", &stats["filter"]["expected_false_positive_rate"]),
        ("risk_filter_memory_bytes", &stats["filter"]["memory_bytes"]),
        ("risk_snapshot_bytes", &stats["snapshot"]["bytes"]),
    ] {
        assert_eq!(Some(metrics[name]), value.as_f64(), "{name}");
        assert!(metrics[name] > 0.0, "{name}");
    }
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
    let folder = Folder::new();
    let metrics = Server::start(&folder).client().metrics();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    for (name, range) in [
        ("cpu_seconds_total", 0.0..3600.0),
        ("start_time_seconds", now - 3600.0..now + 60.0),
        ("resident_memory_bytes", 1e6..1e10),
        ("virtual_memory_bytes", 1e6..1e15),
        ("threads", 2.0..1000.0),
        ("open_fds", 5.0..1000.0),
        ("max_fds", 20.0..1e10),
    ] {
        let value = metrics[&format!("process_{name}")];
        assert!(range.contains(&value), "{name}: {value}");
    }
}
