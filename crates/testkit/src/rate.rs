//! How many lookups of absent keys should say "yes", and how far chance may lead away from that.

use std::ops::RangeInclusive;

/// What a normal variable leaves on either side beyond 6 standard deviations.
const TAIL: f64 = 1e-9;

/// Fewer hits than this are compared with a Poisson distribution, more with a normal one.
const FEW: f64 = 100.0;

/// Fingerprints that there are.
pub fn fingerprints(bits: u32) -> f64 {
    2f64.powi(bits as i32) - 1.0
}

/// The formula, 1 - exp(-8 load / (2^f - 1)), written down once more.
pub fn formula(load: f64, bits: u32) -> f64 {
    -(-8.0 * load / fingerprints(bits)).exp_m1()
}

/// Classes that there are: a fingerprint and one of its pairs, of which each bucket is in one.
pub fn classes(slots: f64, bits: u32) -> f64 {
    slots / 8.0 * fingerprints(bits)
}

/// Measured lookups of absent keys, of one filter or pooled over several.
///
/// An absent key is found if its class is taken. Two chances are at work. The first is that of the lookups: with a part
/// `p` of the classes taken, each of `n` keys falls into one of them with probability `p`, which gives the number of hits
/// the variance `n p (1 - p)`. It shrinks relative to the hits as `n` grows. The second is that of the classes: the stored keys
/// happen to take more or fewer of them, and all lookups of one filter see the same. `N` keys in `M` classes, `l = N / M`
/// in each on average, leave a part `e^-l` of the classes empty, which is where the formula comes from; the number of empty
/// ones has the variance `M e^-l (1 - (1 + l) e^-l)` (the occupancy problem: that of `M` independent classes, less what the
/// fixed number of keys takes from it). For the hits this is times `(n / M)^2`. Keys and seeds of several filters are
/// independent, so expectations and variances add up; the second part falls with the number of filters only, so there are
/// several for each width.
///
/// Where a class may overflow (4 and 5 bits), refused keys would make the formula a little too low; filters are filled up
/// to the first refusal only.
#[derive(Clone, Copy, Default)]
pub struct Rate {
    /// Of absent keys.
    pub lookups: u64,
    /// Those that said yes.
    pub hits: u64,
    expected: f64,
    variance: f64,
}

impl Rate {
    /// Of one filter.
    pub fn of(lookups: u64, hits: u64, slots: f64, load: f64, bits: u32) -> Self {
        let (n, p, classes) = (lookups as f64, formula(load, bits), classes(slots, bits));
        let each = load * slots / classes;
        let taken = (1.0 - p) * (1.0 - (1.0 + each) * (1.0 - p)) / classes;
        Rate { lookups, hits, expected: n * p, variance: n * p * (1.0 - p) + n * n * taken }
    }

    /// Of several filters together.
    pub fn pool(rates: impl IntoIterator<Item = Rate>) -> Self {
        rates.into_iter().fold(Rate::default(), |a, b| Rate {
            lookups: a.lookups + b.lookups,
            hits: a.hits + b.hits,
            expected: a.expected + b.expected,
            variance: a.variance + b.variance,
        })
    }

    /// The measured rate.
    pub fn measured(&self) -> f64 {
        self.hits as f64 / self.lookups as f64
    }

    /// The rate of the formula.
    pub fn expected(&self) -> f64 {
        self.expected / self.lookups as f64
    }

    /// How far the hits are from what is expected, in standard deviations.
    pub fn sigmas(&self) -> f64 {
        (self.hits as f64 - self.expected) / self.variance.sqrt()
    }

    /// Whether the hits are within 6 standard deviations, or, where these are few, within what is as likely.
    pub fn is_likely(&self) -> bool {
        if self.is_small() { likely(self.expected).contains(&self.hits) } else { self.sigmas().abs() <= 6.0 }
    }

    /// Whether so few hits are expected that standard deviations say little.
    pub fn is_small(&self) -> bool {
        self.expected < FEW
    }

    /// Whether the hits are at most those of this rate, by the same measure.
    pub fn keeps(&self, rate: f64) -> bool {
        let asked = Rate { expected: rate * self.lookups as f64, ..*self };
        self.hits as f64 <= asked.expected || asked.is_likely()
    }
}

/// The values of a Poisson variable of this mean, but for a tail on either side that is as unlikely as 6 standard deviations
/// of a normal one. For means up to some hundred.
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

/// The most events that chance brings about where this many are expected.
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

    /// Keys thrown into classes: their spread is what [`Rate`] says of it, for few and for many keys a class.
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
            // Enough lookups that their own chance is negligible.
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
