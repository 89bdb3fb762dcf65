//! An even pace, kept by the clock.

use std::time::{Duration, Instant};

/// Moments at even distances. One that is missed is still due: whoever comes late is late by all that it waited.
#[derive(Debug)]
pub(crate) struct Pace {
    start: Instant,
    per_second: f64,
    taken: u64,
}

impl Pace {
    pub(crate) fn new(start: Instant, per_second: f64) -> Self {
        Pace { start, per_second, taken: 0 }
    }

    /// The next moment.
    pub(crate) fn due(&self) -> Instant {
        self.start + Duration::from_secs_f64(self.taken as f64 / self.per_second)
    }

    /// The next moment, if it has come; the one after it is next then.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Instant> {
        let due = self.due();
        (due <= now).then(|| {
            self.taken += 1;
            due
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_due_as_the_clock_says() {
        let start = Instant::now();
        let mut pace = Pace::new(start, 1000.0);
        let mut due = |ms| std::iter::from_fn(|| pace.take(start + Duration::from_millis(ms))).count();
        assert_eq!(due(0), 1);
        assert_eq!(due(0), 0);
        assert_eq!(due(100), 100);
        assert_eq!(due(60_000), 59_900);
    }

    #[test]
    fn one_that_is_taken_late_was_due_when_it_was_due() {
        let start = Instant::now();
        let mut pace = Pace::new(start, 10.0);
        let late = start + Duration::from_secs(1);
        assert_eq!(pace.take(late), Some(start));
        assert_eq!(pace.take(late), Some(start + Duration::from_millis(100)));
        assert_eq!(pace.due(), start + Duration::from_millis(200));
        assert_eq!(pace.take(start), None);
    }
}
