//! The state of the server: health, statistics in JSON, metrics for Prometheus, and the page that shows them.

use super::App;
use super::answer::{Failure, json};
use crate::list::{List, ListStats};
use axum::extract::State;
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use serde::Serialize;
use serde_json::Value;
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
        loaded_keys: usize,
    }
    let ready = app.is_ready();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    json(status, &Ready { ready, loaded_keys: app.loaded_keys.load(Ordering::Relaxed) })
}

/// What `/v1/stats` says, and `/metrics` reads from it.
#[derive(Serialize)]
struct Stats {
    version: &'static str,
    uptime_seconds: f64,
    ready: bool,
    requests_in_progress: usize,
    connections: usize,
    max_connections: usize,
    lookups: u64,
    filter_hits: u64,
    confirmed_hits: u64,
    store_reads_avoided: u64,
    /// The share of absent keys that the front said "maybe" for; `null` while none was looked up.
    observed_false_positive_rate: Option<f64>,
    #[serde(flatten)]
    list: Option<ListStats>,
}

impl Stats {
    fn of(app: &App) -> Self {
        // From the last one counted to the first, so that no more are confirmed than were asked for.
        let confirmed_hits = app.counters.confirmed_hits.get();
        let filter_hits = app.counters.filter_hits.get().max(confirmed_hits);
        let lookups = app.counters.lookups.get().max(filter_hits);
        let absent = lookups - confirmed_hits;
        Stats {
            version: env!("CARGO_PKG_VERSION"),
            uptime_seconds: app.started.elapsed().as_secs_f64(),
            ready: app.is_ready(),
            requests_in_progress: app.config.max_requests - app.places.available_permits(),
            connections: app.connections.len(),
            max_connections: app.config.max_connections,
            lookups,
            filter_hits,
            confirmed_hits,
            store_reads_avoided: lookups - filter_hits,
            observed_false_positive_rate: (absent > 0).then(|| (filter_hits - confirmed_hits) as f64 / absent as f64),
            list: app.list().map(List::stats),
        }
    }
}

/// `GET /v1/stats`
pub(crate) async fn stats(State(app): State<Arc<App>>) -> Result<Response, Failure> {
    app.serving()?;
    Ok(json(StatusCode::OK, &Stats::of(&app)))
}

const PAGE: &str = include_str!("page.html");

/// The page is one file, so its script and its style are inline. It loads nothing, sends requests to this server only,
/// and may not be framed.
const PAGE_HEADERS: [(HeaderName, &str); 5] = [
    (CONTENT_TYPE, "text/html; charset=utf-8"),
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    // So that a newer server is not shown by an older page.
    (CACHE_CONTROL, "no-cache"),
];

/// `GET /`
pub(crate) async fn page() -> impl IntoResponse {
    (PAGE_HEADERS, PAGE)
}

