//! Those who mean harm, or do it by mistake.

mod absent_removals;
mod chosen;
mod flood;
mod full;

use crate::run::Run;
use fastrand::Rng;
use testkit::{Filter, Shape};

pub(crate) fn run(run: &Run) {
    let mut rng = Rng::with_seed(run.seed);
    chosen::run(run, &mut rng.fork());
    flood::run(run, &mut rng.fork());
    full::run(run, &mut rng.fork());
    absent_removals::run(run, &mut rng);
}

/// A filter of this load, which holds the keys from 0 to its length. A class of few bits may be full before.
fn filled(shape: &Shape, load: f64) -> Filter {
    let filter = shape.build();
    let keys: Vec<u64> = (0..(load * shape.slots() as f64) as u64).collect();
    let report = filter.par_insert(&keys);
    assert_eq!(report.inserted, keys.len(), "a load of {load} is below the capacity: filter of {shape}");
    filter
}
