//! Snapshots of the large table to and from memory, beside plain copies of as many bytes; and what lookups and a single
//! writer see of them.

use crate::large::{Large, asked};
use crate::turns::Contests;
use crate::waits;
use compare::Passes;
use compare::clock::{timed, warm_timed};
use compare::field::keys;
use concurrent_cuckoo_filter::{CuckooFilter, SnapshotReader};
use std::cell::{LazyCell, RefCell};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How long a single writer is timed beside saves, and beside copies.
const SAVING: Duration = Duration::from_secs(3);

/// Lookups in a pass.
const LOOKUPS: usize = 1 << 20;

/// The longest that a single writer may wait, in milliseconds.
const LONGEST_WAIT: f64 = 5.0;

pub(crate) fn run(contests: &Contests, log2: u32, large: &impl Deref<Target = Large>) {
    let saved = LazyCell::new(|| Saved::new(large));
    speeds(contests, log2, &saved, large);
    lookups(contests, log2, &saved, large);
    waits(contests, log2, &saved, large);
}

fn named(contest: &str, log2: u32) -> String {
    format!("snapshot: {contest} 2^{log2}")
}

fn speeds(contests: &Contests, log2: u32, saved: &impl Deref<Target = Saved>, large: &impl Deref<Target = Large>) {
    let speeds = Speeds::default();
    contests.run(
        &named("save against a plain copy", log2),
        asked(log2, 0.25),
        || speeds.note(saved.save(&large.filter)),
        || saved.copy(),
    );
    speeds.print(&named("save", log2), log2);

    let speeds = Speeds::default();
    contests.run(
        &named("load on two threads against a plain copy", log2),
        asked(log2, 0.25),
        || speeds.note(saved.par_load(large)),
        || saved.copy(),
    );
    speeds.print(&named("load on two threads", log2), log2);

    let speeds = Speeds::default();
    contests.run(
        &named("load against a plain copy", log2),
        None,
        || speeds.note(saved.load(&large.filter)),
        || saved.copy(),
    );
    speeds.print(&named("load", log2), log2);
    // A filter that is loaded takes memory that nobody has touched.
    contests.run(
        &named("load against a copy to fresh memory", log2),
        None,
        || saved.load(&large.filter),
        || timed(saved.bytes.len(), || saved.bytes.to_vec()).0,
    );
}

fn lookups(contests: &Contests, log2: u32, saved: &impl Deref<Target = Saved>, large: &impl Deref<Target = Large>) {
    let misses: LazyCell<Vec<u64>> = LazyCell::new(|| keys(3, LOOKUPS));
    let lookup = || {
        let (nanos, found) = warm_timed(LOOKUPS, || large.filter.contains_all(&misses));
        assert!(found < LOOKUPS / 500, "{found} false positives of {LOOKUPS}");
        nanos
    };
    let beside_saves = || {
        let (saved, filter) = (&**saved, &large.filter);
        beside(|| saved.save(filter), lookup)
    };
    contests.run(&named("lookups beside saves against idle", log2), asked(log2, 0.8), beside_saves, lookup);
    contests.run(&named("lookups beside saves against beside copies", log2), None, beside_saves, || {
        let saved = &**saved;
        beside(|| saved.copy(), lookup)
    });
}

fn waits(contests: &Contests, log2: u32, saved: &impl Deref<Target = Saved>, large: &impl Deref<Target = Large>) {
    let name = named("a single writer beside saves", log2);
    if !contests.wants(&named("a single writer beside saves plain copies", log2)) {
        return;
    }
    let Large { filter, present, two, .. } = &**large;
    // Room for the writer.
    filter.clear();
    let base = &present[..present.len() * 8 / 10];
    assert_eq!(two.install(|| filter.par_insert(base)).inserted, base.len());
    let saved = &**saved;
    let beside = |over_and_over: &dyn Fn() -> f64| {
        let (stop, barrier) = (AtomicBool::new(false), Barrier::new(2));
        thread::scope(|scope| {
            let writer = scope.spawn(|| {
                barrier.wait();
                waits::write(filter, |_| !stop.load(Ordering::Relaxed))
            });
            barrier.wait();
            let start = Instant::now();
            while start.elapsed() < SAVING {
                over_and_over();
            }
            stop.store(true, Ordering::Relaxed);
            writer.join().expect("no panic")
        })
    };
    // What the system takes: nobody locks anything that the writer waits for.
    waits::print(&named("a single writer beside plain copies", log2), &beside(&|| saved.copy()));
    let times = beside(&|| saved.save(filter));
    waits::print(&name, &times);
    let longest = times.max() as f64 / 1e6;
    let bar = asked(log2, LONGEST_WAIT).map_or_else(String::new, |bar| {
        format!("less than {bar:.0}: {}", if longest < bar { "met" } else { "MISSED" })
    });
    println!("{:<64} {longest:6.2} ms  {bar}", named("the longest wait", log2));
}

