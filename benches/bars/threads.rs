//! Lookups of several threads, and beside a writer.

use crate::passes::{filled, misses};
use crate::turns::Contests;
use compare::clock::on_threads;
use compare::peers::ours;
use compare::{Field, Set, Size};
use concurrent_cuckoo_filter::DefaultHashBuilder;
use std::cell::LazyCell;
use std::hash::BuildHasher;
use std::hint::black_box;
use std::ops::Deref;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

pub(crate) fn run(contests: &Contests, field: &impl Deref<Target = Field<u64>>) {
    let ours = LazyCell::new(|| filled(ours::build(Size::new(20, 16)), field));
    contests.run("two readers against one 2^20", 1.8, || readers(&*ours, field, 2), || readers(&*ours, field, 1));
    let hasher = DefaultHashBuilder::new();
    contests.run(
        "reader beside a writer against beside a hasher 2^20",
        0.8,
        || {
            let ours = &*ours;
            reader_beside(ours, field, |key| {
                if ours.remove(key) {
                    ours.insert(key).expect("the slot that was just freed");
                }
            })
        },
        || {
            reader_beside(&*ours, field, |key| {
                black_box(hasher.hash_one(key));
            })
        },
    );
}

/// The cost of a lookup to all of `readers` threads together, each doing its own passes.
fn readers(set: &impl Set<u64>, field: &Field<u64>, readers: usize) -> f64 {
    let (_, nanos) = on_threads(readers, |_| mean_miss(set, field));
    nanos.iter().sum::<f64>() / (readers * readers) as f64
}

/// The cost of a lookup while another thread works on the same filter.
fn reader_beside(set: &impl Set<u64>, field: &Field<u64>, work: impl Fn(&u64) + Sync) -> f64 {
    let (stop, barrier) = (AtomicBool::new(false), Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            barrier.wait();
            let mut keys = field.hits.iter().cycle();
            while !stop.load(Ordering::Relaxed) {
                work(keys.next().expect("a cycle"));
            }
        });
        barrier.wait();
        let nanos = mean_miss(set, field);
        stop.store(true, Ordering::Relaxed);
        nanos
    })
}

/// The cost of a lookup over four passes.
fn mean_miss(set: &impl Set<u64>, field: &Field<u64>) -> f64 {
    (0..4).map(|_| misses(set, field)).sum::<f64>() / 4.0
}
