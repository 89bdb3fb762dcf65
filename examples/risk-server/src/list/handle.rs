//! The handle of an open list: what others call.

use super::change::{Change, first_bad_key};
use super::error::{ChangeError, CloseError, OpenError, ReplaceError, SnapshotError, StoreError};
use super::open::{self, Start};
use super::options::Options;
use super::replace::Replacement;
use super::shared::Shared;
use super::snapshot::{self, Saved};
use super::stats::ListStats;
use super::store::{Opener, Store};
use super::writer::{Changes, Command, Writer};
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// Commands that may wait for the writer: then who sends one waits.
const WAITING_COMMANDS: usize = 1024;

/// How long puts wait for room in the overflow before the writer is asked whether it has been forgotten.
const WAIT_FOR_ROOM: Duration = Duration::from_secs(1);

/// An open list. Clones are the same list; without [`close`](List::close) it ends with the last one, as if killed.
#[derive(Clone)]
pub struct List(pub(super) Arc<Inner>);

/// Gone with the last clone.
pub(super) struct Inner {
    pub(super) shared: Arc<Shared>,
    pub(super) sender: mpsc::Sender<Command>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Release);
    }
}

/// A list that was opened, and how.
#[derive(Debug)]
pub struct Opened {
    /// The list.
    pub list: List,
    /// Where its filter came from.
    pub how: Start,
    /// Keys on the list.
    pub keys: u64,
    /// How long that took.
    pub took: Duration,
}

