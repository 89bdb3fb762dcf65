//! Contention: lookups of absent keys while writers relocate keys, or remove one of several copies, without pause. Each such
//! change advances the version that a miss checks, so the lookup may have to start again. The tests count the attempts.
//!
//! `CUCKOO_FULL=1 cargo test --release --lib contention -- --nocapture --test-threads=1` takes the figures; without the variable
//! each case is short. Attempts are counted by the thread of the lookup, in the hook of `Step::Repeated`, which a lookup that does
//! not repeat never reaches. Writers of unit tests read a thread-local at each of their steps, which makes them slower than those
//! of a release. Latencies include the readings of the clock, whose own latency is printed.

use crate::internal::panic_safety::{Class, class};
use crate::internal::stalled_writer::Filter;
use crate::internal::thousands::thousands;
use crate::sys::steps::{Step, with_hook};
use crate::sys::sync::{Flag, RelaxedCounter};
use hdrhistogram::Histogram;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::env;
use std::rc::Rc;
use std::thread;
use std::time::Instant;

const WRITERS: [usize; 4] = [1, 2, 4, 8];

/// In one shard.
const CAPACITY: usize = 240_000;

/// One lookup of a present key per this many of absent ones.
const ONE_PRESENT_IN: usize = 16;

/// The least number of rounds of the writers during the lookups. Without it, the system may finish all lookups before the first
/// writer runs.
const MIN_ROUNDS: u64 = 1000;

#[derive(Clone, Copy, PartialEq)]
enum Storm {
    /// Keys are replaced at 95 % load, by relocations, and every fourth one is inserted and removed a second time.
    Churn,
    /// Each writer has a class of four copies of its own, removes one and inserts it again. Each time a version is bumped.
    Trade,
}

struct Scene {
    filter: Filter,
    stable: Vec<u64>,
    absent: Vec<u64>,
    /// For each writer, the keys in the filter and those in reserve.
    own: Vec<(Vec<u64>, Vec<u64>)>,
}

impl Scene {
    fn new(stripes: Option<usize>, writers: usize) -> Self {
        let builder = Filter::builder().capacity(CAPACITY).fingerprint_bits(16);
        let filter = stripes.map_or(builder.clone(), |stripes| builder.stripes(stripes)).build().unwrap();
        assert_eq!(filter.config().shards, 1);
        assert!(stripes.is_none_or(|stripes| filter.plan().stripes as usize == stripes));
        let keys = filter.plan().slots() as u64 * 95 / 100;
        for hash in 0..keys {
            filter.hashed().insert(&hash).unwrap();
        }
        // A quarter of the keys stays. The writers share the rest, and have as many in reserve.
        let share = keys * 3 / 4 / writers as u64;
        let own = |writer| {
            let first = keys / 4 + writer * share;
            ((first..first + share).collect(), (keys + first..keys + first + share).collect())
        };
        let used: BTreeSet<Class> = (0..2 * keys).map(|hash| class(&filter, hash)).collect();
        let absent = (1 << 40..).filter(|&hash| !used.contains(&class(&filter, hash))).take(1 << 14).collect();
        Scene { stable: (0..keys / 4).collect(), absent, own: (0..writers as u64).map(own).collect(), filter }
    }
}

fn write(storm: Storm, filter: &Filter, own: (Vec<u64>, Vec<u64>), stop: &Flag, rounds: &RelaxedCounter) {
    let (mut stored, mut spare) = own;
    if storm == Storm::Trade {
        (0..3).for_each(|_| filter.hashed().insert(&stored[0]).unwrap());
    }
    let mut at = 0;
    while !stop.is_set() {
        rounds.change(|count| count + 1);
        if storm == Storm::Trade {
            assert!(filter.hashed().remove(&stored[0]));
            assert_eq!(filter.hashed().insert(&stored[0]), Ok(()));
            continue;
        }
        at = (at + 1) % stored.len();
        let other = at % spare.len();
        assert!(filter.hashed().remove(&stored[at]), "no other thread removes it");
        if filter.hashed().insert(&spare[other]).is_ok() {
            std::mem::swap(&mut stored[at], &mut spare[other]);
        } else if filter.hashed().insert(&stored[at]).is_err() {
            // Other writers have taken the room; their keys in turn find none sooner or later.
            spare.push(stored.swap_remove(at));
            continue;
        }
        if at % 4 == 0 && filter.hashed().insert(&stored[at]).is_ok() {
            assert!(filter.hashed().remove(&stored[at]));
        }
    }
}

struct Seen {
    attempts: Histogram<u64>,
    nanoseconds: Histogram<u64>,
    seconds: f64,
}

