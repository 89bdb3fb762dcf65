//! A filter that grows, compared with one that was built for all keys and a chain of filters, each twice as large as the one
//! before it.

use super::Plan;
use crate::clock::timed;
use crate::field::keys;
use crate::record::{Record, Table};
use crate::slices::{self, Case, against, speed};
use concurrent_cuckoo_filter::{Builder, CuckooFilter};
use fastrand::Rng;

/// Keys at the beginning.
const BEGIN: usize = 10_000;

const NAMES: [&str; 3] = ["growing", "final size", "chain"];

/// What is looked up: absent keys and present ones, one by one and in batches.
const KINDS: [&str; 4] = ["absent", "present", "absent, batch", "present, batch"];

/// A filter that takes more and more keys.
trait Grows {
    fn insert(&mut self, key: &u64);
    fn contains_all(&self, keys: &[u64]) -> usize;
    fn contains_batch(&self, keys: &[u64], found: &mut [bool]);
    fn bytes(&self) -> usize;
}

fn builder() -> Builder<u64> {
    CuckooFilter::builder().false_positive_rate(0.001)
}

fn growing(keys: usize) -> CuckooFilter<u64> {
    builder().capacity(BEGIN).max_capacity(keys).build().expect("a possible filter")
}

fn fixed(keys: usize) -> CuckooFilter<u64> {
    builder().capacity(keys).build().expect("a possible filter")
}

impl Grows for CuckooFilter<u64> {
    fn insert(&mut self, key: &u64) {
        CuckooFilter::insert(self, key).expect("room");
    }

    fn contains_all(&self, keys: &[u64]) -> usize {
        keys.iter().filter(|key| self.contains(key)).count()
    }

    fn contains_batch(&self, keys: &[u64], found: &mut [bool]) {
        CuckooFilter::contains_batch(self, keys, found);
    }

    fn bytes(&self) -> usize {
        self.memory_usage()
    }
}

/// As RedisBloom grows: a full filter stays, and one of twice the size is added. A lookup asks them from the newest on, each
/// with the same hash. All of them are of this crate.
struct Chain(Vec<CuckooFilter<u64>>);

impl Chain {
    fn new() -> Self {
        Chain(vec![fixed(BEGIN)])
    }
}

impl Grows for Chain {
    fn insert(&mut self, key: &u64) {
        let newest = self.0.last().expect("a link");
        if newest.len() == newest.capacity() {
            let next = builder().capacity(2 * newest.capacity()).hasher(newest.hasher().clone()).build();
            self.0.push(next.expect("a possible filter"));
        }
        Grows::insert(self.0.last_mut().expect("a link"), key);
    }

    fn contains_all(&self, keys: &[u64]) -> usize {
        let contains = |key: &&u64| {
            let hash = self.0[0].hash(*key);
            self.0.iter().rev().any(|link| link.contains_hash(hash))
        };
        keys.iter().filter(contains).count()
    }

    fn contains_batch(&self, keys: &[u64], found: &mut [bool]) {
        // What one link does not have the others are asked for.
        let (newest, others) = self.0.split_last().expect("a link");
        newest.contains_batch(keys, found);
        let (mut left, mut places) = (Vec::new(), Vec::new());
        for link in others.iter().rev() {
            places.clear();
            places.extend((0..keys.len()).filter(|&place| !found[place]));
            left.clear();
            left.extend(places.iter().map(|&place| keys[place]));
            let mut answers = vec![false; left.len()];
            link.contains_batch(&left, &mut answers);
            places.iter().zip(answers).for_each(|(&place, answer)| found[place] = answer);
        }
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(CuckooFilter::memory_usage).sum()
    }
}

/// What was measured of the three at one number of keys.
struct Row {
    keys: usize,
    /// Nanoseconds a lookup, by kind.
    nanos: [[f64; 3]; 4],
    bits: [f64; 3],
    rates: [f64; 3],
}

pub(super) fn run(plan: &Plan, record: &mut Record) {
    record.heading("Growth");
    record.text(&format!(
        "u64 keys, one thread, a rate of 0.1 % asked for. *Growing* begins with {BEGIN} keys and grows by itself; *final size* was \
         built for all keys; *chain* is what RedisBloom does: filters of this crate, each twice as large as the one before \
         it, that are all asked, from the newest on. At each half doubling; in brackets how many times as fast as the \
         filter of the final size.",
    ));
    grow(plan, record, if plan.quick { 40_000 } else { 10_000_000 });
    fill(plan, record, if plan.quick { [40_000, 400_000] } else { [10_000_000, 100_000_000] });
}

