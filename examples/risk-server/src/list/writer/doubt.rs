//! A commit that failed: it may be on disk or not.
//!
//! redb refuses everything after an error of its file until it is opened again. Then the number of the last change
//! tells whether the commit was made. Until then the front has what it would need in both cases.

use super::super::error::StoreError;
use super::super::front::Side;
use super::super::store::Meta;
use super::Writer;
use super::group::Net;
use std::sync::Arc;
use std::time::Instant;

/// A commit that failed, with what the store says of itself if it was made.
pub(super) enum Doubt {
    /// Changes. Their puts are in the front already, their deletes are in it still.
    Group { meta: Meta, net: Net },
    /// A list took the place of another one. Both are in the front.
    Switch { meta: Meta, old: Arc<Side>, new: Arc<Side> },
}

impl Doubt {
    fn meta(&self) -> &Meta {
        let (Doubt::Group { meta, .. } | Doubt::Switch { meta, .. }) = self;
        meta
    }
}

/// What is known of a commit that failed.
pub(super) enum Outcome {
    /// It was made nevertheless.
    Made,
    /// It was not made.
    NotMade,
    /// The store cannot be opened.
    Unknown,
}

impl Writer {
    /// Before the store is written: as [`heal`](Writer::heal), and not in a pause.
    pub(super) fn be_ready(&mut self) -> Result<(), StoreError> {
        self.heal()?;
        self.health.pause()
    }

    /// Opens the store again if it failed, and ends a doubt. Without error, the store and the front agree.
    pub(super) fn heal(&mut self) -> Result<(), StoreError> {
        if self.health.is_known() {
            return Ok(());
        }
        self.health.pause()?;
        let begun = Instant::now();
        let meta = match self.reopen() {
            Ok(meta) => meta,
            Err(error) => {
                tracing::error!(%error, "the store cannot be opened again; writes are refused");
                self.health.note_not_opened(begun.elapsed(), &error);
                return Err(error);
            }
        };
        tracing::warn!("the store was opened again");
        self.health.note_opened(begun.elapsed());
        self.add_to(|counters| &counters.reopenings, 1);
        // It may have read what was not committed in the end.
        self.cancel_build();
        self.end_doubt(meta);
        Ok(())
    }

    fn reopen(&mut self) -> Result<Meta, StoreError> {
        let (id, last) = (self.meta.id, self.meta.sequence);
        let in_doubt = self.doubt.as_ref().map(|doubt| doubt.meta().sequence);
        // Anything else is not what the front is of: a file that somebody has put there.
        self.shared.store.reopen(|now| now.id == id && (now.sequence == last || Some(now.sequence) == in_doubt))
    }

    /// A step of the store failed.
    pub(super) fn sicken(&mut self, error: &StoreError) {
        tracing::error!(%error, "the store is opened again");
        self.health.note_failure(error);
    }

    /// Tries at once to learn what became of the commit that has just failed.
    pub(super) fn resolve(&mut self) -> Outcome {
        let would_be = self.doubt.as_ref().map(|doubt| *doubt.meta());
        match self.heal() {
            Err(_) => Outcome::Unknown,
            Ok(()) if would_be.is_some_and(|meta| meta.sequence == self.meta.sequence) => Outcome::Made,
            Ok(()) => Outcome::NotMade,
        }
    }

    fn end_doubt(&mut self, now: Meta) {
        let Some(doubt) = self.doubt.take() else {
            // A chore may have been committed or not.
            self.meta = now;
            return;
        };
        let made = doubt.meta().sequence == now.sequence;
        tracing::warn!(made, "what became of the commit that failed is known");
        match doubt {
            Doubt::Group { net, .. } if made => self.finish_group(now, &net),
            Doubt::Group { net, .. } => {
                self.meta = now;
                self.take_back_group(&net);
            }
            Doubt::Switch { new, .. } if made => self.finish_switch(now, new),
            Doubt::Switch { old, .. } => {
                self.meta = now;
                self.take_back_switch(old);
            }
        }
    }

    /// A read failed, somebody waits for room, or a replacement was abandoned.
    pub(super) fn look(&mut self) {
        if self.health.is_known() {
            // A read may be answered from memory; a transaction that writes nothing is refused after any error.
            if let Err(error) = self.shared.store.write().map(drop) {
                self.sicken(&error);
            }
        }
        // It says so itself.
        let _ = self.heal();
    }
}
