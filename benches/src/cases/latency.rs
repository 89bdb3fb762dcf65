//! The latency of single operations, alone and while other threads write.

use super::Plan;
use crate::clock::{self, hash};
use crate::contestants::{self, Contestant};
use crate::field::{Field, keys};
use crate::record::{Record, Table};
use fastrand::Rng;
use hdrhistogram::Histogram;
use std::hint::black_box;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const QUANTILES: [f64; 4] = [0.5, 0.99, 0.999, 0.9999];
const WRITERS: usize = 4;

/// The times of operations, and the number of them that missed a present key or failed.
struct Times(Histogram<u64>, usize);

impl Times {
    fn new() -> Self {
        Times(Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("bounds in order"), 0)
    }

    fn time<T>(&mut self, operation: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = operation();
        self.0.saturating_record(start.elapsed().as_nanos() as u64);
        result
    }

    /// Calls `each` with one key after the other for this long.
    fn of<K>(keys: &[K], length: Duration, mut each: impl FnMut(&mut Times, &K)) -> Self {
        let (mut times, begin) = (Times::new(), Instant::now());
        keys.iter().cycle().take_while(|_| begin.elapsed() < length).for_each(|key| each(&mut times, key));
        times
    }

    /// Half of the keys are present.
    fn of_lookups(reads: &[(u64, bool)], length: Duration, lookup: impl Fn(&u64) -> bool) -> Self {
        Times::of(reads, length, |times, (key, present)| {
            let found = times.time(|| lookup(black_box(key)));
            times.1 += usize::from(*present && !found);
        })
    }
}

/// A name, whether a missed key is an error, and the function that is called per turn.
type Row<'a> = (String, bool, Box<dyn Fn() -> Times + 'a>);

pub(super) fn run(plan: &Plan, record: &mut Record) {
    let log2 = plan.log2(20);
    let present = Field::new(log2, 0).present;
    record.heading("Latency");
    record.text(&format!(
        "2^{log2} slots at 95 % load. All figures include two readings of the clock, before and after each operation. \
         Lookups of one thread, half of them of present keys, alone and while {WRITERS} writers remove and insert keys \
         of their own. *Writers only hash* is the baseline for the scheduler and the machine: this crate's lookups while \
         the other threads touch no filter. *Missed* counts present keys that were not found, and failed writes. A \
         lookup counts once, however long it waits, so compare the numbers of operations, too."
    ));
    let (own, stable) = present.split_at(present.len() / 4);
    let own: Vec<&[u64]> = own.chunks_exact(own.len() / WRITERS).collect();
    let mut random = Rng::with_seed(11);
    let mut read = |_| match random.bool() {
        true => (stable[random.usize(..stable.len())], true),
        false => (random.u64(..), false),
    };
    let reads: Vec<_> = (0..1 << 16).map(&mut read).collect();
    let all = contestants::all(|one| one.removes && one.family != contestants::Family::Kind);
    let sets: Vec<_> = all.iter().map(|contestant| contestant.filled(log2, &present)).collect();
    for writers in [0, WRITERS] {
        plan.step(&format!("latency with {writers} writers"));
        // With more threads than cores, effects take longer to appear.
        let length = Duration::from_millis(if plan.quick { 10 } else { 250 + 100 * writers as u64 });
        let (own, reads) = (&own, &reads);
        let only_hash = || {
            clock::with(writers, |_, stop| hash(stop), || Times::of_lookups(reads, length, |key| sets[0].contains(key)))
        };
        let mut rows: Vec<Row> = vec![("this crate, writers only hash".into(), true, Box::new(move || only_hash().0))];
        rows.extend(all.iter().zip(&sets).map(|(contestant, set)| -> Row {
            let write = move |writer: usize, stop: &AtomicBool| {
                let keys = own[writer].iter().cycle().take_while(|_| !stop.load(Ordering::Relaxed));
                keys.map(|key| usize::from(!set.remove(key)) + usize::from(!set.insert(key))).sum()
            };
            let turn = move || {
                let lookups = || Times::of_lookups(reads, length, |key| set.contains(key));
                let (times, failed) = clock::with(writers, write, lookups);
                Times(times.0, times.1 + failed)
            };
            (contestant.name.clone(), contestant.is_faithful(), Box::new(turn))
        }));
        table(plan, record, &format!("lookups, {writers} writers"), &rows);
    }
    with_bulk_loads(plan, record);
    with_refusals(plan, record);
}

