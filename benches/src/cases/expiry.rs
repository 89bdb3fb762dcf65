//! Filters that forget: "was it seen within the window?", compared with peers.

use super::Plan;
use crate::clock;
use crate::record::{Record, Table};
use crate::slices::{self, Case, speed};
use ahash::RandomState;
use concurrent_cuckoo_filter::ExpiringFilter;
use cuckoo_clock::config::{BitCount, CuckooConfiguration, TtlConfig};
use cuckoo_clock::{InsertValues, LookupValues};
use dashmap::DashMap;
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Ticks of a window, and how long it lasts for who goes by a clock.
const STEPS: u32 = 6;
const TIME: Duration = Duration::from_secs(6);

/// Events that a thread sees between two looks at the time.
const TURN: usize = 1_000;

/// Keys seen within a window of time.
trait Window: Sync {
    /// Returns whether the key was seen within the window, and notes it as seen now.
    fn see(&self, key: u64) -> bool;

    /// Sees the keys, and counts those that were seen before. Compiled for each contestant.
    fn see_all(&self, keys: &[u64]) -> usize {
        keys.iter().filter(|&&key| self.see(key)).count()
    }

    /// A sixth of the window passes.
    fn tick(&self);

    /// Its memory, where it says so.
    fn bytes(&self) -> Option<usize>;
}

/// Room for the keys of a window and of the tick that some live longer.
fn with_last_tick(keys: usize) -> usize {
    keys + keys.div_ceil(STEPS as usize)
}

/// Implements [`Window`] for a type: what each operation does with `window` and `key`.
macro_rules! window {
    ($type:ty, |$window:ident, $key:ident| $see:expr, $tick:expr, $bytes:expr) => {
        impl Window for $type {
            fn see(&self, $key: u64) -> bool {
                let $window = self;
                $see
            }

            fn tick(&self) {
                let $window = self;
                $tick;
            }

            fn bytes(&self) -> Option<usize> {
                let $window = self;
                $bytes
            }
        }
    };
}

type Ours = ExpiringFilter<u64>;
window!(Ours, |window, key| Ours::see(window, &key).expect("room"), window.advance(), Some(window.memory_usage()));

/// Bits as this crate has them: 13 of a fingerprint and 3 of a time to live that each tick counts down.
type CuckooClock = cuckoo_clock::CuckooFilter<RandomState>;

/// Ticks that a key of cuckoo-clock lives: one of them may have passed.
const LIFE: NonZeroU32 = NonZeroU32::new(STEPS + 1).expect("not 0");

/// Two critical sections: no operation both tells and notes.
fn see_in_cuckoo_clock(filter: &CuckooClock, key: u64) -> bool {
    let ttl = Some(LIFE.get());
    let renew = || LookupValues { ttl, ..LookupValues::default() };
    filter.contains_with_update(&key, renew()) || {
        filter.insert_if_not_present_with_update(&key, InsertValues { ttl, ..InsertValues::default() }, renew());
        false
    }
}

// Memory without what the allocator adds to each bucket.
window!(
    CuckooClock,
    |filter, key| see_in_cuckoo_clock(filter, key),
    filter.scan_and_update_ttl(),
    Some(filter.get_memory_usage())
);

/// It has a clock of its own, which cannot be told the time. Two critical sections, too.
type Moka = moka::sync::Cache<u64, (), RandomState>;
window!(Moka, |cache, key| (cache.contains_key(&key), cache.insert(key, ())).0, cache.run_pending_tasks(), {
    _ = cache;
    None
});

/// A map of times, through which a sweeper goes at each tick. The time is told by ticks: no clock is read for a key.
struct Swept {
    seen: DashMap<u64, Instant, RandomState>,
    start: Instant,
    ticks: AtomicU32,
}