/// Name, place in [`Stats`], and help.
type Figure = (&'static str, &'static str, &'static str);

const COUNTERS: [Figure; 15] = [
    ("lookups", "/lookups", "Keys that were looked up"),
    ("filter_hits", "/filter_hits", "Lookups that the filter did not answer with no"),
    ("confirmed_hits", "/confirmed_hits", "Lookups of keys on the list"),
    ("store_reads_avoided", "/store_reads_avoided", "Lookups that the filter answered"),
    ("filter_relocations", "/filter/relocations", "Relocations in the current filter"),
    ("filter_splits", "/filter/splits", "Tables of the current filter that were split to make room"),
    ("filter_refused_full", "/filter/refused_full", "Keys that the filter had no room for"),
    ("filter_refused_copies", "/filter/refused_too_many_copies", "Keys that look like too many others to the filter"),
    ("filter_faults", "/filter_faults", "Keys that the filter should have had; it was loaded again"),
    ("inserts", "/inserts", "Puts that changed the list"),
    ("removals", "/removals", "Deletes that changed the list"),
    ("store_reopenings", "/store_reopenings", "Times that the store was reopened after an error"),
    ("write_failures", "/write_failures", "Requests to change the list that failed"),
    ("replacements", "/replacements", "Lists that were replaced as a whole"),
    ("snapshot_failures", "/snapshot_failures", "Snapshots that could not be saved"),
];

const GAUGES: [Figure; 20] = [
    ("ready", "/ready", "Whether the list accepts changes and no shutdown has begun"),
    ("requests_in_progress", "/requests_in_progress", "Requests in progress"),
    ("connections", "/connections", "Open connections"),
    ("max_connections", "/max_connections", "Connections that may be open; further ones wait"),
    ("uptime_seconds", "/uptime_seconds", "Time since the start"),
    ("keys", "/keys", "Keys on the list"),
    ("filter_keys", "/filter/len", "Keys in the filter"),
    ("filter_slots", "/filter/slots", "Keys that the filter could hold in its present size"),
    ("filter_max_capacity", "/filter/max_capacity", "Keys that the filter grows to"),
    ("filter_memory_bytes", "/filter/memory_bytes", "Memory of the filter"),
    ("filter_fingerprint_bits", "/filter/fingerprint_bits", "Bits of a fingerprint"),
    ("filter_longest_path", "/filter/longest_path", "The most relocations for one key"),
    ("load_factor", "/filter/load_factor", "The share of the filter's slots that is taken"),
    (
        "expected_false_positive_rate",
        "/filter/expected_false_positive_rate",
        "The share of absent keys that costs a read of the store",
    ),
    ("store_bytes", "/store_bytes", "Size of the store's file"),
    ("changes_since_snapshot", "/changes_since_snapshot", "Changes that a start would replay"),
    ("snapshot_age_seconds", "/snapshot/age_seconds", "Time since the newest snapshot"),
    ("snapshot_bytes", "/snapshot/bytes", "Size of the newest snapshot"),
    ("snapshot_duration_seconds", "/snapshot/duration_seconds", "How long the newest snapshot took"),
    ("snapshot_copy_seconds", "/snapshot/copy_seconds", "How long changes waited for the newest snapshot"),
];

/// `GET /metrics`: as OpenMetrics, or in the older text format of Prometheus if `Accept` names text only.
pub(crate) async fn metrics(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, Failure> {
    let unwritten =
        |error: &dyn std::fmt::Display| Failure::internal(format!("the metrics cannot be written: {error}"));
    // The numbers are read where they are kept, into a registry for this request, which knows the format.
    let mut root = Registry::default();
    #[cfg(target_os = "linux")]
    if let Err(error) = process(root.sub_registry_with_prefix("process")) {
        tracing::debug!(%error, "the system has no figures of this process");
    }
    let registry = root.sub_registry_with_prefix("risk");
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    let build = [("version", env!("CARGO_PKG_VERSION")), ("os", OS), ("arch", ARCH), ("profile", profile)];
    registry.register("build", "What this program was built as", Info::new(build));
    let stats = serde_json::to_value(Stats::of(&app)).map_err(|error| unwritten(&error))?;
    for (name, place, help) in COUNTERS {
        if let Some(count) = stats.pointer(place).and_then(Value::as_u64) {
            registry.register(name, help, ConstCounter::new(count));
        }
    }
    for (name, place, help) in GAUGES {
        match stats.pointer(place) {
            None | Some(Value::Null) => {}
            Some(Value::Bool(yes)) => registry.register(name, help, ConstGauge::new(u64::from(*yes))),
            Some(number) => match number.as_u64() {
                Some(number) => registry.register(name, help, ConstGauge::new(number)),
                None => registry.register(name, help, ConstGauge::new(number.as_f64().unwrap_or(f64::NAN))),
            },
        }
    }
    registry.register("requests", "Requests that were answered", app.counters.requests.clone());
    let help = "From a request's head to its answer's";
    registry.register("request_duration_seconds", help, app.counters.durations.clone());

    let mut text = String::new();
    text::encode(&mut text, &root).map_err(|error| unwritten(&error))?;
    let accepts = |format| {
        let mut accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        accepted.any(|value| value.contains(format))
    };
    let (format, text) = if accepts("text/plain") && !accepts("application/openmetrics-text") {
        ("text/plain; version=0.0.4; charset=utf-8", prometheus(&text))
    } else {
        ("application/openmetrics-text; version=1.0.0; charset=utf-8", text)
    };
    Ok(([(CONTENT_TYPE, format)], text).into_response())
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
    let mut gauge = |name: &str, help: &str, value: f64| registry.register(name, help, ConstGauge::new(value));
    let started = procfs::boot_time_secs()? as f64 + stat.starttime as f64 / tick;
    gauge("start_time_seconds", "When it started, since 1970", started);
    gauge("resident_memory_bytes", "Resident memory", (stat.rss * procfs::page_size()) as f64);
    gauge("virtual_memory_bytes", "Virtual memory", stat.vsize as f64);
    gauge("threads", "Threads", stat.num_threads as f64);
    gauge("open_fds", "Open files and connections", process.fd_count()? as f64);
    if let LimitValue::Value(most) = process.limits()?.max_open_files.soft_limit {
        gauge("max_fds", "Files and connections that may be open", most as f64);
    }
    let seconds = (stat.utime + stat.stime) as f64 / tick;
    registry.register("cpu_seconds", "Processor time", ConstCounter::new(seconds));
    Ok(())
}
