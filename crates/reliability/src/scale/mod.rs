//! Large numbers of lookups over filters of all widths: no present key is missed, and absent ones are taken for present
//! as often as the formula says, and as was asked for.

mod absent;
mod asked;
mod present;

use crate::figure::{count, figure};
use crate::run::Run;
use fastrand::Rng;
use std::collections::BTreeMap;
use testkit::rate::most;
use testkit::{Promise, Shape, broken};

/// Keys that were never inserted begin here, those that were lie below.
const ABSENT: u64 = 1 << 63;

pub(crate) fn run(run: &Run) {
    let mut rng = Rng::with_seed(run.seed);
    let filled = present::run(run, rng.u64(..));
    absent::run(run, rng.u64(..));
    let asked = asked::run(run, rng.u64(..));
    filled.join(asked).check();
}

/// Filters of 6 bits and more by their capacities, and how many of them refused a key before they held it.
#[derive(Default)]
struct Capacities(BTreeMap<usize, Refusals>);

#[derive(Default)]
struct Refusals {
    filters: u64,
    refused: u64,
    /// A filter that refused.
    example: Option<Shape>,
}

impl Capacities {
    fn note(&mut self, shape: &Shape, refused: bool) {
        let refusals = Refusals { filters: 1, refused: refused.into(), example: refused.then_some(*shape) };
        self.add(shape.capacity, refusals);
    }

    fn add(&mut self, capacity: usize, more: Refusals) {
        let refusals = self.0.entry(capacity).or_default();
        refusals.filters += more.filters;
        refusals.refused += more.refused;
        refusals.example = refusals.example.or(more.example);
    }

    fn join(mut self, other: Capacities) -> Self {
        other.0.into_iter().for_each(|(capacity, refusals)| self.add(capacity, refusals));
        self
    }

    /// The promise is that of fewer than one filter in 10,000, at every size.
    fn check(self) {
        for Refusals { filters, refused, example } in self.0.values() {
            if let Some(shape) = example.filter(|_| *refused > most(*filters as f64 / 10_000.0)) {
                let text =
                    format_args!("{refused} of {filters} filters of its capacity refused a key before they held it");
                broken(Promise::Capacity, &shape, None, text);
            }
        }
        let sum = |number: fn(&Refusals) -> u64| self.0.values().map(number).sum::<u64>();
        figure(
            "4.4",
            format_args!(
                "{} of {} filters of 6 bits and more, of {} capacities, refused a key before they held what was asked for",
                count(sum(|refusals| refusals.refused)),
                count(sum(|refusals| refusals.filters)),
                self.0.len()
            ),
        );
    }
}