impl Swept {
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

// A key, a time and a byte of the map for each place.
window!(Swept, |map, key| map.see(key), map.sweep(), Some(map.seen.capacity() * (size_of::<(u64, Instant)>() + 1)));

/// A name, and what builds a contestant for this many keys per window.
type Contestant = (&'static str, fn(usize) -> Box<dyn Window>);

fn all() -> [Contestant; 4] {
    [
        ("this crate", |keys| {
            let builder = Ours::builder().capacity(keys).time_to_live(TIME).steps(STEPS);
            Box::new(builder.build().expect("a possible filter"))
        }),
        ("cuckoo-clock", |keys| {
            let bits = |bits: usize| BitCount::try_from(bits).expect("a possible width");
            let builder = CuckooConfiguration::builder(with_last_tick(keys)).fingerprint_bits(bits(13));
            let configuration = builder.with_ttl(TtlConfig { ttl: LIFE, ttl_bits: bits(3) }).build();
            Box::new(CuckooClock::new(configuration.expect("a possible filter"), RandomState::new()))
        }),
        ("moka", |keys| {
            let builder = moka::sync::Cache::builder().max_capacity(with_last_tick(keys) as u64).time_to_live(TIME);
            // By default it keeps keys that are looked up often, and drops new ones.
            let builder = builder.eviction_policy(moka::policy::EvictionPolicy::lru());
            let builder = builder.initial_capacity(with_last_tick(keys));
            Box::new(builder.build_with_hasher(RandomState::new()))
        }),
        ("DashMap and a sweeper", |keys| {
            let seen = DashMap::with_capacity_and_hasher(with_last_tick(keys), RandomState::new());
            Box::new(Swept { seen, start: Instant::now(), ticks: AtomicU32::new(0) })
        }),
    ]
}

/// A stream of which every second event repeats one of the last quarter of a window; each thread has one of its own.
struct Events {
    thread: u64,
    new: u64,
    random: fastrand::Rng,
}

impl Events {
    fn new(thread: usize) -> Self {
        Events { thread: (thread as u64) << 48, new: 0, random: fastrand::Rng::with_seed(thread as u64) }
    }

    /// The next events, and how many of them repeat others.
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
            // Spread over all numbers, for peers that hash little.
            (self.thread | number).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        (events.collect(), repeated)
    }
}

pub(super) fn run(plan: &Plan, record: &mut Record) {
    let keys_per_window = if plan.quick { 1 << 12 } else { 1 << 20 };
    // What is repeated lives on, up to a quarter of a window more; and a tick may come a turn of each thread late.
    let room = keys_per_window * 5 / 4 + 4 * TURN;
    record.heading("Filters that forget");
    record.text(&format!(
        "*See*: was it seen within the window, and is noted as seen now? Windows of {keys_per_window} keys in {STEPS} ticks. Half of \
         the events repeat one of the last quarter of the window; the thread whose event ends a tick makes it, in the time \
         that is measured. In brackets: how many times as fast this crate is. *Lost* are repeated events that were taken \
         for new. Bits per key are the memory over the {room} keys that there is room for, as the contestant counts it, or \
         for moka as the process grew. moka goes by a clock of its own, with {} s to live.",
        TIME.as_secs()
    ));
    let mut table = Table::new(["", "1 thread", "2 threads", "bits per key", "lost"]);
    let mut ours = [0.0; 2];
    for (name, build) in all() {
        plan.step(&format!("see, {name}"));
        let (mut lost, mut bits, mut speeds) = (0.0_f64, 0.0, Vec::new());
        for threads in [1, 2] {
            let before = resident();
            let (window, seen, faults) = (build(room), AtomicUsize::new(0), AtomicUsize::new(0));
            let streams = Mutex::new((0..threads).map(Events::new).collect::<Vec<_>>());
            let events = 2 * keys_per_window / STEPS as usize;
            let round = |_| {
                let mut streams = streams.lock().expect("no panic");
                let (nanos, missed) = see(&*window, &mut streams, events / threads, keys_per_window, &seen);
                faults.fetch_add(missed, Ordering::Relaxed);
                nanos
            };
            // Two windows fill it.
            (0..2 * STEPS as usize).for_each(|number| _ = round(number));
            faults.store(0, Ordering::Relaxed);
            speeds.push(slices::take(plan.rounds, &mut [Case::new(round)])[0]);
            lost = lost.max(faults.load(Ordering::Relaxed) as f64 / (plan.rounds * events / 2) as f64);
            let bytes = window.bytes().unwrap_or_else(|| resident().saturating_sub(before));
            bits = if threads == 1 { bytes as f64 * 8.0 / room as f64 } else { bits };
        }
        ours = if name == "this crate" { [speeds[0], speeds[1]] } else { ours };
        let of = |threads: usize| format!("{} ({:.2})", speed(speeds[threads]), speeds[threads] / ours[threads]);
        table.row([name.into(), of(0), of(1), format!("{bits:.1}"), format!("{:.2} %", lost * 100.0)]);
    }
    record.table(&table);
}

/// Sees events on some threads, which make ticks as their new keys fill a sixth of the window. Returns nanoseconds per event, and
/// how many of the repeated ones were not known any more.
fn see(
    window: &dyn Window,
    streams: &mut [Events],
    events: usize,
    keys_per_window: usize,
    seen: &AtomicUsize,
) -> (f64, usize) {
    let threads = streams.len();
    let drawn: Vec<_> = streams.iter_mut().map(|stream| stream.next(events, keys_per_window / threads)).collect();
    let tick = 2 * keys_per_window / STEPS as usize;
    let (time, known) = clock::on_threads(threads, |thread| {
        let mut known = 0;
        for turn in drawn[thread].0.chunks(TURN) {
            known += window.see_all(turn);
            let before = seen.fetch_add(turn.len(), Ordering::Relaxed);
            if before / tick < (before + turn.len()) / tick {
                window.tick();
            }
        }
        known
    });
    let lost = drawn.iter().zip(known).map(|((_, repeated), known)| repeated.saturating_sub(known)).sum();
    (time.as_nanos() as f64 / (threads * events) as f64, lost)
}

/// Memory of this process, in bytes; 0 where the system does not say.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|pages| pages.split(' ').nth(1)?.parse::<usize>().ok());
    pages.unwrap_or_default() * 4096
}
