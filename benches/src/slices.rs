//! The method: short slices, all cases in turn in one process, and the 10th percentile of each one's slices.
//!
//! Other work on the machine makes slices longer, never shorter. So the fast ones among many agree from run to run within
//! a few percent where medians wander by half. Whatever ran before has driven a table out of the cache; each timed slice
//! follows two that are not timed.

use crate::clock::timed;
use std::hint::black_box;

/// Keys of a slice.
const SLICE: usize = 25_000;

/// Slices that are not timed before each one that is.
const WARM: usize = 2;

pub(crate) struct Case<'a> {
    /// Runs a slice, given a number of its own among those of all cases, and returns nanoseconds per operation.
    slice: Box<dyn FnMut(usize) -> f64 + 'a>,
}

impl<'a> Case<'a> {
    pub(crate) fn new(slice: impl FnMut(usize) -> f64 + 'a) -> Self {
        Case { slice: Box::new(slice) }
    }

    /// A pass over many keys, a part of them at a time, after another part that is not timed. `pass` returns how many keys
    /// it found, and `check` is told that number and how many there were.
    pub(crate) fn pass(
        keys: &'a [u64],
        mut pass: impl FnMut(&[u64]) -> usize + 'a,
        mut check: impl FnMut(usize, usize) + 'a,
    ) -> Self {
        Case::new(move |number| {
            for warm in 0..WARM {
                let warm = part(keys, (WARM + 1) * number + warm);
                check(pass(warm), warm.len());
            }
            let keys = part(keys, (WARM + 1) * number + WARM);
            // The keys themselves are in the cache, whatever the table left there.
            keys.iter().for_each(|&key| _ = black_box(key));
            let (nanos, found) = timed(keys.len(), || pass(keys));
            check(found, keys.len());
            nanos
        })
    }
}

/// Lets each case run a slice a round, and returns what an operation of each costs, in nanoseconds.
pub(crate) fn take(rounds: usize, cases: &mut [Case]) -> Vec<f64> {
    run(rounds, cases).iter_mut().map(|slices| tenth(slices)).collect()
}

/// The same, of the slice in the middle: for what others are meant to disturb.
pub(crate) fn medians(rounds: usize, cases: &mut [Case]) -> Vec<f64> {
    run(rounds, cases).iter_mut().map(|slices| percentile(slices, 50)).collect()
}

fn run(rounds: usize, cases: &mut [Case]) -> Vec<Vec<f64>> {
    let (turn, mut slices) = (cases.len(), vec![Vec::new(); cases.len()]);
    for round in 0..rounds {
        for (number, (case, slices)) in cases.iter_mut().zip(&mut slices).enumerate() {
            // A case must not find in the cache what a case before it read of the same table for the same keys.
            slices.push((case.slice)(round * turn + number));
        }
    }
    slices
}

pub(crate) fn tenth(values: &mut [f64]) -> f64 {
    percentile(values, 10)
}

fn percentile(values: &mut [f64], of: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() * of / 100]
}

/// A part of the keys that is as long as a slice, the next one for the next number.
pub(crate) fn part<K>(keys: &[K], number: usize) -> &[K] {
    let length = SLICE.min(keys.len());
    &keys[number * length % (keys.len() - length + 1)..][..length]
}

/// Millions of operations a second.
pub(crate) fn speed(nanos: f64) -> String {
    format!("{:.1}", 1e3 / nanos)
}

/// The speed, and a ratio in brackets.
pub(crate) fn against(nanos: f64, ratio: f64) -> String {
    let digits = if ratio < 9.995 { 2 } else { 1 };
    format!("{} ({ratio:.digits$})", speed(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tenth_percentile_of_all_slices_counts() {
        let slow = |number: usize| if number % 8 == 1 { 5.0 } else { 500.0 };
        let cases = &mut [Case::new(|_| 7.0), Case::new(slow)];
        assert_eq!((take(40, cases), medians(40, cases)), (vec![7.0, 5.0], vec![7.0, 500.0]));
        assert_eq!((against(10.0, 1.5), against(10.0, 15.0)), ("100.0 (1.50)".into(), "100.0 (15.0)".into()));
    }

    #[test]
    fn slices_cover_all_keys_and_stay_within_them() {
        let keys: Vec<usize> = (0..2 * SLICE + 10).collect();
        let mut seen = vec![false; keys.len()];
        (0..4).for_each(|number| part(&keys, number).iter().for_each(|&key| seen[key] = true));
        assert!(seen.iter().filter(|&&seen| seen).count() > SLICE + SLICE / 2);
        assert_eq!(part(&keys[..7], 9), &keys[..7]);
    }

    #[test]
    fn a_slice_is_warm_and_checked() {
        let (keys, mut passes) = (vec![1u64; 100], 0);
        let mut checked = Vec::new();
        let pass = |keys: &[u64]| {
            passes += 1;
            keys.len() - 1
        };
        take(3, &mut [Case::pass(&keys, pass, |found, of| checked.push((found, of)))]);
        assert_eq!((passes, checked), (9, vec![(99, 100); 9]));
    }
}
