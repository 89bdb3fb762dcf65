//! The state in the text format of Prometheus: `GET /metrics`.

use super::answer::{Failure, with_type};
use super::app::App;
use super::counters::{Answered, Counters, Lookups};
use super::stats::age_seconds;
use crate::list::ListStats;
use axum::extract::State;
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use std::env::consts::{ARCH, OS};

const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

const PROMETHEUS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// Tells the state, as OpenMetrics, or in the older text format of Prometheus to whoever asks for text only.
pub(crate) async fn get(State(app): State<App>, headers: HeaderMap) -> Result<Response, Failure> {
    // The numbers are read where they are kept; a registry of this moment knows how they are written.
    let mut root = Registry::default();
    #[cfg(target_os = "linux")]
    if let Err(error) = process(root.sub_registry_with_prefix("process")) {
        tracing::debug!(%error, "the system tells nothing of this process");
    }
    let registry = root.sub_registry_with_prefix("risk");
    let build = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("os", OS),
        ("arch", ARCH),
        ("profile", if cfg!(debug_assertions) { "debug" } else { "release" }),
    ];
    registry.register("build", "What this program was built as", Info::new(build));
    gauge(registry, "ready", "Whether the list takes changes and no shutdown has begun", u32::from(app.is_ready()));
    gauge(registry, "uptime_seconds", "Time since the start", app.uptime().as_secs_f64());
    lookups(registry, &app.counters().lookups());
    if let Some(list) = app.list() {
        list_state(registry, &list.stats());
    }
    requests(registry, app.counters());

    let mut text = String::new();
    text::encode(&mut text, &root)
        .map_err(|error| Failure::internal(format!("the metrics cannot be written: {error}")))?;
    let accepts = |format| {
        let mut accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        accepted.any(|value| value.contains(format))
    };
    if accepts("text/plain") && !accepts("application/openmetrics-text") {
        return Ok(with_type(StatusCode::OK, PROMETHEUS, prometheus(&text).into()));
    }
    Ok(with_type(StatusCode::OK, OPEN_METRICS, text.into()))
}

/// The same in the older format, where a family has the name of its samples, and there are fewer kinds.
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

/// What the system knows of this process, by the names that Prometheus has for it.
#[cfg(target_os = "linux")]
fn process(registry: &mut Registry) -> procfs::ProcResult<()> {
    use procfs::process::{LimitValue, Process};
    let process = Process::myself()?;
    let (stat, tick) = (process.stat()?, procfs::ticks_per_second() as f64);
    let seconds = (stat.utime + stat.stime) as f64 / tick;
    registry.register("cpu_seconds", "Processor time", ConstCounter::new(seconds));
    let started = procfs::boot_time_secs()? as f64 + stat.starttime as f64 / tick;
    gauge(registry, "start_time_seconds", "When it started, since 1970", started);
    gauge(registry, "resident_memory_bytes", "Memory that it holds", stat.rss * procfs::page_size());
    gauge(registry, "virtual_memory_bytes", "Addresses that it has", stat.vsize);
    gauge(registry, "threads", "Its threads", stat.num_threads);
    gauge(registry, "open_fds", "Files and connections that are open", process.fd_count()? as u64);
    if let LimitValue::Value(most) = process.limits()?.max_open_files.soft_limit {
        gauge(registry, "max_fds", "Files and connections that may be open", most);
    }
    Ok(())
}

fn gauge<N>(registry: &mut Registry, name: &str, help: &str, value: N)
where
    ConstGauge<N>: EncodeMetric + std::fmt::Debug + Send + Sync + 'static,
{
    registry.register(name, help, ConstGauge::new(value));
}

fn counter(registry: &mut Registry, name: &str, help: &str, value: u64) {
    registry.register(name, help, ConstCounter::new(value));
}

fn lookups(registry: &mut Registry, lookups: &Lookups) {
    counter(registry, "lookups", "Keys that were looked up", lookups.lookups);
    counter(registry, "filter_hits", "Look-ups that the filter did not answer with no", lookups.filter_hits);
    counter(registry, "confirmed_hits", "Look-ups of keys on the list", lookups.confirmed_hits);
    counter(registry, "store_reads_avoided", "Look-ups that the filter answered", lookups.store_reads_avoided());
}

