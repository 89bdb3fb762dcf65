//! Filters that forget: "was it seen within the window?" compared with peers, ticks.

mod windows;

use super::Plan;
use super::latency::{Times, duration};
use crate::clock::{self, timed};
use crate::contestants::ours;
use crate::field::{Size, keys};
use crate::record::{Record, Table};
use crate::slices::{self, speed};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use windows::{STEPS, TIME, Window, all, cuckoo_clock};

pub(super) fn run(plan: &Plan, record: &mut Record) {
    record.heading("Filters that forget");
    seen(plan, record);
    ticks(plan, record);
    bits(plan, record);
}

/// A stream of which every second event repeats one of the last quarter of a window.
struct Events {
    /// Those of each thread are apart.
    thread: u64,
    new: u64,
    random: fastrand::Rng,
}

impl Events {
    fn new(thread: usize) -> Self {
        Events { thread: (thread as u64) << 48, new: 0, random: fastrand::Rng::with_seed(thread as u64) }
    }

    /// The next events, and how many of them repeat others.
    fn next(&mut self, count: usize, keys_a_window: usize) -> (Vec<u64>, usize) {
        let mut repeated = 0;
        let events = (0..count).map(|_| {
            let last = (keys_a_window as u64 / 4).min(self.new);
            let number = if last > 0 && self.random.bool() {
                repeated += 1;
                self.new - self.random.u64(..last)
            } else {
                self.new += 1;
                self.new
            };
            // Spread over all numbers, for those who hash little.
            (self.thread | number).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        (events.collect(), repeated)
    }
}

/// Events that a thread sees between two looks at the time.
const TURN: usize = 1_000;

/// Sees events on some threads, which make ticks as their new keys fill a sixth of the window. Returns nanoseconds an event,
/// and how many of those that were repeated were not known any more.
fn see(
    window: &dyn Window,
    streams: &mut [Events],
    events: usize,
    keys_a_window: usize,
    seen: &AtomicUsize,
) -> (f64, usize) {
    let threads = streams.len();
    let drawn: Vec<_> = streams.iter_mut().map(|stream| stream.next(events, keys_a_window / threads)).collect();
    let a_tick = 2 * keys_a_window / STEPS as usize;
    let (time, known) = clock::on_threads(threads, |thread| {
        let mut known = 0;
        for turn in drawn[thread].0.chunks(TURN) {
            known += window.see_all(turn);
            let before = seen.fetch_add(turn.len(), Ordering::Relaxed);
            if before / a_tick < (before + turn.len()) / a_tick {
                window.tick();
            }
        }
        known
    });
    let lost: usize = drawn.iter().zip(known).map(|((_, repeated), known)| repeated.saturating_sub(known)).sum();
    (time.as_nanos() as f64 / (threads * events) as f64, lost)
}

fn seen(plan: &Plan, record: &mut Record) {
    let keys_a_window = if plan.quick { 1 << 12 } else { 1 << 20 };
    // What is repeated lives on, up to a quarter of a window more; and a tick may come a turn of each thread late.
    let room = keys_a_window * 5 / 4 + 4 * TURN;
    record.text(&format!(
        "*See*: was it seen within the window, and is noted as seen now? Windows of {keys_a_window} u64 keys in {STEPS} ticks. \
         Half of the events repeat one of the last quarter of the window, the others are new; the thread whose event ends \
         a tick makes it, in the time that is measured. Speeds are millions of events a second; in brackets: how many times as \
         fast this crate is. *Lost* are events that were taken for new though they repeat one of the last quarter of a window, of \
         so many repeated. p99.9 is of single events while another thread makes the ticks. Bits a key are the \
         memory over the {room} keys that there is room for, since repeated ones live longer: as the contestant counts it, or for moka as the process grew. cuckoo-clock and moka have \
         no operation that both tells and notes: they do one after the other. moka goes by a clock of its own, with {} s to \
         live and the capacity of the window.",
        TIME.as_secs()
    ));
    let mut table =
        Table::new(["", "1 thread", "2 threads", "bits a key", "lost, 1 thread", "2 threads", "p99.9", "worst"]);
    let mut ours = [0.0; 2];
    for (name, build) in all() {
        plan.step(&format!("see, {name}"));
        let mut speeds = Vec::new();
        let (mut lost, mut bits) = ([0; 2], 0.0);
        let events = 2 * keys_a_window / STEPS as usize;
        for threads in [1, 2] {
            let before = resident();
            let window = build(room);
            let seen = AtomicUsize::new(0);
            let mut streams: Vec<Events> = (0..threads).map(Events::new).collect();
            let mut round = || see(&*window, &mut streams, events / threads, keys_a_window, &seen);
            // Two windows fill it.
            (0..2 * STEPS).for_each(|_| _ = round());
            let mut nanos: Vec<f64> = (0..plan.rounds)
                .map(|_| {
                    let (nanos, missed) = round();
                    lost[threads - 1] += missed;
                    nanos
                })
                .collect();
            speeds.push(slices::tenth(&mut nanos));
            if threads == 1 {
                let bytes = window.bytes().unwrap_or_else(|| resident().saturating_sub(before));
                bits = bytes as f64 * 8.0 / room as f64;
            }
        }
        if name == ours::NAME {
            ours = [speeds[0], speeds[1]];
        }
        let times = beside_ticks(plan, &*build(room), keys_a_window);
        let of = |threads: usize| format!("{} ({:.2})", speed(speeds[threads]), speeds[threads] / ours[threads]);
        let repeated = plan.rounds * events / 2;
        table.row([
            name.to_string(),
            of(0),
            of(1),
            format!("{bits:.1}"),
            lost_of(lost[0], repeated),
            lost_of(lost[1], repeated),
            duration(times.quantile(0.999)),
            duration(times.quantile(1.0)),
        ]);
    }
    record.table(table);
}

fn lost_of(lost: usize, of: usize) -> String {
    if lost == 0 { "0".into() } else { format!("{:.2} %", lost as f64 * 100.0 / of as f64) }
}

/// The time of each event on one thread, while another makes ticks as they fall due.
fn beside_ticks(plan: &Plan, window: &dyn Window, keys_a_window: usize) -> Times {
    let (seen, mut stream, mut times) = (AtomicUsize::new(0), Events::new(0), Times::new());
    let a_tick = 2 * keys_a_window / STEPS as usize;
    let ticker = |_: usize, stop: &std::sync::atomic::AtomicBool| {
        let mut made = 0;
        while !stop.load(Ordering::Relaxed) {
            if seen.load(Ordering::Relaxed) / a_tick > made {
                made += 1;
                window.tick();
            }
            thread::yield_now();
        }
        made
    };
    let work = || {
        for round in 0..(3 * STEPS as usize).min(2 * plan.rounds) {
            for turn in stream.next(a_tick, keys_a_window).0.chunks(TURN) {
                // The first window fills it.
                if round < STEPS as usize {
                    window.see_all(turn);
                } else {
                    turn.iter().for_each(|&key| _ = times.time(|| window.see(key)));
                }
                seen.fetch_add(turn.len(), Ordering::Relaxed);
            }
        }
    };
    clock::with(1, ticker, work);
    times
}

/// Memory of this process, in bytes; 0 where it is not told.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|pages| pages.split(' ').nth(1)?.parse::<usize>().ok());
    pages.unwrap_or_default() * 4096
}

/// What a tick takes of a thread, compared with cuckoo-clock.
fn ticks(plan: &Plan, record: &mut Record) {
    let log2 = plan.large;
    plan.step(&format!("ticks, 2^{log2} slots"));
    record.text(
        "A tick of filters at 95 % load, one thread. Of this crate a seventh of the keys dies at each, and keys come in \
         their place between two ticks; a tick clears what is left of them:",
    );
    let mut table = Table::new(["", "slots", "a tick", "ns a slot"]);
    let count = Size::new(log2, 16).keys;
    let filter = windows::ours(count * STEPS as usize / (STEPS as usize + 1), STEPS);
    let all: Vec<u64> = keys(30, count / 7 * 7);
    let parts: Vec<&[u64]> = all.chunks(all.len() / 7).collect();
    let mut nanos = Vec::new();
    for round in 0..7 + plan.few() {
        crate::most(filter.par_insert(parts[round % 7]).inserted, parts[0].len());
        let (time, _) = timed(1, || filter.advance());
        if round >= 7 {
            nanos.push(time);
        }
    }
    let mut row = |name: &str, log2: u32, mut nanos: Vec<f64>| {
        let nanos = slices::tenth(&mut nanos);
        table.row([
            name.into(),
            format!("2^{log2}"),
            duration(nanos),
            format!("{:.2}", nanos / f64::from(1u32 << log2)),
        ]);
    };
    row("this crate, `advance`", log2, nanos);
    let log2 = log2.min(20);
    // The next power of two of buckets.
    let peer = cuckoo_clock((1 << log2) * 6 / 7 - 10);
    keys::<u64>(31, (1 << log2) * 8 / 10).iter().for_each(|&key| _ = peer.see(key));
    let scan = |_| timed(1, || peer.scan_and_update_ttl()).0;
    row("cuckoo-clock, `scan_and_update_ttl`", log2, (0..plan.few()).map(scan).collect());
    record.table(table);
}

/// The memory of this crate over the keys of a window, by steps.
fn bits(plan: &Plan, record: &mut Record) {
    let capacity = if plan.quick { 1 << 16 } else { 1 << 20 };
    record.text(&format!("Memory for {capacity} keys a window at 0.1 %, by the steps of a window:"));
    let mut table = Table::new(["steps", "bits of a slot", "bits a key", "expected rate when full"]);
    for steps in [2, 6, 14, 30, 62, 254] {
        let filter = windows::ours(capacity, steps);
        let all = keys::<u64>(32, capacity);
        let kept = filter.par_insert(&all).inserted;
        assert_eq!(kept, capacity, "room for the capacity");
        let stats = filter.stats();
        let slots = stats.len as f64 / stats.load_factor;
        table.row([
            steps.to_string(),
            format!("{:.0}", (filter.memory_usage() as f64 * 8.0 / slots).floor()),
            format!("{:.1}", filter.memory_usage() as f64 * 8.0 / capacity as f64),
            format!("{:.3} %", stats.expected_false_positive_rate * 100.0),
        ]);
    }
    record.table(table);
}
