//! A flood of one key: it ends with the ninth copy at the latest, and changes nothing else.

use crate::figure::{count, figure, seconds_since};
use crate::run::Run;
use crate::times::Times;
use concurrent_cuckoo_filter::InsertError;
use fastrand::Rng;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;
use testkit::rate::most;
use testkit::{ABSENT, Filter, Promise, Shape, broken, slots};

const WRITERS: u64 = 2;

pub(super) fn run(run: &Run, rng: &mut Rng) {
    let start = Instant::now();
    let floods = run.choose(200_000, 10_000);
    let shape = Shape::of_slots(1 << 20, 16, rng);
    let filter = super::filled(&shape, 0.9);
    let stored = filter.len() as u64;
    let mut full = 0;
    for key in ABSENT..ABSENT + floods {
        let before = filter.count(&key);
        let (copies, error) = flood(&shape, &filter, key);
        full += u64::from(error == Refusal::Full);
        if !(0..copies).all(|_| filter.remove(&key)) || filter.count(&key) != before {
            broken(Promise::Removal, &shape, key, format_args!("{copies} copies were not removed"));
        }
    }
    check_residents(&shape, &filter, stored);
    let expected = floods as f64 * keys_of_a_pair(&filter);
    if full > most(expected) {
        broken(Promise::Copies, &shape, None, format_args!("{full} floods ended as full, {expected:.1} expected"));
    }
    figure(
        "7.3",
        format_args!(
            "of {} floods of one key into a filter at 90 % load {} ended as too many copies when all 8 slots held its class, \
             and {full} sooner as full, where another key has the same two buckets ({expected:.1} expected); the other keys \
             stayed as they were: {}",
            count(floods),
            count(floods - full),
            seconds_since(start)
        ),
    );
    refusals(run, &shape, &filter, rng);
}

#[derive(PartialEq, Eq)]
enum Refusal {
    TooManyCopies,
    Full,
}

/// How many keys a pair of buckets has on average: they cannot leave it to make room for a key with the same pair. A
/// bucket makes a pair with half of the others of its shard, of which the filter has four.
fn keys_of_a_pair(filter: &Filter) -> f64 {
    let buckets = slots(filter) / 4.0 / filter.shards() as f64;
    filter.len() as f64 / filter.shards() as f64 / (buckets * buckets / 4.0)
}

/// Inserts a key until it is refused; returns how many copies went in, and why no more did.
fn flood(shape: &Shape, filter: &Filter, key: u64) -> (usize, Refusal) {
    for copies in 0..=8 {
        match (filter.insert(&key), filter.count(&key)) {
            (Ok(()), _) => {}
            (Err(InsertError::TooManyCopies), 8) => return (copies, Refusal::TooManyCopies),
            (Err(InsertError::Full), ..8) => return (copies, Refusal::Full),
            (Err(error), there) => {
                broken(Promise::Copies, shape, key, format_args!("{there} copies of its class, then: {error}"))
            }
        }
    }
    broken(Promise::Copies, shape, key, "a ninth copy went in")
}

/// The keys that filled it are there, no more and no less.
fn check_residents(shape: &Shape, filter: &Filter, stored: u64) {
    if filter.len() as u64 != stored {
        broken(Promise::Count, shape, None, format_args!("len is {} of {stored} copies", filter.len()));
    }
    if let Some(key) = (0..stored).find(|key| filter.count(key) == 0) {
        broken(Promise::Refusal, shape, key, "lost in a flood of another key");
    }
}

/// The time of each refusal, alone and concurrently with writers. Alone, not a byte of the filter changes.
fn refusals(run: &Run, shape: &Shape, filter: &Filter, rng: &mut Rng) {
    let refusals = run.choose(1_000_000, 50_000);
    let mut keys = std::iter::repeat_with(|| ABSENT + rng.u64(..ABSENT / 2));
    let is_saturated = |key: &u64| flood(shape, filter, *key).1 == Refusal::TooManyCopies;
    let key = keys.find(is_saturated).expect("endless");
    let (before, relocations) = (snapshot(filter), filter.stats().relocations);
    let alone = refuse(shape, filter, key, refusals);
    if snapshot(filter) != before || filter.stats().relocations != relocations {
        broken(Promise::Refusal, shape, key, "refusals changed the filter");
    }
    let (stop, barrier) = (&AtomicBool::new(false), &Barrier::new(WRITERS as usize + 1));
    let contended = thread::scope(|scope| {
        for number in 1..=WRITERS {
            scope.spawn(move || {
                let own = (number + 1) * ABSENT;
                barrier.wait();
                while !stop.load(Ordering::Relaxed) {
                    write(shape, filter, own..own + 1024);
                }
            });
        }
        barrier.wait();
        let times = refuse(shape, filter, key, refusals);
        stop.store(true, Ordering::Relaxed);
        times
    });
    if filter.count(&key) != 8 {
        broken(Promise::Refusal, shape, key, "not 8 copies after refusals concurrent with writers");
    }
    figure(
        "7.4",
        format_args!(
            "refusals as too many copies, {} of each: alone {alone}; with {WRITERS} writers {contended}",
            count(refusals)
        ),
    );
}

fn snapshot(filter: &Filter) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.write_to(&mut bytes).expect("memory takes all bytes");
    bytes
}

fn refuse(shape: &Shape, filter: &Filter, key: u64, refusals: u64) -> Times {
    let mut times = Times::in_runs_of(100_000);
    for _ in 0..refusals {
        if !matches!(times.time(|| filter.insert(&key)), Err(InsertError::TooManyCopies)) {
            broken(Promise::Copies, shape, key, "a key of 8 copies was not refused as too many copies");
        }
    }
    times
}

fn write(shape: &Shape, filter: &Filter, own: std::ops::Range<u64>) {
    for key in own.clone() {
        if let Err(error) = filter.insert(&key) {
            broken(Promise::Capacity, shape, key, format_args!("at 90 % load: {error}"));
        }
    }
    for key in own {
        if !filter.remove(&key) {
            broken(Promise::Removal, shape, key, "remove did not find it");
        }
    }
}