/// Looks up absent keys and, now and then, a present one: this many, and more until `enough`.
fn read(scene: &Scene, lookups: usize, enough: impl Fn() -> bool) -> Seen {
    let repeats = Rc::new(Cell::new(0));
    let counter = Rc::clone(&repeats);
    let count = move |step| {
        if step == Step::Repeated {
            counter.set(counter.get() + 1);
        }
    };
    let mut attempts = Histogram::new(3).unwrap();
    let mut nanoseconds = Histogram::new_with_bounds(1, 600_000_000_000, 3).unwrap();
    let begun = Instant::now();
    with_hook(count, || {
        for (number, &hash) in (0..).zip(scene.absent.iter().cycle()) {
            if number % ONE_PRESENT_IN == 0 {
                if number >= lookups && enough() {
                    break;
                }
                let present = scene.stable[number % scene.stable.len()];
                assert!(scene.filter.hashed().contains(&present), "hash {present} was missed");
            }
            repeats.set(0);
            let asked = Instant::now();
            let found = scene.filter.hashed().contains(&hash);
            nanoseconds.saturating_record((asked.elapsed().as_nanos() as u64).max(1));
            assert!(!found, "absent hash {hash} was found");
            attempts.record(1 + repeats.get()).unwrap();
        }
    });
    Seen { attempts, nanoseconds, seconds: begun.elapsed().as_secs_f64() }
}

fn run(number: u32, storm: Storm, stripes: Option<usize>, writers: usize) {
    let mut scene = Scene::new(stripes, writers);
    let stop = Flag::default();
    let rounds: Vec<RelaxedCounter> = (0..writers).map(|_| RelaxedCounter::default()).collect();
    let full = env::var_os("CUCKOO_FULL").is_some();
    let lookups = if full { 100_000_000 } else { 20_000 };
    let own = std::mem::take(&mut scene.own);
    let done = || rounds.iter().map(RelaxedCounter::get).sum::<u64>();
    let (seen, relocations, done) = thread::scope(|scope| {
        // Also after a wrong answer, so that it is reported.
        let _stop = Stop(&stop);
        let spawn = |(own, rounds)| {
            let (filter, stop) = (&scene.filter, &stop);
            scope.spawn(move || write(storm, filter, own, stop, rounds))
        };
        let writers: Vec<_> = own.into_iter().zip(&rounds).map(spawn).collect();
        let failed = || writers.iter().any(|writer| writer.is_finished());
        // Until all of them have begun.
        while rounds.iter().any(|rounds| rounds.get() < 100) && !failed() {
            thread::yield_now();
        }
        let before = (scene.filter.stats().relocations, done());
        let seen = read(&scene, lookups, || done() - before.1 >= MIN_ROUNDS || failed());
        let after = (scene.filter.stats().relocations, done());
        (seen, after.0 - before.0, after.1 - before.1)
    });
    assert!(scene.stable.iter().all(|&hash| scene.filter.hashed().contains(&hash)));
    let Seen { attempts, nanoseconds, seconds } = seen;
    // Far above all results (docs/reliability.md), and far below a lookup that waits for writers.
    assert!(attempts.mean() < 2.0 && attempts.max() < 100, "{:.3}, {} attempts", attempts.mean(), attempts.max());
    assert!(storm == Storm::Trade || relocations > 0, "the writers move nothing");
    let what = match storm {
        Storm::Churn => "replacing keys at 95 % load",
        Storm::Trade => "trading copies, each of a class of its own, at 95 % load",
    };
    println!(
        "\nfigure 6.{number}: {} misses with {writers} writer{} {what}, {} stripe{}: attempts mean {:.4}, p99.9 {}, \
         p99.99 {}, worst {}; latency p50 {} ns, p99 {} ns, p99.9 {} ns, p99.99 {} ns, worst {:.1} us; {} relocations \
         and {} rounds of the writers a second",
        thousands(attempts.len()),
        plural(writers),
        scene.filter.plan().stripes,
        plural(scene.filter.plan().stripes as usize),
        attempts.mean(),
        attempts.value_at_quantile(0.999),
        attempts.value_at_quantile(0.9999),
        attempts.max(),
        nanoseconds.value_at_quantile(0.5),
        nanoseconds.value_at_quantile(0.99),
        thousands(nanoseconds.value_at_quantile(0.999)),
        thousands(nanoseconds.value_at_quantile(0.9999)),
        nanoseconds.max() as f64 / 1e3,
        thousands((relocations as f64 / seconds) as u64),
        thousands((done as f64 / seconds) as u64),
    );
    for bar in attempts.iter_recorded().take_while(|_| full) {
        println!("  {:>4} attempts: {}", bar.value_iterated_to(), thousands(bar.count_at_value()));
    }
}

struct Stop<'a>(&'a Flag);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn run_all(first: u32, storm: Storm, stripes: Option<usize>) {
    for (number, writers) in (first..).zip(WRITERS) {
        run(number, storm, stripes, writers);
    }
}

#[test]
fn misses_beside_writers_in_one_stripe() {
    let mut clock = Histogram::<u64>::new(3).unwrap();
    (0..10_000).for_each(|_| clock.saturating_record(Instant::now().elapsed().as_nanos() as u64));
    println!("the clock alone: p50 {} ns, p99 {} ns", clock.value_at_quantile(0.5), clock.value_at_quantile(0.99));
    run_all(1, Storm::Churn, Some(1));
}

#[test]
fn misses_beside_writers_in_many_stripes() {
    run_all(5, Storm::Churn, None);
}

#[test]
fn misses_beside_copies_that_are_traded_in_one_stripe() {
    run_all(9, Storm::Trade, Some(1));
}
