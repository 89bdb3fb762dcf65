//! The exact list and the filter in front of it.
//!
//! ```text
//! List                face: open, ask, change, save, close      key, error, stats
//! writer, replace     the one thread that changes both; a whole new list
//! open, snapshot      starts; files
//! store               what is true: redb
//! ```
//!
//! # What holds at every moment
//!
//! 1. Each key of the committed store is in the front, so the front's "no" is right.
//! 2. Each key of the store is once in the filter and nothing else is there, except at the moments named below. So a
//!    removal never takes another key's fingerprint.
//! 3. What was acknowledged is on disk: redb has synced the file when a commit returns. (If that failed and the
//!    reopened file has the commit all the same, it is acknowledged too. A disk that loses what it was told to sync is
//!    not covered.)
//!
//! # The order of changes
//!
//! One thread changes store and front, one transaction after the other, while lookups go on. A lookup asks the front
//! and then, after a "maybe", the store as it is at that moment.
//!
//! - *Put of an absent key*: front, commit. A lookup in between gets "maybe" and the store's "no": it came before the
//!   put. Had the commit come first, the front would deny a key that is on the list.
//! - *Delete of a present key*: commit, front. In between as before. The other way round, the front would deny a key
//!   that is on the list, and stays there if the commit fails.
//! - *Put of a present key, delete of an absent one*: the store says that nothing changes, so the front is left alone.
//!   This is why repeats are harmless, where a filter alone would count or remove too much.
//! - *Several changes of one key in one transaction*: only the states before and after count. Absent, then present: one
//!   insertion before the commit. Present, then absent: one removal after it. The same before and after: nothing; a put
//!   followed by a delete is never in the store, and a delete followed by a put keeps the one fingerprint. The log gets
//!   the same net changes. If each change were made on the filter in turn, copies would pile up before the commit (a
//!   key has room for 8).
//! - *A key that the filter refuses*, since it has grown to its largest size or there is no memory: what its transaction
//!   inserted is removed, and nothing is committed. Transactions of several requests are made again, one by one.
//! - *A commit that fails* may be on disk or not, and redb refuses everything until it is reopened. Until then the
//!   front keeps the puts and keeps the deletes, which is right either way. Then the number of the last change tells
//!   whether the commit was made, and another filter is loaded from the store. A failure before the commit comes before
//!   any change of the front.
//! - *A replacement* gathers its keys in the spare table and builds a filter of them. Between two transactions: both
//!   filters in front (1), one commit that makes the spare table the list (2), the new filter alone in front (3).
//!   Before (2) a key of the old list is in the front, after (2) a key of the new one; a key on both always is, and the
//!   store has it before and after. If (2) surely failed, the old filter alone is in front again; if that is not known,
//!   both stay until it is. The log starts again at (2): a snapshot from before is refused by its number.
//!
//! # After a crash
//!
//! The front is gone; the store is as the last commit left it. The front is built again from
//!
//! - the snapshot and the log after it. A snapshot is copied between two transactions, so it is exactly the list after
//!   the change that it names, and replaying puts and deletes over it is exact too. A crash before its file is renamed
//!   leaves the previous one, whose changes are still in the log: only a snapshot on disk lets the log be trimmed.
//! - all keys of the store, if there is no snapshot, or if anything about it is wrong: another list's, older than the
//!   log, newer than the store, of another rate, damaged, or with another number of keys in the end.
//!
//! A crash during a replacement leaves keys in the spare table; it is emptied after the next start. A crash between its
//! commit and the next snapshot leaves a snapshot that is too old, and is refused.

mod error;
mod key;
mod open;
mod replace;
mod snapshot;
mod stats;
mod store;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use error::{ChangeError, StoreError};
pub(crate) use key::{Change, MAX_KEY_BYTES, check_key};
pub(crate) use replace::Replacement;
pub(crate) use stats::ListStats;

use arc_swap::ArcSwap;
use concurrent_cuckoo_filter::{BuildError, CuckooFilter, StableHashBuilder};
use error::{CloseError, OpenError, SnapshotError};
use open::Opened;
use parking_lot::Mutex;
use stats::Totals;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;
use store::{KEYS, Meta, Store};
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;
use writer::{Command, Request, ask};

