//! Many keys at once: batches and bulk operations beside loops of single calls, and beside what the memory can do.
//!
//! ```text
//! cargo bench --bench bulk                     # every contest, about 10 minutes and 4 GiB
//! cargo bench --bench bulk -- --large 22       # the large table has 2^22 slots, not 2^27
//! cargo bench --bench bulk -- contains 2^20    # those whose names hold all the words
//! ```
//!
//! Ratios as in the benchmark `versus`. The *two-line limit* is one thread that loads two random words a key from a table
//! of the same size, and does nothing else.

mod turns;

use concurrent_cuckoo_filter::CuckooFilter;
use hdrhistogram::Histogram;
use peak_alloc::PeakAlloc;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;
use turns::Program;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The large table: 2^27 slots of 16 bits are 256 MiB.
const LARGE: u32 = 27;

fn main() {
    let program = Program::from_arguments(5);
    println!("median of the turns' ratios (range), medians of both speeds, the ratio asked for");
    let slots = program.large.unwrap_or(LARGE);
    let asked = |ratio| (slots == LARGE).then_some(ratio);
    look_ups(&program, 16, Some(1.0), None);
    look_ups(&program, 20, Some(1.6), Some(0.5));
    look_ups(&program, slots, asked(1.6), asked(0.9));
    large(&program, slots, asked);
}

/// A filter of about 2^`slots` slots of `bits` bits, and how many keys make 95 % of its load.
fn filter(slots: u32, bits: u32) -> (CuckooFilter<u64>, usize) {
    let slots = (1u64 << slots) as f64;
    let capacity = (slots * 0.955 - (2.5 * slots.sqrt()).min(2000.0) - 14.0) as usize;
    let filter = CuckooFilter::builder().capacity(capacity).fingerprint_bits(bits).build().expect("a possible filter");
    (filter, capacity.min((slots * 0.95) as usize))
}

fn keys(seed: u64, count: usize) -> Vec<u64> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..count).map(|_| random.u64(..)).collect()
}

fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).build().expect("threads")
}

/// Nanoseconds for each of `count` operations.
fn timed<T>(count: usize, work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed().as_nanos() as f64 / count as f64, result)
}

/// A table of words to load from.
struct Lines(Vec<u64>);

impl Lines {
    fn new(slots: u32) -> Self {
        Lines((0..1u64 << (slots - 2)).collect())
    }

    /// The cost of two random loads.
    fn pass(&self, keys: &[u64]) -> f64 {
        let mask = self.0.len() - 1;
        let (nanos, sum) = timed(keys.len(), || {
            keys.iter().fold(0u64, |sum, key| {
                let first = (key >> 32) as usize & mask;
                let second = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
                sum.wrapping_add(self.0[first] ^ self.0[second])
            })
        });
        black_box(sum);
        nanos
    }
}

fn look_ups(program: &Program, slots: u32, against_loop: Option<f64>, against_limit: Option<f64>) {
    let named = |contest: &str| format!("{contest} 2^{slots}");
    if !program.wants(&named("contains_batch misses hits 13 bits 16 bits against a loop the two-line limit")) {
        return;
    }
    for bits in [16, 13] {
        let named = |contest: &str| format!("{contest} {bits} bits 2^{slots}");
        let (filter, load) = filter(slots, bits);
        let present = keys(1, load);
        assert_eq!(filter.par_insert(&present).inserted, load);
        let mut random = fastrand::Rng::with_seed(2);
        let probes = (1usize << slots).clamp(1 << 20, 1 << 23);
        let hits: Vec<u64> = (0..probes).map(|_| present[random.usize(..load)]).collect();
        let misses = keys(3, probes);
        drop(present);
        let lines = Lines::new(slots);
        let found = std::cell::RefCell::new(vec![false; probes]);
        // The first of two passes brings the table back into the caches.
        let batch = |keys: &[u64], at_least, at_most| {
            let found = &mut *found.borrow_mut();
            filter.contains_batch(keys, found);
            let (nanos, ()) = timed(probes, || filter.contains_batch(keys, found));
            let count = found.iter().filter(|&&found| found).count();
            assert!((at_least..=at_most).contains(&count), "{count} of {probes} found");
            nanos
        };
        let single = |keys: &[u64], at_least, at_most| {
            let pass = || keys.iter().filter(|&key| filter.contains(key)).count();
            black_box(pass());
            let (nanos, count) = timed(probes, pass);
            assert!((at_least..=at_most).contains(&count), "{count} of {probes} found");
            nanos
        };
        let few = probes / 500;
        let bar = |bar: Option<f64>| bar.filter(|_| bits == 16);
        program.contest(
            &named("contains_batch against a loop, misses"),
            bar(against_loop),
            || batch(&misses, 0, few),
            || single(&misses, 0, few),
        );
        program.contest(
            &named("contains_batch against a loop, hits"),
            None,
            || batch(&hits, probes, probes),
            || single(&hits, probes, probes),
        );
        program.contest(
            &named("contains_batch against the two-line limit, misses"),
            bar(against_limit),
            || batch(&misses, 0, few),
            || {
                lines.pass(&misses);
                lines.pass(&misses)
            },
        );
    }
}

