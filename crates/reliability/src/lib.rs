//! What the long checks of this package share. Each is a test, with small numbers; with `CUCKOO_FULL=1` it takes the large ones, and
//! prints a line `figure ROW: TEXT` for each row of `docs/reliability.md` that it fills.

use concurrent_cuckoo_filter::InsertError;
use fastrand::Rng;
use hdrhistogram::Histogram;
use std::io::Write;
use std::time::Instant;
use std::{fmt, io, panic, process};
use testkit::{Filter, Shape, broken};

/// Draws that `CUCKOO_SEED=N` repeats; what threads do concurrently differs each time. From here on, the first panic of any thread
/// ends the process: others may wait for that thread.
pub fn draws() -> Rng {
    let seed = std::env::var("CUCKOO_SEED").map(|seed| seed.parse().expect("a number"));
    let seed = seed.unwrap_or_else(|_| fastrand::u64(..1 << 32));
    panic::set_hook(Box::new(move |panic| {
        // Not by a macro, whose output libtest would keep.
        let _ = writeln!(io::stderr(), "\n{panic}\nto repeat the draws: CUCKOO_SEED={seed}");
        process::exit(101);
    }));
    Rng::with_seed(seed)
}

/// Prints the figure of this row.
pub fn figure(row: &str, text: impl fmt::Display) {
    println!("figure {row}: {text}");
}

/// A filter of this load, which holds the keys from 0 to its length. A class of few bits may be full before.
pub fn filled(shape: &Shape, load: f64) -> Filter {
    let filter = shape.build();
    let keys: Vec<u64> = (0..(load * shape.slots() as f64) as u64).collect();
    let report = filter.par_insert(&keys);
    assert_eq!(report.inserted, keys.len(), "a load of {load} is below the capacity: filter of {shape}");
    filter
}

/// Inserts a key of which there must be room, or the copy that is expected to be refused.
pub fn insert(shape: &Shape, filter: &Filter, key: u64, expected: Result<(), InsertError>) {
    let result = filter.insert(&key);
    if result != expected {
        broken(shape, key, format_args!("insert: {result:?} in place of {expected:?}"));
    }
}

/// Times of single calls in runs of equal length. The quantiles shown are the medians of those of the runs: other work on the
/// machine spoils some runs, and not all. The worst is that of all runs.
pub struct Times {
    run: Histogram<u64>,
    length: u64,
    /// p50 and p99.9 of each run that has ended.
    runs: Vec<[u64; 2]>,
    worst: u64,
    /// How many there are.
    pub count: u64,
}

impl Times {
    /// Without any.
    pub fn in_runs_of(length: u64) -> Self {
        let run = Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("bounds in order");
        Times { run, length, runs: Vec::new(), worst: 0, count: 0 }
    }

    /// Does the work, and notes the time.
    #[inline]
    pub fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        self.note(start.elapsed().as_nanos() as u64);
        result
    }

    /// Notes a time.
    pub fn note(&mut self, nanos: u64) {
        self.run.saturating_record(nanos);
        self.worst = self.worst.max(nanos);
        self.count += 1;
        if self.run.len() == self.length {
            self.runs.push(quantiles(&self.run));
            self.run.reset();
        }
    }

    /// Adds those of another thread.
    pub fn add(&mut self, other: Times) {
        self.run.add(&other.run).expect("equal bounds");
        self.runs.extend(other.runs);
        self.worst = self.worst.max(other.worst);
        self.count += other.count;
    }
}

fn quantiles(run: &Histogram<u64>) -> [u64; 2] {
    [0.5, 0.999].map(|part| run.value_at_quantile(part))
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A run that has not ended counts only where there is no whole one.
        let runs = if self.runs.is_empty() { vec![quantiles(&self.run)] } else { self.runs.clone() };
        let [half, most] = [0, 1].map(|quantile| {
            let mut values: Vec<u64> = runs.iter().map(|run| run[quantile]).collect();
            values.sort_unstable();
            values[values.len() / 2] as f64 / 1e3
        });
        write!(f, "p50 {half:.2} us, p99.9 {most:.2} us, worst {:.0} us", self.worst as f64 / 1e3)
    }
}
