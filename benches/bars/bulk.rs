//! Bulk operations and batches beside loops, on the large table.

use crate::large::{self, Large, asked};
use crate::turns::Contests;
use compare::clock::timed;
use compare::field::keys;
use compare::limit::Lines;
use compare::peers::atomic_cuckoo;
use compare::{Passes, Set, Size};
use rayon::prelude::*;
use std::cell::{LazyCell, RefCell};
use std::ops::Deref;

pub(crate) fn run(contests: &Contests, log2: u32, large: &impl Deref<Target = Large>) {
    insertions(contests, log2, large);
    removals(contests, log2, large);
    lookups(contests, log2, large);
}

fn insertions(contests: &Contests, log2: u32, large: &impl Deref<Target = Large>) {
    let named = |contest: &str| format!("{contest} 2^{log2}");
    let each = || large.filter.insert_all(&large.present);
    contests.run(
        &named("par_insert, 2 threads, against a parallel loop"),
        asked(log2, 5.0),
        || large.par_fill(&large.two),
        || {
            let Large { filter, present, two, .. } = &**large;
            large.fill(|| two.install(|| present.par_iter().filter(|key| Set::insert(filter, *key)).count()))
        },
    );
    contests.run(
        &named("par_insert, 1 thread, against a loop"),
        asked(log2, 4.5),
        || large.par_fill(&large.one),
        || large.fill(each),
    );
    contests.run(
        &named("insert_batch against a loop"),
        asked(log2, 2.0),
        || large.fill(|| large.filter.insert_batch(&large.present).inserted),
        || large.fill(each),
    );
    contests.run(
        &named("par_insert against atomic-cuckoo-filter's parallel loop"),
        asked(log2, 10.0),
        || large.par_fill(&large.two),
        || {
            let peer = atomic_cuckoo::build(Size::new(log2, 16));
            let present = &large.present;
            let insert = || present.par_iter().filter(|key| Set::insert(&peer, *key)).count();
            // It refuses some below 95 % load.
            timed(present.len(), || large.two.install(insert)).0
        },
    );
}

fn removals(contests: &Contests, log2: u32, large: &impl Deref<Target = Large>) {
    let named = |contest: &str| format!("{contest} 2^{log2}");
    contests.run(
        &named("par_remove, 2 threads, against a parallel loop"),
        None,
        || large.par_empty(),
        || {
            let Large { filter, present, two, .. } = &**large;
            large.empty(|| two.install(|| present.par_iter().filter(|key| filter.remove(key)).count()))
        },
    );
    contests.run(
        &named("remove_batch against a loop"),
        None,
        || large.empty(|| large.filter.remove_batch(&large.present).removed),
        || large.empty(|| Passes::remove_all(&large.filter, &large.present)),
    );
}

fn lookups(contests: &Contests, log2: u32, large: &impl Deref<Target = Large>) {
    let count = if log2 == large::LOG2 { 100_000_000 } else { 3 << (log2 - 2) };
    let misses: LazyCell<Vec<u64>, _> = LazyCell::new(|| {
        // Other contests may have left the filter empty.
        large.par_fill(&large.two);
        keys(3, count)
    });
    let found = RefCell::new(vec![false; count]);
    let lines = LazyCell::new(|| Lines::new(log2));
    contests.run(
        &format!("par_contains, 2 threads, against the two-line limit 2^{log2}"),
        asked(log2, 2.5),
        || {
            let (filter, misses, found) = (&large.filter, &*misses, &mut *found.borrow_mut());
            let (nanos, ()) = timed(count, || large.two.install(|| filter.par_contains(misses, found)));
            let wrong = found.iter().filter(|&&found| found).count();
            assert!(wrong < count / 500, "{wrong} false positives of {count}");
            nanos
        },
        || lines.pass(&misses),
    );
}
