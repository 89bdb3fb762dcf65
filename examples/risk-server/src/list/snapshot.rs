//! Saving a snapshot: copied by the writer, written elsewhere.

use super::error::SnapshotError;
use super::file;
use super::shared::Shared;
use super::stats::SnapshotStats;
use super::writer::{Command, Copied, CopyOf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;

/// What came of [`List::save_snapshot`](super::List::save_snapshot).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved {
    /// A snapshot is on disk.
    Written {
        /// Its size.
        bytes: u64,
        /// How long writes waited for it.
        copy: Duration,
        /// From the call to the file on disk.
        took: Duration,
    },
    /// The one on disk has everything.
    NothingNew,
    /// The filter does not hold every key: a larger one is being built, and saved when it is in place.
    Overflowing,
}

/// Saves a snapshot on a thread of its own, unless one waits already: what that one copies has the same changes.
pub(super) fn save_later(shared: Arc<Shared>, sender: Sender<Command>) {
    if shared.save_waits.swap(true, Ordering::AcqRel) {
        return;
    }
    let (saver, of) = (thread::Builder::new().name("list-save".into()), Arc::clone(&shared));
    // It says itself what goes wrong.
    if let Err(error) = saver.spawn(move || drop(save(&of, &sender))) {
        tracing::error!(%error, "the system gave no thread for a snapshot");
        shared.save_waits.store(false, Ordering::Release);
    }
}

/// Saves a snapshot. Blocks.
pub(super) fn save(shared: &Shared, sender: &Sender<Command>) -> Result<Saved, SnapshotError> {
    let _one = shared.saving.lock();
    shared.save_waits.store(false, Ordering::Release);
    let begun = Instant::now();
    let (reply, answer) = oneshot::channel();
    sender.blocking_send(Command::Copy(reply)).map_err(|_| SnapshotError::Closed)?;
    let copied = answer.blocking_recv().map_err(|_| SnapshotError::Closed)?;
    let (saved, of) = keep(shared, begun, copied)?;
    if let Some(of) = of {
        // A list that is closed meanwhile trims its log when it is opened again.
        let _ = sender.blocking_send(Command::Saved(of));
    }
    Ok(saved)
}

/// Saves the copy that the writer made before it ended. Blocks.
pub(super) fn save_last(shared: &Shared, copied: Result<Copied, SnapshotError>) -> Result<Saved, SnapshotError> {
    let _one = shared.saving.lock();
    keep(shared, Instant::now(), copied).map(|(saved, _)| saved)
}

fn keep(
    shared: &Shared,
    begun: Instant,
    copied: Result<Copied, SnapshotError>,
) -> Result<(Saved, Option<CopyOf>), SnapshotError> {
    let path = shared.options.snapshot();
    let written = copied.and_then(|copied| match copied {
        Copied::Bytes { bytes, of, took } => {
            file::write(&path, &bytes).map_err(|source| SnapshotError::File { path, source })?;
            Ok((Saved::Written { bytes: bytes.len() as u64, copy: took, took: begun.elapsed() }, Some(of)))
        }
        Copied::NothingNew => Ok((Saved::NothingNew, None)),
        Copied::Overflowing => Ok((Saved::Overflowing, None)),
    });
    match &written {
        Ok((Saved::Written { bytes, copy, took }, _)) => {
            let unix_seconds = seconds_since_1970(SystemTime::now());
            let stats = SnapshotStats { unix_seconds, bytes: *bytes, took: *took, copy: *copy };
            *shared.last_snapshot.lock() = Some(stats);
            tracing::info!(bytes, ?copy, ?took, "a snapshot was saved");
        }
        Ok((Saved::NothingNew, _)) => {}
        Ok((Saved::Overflowing, _)) => tracing::info!("no snapshot: the filter does not hold every key"),
        Err(error) => {
            shared.counters.snapshot_failures.fetch_add(1, Ordering::Relaxed);
            tracing::error!(%error, "no snapshot was saved");
        }
    }
    written
}

/// 0 for what lies before.
pub(super) fn seconds_since_1970(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
