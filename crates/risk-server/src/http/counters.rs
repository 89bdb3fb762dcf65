//! What is counted as requests are answered.

use axum::http::StatusCode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use std::time::Duration;

/// The upper ends of all buckets but the last, in seconds.
const BOUNDS: [f64; 19] = [
    0.000_01, 0.000_02, 0.000_05, 0.000_1, 0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0,
    2.0, 5.0, 10.0,
];

type Labels<const N: usize> = [(&'static str, &'static str); N];

pub(crate) struct Counters {
    /// Keys that the front was asked for, those of them that it did not answer with "no", and those that the store has.
    pub(crate) lookups: Counter,
    pub(crate) filter_hits: Counter,
    pub(crate) confirmed_hits: Counter,
    /// By route and class of the status.
    pub(crate) requests: Family<Labels<2>, Counter>,
    /// By route, from a request's head to its answer's.
    pub(crate) durations: Family<Labels<1>, Histogram, fn() -> Histogram>,
}

impl Default for Counters {
    fn default() -> Self {
        Counters {
            lookups: Counter::default(),
            filter_hits: Counter::default(),
            confirmed_hits: Counter::default(),
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BOUNDS)),
        }
    }
}

impl Counters {
    pub(crate) fn answered(&self, route: &'static str, status: StatusCode, took: Duration) {
        let class = ["1xx", "2xx", "3xx", "4xx", "5xx"][usize::from(status.as_u16() / 100 - 1).min(4)];
        self.requests.get_or_create(&[("route", route), ("status", class)]).inc();
        self.durations.get_or_create(&[("route", route)]).observe(took.as_secs_f64());
    }
}
