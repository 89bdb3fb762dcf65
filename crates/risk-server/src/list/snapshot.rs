//! Snapshots: the filter as it was between two transactions, with the number of the last change. A start loads it and
//! replays the changes since then, which the log has.

use super::stats::SnapshotStats;
use super::store::Meta;
use super::{Filter, Options};
use concurrent_cuckoo_filter::{SnapshotError, SnapshotReader};
use std::fs::File;
use std::io::{self, BufReader, ErrorKind};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// Which state of which list a snapshot is of: the metadata of the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// The id of the store.
    pub(super) id: u128,
    /// The last change in the filter.
    pub(super) sequence: u64,
}

impl Stamp {
    /// The last byte is the version.
    const MAGIC: [u8; 8] = *b"risklst\x01";

    fn to_bytes(self) -> Vec<u8> {
        [&Stamp::MAGIC[..], &self.id.to_le_bytes(), &self.sequence.to_le_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (id, sequence) = bytes.strip_prefix(&Stamp::MAGIC)?.split_first_chunk()?;
        let sequence = u64::from_le_bytes(sequence.try_into().ok()?);
        Some(Stamp { id: u128::from_le_bytes(*id), sequence })
    }
}

/// A copy of the filter that the writer made.
pub(super) struct Copied {
    pub(super) filter: Filter,
    pub(super) stamp: Stamp,
    pub(super) took: Duration,
}

impl Copied {
    /// Saves it in place of an older one.
    pub(super) fn save(&self, path: &Path, begun: Instant) -> Result<SnapshotStats, SnapshotError> {
        self.filter.snapshot().metadata(&self.stamp.to_bytes()).save(path)?;
        let bytes = std::fs::metadata(path)?.len();
        Ok(SnapshotStats { saved: SystemTime::now(), bytes, took: begun.elapsed(), copy: self.took })
    }
}

/// Loads the filter of the snapshot, if it is of this list and the log has all changes since then. Otherwise says why
/// not.
pub(super) fn read(options: &Options, meta: &Meta) -> Result<(Filter, Stamp), String> {
    let file = File::open(options.snapshot()).map_err(|error| match error.kind() {
        ErrorKind::NotFound => "there is no snapshot".to_owned(),
        _ => format!("the snapshot cannot be opened: {error}"),
    })?;
    let reader = SnapshotReader::new(BufReader::new(file)).map_err(|error| error.to_string())?;
    let header = reader.header();
    let stamp = Stamp::from_bytes(header.metadata()).ok_or("the snapshot is not one of a list")?;
    let Stamp { id, sequence } = stamp;
    let (last, floor) = (meta.sequence, meta.floor);
    if id != meta.id {
        return Err("the snapshot is of another list".to_owned());
    }
    if sequence < floor {
        return Err(format!("the snapshot is too old: it ends at change {sequence}, and the log begins after {floor}"));
    }
    if sequence > last {
        return Err(format!("the snapshot is newer than the store: it ends at change {sequence}, the store at {last}"));
    }
    let built = (header.max_capacity(), header.false_positive_rate());
    if built != (options.max_capacity(), Some(options.false_positive_rate)) {
        return Err("the snapshot is of a filter for another rate, or for another number of keys".to_owned());
    }
    let filter = reader.into_filter_with_stored_keys().map_err(|error| error.to_string())?;
    Ok((filter, stamp))
}

/// The snapshot that a list was opened from, for its statistics.
pub(super) fn on_disk(path: &Path) -> Option<SnapshotStats> {
    let file = std::fs::metadata(path).ok()?;
    let saved = file.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    Some(SnapshotStats { saved, bytes: file.len(), took: Duration::ZERO, copy: Duration::ZERO })
}

/// Sets a snapshot that was refused aside: once the store has reached the change that the snapshot names, it could be
/// mistaken for one of this store.
pub(super) fn set_aside(path: &Path) -> io::Result<()> {
    match std::fs::rename(path, path.with_extension("snapshot.refused")) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes what is left of snapshots that were being saved when the process was killed. What cannot be removed stays.
pub(super) fn remove_temporary(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().into_string().unwrap_or_default();
        if name.starts_with(".filter.snapshot.") && name.ends_with(".tmp") {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    Ok(())
}
