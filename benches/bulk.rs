//! Bulk operations on the threads of rayon's pool, compared with loops, ours and those of peers:
//! `cargo bench -p compare --bench bulk -- 'par_insert/2^20'`. [`cases`] tells the sizes; peers run at 16 bits, or at
//! the width that they can do.

mod cases;

use cases::Case;
use compare::contestants::ours;
use compare::most;
use compare::{Contested, Key, Passes, Text};
use concurrent_cuckoo_filter::CuckooFilter;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput};
use rayon::prelude::*;
use std::cell::LazyCell;
use std::time::{Duration, Instant};

/// Keys that a thread takes at a time from a parallel loop.
const CHUNK: usize = 1 << 10;

fn main() {
    let mut criterion = cases::criterion();
    bulk::<u64>(&mut criterion);
    bulk::<Text>(&mut criterion);
    criterion.final_summary();
}

fn bulk<K: Contested>(criterion: &mut Criterion) {
    let mut group = cases::group(criterion, "bulk");
    cases::each(|case: &Case<K>| {
        group.throughput(Throughput::Elements(case.size.keys as u64));
        if case.contestant.name == ours::NAME {
            operations(&mut group, case);
            Loop::SERIAL.bench(&mut group, case);
        } else if (case.contestant.bits)(16) && case.size.bits != 16 {
            return;
        }
        Loop::PARALLEL.bench(&mut group, case);
    });
}

fn operations<K: Key>(group: &mut BenchmarkGroup<WallTime>, case: &Case<K>) {
    let all = case.size.keys;
    let filter: LazyCell<CuckooFilter<K>, _> = LazyCell::new(|| ours::build(case.size));
    let fill = |keys: &[K]| {
        filter.clear();
        assert_eq!(filter.par_insert(keys).inserted, all);
    };
    group.bench_function(format!("par_insert/{}", case.name), |bencher| {
        let present = &case.field().present;
        bencher.iter_custom(|count| passes(count, all, || filter.clear(), |()| filter.par_insert(present).inserted));
    });
    group.bench_function(format!("par_insert_iter/{}", case.name), |bencher| {
        let present = &case.field().present;
        bencher.iter_custom(|count| {
            passes(count, all, || filter.clear(), |()| filter.par_insert_iter(present.iter().copied()).inserted)
        });
    });
    group.bench_function(format!("par_contains/{}", case.name), |bencher| {
        let present = &case.field().present;
        fill(present);
        let mut found = vec![false; present.len()];
        bencher.iter(|| filter.par_contains(present, &mut found));
        assert!(found.iter().all(|&found| found), "a key is missing");
    });
    group.bench_function(format!("par_remove/{}", case.name), |bencher| {
        let present = &case.field().present;
        bencher.iter_custom(|count| passes(count, all, || fill(present), |()| filter.par_remove(present).removed));
    });
}

/// What is done with some of the keys; counts those that it was done for.
type Pass<'a, K> = dyn Fn(&[K]) -> usize + Sync + 'a;

/// One call for each key, in a kind of loop.
struct Loop<K> {
    name: &'static str,
    /// Gives all the keys to a pass, or part by part to several passes at once.
    run: fn(&[K], &Pass<K>) -> usize,
}

impl<K: Key> Loop<K> {
    const SERIAL: Self = Loop { name: "loop", run: |keys, pass| pass(keys) };
    const PARALLEL: Self = Loop { name: "parallel loop", run: |keys, pass| keys.par_chunks(CHUNK).map(pass).sum() };

    fn bench(&self, group: &mut BenchmarkGroup<WallTime>, case: &Case<K>) {
        self.inserts(group, case);
        self.lookups(group, case);
        if case.contestant.removes {
            self.removals(group, case);
        }
    }

    fn insert(&self, set: &dyn Passes<K>, keys: &[K]) -> usize {
        (self.run)(keys, &|keys| set.insert_all(keys))
    }

    fn inserts(&self, group: &mut BenchmarkGroup<WallTime>, case: &Case<K>) {
        group.bench_function(format!("insert, {}/{}", self.name, case.name), |bencher| {
            let present = &case.field().present;
            let all = present.len();
            bencher.iter_custom(|count| {
                passes(count, all, || (case.contestant.build)(case.size), |set| self.insert(&**set, present))
            });
        });
    }

    fn lookups(&self, group: &mut BenchmarkGroup<WallTime>, case: &Case<K>) {
        let set = LazyCell::new(|| case.contestant.filled(case.size, &case.field().present));
        group.bench_function(format!("contains, {}/{}", self.name, case.name), |bencher| {
            let (set, present) = (&**set, &case.field().present);
            bencher.iter(|| most((self.run)(present, &|keys| set.contains_all(keys)), present.len()));
        });
    }

    fn removals(&self, group: &mut BenchmarkGroup<WallTime>, case: &Case<K>) {
        let set = LazyCell::new(|| (case.contestant.build)(case.size));
        group.bench_function(format!("remove, {}/{}", self.name, case.name), |bencher| {
            let (set, present) = (&**set, &case.field().present);
            let fill = || most(Self::PARALLEL.insert(set, present), present.len());
            let pass = |(): &()| (self.run)(present, &|keys| set.remove_all(keys));
            bencher.iter_custom(|count| passes(count, present.len(), fill, pass));
        });
    }
}

/// The time of some passes over all keys, each on what was prepared for it.
fn passes<T>(count: u64, all: usize, prepare: impl Fn() -> T, pass: impl Fn(&T) -> usize) -> Duration {
    let time = |_| {
        let prepared = prepare();
        let clock = Instant::now();
        let done = pass(&prepared);
        let time = clock.elapsed();
        most(done, all);
        time
    };
    (0..count).map(time).sum()
}
