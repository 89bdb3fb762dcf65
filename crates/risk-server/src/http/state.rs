//! The state of the server: health, statistics in JSON, metrics for Prometheus, and the page that shows them.

use super::App;
use super::answer::{Failure, json, with_type};
use crate::list::ListStats;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use prometheus_client::encoding::{EncodeMetric, text};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use serde::Serialize;
use std::env::consts::{ARCH, OS};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// `GET /healthz`: answered as long as the program runs.
pub(crate) async fn healthz() -> &'static str {
    "ok"
}

/// `GET /readyz`: whether the list is served: not before it is loaded, not once it accepts no changes, and not once a
/// shutdown has begun.
pub(crate) async fn readyz(State(app): State<Arc<App>>) -> Response {
    #[derive(Serialize)]
    struct Ready {
        ready: bool,
        /// While the list is being loaded, those so far.
        loaded_keys: u64,
    }
    let ready = app.is_ready();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    json(status, &Ready { ready, loaded_keys: app.loaded_keys.load(Ordering::Relaxed) })
}

/// `GET /v1/stats`
pub(crate) async fn stats(State(app): State<Arc<App>>) -> Result<Response, Failure> {
    #[derive(Serialize)]
    struct Stats {
        version: &'static str,
        uptime_seconds: f64,
        ready: bool,
        lookups: u64,
        filter_hits: u64,
        confirmed_hits: u64,
        store_reads_avoided: u64,
        /// `null` while no absent key was looked up.
        observed_false_positive_rate: Option<f64>,
        #[serde(flatten)]
        list: ListStats,
    }
    let list = app.serving()?.list.stats();
    let lookups = app.counters.lookups();
    let stats = Stats {
        version: env!("CARGO_PKG_VERSION"),
        uptime_seconds: app.started.elapsed().as_secs_f64(),
        ready: app.is_ready(),
        lookups: lookups.lookups,
        filter_hits: lookups.filter_hits,
        confirmed_hits: lookups.confirmed_hits,
        store_reads_avoided: lookups.store_reads_avoided(),
        observed_false_positive_rate: lookups.observed_false_positive_rate(),
        list,
    };
    Ok(json(StatusCode::OK, &stats))
}

const PAGE: &str = include_str!("page.html");

/// The page is one file, so its script and its style are inline. It loads nothing, sends requests to this server only,
/// and may not be framed.
const PAGE_HEADERS: [(HeaderName, HeaderValue); 4] = [
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; \
             connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
    ),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    // So that a newer server is not shown by an older page.
    (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
];

/// `GET /`
pub(crate) async fn page() -> Response {
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    let mut response = with_type(StatusCode::OK, html, Body::from(Bytes::from_static(PAGE.as_bytes())));
    response.headers_mut().extend(PAGE_HEADERS);
    response
}

/// `GET /metrics`: as OpenMetrics, or in the older text format of Prometheus if `Accept` names text only.
pub(crate) async fn metrics(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, Failure> {
    // The numbers are read where they are kept, into a registry for this request, which knows the format.
    let mut root = Registry::default();
    #[cfg(target_os = "linux")]
    if let Err(error) = process(root.sub_registry_with_prefix("process")) {
        tracing::debug!(%error, "the system has no figures of this process");
    }
    let registry = root.sub_registry_with_prefix("risk");
    let build = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("os", OS),
        ("arch", ARCH),
        ("profile", if cfg!(debug_assertions) { "debug" } else { "release" }),
    ];
    registry.register("build", "What this program was built as", Info::new(build));
    let lookups = app.counters.lookups();
    counters(
        registry,
        [
            ("lookups", "Keys that were looked up", lookups.lookups),
            ("filter_hits", "Lookups that the filter did not answer with no", lookups.filter_hits),
            ("confirmed_hits", "Lookups of keys on the list", lookups.confirmed_hits),
            ("store_reads_avoided", "Lookups that the filter answered", lookups.store_reads_avoided()),
        ],
    );
    if let Some(list) = app.list() {
        list_state(registry, &list.stats());
    }
    gauges(
        registry,
        [
            ("ready", "Whether the list accepts changes and no shutdown has begun", u64::from(app.is_ready())),
            ("requests_in_progress", "Requests in progress", app.counters.requests_in_progress() as u64),
            ("connections", "Open connections", app.connections.len() as u64),
            ("max_connections", "Connections that may be open; further ones wait", app.config.max_connections as u64),
        ],
    );
    gauges(registry, [("uptime_seconds", "Time since the start", app.started.elapsed().as_secs_f64())]);
    registry.register("requests", "Requests that were answered", app.counters.requests.clone());
    let help = "From a request's head to its answer's";
    registry.register("request_duration_seconds", help, app.counters.durations.clone());

    let mut text = String::new();
    text::encode(&mut text, &root)
        .map_err(|error| Failure::internal(format!("the metrics cannot be written: {error}")))?;
    let accepts = |format| {
        let mut accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        accepted.any(|value| value.contains(format))
    };
    let (format, text) = if accepts("text/plain") && !accepts("application/openmetrics-text") {
        ("text/plain; version=0.0.4; charset=utf-8", prometheus(&text))
    } else {
        ("application/openmetrics-text; version=1.0.0; charset=utf-8", text)
    };
    Ok(with_type(StatusCode::OK, HeaderValue::from_static(format), text.into()))
}