impl List {
    /// Opens the list of a folder, or makes one. Blocks, for as long as it takes to load the filter; a load from the
    /// store tells how many keys it has read.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(options: Options, progress: impl FnMut(u64)) -> Result<Opened, OpenError> {
        let opener = Store::of_file(&options.store(), options.cache_bytes);
        List::open_with(options, opener, progress)
    }

    pub(super) fn open_with(options: Options, opener: Opener, progress: impl FnMut(u64)) -> Result<Opened, OpenError> {
        let begun = Instant::now();
        let open::Begun { shared, meta, saved, spare_is_dirty, how, keys } = open::open(options, opener, progress)?;
        let shared = Arc::new(shared);
        let (sender, commands) = mpsc::channel(WAITING_COMMANDS);
        let writer = Writer::new(Arc::clone(&shared), commands, sender.downgrade(), meta, saved, spare_is_dirty);
        let thread = std::thread::Builder::new().name("list-writer".into()).spawn(move || writer.run());
        let thread = Mutex::new(Some(thread.map_err(OpenError::Thread)?));
        let list = List(Arc::new(Inner { shared, sender, thread }));
        Ok(Opened { list, how, keys, took: begun.elapsed() })
    }

    /// Says whether the key may be on the list: "no" is certain. Never blocks, and reads memory only.
    #[inline]
    #[must_use]
    pub fn may_be_listed(&self, key: &str) -> bool {
        self.0.shared.front.may_contain(key)
    }

    /// As [`may_be_listed`](List::may_be_listed), for many keys at once, which is faster.
    ///
    /// # Panics
    /// If `keys` and `answers` differ in length.
    pub fn may_be_listed_batch(&self, keys: &[&str], answers: &mut [bool]) {
        self.0.shared.front.may_contain_batch(keys, answers);
    }

    /// Says which keys are on the list, all at one moment. Reads the store: blocks.
    ///
    /// # Errors
    /// If the store cannot be read. It is opened again then; a later call may succeed.
    pub fn confirm(&self, keys: &[&str]) -> Result<Vec<bool>, StoreError> {
        self.0.shared.confirm(keys).inspect_err(|error| {
            tracing::error!(%error, "keys could not be confirmed");
            // If the writer has so much to do that this does not fit, it meets the error itself.
            let _ = self.0.sender.try_send(Command::Look);
        })
    }

    /// Makes changes, in their order, all of them or none; says of each whether the list was changed by it. What is
    /// acknowledged is on disk. Puts wait while the filter has refused too many keys, until a larger one is in place.
    ///
    /// One call is one transaction at least: give some thousands of changes at the most. If the future is dropped, they
    /// may be made or not.
    ///
    /// # Errors
    /// See [`ChangeError`].
    pub async fn change(&self, changes: Vec<Change>) -> Result<Vec<bool>, ChangeError> {
        if let Some((index, error)) = first_bad_key(changes.iter().map(Change::key)) {
            return Err(ChangeError::Key { index, error });
        }
        if changes.iter().any(Change::is_put) {
            self.wait_for_room().await?;
        }
        let (reply, answer) = oneshot::channel();
        self.send(Command::Change(Changes { changes, reply })).await.ok_or(ChangeError::Closed)?;
        answer.await.map_err(|_| ChangeError::Closed)?
    }

    async fn wait_for_room(&self) -> Result<(), ChangeError> {
        let shared = &self.0.shared;
        while shared.is_overflowing() {
            let mut room = std::pin::pin!(shared.room.notified());
            // From here on it is told, so what changes between this and the wait is not missed.
            room.as_mut().enable();
            if shared.is_closing() {
                return Err(ChangeError::Closed);
            }
            if shared.is_overflowing() && tokio::time::timeout(WAIT_FOR_ROOM, room).await.is_err() {
                self.send(Command::Look).await.ok_or(ChangeError::Closed)?;
            }
        }
        Ok(())
    }

    /// Begins to replace the whole list. Waits until what an earlier replacement left is removed.
    ///
    /// # Errors
    /// [`ReplaceError::UnderWay`] while there is another one; see [`ReplaceError`].
    pub async fn begin_replacement(&self) -> Result<Replacement, ReplaceError> {
        Replacement::begin(Arc::clone(&self.0.shared), self.0.sender.clone()).await
    }

    /// Saves a snapshot of the filter, from which the list is opened faster. Writes wait while memory is copied; the
    /// file is written elsewhere. One is saved by itself after a larger filter or another list is in place.
    ///
    /// # Errors
    /// See [`SnapshotError`].
    pub async fn save_snapshot(&self) -> Result<Saved, SnapshotError> {
        let (shared, sender) = (Arc::clone(&self.0.shared), self.0.sender.clone());
        let saved = tokio::task::spawn_blocking(move || snapshot::save(&shared, &sender));
        saved.await.map_err(|_| SnapshotError::Closed)?
    }

    /// Tells the state of the list. Each number is read at a moment of its own.
    #[must_use]
    pub fn stats(&self) -> ListStats {
        self.0.shared.stats()
    }

    /// Whether changes are taken: the list is not closed, and the thread that makes them lives.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.0.sender.is_closed()
    }

    /// Waits until the list takes no more changes.
    pub async fn ended(&self) {
        self.0.sender.closed().await;
    }

    /// Closes the list, for all clones: what was sent before is done, a snapshot is saved, and the store is closed. The
    /// front of a closed list still answers, its store does not.
    ///
    /// # Errors
    /// See [`CloseError`]. The list is closed nevertheless.
    pub async fn close(self) -> Result<(), CloseError> {
        self.0.shared.closing.store(true, Ordering::Release);
        self.0.shared.room.notify_waiters();
        let (reply, answer) = oneshot::channel();
        let copied = match self.send(Command::Close(reply)).await {
            Some(()) => answer.await.ok(),
            None => None,
        };
        let closed = tokio::task::spawn_blocking(move || {
            let saved = copied.map(|copied| snapshot::save_last(&self.0.shared, copied));
            let joined = self.0.thread.lock().take().map_or(Ok(()), JoinHandle::join);
            let closed = self.0.shared.store.close();
            joined.map_err(|_| CloseError::Panicked)?;
            saved.transpose()?;
            closed.map_err(CloseError::Store)
        });
        closed.await.unwrap_or(Ok(()))
    }

    /// `None` if the list is closed.
    async fn send(&self, command: Command) -> Option<()> {
        self.0.sender.send(command).await.ok()
    }
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("List").field(&self.0.shared.options.folder).finish()
    }
}
