//! What is done when nothing waits, a bounded piece at a time: the log is trimmed, the spare table emptied.

use super::super::error::StoreError;
use super::super::store::{CHANGES, KEYS, Meta};
use super::Writer;

/// Rows that are removed in one transaction.
const PIECE: usize = 8192;

impl Writer {
    pub(super) fn has_chores(&self) -> bool {
        self.health.is_good() && (self.can_trim() || self.can_empty())
    }

    /// Does one piece. After an error the chore is still there.
    pub(super) fn do_chores(&mut self) {
        self.forget_abandoned_replacement();
        if self.has_chores() {
            let done = if self.can_empty() { self.empty_spare() } else { self.trim() };
            if let Err(error) = done {
                self.sicken(&error);
                let _ = self.heal();
            }
        }
        self.begin_waiting_replacement();
    }

    /// The last change that neither the snapshot nor a build needs.
    fn trim_to(&self) -> u64 {
        self.build.as_ref().map_or(self.trim_to, |build| self.trim_to.min(build.hold))
    }

    fn can_trim(&self) -> bool {
        self.trimmed < self.trim_to()
    }

    fn trim(&mut self) -> Result<(), StoreError> {
        let to = self.trim_to();
        let transaction = self.shared.store.write()?;
        let (mut removed, mut last) = (0, 0);
        for entry in transaction.open_table(CHANGES)?.extract_from_if(..=to, |_, _| true)?.take(PIECE) {
            (removed, last) = (removed + 1, entry?.0.value());
        }
        let trimmed = if removed < PIECE { to } else { last };
        let meta = Meta { floor: self.meta.floor.max(trimmed), ..self.meta };
        if removed > 0 || meta != self.meta {
            meta.write(&transaction)?;
            transaction.commit()?;
            self.health.note_commit();
        }
        (self.meta, self.trimmed) = (meta, trimmed);
        Ok(())
    }

    fn can_empty(&self) -> bool {
        self.spare_is_dirty && self.replacing.is_over()
    }

    fn empty_spare(&mut self) -> Result<(), StoreError> {
        let transaction = self.shared.store.write()?;
        let mut removed = 0;
        for entry in transaction.open_table(KEYS[self.meta.spare()])?.extract_if(|_, ()| true)?.take(PIECE) {
            entry?;
            removed += 1;
        }
        if removed > 0 {
            transaction.commit()?;
            self.health.note_commit();
        }
        self.spare_is_dirty = removed == PIECE;
        Ok(())
    }
}