fn large(program: &Program, slots: u32, asked: impl Fn(f64) -> Option<f64>) {
    let named = |contest: &str| format!("{contest} 2^{slots}");
    if !program.wants(&named(
        "par_contains par_insert insert_batch overfull memory of waits par_remove remove_batch par_insert, 1 thread, 2 threads, \
         against a parallel loop the two-line limit atomic-cuckoo-filter's",
    )) {
        return;
    }
    let (filter, load) = filter(slots, 16);
    let present = keys(1, load);
    let (one, two) = (pool(1), pool(2));
    // Whatever is timed fills the same filter, emptied and with all its pages there.
    let fill = |work: &dyn Fn() -> usize| {
        filter.clear();
        let (nanos, inserted) = timed(load, work);
        assert_eq!((inserted, filter.len()), (load, load));
        nanos
    };
    let par = |pool: &ThreadPool| fill(&|| pool.install(|| filter.par_insert(&present).inserted));
    let single = |key: &u64| usize::from(filter.insert(key).is_ok());
    par(&two);

    if program.wants(&named("memory of par_insert")) {
        let before = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        par(&two);
        let mebibytes = (MEMORY.peak_usage() - before) as f64 / f64::from(1 << 20);
        println!(
            "{:<64} {mebibytes:6.1} MiB at the most  at most 256: {}",
            named("memory of par_insert"),
            met(mebibytes <= 256.0)
        );
    }

    program.contest(
        &named("par_insert, 2 threads, against a parallel loop"),
        asked(5.0),
        || par(&two),
        || fill(&|| two.install(|| present.par_iter().map(single).sum())),
    );
    program.contest(
        &named("par_insert, 1 thread, against a loop"),
        asked(4.5),
        || par(&one),
        || fill(&|| present.iter().map(single).sum()),
    );
    program.contest(
        &named("insert_batch against a loop"),
        asked(2.0),
        || fill(&|| filter.insert_batch(&present).inserted),
        || fill(&|| present.iter().map(single).sum()),
    );
    atomic_cuckoo(
        program,
        asked(10.0),
        &named("par_insert against atomic-cuckoo-filter's parallel loop"),
        slots,
        &present,
        &two,
        || par(&two),
    );
    removals(program, &named, &filter, &present, &two);
    par(&two);
    par_contains(
        program,
        asked(2.5),
        &named("par_contains, 2 threads, against the two-line limit"),
        slots,
        &filter,
        &two,
    );
    if program.wants(&named("waits")) {
        waits(&named, &filter, &present, &two);
    }
    if program.wants(&named("overfull")) {
        overfull(&named, &filter, &present, &two);
    }
}

fn met(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}

fn atomic_cuckoo(
    program: &Program,
    asked: Option<f64>,
    name: &str,
    slots: u32,
    present: &[u64],
    two: &ThreadPool,
    ours: impl FnMut() -> f64,
) {
    if !program.wants(name) {
        return;
    }
    type AtomicCuckoo = atomic_cuckoo_filter::CuckooFilter<ahash::AHasher>;
    let build = || -> AtomicCuckoo {
        atomic_cuckoo_filter::CuckooFilterBuilder::default()
            .capacity(1 << slots)
            .fingerprint_size(16)
            .bucket_size(4)
            .build()
            .expect("a possible filter")
    };
    program.contest(name, asked, ours, || {
        let peer = build();
        // It refuses some below 95 % load.
        timed(present.len(), || two.install(|| present.par_iter().for_each(|key| drop(peer.insert(key))))).0
    });
}