fn list_state(registry: &mut Registry, list: &ListStats) {
    let filter = &list.filter;
    gauge(registry, "keys", "Keys on the list", list.keys);
    gauge(registry, "filter_keys", "Keys in the filter", filter.len);
    gauge(registry, "filter_capacity", "Keys that the filter was built for", filter.capacity);
    gauge(registry, "filter_memory_bytes", "Memory of the filter", filter.memory_bytes);
    gauge(registry, "filter_fingerprint_bits", "Bits that the filter keeps of a key", filter.fingerprint_bits);
    gauge(registry, "load_factor", "The part of the filter's slots that is taken", filter.load_factor);
    let expected = filter.expected_false_positive_rate;
    gauge(registry, "expected_false_positive_rate", "The part of absent keys that costs a read of the store", expected);
    counter(registry, "filter_relocations", "Keys that the present filter moved to make room", filter.relocations);
    gauge(registry, "filter_longest_path", "The most keys that it moved to make room for one", filter.longest_path);
    counter(registry, "filter_faults", "Keys that a filter should have had; another was built", list.filter_faults);
    gauge(registry, "overflow_keys", "Keys that wait beside the filter for a larger one", list.overflow_keys);
    counter(registry, "inserts", "Puts that changed the list", list.puts);
    counter(registry, "removals", "Deletes that changed the list", list.deletes);
    counter(registry, "rebuilds", "Filters that were built anew because one was full", list.rebuilds);
    counter(registry, "rebuild_failures", "Larger filters that could not be built", list.rebuild_failures);
    counter(registry, "store_reopenings", "Times that the store's file failed", list.store_reopenings);
    gauge(registry, "store_bytes", "Size of the store's file", list.store_bytes);
    counter(registry, "write_failures", "Requests to change the list that the store failed", list.write_failures);
    counter(registry, "replacements", "Lists that were replaced as a whole", list.replacements);

    let refusals = Family::<[(&str, &str); 1], Counter>::default();
    for (reason, count) in [("full", list.refusals.full), ("too_many_copies", list.refusals.too_many_copies)] {
        refusals.get_or_create(&[("reason", reason)]).inc_by(count);
    }
    registry.register("refusals", "Keys that the filter refused", refusals);

    let changes = list.changes_since_snapshot;
    gauge(registry, "changes_since_snapshot", "Changes that a start would replay", changes);
    counter(registry, "snapshot_failures", "Snapshots that could not be saved", list.snapshot_failures);
    if let Some(snapshot) = &list.last_snapshot {
        gauge(registry, "snapshot_age_seconds", "Time since the newest snapshot", age_seconds(snapshot));
        let took = snapshot.took.as_secs_f64();
        gauge(registry, "snapshot_duration_seconds", "How long the newest snapshot took", took);
        let copy = snapshot.copy.as_secs_f64();
        gauge(registry, "snapshot_copy_seconds", "How long changes waited for the newest snapshot", copy);
        gauge(registry, "snapshot_bytes", "Size of the newest snapshot", snapshot.bytes);
    }
}

fn requests(registry: &mut Registry, counters: &Counters) {
    let in_progress = counters.requests_in_progress();
    gauge(registry, "requests_in_progress", "Requests that are being answered", in_progress);
    let (open, most) = counters.connections();
    gauge(registry, "connections", "Connections that are open", open);
    gauge(registry, "max_connections", "Connections that may be open; further ones wait", most);

    let answers: Vec<Answered> = counters.answers().collect();
    let requests = Family::<[(&str, &str); 2], Counter>::default();
    for answer in &answers {
        let classes = ["1xx", "2xx", "3xx", "4xx", "5xx"].into_iter().zip(answer.classes);
        for (class, count) in classes.filter(|&(_, count)| count > 0) {
            requests.get_or_create(&[("route", answer.route), ("status", class)]).inc_by(count);
        }
    }
    registry.register("requests", "Requests that were answered", requests);
    registry.register("request_duration_seconds", "From a request's head to its answer's", Durations(answers));
}

/// The histograms of all routes that were asked for.
#[derive(Debug)]
struct Durations(Vec<Answered>);

impl EncodeMetric for Durations {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        for answer in &self.0 {
            let count = answer.buckets.iter().map(|&(_, count)| count).sum();
            if count > 0 {
                let labels = [("route", answer.route)];
                let mut encoder = encoder.encode_family(&labels)?;
                encoder.encode_histogram::<NoLabelSet>(answer.seconds, count, &answer.buckets, None)?;
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}
