use super::*;

#[tokio::test]
async fn the_stats_have_what_the_page_shows() {
    let server = start().await;
    server.put(&["a", "b"]).await;
    server.listed(&["a", "x", "y"]).await;
    let stats = server.get("/v1/stats").await.json();
    for name in [
        "keys",
        "overflow_keys",
        "lookups",
        "filter_hits",
        "confirmed_hits",
        "store_reads_avoided",
        "inserts",
        "removals",
        "refusals",
        "rebuilds",
        "replacements",
        "changes_since_snapshot",
        "snapshot_failures",
    ] {
        assert!(stats[name].is_u64(), "{name}: {stats}");
    }
    for name in ["len", "capacity", "load_factor", "fingerprint_bits", "expected_false_positive_rate", "memory_bytes"] {
        assert!(stats["filter"][name].is_number(), "filter.{name}: {stats}");
    }
    assert_eq!((&stats["keys"], &stats["filter"]["len"], &stats["inserts"]), (&2.into(), &2.into(), &2.into()));
    assert_eq!((&stats["lookups"], &stats["confirmed_hits"]), (&3.into(), &1.into()));
    assert_eq!(stats["ready"], true);
    assert_eq!(stats["version"], env!("CARGO_PKG_VERSION"));
    assert!(stats["uptime_seconds"].as_f64().unwrap() > 0.0);
    assert!(stats["snapshot"].is_null() && stats["observed_false_positive_rate"].is_number());
}

#[tokio::test]
async fn without_look_ups_of_absent_keys_no_rate_is_told() {
    let server = start().await;
    assert!(server.get("/v1/stats").await.json()["observed_false_positive_rate"].is_null());
    server.put(&["a"]).await;
    server.listed(&["a"]).await;
    assert!(server.get("/v1/stats").await.json()["observed_false_positive_rate"].is_null());
}

#[tokio::test]
async fn the_stats_tell_of_the_newest_snapshot() {
    let server = start().await;
    server.put(&["a"]).await;
    server.list.save_snapshot().await.unwrap();
    let stats = server.get("/v1/stats").await.json();
    let snapshot = &stats["snapshot"];
    assert!(snapshot["bytes"].as_u64().unwrap() > 0 && snapshot["duration_seconds"].as_f64().unwrap() > 0.0);
    assert!(snapshot["age_seconds"].as_u64().unwrap() < 3600, "{snapshot}");
    let metrics = server.get("/metrics").await.text;
    for name in ["risk_snapshot_age_seconds", "risk_snapshot_duration_seconds", "risk_snapshot_bytes"] {
        assert!(metrics.contains(&format!("\n{name} ")), "{name}: {metrics}");
    }
}

#[tokio::test]
async fn the_metrics_tell_what_was_counted() {
    let server = start().await;
    server.put(&["a", "b"]).await;
    server.listed(&["a", "x", "y"]).await;
    server.get("/v1/check/%ff").await;
    server.get("/nowhere").await;
    let answer = server.get("/metrics").await;
    assert_eq!(answer.header("content-type"), Some("application/openmetrics-text; version=1.0.0; charset=utf-8"));
    assert!(answer.text.ends_with("# EOF\n"));
    for line in [
        "risk_ready 1",
        "risk_lookups_total 3",
        "risk_confirmed_hits_total 1",
        "risk_keys 2",
        "risk_filter_keys 2",
        "risk_inserts_total 2",
        "risk_removals_total 0",
        "risk_refusals_total{reason=\"full\"} 0",
        "risk_refusals_total{reason=\"too_many_copies\"} 0",
        "risk_overflow_keys 0",
        "risk_rebuilds_total 0",
        "risk_requests_total{route=\"check_batch\",status=\"2xx\"} 1",
        "risk_requests_total{route=\"check\",status=\"4xx\"} 1",
        "risk_requests_total{route=\"other\",status=\"4xx\"} 1",
        "risk_request_duration_seconds_count{route=\"check_batch\"} 1",
        "risk_request_duration_seconds_bucket{le=\"+Inf\",route=\"check_batch\"} 1",
    ] {
        assert!(answer.text.lines().any(|other| other == line), "{line}: {}", answer.text);
    }
    for name in [
        "risk_filter_hits_total",
        "risk_store_reads_avoided_total",
        "risk_load_factor",
        "risk_filter_memory_bytes",
        "risk_expected_false_positive_rate",
        "risk_requests_in_progress",
        "risk_uptime_seconds",
        "risk_filter_capacity",
    ] {
        assert!(answer.text.contains(&format!("\n{name} ")), "{name}: {}", answer.text);
    }
}

#[tokio::test]
async fn the_page_loads_nothing_from_elsewhere_and_may_not() {
    let (_, service) = Setup::default().loading();
    let page = ask(&service, request("GET", "/", "")).await;
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    let rules = page.header("content-security-policy").unwrap();
    for rule in ["default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'"] {
        assert!(rules.contains(rule), "{rules}");
    }
    for elsewhere in ["src=\"http", "href=\"http", "url(http", "@import", "src=\"//"] {
        assert!(!page.text.contains(elsewhere), "{elsewhere}");
    }
}
