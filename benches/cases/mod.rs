//! What the criterion benchmarks share: their cases, which are contestants at sizes and widths.
//!
//! A size is built only if the filter on the command line leaves something to run at it. `BENCH_SLOTS=27,29` asks for
//! tables of 2^27 and 2^29 slots in place of 2^16, 2^20 and 2^24; a filter such as `u64/this crate` keeps the memory in
//! bounds, since 2^29 keys of text alone are 14 GiB. With `--test` only 2^16 is run. Each benchmark takes several
//! minutes in full.

use compare::{Contestant, Contested, Field, Key, Size};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, SamplingMode};
use std::cell::OnceCell;
use std::time::Duration;

const WIDTHS: [u32; 3] = [8, 12, 16];

/// One contestant at one size and width.
pub(crate) struct Case<'a, K> {
    pub(crate) contestant: &'a Contestant<K>,
    pub(crate) size: Size,
    /// The end of the names of its benchmarks.
    pub(crate) name: String,
    /// How many keys a pass of lookups asks for.
    pub(crate) probes: usize,
    log2: u32,
    field: &'a OnceCell<Field<K>>,
}

impl<K: Key> Case<'_, K> {
    /// The keys, made when they are first needed.
    pub(crate) fn field(&self) -> &Field<K> {
        self.field.get_or_init(|| Field::new(self.log2, self.probes))
    }
}

/// Runs something for all cases, a field of keys at a time.
pub(crate) fn each<K: Contested>(mut run: impl FnMut(&Case<K>)) {
    let contestants = K::contestants();
    for log2 in sizes() {
        let (field, probes) = (OnceCell::new(), 1 << (log2 + 2).min(20));
        for contestant in &contestants {
            let widths = WIDTHS.into_iter().filter(|&bits| (contestant.bits)(bits));
            // Fingerprints mean nothing to a set that keeps its keys.
            for bits in widths.filter(|&bits| !contestant.exact || bits == 16) {
                let width = if contestant.exact { "exact".into() } else { format!("{bits} bits") };
                let name = format!("2^{log2}/{width}/{}/{}", K::NAME, contestant.name);
                run(&Case { contestant, size: Size::new(log2, bits), name, probes, log2, field: &field });
            }
        }
    }
}

/// As criterion is used here: few samples, so that many cases end in minutes.
pub(crate) fn criterion() -> Criterion {
    let criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(400))
        .configure_from_args();
    // Criterion takes a filter for a regular expression, and the ^ of 2^16 for the beginning of a name.
    match std::env::args().find(|argument| argument.contains("2^")) {
        Some(filter) => criterion.with_filter(filter.replace("2^", r"2\^")),
        None => criterion,
    }
}

/// A group in which all samples run equally many passes.
pub(crate) fn group<'a>(criterion: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.sampling_mode(SamplingMode::Flat);
    group
}

fn sizes() -> Vec<u32> {
    if let Ok(list) = std::env::var("BENCH_SLOTS") {
        return list.split(',').map(size).collect();
    }
    let arguments: Vec<String> = std::env::args().collect();
    let has = |option: &str| arguments.iter().any(|argument| argument == option);
    // Criterion takes a run without --bench for a test.
    if has("--test") || !has("--bench") { vec![16] } else { vec![16, 20, 24] }
}

fn size(text: &str) -> u32 {
    text.parse().ok().filter(|log2| (16..=32).contains(log2)).unwrap_or_else(|| {
        eprintln!(
            "BENCH_SLOTS: numbers from 16 to 32 with commas between them, such as 27,29, are needed, not {text:?}"
        );
        std::process::exit(2);
    })
}
