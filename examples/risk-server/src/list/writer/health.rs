//! Whether the store works, and when it is tried again.

use super::super::error::StoreError;
use std::time::{Duration, Instant};

/// A pause is so long at the least.
const PAUSE: Duration = Duration::from_millis(200);

/// And so many times as long as the store took to open, for as long as nobody can read it.
const OPENINGS: u32 = 10;

/// Whether the store works.
///
/// After an error the store is opened again at once. A disk that is full, say, lets it be opened each time, and fails
/// each time: so the second failure in a row is followed by a pause in which nothing is written, and reads go on. A
/// store that cannot be opened is left alone for as long.
#[derive(Debug, Default)]
pub(super) struct Health {
    /// The store has failed, and was not opened since.
    sick: bool,
    /// Failures since the last commit.
    failures: u32,
    /// The last one.
    last: Option<StoreError>,
    pause_until: Option<Instant>,
}

impl Health {
    /// The store can be read, and agrees with the front.
    pub(super) fn is_known(&self) -> bool {
        !self.sick
    }

    /// It can be written, too.
    pub(super) fn is_good(&self) -> bool {
        !self.sick && !self.pauses()
    }

    /// The error to tell while nothing is tried.
    pub(super) fn pause(&self) -> Result<(), StoreError> {
        match &self.last {
            Some(error) if self.pauses() => Err(error.clone()),
            _ => Ok(()),
        }
    }

    fn pauses(&self) -> bool {
        self.pause_until.is_some_and(|until| Instant::now() < until)
    }

    fn begin_pause(&mut self, opening: Duration) {
        self.pause_until = Some(Instant::now() + PAUSE.max(opening * OPENINGS));
    }

    /// A step of the store failed.
    pub(super) fn note_failure(&mut self, error: &StoreError) {
        self.sick = true;
        self.failures += 1;
        self.last = Some(error.clone());
    }

    /// The store was opened again.
    pub(super) fn note_opened(&mut self, took: Duration) {
        self.sick = false;
        if self.failures > 1 {
            self.begin_pause(took);
        }
    }

    /// The store could not be opened again.
    pub(super) fn note_not_opened(&mut self, took: Duration, error: &StoreError) {
        self.last = Some(error.clone());
        self.begin_pause(took);
    }

    /// A commit was made.
    pub(super) fn note_commit(&mut self) {
        self.failures = 0;
    }
}
