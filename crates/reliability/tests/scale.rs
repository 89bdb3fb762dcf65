//! Large numbers of lookups in filters of all widths: no present key is missed, the rate of false positives is that of the formula
//! and the requested one, and filters hold the requested capacity.

use concurrent_cuckoo_filter::InsertError;
use fastrand::Rng;
use reliability::draws;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use testkit::operations::{INSERTS, LOOKUPS, REMOVES};
use testkit::rate::{Rate, formula, most};
use testkit::{Filter, Shape, WIDTHS, Width, choose, each_on_all_cores, on_all_cores, slots, thousands};

/// Keys from here on are never inserted.
const ABSENT: u64 = 1 << 63;

/// The number of absent keys that are looked up in one call.
const CHUNK: u64 = 1 << 19;

/// Odd sizes, from a single key to tables of a dozen shards.
const CAPACITIES: [usize; 30] = [
    1, 3, 5, 7, 11, 17, 25, 33, 51, 77, 101, 155, 225, 333, 517, 777, 1155, 2049, 4095, 8193, 15_873, 30_001, 65_537,
    99_999, 200_003, 262_143, 400_001, 750_003, 1_500_001, 3_000_003,
];

#[derive(Default)]
struct Seen {
    lookups: u64,
    filters: u64,
    removed: u64,
    /// The numbers of filters of 6 bits or more by capacity, and of those that refused a key before they held it.
    refused: BTreeMap<usize, [u64; 2]>,
}

/// Fills filters until they refuse a key, looks up every key in every way, removes a random part, looks up the others, clears the
/// filter and fills it again.
#[test]
fn no_present_key_is_missed_and_every_filter_holds_its_capacity() {
    let mut rng = draws();
    let (target, largest) = choose((1_000_000_000, usize::MAX), (20_000_000, 100_000));
    // Tables of a few keys are built again, with other seeds, until they have had this many lookups in a row.
    let turn = choose(1_000_000, 100_000);
    let mut shapes: Vec<_> = CAPACITIES.into_iter().flat_map(|capacity| WIDTHS.map(|bits| (capacity, bits))).collect();
    shapes.retain(|&(capacity, _)| capacity <= largest);
    rng.shuffle(&mut shapes);
    let (done, seed) = (AtomicU64::new(0), rng.u64(..));
    let turns = on_all_cores(|number| {
        // Each shape has at least one turn.
        if number >= shapes.len() && done.load(Ordering::Relaxed) >= target {
            return None;
        }
        let (capacity, bits) = shapes[number % shapes.len()];
        let (mut seen, mut rng) = (Seen::default(), Rng::with_seed(seed.wrapping_add(number as u64)));
        while seen.lookups < turn {
            round(capacity, bits, &mut rng, &mut seen);
        }
        done.fetch_add(seen.lookups, Ordering::Relaxed);
        Some(seen)
    });
    let sum = |part: fn(&Seen) -> u64| thousands(turns.iter().map(part).sum::<u64>());
    println!(
        "figure 4.1: 0 of {} lookups of present keys missed, in {} filters of {} shapes ({} widths, capacities up to \
         {}), filled to the first refusal, before and after the removal of {} keys, and after a clear",
        sum(|seen| seen.lookups),
        sum(|seen| seen.filters),
        shapes.len(),
        WIDTHS.len(),
        thousands(shapes.iter().map(|shape| shape.0).max().expect("a shape")),
        sum(|seen| seen.removed),
    );
    let mut capacities = BTreeMap::<usize, [u64; 2]>::new();
    for (capacity, [filters, refused]) in turns.into_iter().flat_map(|seen| seen.refused) {
        let all = capacities.entry(capacity).or_default();
        *all = [all[0] + filters, all[1] + refused];
    }
    // The promise is fewer than one filter in 10,000, at every size.
    for (capacity, [filters, refused]) in &capacities {
        let possible = *refused <= most(*filters as f64 / 10_000.0);
        assert!(possible, "{refused} of {filters} filters of {capacity} keys refused a key before they held them");
    }
    let sum = |number: usize| thousands(capacities.values().map(|one| one[number]).sum::<u64>());
    let (all, refused, sizes) = (sum(0), sum(1), capacities.len());
    println!(
        "figure 4.4: {refused} of {all} filters of 6 bits and more, of {sizes} capacities, refused a key within it"
    );
}

