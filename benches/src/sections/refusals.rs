//! When filters refuse their first key, by size.

use super::Plan;
use crate::record::{Record, Table};
use concurrent_cuckoo_filter::{Builder, CuckooFilter, DefaultHashBuilder};
use fastrand::Rng;
use rayon::prelude::*;
use std::iter;

const CAPACITIES: [usize; 12] = [1, 2, 5, 10, 20, 50, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000];

pub(crate) fn run(plan: &Plan, record: &mut Record) {
    let (largest, keys, most) = if plan.quick { (100_000, 200_000, 100) } else { (10_000_000, 20_000_000, 100_000) };
    record.heading("First refusals");
    record.text(
        "Filters of the default rate, 0.1 %, filled with distinct random keys until they refuse one; every key that went \
         in was found. The promise is that fewer than one filter in 10,000 refuses a key below its capacity.",
    );
    let mut table = Table::new([
        "capacity",
        "bits",
        "filters built",
        "refused below capacity",
        "load at capacity",
        "load at the first refusal: mean",
        "least",
        "keys at the first refusal: mean",
        "least",
    ]);
    let mut below = 0;
    for capacity in CAPACITIES.into_iter().filter(|&capacity| capacity <= largest) {
        let builds = (keys / capacity).min(most);
        plan.step(&format!("{builds} filters for {capacity} keys"));
        let builder = CuckooFilter::builder().capacity(capacity);
        let fills = fill_until_refused(builds, &builder);
        let early = fills.iter().filter(|fill| fill.keys < capacity).count();
        below += early;
        let held = spread(fills.iter().map(|fill| fill.keys as f64));
        let load = spread(fills.iter().map(Fill::load));
        table.row([
            capacity.to_string(),
            fills[0].bits.to_string(),
            builds.to_string(),
            early.to_string(),
            format!("{:.4}", capacity as f64 / fills[0].slots),
            format!("{:.4}", load.mean),
            format!("{:.4}", load.least),
            format!("{:.1}", held.mean),
            format!("{:.0}", held.least),
        ]);
    }
    record.table(table);
    record.text(&format!(
        "{} On average all sizes fill alike; single small filters stray further below, so they have more slots to spare.",
        match below {
            0 => "No filter refused a key below its capacity.".to_string(),
            1 => "One filter refused a key below its capacity.".to_string(),
            more => format!("{more} filters refused a key below their capacity."),
        }
    ));
}

/// What a filter held when it refused its first key.
pub(crate) struct Fill {
    keys: usize,
    slots: f64,
    bits: u32,
}

impl Fill {
    pub(crate) fn load(&self) -> f64 {
        self.keys as f64 / self.slots
    }
}

/// Fills so many filters, on all threads, each with keys and seeds of its own.
pub(crate) fn fill_until_refused(builds: usize, builder: &Builder<u64>) -> Vec<Fill> {
    (0..builds as u64).into_par_iter().map(|build| fill(builder.clone(), build)).collect()
}

fn fill(builder: Builder<u64>, build: u64) -> Fill {
    let mut random = Rng::with_seed(build);
    let [a, b, c, d] = std::array::from_fn(|_| random.u64(..));
    let filter = builder.hasher(DefaultHashBuilder::with_seeds(a, b, c, d)).build().expect("a possible filter");
    // 64 random bits: distinct, in all likelihood.
    let keys = || {
        let mut random = random.clone();
        iter::repeat_with(move || random.u64(..))
    };
    let went_in = keys().take_while(|key| filter.insert(key).is_ok()).count();
    assert!(keys().take(went_in).all(|key| filter.contains(&key)), "every key that went in is found");
    Fill { keys: went_in, slots: went_in as f64 / filter.load_factor(), bits: filter.fingerprint_bits() }
}

/// Mean and least of some values.
pub(crate) struct Spread {
    pub(crate) mean: f64,
    pub(crate) least: f64,
}

pub(crate) fn spread(values: impl Iterator<Item = f64>) -> Spread {
    let (mut count, mut sum, mut least) = (0, 0.0, f64::INFINITY);
    for value in values {
        count += 1;
        sum += value;
        least = least.min(value);
    }
    Spread { mean: sum / f64::from(count), least }
}
