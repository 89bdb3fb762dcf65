//! The expected number of false positives, and the deviation that chance explains.

use std::ops::RangeInclusive;

/// The probability of a normal variable to be more than 6 standard deviations above its mean, or below it.
const TAIL: f64 = 1e-9;

/// Numbers of hits below this are compared with a Poisson distribution, larger ones with a normal distribution.
const FEW: f64 = 100.0;

/// The number of fingerprints.
pub fn fingerprints(bits: u32) -> f64 {
    2f64.powi(bits as i32) - 1.0
}

/// The formula of the library, 1 - exp(-8 load / (2^f - 1)), written down independently.
pub fn formula(load: f64, bits: u32) -> f64 {
    -(-8.0 * load / fingerprints(bits)).exp_m1()
}

/// The number of classes: a fingerprint and a pair of buckets, where each fingerprint assigns each bucket to one pair.
pub fn classes(slots: f64, bits: u32) -> f64 {
    slots / 8.0 * fingerprints(bits)
}

/// Measured lookups of absent keys, in one filter or pooled over several.
///
/// An absent key is found if its class is in use. The number of hits varies for two reasons. The first is the choice of the keys
/// that are looked up: if a part `p` of the classes is in use, each of `n` keys is in one of them with probability `p`, so that
/// the number of hits has the variance `n p (1 - p)`. Relative to the hits, it shrinks as `n` grows. The second is the choice of
/// the stored keys, which use more or fewer classes, and which all lookups of one filter share. With `N` keys in `M` classes, `l =
/// N / M` per class on average, a part `e^-l` of the classes is unused, which gives the formula; the number of unused classes has
/// the variance `M e^-l (1 - (1 + l) e^-l)` (the occupancy problem: the variance for `M` independent classes, less the reduction
/// because the number of keys is fixed). For the hits, it is multiplied by `(n / M)^2`. Keys and seeds of several filters are
/// independent, so expectations and variances add up. The second part falls with the number of filters only, so each width is
/// measured in several filters.
///
/// Where a class may overflow (4 and 5 bits), refused keys would make the formula slightly too low; such filters are filled up to
/// the first refusal only.
#[derive(Clone, Copy, Default)]
pub struct Rate {
    /// The number of lookups of absent keys.
    pub lookups: u64,
    /// The number of these that returned `true`.
    pub hits: u64,
    expected: f64,
    variance: f64,
}

impl Rate {
    /// The rate of one filter.
    pub fn of(lookups: u64, hits: u64, slots: f64, load: f64, bits: u32) -> Self {
        let (n, p, classes) = (lookups as f64, formula(load, bits), classes(slots, bits));
        let each = load * slots / classes;
        let taken = (1.0 - p) * (1.0 - (1.0 + each) * (1.0 - p)) / classes;
        Rate { lookups, hits, expected: n * p, variance: n * p * (1.0 - p) + n * n * taken }
    }

    /// Pools the rates of several filters.
    pub fn pool(rates: impl IntoIterator<Item = Rate>) -> Self {
        rates.into_iter().fold(Rate::default(), |a, b| Rate {
            lookups: a.lookups + b.lookups,
            hits: a.hits + b.hits,
            expected: a.expected + b.expected,
            variance: a.variance + b.variance,
        })
    }

    /// Returns the measured rate.
    pub fn measured(&self) -> f64 {
        self.hits as f64 / self.lookups as f64
    }

    /// Returns the rate of the formula.
    pub fn expected(&self) -> f64 {
        self.expected / self.lookups as f64
    }

    /// Returns the difference of the hits from the expected number, in standard deviations.
    pub fn sigmas(&self) -> f64 {
        (self.hits as f64 - self.expected) / self.variance.sqrt()
    }

    /// Returns whether the hits are within 6 standard deviations or, where few are expected, within bounds of the same
    /// probability.
    pub fn is_likely(&self) -> bool {
        if self.is_small() { likely(self.expected).contains(&self.hits) } else { self.sigmas().abs() <= 6.0 }
    }