/// The cost of some work while another thread does something over and over.
fn beside<T>(over_and_over: impl Fn() -> T + Sync, work: impl FnOnce() -> f64) -> f64 {
    let (stop, barrier) = (AtomicBool::new(false), Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            barrier.wait();
            while !stop.load(Ordering::Relaxed) {
                over_and_over();
            }
        });
        barrier.wait();
        let nanos = work();
        stop.store(true, Ordering::Relaxed);
        nanos
    })
}

/// The snapshot of a full table, and memory for another one: it has been touched, which costs more than a copy.
struct Saved {
    bytes: Vec<u8>,
    memory: Mutex<Vec<u8>>,
}

impl Saved {
    fn new(large: &Large) -> Self {
        // Other contests may have left the filter empty.
        large.par_fill(&large.two);
        let mut bytes = Vec::new();
        large.filter.write_to(&mut bytes).expect("memory");
        Saved { memory: Mutex::new(bytes.clone()), bytes }
    }

    /// Nanoseconds a byte of a snapshot to memory.
    fn save(&self, filter: &CuckooFilter<u64>) -> f64 {
        let mut memory = self.memory.lock().expect("no panic");
        memory.clear();
        let (nanos, saved) = timed(self.bytes.len(), || filter.write_to(&mut *memory));
        saved.expect("memory");
        assert_eq!(memory.len(), self.bytes.len());
        nanos
    }

    /// The same of the filter from the snapshot.
    fn load(&self, filter: &CuckooFilter<u64>) -> f64 {
        let hasher = filter.hasher().clone();
        let (nanos, loaded) = timed(self.bytes.len(), || CuckooFilter::<u64>::read_from(&self.bytes[..], hasher));
        assert_eq!(loaded.expect("a snapshot").len(), filter.len());
        nanos
    }

    /// The same on two threads.
    fn par_load(&self, Large { filter, two, .. }: &Large) -> f64 {
        let hasher = filter.hasher().clone();
        let load = || SnapshotReader::new(&self.bytes[..])?.in_parallel().into_filter::<u64, _>(hasher);
        let (nanos, loaded) = timed(self.bytes.len(), || two.install(load));
        assert_eq!(loaded.expect("a snapshot").len(), filter.len());
        nanos
    }

    /// The same of a copy.
    fn copy(&self) -> f64 {
        let mut memory = self.memory.lock().expect("no panic");
        memory.clear();
        timed(self.bytes.len(), || memory.extend_from_slice(&self.bytes)).0
    }
}

/// GB/s.
#[derive(Default)]
struct Speeds(RefCell<Vec<f64>>);

impl Speeds {
    fn note(&self, nanos_a_byte: f64) -> f64 {
        self.0.borrow_mut().push(1.0 / nanos_a_byte);
        nanos_a_byte
    }

    /// Prints the median, if there is one.
    fn print(self, name: &str, log2: u32) {
        let mut speeds = self.0.into_inner();
        speeds.sort_by(f64::total_cmp);
        let Some(median) = speeds.get(speeds.len() / 2) else { return };
        let bar = asked(log2, 1.0).map_or_else(String::new, |bar| {
            format!("at least {bar:.0}: {}", if *median >= bar { "met" } else { "MISSED" })
        });
        println!("{name:<64} {median:6.2} GB/s ({:.2} to {:.2})  {bar}", speeds[0], speeds[speeds.len() - 1]);
    }
}
