//! Large numbers of look-ups over filters of all widths: no present key is missed, and absent ones are taken for present
//! as often as the formula says, and as was asked for.

mod absent;
mod asked;
mod present;

use crate::figure::{count, figure};
use crate::promise::{Promise, broken};
use crate::rate::most;
use crate::run::Run;
use crate::shape::Shape;
use fastrand::Rng;

/// Widths of fingerprints that are checked: each way in which slots lie in words.
pub(crate) const WIDTHS: [u32; 18] = [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 20, 24, 31, 32];

/// Keys that were never inserted begin here, those that were lie below.
const ABSENT: u64 = 1 << 63;

pub(crate) fn run(run: &Run) {
    let mut rng = Rng::with_seed(run.seed);
    let filled = present::run(run, rng.u64(..));
    absent::run(run, rng.u64(..));
    let asked = asked::run(run, rng.u64(..));
    Capacity::sum([filled, asked]).check();
}

/// Filters of 6 bits and more, and how many of them refused a key before they held their capacity.
#[derive(Clone, Copy, Default)]
struct Capacity {
    filters: u64,
    refused: u64,
    /// One that did.
    example: Option<Shape>,
}

impl Capacity {
    fn of(shape: &Shape, refused: bool) -> Self {
        Capacity { filters: 1, refused: refused.into(), example: refused.then_some(*shape) }
    }

    fn sum(all: impl IntoIterator<Item = Capacity>) -> Self {
        all.into_iter().fold(Capacity::default(), |a, b| Capacity {
            filters: a.filters + b.filters,
            refused: a.refused + b.refused,
            example: a.example.or(b.example),
        })
    }

    /// The promise is that of fewer than one filter in 10,000.
    fn check(self) {
        let text = format!(
            "{} of {} filters of 6 bits and more refused a key before they held the capacity asked for",
            count(self.refused),
            count(self.filters)
        );
        if let Some(shape) = self.example.filter(|_| self.refused > most(self.filters as f64 / 10_000.0)) {
            broken(Promise::Capacity, &shape, None, format_args!("{text}, this one among them"));
        }
        figure("4.4", text);
    }
}
