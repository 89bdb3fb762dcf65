//! Errors of the list.

use concurrent_cuckoo_filter::InsertError;
use std::fmt::Display;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

/// Why the store could not be read or written, or the filter not be loaded from it.
#[derive(Clone, Debug, Error)]
#[error("{0}")]
pub(crate) struct StoreError(Arc<str>);

impl StoreError {
    pub(super) fn new(what: impl Display) -> Self {
        StoreError(what.to_string().into())
    }
}

impl<E: Into<redb::Error>> From<E> for StoreError {
    fn from(error: E) -> Self {
        StoreError::new(format_args!("the store failed: {}", error.into()))
    }
}

/// Why a list cannot be opened.
#[derive(Debug, Error)]
pub(crate) enum OpenError {
    #[error("the folder {path} cannot be used: {error}", path = .0.display(), error = .1)]
    Folder(PathBuf, io::Error),
    /// Another process, or another list of this one, has it open.
    #[error("{} is in use; a list is opened by one process at a time", .0.display())]
    InUse(PathBuf),
    /// The file is another kind of database, or of another version of this program.
    #[error("{} is not a list that this version of the program knows; give another folder", .0.display())]
    NotAList(PathBuf),
    #[error("{path}: {error}", path = .0.display(), error = .1)]
    Store(PathBuf, StoreError),
    #[error(transparent)]
    Filter(#[from] concurrent_cuckoo_filter::BuildError),
    #[error("the system gave no thread: {0}")]
    Thread(io::Error),
}

/// Why changes were not acknowledged, or a list was not replaced. But for `InDoubt`, the list is as it was.
#[derive(Clone, Debug, Error)]
pub(crate) enum ChangeError {
    #[error("{0}; the list was not changed")]
    Store(StoreError),
    /// The filter has grown to its largest size, or the system has no memory for it.
    #[error("{0}; the list was not changed")]
    Refused(InsertError),
    /// The store failed during the commit: all changes were made or none, which is known once it opens again.
    #[error("{0}; whether the list was changed is not known: repeat the request")]
    InDoubt(StoreError),
    #[error("another replacement is in progress; one is made at a time")]
    InProgress,
    #[error("a part of the new list was not stored; the list was not changed")]
    Incomplete,
    #[error("the list is closed")]
    Closed,
}

/// Why no snapshot was saved. The previous one is untouched.
#[derive(Debug, Error)]
pub(crate) enum SnapshotError {
    #[error("the filter cannot be copied: {0}")]
    Copy(#[from] concurrent_cuckoo_filter::BuildError),
    #[error(transparent)]
    File(#[from] concurrent_cuckoo_filter::SnapshotError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the list is closed")]
    Closed,
}

/// What went wrong while a list was closed. It is closed, and nothing that was committed is lost.
#[derive(Debug, Error)]
pub(crate) enum CloseError {
    /// No snapshot was saved, since the filter may be in any state.
    #[error("the thread that changes the list panicked; the log says where")]
    Panicked,
    #[error("no snapshot was saved: {0}")]
    Snapshot(SnapshotError),
    #[error("the store was not closed in order: {0}")]
    Store(StoreError),
}
