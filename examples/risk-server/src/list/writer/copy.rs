//! Copies of the filter for snapshots.

use super::super::error::SnapshotError;
use super::super::file::Stamp;
use super::{Copied, CopyOf, Writer};
use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::time::Instant;

impl Writer {
    /// Copies the filter between two transactions: it has the changes up to the last one and no others, so that the
    /// log can be replayed over it. Writes wait for as long as it takes to copy memory.
    pub(super) fn copy(&mut self) -> Result<Copied, SnapshotError> {
        self.heal().map_err(SnapshotError::Store)?;
        let side = self.shared.front.current();
        if !side.overflow.is_empty() || self.faulty {
            return Ok(Copied::Overflowing);
        }
        let of = CopyOf { sequence: self.meta.sequence, filter: self.filter };
        if self.saved == Some(of) {
            return Ok(Copied::NothingNew);
        }
        let begun = Instant::now();
        let stamp = Stamp { id: self.meta.id, sequence: of.sequence }.to_bytes();
        let mut bytes = Vec::new();
        // More than it takes: then the writing does not ask for more.
        bytes.try_reserve_exact(side.filter.memory_usage()).map_err(|_| SnapshotError::File {
            path: self.shared.options.snapshot(),
            source: ErrorKind::OutOfMemory.into(),
        })?;
        side.filter.snapshot().metadata(&stamp).write_to(&mut bytes)?;
        Ok(Copied::Bytes { bytes, of, took: begun.elapsed() })
    }

    /// The copy is on disk: the log is needed from there on.
    pub(super) fn note_saved(&mut self, of: CopyOf) {
        self.saved = Some(of);
        self.trim_to = self.trim_to.max(of.sequence);
        self.shared.counters.watermark.store(of.sequence, Ordering::Relaxed);
    }
}
