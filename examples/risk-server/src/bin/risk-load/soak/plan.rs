//! How long a soak goes on, and what comes how often.

use std::time::{Duration, Instant};

/// How long, and how often.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) time: Duration,
    /// Between two ends of the server, about.
    pub(super) kill_every: Duration,
    /// After that it lives on.
    pub(super) kill_until: Duration,
    pub(super) audit_every: Duration,
    pub(super) sample_every: Duration,
    pub(super) tell_every: Duration,
}

impl Plan {
    pub(super) fn new(time: Duration, kill_every: Duration) -> Self {
        Plan {
            time,
            kill_every,
            kill_until: time * 3 / 5,
            audit_every: (kill_every / 3).clamp(Duration::from_millis(300), Duration::from_secs(7)),
            sample_every: (time / 600).clamp(Duration::from_millis(200), Duration::from_secs(2)),
            tell_every: (time / 25).clamp(Duration::from_secs(2), Duration::from_secs(15)),
        }
    }
}

/// Something that happens every so often.
pub(super) struct Every(Instant, Duration);

impl Every {
    pub(super) fn after(start: Instant, time: Duration) -> Self {
        Every(start, time)
    }

    pub(super) fn is_due(&mut self) -> bool {
        let due = self.0.elapsed() >= self.1;
        if due {
            self.0 = Instant::now();
        }
        due
    }
}
