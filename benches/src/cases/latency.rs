//! How long single operations take, alone and with other threads.

use super::Plan;
use super::entrants::entrants;
use crate::clock::{self, hash};
use crate::contestants::{Version, ours};
use crate::field::{Field, Size, keys};
use crate::record::{Record, Table};
use crate::slices::{self, Case};
use fastrand::Rng;
use hdrhistogram::Histogram;
use rayon::ThreadPoolBuilder;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];
const WRITERS: usize = 4;
/// Single operations of a slice.
const SLICE: usize = 25_000;

pub(super) fn run(plan: &Plan, record: &mut Record) {
    let log2 = if plan.quick { 16 } else { 20 };
    let present = Field::<u64>::new(log2, 0).present;
    record.heading("Latency");
    record.text(&format!(
        "u64 keys, 2^{log2} slots at 95 % load, each operation between two readings of the clock, which are part of all these \
         figures."
    ));
    alone(plan, record, log2, &present);
    with_writers(plan, record, log2, &present);
    with_bulk_loads(plan, record);
}

/// Times of operations.
pub(super) struct Times {
    /// Nanoseconds.
    histogram: Histogram<u64>,
    /// Present keys that were not found, and writes that failed.
    missed: usize,
}

impl Times {
    pub(super) fn new() -> Self {
        Times { histogram: Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("bounds in order"), missed: 0 }
    }

    pub(super) fn time<T>(&mut self, operation: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = operation();
        self.histogram.saturating_record(start.elapsed().as_nanos() as u64);
        result
    }

    pub(super) fn quantile(&self, quantile: f64) -> f64 {
        self.histogram.value_at_quantile(quantile) as f64
    }
}

/// Keys to look up, and whether they are present: half of them, in random order.
struct Reads(Vec<(u64, bool)>);

impl Reads {
    fn new(stable: &[u64]) -> Self {
        let mut random = Rng::with_seed(11);
        let one = |_| match random.bool() {
            true => (stable[random.usize(..stable.len())], true),
            false => (random.u64(..), false),
        };
        Reads((0..1 << 16).map(one).collect())
    }

    /// Looks keys up for this long.
    fn time(&self, length: Duration, lookup: impl Fn(&u64) -> bool) -> Times {
        let (mut times, mut wrong) = (Times::new(), 0);
        let begin = Instant::now();
        for (key, present) in self.0.iter().cycle() {
            let found = times.time(|| lookup(black_box(key)));
            times.missed += usize::from(*present && !found);
            wrong += usize::from(!present && found);
            if begin.elapsed() > length {
                break;
            }
        }
        // 8 bits answer wrongly 3 times in 100.
        assert!(wrong as u64 <= times.histogram.len() / 20 + 100, "{wrong} false positives");
        times
    }
}

/// Single lookups and writes on one thread: percentiles of each slice, of which the 10th percentile counts.
fn alone(plan: &Plan, record: &mut Record, log2: u32, present: &[u64]) {
    plan.step("latency, alone");
    let (stored, absent) = (&present[..present.len() * 98 / 100], keys::<u64>(12, 1 << 16));
    let mut rows = Vec::new();
    for bits in [13, 16] {
        let filters: Vec<_> = plan
            .versions()
            .into_iter()
            .map(|Version { name, numbers, .. }| {
                let filter = numbers(Size::new(log2, bits));
                crate::most(filter.insert_all(stored), stored.len());
                (name, filter)
            })
            .collect();
        for (kind, quantile) in ["lookup", "insert"].into_iter().flat_map(|kind| [0.5, 0.99, 0.999].map(|q| (kind, q)))
        {
            let absent = &absent;
            let cases = filters.iter().map(|(name, filter)| {
                Case::new(*name, move |round| {
                    let mut times = Times::new();
                    for number in 0..if plan.quick { 1_000 } else { SLICE } {
                        let key = &absent[(round * SLICE + number) % absent.len()];
                        if kind == "lookup" {
                            black_box(times.time(|| filter.contains(key)));
                        } else if times.time(|| filter.insert(key)) {
                            assert!(filter.remove(key), "an inserted key is there");
                        }
                    }
                    times.quantile(quantile)
                })
            });
            let nanos = slices::take(plan.rounds, &mut cases.collect::<Vec<_>>());
            rows.push((format!("{kind}, {bits} bits"), quantile, nanos));
        }
    }
    let names = plan.versions().into_iter().map(|version| version.name);
    record.text("Alone, absent keys; of each slice's percentile, the 10th percentile over the slices:");
    let heads = names.flat_map(|name| ["p50", "p99", "p99.9"].map(|percentile| format!("{name}, {percentile}")));
    let mut table = Table::new(std::iter::once(String::new()).chain(heads));
    for row in rows.chunks(3) {
        let versions = 0..row[0].2.len();
        let cells = versions.flat_map(|version| row.iter().map(move |(_, _, nanos)| duration(nanos[version])));
        table.row(std::iter::once(row[0].0.clone()).chain(cells));
    }
    record.table(table);
}

