//! Calls from within rayon's tasks, on pools of one thread and of two: nested, from one pool into another, next to a task that
//! panics. A thread that waits for a task may take any other one meanwhile, so nothing may be locked while it waits. (`bulk` tests
//! tasks of `join` and `scope` that load one filter, and a `Hash` that uses rayon.)

use crate::support::{Stable as Filter, is_usable, panics, pool, stable_builder};
use concurrent_cuckoo_filter::SnapshotReader;
use rayon::prelude::*;
use testkit::{watchdog, written};

/// The keys of a task: enough to be sorted by shard.
const KEYS: u64 = 5000;
const TASKS: u64 = 12;

/// Filters of one shard and one stripe, and of three shards.
fn filters() -> [Filter; 2] {
    [(200_000, 1), (600_000, 64)]
        .map(|(capacity, stripes)| stable_builder(capacity, 32).stripes(stripes).build().unwrap())
}

fn keys_of(task: u64) -> Vec<u64> {
    (task * KEYS..(task + 1) * KEYS).collect()
}

/// Every operation of a task on a filter, on keys of its own, which are in the filter afterwards.
fn work(filter: &Filter, task: u64) {
    let keys = keys_of(task);
    assert_eq!(filter.par_insert(&keys).inserted, keys.len());
    assert_eq!(filter.bulk().insert_iter(&keys).inserted, keys.len());
    let mut found = vec![false; keys.len()];
    filter.par_contains(&keys, &mut found);
    assert!(found.iter().all(|&found| found));
    assert!(filter.bulk().remove(&keys).missing.is_empty());
    assert!(filter.remove_batch(&keys).missing.is_empty());
    assert_eq!(filter.insert_batch(&keys).refused, []);
    if task.is_multiple_of(4) {
        let bytes = written(|to| filter.write_to(to));
        let reader = SnapshotReader::new(&bytes[..]).unwrap().in_parallel();
        let read: Filter = reader.into_filter_with_hasher(filter.hasher().clone()).unwrap();
        assert!(keys.iter().all(|key| read.contains(key)));
        assert_eq!(read.merge_from(&read).map(|report| report.refused), Ok(0));
    }
}

/// Halves the tasks until one is left.
fn joined(filter: &Filter, tasks: std::ops::Range<u64>) {
    if tasks.end - tasks.start == 1 {
        return work(filter, tasks.start);
    }
    let middle = tasks.start.midpoint(tasks.end);
    rayon::join(|| joined(filter, tasks.start..middle), || joined(filter, middle..tasks.end));
}

/// Each task runs its work in tasks of its own, three deep.
fn spawned<'a>(scope: &rayon::Scope<'a>, filter: &'a Filter, task: u64, depth: u64) {
    work(filter, task);
    if depth > 0 {
        (1..=2).for_each(|child| scope.spawn(move |scope| spawned(scope, filter, 2 * task + child, depth - 1)));
    }
}

type Way = (&'static str, fn(&Filter));

const WAYS: [Way; 5] = [
    ("par_iter", |filter| (0..TASKS).into_par_iter().for_each(|task| work(filter, task))),
    ("par_iter within par_iter", |filter| {
        let three = |first: u64| (3 * first..3 * first + 3).into_par_iter().for_each(|task| work(filter, task));
        (0..TASKS / 3).into_par_iter().for_each(three);
    }),
    ("join", |filter| joined(filter, 0..TASKS)),
    ("scope", |filter| {
        rayon::scope(|scope| spawned(scope, filter, 0, 2));
        (7..TASKS).for_each(|task| work(filter, task));
    }),
    ("install into another pool", |filter| {
        let others = [pool(1), pool(2)];
        let install = |task: u64| others[task as usize % 2].install(|| work(filter, task));
        (0..TASKS).into_par_iter().for_each(install);
    }),
];

#[test]
fn calls_from_inside_of_tasks() {
    let _watchdog = watchdog();
    for threads in [1, 2] {
        let pool = pool(threads);
        for (way, run) in WAYS {
            for filter in filters() {
                pool.install(|| run(&filter));
                let keys: Vec<u64> = (0..TASKS * KEYS).collect();
                assert_eq!(filter.len(), keys.len(), "{way}");
                is_usable(&filter, &keys);
                assert!(pool.install(|| filter.bulk().remove(&keys)).missing.is_empty());
                assert!(filter.is_empty());
            }
        }
    }
    println!(
        "\nfigure 5.7: loads, lookups, removals, snapshots and merges by {TASKS} tasks inside of par_iter, join, scope and \
         other pools, on pools of 1 and 2 threads: no hang, no key lost"
    );
}

#[test]
fn a_task_that_panics_among_others() {
    let _watchdog = watchdog();
    for threads in [1, 2] {
        let pool = pool(threads);
        for filter in filters() {
            let fail = |task: u64| {
                work(&filter, task);
                assert_ne!(task, 5, "not this one");
            };
            let message = pool.install(|| panics(|| (0..TASKS).into_par_iter().for_each(fail)));
            assert!(message.contains("not this one"), "{message}");
            // Tasks that were started are complete; the others did nothing.
            let stored = |task: u64| {
                let keys = keys_of(task);
                let stored = filter.contains(&keys[0]);
                assert!(keys.iter().all(|key| filter.count(key) == u32::from(stored)));
                stored
            };
            let keys: Vec<u64> = (0..TASKS).filter(|&task| stored(task)).flat_map(keys_of).collect();
            assert!(stored(5) && filter.len() == keys.len());
            is_usable(&filter, &keys);
        }
    }
}
