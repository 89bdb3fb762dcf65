//! Filters that forget: "was it seen within the window?", compared with peers.

use super::Plan;
use crate::clock;
use crate::record::{Record, Table};
use crate::slices::{self, Case, against};
use ahash::RandomState;
use concurrent_cuckoo_filter::ExpiringFilter;
use cuckoo_clock::config::{BitCount, CuckooConfiguration, TtlConfig};
use cuckoo_clock::{InsertValues, LookupValues};
use dashmap::DashMap;
use std::cell::Cell;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The number of ticks per window.
const STEPS: u32 = 6;
const TIME: Duration = Duration::from_secs(6);

/// The number of events per thread between two reads of the time.
const TURN: usize = 1_000;

/// Returns the capacity for the keys of a window, and of one more tick, which some keys live longer.
fn with_last_tick(keys: usize) -> usize {
    keys + keys.div_ceil(STEPS as usize)
}

/// With as many bits as this crate: 13 of a fingerprint, and 3 of a time to live, which each tick decrements.
type CuckooClock = cuckoo_clock::CuckooFilter<RandomState>;

/// The number of ticks that a key lives in cuckoo-clock. A part of the first may have passed when it is inserted.
const LIFE: NonZeroU32 = NonZeroU32::new(STEPS + 1).expect("not 0");

fn cuckoo_clock(keys: usize) -> CuckooClock {
    let bits = |bits: usize| BitCount::try_from(bits).expect("a possible width");
    let builder = CuckooConfiguration::builder(with_last_tick(keys)).fingerprint_bits(bits(13));
    let configuration = builder.with_ttl(TtlConfig { ttl: LIFE, ttl_bits: bits(3) }).build();
    CuckooClock::new(configuration.expect("a possible filter"), RandomState::new())
}

/// Takes two critical sections, because no operation both queries a key and stores it.
fn see_in_cuckoo_clock(filter: &CuckooClock, key: u64) -> bool {
    let ttl = Some(LIFE.get());
    let renew = || LookupValues { ttl, ..LookupValues::default() };
    filter.contains_with_update(&key, renew()) || {
        filter.insert_if_not_present_with_update(&key, InsertValues { ttl, ..InsertValues::default() }, renew());
        false
    }
}

type Moka = moka::sync::Cache<u64, (), RandomState>;

fn moka(keys: usize) -> Moka {
    let builder = moka::sync::Cache::builder().max_capacity(with_last_tick(keys) as u64).time_to_live(TIME);
    // The default policy would evict new keys in favour of keys that are often looked up.
    let builder = builder.eviction_policy(moka::policy::EvictionPolicy::lru());
    builder.initial_capacity(with_last_tick(keys)).build_with_hasher(RandomState::new())
}

/// A map from keys to times, swept at each tick. Times are numbers of ticks, so no clock is read per key.
struct Swept {
    seen: DashMap<u64, Instant, RandomState>,
    start: Instant,
    ticks: AtomicU32,
}

impl Swept {
    fn new(keys: usize) -> Self {
        let seen = DashMap::with_capacity_and_hasher(with_last_tick(keys), RandomState::new());
        Swept { seen, start: Instant::now(), ticks: AtomicU32::new(0) }
    }

    fn now(&self) -> Instant {
        self.start + TIME / STEPS * self.ticks.load(Ordering::Relaxed)
    }

    fn sweep(&self) {
        self.ticks.fetch_add(1, Ordering::Relaxed);
        let now = self.now();
        self.seen.retain(|_, last| now - *last <= TIME);
    }

    fn see(&self, key: u64) -> bool {
        let now = self.now();
        self.seen.insert(key, now).is_some_and(|last| now - last <= TIME)
    }
}

/// A stream of events, one per thread. Every second event repeats one of the last quarter of a window.
struct Events {
    thread: u64,
    new: u64,
    random: fastrand::Rng,
}

impl Events {
    fn new(thread: usize) -> Self {
        Events { thread: (thread as u64) << 48, new: 0, random: fastrand::Rng::with_seed(thread as u64) }
    }

