//! Opening: the store, and the front from the snapshot and the log, or from all keys of the store.

use super::changes::replay;
use super::error::OpenError;
use super::file;
use super::front::{Front, Refused, Side};
use super::load::{LoadError, load};
use super::options::Options;
use super::shared::{Counters, Shared};
use super::snapshot::seconds_since_1970;
use super::stats::SnapshotStats;
use super::store::{Meta, Opener, Store, StoreOpenError, count};
use redb::ReadTransaction;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// How often a load tells the log how far it is.
const TELL: Duration = Duration::from_secs(5);

/// Where the filter of a list came from when it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// From its snapshot and the changes since then.
    Snapshot {
        /// The changes since then.
        changes: u64,
    },
    /// From all keys of the store.
    BulkLoad {
        /// Why not from a snapshot.
        why: String,
    },
    /// There was no key.
    Empty,
}

/// What a writer begins with.
pub(super) struct Begun {
    pub(super) shared: Shared,
    pub(super) meta: Meta,
    /// The change up to which the snapshot goes, if the front came from it.
    pub(super) saved: Option<u64>,
    pub(super) spare_is_dirty: bool,
    pub(super) how: Start,
    pub(super) keys: u64,
}

pub(super) fn open(options: Options, opener: Opener, progress: impl FnMut(u64)) -> Result<Begun, OpenError> {
    // Before there is a folder: what cannot be built is refused.
    options.filter_of(options.capacity)?;
    let folder = |source| OpenError::Folder { path: options.folder.clone(), source };
    file::make_folder(&options.folder).map_err(folder)?;
    let path = options.store();
    let store = Store::open(opener).map_err(|error| match error {
        StoreOpenError::InUse => OpenError::InUse { path: path.clone() },
        StoreOpenError::NotAList => OpenError::NotAList { path: path.clone() },
        StoreOpenError::Database(source) => OpenError::Store { path: path.clone(), source },
    })?;
    // Only now: before, they might have been those of another process.
    file::remove_temporary(&options.folder).map_err(folder)?;
    let failed = |source| OpenError::Store { path: path.clone(), source };
    let transaction = store.read().map_err(failed)?;
    let meta = Meta::read(&transaction).map_err(failed)?;
    let keys = count(&transaction, meta.current).map_err(failed)?;
    let spare_is_dirty = count(&transaction, meta.spare()).map_err(failed)? > 0;
    let refused = Arc::<Refused>::default();
    let (side, how, saved) = match from_snapshot(&options, &transaction, &meta, keys, &refused) {
        Ok((side, watermark)) => (side, Start::Snapshot { changes: meta.sequence - watermark }, Some(watermark)),
        Err(why) => {
            if keys > 0 {
                tracing::warn!(why, keys, "the filter is loaded from the store");
            }
            file::set_aside(&options.snapshot()).map_err(folder)?;
            let side = Side::new(options.filter_for(keys)?, Arc::clone(&refused));
            let loaded = load(&transaction, meta.current, &side, &AtomicBool::new(false), telling(keys, progress));
            loaded.map_err(|error| match error {
                LoadError::Thread(error) => OpenError::Thread(error),
                LoadError::Store(source) => failed(source),
                LoadError::Cancelled => unreachable!("nobody cancels it"),
            })?;
            let how = if keys == 0 { Start::Empty } else { Start::BulkLoad { why } };
            (side, how, None)
        }
    };
    drop(transaction);
    let counters = Counters {
        keys: keys.into(),
        sequence: meta.sequence.into(),
        watermark: saved.unwrap_or(0).into(),
        ..Counters::default()
    };
    let shared = Shared {
        front: Front::new(Arc::new(side)),
        refused,
        closing: AtomicBool::new(false),
        room: tokio::sync::Notify::new(),
        saving: parking_lot::Mutex::new(()),
        save_waits: AtomicBool::new(false),
        last_snapshot: parking_lot::Mutex::new(saved.and_then(|_| snapshot_stats(&options))),
        counters,
        store,
        options,
    };
    Ok(Begun { shared, meta, saved, spare_is_dirty, how, keys })
}

/// The front from the snapshot and the log, and the change up to which the snapshot goes; or why not.
fn from_snapshot(
    options: &Options,
    transaction: &ReadTransaction,
    meta: &Meta,
    keys: u64,
    refused: &Arc<Refused>,
) -> Result<(Side, u64), String> {
    let (filter, stamp) = file::read(options, meta)?;
    let side = Side::new(filter, Arc::clone(refused));
    let replayed = replay(transaction, stamp.sequence, &side).map_err(|error| error.to_string())?;
    if replayed.sequence != meta.sequence || replayed.faults > 0 || side.len() != keys {
        return Err(format!(
            "the snapshot and the {} changes since make {} keys, with {} faults; the store has {keys}",
            replayed.changes,
            side.len(),
            replayed.faults
        ));
    }
    Ok((side, stamp.sequence))
}

/// Tells the log now and then, and the caller each time.
fn telling(keys: u64, mut progress: impl FnMut(u64)) -> impl FnMut(u64) {
    let mut told = Instant::now();
    move |loaded| {
        if told.elapsed() >= TELL {
            told = Instant::now();
            tracing::info!(loaded, keys, "the filter is being loaded");
        }
        progress(loaded);
    }
}

fn snapshot_stats(options: &Options) -> Option<SnapshotStats> {
    let file = std::fs::metadata(options.snapshot()).ok()?;
    Some(SnapshotStats {
        unix_seconds: seconds_since_1970(file.modified().unwrap_or(UNIX_EPOCH)),
        bytes: file.len(),
        took: Duration::ZERO,
        copy: Duration::ZERO,
    })
}
