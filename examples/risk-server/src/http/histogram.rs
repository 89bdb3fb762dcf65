//! How long requests take.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper ends of all buckets but the last, in microseconds.
const BOUNDS: [u64; 19] = [
    10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000,
    2_000_000, 5_000_000, 10_000_000,
];

/// Counts durations by length. Counting one is two relaxed additions; the histogram of prometheus-client is locked for
/// each.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
}

impl Histogram {
    pub(crate) fn count(&self, duration: Duration) {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.iter().position(|bound| nanoseconds <= bound * 1000).unwrap_or(BOUNDS.len());
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// The seconds of all together, and for each bucket its upper end in seconds and its count.
    pub(crate) fn read(&self) -> (f64, Vec<(f64, u64)>) {
        let ends = BOUNDS.iter().map(|&bound| bound as f64 / 1e6).chain([f64::INFINITY]);
        let buckets = ends.zip(&self.buckets).map(|(end, count)| (end, count.load(Ordering::Relaxed))).collect();
        (self.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9, buckets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_counted_in_the_bucket_that_it_fits() {
        let histogram = Histogram::default();
        for nanoseconds in [0, 10_000, 10_001, 20_000, 10_000_000_000, 10_000_000_001] {
            histogram.count(Duration::from_nanos(nanoseconds));
        }
        let (sum, buckets) = histogram.read();
        assert!((sum - 20.000_040_002).abs() < 1e-9, "{sum}");
        let counted: Vec<_> = buckets.into_iter().filter(|&(_, count)| count > 0).collect();
        assert_eq!(counted, [(0.000_01, 2), (0.000_02, 2), (10.0, 1), (f64::INFINITY, 1)]);
    }
}
