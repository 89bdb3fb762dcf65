//! Opening: the store, and the filter from the snapshot and the log, or from all keys of the store.

use super::error::OpenError;
use super::stats::Totals;
use super::store::{self, Meta, Opener, Store, StoreOpenError, count};
use super::writer::Writer;
use super::{Filter, Front, Inner, List, Options, Shared, WAITING_COMMANDS, snapshot};
use parking_lot::Mutex;
use redb::ReadTransaction;
use std::fs::DirBuilder;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::sync::mpsc;

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

/// A list that was opened, and how.
pub(crate) struct Opened {
    pub(crate) list: List,
    pub(crate) how: Start,
    pub(crate) keys: u64,
}

pub(super) fn open(options: Options, opener: Opener, progress: impl FnMut(usize)) -> Result<Opened, OpenError> {
    // Before there is a folder: a filter that cannot be built is refused.
    options.filter(0)?;
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
    let (filter, how, saved) = match from_snapshot(&options, &transaction, &meta, keys) {
        Ok((filter, sequence)) => (filter, Start::Snapshot { changes: meta.sequence - sequence }, Some(sequence)),
        Err(why) => {
            if keys > 0 {
                tracing::warn!(why, keys, "the filter is loaded from the store");
            }
            snapshot::set_aside(&options.snapshot()).map_err(folder)?;
            let loaded = store::load(&transaction, meta.current, &options, &AtomicBool::new(false), progress);
            (loaded.map_err(failed)?, if keys == 0 { Start::Empty } else { Start::BulkLoad { why } }, None)
        }
    };
    drop(transaction);
    let snapshot = saved.and_then(|_| snapshot::on_disk(&options.snapshot()));
    let shared = Arc::new(Shared {
        front: Front::new(filter),
        closing: AtomicBool::new(false),
        totals: Mutex::new(Totals { keys, snapshot, ..Totals::default() }),
        store,
        options,
    });
    let (sender, commands) = mpsc::channel(WAITING_COMMANDS);
    let writer = Writer::new(Arc::clone(&shared), commands, meta, saved, spare_is_dirty);
    let thread = std::thread::Builder::new().name("list-writer".into()).spawn(move || writer.run());
    let thread = Mutex::new(Some(thread.map_err(OpenError::Thread)?));
    let list = List(Arc::new(Inner { shared, sender, thread, saving: tokio::sync::Mutex::new(()) }));
    Ok(Opened { list, how, keys })
}

/// Creates the folder and its parents, for the owner alone. One that exists keeps its mode.
fn make_folder(path: &Path) -> io::Result<()> {
    let mut folder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
    folder.recursive(true).create(path)
}

/// The filter from the snapshot and the log, and the last change in the snapshot; or why not.
fn from_snapshot(
    options: &Options,
    transaction: &ReadTransaction,
    meta: &Meta,
    keys: u64,
) -> Result<(Filter, u64), String> {
    let (filter, stamp) = snapshot::read(options, meta)?;
    let replayed = store::replay(transaction, stamp.sequence, &filter);
    let (changes, faults) = replayed.map_err(|error| error.to_string())?;
    let len = filter.len() as u64;
    if stamp.sequence + changes != meta.sequence || faults > 0 || len != keys {
        return Err(format!(
            "the snapshot and the {changes} changes since then make {len} keys, with {faults} faults; the store has {keys}"
        ));
    }
    Ok((filter, stamp.sequence))
}
