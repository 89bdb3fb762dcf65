//! Lookups and writes on 1, 2 and 4 threads at 95 % load:
//! `cargo bench -p compare --bench mixed -- '90 to 10/2 threads/2^20'`. [`cases`] tells the sizes.
//!
//! Half the lookups are hits. A write removes a key, or inserts the one that the thread's last write removed. The time
//! is that of all threads together.

mod cases;

use cases::Case;
use compare::clock::on_threads;
use compare::most;
use compare::{Contested, Key, Passes, Text};
use criterion::{Criterion, Throughput};
use std::cell::LazyCell;

/// Operations of a pass, on all threads together.
const OPERATIONS: usize = 1 << 17;

/// Names of the mixes, and how many lookups go before each write.
const MIXES: [(&str, usize); 2] = [("90 to 10", 9), ("50 to 50", 1)];

fn main() {
    let mut criterion = cases::criterion();
    mixed::<u64>(&mut criterion);
    mixed::<Text>(&mut criterion);
    criterion.final_summary();
}

fn mixed<K: Contested>(criterion: &mut Criterion) {
    let mut group = cases::group(criterion, "mixed");
    cases::each(|case: &Case<K>| {
        if !case.contestant.removes {
            return;
        }
        let set = LazyCell::new(|| case.contestant.filled(case.size, &case.field().present));
        for (name, lookups) in MIXES {
            for threads in [1, 2, 4] {
                let writes = OPERATIONS / threads / (lookups + 1);
                group.throughput(Throughput::Elements((threads * writes * (lookups + 1)) as u64));
                let name = format!("{name}/{threads} thread{}/{}", if threads == 1 { "" } else { "s" }, case.name);
                group.bench_function(name, |bencher| {
                    let (set, field) = (&**set, case.field());
                    let part = |thread| {
                        let (asked, changed) = (of_thread(&field.half, thread, threads), &field.present);
                        work(set, asked, of_thread(changed, thread, threads), lookups, writes);
                    };
                    bencher.iter_custom(|passes| (0..passes).map(|_| on_threads(threads, part).0).sum());
                });
            }
        }
    });
}

/// The keys that belong to one of the threads.
fn of_thread<K>(keys: &[K], thread: usize, threads: usize) -> &[K] {
    let part = keys.len() / threads;
    &keys[thread * part..][..part]
}

/// What a thread does: some lookups, a write, and so on.
fn work<K: Key>(set: &dyn Passes<K>, asked: &[K], changed: &[K], lookups: usize, writes: usize) {
    let mut asked = asked.iter();
    let (mut found, mut written) = (0, 0);
    for write in 0..writes {
        for key in asked.by_ref().take(lookups) {
            found += usize::from(set.contains(key));
        }
        let key = &changed[write / 2];
        written += usize::from(if write % 2 == 0 { set.remove(key) } else { set.insert(key) });
    }
    most(written, writes);
    let all = writes * lookups;
    assert!((all * 45 / 100..all * 60 / 100).contains(&found), "{found} of {all} found");
}
