//! How long a single lookup takes while others write.

mod beside;

use super::Plan;
use super::contestants::{self, Entrant, entrants};
use super::turns::median;
use crate::record::figure::{Axis, Figure};
use crate::record::{Record, Table};
use beside::{Reads, Times, beside, hash, write};
use compare::{Field, Passes, Size, peers};
use rayon::ThreadPoolBuilder;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];
/// The quantile that the bars are about.
const JUDGED: usize = 3;
/// How many times as long as beside threads that touch no filter it may take.
const BAR: f64 = 1.5;
const WRITERS: usize = 4;
/// This crate's entrants.
const OURS: [&str; 2] = [contestants::OURS, "this crate, 8 bits"];

pub(crate) fn run(plan: &Plan, record: &mut Record) {
    let log2 = if plan.quick { 16 } else { 20 };
    let field = Field::<u64>::new(log2, 0);
    let stage = Stage::new(log2, &field.present);
    record.heading("Latency of a lookup beside writers");
    record.text(&format!(
        "One thread looks up u64 keys, of which half are present, and times each lookup by itself; writers remove and insert \
         keys of their own at 95 % load, 2^{log2} slots. Medians of the turns; *worst* is that of all turns, and *missed* counts \
         present keys that were not found and writes that failed. *Writers only hash* is the baseline, what the scheduler and \
         the machine take: this crate's lookups beside as many threads that touch no filter. *The clock*, beside the same \
         threads, is what its own readings take, which is part of all these figures. A lookup that waits is one lookup, \
         however long it waits; how many there were tells the rest."
    ));
    for writers in [0, 1, WRITERS] {
        let results = stage.turns(plan, writers);
        record.text(&match writers {
            0 => "No writer:".into(),
            1 => "1 writer:".into(),
            _ => format!("{writers} writers:"),
        });
        record.table(table(&results));
        if writers == WRITERS {
            let title = format!("A lookup beside {writers} writers, {} cores", cores());
            record.figure("latency", &title, figure(&title, &results));
            record.text(&judged(&results));
        }
    }
    bulk(plan, record, log2, &field.present);
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// How long readers read in one turn: more threads than cores need more time to show themselves.
fn length(plan: &Plan, writers: usize) -> Duration {
    Duration::from_millis(match writers {
        _ if plan.quick => 10,
        0 => 300,
        1 => 500,
        _ => 800,
    })
}

/// One who was timed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Clock,
    Baseline,
    Ours { bits: u32 },
    Peer { colour: usize, locks: bool, bits: u32 },
}

struct Timed {
    name: &'static str,
    role: Role,
    turns: Vec<Times>,
}

impl Timed {
    fn quantiles(&self, number: usize) -> Vec<f64> {
        self.turns.iter().map(|times| times.histogram.value_at_quantile(QUANTILES[number]) as f64).collect()
    }

    fn quantile(&self, number: usize) -> f64 {
        median(&self.quantiles(number))
    }

    fn worst(&self) -> f64 {
        self.turns.iter().map(|times| times.histogram.max()).max().unwrap_or(0) as f64
    }
}

/// The tables and the keys of all.
struct Stage<'a> {
    entrants: Vec<Entrant<u64>>,
    sets: Vec<Box<dyn Passes<u64>>>,
    /// What each writer removes and inserts.
    own: Vec<&'a [u64]>,
    reads: Reads,
}

impl<'a> Stage<'a> {
    fn new(log2: u32, present: &'a [u64]) -> Self {
        let (own, stable) = present.split_at(present.len() / 4);
        // One peer can do 8 bits only, so this crate shows its narrow filter too.
        let narrow = entrants::<u64>(log2, |contestant| contestant.name == OURS[0]);
        let narrow = narrow.into_iter().map(|ours| ours.with_bits(OURS[1], 8));
        let mut entrants = entrants::<u64>(log2, |contestant| contestant.removes);
        entrants.splice(1..1, narrow);
        Stage {
            sets: entrants.iter().map(|entrant| entrant.filled(present).0).collect(),
            entrants,
            own: own.chunks_exact(own.len() / WRITERS).collect(),
            reads: Reads::new(stable),
        }
    }

    fn turns(&self, plan: &Plan, writers: usize) -> Vec<Timed> {
        let mut all = vec![Timed { name: "this crate, writers only hash", role: Role::Baseline, turns: Vec::new() }];
        all.extend(self.entrants.iter().map(|entrant| {
            let bits = entrant.size.bits;
            let peer = Role::Peer { colour: entrant.colour, locks: entrant.locks, bits };
            Timed {
                name: entrant.name,
                role: if OURS.contains(&entrant.name) { Role::Ours { bits } } else { peer },
                turns: Vec::new(),
            }
        }));
        all.push(Timed { name: "the clock", role: Role::Clock, turns: Vec::new() });
        if writers == 0 {
            all.remove(0);
        }
        let length = length(plan, writers);
        for turn in 0..plan.turns {
            plan.step(&format!("latency beside {writers} writers, turn {} of {}", turn + 1, plan.turns));
            for timed in &mut all {
                let times = self.time(timed, writers, length);
                timed.turns.push(times);
            }
        }
        all
    }

    fn time(&self, timed: &Timed, writers: usize, length: Duration) -> Times {
        // The baseline looks at our table too.
        let number = self.entrants.iter().position(|entrant| entrant.name == timed.name).unwrap_or(0);
        let (set, faithful) = (&*self.sets[number], self.entrants[number].faithful);
        let idle = |_: usize, stop: &AtomicBool| {
            hash(stop);
            0
        };
        let times = match timed.role {
            Role::Clock => {
                let mut times = beside(writers, idle, || self.reads.time(length, |_| false));
                times.missed = 0;
                return times;
            }
            Role::Baseline => beside(writers, idle, || self.reads.time(length, |key| set.contains_one(key))),
            Role::Ours { .. } | Role::Peer { .. } => beside(
                writers,
                |writer, stop| write(set, self.own[writer], stop),
                || self.reads.time(length, |key| set.contains_one(key)),
            ),
        };
        assert!(!faithful || times.missed == 0, "{} missed {}", timed.name, times.missed);
        times
    }
}

