//! Lookups of present keys: filters of many sizes, filled until they refuse a key, and looked up before and after the
//! removal of a random part.

use super::Capacities;
use crate::figure::{count, figure, seconds_since};
use crate::run::Run;
use concurrent_cuckoo_filter::InsertError;
use fastrand::Rng;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use testkit::operations::{INSERTS, LOOKUPS, REMOVES};
use testkit::{Filter, Promise, Shape, WIDTHS, broken, on_all_cores};

/// Odd, from a single key to tables of a dozen shards.
const CAPACITIES: [usize; 30] = [
    1, 3, 5, 7, 11, 17, 25, 33, 51, 77, 101, 155, 225, 333, 517, 777, 1155, 2049, 4095, 8193, 15_873, 30_001, 65_537,
    99_999, 200_003, 262_143, 400_001, 750_003, 1_500_001, 3_000_003,
];

/// Returns how the filters kept their capacity.
pub(super) fn run(run: &Run, seed: u64) -> Capacities {
    let start = Instant::now();
    let target = run.choose(1_000_000_000, 20_000_000);
    let largest = run.choose(usize::MAX, 100_000);
    // Tables of a few keys are built anew, with other seeds, until they have had this many lookups in a row.
    let a_turn = run.choose(1_000_000, 100_000);
    let mut shapes: Vec<(usize, u32)> =
        CAPACITIES.into_iter().flat_map(|capacity| WIDTHS.map(|bits| (capacity, bits))).collect();
    shapes.retain(|&(capacity, _)| capacity <= largest);
    Rng::with_seed(seed).shuffle(&mut shapes);

    let done = AtomicU64::new(0);
    let turns = on_all_cores(|number| {
        // Each shape has its turn at least.
        if number >= shapes.len() && done.load(Ordering::Relaxed) >= target {
            return None;
        }
        let (capacity, bits) = shapes[number % shapes.len()];
        let mut turn = Turn { rng: Rng::with_seed(seed.wrapping_add(number as u64)), ..Turn::default() };
        while turn.lookups < a_turn {
            turn.round(capacity, bits);
        }
        done.fetch_add(turn.lookups, Ordering::Relaxed);
        Some(turn)
    });

    let sum = |part: fn(&Turn) -> u64| turns.iter().map(part).sum::<u64>();
    figure(
        "4.1",
        format_args!(
            "0 of {} lookups of present keys missed, in {} filters of {} shapes ({} widths, capacities 1 to {}), filled to \
             the first refusal, before and after the removal of {} keys: {}",
            count(sum(|turn| turn.lookups)),
            count(sum(|turn| turn.filters)),
            count(shapes.len()),
            WIDTHS.len(),
            count(shapes.iter().map(|shape| shape.0).max().expect("a shape")),
            count(sum(|turn| turn.removed)),
            seconds_since(start)
        ),
    );
    turns.into_iter().map(|turn| turn.capacities).fold(Capacities::default(), Capacities::join)
}

#[derive(Default)]
struct Turn {
    rng: Rng,
    lookups: u64,
    filters: u64,
    removed: u64,
    capacities: Capacities,
}

impl Turn {
    /// Fills a filter, looks up, removes a random part, looks up.
    fn round(&mut self, capacity: usize, bits: u32) {
        let shape = Shape::new(capacity, bits, &mut self.rng);
        let filter = shape.build();
        let mut keys = self.fill(&shape, &filter);
        self.filters += 1;
        if bits >= 6 {
            self.capacities.note(&shape, keys.len() < capacity);
        }
        self.lookup(&shape, &filter, &keys);
        self.rng.shuffle(&mut keys);
        let (gone, left) = keys.split_at(self.rng.usize(..=keys.len()));
        self.remove(&shape, &filter, gone);
        self.lookup(&shape, &filter, left);
        if filter.len() != left.len() {
            broken(Promise::Count, &shape, None, format_args!("len is {}, not {}", filter.len(), left.len()));
        }
    }

    /// Inserts keys, the first ones in one of all the ways, up to the first refusal. Returns those that went in.
    fn fill(&mut self, shape: &Shape, filter: &Filter) -> Vec<u64> {
        let first = self.rng.u64(..1 << 62);
        let (name, insert) = INSERTS[self.rng.usize(..INSERTS.len())];
        let mut keys: Vec<u64> = (first..).take(self.rng.usize(..=shape.capacity)).collect();
        let report = insert(filter, &keys);
        if report.inserted + report.rejected.len() != keys.len() {
            broken(Promise::Refusal, shape, None, format_args!("the report of {name} does not add up"));
        }
        if let [refusal, ..] = &report.rejected[..] {
            self.check_refusal(shape, keys[refusal.index], &refusal.error);
            let mut refused = report.rejected.iter().map(|refusal| refusal.index).peekable();
            let mut index = 0..;
            keys.retain(|_| refused.next_if_eq(&index.next().expect("endless")).is_none());
            return keys;
        }
        for key in first + keys.len() as u64.. {
            match filter.insert(&key) {
                Ok(()) => keys.push(key),
                Err(error) => {
                    self.check_refusal(shape, key, &error);
                    break;
                }
            }
        }
        keys
    }

    fn check_refusal(&self, shape: &Shape, key: u64, error: &InsertError) {
        if !matches!(error, InsertError::Full | InsertError::TooManyCopies) {
            broken(Promise::Refusal, shape, key, format_args!("refused with: {error}"));
        }
    }

    /// In each of the ways.
    fn lookup(&mut self, shape: &Shape, filter: &Filter, keys: &[u64]) {
        let mut found = vec![false; keys.len()];
        for (name, lookup) in LOOKUPS {
            found.fill(false);
            lookup(filter, keys, &mut found);
            if let Some(missed) = found.iter().position(|&found| !found) {
                broken(Promise::Present, shape, keys[missed], format_args!("{name} missed it"));
            }
            self.lookups += keys.len() as u64;
        }
    }

    fn remove(&mut self, shape: &Shape, filter: &Filter, keys: &[u64]) {
        let (name, remove) = REMOVES[self.rng.usize(..REMOVES.len())];
        let report = remove(filter, keys);
        if let [missing, ..] = report.missing[..] {
            broken(Promise::Removal, shape, keys[missing], format_args!("{name} did not find it"));
        }
        if report.removed != keys.len() {
            broken(Promise::Removal, shape, None, format_args!("{name}: {} of {}", report.removed, keys.len()));
        }
        self.removed += keys.len() as u64;
    }
}
