//! Lookups of absent keys: the rate of false positives against the formula, width by width.

use super::ABSENT;
use crate::figure::{count, figure, seconds_since};
use crate::run::Run;
use fastrand::Rng;
use std::time::Instant;
use testkit::operations::LOOKUPS;
use testkit::rate::{Rate, formula};
use testkit::{Filter, Promise, Shape, WIDTHS, broken, each_on_all_cores, slots};

/// Of each width: capacities, the load at which it is measured, and whether that is reached by removals. A load of 1 is
/// that of the first refusal.
const FILTERS: [(usize, f64, bool); 10] = [
    (30_011, 0.9, false),
    (65_539, 1.0, false),
    (100_003, 0.3, false),
    (100_003, 0.8, true),
    (200_003, 0.95, false),
    (300_007, 0.5, true),
    (300_007, 1.0, false),
    (500_009, 0.9, true),
    (1_000_003, 0.7, false),
    (1_000_003, 1.0, false),
];

/// Absent keys that are looked up at once.
const CHUNK: u64 = 1 << 19;

pub(super) fn run(run: &Run, seed: u64) {
    let start = Instant::now();
    let each = run.choose(1_000_000_000, 30_000_000) / (WIDTHS.len() * FILTERS.len()) as u64 + 1;
    let mut rng = Rng::with_seed(seed);
    let mut filters = Vec::new();
    for bits in WIDTHS {
        for (capacity, load, removed) in FILTERS {
            // A short run is for small tables.
            let capacity = capacity / run.choose(1, 10);
            filters.push((bits, load, removed, Shape::new(capacity, bits, &mut rng), rng.fork()));
        }
    }
    let rates = each_on_all_cores(&filters, |(bits, load, removed, shape, rng)| {
        let rate = measure(shape, *bits, *load, *removed, each, &mut rng.clone());
        (*bits, rate)
    });

    let (mut furthest, mut all) = (0.0_f64, Rate::default());
    for bits in WIDTHS {
        let rate = Rate::pool(rates.iter().filter(|rate| rate.0 == bits).map(|rate| rate.1));
        println!(
            "{bits:>2} bits: {:>11} of {} absent keys found: {:.4e}, the formula gives {:.4e}, off by {:+.1} sigma",
            count(rate.hits),
            count(rate.lookups),
            rate.measured(),
            rate.expected(),
            rate.sigmas()
        );
        if !rate.is_likely() {
            let shape = filters.iter().find(|filter| filter.0 == bits).expect("one of each width").3;
            let (measured, expected) = (rate.measured(), rate.expected());
            let what = format_args!("{measured} for {expected}, off by {:+.1} sigma", rate.sigmas());
            broken(Promise::Rate, &shape, None, format_args!("{what}, pooled over all filters of {bits} bits"));
        }
        if !rate.is_small() {
            furthest = furthest.max(rate.sigmas().abs());
        }
        all = Rate::pool([all, rate]);
    }
    figure(
        "4.2",
        format_args!(
            "of {} lookups of absent keys, in {} filters of {} widths, {} found one; each width is within {furthest:.1} sigma \
             of 1 - exp(-8 load / (2^f - 1)), those with fewer than 100 hits as likely: {}",
            count(all.lookups),
            filters.len(),
            WIDTHS.len(),
            count(all.hits),
            seconds_since(start)
        ),
    );
}

fn measure(shape: &Shape, bits: u32, load: f64, removed: bool, lookups: u64, rng: &mut Rng) -> Rate {
    let filter = shape.build();
    let wanted = (load * shape.slots() as f64) as usize;
    let most = if removed { usize::MAX } else { wanted };
    let keys = (rng.u64(..ABSENT / 2)..).take(most);
    let mut keys: Vec<u64> = keys.take_while(|key| filter.insert(key).is_ok()).collect();
    if removed {
        rng.shuffle(&mut keys);
        for key in keys.drain(wanted.min(keys.len())..) {
            if !filter.remove(&key) {
                broken(Promise::Removal, shape, key, "remove did not find it");
            }
        }
    }
    let load = filter.load_factor();
    if (filter.expected_false_positive_rate() - formula(load, bits)).abs() > 1e-9 {
        broken(Promise::Rate, shape, None, "expected_false_positive_rate is not the formula");
    }
    Rate::of(lookups, hits(&filter, lookups, rng), slots(&filter), load, bits)
}

/// How many of this many absent keys are found, in one way after the other.
pub(super) fn hits(filter: &Filter, lookups: u64, rng: &mut Rng) -> u64 {
    let first = ABSENT + rng.u64(..ABSENT / 2);
    let (mut keys, mut found, mut hits) = (Vec::new(), Vec::new(), 0);
    for (begin, (_, lookup)) in (0..lookups).step_by(CHUNK as usize).zip(LOOKUPS.into_iter().cycle()) {
        keys.clear();
        keys.extend(first + begin..first + lookups.min(begin + CHUNK));
        found.clear();
        found.resize(keys.len(), false);
        lookup(filter, &keys, &mut found);
        hits += found.iter().filter(|&&found| found).count() as u64;
    }
    hits
}
