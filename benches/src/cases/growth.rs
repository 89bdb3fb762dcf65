//! A filter that grows, compared with one built for all keys, and with a chain of filters, each twice as large as the previous one.

use super::Plan;
use crate::clock::timed;
use crate::contestants::ours::Of;
use crate::contestants::{Set, most};
use crate::field::keys;
use crate::record::{Record, Table};
use crate::slices::{self, Case, against, speed};
use concurrent_cuckoo_filter::{Builder, CuckooFilter};
use fastrand::Rng;
use std::sync::RwLock;

/// The initial capacity.
const BEGIN: usize = 10_000;

fn builder() -> Builder<u64> {
    CuckooFilter::builder().false_positive_rate(0.001)
}

fn growing(keys: usize) -> CuckooFilter<u64> {
    builder().capacity(BEGIN).max_capacity(keys).build().expect("a possible filter")
}

fn fixed(keys: usize) -> CuckooFilter<u64> {
    builder().capacity(keys).build().expect("a possible filter")
}

/// Grows as RedisBloom does: when a filter is full, another one of twice the size is added. A lookup queries all of them with one
/// hash, the newest first. All are filters of this crate.
struct Chain(RwLock<Vec<CuckooFilter<u64>>>);

impl Set for Chain {
    fn insert(&self, key: &u64) -> bool {
        let mut links = self.0.write().expect("no panic");
        let newest = links.last().expect("a link");
        if newest.len() == newest.capacity() {
            let next = builder().capacity(2 * newest.capacity()).hasher(newest.hasher().clone()).build();
            links.push(next.expect("a possible filter"));
        }
        links.last().expect("a link").insert(key).is_ok()
    }

    fn contains(&self, _: &u64) -> bool {
        unreachable!("only passes are measured, which take the lock once")
    }

    fn contains_all(&self, keys: &[u64]) -> usize {
        let links = self.0.read().expect("no panic");
        let contains = |key: &&u64| {
            let hash = links[0].hash(*key);
            links.iter().rev().any(|link| link.hashed().contains(&hash))
        };
        keys.iter().filter(contains).count()
    }
}

pub(super) fn run(plan: &Plan, record: &mut Record) {
    let largest = if plan.quick { 40_000 } else { 10_000_000 };
    record.heading("Growth");
    record.text(&format!(
        "One thread, a rate of 0.1 %. *Growing* begins with a capacity of {BEGIN} keys; *final size* was built for \
         {largest}; *chain* is what RedisBloom does: filters of this crate, each twice as large as the one before it, \
         and a lookup queries all of them. In brackets: the speed of the column relative to the filter of the final \
         size.",
    ));
    let (present, absent) = (keys(20, largest), keys(21, 1 << 20));
    let (growing_one, fixed_one) = (Of(growing(largest)), Of(fixed(largest)));
    let chain = Chain(RwLock::new(vec![fixed(BEGIN)]));
    let sets: [&dyn Set; 3] = [&growing_one, &fixed_one, &chain];
    let heads = ["keys", "absent: growing", "final size", "chain", "present: growing", "final size", "chain"];
    let mut table = Table::new(heads.into_iter().chain(["bits per key: growing", "final size", "chain"]));
    let (mut stored, mut random) = (0, Rng::with_seed(22));
    for size in (0..).map(|step| (BEGIN << (2 * step)).min(largest)) {
        plan.step(&format!("growth, {size} of {largest} keys"));
        sets.iter().for_each(|set| most(set.insert_all(&present[stored..size]), size - stored));
        stored = size;
        let hits: Vec<u64> = (0..1 << 18).map(|_| present[random.usize(..size)]).collect();
        let few = |found: usize, of: usize| assert!(found <= of / 50, "{found} of {of} absent keys found");
        let whole = |found: usize, of: usize| assert_eq!(found, of, "every present key is found");
        let absent = sets.iter().map(|set| Case::pass(&absent, |keys| set.contains_all(keys), few));
        let present = sets.iter().map(|set| Case::pass(&hits, |keys| set.contains_all(keys), whole));
        let nanos = slices::take(plan.rounds, &mut absent.chain(present).collect::<Vec<_>>());
        let links = chain.0.read().expect("no panic").iter().map(CuckooFilter::memory_usage).sum::<usize>();
        let bytes = [growing_one.0.memory_usage(), fixed_one.0.memory_usage(), links];
        let speeds = nanos.chunks(3).flat_map(|nanos| {
            [against(nanos[0], nanos[1] / nanos[0]), speed(nanos[1]), against(nanos[2], nanos[1] / nanos[2])]
        });
        let bits = bytes.map(|bytes| format!("{:.1}", bytes as f64 * 8.0 / size as f64));
        table.row(std::iter::once(size.to_string()).chain(speeds).chain(bits));
        if size == largest {
            break;
        }
    }
    record.table(&table);

    let mut table = Table::new([format!("fills of {largest} keys, M keys/s"), "growing".into(), "final size".into()]);
    let single: fn(&CuckooFilter<u64>, &[u64]) -> usize =
        |filter, keys| keys.iter().filter(|key| filter.insert(key).is_ok()).count();
    for (name, load) in [("`insert`", single), ("`par_insert`", |filter, keys| filter.par_insert(keys).inserted)] {
        let mut cases = [growing as fn(usize) -> _, fixed].map(|build| {
            let present = &present;
            Case::new(move |_| {
                let filter = build(largest);
                let (nanos, stored) = timed(largest, || load(&filter, present));
                assert_eq!(stored, largest, "{name}");
                nanos
            })
        });
        let nanos = slices::take(plan.few(), &mut cases);
        table.row([name.into(), against(nanos[0], nanos[1] / nanos[0]), speed(nanos[1])]);
    }
    record.table(&table);

    let count = if plan.quick { 1_000 } else { 1_000_000 };
    plan.step(&format!("growth, {count} small filters"));
    let small = || builder().capacity(100).max_capacity(100_000).build().expect("a possible filter");
    let (nanos, filters) = timed(1, || (0..count).map(|_| small()).collect::<Vec<_>>());
    let (seconds, bytes) = (nanos / 1e9, filters[0].memory_usage());
    record.text(&format!("{count} filters of 100 to 100,000 keys: built in {seconds:.2} s, {bytes} bytes each."));
}