fn round(capacity: usize, bits: u32, rng: &mut Rng, seen: &mut Seen) {
    let shape = Shape::new(capacity, bits, rng);
    let filter = shape.build();
    let mut keys = fill(&shape, &filter, rng);
    seen.filters += 1;
    if bits >= 6 {
        let [filters, refused] = seen.refused.entry(capacity).or_default();
        (*filters, *refused) = (*filters + 1, *refused + u64::from(keys.len() < capacity));
    }
    look_up(&shape, &filter, &keys, seen);
    rng.shuffle(&mut keys);
    let (gone, left) = keys.split_at(rng.usize(..=keys.len()));
    let (name, remove) = REMOVES[rng.usize(..REMOVES.len())];
    let report = remove(&filter, gone);
    assert_eq!((report.removed, report.missing.len()), (gone.len(), 0), "{name}: {shape:?}");
    seen.removed += gone.len() as u64;
    look_up(&shape, &filter, left, seen);
    assert_eq!(filter.len(), left.len(), "{shape:?}");
    filter.clear();
    assert_eq!(keys.iter().find(|key| filter.contains(key)), None, "found after a clear: {shape:?}");
    let keys = fill(&shape, &filter, rng);
    look_up(&shape, &filter, &keys, seen);
}

/// Inserts keys up to the first refusal, the first of them in a random way. Returns the stored keys.
fn fill(shape: &Shape, filter: &Filter, rng: &mut Rng) -> Vec<u64> {
    let first = rng.u64(..1 << 62);
    let (name, insert) = INSERTS[rng.usize(..INSERTS.len())];
    let mut keys: Vec<u64> = (first..).take(rng.usize(..=shape.capacity)).collect();
    let report = insert(filter, &keys);
    assert_eq!(report.inserted + report.refused.len(), keys.len(), "{name}: {shape:?}");
    let mut refused: HashMap<u64, InsertError> =
        report.refused.iter().map(|refusal| (keys[refusal.index], refusal.error)).collect();
    keys.retain(|key| !refused.contains_key(key));
    while refused.is_empty() {
        let key = first + keys.len() as u64;
        match filter.insert(&key) {
            Ok(()) => keys.push(key),
            Err(error) => _ = refused.insert(key, error),
        }
    }
    let is_expected = |error: &InsertError| matches!(error, InsertError::Full | InsertError::TooManyCopies);
    assert!(refused.values().all(is_expected), "{refused:?}: {shape:?}");
    keys
}

fn look_up(shape: &Shape, filter: &Filter, keys: &[u64], seen: &mut Seen) {
    let mut found = vec![false; keys.len()];
    for (name, lookup) in LOOKUPS {
        found.fill(false);
        lookup(filter, keys, &mut found);
        let missed = found.iter().position(|&found| !found);
        assert_eq!(missed.map(|missed| keys[missed]), None, "{name} missed it: {shape:?}");
        seen.lookups += keys.len() as u64;
    }
}

/// The capacities of each width, the load at which the rate is measured, and whether that load is reached by removals. A load of 1
/// stands for that of the first refusal.
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

