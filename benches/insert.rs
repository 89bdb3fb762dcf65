//! Insertions by load: `cargo bench -p compare --bench insert -- '90-95 %/2^20'`. [`cases`] tells the sizes.
//!
//! A step is inserted part by part, each part a pass, and emptied again behind the clock's back.

mod cases;

use cases::Case;
use compare::most;
use compare::{Contested, Key, Passes, Text};
use criterion::{Criterion, Throughput};
use std::time::{Duration, Instant};

/// Load factors between which insertions are timed, in percent.
const STEPS: [(usize, usize); 4] = [(0, 50), (50, 75), (75, 90), (90, 95)];

/// Parts of a step.
const PARTS: usize = 16;

fn main() {
    let mut criterion = cases::criterion();
    insert::<u64>(&mut criterion);
    insert::<Text>(&mut criterion);
    criterion.final_summary();
}

fn insert<K: Contested>(criterion: &mut Criterion) {
    let mut group = cases::group(criterion, "insert");
    cases::each(|case: &Case<K>| {
        let mut filling = None;
        for (from, to) in STEPS {
            let (start, end) = (case.size.slots * from / 100, case.size.slots * to / 100);
            let part = (end - start) / PARTS;
            group.throughput(Throughput::Elements(part as u64));
            group.bench_function(format!("{from}-{to} %/{}", case.name), |bencher| {
                let filling =
                    filling.get_or_insert_with(|| Filling { case, set: (case.contestant.build)(case.size), len: 0 });
                filling.reach(start);
                bencher.iter_custom(|passes| (0..passes).map(|_| filling.pass(start, end, part)).sum());
            });
        }
    });
}

/// A contestant that holds the first `len` keys of its field.
struct Filling<'a, K> {
    case: &'a Case<'a, K>,
    set: Box<dyn Passes<K>>,
    len: usize,
}

impl<K: Key> Filling<'_, K> {
    /// Inserts what is missing of the keys before `start`.
    fn reach(&mut self, start: usize) {
        if self.len < start {
            let keys = &self.case.field().present[self.len..start];
            most(self.set.insert_all(keys), keys.len());
            self.len = start;
        }
    }

    /// The time that the next part of the step takes.
    fn pass(&mut self, start: usize, end: usize, part: usize) -> Duration {
        if self.len + part > end {
            self.go_back(start);
        }
        let keys = &self.case.field().present[self.len..self.len + part];
        let clock = Instant::now();
        let inserted = self.set.insert_all(keys);
        let time = clock.elapsed();
        most(inserted, part);
        self.len += part;
        time
    }

    /// Keeps only the keys before `start`.
    fn go_back(&mut self, start: usize) {
        if self.case.contestant.removes {
            let keys = &self.case.field().present[start..self.len];
            most(self.set.remove_all(keys), keys.len());
            self.len = start;
        } else {
            self.set = (self.case.contestant.build)(self.case.size);
            self.len = 0;
            self.reach(start);
        }
    }
}