    /// Returns the next events, and the number of repeated ones among them.
    fn next(&mut self, count: usize, keys_per_window: usize) -> (Vec<u64>, usize) {
        let mut repeated = 0;
        let events = (0..count).map(|_| {
            let last = (keys_per_window as u64 / 4).min(self.new);
            let number = if last > 0 && self.random.bool() {
                repeated += 1;
                self.new - self.random.u64(..last)
            } else {
                self.new += 1;
                self.new
            };
            // Spread over all 64 bits, for peers with weak hash functions.
            (self.thread | number).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        (events.collect(), repeated)
    }
}

/// The measurements of a contestant.
struct Shown {
    /// Nanoseconds per event on one thread and on two.
    nanos: [f64; 2],
    bits: f64,
    /// The largest fraction of repeated events that was reported as new.
    lost: f64,
}

/// Measures a contestant by four functions: one builds it for a number of keys per window; one returns whether a key was seen
/// within the window, and stores it as seen now; one advances the time by a sixth of a window; and one returns its memory, if it
/// is known.
fn measure<W: Sync>(
    plan: &Plan,
    build: impl Fn(usize) -> W,
    see: impl Fn(&W, u64) -> bool + Sync,
    tick: impl Fn(&W) + Sync,
    bytes: impl Fn(&W) -> Option<usize>,
) -> Shown {
    let (keys_per_window, room) = keys_and_room(plan);
    // A tick follows each sixth of a window of new keys.
    let events = 2 * keys_per_window / STEPS as usize;
    let mut shown = Shown { nanos: [0.0; 2], bits: 0.0, lost: 0.0 };
    for threads in [1, 2] {
        let before = resident();
        let (window, seen, lost) = (build(room), AtomicUsize::new(0), Cell::new(0));
        let mut streams: Vec<_> = (0..threads).map(Events::new).collect();
        let mut round = |_| {
            let next = |stream: &mut Events| stream.next(events / threads, keys_per_window / threads);
            let drawn: Vec<_> = streams.iter_mut().map(next).collect();
            let (time, known) = clock::on_threads(threads, |thread| {
                let mut known = 0;
                for turn in drawn[thread].0.chunks(TURN) {
                    known += turn.iter().filter(|&&key| see(&window, key)).count();
                    let before = seen.fetch_add(turn.len(), Ordering::Relaxed);
                    if before / events < (before + turn.len()) / events {
                        tick(&window);
                    }
                }
                known
            });
            let unknown = drawn.iter().zip(known).map(|((_, repeated), known)| repeated.saturating_sub(known));
            lost.set(lost.get() + unknown.sum::<usize>());
            time.as_nanos() as f64 / (events / threads * threads) as f64
        };
        // It is full after two windows.
        (0..2 * STEPS as usize).for_each(|number| _ = round(number));
        lost.set(0);
        shown.nanos[threads - 1] = slices::take(plan.rounds, &mut [Case::new(round)])[0];
        shown.lost = shown.lost.max(lost.get() as f64 / (plan.rounds * events / 2) as f64);
        if threads == 1 {
            let bytes = bytes(&window).unwrap_or_else(|| resident().saturating_sub(before));
            shown.bits = bytes as f64 * 8.0 / room as f64;
        }
    }
    shown
}

/// Returns the number of keys per window, and the capacity. Repeated keys live up to a quarter of a window longer, and a tick may
/// be late by a turn of each thread.
fn keys_and_room(plan: &Plan) -> (usize, usize) {
    let keys = if plan.quick { 1 << 12 } else { 1 << 20 };
    (keys, keys * 5 / 4 + 4 * TURN)
}

pub(super) fn run(plan: &Plan, record: &mut Record) {
    let (keys_per_window, room) = keys_and_room(plan);
    record.heading("Filters that forget");
    record.text(&format!(
        "`see`: returns whether a key was seen within the window, and stores it. Windows of {keys_per_window} keys in \
         {STEPS} ticks. Half of the events repeat an event of the last quarter of the window, the others are new. Ticks \
         are made by the thread whose event ends them, and timed. In brackets: the speed of this crate relative to the \
         row. *Lost* is the share of repeated events that were reported as new. Bits per key are the memory, as the \
         contestant reports it, or for moka the growth of the process, over the {room} keys of the capacity (repeated \
         keys live longer). cuckoo-clock and moka have no such operation, and look up and insert instead. moka uses its \
         own clock, with a time to live of {} s and the capacity of the window.",
        TIME.as_secs()
    ));
    plan.step("see");
    let builder = |keys| ExpiringFilter::<u64>::builder().capacity(keys).time_to_live(TIME).steps(STEPS);
    let ours = measure(
        plan,
        |keys| builder(keys).build().expect("a possible filter"),
        |filter, key| filter.see(&key).expect("room"),
        |filter| _ = filter.advance(),
        |filter| Some(filter.memory_usage()),
    );
    // Without the allocator's overhead per bucket.
    let bytes = |filter: &CuckooClock| Some(filter.get_memory_usage());
    let cuckoo_clock =
        measure(plan, cuckoo_clock, see_in_cuckoo_clock, |filter| _ = filter.scan_and_update_ttl(), bytes);
    // Reads a clock of its own, which cannot be set. Also two critical sections.
    let see = |cache: &Moka, key| (cache.contains_key(&key), cache.insert(key, ())).0;
    let moka = measure(plan, moka, see, |cache| cache.run_pending_tasks(), |_| None);
    // A key, a time and a control byte per slot of the map.
    let bytes = |map: &Swept| Some(map.seen.capacity() * (size_of::<(u64, Instant)>() + 1));
    let swept = measure(plan, Swept::new, Swept::see, Swept::sweep, bytes);
    let mut table = Table::new(["", "1 thread", "2 threads", "bits per key", "lost"]);
    for (name, shown) in
        [("this crate", &ours), ("cuckoo-clock", &cuckoo_clock), ("moka", &moka), ("DashMap and a sweeper", &swept)]
    {
        let of = |thread: usize| against(shown.nanos[thread], shown.nanos[thread] / ours.nanos[thread]);
        table.row([name.into(), of(0), of(1), format!("{:.1}", shown.bits), format!("{:.2} %", shown.lost * 100.0)]);
    }
    record.table(&table);
}

/// Returns the memory of this process in bytes, or 0 if the system does not report it.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|pages| pages.split(' ').nth(1)?.parse::<usize>().ok());
    pages.unwrap_or_default() * 4096
}
