//! What is counted as requests are answered.

use super::histogram::Histogram;
use super::route::Route;
use axum::http::StatusCode;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// The counts since the start. Relaxed: no count tells anything about other memory.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    lookups: AtomicU64,
    filter_hits: AtomicU64,
    confirmed_hits: AtomicU64,
    requests_in_progress: AtomicUsize,
    connections: AtomicUsize,
    max_connections: AtomicUsize,
    routes: [RouteCounters; Route::ALL.len()],
}

#[derive(Debug, Default)]
struct RouteCounters {
    /// By the first digit of the status: 1xx to 5xx.
    classes: [AtomicU64; 5],
    durations: Histogram,
}

/// Look-ups and what came of them.
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

    /// The part of absent keys that the front took for present, if any was asked for.
    pub(crate) fn observed_false_positive_rate(&self) -> Option<f64> {
        let absent = self.lookups.saturating_sub(self.confirmed_hits);
        let wrong = self.filter_hits.saturating_sub(self.confirmed_hits);
        (absent > 0).then(|| wrong as f64 / absent as f64)
    }
}

/// What is known of one kind of request.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) route: &'static str,
    /// By the first digit of the status: 1xx to 5xx.
    pub(crate) classes: [u64; 5],
    pub(crate) seconds: f64,
    /// Upper ends in seconds, and counts.
    pub(crate) buckets: Vec<(f64, u64)>,
}

impl Counters {
    /// Counts keys that the front was asked for, and those of them that it did not answer with "no".
    pub(crate) fn asked(&self, lookups: usize, filter_hits: usize) {
        self.lookups.fetch_add(lookups as u64, Ordering::Relaxed);
        if filter_hits > 0 {
            self.filter_hits.fetch_add(filter_hits as u64, Ordering::Relaxed);
        }
    }

    /// Counts keys that the store has.
    pub(crate) fn confirmed(&self, hits: usize) {
        self.confirmed_hits.fetch_add(hits as u64, Ordering::Relaxed);
    }

    /// Counts an answer.
    pub(crate) fn answered(&self, route: Route, status: StatusCode, took: Duration) {
        let route = &self.routes[route as usize];
        if let Some(class) = route.classes.get(usize::from(status.as_u16() / 100 - 1)) {
            class.fetch_add(1, Ordering::Relaxed);
        }
        route.durations.count(took);
    }

    /// Takes a place among at most `limit` requests, if one is free.
    pub(crate) fn place(&self, limit: usize) -> Option<Place<'_>> {
        let place = Place(&self.requests_in_progress);
        (self.requests_in_progress.fetch_add(1, Ordering::Relaxed) < limit).then_some(place)
    }

    pub(crate) fn requests_in_progress(&self) -> usize {
        self.requests_in_progress.load(Ordering::Relaxed)
    }

    pub(crate) fn note_connections(&self, open: usize, most: usize) {
        self.connections.store(open, Ordering::Relaxed);
        self.max_connections.store(most, Ordering::Relaxed);
    }

    /// Those that are open, and how many may be.
    pub(crate) fn connections(&self) -> (usize, usize) {
        (self.connections.load(Ordering::Relaxed), self.max_connections.load(Ordering::Relaxed))
    }

    pub(crate) fn lookups(&self) -> Lookups {
        // From the last to be counted to the first, so that no more are confirmed than were asked.
        let confirmed_hits = self.confirmed_hits.load(Ordering::Relaxed);
        let filter_hits = self.filter_hits.load(Ordering::Relaxed);
        Lookups { lookups: self.lookups.load(Ordering::Relaxed), filter_hits, confirmed_hits }
    }

    pub(crate) fn answers(&self) -> impl Iterator<Item = Answered> {
        Route::ALL.into_iter().zip(&self.routes).map(|(route, counters)| {
            let (seconds, buckets) = counters.durations.read();
            let classes = counters.classes.each_ref().map(|count| count.load(Ordering::Relaxed));
            Answered { route: route.name(), classes, seconds, buckets }
        })
    }
}

/// A place among the requests in progress, until it is dropped.
pub(crate) struct Place<'c>(&'c AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_route_has_counters_of_its_own() {
        for (index, route) in Route::ALL.into_iter().enumerate() {
            assert_eq!(route as usize, index);
        }
    }

    #[test]
    fn a_place_is_free_again_when_its_request_is_over() {
        let counters = Counters::default();
        let first = counters.place(2);
        let second = counters.place(2);
        assert!(first.is_some() && second.is_some() && counters.place(2).is_none());
        assert_eq!(counters.requests_in_progress(), 2);
        drop(first);
        assert!(counters.place(2).is_some());
    }

    #[test]
    fn the_observed_rate_is_that_of_absent_keys() {
        let lookups = |lookups, filter_hits, confirmed_hits| Lookups { lookups, filter_hits, confirmed_hits };
        assert_eq!(lookups(0, 0, 0).observed_false_positive_rate(), None);
        assert_eq!(lookups(5, 5, 5).observed_false_positive_rate(), None);
        assert_eq!(lookups(110, 11, 10).observed_false_positive_rate(), Some(0.01));
        assert_eq!(lookups(110, 11, 10).store_reads_avoided(), 99);
    }
}
