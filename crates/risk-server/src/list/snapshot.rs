//! Snapshots: copied by the writer, written to a file by another thread, read when a list is opened.

use super::error::SnapshotError;
use super::stats::SnapshotStats;
use super::store::Meta;
use super::writer::{Command, Writer};
use super::{Filter, Options, Shared};
use concurrent_cuckoo_filter::SnapshotReader;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;

/// A file that is being written. It stays behind if the process is killed meanwhile.
const TEMPORARY: (&str, &str) = (".filter.snapshot.", ".tmp");

/// The result of [`List::save_snapshot`](super::List::save_snapshot).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Saved {
    Written,
    /// The snapshot on disk has everything.
    NothingNew,
    /// The filter does not hold every key. The larger one that is being built will be saved once it is in place.
    Overflowing,
}

/// The state of the front that a copy has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CopyId {
    /// The last change.
    pub(super) sequence: u64,
    /// The number of the filter since the list was opened.
    pub(super) filter: u64,
}

/// What the writer answers to a request for a copy.
pub(super) enum Copied {
    Bytes { bytes: Vec<u8>, id: CopyId, took: Duration },
    NothingNew,
    Overflowing,
}

impl Writer {
    /// Copies the filter between two transactions: it has the changes up to the last one and no others, so that the
    /// log can be replayed over it. Writes wait for as long as the copy takes.
    pub(super) fn copy(&mut self) -> Result<Copied, SnapshotError> {
        self.heal().map_err(SnapshotError::Store)?;
        let side = self.shared.front.current();
        if side.overflow.len() > 0 || self.faulty {
            return Ok(Copied::Overflowing);
        }
        let id = CopyId { sequence: self.meta.sequence, filter: self.filter };
        if self.saved == Some(id) {
            return Ok(Copied::NothingNew);
        }
        let begun = Instant::now();
        let stamp = Stamp { id: self.meta.id, sequence: id.sequence }.to_bytes();
        let mut bytes = Vec::new();
        // More than is needed, so that writing does not allocate.
        bytes
            .try_reserve_exact(side.filter.memory_usage())
            .map_err(|_| SnapshotError::File(self.shared.options.snapshot(), ErrorKind::OutOfMemory.into()))?;
        side.filter.snapshot().metadata(&stamp).write_to(&mut bytes)?;
        Ok(Copied::Bytes { bytes, id, took: begun.elapsed() })
    }

    /// The copy is on disk: the log is needed from there on.
    pub(super) fn note_saved(&mut self, id: CopyId) {
        self.saved = Some(id);
        self.trim_to = self.trim_to.max(id.sequence);
        self.shared.totals.lock().saved_sequence = id.sequence;
    }
}

/// Saves a snapshot on a thread of its own, unless one is waiting to do so already: that one will have these changes.
pub(super) fn save_later(shared: &Arc<Shared>, sender: Sender<Command>) {
    if shared.save_waits.swap(true, Ordering::AcqRel) {
        return;
    }
    let saving = Arc::clone(shared);
    // `save` logs its own errors.
    let thread = thread::Builder::new().name("list-save".into()).spawn(move || drop(save(&saving, &sender)));
    if let Err(error) = thread {
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
    let (saved, id) = keep(shared, begun, copied)?;
    if let Some(id) = id {
        // A list that is closed meanwhile trims its log when it is opened again.
        let _ = sender.blocking_send(Command::Saved(id));
    }
    Ok(saved)
}

/// Saves the copy that the writer made before it ended. Blocks.
pub(super) fn save_last(shared: &Shared, copied: Result<Copied, SnapshotError>) -> Result<(), SnapshotError> {
    let _one = shared.saving.lock();
    keep(shared, Instant::now(), copied).map(drop)
}

fn keep(
    shared: &Shared,
    begun: Instant,
    copied: Result<Copied, SnapshotError>,
) -> Result<(Saved, Option<CopyId>), SnapshotError> {
    let path = shared.options.snapshot();
    let written = copied.and_then(|copied| match copied {
        Copied::Bytes { bytes, id, took } => {
            write(&path, &bytes).map_err(|error| SnapshotError::File(path, error))?;
            let stats = SnapshotStats {
                saved: SystemTime::now(),
                bytes: bytes.len() as u64,
                took: begun.elapsed(),
                copy: took,
            };
            shared.totals.lock().snapshot = Some(stats);
            tracing::info!(bytes = stats.bytes, copy = ?took, took = ?stats.took, "a snapshot was saved");
            Ok((Saved::Written, Some(id)))
        }
        Copied::NothingNew => Ok((Saved::NothingNew, None)),
        Copied::Overflowing => {
            tracing::info!("no snapshot: the filter does not hold every key");
            Ok((Saved::Overflowing, None))
        }
    });
    written.inspect_err(|error| {
        shared.totals.lock().snapshot_failures += 1;
        tracing::error!(%error, "no snapshot was saved");
    })
}

/// Which state of which list a snapshot is of: the metadata of the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// The id of the store.
    id: u128,
    /// The last change in the filter.
    pub(super) sequence: u64,
}

