//! When filters refuse their first key, by size.

use super::Plan;
use crate::field::Size;
use crate::record::{Record, Table};
use concurrent_cuckoo_filter::{Builder, CuckooFilter, DefaultHashBuilder};
use fastrand::Rng;
use rayon::prelude::*;
use std::iter;

const WIDTHS: [u32; 9] = [4, 5, 6, 7, 8, 10, 12, 14, 16];

const CAPACITIES: [usize; 12] = [1, 2, 5, 10, 20, 50, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000];

pub(super) fn run(plan: &Plan, record: &mut Record) {
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
            format!("{:.4}", load.0),
            format!("{:.4}", load.1),
            format!("{:.1}", held.0),
            format!("{:.0}", held.1),
        ]);
    }
    record.table(table);
    record.text(&format!(
        "Filters that refused a key below their capacity: {below}. On average all sizes fill alike; single small filters \
         stray further below, so they have more slots to spare."
    ));
    by_width(plan, record);
}

/// The load factor that a table reaches, by the width of its fingerprints.
fn by_width(plan: &Plan, record: &mut Record) {
    // Sizes as powers of two, and how many tables of each are built.
    let sizes = if plan.quick { [(8, 4), (10, 4), (12, 4)] } else { [(16, 64), (18, 16), (20, 8)] };
    record.text("Load factor at the first refusal, by width of the fingerprints: the mean, and the least in brackets.");
    let heads = sizes.iter().map(|(log2, builds)| format!("2^{log2} slots, {builds} tables"));
    let mut table = Table::new(std::iter::once("bits".to_string()).chain(heads));
    plan.step("load factors by width");
    for bits in WIDTHS {
        let cells = sizes.map(|(log2, builds)| {
            let builder = CuckooFilter::builder().capacity(Size::new(log2, bits).keys).fingerprint_bits(bits);
            let load = spread(fill_until_refused(builds, &builder).iter().map(Fill::load));
            format!("{:.3} ({:.3})", load.0, load.1)
        });
        table.row(std::iter::once(bits.to_string()).chain(cells));
    }
    record.table(table);
}

/// What a filter held when it refused its first key.
struct Fill {
    keys: usize,
    slots: f64,
    bits: u32,
}

impl Fill {
    fn load(&self) -> f64 {
        self.keys as f64 / self.slots
    }
}

/// Fills this many filters, on all threads, each with keys and seeds of its own.
fn fill_until_refused(builds: usize, builder: &Builder<u64>) -> Vec<Fill> {
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
fn spread(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let values: Vec<f64> = values.collect();
    (values.iter().sum::<f64>() / values.len() as f64, values.into_iter().fold(f64::INFINITY, f64::min))
}