#[test]
fn the_rate_follows_the_formula_at_every_width() {
    let mut rng = draws();
    let each = choose(1_000_000_000, 30_000_000) / (WIDTHS.len() * FILTERS.len()) as u64 + 1;
    let mut filters = Vec::new();
    for bits in WIDTHS {
        for (capacity, load, removed) in FILTERS {
            // A short run takes small tables only.
            filters.push((bits, load, removed, Shape::new(capacity / choose(1, 10), bits, &mut rng), rng.fork()));
        }
    }
    let rates = each_on_all_cores(&filters, |(bits, load, removed, shape, rng)| {
        let (filter, mut rng) = (shape.build(), rng.clone());
        let wanted = (load * shape.slots() as f64) as usize;
        let keys = (rng.u64(..ABSENT / 2)..).take(if *removed { usize::MAX } else { wanted });
        let mut keys: Vec<u64> = keys.take_while(|key| filter.insert(key).is_ok()).collect();
        if *removed {
            rng.shuffle(&mut keys);
            let gone = keys.drain(wanted.min(keys.len())..);
            gone.for_each(|key| assert!(filter.remove(&key), "remove did not find {key} in a filter of {shape:?}"));
        }
        let load = filter.load_factor();
        let expected = filter.stats().expected_false_positive_rate;
        assert!(
            (expected - formula(load, *bits)).abs() < 1e-9,
            "{expected} is not the formula for a filter of {shape:?}"
        );
        (*bits, Rate::of(each, hits(&filter, each, &mut rng), slots(&filter), load, *bits))
    });
    let (mut furthest, mut all) = (0.0_f64, Rate::default());
    for bits in WIDTHS {
        let rate = Rate::pool(rates.iter().filter(|rate| rate.0 == bits).map(|rate| rate.1));
        let (measured, expected, sigmas) = (rate.measured(), rate.expected(), rate.sigmas());
        assert!(rate.is_likely(), "{bits} bits: {measured} for {expected}, off by {sigmas:+.1} sigma");
        furthest = if rate.is_small() { furthest } else { furthest.max(sigmas.abs()) };
        all = Rate::pool([all, rate]);
    }
    println!(
        "figure 4.2: of {} lookups of absent keys, in {} filters of {} widths, {} found one; each width is within \
         {furthest:.1} sigma of 1 - exp(-8 load / (2^f - 1)), those with fewer than 100 hits as likely",
        thousands(all.lookups),
        filters.len(),
        WIDTHS.len(),
        thousands(all.hits),
    );
}

/// Returns how many of this many absent keys are found, in one way after the other.
fn hits(filter: &Filter, lookups: u64, rng: &mut Rng) -> u64 {
    let first = ABSENT + rng.u64(..ABSENT / 2);
    let chunks = (0..lookups).step_by(CHUNK as usize).zip(LOOKUPS.into_iter().cycle());
    let hits = chunks.map(|(begin, (_, lookup))| {
        let keys: Vec<u64> = (first + begin..first + lookups.min(begin + CHUNK)).collect();
        let mut found = vec![false; keys.len()];
        lookup(filter, &keys, &mut found);
        found.iter().filter(|&&found| found).count() as u64
    });
    hits.sum()
}

const RATES: [f64; 10] = [0.1, 0.05, 0.02, 0.01, 0.003, 0.001, 0.000_3, 0.000_1, 0.000_01, 0.000_001];

#[test]
fn the_requested_rate_is_kept_at_full_capacity() {
    let mut rng = draws();
    let lookups = choose(10_000_000, 500_000);
    let capacities = choose([21, 1001, 100_003, 1_000_003], [21, 1001, 10_007, 100_003]);
    let filters: Vec<_> = RATES
        .into_iter()
        .flat_map(|rate| capacities.map(|capacity| (rate, capacity)))
        .map(|(rate, capacity)| {
            (rate, Shape { width: Width::Rate(rate), ..Shape::new(capacity, 0, &mut rng) }, rng.fork())
        })
        .collect();
    let measured = each_on_all_cores(&filters, |(requested, shape, rng)| {
        let filter = shape.build();
        (0..shape.capacity as u64).for_each(|key| _ = filter.insert(&key));
        let expected = filter.stats().expected_false_positive_rate;
        assert!(expected <= *requested, "{expected} is above the rate requested for a filter of {shape:?}");
        let hits = hits(&filter, lookups, &mut rng.clone());
        (*requested, Rate::of(lookups, hits, slots(&filter), filter.load_factor(), filter.config().fingerprint_bits))
    });
    let mut highest = 0.0_f64;
    for requested in RATES {
        let rate = Rate::pool(measured.iter().filter(|one| one.0 == requested).map(|one| one.1));
        assert!(rate.keeps(requested), "{} for {requested} requested", rate.measured());
        highest = highest.max(rate.measured() / requested);
    }
    println!(
        "figure 4.3: at full capacity each of {} rates, from 0.000001 to 0.1, was kept, in {} filters of 21 to {} keys \
         and {} lookups; the measured rates are at most {highest:.2} of those",
        RATES.len(),
        filters.len(),
        thousands(capacities[3]),
        thousands(lookups * filters.len() as u64),
    );
}