/// The same in the older format, where a family has the name of its samples, and there are fewer types.
fn prometheus(open_metrics: &str) -> String {
    let (mut text, mut help) = (String::with_capacity(open_metrics.len()), "");
    for line in open_metrics.lines() {
        if let Some(about) = line.strip_prefix("# HELP ") {
            help = about.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some((family, kind)) = line.strip_prefix("# TYPE ").and_then(|family| family.split_once(' ')) {
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                kind => ("", kind),
            };
            text += &format!("# HELP {family}{suffix} {help}\n# TYPE {family}{suffix} {kind}\n");
        } else if !line.starts_with('#') {
            text = text + line + "\n";
        }
    }
    text
}

/// What the system knows of this process, under the names that Prometheus has for it.
#[cfg(target_os = "linux")]
fn process(registry: &mut Registry) -> procfs::ProcResult<()> {
    use procfs::process::{LimitValue, Process};
    let process = Process::myself()?;
    let (stat, tick) = (process.stat()?, procfs::ticks_per_second() as f64);
    let seconds = (stat.utime + stat.stime) as f64 / tick;
    registry.register("cpu_seconds", "Processor time", ConstCounter::new(seconds));
    let started = procfs::boot_time_secs()? as f64 + stat.starttime as f64 / tick;
    gauges(registry, [("start_time_seconds", "When it started, since 1970", started)]);
    gauges(
        registry,
        [
            ("resident_memory_bytes", "Resident memory", stat.rss * procfs::page_size()),
            ("virtual_memory_bytes", "Virtual memory", stat.vsize),
            ("threads", "Threads", stat.num_threads.try_into().unwrap_or(0)),
            ("open_fds", "Open files and connections", process.fd_count()? as u64),
        ],
    );
    if let LimitValue::Value(most) = process.limits()?.max_open_files.soft_limit {
        gauges(registry, [("max_fds", "Files and connections that may be open", most)]);
    }
    Ok(())
}

/// Registers gauges by name, help and value.
fn gauges<N>(registry: &mut Registry, gauges: impl IntoIterator<Item = (&'static str, &'static str, N)>)
where
    ConstGauge<N>: EncodeMetric + std::fmt::Debug + Send + Sync + 'static,
{
    for (name, help, value) in gauges {
        registry.register(name, help, ConstGauge::new(value));
    }
}

/// As [`gauges`].
fn counters(registry: &mut Registry, counters: impl IntoIterator<Item = (&'static str, &'static str, u64)>) {
    for (name, help, value) in counters {
        registry.register(name, help, ConstCounter::new(value));
    }
}

fn list_state(registry: &mut Registry, list: &ListStats) {
    let filter = &list.filter;
    let expected = filter.expected_false_positive_rate;
    gauges(
        registry,
        [
            ("keys", "Keys on the list", list.keys),
            ("filter_keys", "Keys in the filter", filter.len),
            ("filter_capacity", "Keys that the filter was built for", filter.capacity),
            ("filter_memory_bytes", "Memory of the filter", filter.memory_bytes),
            ("filter_fingerprint_bits", "Bits of a fingerprint", filter.fingerprint_bits.into()),
            ("filter_longest_path", "The most relocations for one key", filter.longest_path),
            ("overflow_keys", "Keys that wait for a larger filter", list.overflow_keys),
            ("store_bytes", "Size of the store's file", list.store_bytes),
            ("changes_since_snapshot", "Changes that a start would replay", list.changes_since_snapshot),
        ],
    );
    gauges(
        registry,
        [
            ("load_factor", "The share of the filter's slots that is taken", filter.load_factor),
            ("expected_false_positive_rate", "The share of absent keys that costs a read of the store", expected),
        ],
    );
    counters(
        registry,
        [
            ("filter_relocations", "Relocations in the current filter", filter.relocations),
            ("filter_faults", "Keys that the filter should have had; another one was built", list.filter_faults),
            ("inserts", "Puts that changed the list", list.inserts),
            ("removals", "Deletes that changed the list", list.removals),
            ("rebuilds", "Larger filters that replaced a full one", list.rebuilds),
            ("rebuild_failures", "Larger filters that could not be built", list.rebuild_failures),
            ("store_reopenings", "Times that the store was reopened after an error", list.store_reopenings),
            ("write_failures", "Requests to change the list that the store failed", list.write_failures),
            ("replacements", "Lists that were replaced as a whole", list.replacements),
            ("snapshot_failures", "Snapshots that could not be saved", list.snapshot_failures),
        ],
    );
    let refusals = Family::<[(&str, &str); 1], Counter>::default();
    for (reason, count) in [("full", list.refused_full), ("too_many_copies", list.refused_too_many_copies)] {
        refusals.get_or_create(&[("reason", reason)]).inc_by(count);
    }
    registry.register("refusals", "Keys that the filter refused", refusals);
    if let Some(snapshot) = &list.snapshot {
        gauges(
            registry,
            [
                ("snapshot_age_seconds", "Time since the newest snapshot", snapshot.age_seconds()),
                ("snapshot_bytes", "Size of the newest snapshot", snapshot.bytes),
            ],
        );
        let (took, copy) = (snapshot.took.as_secs_f64(), snapshot.copy.as_secs_f64());
        gauges(
            registry,
            [
                ("snapshot_duration_seconds", "How long the newest snapshot took", took),
                ("snapshot_copy_seconds", "How long changes waited for the newest snapshot", copy),
            ],
        );
    }
}
