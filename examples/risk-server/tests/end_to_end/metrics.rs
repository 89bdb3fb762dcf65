//! What Prometheus reads.

use crate::common::folder::Folder;
use crate::common::keys::made;
use crate::common::server::Server;
use crate::common::wait::wait_until;

#[test]
fn every_family_is_there_with_its_type_and_moves_with_what_happens() {
    let folder = Folder::new();
    let server = Server::with(&folder, &["--capacity", "1000", "--snapshot-minutes", "0.002"]);
    let client = server.client();
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
    for (family, kind) in [
        ("ready", "gauge"),
        ("uptime_seconds", "gauge"),
        ("lookups", "counter"),
        ("filter_hits", "counter"),
        ("confirmed_hits", "counter"),
        ("store_reads_avoided", "counter"),
        ("keys", "gauge"),
        ("filter_keys", "gauge"),
        ("filter_capacity", "gauge"),
        ("filter_memory_bytes", "gauge"),
        ("filter_relocations", "counter"),
        ("filter_longest_path", "gauge"),
        ("filter_faults", "counter"),
        ("load_factor", "gauge"),
        ("expected_false_positive_rate", "gauge"),
        ("overflow_keys", "gauge"),
        ("inserts", "counter"),
        ("removals", "counter"),
        ("refusals", "counter"),
        ("rebuilds", "counter"),
        ("rebuild_failures", "counter"),
        ("store_reopenings", "counter"),
        ("replacements", "counter"),
        ("snapshot_age_seconds", "gauge"),
        ("snapshot_duration_seconds", "gauge"),
        ("snapshot_bytes", "gauge"),
        ("snapshot_failures", "counter"),
        ("requests", "counter"),
        ("requests_in_progress", "gauge"),
        ("request_duration_seconds", "histogram"),
    ] {
        let line = format!("# TYPE risk_{family} {kind}\n");
        assert!(answer.body.contains(&line), "{line} is not in\n{}", answer.body);
        assert!(answer.body.contains(&format!("# HELP risk_{family} ")), "{family}");
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
fn refusals_and_rebuilds_are_counted() {
    let folder = Folder::new();
    let server = Server::with(&folder, &["--capacity", "100"]);
    let client = server.client();
    client.add_all(&made("key", 3000));
    wait_until("a larger filter", || client.metrics()["risk_overflow_keys"] == 0.0);
    let metrics = client.metrics();
    assert!(metrics["risk_rebuilds_total"] >= 1.0);
    assert!(metrics[r#"risk_refusals_total{reason="full"}"#] >= 1.0, "3,000 keys in a filter for 100");
    assert_eq!(metrics["risk_filter_keys"], 3000.0);
}
