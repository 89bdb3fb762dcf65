//! Every sentence that a user of the list may be told.

use super::key::KeyError;
use concurrent_cuckoo_filter::BuildError;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

/// Why a list cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The folder cannot be made or read.
    #[error("the folder {} cannot be used: {source}", .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process, or another list of this one, has it open.
    #[error("{} is in use; a list is opened by one process at a time", .path.display())]
    InUse {
        /// The file of the store.
        path: PathBuf,
    },
    /// The file is a database of something else, or of another version of this program.
    #[error("{} is no list that this version of the program knows; give it another folder", .path.display())]
    NotAList {
        /// The file of the store.
        path: PathBuf,
    },
    /// The store cannot be opened, read or written.
    #[error("{}: {source}", .path.display())]
    Store {
        /// The file of the store.
        path: PathBuf,
        /// What was wrong.
        source: StoreError,
    },
    /// There can be no filter of this capacity and rate.
    #[error(transparent)]
    Filter(#[from] BuildError),
    /// The system gave no thread.
    #[error("the system gave no thread: {0}")]
    Thread(io::Error),
}

/// Why the store could not be read or written.
#[derive(Clone, Debug, Error)]
#[error("the store failed: {0}")]
pub struct StoreError(#[source] Arc<redb::Error>);

/// Of every error of redb, whatever step it comes from.
impl<E: Into<redb::Error>> From<E> for StoreError {
    fn from(error: E) -> Self {
        StoreError(Arc::new(error.into()))
    }
}

/// Why changes were not acknowledged.
#[derive(Clone, Debug, Error)]
pub enum ChangeError {
    /// One of them is of no key. None was made.
    #[error("change {index}: {error}")]
    Key {
        /// Which one, from 0.
        index: usize,
        /// What is wrong with its key.
        error: KeyError,
    },
    /// The store could not be written. None was made.
    #[error("{0}; nothing was changed")]
    Store(StoreError),
    /// The store failed while it committed them. All of them were made or none; that is known when the store can be
    /// opened again. To make them once more does no harm.
    #[error("{0}; whether the list was changed is not known: repeat the request")]
    InDoubt(StoreError),
    /// The list is closed, or being closed. Whether they were made is known if they were sent before.
    #[error("the list is closed")]
    Closed,
}

/// Why a list was not replaced.
#[derive(Debug, Error)]
pub enum ReplaceError {
    /// Another replacement is under way.
    #[error("another replacement is under way; one is made at a time")]
    UnderWay,
    /// One of the keys is none. Those that were given with it were not added.
    #[error("key {index}: {error}")]
    Key {
        /// Which one of those given together, from 0.
        index: usize,
        /// What is wrong with it.
        error: KeyError,
    },
    /// The store could not be read or written. The list is as it was.
    #[error("{0}; the list was not replaced")]
    Store(StoreError),
    /// The store failed while it committed the new list. It was replaced or it was not; that is known when the store
    /// can be opened again.
    #[error("{0}; whether the list was replaced is not known: repeat the request")]
    InDoubt(StoreError),
    /// An earlier part of the new list was not stored.
    #[error("a part of the new list was not stored; the list was not replaced")]
    Incomplete,
    /// There can be no filter for so many keys.
    #[error("{0}; the list was not replaced")]
    Filter(#[from] BuildError),
    /// The system gave no thread.
    #[error("the system gave no thread: {0}; the list was not replaced")]
    Thread(io::Error),
    /// The list is closed, or being closed.
    #[error("the list is closed")]
    Closed,
}

/// Why no snapshot was saved. The one before is still there.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// The filter could not be copied.
    #[error("the filter cannot be copied: {0}")]
    Copy(#[from] concurrent_cuckoo_filter::SnapshotError),
    /// The file could not be written.
    #[error("{} cannot be written: {source}", .path.display())]
    File {
        /// The file of the snapshot.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The store failed, and what it holds is not known.
    #[error(transparent)]
    Store(StoreError),
    /// The list is closed, or being closed.
    #[error("the list is closed")]
    Closed,
}

/// What went wrong while a list was closed. It is closed, and nothing that was committed is lost.
#[derive(Debug, Error)]
pub enum CloseError {
    /// The filter may be anything then, so no snapshot was saved: the next start loads all keys from the store.
    #[error("the thread that changes the list panicked; the log says where")]
    Panicked,
    /// No snapshot was saved: the next start takes longer.
    #[error("no snapshot was saved: {0}")]
    Snapshot(#[from] SnapshotError),
    /// The store was not closed in order: the next start checks it.
    #[error("the store was not closed in order: {0}")]
    Store(StoreError),
}
