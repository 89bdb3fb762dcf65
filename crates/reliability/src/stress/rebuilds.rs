//! Other filters, built, filled, cleared and dropped while the stress runs.

use fastrand::Rng;
use std::sync::atomic::{AtomicBool, Ordering};
use testkit::operations::{INSERTS, LOOKUPS};
use testkit::{Filter, Promise, Shape, broken};

/// Returns how many were built and cleared.
pub(super) fn rebuild(stop: &AtomicBool, mut rng: Rng) -> u64 {
    let mut rebuilt = 0;
    while !stop.load(Ordering::Relaxed) {
        let capacity = if rng.u32(..8) == 0 { 300_007 } else { 20_011 };
        let shape = Shape::new(capacity, rng.choice([8, 13, 16]).expect("three widths"), &mut rng);
        let filter = shape.build();
        fill(&shape, &filter, &mut rng);
        filter.clear();
        if let Some(key) = (0..capacity as u64).find(|key| filter.contains(key)) {
            broken(Promise::Clear, &shape, key, "found after a clear");
        }
        if !filter.is_empty() {
            broken(Promise::Clear, &shape, None, format_args!("len is {} after a clear", filter.len()));
        }
        fill(&shape, &filter, &mut rng);
        rebuilt += 1;
    }
    rebuilt
}

fn fill(shape: &Shape, filter: &Filter, rng: &mut Rng) {
    let keys: Vec<u64> = (0..shape.capacity as u64 * 9 / 10).collect();
    let (name, insert) = INSERTS[rng.usize(..INSERTS.len())];
    let report = insert(filter, &keys);
    if report.inserted != keys.len() {
        broken(Promise::Capacity, shape, None, format_args!("{name} stored {} of {}", report.inserted, keys.len()));
    }
    let mut found = vec![false; keys.len()];
    let (name, lookup) = LOOKUPS[rng.usize(..LOOKUPS.len())];
    lookup(filter, &keys, &mut found);
    if let Some(missed) = found.iter().position(|&found| !found) {
        broken(Promise::Present, shape, keys[missed], format_args!("{name} missed it"));
    }
}
