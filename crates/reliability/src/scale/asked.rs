//! The rate that was asked for, at full capacity.

use super::{Capacities, absent};
use crate::figure::{count, figure, seconds_since};
use crate::run::Run;
use fastrand::Rng;
use std::time::Instant;
use testkit::rate::Rate;
use testkit::{Promise, Shape, Width, broken, each_on_all_cores, slots};

const RATES: [f64; 10] = [0.1, 0.05, 0.02, 0.01, 0.003, 0.001, 0.000_3, 0.000_1, 0.000_01, 0.000_001];
const CAPACITIES: [usize; 4] = [21, 1001, 100_003, 1_000_003];

/// Returns how the filters kept their capacity.
pub(super) fn run(run: &Run, seed: u64) -> Capacities {
    let start = Instant::now();
    let lookups = run.choose(10_000_000, 500_000);
    let mut rng = Rng::with_seed(seed);
    let mut filters = Vec::new();
    for rate in RATES {
        for capacity in CAPACITIES {
            let capacity = capacity.min(run.choose(usize::MAX, 100_003));
            let shape = Shape { width: Width::Rate(rate), ..Shape::new(capacity, 0, &mut rng) };
            filters.push((rate, shape, rng.fork()));
        }
    }
    let measured = each_on_all_cores(&filters, |(asked, shape, rng)| {
        let (filter, mut rng) = (shape.build(), rng.clone());
        let refused = (0..shape.capacity as u64).filter(|key| filter.insert(key).is_err()).count();
        if filter.expected_false_positive_rate() > *asked {
            broken(Promise::Rate, shape, None, "expected_false_positive_rate is above the rate asked for");
        }
        let hits = absent::hits(&filter, lookups, &mut rng);
        let rate = Rate::of(lookups, hits, slots(&filter), filter.load_factor(), filter.fingerprint_bits());
        (*asked, rate, *shape, refused > 0)
    });

    let mut highest = 0.0_f64;
    for asked in RATES {
        let rate = Rate::pool(measured.iter().filter(|measured| measured.0 == asked).map(|measured| measured.1));
        println!("{asked} asked for: {} of {}, {:.3e}", count(rate.hits), count(rate.lookups), rate.measured());
        if !rate.keeps(asked) {
            let shape = filters.iter().find(|filter| filter.0 == asked).expect("one of each rate").1;
            let what = format_args!("{} for {asked} asked for, pooled over all capacities", rate.measured());
            broken(Promise::Rate, &shape, None, what);
        }
        highest = highest.max(rate.measured() / asked);
    }
    figure(
        "4.3",
        format_args!(
            "at full capacity each of {} rates asked for, from {} to {}, was kept, in {} filters of {} to {} keys and {} \
             lookups; the measured rates are at most {highest:.2} of those: {}",
            RATES.len(),
            RATES[RATES.len() - 1],
            RATES[0],
            filters.len(),
            CAPACITIES[0],
            count(filters.iter().map(|filter| filter.1.capacity).max().expect("a filter")),
            count(lookups * filters.len() as u64),
            seconds_since(start)
        ),
    );
    let mut capacities = Capacities::default();
    measured.iter().for_each(|(_, _, shape, refused)| capacities.note(shape, *refused));
    capacities
}