/// A name, whether nothing may be missed, and what is done in a turn.
type Row<'a> = (String, bool, Turn<'a>);
type Turn<'a> = Box<dyn Fn() -> Times + 'a>;

/// Adds up what the rows did in their turns.
fn take(plan: &Plan, rows: &[Row]) -> Table {
    let mut all: Vec<Times> = rows.iter().map(|_| Times::new()).collect();
    for _ in 0..plan.few() {
        for ((name, faithful, turn), times) in rows.iter().zip(&mut all) {
            let taken = turn();
            assert!(!faithful || taken.missed == 0, "{name}: {} missed", taken.missed);
            times.histogram.add(&taken.histogram).expect("equal bounds");
            times.missed += taken.missed;
        }
    }
    let heads = ["", "p50", "p90", "p99", "p99.9", "p99.99", "worst", "operations, M", "missed"];
    let mut table = Table::new(heads);
    for ((name, ..), times) in rows.iter().zip(all) {
        let quantiles = QUANTILES.map(|quantile| duration(times.quantile(quantile)));
        let rest = [
            duration(times.histogram.max() as f64),
            format!("{:.1}", times.histogram.len() as f64 / 1e6),
            times.missed.to_string(),
        ];
        table.row(std::iter::once(name.clone()).chain(quantiles).chain(rest));
    }
    table
}

fn with_writers(plan: &Plan, record: &mut Record, log2: u32, present: &[u64]) {
    let (own, stable) = present.split_at(present.len() / 4);
    let own: Vec<&[u64]> = own.chunks_exact(own.len() / WRITERS).collect();
    let entrants = entrants::<u64>(log2, |contestant| contestant.removes);
    let sets: Vec<_> = entrants.iter().map(|entrant| entrant.filled(present).0).collect();
    let reads = Reads::new(stable);
    record.text(
        "Lookups of one thread, half of them of present keys, while writers remove and insert keys of their own. *Writers \
         only hash* is the baseline, what the scheduler and the machine take: this crate's lookups while as many threads \
         touch no filter. *The clock* is what its readings take. *Missed* are present keys that were not found and writes \
         that failed. A lookup that waits is one lookup, however long it waits; how many there were tells the rest.",
    );
    for writers in [0, 1, WRITERS] {
        plan.step(&format!("latency with {writers} writers"));
        // More threads than cores need more time to show themselves.
        let length = length(plan, if writers < WRITERS { 250 } else { 600 });
        let (own, reads) = (&own, &reads);
        let hashing = |_: usize, stop: &AtomicBool| hash(stop);
        let ours = &sets[0];
        let mut rows: Vec<Row> = vec![(
            "this crate, writers only hash".into(),
            true,
            Box::new(move || with(writers, hashing, || reads.time(length, |key| ours.contains(key)))),
        )];
        rows.extend(entrants.iter().zip(&sets).map(|(entrant, set)| -> Row {
            let write = move |writer: usize, stop: &AtomicBool| {
                let mut failed = 0;
                for key in own[writer].iter().cycle().take_while(|_| !stop.load(Ordering::Relaxed)) {
                    failed += usize::from(!set.remove(key)) + usize::from(!set.insert(key));
                }
                failed
            };
            let turn = move || with(writers, write, || reads.time(length, |key| set.contains(key)));
            (entrant.label.clone(), entrant.contestant.faithful(), Box::new(turn))
        }));
        let clock = move || with(writers, hashing, || Times { missed: 0, ..reads.time(length, |_| false) });
        rows.push(("the clock".into(), true, Box::new(clock)));
        record.text(&format!("Writers: {writers}"));
        record.table(take(plan, &rows));
    }
}

