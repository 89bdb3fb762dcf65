//! How long a single writer waits for others: for some that insert and remove keys of their own, and for a bulk load.

use crate::large::Large;
use crate::turns::Contests;
use compare::clock::timed;
use compare::field::keys;
use concurrent_cuckoo_filter::CuckooFilter;
use hdrhistogram::Histogram;
use std::ops::Deref;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

pub(crate) fn run(contests: &Contests, log2: u32, large: &impl Deref<Target = Large>) {
    if !contests.wants(&format!("waits 2^{log2}")) {
        return;
    }
    let Large { filter, present, two, .. } = &**large;
    // A tenth of the load stays free for the writer and for the rounds of the load.
    let (base, round) = present.split_at(present.len() * 8 / 10);
    filter.clear();
    assert_eq!(two.install(|| filter.par_insert(base)).inserted, base.len());
    for others in [1, 3] {
        print(&format!("a single writer beside {others} like it 2^{log2}"), &beside_writers(filter, others));
    }
    let (stop, barrier) = (AtomicBool::new(false), Barrier::new(2));
    let (alone, beside) = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let alone = write(filter, |turn| turn < 1 << 21);
            barrier.wait();
            (alone, write(filter, |_| !stop.load(Ordering::Relaxed)))
        });
        barrier.wait();
        for _ in 0..5 {
            assert_eq!(two.install(|| filter.par_insert(round)).inserted, round.len());
            assert_eq!(two.install(|| filter.par_remove(round)).removed, round.len());
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().expect("no panic")
    });
    print(&format!("a single writer, alone 2^{log2}"), &alone);
    print(&format!("a single writer beside bulk loads on 2 threads 2^{log2}"), &beside);
}

/// The times of a writer beside others, all with keys of their own.
fn beside_writers(filter: &CuckooFilter<u64>, others: u64) -> Histogram<u64> {
    let (stop, barrier) = (AtomicBool::new(false), Barrier::new(others as usize + 1));
    thread::scope(|scope| {
        for number in 0..others {
            let (stop, barrier) = (&stop, &barrier);
            scope.spawn(move || {
                let own: Vec<u64> = keys(5 + number, 1 << 10);
                barrier.wait();
                while !stop.load(Ordering::Relaxed) {
                    own.iter().for_each(|key| filter.insert(key).expect("room"));
                    own.iter().for_each(|key| assert!(filter.remove(key)));
                }
            });
        }
        barrier.wait();
        let times = write(filter, |turn| turn < 1 << 22);
        stop.store(true, Ordering::Relaxed);
        times
    })
}

/// The times of single writes, as long as `go_on` says so of the number of pairs of them.
pub(crate) fn write(filter: &CuckooFilter<u64>, go_on: impl Fn(usize) -> bool) -> Histogram<u64> {
    let mut times = Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("bounds in order");
    let own: Vec<u64> = keys(4, 1 << 10);
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
    times
}

pub(crate) fn print(name: &str, times: &Histogram<u64>) {
    let micros = |part: f64| times.value_at_quantile(part) as f64 / 1e3;
    println!(
        "{name:<64} p50 {:.2}, p99 {:.1}, p99.9 {:.0}, p99.99 {:.0}, worst {:.0} us of {} writes",
        micros(0.5),
        micros(0.99),
        micros(0.999),
        micros(0.9999),
        times.max() as f64 / 1e3,
        times.len()
    );
}
