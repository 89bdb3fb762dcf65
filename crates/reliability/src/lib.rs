//! The parts that the long checks share. Each check is a test with small numbers; with `CUCKOO_FULL=1` it takes the large numbers,
//! and prints a line `figure ROW: TEXT` for each row of `docs/reliability.md` that it fills.

use fastrand::Rng;
use hdrhistogram::Histogram;
use std::io::Write;
use std::time::Instant;
use std::{fmt, io, panic, process};
use testkit::{Filter, Shape};

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

/// A filter of this load, which holds the keys from 0 to its length. A class of few bits may be full before.
pub fn filled(shape: &Shape, load: f64) -> Filter {
    let filter = shape.build();
    let keys: Vec<u64> = (0..(load * shape.slots() as f64) as u64).collect();
    let report = filter.par_insert(&keys);
    assert_eq!(report.inserted, keys.len(), "a load of {load} is below the capacity: filter of {shape:?}");
    filter
}

/// Times of single calls.
pub struct Times(Histogram<u64>);

impl Default for Times {
    fn default() -> Self {
        Times(Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("bounds in order"))
    }
}

impl Times {
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
        self.0.saturating_record(nanos);
    }

    /// Adds those of another thread.
    pub fn add(&mut self, other: &Times) {
        self.0.add(&other.0).expect("equal bounds");
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.len()
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [half, most] = [0.5, 0.999].map(|part| self.0.value_at_quantile(part) as f64 / 1e3);
        write!(f, "p50 {half:.2} us, p99.9 {most:.2} us, worst {:.0} us", self.0.max() as f64 / 1e3)
    }
}