/// Lookups, and single writes, while other threads write, load keys in bulk and save.
fn with_bulk_loads(plan: &Plan, record: &mut Record) {
    let log2 = plan.large;
    plan.step(&format!("latency with bulk loads and saves, 2^{log2} slots"));
    let present: Vec<u64> = keys(13, Size::new(log2, 13).keys);
    let (stable, round) = present.split_at(present.len() * 8 / 10);
    let filter = ours::build::<u64>(Size::new(log2, 13));
    assert_eq!(filter.par_insert(stable).inserted, stable.len());
    let pool = ThreadPoolBuilder::new().num_threads(2).build().expect("threads");
    let (reads, length) = (Reads::new(stable), length(plan, 600));
    let hashing = |_: usize, stop: &AtomicBool| pool.broadcast(|_| hash(stop)).into_iter().sum();
    let load = |_: usize, stop: &AtomicBool| {
        while !stop.load(Ordering::Relaxed) {
            assert_eq!(pool.install(|| filter.par_insert(round)).inserted, round.len());
            assert_eq!(pool.install(|| filter.par_remove(round)).removed, round.len());
        }
        0
    };
    let save = |_: usize, stop: &AtomicBool| {
        let mut memory = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            memory.clear();
            filter.write_to(&mut memory).expect("memory");
        }
        0
    };
    let others = |number: usize, stop: &AtomicBool| {
        let own: Vec<u64> = keys(15 + number as u64, 1 << 10);
        while !stop.load(Ordering::Relaxed) {
            own.iter().for_each(|key| filter.insert(key).expect("room"));
            own.iter().for_each(|key| assert!(filter.remove(key)));
        }
        0
    };
    let read = || reads.time(length, |key| filter.contains(key));
    let own: Vec<u64> = keys(14, 1 << 10);
    let write = || {
        let mut times = Times::new();
        let begin = Instant::now();
        for key in own.iter().cycle() {
            times.time(|| filter.insert(key)).expect("room");
            assert!(times.time(|| filter.remove(key)));
            if begin.elapsed() > length {
                return times;
            }
        }
        unreachable!("a cycle ends when its time is over")
    };
    let rows: [(&str, Turn); 9] = [
        ("lookups, pool only hashes", Box::new(|| with(1, hashing, read))),
        ("lookups, bulk loads", Box::new(|| with(1, load, read))),
        ("lookups, saves", Box::new(|| with(1, save, read))),
        ("writes, alone", Box::new(write)),
        ("writes, pool only hashes", Box::new(|| with(1, hashing, write))),
        ("writes, 1 writer more", Box::new(|| with(1, others, write))),
        ("writes, 3 writers more", Box::new(|| with(3, others, write))),
        ("writes, bulk loads", Box::new(|| with(1, load, write))),
        ("writes, saves", Box::new(|| with(1, save, write))),
    ];
    record.text(&format!(
        "This crate with 2^{log2} slots while others work on the same filter: bulk loads are rounds of `par_insert` and \
         `par_remove` of keys that take the load from 76 % to 95 %, on a pool of 2 threads; saves write snapshots to memory \
         without pause:"
    ));
    record.table(take(plan, &rows.map(|(name, turn)| (name.into(), true, turn))));
}

/// Times of some work while other threads do something else; adds what they missed.
fn with(threads: usize, other: impl Fn(usize, &AtomicBool) -> usize + Sync, work: impl FnOnce() -> Times) -> Times {
    let (mut times, missed) = clock::with(threads, other, work);
    times.missed += missed;
    times
}

/// How long a turn takes.
fn length(plan: &Plan, millis: u64) -> Duration {
    Duration::from_millis(if plan.quick { 10 } else { millis })
}

/// Nanoseconds in a unit that suits them, with three digits.
pub(super) fn duration(nanos: f64) -> String {
    let (value, unit) = [(1e9, "s"), (1e6, "ms"), (1e3, "us")]
        .into_iter()
        .find(|&(unit, _)| nanos >= unit)
        .map_or((nanos, "ns"), |(size, unit)| (nanos / size, unit));
    let digits = match value {
        _ if unit == "ns" => 0,
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    format!("{value:.digits$} {unit}")
}
