//! A store that failed: when it is reopened, and what became of the commit that failed.
//!
//! redb refuses everything after an error of its file until it is reopened. Then the number of the last change tells
//! whether the commit was made. Until then the front has what it needs in either case.

use super::error::StoreError;
use super::front::Side;
use super::store::Meta;
use super::writer::{Net, Writer};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The shortest pause between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// A pause is at least this many times as long as it took to open the store, during which nothing can be read.
const PAUSE_PER_OPENING: u32 = 10;

/// Whether the store works.
///
/// After an error the store is reopened at once. A full disk, for example, lets it be opened each time, and fails each
/// time: so the second failure in a row is followed by a pause in which nothing is written, and reads go on. A store
/// that cannot be opened is left alone for as long.
#[derive(Debug, Default)]
pub(super) struct Health {
    /// The store has failed, and has not been reopened since.
    failed: bool,
    /// Failures since the last commit.
    failures: u32,
    last: Option<StoreError>,
    pause_until: Option<Instant>,
}

impl Health {
    /// The store can be read, and agrees with the front.
    pub(super) fn is_known(&self) -> bool {
        !self.failed
    }

    /// It can be written, too.
    pub(super) fn is_good(&self) -> bool {
        !self.failed && self.pause().is_ok()
    }

    /// The error to report while nothing is tried.
    fn pause(&self) -> Result<(), StoreError> {
        match &self.last {
            Some(error) if self.pause_until.is_some_and(|until| Instant::now() < until) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    fn begin_pause(&mut self, opening: Duration) {
        self.pause_until = Some(Instant::now() + PAUSE.max(opening * PAUSE_PER_OPENING));
    }

    pub(super) fn note_commit(&mut self) {
        self.failures = 0;
    }
}

/// A commit that failed, with the meta row that the store has if it was made.
pub(super) enum Doubt {
    /// Changes. Their puts are in the front already, their deletes still are.
    Group { meta: Meta, net: Net },
    /// A replacement. Both lists are in front.
    Switch { meta: Meta, old: Arc<Side>, new: Arc<Side> },
}

impl Doubt {
    fn sequence(&self) -> u64 {
        let (Doubt::Group { meta, .. } | Doubt::Switch { meta, .. }) = self;
        meta.sequence
    }
}

/// What became of a commit that failed.
pub(super) enum Outcome {
    Made,
    NotMade(StoreError),
    /// The store cannot be opened.
    Unknown(StoreError),
}

impl Writer {
    /// As [`heal`](Writer::heal), before the store is written: an error during a pause.
    pub(super) fn be_ready(&mut self) -> Result<(), StoreError> {
        self.heal()?;
        self.health.pause()
    }

    /// Reopens the store if it failed, and resolves a doubt. Without an error, the store and the front agree.
    pub(super) fn heal(&mut self) -> Result<(), StoreError> {
        if self.health.is_known() {
            return Ok(());
        }
        self.health.pause()?;
        let begun = Instant::now();
        let (id, last) = (self.meta.id, self.meta.sequence);
        let in_doubt = self.doubt.as_ref().map(Doubt::sequence);
        // With any other meta row it is another file, which the front does not belong to.
        let expected = |now: &Meta| now.id == id && (now.sequence == last || Some(now.sequence) == in_doubt);
        let meta = self.shared.store.reopen(expected).inspect_err(|error| {
            tracing::error!(%error, "the store cannot be reopened; writes are refused");
            self.health.last = Some(error.clone());
            self.health.begin_pause(begun.elapsed());
        })?;
        tracing::warn!("the store was reopened");
        self.health.failed = false;
        if self.health.failures > 1 {
            self.health.begin_pause(begun.elapsed());
        }
        self.shared.totals.lock().store_reopenings += 1;
        self.end_doubt(meta);
        Ok(())
    }

    /// A step of the store failed.
    pub(super) fn sicken(&mut self, error: &StoreError) {
        tracing::error!(%error, "the store failed and will be reopened");
        self.health.failed = true;
        self.health.failures += 1;
        self.health.last = Some(error.clone());
    }

    /// Tries at once to learn what became of a commit that has just failed.
    pub(super) fn resolve(&mut self, doubt: Doubt, error: &StoreError) -> Outcome {
        let sequence = doubt.sequence();
        self.doubt = Some(doubt);
        self.sicken(error);
        match self.heal() {
            Err(_) => Outcome::Unknown(error.clone()),
            Ok(()) if self.meta.sequence == sequence => Outcome::Made,
            Ok(()) => Outcome::NotMade(error.clone()),
        }
    }

    fn end_doubt(&mut self, now: Meta) {
        let Some(doubt) = self.doubt.take() else {
            // A chore may have been committed or not.
            self.meta = now;
            return;
        };
        let made = doubt.sequence() == now.sequence;
        tracing::warn!(made, "it is known what became of the commit that failed");
        match doubt {
            Doubt::Group { net, .. } if made => self.finish_group(now, net),
            Doubt::Group { net, .. } => {
                self.meta = now;
                self.remove_from_front(&net.puts);
            }
            Doubt::Switch { new, .. } if made => self.finish_switch(now, new),
            Doubt::Switch { old, .. } => {
                self.meta = now;
                self.undo_switch(old);
            }
        }
    }

    /// Checks that the store still works: a read has failed.
    pub(super) fn look(&mut self) {
        if self.health.is_known() {
            // A read may be answered from memory; beginning to write is refused after any error.
            if let Err(error) = self.shared.store.write().map(drop) {
                self.sicken(&error);
            }
        }
        // It logs its own errors.
        let _ = self.heal();
    }
}
