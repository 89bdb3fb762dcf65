//! Opening: the store, and the front from the snapshot and the log, or from all keys of the store.

use super::error::{LoadError, OpenError, SnapshotError};
use super::front::{Front, Side};
use super::snapshot;
use super::stats::Totals;
use super::store::{Meta, Opener, Store, StoreOpenError, count, replay};
use super::{Options, Shared};
use redb::ReadTransaction;
use std::fs::DirBuilder;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// A load is logged this often.
const LOG_EVERY: Duration = Duration::from_secs(5);

/// Where the filter of a list came from when it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// The snapshot, and the changes since then.
    Snapshot { changes: u64 },
    /// All keys of the store.
    BulkLoad { why: String },
    /// There was no key.
    Empty,
}

/// What the writer starts with.
pub(super) struct Begun {
    pub(super) shared: Shared,
    pub(super) meta: Meta,
    /// The last change in the snapshot, if the front came from it.
    pub(super) saved: Option<u64>,
    pub(super) spare_is_dirty: bool,
    pub(super) how: Start,
    pub(super) keys: u64,
}

pub(super) fn open(options: Options, opener: Opener, progress: impl FnMut(u64)) -> Result<Begun, OpenError> {
    // Before there is a folder: a filter that cannot be built is refused.
    options.filter_of(options.capacity).map_err(LoadError::from)?;
    let folder = |error| OpenError::Folder(options.folder.clone(), error);
    make_folder(&options.folder).map_err(folder)?;
    let path = options.store();
    let store = Store::open(opener).map_err(|error| match error {
        StoreOpenError::InUse => OpenError::InUse(path.clone()),
        StoreOpenError::NotAList => OpenError::NotAList(path.clone()),
        StoreOpenError::Database(error) => OpenError::Store(path.clone(), error),
    })?;
    // Only now: before, the files might have been those of another process.
    snapshot::remove_temporary(&options.folder).map_err(folder)?;
    let failed = |error| OpenError::Store(path.clone(), error);
    let transaction = store.read().map_err(failed)?;
    let meta = Meta::read(&transaction).map_err(failed)?;
    let keys = count(&transaction, meta.current).map_err(failed)?;
    let spare_is_dirty = count(&transaction, meta.spare()).map_err(failed)? > 0;
    let (side, how, saved) = match from_snapshot(&options, &transaction, &meta, keys) {
        Ok((side, sequence)) => (side, Start::Snapshot { changes: meta.sequence - sequence }, Some(sequence)),
        Err(why) => {
            if keys > 0 {
                tracing::warn!(why, keys, "the filter is loaded from the store");
            }
            snapshot::set_aside(&options.snapshot()).map_err(folder)?;
            let side = Side::new(options.filter_for(keys).map_err(LoadError::from)?);
            let loaded = side.load(&transaction, meta.current, || false, logged(keys, progress));
            loaded.map_err(|error| match error {
                LoadError::Store(source) => failed(source),
                error => error.into(),
            })?;
            (side, if keys == 0 { Start::Empty } else { Start::BulkLoad { why } }, None)
        }
    };
    drop(transaction);
    let totals = Totals {
        keys,
        sequence: meta.sequence,
        saved_sequence: saved.unwrap_or(0),
        snapshot: saved.and_then(|_| snapshot::on_disk(&options.snapshot())),
        ..Totals::default()
    };
    let shared = Shared {
        front: Front::new(side),
        closing: AtomicBool::new(false),
        saving: parking_lot::Mutex::new(()),
        save_waits: AtomicBool::new(false),
        totals: parking_lot::Mutex::new(totals),
        store,
        options,
    };
    Ok(Begun { shared, meta, saved, spare_is_dirty, how, keys })
}

/// Creates the folder and its parents, for the owner alone. One that exists keeps its mode.
fn make_folder(path: &Path) -> io::Result<()> {
    let mut folder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
    folder.recursive(true).create(path)
}

/// The front from the snapshot and the log, and the last change in the snapshot; or why not.
fn from_snapshot(
    options: &Options,
    transaction: &ReadTransaction,
    meta: &Meta,
    keys: u64,
) -> Result<(Side, u64), String> {
    let (filter, stamp) = snapshot::read(options, meta)?;
    let side = Side::new(filter);
    let replayed =
        replay(transaction, stamp.sequence, &side).map_err(|error| SnapshotError::Store(error).to_string())?;
    if replayed.sequence != meta.sequence || replayed.faults > 0 || side.len() != keys {
        let (changes, faults, len) = (replayed.changes, replayed.faults, side.len());
        return Err(format!(
            "the snapshot and the {changes} changes since then make {len} keys, with {faults} faults; the store has {keys}"
        ));
    }
    Ok((side, stamp.sequence))
}

/// Logs the progress now and then, and passes it on.
fn logged(keys: u64, mut progress: impl FnMut(u64)) -> impl FnMut(u64) {
    let mut last = Instant::now();
    move |loaded| {
        if last.elapsed() >= LOG_EVERY {
            last = Instant::now();
            tracing::info!(loaded, keys, "the filter is being loaded");
        }
        progress(loaded);
    }
}