/// Runs the rows in turn, and adds up their times.
fn table(plan: &Plan, record: &mut Record, name: &str, rows: &[Row]) {
    let mut all: Vec<Times> = rows.iter().map(|_| Times::new()).collect();
    for _ in 0..plan.few() {
        for ((name, faithful, turn), times) in rows.iter().zip(&mut all) {
            let Times(taken, missed) = turn();
            assert!(!faithful || missed == 0, "{name}: {missed} missed");
            times.0.add(taken).expect("equal bounds");
            times.1 += missed;
        }
    }
    let mut table = Table::new([name, "p50", "p99", "p99.9", "p99.99", "worst", "operations, M", "missed"]);
    for ((name, ..), Times(times, missed)) in rows.iter().zip(all) {
        let quantiles = QUANTILES.map(|quantile| duration(times.value_at_quantile(quantile) as f64));
        let rest = [duration(times.max() as f64), format!("{:.1}", times.len() as f64 / 1e6), missed.to_string()];
        table.row(std::iter::once(name.clone()).chain(quantiles).chain(rest));
    }
    record.table(&table);
}

/// Single writes while two threads load keys in bulk and remove them.
fn with_bulk_loads(plan: &Plan, record: &mut Record) {
    let log2 = plan.log2(24);
    plan.step(&format!("latency with bulk loads, 2^{log2} slots"));
    let size = crate::Size::new(log2, 13);
    let present = keys(13, size.keys);
    let (stable, round) = present.split_at(present.len() * 8 / 10);
    let filter = &contestants::ours::build(size);
    assert_eq!(filter.par_insert(stable).inserted, stable.len());
    let load = |_: usize, stop: &AtomicBool| {
        while !stop.load(Ordering::Relaxed) {
            assert_eq!(filter.par_insert(round).inserted, round.len());
            assert_eq!(filter.bulk().remove(round).removed, round.len());
        }
        0
    };
    let own = keys(14, 1 << 10);
    let length = Duration::from_millis(if plan.quick { 10 } else { 600 });
    let write = || {
        Times::of(&own, length, |times, key| {
            times.time(|| filter.insert(key)).expect("room");
            assert!(times.time(|| filter.remove(key)));
        })
    };
    let rows: [Row; 2] = [
        ("alone".into(), true, Box::new(write)),
        ("while 2 threads load in bulk".into(), true, Box::new(|| clock::with(1, load, write).0)),
    ];
    table(plan, record, &format!("writes, this crate, 2^{log2} slots"), &rows);
}

/// Single unique insertions of present keys into a full filter while other threads are refused without pause.
fn with_refusals(plan: &Plan, record: &mut Record) {
    let log2 = plan.log2(16);
    plan.step(&format!("latency with refusals, 2^{log2} slots"));
    let present = keys(15, crate::Size::new(log2, 13).keys);
    let ours = contestants::all(Contestant::is_default);
    let versions = || ours.iter().chain(plan.earlier.iter().filter(|one| one.is_default()));
    let sets: Vec<_> = versions().map(|version| version.filled(log2, &present)).collect();
    assert!(sets.iter().all(|set| set.contains_all(&present) == present.len()));
    let length = Duration::from_millis(if plan.quick { 10 } else { 2000 });
    let mut rows: Vec<Row> = Vec::new();
    for (version, set) in versions().zip(&sets) {
        let mut random = Rng::with_seed(16);
        while !(0..1000).all(|_| !set.insert(&random.u64(..))) {}
        let insert = |thread: usize, stop: &AtomicBool| {
            let mut random = Rng::with_seed(thread as u64);
            // A few keys still find a slot.
            while !stop.load(Ordering::Relaxed) {
                set.insert(&random.u64(..));
            }
            0
        };
        let (_, unique) = set.more().into_iter().find(|(name, _)| *name == "insert_unique").expect("a plain filter");
        let (unique, present) = (Rc::new(unique), &present);
        let write = move || {
            Times::of(present, length, |times, key| {
                std::thread::sleep(Duration::from_micros(100));
                times.1 += times.time(|| unique(std::slice::from_ref(key)));
            })
        };
        let (name, alone) = (&version.name, write.clone());
        let hashing = move || clock::with(WRITERS, |_, stop| hash(stop), &alone).0;
        rows.push((format!("{name}, while {WRITERS} threads hash"), true, Box::new(hashing)));
        let refused = move || clock::with(WRITERS, insert, &write).0;
        rows.push((format!("{name}, while {WRITERS} threads are refused"), true, Box::new(refused)));
    }
    table(plan, record, &format!("unique insertions of present keys, 2^{log2} slots, full"), &rows);
}

/// Formats a time in a suitable unit, with three digits.
fn duration(nanos: f64) -> String {
    match nanos {
        1e9.. => format!("{:.2} s", nanos / 1e9),
        1e6.. => format!("{:.2} ms", nanos / 1e6),
        1e5.. => format!("{:.0} us", nanos / 1e3),
        1e3.. => format!("{:.2} us", nanos / 1e3),
        _ => format!("{nanos:.0} ns"),
    }
}