fn grow(plan: &Plan, record: &mut Record, most: usize) {
    let present: Vec<u64> = keys(20, most);
    let absent: Vec<u64> = keys(21, 1 << 20);
    let mut filters: [Box<dyn Grows>; 3] = [Box::new(growing(most)), Box::new(fixed(most)), Box::new(Chain::new())];
    let (mut rows, mut stored, mut random) = (Vec::new(), 0, Rng::with_seed(22));
    for half in 0.. {
        let size = ((BEGIN as f64 * 2f64.powf(f64::from(half) / 2.0)) as usize).min(most);
        plan.step(&format!("growth, {size} of {most} keys"));
        for filter in &mut filters {
            present[stored..size].iter().for_each(|key| filter.insert(key));
        }
        stored = size;
        let hits: Vec<u64> = (0..1 << 18).map(|_| present[random.usize(..size)]).collect();
        rows.push(row(plan, size, &filters, &absent, &hits));
        if size == most {
            break;
        }
    }

    let name = |number: usize| NAMES[number].to_string();
    for (kind, what) in KINDS.iter().enumerate() {
        record.text(&format!("M lookups/s on the way to {most} keys, {what}:"));
        let mut table = Table::new(["keys".to_string(), name(0), name(1), name(2)]);
        for Row { keys, nanos, .. } in &rows {
            let [grown, fixed, chain] = nanos[kind];
            table.row([keys.to_string(), against(grown, fixed), speed(fixed), against(chain, fixed)]);
        }
        record.table(table);
    }
    record.text("Bits a key, and false positives of a million lookups:");
    let heads =
        NAMES.iter().map(|name| format!("{name}, bits")).chain(NAMES.iter().map(|name| format!("{name}, wrong")));
    let mut table = Table::new(std::iter::once("keys".to_string()).chain(heads));
    for Row { keys, bits, rates, .. } in &rows {
        let cells =
            bits.iter().map(|bits| format!("{bits:.2}")).chain(rates.iter().map(|rate| format!("{:.0}", rate * 1e6)));
        table.row(std::iter::once(keys.to_string()).chain(cells));
    }
    record.table(table);
    let mean = |number: usize| rows.iter().map(|row| row.bits[number]).sum::<f64>() / rows.len() as f64;
    let last = rows.last().expect("a row");
    record.text(&format!(
        "Over the whole growth the growing filter takes {:.2} bits a key on average, the chain {:.2}; at the end {:.2} and {:.2} times \
         the bits of the filter of the final size.",
        mean(0),
        mean(2),
        last.bits[0] / last.bits[1],
        last.bits[2] / last.bits[1],
    ));
}

fn row(plan: &Plan, keys: usize, filters: &[Box<dyn Grows>; 3], absent: &[u64], hits: &[u64]) -> Row {
    let mut cases = Vec::new();
    for (kind, asked) in [absent, hits, absent, hits].into_iter().enumerate() {
        for filter in filters {
            let check = move |found: usize, of: usize| {
                let right = if kind % 2 == 0 { found <= of / 50 } else { found == of };
                assert!(right, "{found} of {of} {} keys found", KINDS[kind]);
            };
            let mut found = Vec::new();
            let pass = move |keys: &[u64]| {
                if kind < 2 {
                    return filter.contains_all(keys);
                }
                found.resize(keys.len(), false);
                filter.contains_batch(keys, &mut found);
                found.iter().filter(|&&found| found).count()
            };
            cases.push(Case::pass("", asked, pass, check));
        }
    }
    let nanos = slices::take(plan.rounds, &mut cases);
    drop(cases);
    Row {
        keys,
        nanos: [0, 1, 2, 3].map(|kind| [0, 1, 2].map(|number| nanos[3 * kind + number])),
        bits: [0, 1, 2].map(|number| filters[number].bytes() as f64 * 8.0 / keys as f64),
        rates: [0, 1, 2].map(|number| filters[number].contains_all(absent) as f64 / absent.len() as f64),
    }
}

/// Filters filled from the first key to the last, one at a time and many at once.
fn fill(plan: &Plan, record: &mut Record, [many, most]: [usize; 2]) {
    type Load = fn(&CuckooFilter<u64>, &[u64]) -> usize;
    let one_by_one: Load = |filter, keys| keys.iter().filter(|key| filter.insert(key).is_ok()).count();
    let slice: Load = |filter, keys| filter.par_insert(keys).inserted;
    let iterator: Load = |filter, keys| filter.par_insert_iter(keys.iter().copied()).inserted;
    record.text("Whole fills, one key at a time on one thread and in bulk on all, M keys/s:");
    let mut table = Table::new(["", NAMES[0], NAMES[1]]);
    for (name, load, count, in_a_row) in [
        ("`insert`, random keys", one_by_one, many, false),
        ("`insert`, numbers in a row", one_by_one, many, true),
        ("`par_insert`", slice, many, false),
        ("`par_insert_iter`", iterator, many, false),
        ("`par_insert`", slice, most, false),
        ("`par_insert_iter`", iterator, most, false),
    ] {
        plan.step(&format!("growth, a fill of {count} keys by {name}"));
        let keys = if in_a_row { (0..count as u64).collect() } else { keys(20, count) };
        let slice = |build: fn(usize) -> CuckooFilter<u64>| {
            let keys = &keys;
            move |_| {
                let filter = build(count);
                let (nanos, stored) = timed(count, || load(&filter, keys));
                assert_eq!(stored, count, "{name}");
                nanos
            }
        };
        let cases = &mut [Case::new("", slice(growing)), Case::new("", slice(fixed))];
        let nanos = slices::take(plan.few(), cases);
        table.row([format!("{name}, {count} keys"), against(nanos[0], nanos[1]), speed(nanos[1])]);
    }
    record.table(table);
}
