//! Times of single calls.

use hdrhistogram::Histogram;
use std::fmt;
use std::time::Instant;

/// Times in runs of equal length. What is told is the median of the runs, for each quantile: who else was at work on the
/// machine for a while spoils some runs, and not all. The worst is that of all runs.
pub(crate) struct Times {
    run: Histogram<u64>,
    length: u64,
    /// p50 and p99.9 of each run that has ended.
    runs: Vec<[u64; 2]>,
    worst: u64,
    count: u64,
}

impl Times {
    pub(crate) fn in_runs_of(length: u64) -> Self {
        let run = Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("bounds in order");
        Times { run, length, runs: Vec::new(), worst: 0, count: 0 }
    }

    /// Does the work and notes the time.
    #[inline]
    pub(crate) fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (nanos, result) = timed(work);
        self.note(nanos);
        result
    }

    pub(crate) fn note(&mut self, nanos: u64) {
        self.run.saturating_record(nanos);
        self.worst = self.worst.max(nanos);
        self.count += 1;
        if self.run.len() == self.length {
            self.runs.push(quantiles(&self.run));
            self.run.reset();
        }
    }

    /// With those of another thread.
    pub(crate) fn join(mut self, other: Times) -> Times {
        self.run.add(&other.run).expect("equal bounds");
        self.runs.extend(other.runs);
        self.worst = self.worst.max(other.worst);
        self.count += other.count;
        self
    }

    pub(crate) fn len(&self) -> u64 {
        self.count
    }
}

/// Does the work and says how many nanoseconds it took.
#[inline]
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (u64, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed().as_nanos() as u64, result)
}

fn quantiles(run: &Histogram<u64>) -> [u64; 2] {
    [0.5, 0.999].map(|part| run.value_at_quantile(part))
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is short of a run counts only where there is no whole one.
        let runs = if self.runs.is_empty() { vec![quantiles(&self.run)] } else { self.runs.clone() };
        let [half, most] = [0, 1].map(|quantile| {
            let mut values: Vec<u64> = runs.iter().map(|run| run[quantile]).collect();
            values.sort_unstable();
            values[values.len() / 2] as f64 / 1e3
        });
        write!(f, "p50 {half:.2} us, p99.9 {most:.2} us, worst {:.0} us", self.worst as f64 / 1e3)
    }
}
