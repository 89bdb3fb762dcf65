//! Removals of keys that were never inserted: how many succeed, and how many stored keys are then missed.

use crate::figure::{count, figure, seconds_since};
use crate::run::Run;
use fastrand::Rng;
use std::time::Instant;
use testkit::rate::classes;
use testkit::{ABSENT, Promise, Shape, broken, each_on_all_cores};

const LOAD: f64 = 0.9;

pub(super) fn run(run: &Run, rng: &mut Rng) {
    let removals: u64 = run.choose(1_000_000, 200_000);
    let repeats = run.choose(8, 2);
    for (id, bits) in [("7.9", 8), ("7.10", 12), ("7.11", 13), ("7.12", 16)] {
        let start = Instant::now();
        let shapes: Vec<Shape> =
            (0..repeats).map(|_| Shape::of_slots(run.choose(1 << 20, 1 << 18), bits, rng)).collect();
        let harm = each_on_all_cores(&shapes, |shape| remove_absent(shape, removals));
        let slots = shapes[0].slots() as f64;
        let classes = classes(slots, bits);
        let expected = Expected::new((LOAD * slots).floor() / classes, removals as f64 / classes);
        let mean = |part: fn(&Harm) -> u64| harm.iter().map(part).sum::<u64>() as f64 / harm.len() as f64;
        let [removed, missed] = [
            (mean(|harm| harm.removed), expected.removed, "removals of absent keys succeeded"),
            (mean(|harm| harm.missed), expected.missed, "stored keys were missed"),
        ]
        .map(|(measured, (mean, variance), what)| {
            let (mean, sigma) = (mean * classes, (variance * classes / f64::from(repeats)).sqrt());
            let off = (measured - mean) / sigma;
            if off.abs() > 6.0 {
                let what = format_args!("{measured} {what}, {mean:.0} expected, off by {off:+.1} sigma");
                broken(Promise::Limit, &shapes[0], None, what);
            }
            format!(
                "{} (expected {}, off by {off:+.1} sigma)",
                count(measured.round() as u64),
                count(mean.round() as u64)
            )
        });
        figure(
            id,
            format_args!(
                "of {} removals of keys never inserted, {bits} bits at 90 % load, {} slots, {removed} succeeded, and {missed} \
                 stored keys were then missed, the means of {repeats} filters: {}",
                count(removals),
                count(slots as u64),
                seconds_since(start)
            ),
        );
    }
}

struct Harm {
    removed: u64,
    missed: u64,
}

fn remove_absent(shape: &Shape, removals: u64) -> Harm {
    let filter = super::filled(shape, LOAD);
    let stored = filter.len() as u64;
    let removed = (ABSENT..ABSENT + removals).filter(|key| filter.remove(key)).count() as u64;
    if filter.len() as u64 != stored - removed {
        broken(Promise::Count, shape, None, format_args!("len is {} after {removed} removals", filter.len()));
    }
    Harm { removed, missed: (0..stored).filter(|key| !filter.contains(key)).count() as u64 }
}

/// Mean and variance of what happens to one class.
///
/// Absent keys are spread over the classes as the stored keys are. So a class has some number of keys `x` and of removals
/// `y`, Poisson variables with means of keys and removals for each class, all but independent of each other and of other
/// classes. In whatever order the removals come, `min(x, y)` of them succeed: this is where the load that falls meanwhile is
/// accounted for. The keys of a class are all found as long as one copy is left, and all missed when none is: `x` of them, if
/// `y >= x`. The numbers of all keys and of all removals are fixed, which only makes the true variance a little smaller.
///
/// For few keys and removals in each class this is about removals times 1 - exp(-8 load / (2^f - 1)), and as many missed.
struct Expected {
    removed: (f64, f64),
    missed: (f64, f64),
}

impl Expected {
    fn new(keys: f64, removals: f64) -> Self {
        Expected {
            removed: moments(keys, removals, |keys, removals| keys.min(removals)),
            missed: moments(keys, removals, |keys, removals| if removals >= keys { keys } else { 0 }),
        }
    }
}

/// Mean and variance of a function of two Poisson variables of these means, which are of the order of 1 or less.
fn moments(keys: f64, removals: f64, value: impl Fn(u32, u32) -> u32) -> (f64, f64) {
    let (mut mean, mut square) = (0.0, 0.0);
    for (x, of_keys) in poisson(keys) {
        for (y, of_removals) in poisson(removals) {
            let value = f64::from(value(x, y));
            mean += of_keys * of_removals * value;
            square += of_keys * of_removals * value * value;
        }
    }
    (mean, square - mean * mean)
}

/// The values of a Poisson variable, with their probabilities.
fn poisson(mean: f64) -> impl Iterator<Item = (u32, f64)> {
    let next = move |&(value, probability): &(u32, f64)| Some((value + 1, probability * mean / f64::from(value + 1)));
    std::iter::successors(Some((0, (-mean).exp())), next).take(40)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys and removals thrown into classes, one removal after the other.
    #[test]
    fn the_harm_is_what_happens_when_it_is_played_out() {
        let mut rng = Rng::with_seed(1);
        let (classes, trials) = (1000, 2000);
        for (keys, removals) in [(500, 300), (28, 1000), (28, 30)] {
            let (mut removed, mut missed) = (0_u64, 0_u64);
            for _ in 0..trials {
                let mut copies = vec![0; classes];
                let stored: Vec<usize> = (0..keys).map(|_| rng.usize(..classes)).collect();
                stored.iter().for_each(|&class| copies[class] += 1);
                for _ in 0..removals {
                    let class = rng.usize(..classes);
                    removed += u64::from(copies[class] > 0);
                    copies[class] = i32::max(copies[class] - 1, 0);
                }
                missed += stored.iter().filter(|&&class| copies[class] == 0).count() as u64;
            }
            let expected = Expected::new(f64::from(keys) / classes as f64, f64::from(removals) / classes as f64);
            for (measured, (mean, variance)) in [(removed, expected.removed), (missed, expected.missed)] {
                let all = f64::from(trials) * classes as f64;
                let off = (measured as f64 - mean * all) / (variance * all).sqrt();
                assert!(off.abs() < 4.0, "{keys} keys, {removals} removals: {measured}, off by {off}");
            }
        }
    }
}