fn removals(
    program: &Program,
    named: &impl Fn(&str) -> String,
    filter: &CuckooFilter<u64>,
    present: &[u64],
    two: &ThreadPool,
) {
    let empty = |work: &dyn Fn() -> usize| {
        assert_eq!(two.install(|| filter.par_insert(present)).inserted, present.len());
        let (nanos, removed) = timed(present.len(), work);
        assert_eq!((removed, filter.len()), (present.len(), 0));
        nanos
    };
    filter.clear();
    program.contest(
        &named("par_remove, 2 threads, against a parallel loop"),
        None,
        || empty(&|| two.install(|| filter.par_remove(present).removed)),
        || empty(&|| two.install(|| present.par_iter().map(|key| usize::from(filter.remove(key))).sum())),
    );
    program.contest(
        &named("remove_batch against a loop"),
        None,
        || empty(&|| filter.remove_batch(present).removed),
        || empty(&|| present.iter().map(|key| usize::from(filter.remove(key))).sum()),
    );
}

fn par_contains(
    program: &Program,
    asked: Option<f64>,
    name: &str,
    slots: u32,
    filter: &CuckooFilter<u64>,
    two: &ThreadPool,
) {
    if !program.wants(name) {
        return;
    }
    let count = if slots == LARGE { 100_000_000 } else { 3 << (slots - 2) };
    let misses = keys(3, count);
    let mut found = vec![false; count];
    let lines = Lines::new(slots);
    program.contest(
        name,
        asked,
        || {
            let (nanos, ()) = timed(count, || two.install(|| filter.par_contains(&misses, &mut found)));
            let wrong = found.iter().filter(|&&found| found).count();
            assert!(wrong < count / 500, "{wrong} false positives of {count}");
            nanos
        },
        || lines.pass(&misses),
    );
}

/// How long a single writer waits while a bulk load runs: another thread inserts and removes keys of its own.
fn waits(named: &impl Fn(&str) -> String, filter: &CuckooFilter<u64>, present: &[u64], two: &ThreadPool) {
    // A tenth of the load stays free for the writer and for the rounds of the load.
    let (base, round) = present.split_at(present.len() * 8 / 10);
    filter.clear();
    assert_eq!(two.install(|| filter.par_insert(base)).inserted, base.len());
    let own = keys(4, 1 << 10);
    let (stop, barrier) = (AtomicBool::new(false), Barrier::new(2));
    let (beside, alone) = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let write = |times: &mut Histogram<u64>, go_on: &dyn Fn(usize) -> bool| {
                for (turn, key) in own.iter().cycle().enumerate() {
                    if !go_on(turn) {
                        break;
                    }
                    let (nanos, result) = timed(1, || filter.insert(key));
                    result.expect("room");
                    times.saturating_record(nanos as u64);
                    let (nanos, removed) = timed(1, || filter.remove(key));
                    assert!(removed);
                    times.saturating_record(nanos as u64);
                }
            };
            let times = || Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("bounds in order");
            let (mut beside, mut alone) = (times(), times());
            write(&mut alone, &|turn| turn < 1 << 21);
            barrier.wait();
            write(&mut beside, &|_| !stop.load(Ordering::Relaxed));
            (beside, alone)
        });
        barrier.wait();
        for _ in 0..5 {
            assert_eq!(two.install(|| filter.par_insert(round)).inserted, round.len());
            assert_eq!(two.install(|| filter.par_remove(round)).removed, round.len());
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().expect("no panic")
    });
    for (name, times) in [("a single writer, alone", alone), ("a single writer beside bulk loads on 2 threads", beside)]
    {
        let micros = |part: f64| times.value_at_quantile(part) as f64 / 1e3;
        println!(
            "{:<64} p50 {:.2}, p99 {:.1}, p99.9 {:.0}, p99.99 {:.0}, worst {:.0} us of {} writes",
            named(name),
            micros(0.5),
            micros(0.99),
            micros(0.999),
            micros(0.9999),
            times.max() as f64 / 1e3,
            times.len()
        );
    }
}

/// A load of more keys than there is room for does not slow to a crawl.
fn overfull(named: &impl Fn(&str) -> String, filter: &CuckooFilter<u64>, present: &[u64], two: &ThreadPool) {
    let slots = (filter.len() as f64 / filter.load_factor()) as usize;
    let mut more = present.to_vec();
    more.extend(keys(5, (slots as f64 * 1.2) as usize - present.len()));
    let load = |keys: &[u64]| {
        filter.clear();
        let (nanos, report) = timed(1, || two.install(|| filter.bulk().list_at_most(0).insert(keys)));
        (nanos / 1e9, report.inserted, filter.load_factor())
    };
    for (name, keys) in [("par_insert of 95 % of the slots", present), ("par_insert of 120 % of the slots", &more)] {
        let (seconds, inserted, load) = load(keys);
        println!("{:<64} {seconds:.2} s, {inserted} of {} keys, load {load:.4}", named(name), keys.len());
    }
}