/// Commands that may wait for the writer. Further senders wait themselves.
const WAITING_COMMANDS: usize = 1024;

/// The filter in front of the store. It grows by itself. Its hash function is the same in every build of the program, so
/// that a snapshot outlives the program that saved it.
type Filter = CuckooFilter<str, StableHashBuilder>;

/// How a list is opened.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Where the store and the snapshot are; created if absent.
    pub(crate) folder: PathBuf,
    /// Keys that the filter has room for before it grows, and those that it grows to.
    pub(crate) capacity: usize,
    pub(crate) max_capacity: usize,
    /// The share of absent keys that may cost a read of the store: above 0, below 1.
    pub(crate) false_positive_rate: f64,
    /// Memory for the pages of the store.
    pub(crate) cache_bytes: usize,
}

impl Options {
    fn store(&self) -> PathBuf {
        self.folder.join("list.redb")
    }

    fn snapshot(&self) -> PathBuf {
        self.folder.join("filter.snapshot")
    }

    fn max_capacity(&self) -> usize {
        self.max_capacity.max(self.capacity)
    }

    /// An empty filter that need not grow for this many keys.
    fn filter(&self, keys: u64) -> Result<Filter, BuildError> {
        let keys = usize::try_from(keys).unwrap_or(usize::MAX);
        CuckooFilter::builder()
            .capacity(keys.max(self.capacity).min(self.max_capacity()))
            .max_capacity(self.max_capacity())
            .false_positive_rate(self.false_positive_rate)
            .hasher(StableHashBuilder::new())
            .build()
    }
}

/// What lookups see. It is replaced as a whole.
struct Front(ArcSwap<Filters>);

struct Filters {
    current: Arc<Filter>,
    /// That of the list that replaces the current one, while both are in front.
    next: Option<Arc<Filter>>,
}

impl Front {
    fn new(filter: Filter) -> Self {
        Front(ArcSwap::from_pointee(Filters { current: Arc::new(filter), next: None }))
    }

    /// Lookups that begin from now on see this.
    fn install(&self, current: Arc<Filter>, next: Option<Arc<Filter>>) {
        self.0.store(Arc::new(Filters { current, next }));
    }

    fn current(&self) -> Arc<Filter> {
        Arc::clone(&self.0.load().current)
    }
}

/// What the threads of a list share. Only the writer changes the store and the front.
struct Shared {
    options: Options,
    store: Store,
    front: Front,
    /// Loads end early once it is set.
    closing: AtomicBool,
    totals: Mutex<Totals>,
}

/// An open list. Clones are the same list; without [`close`](List::close) it ends with the last one, as if killed.
#[derive(Clone)]
pub(crate) struct List(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    sender: mpsc::Sender<Command>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Held while a snapshot is saved: one at a time.
    saving: tokio::sync::Mutex<()>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Release);
    }
}

impl List {
    /// Opens the list of a folder, or creates one. Blocks for as long as it takes to load the filter; a load from the
    /// store reports the number of keys read.
    pub(crate) fn open(options: Options, progress: impl FnMut(usize)) -> Result<Opened, OpenError> {
        let opener = Store::file_opener(&options.store(), options.cache_bytes);
        open::open(options, opener, progress)
    }

    /// Whether the key may be on the list: "no" is certain. Takes no lock and reads memory only.
    #[inline]
    pub(crate) fn may_be_listed(&self, key: &str) -> bool {
        let now = self.0.shared.front.0.load();
        now.current.contains(key) || now.next.as_ref().is_some_and(|next| next.contains(key))
    }

    /// As [`may_be_listed`](List::may_be_listed), for many keys at once, which is faster. Panics if `keys` and `answers`
    /// differ in length.
    pub(crate) fn may_be_listed_batch(&self, keys: &[&str], answers: &mut [bool]) {
        let now = self.0.shared.front.0.load();
        now.current.contains_batch(keys, answers);
        if let Some(next) = &now.next {
            keys.iter().zip(answers).for_each(|(key, answer)| *answer = *answer || next.contains(key));
        }
    }