/// Lookups while bulk operations change the same filter.
fn bulk(plan: &Plan, record: &mut Record, log2: u32, present: &[u64]) {
    plan.step("latency beside bulk loads");
    let (stable, round) = present.split_at(present.len() * 8 / 10);
    let filter = peers::ours::build::<u64>(Size::new(log2, 16));
    assert_eq!(filter.insert_batch(stable).inserted, stable.len());
    let pool = ThreadPoolBuilder::new().num_threads(2).build().expect("threads");
    let reads = Reads::new(stable);
    let length = length(plan, 2);
    let read = || reads.time(length, |key| filter.contains(key));
    let load = |_: usize, stop: &AtomicBool| {
        while !stop.load(Ordering::Relaxed) {
            assert_eq!(pool.install(|| filter.par_insert(round)).inserted, round.len());
            assert_eq!(pool.install(|| filter.par_remove(round)).removed, round.len());
        }
        0
    };
    let idle = |_: usize, stop: &AtomicBool| {
        pool.broadcast(|_| hash(stop));
        0
    };
    let mut results =
        [("this crate, pool only hashes", Role::Baseline), ("this crate, bulk load", Role::Ours { bits: 16 })]
            .map(|(name, role)| Timed { name, role, turns: Vec::new() });
    for _ in 0..plan.turns {
        results[0].turns.push(beside(1, idle, read));
        results[1].turns.push(beside(1, load, read));
    }
    let missed: usize = results.iter().flat_map(|timed| &timed.turns).map(|times| times.missed).sum();
    assert_eq!(missed, 0, "this crate missed keys");
    record.text(
        "Beside a bulk load, in rounds of `par_insert` and `par_remove` of keys that take the load from 76 % to 95 %, on a pool \
         of 2 threads, and beside a pool of which the threads only hash:",
    );
    record.table(table(&results));
}

fn table(results: &[Timed]) -> Table {
    let quantiles = QUANTILES.iter().map(|quantile| percentile(1.0 / (1.0 - quantile)));
    let rest = ["worst", "lookups, M", "missed"].map(String::from);
    let mut table = Table::new(std::iter::once(String::new()).chain(quantiles).chain(rest));
    for timed in results {
        let mut row = vec![timed.name.to_string()];
        row.extend((0..QUANTILES.len()).map(|number| duration(timed.quantile(number))));
        row.push(duration(timed.worst()));
        let count: u64 = timed.turns.iter().map(|times| times.histogram.len()).sum();
        row.push(format!("{:.1}", count as f64 / 1e6));
        row.push(timed.turns.iter().map(|times| times.missed).sum::<usize>().to_string());
        table.row(row);
    }
    table
}

/// The name of the percentile beyond which one in `one_in` lies.
fn percentile(one_in: f64) -> String {
    format!("p{}", ((1.0 - 1.0 / one_in) * 1e6).round() / 1e4)
}

/// Nanoseconds in a unit that suits them, with three digits.
fn duration(nanos: f64) -> String {
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

fn figure(title: &str, results: &[Timed]) -> String {
    let one_in = QUANTILES.map(|quantile| 1.0 / (1.0 - quantile));
    let x = Axis::log("percentile of lookups").ticks(one_in).labels(percentile);
    let mut figure = Figure::new(title, x, Axis::log("time of a lookup").labels(round_duration));
    for timed in results {
        let points = one_in.into_iter().enumerate().map(|(number, x)| (x, timed.quantile(number)));
        figure = match timed.role {
            Role::Clock => figure,
            Role::Baseline => figure.reference(timed.name, points),
            Role::Ours { .. } => figure.ours(timed.name, points),
            Role::Peer { locks: true, colour, .. } => figure.coloured(colour, timed.name, points),
            Role::Peer { locks: false, .. } => figure,
        };
    }
    figure.svg()
}

fn round_duration(nanos: f64) -> String {
    duration(nanos.round()).replace(".00", "").replace(".0 ", " ")
}

/// Says whether the bars are met.
fn judged(results: &[Timed]) -> String {
    let of = |role: Role| results.iter().find(|timed| timed.role == role).expect("all were timed");
    let (ours, baseline) = (of(Role::Ours { bits: 16 }), of(Role::Baseline));
    let turns = ours.quantiles(JUDGED).into_iter().zip(baseline.quantiles(JUDGED));
    let ratio = median(&turns.map(|(ours, theirs)| ours / theirs).collect::<Vec<_>>());
    let not_worse: Vec<&str> = results
        .iter()
        .filter(|timed| match timed.role {
            Role::Peer { locks: true, bits, .. } => timed.quantile(JUDGED) <= of(Role::Ours { bits }).quantile(JUDGED),
            _ => false,
        })
        .map(|timed| timed.name)
        .collect();
    let met = |met: bool| if met { "met" } else { "MISSED" };
    format!(
        "p99.9 beside {WRITERS} writers: {} for this crate, {} while the writers only hash, {ratio:.2} times as long \
         (median of the turns), at most {BAR}: {}. Less than every peer of the same width that locks: {}{}.",
        duration(ours.quantile(JUDGED)),
        duration(baseline.quantile(JUDGED)),
        met(ratio <= BAR),
        met(not_worse.is_empty()),
        if not_worse.is_empty() { String::new() } else { format!(" ({})", not_worse.join(", ")) },
    )
}