impl Stamp {
    /// The last byte is the version.
    const MAGIC: [u8; 8] = *b"risklst\x01";

    fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&Stamp::MAGIC);
        bytes[8..24].copy_from_slice(&self.id.to_le_bytes());
        bytes[24..].copy_from_slice(&self.sequence.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk()?;
        let (id, rest) = rest.split_first_chunk()?;
        let stamp = Stamp { id: u128::from_le_bytes(*id), sequence: u64::from_le_bytes(rest.try_into().ok()?) };
        (*magic == Stamp::MAGIC).then_some(stamp)
    }
}

/// Loads the filter of the snapshot, if it is of this list and the log has all changes since then. Otherwise says why
/// not.
pub(super) fn read(options: &Options, meta: &Meta) -> Result<(Filter, Stamp), String> {
    let file = File::open(options.snapshot()).map_err(|error| match error.kind() {
        ErrorKind::NotFound => "there is no snapshot".to_owned(),
        _ => format!("the snapshot cannot be opened: {error}"),
    })?;
    let mut file = BufReader::with_capacity(1 << 16, file);
    let reader = SnapshotReader::new(&mut file).map_err(|error| error.to_string())?;
    let header = reader.header();
    let stamp = Stamp::from_bytes(header.metadata()).ok_or("the snapshot is not one of a list")?;
    if stamp.id != meta.id {
        return Err("the snapshot is of another list".to_owned());
    }
    let Stamp { sequence, .. } = stamp;
    if sequence < meta.floor {
        let floor = meta.floor;
        return Err(format!(
            "the snapshot is too old: it ends at change {sequence}, and the log begins after change {floor}"
        ));
    }
    if sequence > meta.sequence {
        return Err(format!(
            "the snapshot is newer than the store: it ends at change {sequence}, the store at change {}",
            meta.sequence
        ));
    }
    let (capacity, bits) = (header.capacity(), header.fingerprint_bits());
    if capacity < options.capacity {
        return Err(format!("the snapshot is of a filter for {capacity} keys; {} are asked for", options.capacity));
    }
    let asked = options.filter_of(capacity).map_err(|error| error.to_string())?.fingerprint_bits();
    if bits != asked {
        return Err(format!("the snapshot has fingerprints of {bits} bits; {asked} are asked for"));
    }
    let filter = reader.into_filter_with_stored_keys().map_err(|error| error.to_string())?;
    match file.bytes().next() {
        None => Ok((filter, stamp)),
        Some(Ok(_)) => Err("something follows the snapshot in its file".to_owned()),
        Some(Err(error)) => Err(error.to_string()),
    }
}

/// The snapshot that a list was opened from, for its statistics.
pub(super) fn on_disk(path: &Path) -> Option<SnapshotStats> {
    let file = std::fs::metadata(path).ok()?;
    Some(SnapshotStats {
        saved: file.modified().unwrap_or(SystemTime::UNIX_EPOCH),
        bytes: file.len(),
        took: Duration::ZERO,
        copy: Duration::ZERO,
    })
}

/// Writes the snapshot: its file is the old one or the new one, whatever happens.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(TEMPORARY.0).suffix(TEMPORARY.1).tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    sync(folder)
}

/// The new name of a file is on disk when its folder is.
fn sync(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Sets a snapshot that was refused aside: once the store has reached the change that the snapshot names, it could be
/// mistaken for one of this store.
pub(super) fn set_aside(path: &Path) -> io::Result<()> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".refused");
    match std::fs::rename(path, aside) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => sync(path.parent().unwrap_or(Path::new("."))),
    }
}

/// Removes the files of writers that were killed. What cannot be removed stays.
pub(super) fn remove_temporary(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| name.starts_with(TEMPORARY.0) && name.ends_with(TEMPORARY.1)) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_as_a_whole_and_temporary_ones_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("filter.snapshot");
        write(&path, b"one").unwrap();
        write(&path, b"another").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"another");
        std::fs::write(folder.path().join(".filter.snapshot.abc.tmp"), b"half").unwrap();
        std::fs::write(folder.path().join("mine.tmp"), b"mine").unwrap();
        remove_temporary(folder.path()).unwrap();
        set_aside(&path).unwrap();
        set_aside(&path).unwrap();
        let mut names: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["filter.snapshot.refused", "mine.tmp"]);
    }
}
