//! What is counted as requests are answered. Relaxed: no count says anything about other memory.

use axum::http::StatusCode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// The upper ends of all buckets but the last, in seconds.
const BOUNDS: [f64; 19] = [
    0.000_01, 0.000_02, 0.000_05, 0.000_1, 0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0,
    2.0, 5.0, 10.0,
];

type Labels<const N: usize> = [(&'static str, &'static str); N];

pub(crate) struct Counters {
    lookups: AtomicU64,
    filter_hits: AtomicU64,
    confirmed_hits: AtomicU64,
    requests_in_progress: AtomicUsize,
    /// By route and class of the status.
    pub(crate) requests: Family<Labels<2>, Counter>,
    /// By route, from a request's head to its answer's.
    pub(crate) durations: Family<Labels<1>, Histogram, fn() -> Histogram>,
}

impl Default for Counters {
    fn default() -> Self {
        Counters {
            lookups: AtomicU64::new(0),
            filter_hits: AtomicU64::new(0),
            confirmed_hits: AtomicU64::new(0),
            requests_in_progress: AtomicUsize::new(0),
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BOUNDS)),
        }
    }
}

/// Lookups and their results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Lookups {
    pub(crate) lookups: u64,
    /// Those that the front did not answer with "no".
    pub(crate) filter_hits: u64,
    /// Those that the store answered with "yes".
    pub(crate) confirmed_hits: u64,
}

impl Lookups {
    pub(crate) fn store_reads_avoided(&self) -> u64 {
        self.lookups.saturating_sub(self.filter_hits)
    }

    /// The share of absent keys that the front said "maybe" for, if any were looked up.
    pub(crate) fn observed_false_positive_rate(&self) -> Option<f64> {
        let absent = self.lookups.saturating_sub(self.confirmed_hits);
        let wrong = self.filter_hits.saturating_sub(self.confirmed_hits);
        (absent > 0).then(|| wrong as f64 / absent as f64)
    }
}

impl Counters {
    /// Counts keys that the front was asked for, and those that it did not answer with "no".
    pub(crate) fn asked(&self, lookups: usize, filter_hits: usize) {
        self.lookups.fetch_add(lookups as u64, Relaxed);
        if filter_hits > 0 {
            self.filter_hits.fetch_add(filter_hits as u64, Relaxed);
        }
    }

    /// Counts keys that the store has.
    pub(crate) fn confirmed(&self, hits: usize) {
        self.confirmed_hits.fetch_add(hits as u64, Relaxed);
    }

    pub(crate) fn answered(&self, route: &'static str, status: StatusCode, took: Duration) {
        let class = ["1xx", "2xx", "3xx", "4xx", "5xx"][usize::from(status.as_u16() / 100 - 1).min(4)];
        self.requests.get_or_create(&[("route", route), ("status", class)]).inc();
        self.durations.get_or_create(&[("route", route)]).observe(took.as_secs_f64());
    }

    /// Takes a place among at most `limit` requests, if one is free.
    pub(crate) fn place(&self, limit: usize) -> Option<Place<'_>> {
        let place = Place(&self.requests_in_progress);
        (self.requests_in_progress.fetch_add(1, Relaxed) < limit).then_some(place)
    }

    pub(crate) fn requests_in_progress(&self) -> usize {
        self.requests_in_progress.load(Relaxed)
    }

    pub(crate) fn lookups(&self) -> Lookups {
        // From the last one counted to the first, so that no more are confirmed than were asked for.
        let confirmed_hits = self.confirmed_hits.load(Relaxed);
        let filter_hits = self.filter_hits.load(Relaxed);
        Lookups { lookups: self.lookups.load(Relaxed), filter_hits, confirmed_hits }
    }
}

/// A place among the requests in progress, until it is dropped.
pub(crate) struct Place<'c>(&'c AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
