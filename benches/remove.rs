//! Removals at 95 % load: `cargo bench -p compare --bench remove -- '2^20/16 bits'`. [`cases`] tells the sizes.

mod cases;

use cases::Case;
use compare::most;
use compare::{Contested, Text};
use criterion::{Criterion, Throughput};
use std::cell::LazyCell;
use std::time::Instant;

/// A pass removes this part of the keys; they are inserted again behind the clock's back.
const PART: usize = 64;

fn main() {
    let mut criterion = cases::criterion();
    remove::<u64>(&mut criterion);
    remove::<Text>(&mut criterion);
    criterion.final_summary();
}

fn remove<K: Contested>(criterion: &mut Criterion) {
    let mut group = cases::group(criterion, "remove");
    cases::each(|case: &Case<K>| {
        if !case.contestant.removes {
            return;
        }
        let set = LazyCell::new(|| case.contestant.filled(case.size, &case.field().present));
        let part = case.size.keys / PART;
        let mut turn = 0;
        group.throughput(Throughput::Elements(part as u64));
        group.bench_function(&case.name, |bencher| {
            let present = &case.field().present;
            let set = &*set;
            bencher.iter_custom(|passes| {
                let times = (0..passes).map(|_| {
                    let keys = &present[turn % PART * part..][..part];
                    turn += 1;
                    let clock = Instant::now();
                    let removed = set.remove_all(keys);
                    let time = clock.elapsed();
                    most(removed, part);
                    most(set.insert_all(keys), part);
                    time
                });
                times.sum()
            });
        });
    });
}