    /// Returns whether so few hits are expected that standard deviations say little.
    pub fn is_small(&self) -> bool {
        self.expected < FEW
    }

    /// Returns whether the hits are at most those of this rate, by the same bounds.
    pub fn keeps(&self, rate: f64) -> bool {
        let asked = Rate { expected: rate * self.lookups as f64, ..*self };
        self.hits as f64 <= asked.expected || asked.is_likely()
    }
}

/// Returns the values of a Poisson variable of this mean, without tails that are as unlikely as 6 standard deviations of a normal
/// variable. For means up to some hundred.
fn likely(mean: f64) -> RangeInclusive<u64> {
    let (mut value, mut probability, mut up_to) = (0, (-mean).exp(), 0.0);
    let mut least = None;
    loop {
        up_to += probability;
        if up_to > TAIL && least.is_none() {
            least = Some(value);
        }
        if let (Some(least), true) = (least, 1.0 - up_to < TAIL) {
            return least..=value;
        }
        value += 1;
        probability *= mean / value as f64;
    }
}

/// Returns the largest number of events that chance explains where this number is expected.
pub fn most(mean: f64) -> u64 {
    if mean < FEW { *likely(mean).end() } else { (mean + 6.0 * mean.sqrt()) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_of_few_hits() {
        assert_eq!(likely(0.0), 0..=0);
        assert_eq!(likely(1e-10), 0..=0);
        // P(X > 1) is about mean^2 / 2.
        assert_eq!((likely(1e-5), likely(1e-4)), (0..=1, 0..=2));
        // P(X = 0) = e^-20 = 2.1e-9, e^-21 = 7.6e-10.
        assert_eq!((*likely(20.0).start(), *likely(21.0).start()), (0, 1));
        // Where both apply, they differ by the skew only.
        let range = likely(400.0);
        assert!((280..=290).contains(range.start()) && (520..=535).contains(range.end()), "{range:?}");
    }

    /// The spread of keys over classes is the one that [`Rate`] computes, with few and with many keys per class.
    #[test]
    fn classes_are_taken_with_the_variance_of_the_occupancy_problem() {
        let mut rng = fastrand::Rng::with_seed(1);
        // 4 bits: 15 fingerprints, 200 pairs.
        let (slots, bits, trials) = (1600.0, 4, 20_000);
        let classes = classes(slots, bits);
        assert_eq!(classes, 3000.0);
        for load in [0.1, 0.5, 0.95] {
            let mut taken = vec![false; 3000];
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..trials {
                taken.fill(false);
                (0..(load * slots) as usize).for_each(|_| taken[rng.usize(..3000)] = true);
                let part = taken.iter().filter(|&&taken| taken).count() as f64 / classes;
                sum += part;
                squares += part * part;
            }
            let mean = sum / f64::from(trials);
            let variance = squares / f64::from(trials) - mean * mean;
            // So many lookups that their own variance is negligible.
            let rate = Rate::of(u64::MAX, 0, slots, load, bits);
            let expected = rate.variance / (u64::MAX as f64).powi(2);
            assert!((mean / rate.expected() - 1.0).abs() < 0.01, "load {load}: {mean}");
            assert!((variance / expected - 1.0).abs() < 0.05, "load {load}: {variance} for {expected}");
        }
    }

    #[test]
    fn what_is_too_far_away_is_not_likely() {
        let rate = |hits| Rate::of(10_000_000, hits, 1e6, 0.95, 13);
        let expected = (10_000_000.0 * formula(0.95, 13)) as u64;
        let sigma = rate(expected).variance.sqrt() as u64;
        assert!(rate(expected + 5 * sigma).is_likely() && rate(expected - 5 * sigma).is_likely());
        assert!(!rate(expected + 7 * sigma).is_likely() && !rate(expected - 7 * sigma).is_likely());
        assert!(rate(0).keeps(0.001) && rate(10_000).keeps(0.001) && !rate(11_000).keeps(0.001));
    }
}
