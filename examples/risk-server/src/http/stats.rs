//! The state in JSON: `GET /v1/stats`.

use super::answer::{Failure, json};
use super::app::App;
use crate::list::{FilterStats, ListStats, SnapshotStats};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Serialize)]
struct Stats {
    version: &'static str,
    uptime_seconds: f64,
    ready: bool,
    keys: u64,
    filter: FilterStats,
    overflow_keys: u64,
    lookups: u64,
    filter_hits: u64,
    confirmed_hits: u64,
    store_reads_avoided: u64,
    /// `null` while no absent key was asked for.
    observed_false_positive_rate: Option<f64>,
    inserts: u64,
    removals: u64,
    /// Of all reasons.
    refusals: u64,
    rebuilds: u64,
    /// Larger filters that could not be built.
    rebuild_failures: u64,
    replacements: u64,
    /// 0, unless something is broken.
    filter_faults: u64,
    store_reopenings: u64,
    store_bytes: u64,
    write_failures: u64,
    changes_since_snapshot: u64,
    snapshot_failures: u64,
    /// `null` while there is none.
    snapshot: Option<Snapshot>,
}

#[derive(Serialize)]
struct Snapshot {
    age_seconds: u64,
    duration_seconds: f64,
    bytes: u64,
}

/// Tells the state.
pub(crate) async fn get(State(app): State<App>) -> Result<Response, Failure> {
    let list = app.serving()?.list.stats();
    let lookups = app.counters().lookups();
    let stats = Stats {
        version: env!("CARGO_PKG_VERSION"),
        uptime_seconds: app.uptime().as_secs_f64(),
        ready: app.is_ready(),
        keys: list.keys,
        filter: list.filter,
        overflow_keys: list.overflow_keys,
        lookups: lookups.lookups,
        filter_hits: lookups.filter_hits,
        confirmed_hits: lookups.confirmed_hits,
        store_reads_avoided: lookups.store_reads_avoided(),
        observed_false_positive_rate: lookups.observed_false_positive_rate(),
        inserts: list.puts,
        removals: list.deletes,
        refusals: refusals(&list),
        rebuilds: list.rebuilds,
        rebuild_failures: list.rebuild_failures,
        replacements: list.replacements,
        filter_faults: list.filter_faults,
        store_reopenings: list.store_reopenings,
        store_bytes: list.store_bytes,
        write_failures: list.write_failures,
        changes_since_snapshot: list.changes_since_snapshot,
        snapshot_failures: list.snapshot_failures,
        snapshot: list.last_snapshot.map(|snapshot| Snapshot {
            age_seconds: age_seconds(&snapshot),
            duration_seconds: snapshot.took.as_secs_f64(),
            bytes: snapshot.bytes,
        }),
    };
    Ok(json(StatusCode::OK, &stats))
}

fn refusals(list: &ListStats) -> u64 {
    list.refusals.full + list.refusals.too_many_copies
}

/// Since a snapshot was saved.
pub(crate) fn age_seconds(snapshot: &SnapshotStats) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_secs().saturating_sub(snapshot.unix_seconds)
}
