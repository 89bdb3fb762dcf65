//! Lookups at 95 % load: `cargo bench -p compare --bench lookup -- 'miss/2^20'`. [`cases`] tells the sizes.

mod cases;

use cases::Case;
use compare::contestants::ours;
use compare::{Contested, Field, Key, Text};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput};
use std::cell::LazyCell;

/// What is looked up, and how much of it is present.
struct Probes<K> {
    name: &'static str,
    keys: fn(&Field<K>) -> &[K],
    present: f64,
}

impl<K> Probes<K> {
    const KINDS: [Self; 3] = [
        Probes { name: "miss", keys: |field| &field.misses, present: 0.0 },
        Probes { name: "hit", keys: |field| &field.hits, present: 1.0 },
        Probes { name: "half", keys: |field| &field.half, present: 0.5 },
    ];

    /// Checks how many were found; the narrowest fingerprints are wrong 3 times in 100.
    fn check(&self, found: usize, all: usize) {
        let share = found as f64 / all as f64;
        assert!((self.present - 0.01..self.present + 0.05).contains(&share), "{found} of {all} found");
    }
}

fn main() {
    let mut criterion = cases::criterion();
    lookup::<u64>(&mut criterion);
    lookup::<Text>(&mut criterion);
    criterion.final_summary();
}

fn lookup<K: Contested>(criterion: &mut Criterion) {
    let mut group = cases::group(criterion, "lookup");
    cases::each(|case: &Case<K>| {
        group.throughput(Throughput::Elements(case.probes as u64));
        singles(&mut group, case);
        if case.contestant.name == ours::NAME {
            batches(&mut group, case);
        }
    });
}

fn singles<K: Key>(group: &mut BenchmarkGroup<WallTime>, case: &Case<K>) {
    let set = LazyCell::new(|| case.contestant.filled(case.size, &case.field().present));
    for probes in Probes::KINDS {
        group.bench_function(format!("{}/{}", probes.name, case.name), |bencher| {
            let keys = (probes.keys)(case.field());
            let set = &*set;
            bencher.iter(|| probes.check(set.contains_all(keys), keys.len()));
        });
    }
}

fn batches<K: Key>(group: &mut BenchmarkGroup<WallTime>, case: &Case<K>) {
    let filter = LazyCell::new(|| {
        let filter = ours::build::<K>(case.size);
        assert_eq!(filter.insert_batch(&case.field().present).inserted, case.size.keys);
        filter
    });
    for probes in Probes::KINDS {
        group.bench_function(format!("{}, batch/{}", probes.name, case.name), |bencher| {
            let keys = (probes.keys)(case.field());
            let filter = &*filter;
            let mut found = vec![false; keys.len()];
            bencher.iter(|| filter.contains_batch(keys, &mut found));
            probes.check(found.iter().filter(|&&found| found).count(), keys.len());
        });
    }
}