    /// Which keys are on the list, all at one moment. Reads the store: blocks. A store that cannot be read is reopened,
    /// so a later call may succeed.
    pub(crate) fn confirm(&self, keys: &[&str]) -> Result<Vec<bool>, StoreError> {
        let confirm = || {
            let transaction = self.0.shared.store.read()?;
            let table = transaction.open_table(KEYS[Meta::read(&transaction)?.current])?;
            keys.iter().map(|key| Ok(table.get(*key)?.is_some())).collect::<Result<_, StoreError>>()
        };
        confirm().inspect_err(|error| {
            tracing::error!(%error, "keys could not be confirmed");
            // If the writer is too busy to be told, it meets the error itself.
            let _ = self.0.sender.try_send(Command::Do(Box::new(writer::Writer::look)));
        })
    }

    /// Makes changes in order, all of them or none. Returns for each whether it changed the list. What is acknowledged
    /// is on disk. One call is part of one transaction: give at most some thousands of changes. If the future is
    /// dropped, they may be made or not.
    pub(crate) async fn change(&self, changes: Vec<Change>) -> Result<Vec<bool>, ChangeError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.0.sender.send(Command::Change(Request { changes, reply })).await;
        sent.map_err(|_| ChangeError::Closed)?;
        answer.await.map_err(|_| ChangeError::Closed)?
    }

    /// Begins to replace the whole list.
    pub(crate) async fn begin_replacement(&self) -> Result<Replacement, ChangeError> {
        Replacement::begin(self.clone()).await
    }

    /// Saves a snapshot of the filter, from which the list is opened faster, if the newest one lacks something: says
    /// whether it did. Writes wait while memory is copied. One is also saved when another list is in place.
    pub(crate) async fn save_snapshot(&self) -> Result<bool, SnapshotError> {
        self.save(false).await
    }

    /// A list that is closed meanwhile trims its log when it is opened again.
    async fn save(&self, close: bool) -> Result<bool, SnapshotError> {
        let (_one, begun) = (self.0.saving.lock().await, Instant::now());
        let copied = ask(&self.0.sender, move |writer| {
            writer.ends |= close;
            writer.copy()
        });
        let shared = Arc::clone(&self.0.shared);
        let Some(copied) = copied.await.ok_or(SnapshotError::Closed)?.inspect_err(|error| shared.not_saved(error))?
        else {
            return Ok(false);
        };
        let (sequence, path) = (copied.stamp.sequence, shared.options.snapshot());
        let saved = spawn_blocking(move || copied.save(&path, begun)).await.map_err(|_| SnapshotError::Closed)?;
        let stats = saved.map_err(SnapshotError::from).inspect_err(|error| shared.not_saved(error))?;
        tracing::info!(bytes = stats.bytes, copy = ?stats.copy, took = ?stats.took, "a snapshot was saved");
        shared.totals.lock().snapshot = Some(stats);
        let _ = ask(&self.0.sender, move |writer| writer.note_saved(sequence)).await;
        Ok(true)
    }

    /// The state of the list. Each number is read at a moment of its own.
    pub(crate) fn stats(&self) -> ListStats {
        self.0.shared.stats()
    }

    /// Whether changes are accepted: the list is not closed, and the writer lives.
    pub(crate) fn is_open(&self) -> bool {
        !self.0.sender.is_closed()
    }

    /// Waits until the list accepts no more changes.
    pub(crate) async fn ended(&self) {
        self.0.sender.closed().await;
    }

    /// Closes the list, for all clones: what was sent before is done, a snapshot is saved, and the store is closed. The
    /// front of a closed list still answers, its store does not. The list is closed even after an error.
    pub(crate) async fn close(self) -> Result<(), CloseError> {
        self.0.shared.closing.store(true, Ordering::Release);
        let saved = self.save(true).await;
        let closed = spawn_blocking(move || {
            let joined = self.0.thread.lock().take().map_or(Ok(()), JoinHandle::join);
            let closed = self.0.shared.store.close();
            joined.map_err(|_| CloseError::Panicked)?;
            match saved {
                // It was closed before.
                Ok(_) | Err(SnapshotError::Closed) => closed.map_err(CloseError::Store),
                Err(error) => Err(CloseError::Snapshot(error)),
            }
        });
        closed.await.unwrap_or(Ok(()))
    }
}

impl Shared {
    fn not_saved(&self, error: &SnapshotError) {
        self.totals.lock().snapshot_failures += 1;
        tracing::error!(%error, "no snapshot was saved");
    }
}
