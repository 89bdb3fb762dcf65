//! How long things took.

use hdrhistogram::Histogram;
use std::time::Duration;

/// A count of times, exact to three digits.
#[derive(Clone)]
pub(crate) struct Times(Histogram<u64>);

impl Times {
    /// Longer ones count as this.
    const LONGEST: Duration = Duration::from_secs(120);

    pub(crate) fn new() -> Self {
        let longest = Self::LONGEST.as_nanos() as u64;
        Times(Histogram::new_with_bounds(1, longest, 3).expect("these bounds are in order"))
    }

    pub(crate) fn add(&mut self, took: Duration) {
        self.0.saturating_record(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(crate) fn merge(&mut self, other: &Times) {
        self.0.add(&other.0).expect("all have the same bounds");
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    /// The time that this part of them did not exceed; nothing of none.
    pub(crate) fn quantile(&self, part: f64) -> Option<Duration> {
        (self.count() > 0).then(|| Duration::from_nanos(self.0.value_at_quantile(part).min(self.0.max())))
    }

    pub(crate) fn worst(&self) -> Option<Duration> {
        (self.count() > 0).then(|| Duration::from_nanos(self.0.max()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_all_that_was_added() {
        let (mut one, mut two) = (Times::new(), Times::new());
        assert_eq!((one.quantile(0.5), one.worst()), (None, None));
        for us in 1..=500 {
            one.add(Duration::from_micros(us));
            two.add(Duration::from_micros(500 + us));
        }
        one.merge(&two);
        assert_eq!(one.count(), 1000);
        for (part, us) in [(0.5, 500.0), (0.99, 990.0), (0.999, 999.0), (1.0, 1000.0)] {
            let found = one.quantile(part).unwrap().as_secs_f64() * 1e6;
            assert!((found / us - 1.0).abs() < 0.002, "{part}: {found}");
        }
        two.add(Duration::from_secs(1000));
        assert!(two.worst().unwrap().as_secs() >= 119);
    }
}
