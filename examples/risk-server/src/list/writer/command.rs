//! What the writer is asked for.

use super::super::change::Change;
use super::super::error::{ChangeError, ReplaceError, SnapshotError};
use super::super::front::Side;
use super::super::store::Meta;
use std::sync::Weak;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::sync::oneshot;

/// A command and where its answer goes. A writer that ends drops what it did not answer: the list is closed then.
pub(crate) enum Command {
    /// Change the list.
    Change(Changes),
    /// Copy the filter for a snapshot.
    Copy(oneshot::Sender<Result<Copied, SnapshotError>>),
    /// This copy is on disk.
    Saved(CopyOf),
    /// A larger filter was built, or was not.
    Rebuilt(u64, Option<Built>, oneshot::Sender<bool>),
    /// Begin a replacement. It is over when the token is gone.
    Begin(Weak<()>, oneshot::Sender<Result<u64, ReplaceError>>),
    /// Put keys on the list of this replacement.
    Add(u64, Vec<Box<str>>, oneshot::Sender<Result<(), ReplaceError>>),
    /// Let no other filter be built until this replacement is over; answers what the store says.
    Reserve(u64, oneshot::Sender<Result<Meta, ReplaceError>>),
    /// Let the list of this replacement take the place of the present one.
    Switch(u64, Side, oneshot::Sender<Result<u64, ReplaceError>>),
    /// See whether the store still works, and whether there is something to do.
    Look,
    /// Copy the filter for a last snapshot, and end.
    Close(oneshot::Sender<Result<Copied, SnapshotError>>),
}

/// Changes that are made together.
pub(crate) struct Changes {
    pub(crate) changes: Vec<Change>,
    pub(crate) reply: oneshot::Sender<Result<Vec<bool>, ChangeError>>,
}

/// A filter that is to take the place of a full one.
pub(crate) struct Built {
    pub(crate) side: Side,
    /// The last change that it has.
    pub(crate) sequence: u64,
}

/// The state of the front that a copy is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopyOf {
    /// The last change that it has.
    pub(crate) sequence: u64,
    /// The number of the filter since the list was opened.
    pub(crate) filter: u64,
}

/// What came of a copy.
pub(crate) enum Copied {
    /// The bytes of a snapshot.
    Bytes { bytes: Vec<u8>, of: CopyOf, took: Duration },
    /// The last one is the same.
    NothingNew,
    /// The filter does not hold every key.
    Overflowing,
}

/// A build that is under way. It ends early when `cancel` is set.
pub(crate) struct Build {
    pub(crate) id: u64,
    /// It needs the changes after this one.
    pub(crate) hold: u64,
    pub(crate) cancel: std::sync::Arc<AtomicBool>,
    pub(crate) thread: std::thread::JoinHandle<()>,
}
