//! The exact list: its keys in redb, and the filter in front of them.
//!
//! # Invariants
//!
//! 1. Every key of the committed store is in the filter, so its "no" is always right.
//! 2. Between two transactions the filter holds each key of the store once, and nothing else. So a removal never takes
//!    another key's fingerprint.
//! 3. An acknowledged change is on disk: redb has synced the file when a commit returns.
//!
//! # The order of changes
//!
//! One thread, the [`Writer`], makes all changes, one transaction after the other, while lookups proceed. A lookup queries
//! the filter and then, after a "maybe", the store.
//!
//! - *Put of an absent key*: first the filter, then the commit. A lookup in between gets "maybe" from the filter and "no" from the
//!   store. In the other order the filter would deny a listed key.
//! - *Delete of a present key*: first the commit, then the filter, for the same reason.
//! - *Put of a present key, delete of an absent one*: nothing changes in the store, so the filter is not changed.
//! - *Several changes of one key in one transaction*: only its states before and after the transaction count.
//! - *A failed commit* may be on disk or not. The filter keeps the put keys and the deleted keys, which is right in both cases, until
//!   the store is reopened and a filter is loaded from it.
//! - *A new list* is another file with a filter of its own. It is renamed over the old file; then lookups see both new parts at
//!   once. A lookup that began before continues with both old parts.
//!
//! # After a crash
//!
//! A new store, including the first, is committed before it is renamed, so the file of the list is always complete.
//! No change is made to it before the rename is on disk, because a power cut could bring back the old list.
//!
//! Each commit writes a new random version into the store, and a snapshot of the filter has the version of its state. At the start,
//! the snapshot is used if the versions are equal; otherwise the filter is loaded from the keys of the store.

use crate::Config;
use arc_swap::{ArcSwap, Guard};
use concurrent_cuckoo_filter::{BuildError, CuckooFilter, SnapshotReader, StableHashBuilder};
use redb::{
    Database, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition, TableError, WriteTransaction,
};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::error::Error;
use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::{NamedTempFile, TempPath};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::{block_in_place, spawn_blocking};

/// The maximum length of a key in bytes.
pub(crate) const MAX_KEY_BYTES: usize = 1024;

/// The approximate number of bytes of keys per transaction: enough to make the commit a small part of the work.
pub(crate) const GROUP_BYTES: usize = 1 << 17;

/// The memory for changes sent to the writer; each counts as its keys plus [`CHANGE_BYTES`]. Further changes wait for room, and one that
/// times out while waiting is never sent.
const QUEUE_BYTES: usize = 4 * GROUP_BYTES;
const CHANGE_BYTES: usize = 100;

/// The minimum time without changes after a failure of the store, also as a multiple of the time of reopening, when nothing can be read.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_PER_REOPENING: u32 = 10;

/// The time that a failed store waits for reads in progress before it is reopened: redb opens a file only once at a time.
const READS_END: Duration = Duration::from_secs(5);

const KEYS: TableDefinition<&str, ()> = TableDefinition::new("keys");

/// One row: the format of the tables and the version of the list.
const STATE: TableDefinition<(), (u32, u128)> = TableDefinition::new("state");

const FORMAT: u32 = 2;

/// With a hash function that is the same in every build, so that a later build of the server can load the snapshot.
type Filter = CuckooFilter<String, StableHashBuilder>;

type AnyError = Box<dyn Error + Send + Sync>;

/// Checks that a text is a key: 1 to [`MAX_KEY_BYTES`] bytes without control characters. Keys are compared byte for byte.
pub(crate) fn check_key(key: &str) -> Result<(), String> {
    if !(1..=MAX_KEY_BYTES).contains(&key.len()) {
        return Err(format!("the key has {} bytes; a key has 1 to {MAX_KEY_BYTES} bytes", key.len()));
    }
    key.char_indices().find(|(_, character)| character.is_control()).map_or(Ok(()), |(at, character)| {
        let code = u32::from(character);
        Err(format!("the key has the control character U+{code:04X} at byte {at}; a key is text of one line"))
    })
}

impl Config {
    fn store(&self) -> PathBuf {
        self.data.join("list.redb")
    }

    fn snapshot(&self) -> PathBuf {
        self.data.join("filter.snapshot")
    }

    /// The folder of unfinished files, which are moved from there in one step.
    fn unfinished(&self) -> PathBuf {
        self.data.join("unfinished")
    }

    fn most_keys(&self) -> usize {
        self.max_capacity.max(self.capacity)
    }

    /// Returns an error if a change may not make the list this long.
    fn check_len(&self, keys: u64) -> Result<(), Refusal> {
        let most = self.most_keys();
        let error = || format!("the list would have more than {most} keys; give a larger --max-capacity");
        if keys > most as u64 { Err(Refusal { error: error(), is_full: true }) } else { Ok(()) }
    }

    /// Builds an empty filter that holds this number of keys without growing, even if that is beyond today's limit.
    fn filter(&self, keys: u64) -> Result<Filter, BuildError> {
        let keys = usize::try_from(keys).unwrap_or(usize::MAX);
        CuckooFilter::builder()
            .capacity(keys.max(self.capacity))
            .max_capacity(keys.max(self.most_keys()))
            .false_positive_rate(self.false_positive_rate)
            .hasher(StableHashBuilder::default())
            .build()
    }
}

/// The filter and the store that lookups read. It is replaced as a whole.
pub(crate) struct Front {
    filter: Arc<Filter>,
    /// `None` while a failed store is reopened, and after the list is closed.
    store: Option<Database>,
}

/// The reason why a change failed.
#[derive(Clone)]
pub(crate) struct Refusal {
    pub(crate) error: String,
    /// Whether the list is at its limit, so that the change would fail again.
    pub(crate) is_full: bool,
}

impl From<String> for Refusal {
    fn from(error: String) -> Self {
        Refusal { error, is_full: false }
    }
}

fn closed() -> String {
    "the list is closed".to_owned()
}

/// Totals since the list was opened.
#[derive(Default, Serialize)]
struct Totals {
    inserts: u64,
    removals: u64,
    replacements: u64,
    store_failures: u64,
    snapshot_failures: u64,
    snapshot: Option<Saved>,
}

/// A snapshot on disk.
#[derive(Serialize)]
struct Saved {
    #[serde(skip)]
    version: u128,
    bytes: u64,
}

pub(crate) struct List {
    config: Arc<Config>,
    front: ArcSwap<Front>,
    totals: Mutex<Totals>,
    commands: Sender<Command>,
    queue: Arc<Semaphore>,
    /// Whether the writer will check the store. While it reopens the store, lookups would send it commands without limit.
    is_check_sent: AtomicBool,
    _lock: File,
}

impl List {
    /// Opens the list of a folder, or creates one. Blocks until the filter is loaded. The receiver ends with the list: after
    /// [`close`](List::close), or because its writer panicked.
    pub(crate) fn open(config: Arc<Config>) -> Result<(Arc<Self>, oneshot::Receiver<()>), String> {
        let begun = Instant::now();
        tracing::info!(folder = %config.data.display(), "opening the list");
        // Fails before a folder is created if the filter cannot be built.
        config.filter(0).map_err(|error| error.to_string())?;
        let (lock, store, version) = open_folder(&config)
            .map_err(|error| format!("the folder {} cannot be used: {error}", config.data.display()))?;
        let (filter, source, snapshot) = match load_snapshot(&config, &store, version) {
            Ok((filter, saved)) => (filter, "snapshot", Some(saved)),
            Err(why) => {
                tracing::info!(%why, "the filter is loaded from the store");
                (load_filter(&config, &store)?, "store", None)
            }
        };
        let (commands, receiver) = mpsc::channel();
        let (alive, ended) = oneshot::channel();
        let list = Arc::new(List {
            front: ArcSwap::from_pointee(Front { filter: Arc::new(filter), store: Some(store) }),
            totals: Mutex::new(Totals { snapshot, ..Totals::default() }),
            config,
            commands,
            queue: Arc::new(Semaphore::new(QUEUE_BYTES)),
            is_check_sent: AtomicBool::new(false),
            _lock: lock,
        });
        let (writer, retry) = (Arc::clone(&list), Instant::now());
        let writer = Writer { list: writer, version, synced: true, retry, ends: false, _alive: alive };
        let thread = thread::Builder::new().name("list-writer".into());
        thread.spawn(move || writer.run(&receiver)).map_err(|error| format!("the system gave no thread: {error}"))?;
        tracing::info!(source, took = ?begun.elapsed(), "the list is open");
        Ok((list, ended))
    }

    /// Returns `None` if the key is not on the list; otherwise the store of the returned front decides. Takes no lock, and reads only
    /// memory.
    pub(crate) fn query(&self, key: &str) -> Option<Arc<Front>> {
        let front = self.front.load();
        front.filter.contains(key).then(|| Guard::into_inner(front))
    }

    /// Like [`query`](List::query), for many keys: `false` is certain.
    pub(crate) fn query_batch(&self, keys: &[&str], answers: &mut [bool]) -> Arc<Front> {
        let front = self.front.load_full();
        front.filter.contains_batch(keys, answers);
        front
    }

    /// Returns for each key whether it is on the list, all at one moment. Blocks.
    pub(crate) fn confirm(&self, front: &Front, keys: &[Box<str>]) -> Result<Vec<bool>, String> {
        let confirm = || -> Result<_, redb::Error> {
            let table = front.store.as_ref().ok_or(redb::Error::DatabaseClosed)?.begin_read()?.open_table(KEYS)?;
            keys.iter().map(|key| Ok(table.get(&**key)?.is_some())).collect()
        };
        confirm().map_err(|error| {
            if !self.is_check_sent.swap(true, Ordering::AcqRel) {
                tracing::error!(%error, "keys could not be confirmed");
                let _ = self.commands.send(Command::Do(Box::new(Writer::check_store)));
            }
            format!("the store failed: {error}")
        })
    }

    /// Puts or deletes the keys, one per line, all of them or none. Returns the number of keys that were absent before a put, or present
    /// before a delete. If the future is dropped, the change may still be made.
    pub(crate) async fn change(&self, put: bool, keys: String) -> Result<u64, Refusal> {
        let bytes = (keys.len() + CHANGE_BYTES).min(QUEUE_BYTES) as u32;
        let queued = Arc::clone(&self.queue).acquire_many_owned(bytes).await.map_err(|_| closed())?;
        let (reply, answer) = oneshot::channel();
        let _ = self.commands.send(Command::Change(Request { put, keys, reply, _queued: queued }));
        answer.await.map_err(|_| closed())?
    }

    /// Replaces the list, and returns the number of keys. Changes made since the new list was started are lost.
    pub(crate) async fn replace(&self, new: NewList) -> Result<u64, String> {
        let (file, front, version) = block_in_place(|| new.finish(&self.config))?;
        self.tell_writer(move |writer| writer.switch(file, front, version)).await?
    }

    /// Saves a snapshot of the filter, unless the last one has this state. Changes wait while memory is copied.
    pub(crate) async fn save_snapshot(&self) -> Result<(), String> {
        let saved = self.try_save().await.map_err(|error| error.to_string());
        if let Err(error) = &saved {
            tracing::error!(error, "no snapshot was saved");
            self.totals().snapshot_failures += 1;
        }
        saved
    }

    async fn try_save(&self) -> Result<(), AnyError> {
        let Some((filter, version)) = self.tell_writer(|writer| writer.copy()).await?? else { return Ok(()) };
        let unfinished = self.config.unfinished();
        let save = move || -> Result<TempPath, AnyError> {
            let path = NamedTempFile::new_in(unfinished)?.into_temp_path();
            filter.snapshot().metadata(&version.to_le_bytes()).save(&path)?;
            Ok(path)
        };
        let saved = spawn_blocking(save).await??;
        // Moved by the writer, so that a save cut off by a shutdown cannot replace a newer snapshot.
        Ok(self.tell_writer(move |writer| writer.keep(saved, version)).await??)
    }

    /// Saves a snapshot and closes the store, after all changes that were sent before. Further changes would make the snapshot stale, so
    /// they are refused.
    pub(crate) async fn close(&self) -> Result<(), String> {
        self.queue.close();
        let saved = self.save_snapshot().await;
        self.tell_writer(Writer::close).await?;
        saved
    }

    async fn tell_writer<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer) -> T + Send + 'static,
    ) -> Result<T, String> {
        let (reply, answer) = oneshot::channel();
        let _ = self.commands.send(Command::Do(Box::new(|writer| drop(reply.send(work(writer))))));
        answer.await.map_err(|_| closed())
    }

    /// Returns the totals and the state of the filter.
    pub(crate) fn stats(&self) -> Value {
        let filter = Arc::clone(&self.front.load().filter);
        let stats = filter.stats();
        let mut figures = json!(*self.totals());
        figures["filter"] = json!({
            "len": stats.len,
            "load_factor": stats.load_factor,
            "expected_false_positive_rate": stats.expected_false_positive_rate,
            "relocations": stats.relocations,
            "splits": stats.splits,
            "slots": stats.slots,
            "max_capacity": self.config.most_keys(),
            "memory_bytes": filter.memory_usage(),
        });
        figures
    }

    fn totals(&self) -> std::sync::MutexGuard<'_, Totals> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A change, and the channel for its result.
struct Request {
    put: bool,
    /// One per line.
    keys: String,
    reply: oneshot::Sender<Result<u64, Refusal>>,
    _queued: OwnedSemaphorePermit,
}

enum Command {
    Change(Request),
    Do(Box<dyn FnOnce(&mut Writer) + Send>),
}

/// The only thread that changes the store and the filter.
struct Writer {
    list: Arc<List>,
    /// The version in the store.
    version: u128,
    /// Whether the current list survives a power cut. Until then changes are refused, since they would be lost with it.
    synced: bool,
    /// The end of the pause after a failure.
    retry: Instant,
    ends: bool,
    _alive: oneshot::Sender<()>,
}

impl Writer {
    fn run(mut self, commands: &Receiver<Command>) {
        let mut next = None;
        while !self.ends {
            let command = match next.take() {
                Some(command) => Ok(command),
                None => commands.recv_timeout(PAUSE),
            };
            match command {
                Ok(Command::Change(first)) => {
                    let mut bytes = first.keys.len();
                    let mut group = vec![first];
                    // Waiting changes share a transaction, and thus a sync of the disk.
                    while bytes < GROUP_BYTES && next.is_none() {
                        match commands.try_recv() {
                            Ok(Command::Change(request)) => {
                                bytes += request.keys.len();
                                group.push(request);
                            }
                            Ok(command) => next = Some(command),
                            Err(_) => break,
                        }
                    }
                    self.make(group);
                }
                Ok(Command::Do(work)) => work(&mut self),
                Err(RecvTimeoutError::Timeout) => {
                    if self.list.front.load().store.is_none() {
                        self.reopen();
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn make(&mut self, mut group: Vec<Request>) {
        let error = match self.try_make(&group) {
            Ok(Ok(counts)) => {
                for (request, count) in group.into_iter().zip(counts) {
                    let _ = request.reply.send(Ok(count));
                }
                return;
            }
            // In halves, so that no request fails because of the keys of another.
            Ok(Err(_)) if group.len() > 1 => {
                let rest = group.split_off(group.len() / 2);
                self.make(group);
                return self.make(rest);
            }
            Ok(Err(Refusal { error, is_full })) => {
                Refusal { error: format!("{error}; the list was not changed"), is_full }
            }
            Err(error) => {
                self.fail(&error);
                format!("the store failed: {error}; whether the list was changed is not known: repeat the request")
                    .into()
            }
        };
        group.into_iter().for_each(|request| drop(request.reply.send(Err(error.clone()))));
    }

    /// Makes the changes of a group in one transaction. Returns the number of changed keys of each request, or the reason why nothing
    /// was changed.
    fn try_make(&mut self, group: &[Request]) -> Result<Result<Vec<u64>, Refusal>, redb::Error> {
        if Instant::now() < self.retry {
            return Ok(Err("a change failed a moment ago".to_owned().into()));
        }
        if let Err(error) = self.sync() {
            return Ok(Err(format!("the folder cannot be synced: {error}").into()));
        }
        let front = self.list.front.load_full();
        let store = front.store.as_ref().ok_or(redb::Error::DatabaseClosed)?;
        let transaction = store.begin_write()?;
        let mut counts = Vec::with_capacity(group.len());
        // For each key, whether it is on the list before and after the transaction.
        let mut touched: HashMap<&str, (bool, bool)> = HashMap::new();
        let mut table = transaction.open_table(KEYS)?;
        for Request { put, keys, .. } in group {
            let mut count = 0;
            for key in keys.split_terminator('\n') {
                if if *put { table.insert(key, ())?.is_none() } else { table.remove(key)?.is_some() } {
                    touched.entry(key).or_insert((!put, *put)).1 = *put;
                    count += 1;
                }
            }
            counts.push(count);
        }
        let keys = table.len()?;
        drop(table);
        let net = |states| touched.iter().filter(move |(_, both)| **both == states).map(|(&key, _)| key);
        let (puts, deletes): (Vec<_>, Vec<_>) = (net((false, true)).collect(), net((true, false)).collect());
        if puts.is_empty() && deletes.is_empty() {
            return Ok(Ok(counts));
        }
        // A list that is already too long may still shrink.
        if !puts.is_empty()
            && let Err(error) = self.list.config.check_len(keys)
        {
            return Ok(Err(error));
        }
        let version = write_state(&transaction)?;
        for (index, key) in puts.iter().enumerate() {
            if let Err(error) = front.filter.insert(*key) {
                for key in &puts[..index] {
                    front.filter.remove(*key);
                }
                return Ok(Err(error.to_string().into()));
            }
        }
        transaction.commit()?;
        self.version = version;
        let missing = deletes.iter().filter(|key| !front.filter.remove(**key)).count();
        let mut totals = self.list.totals();
        totals.inserts += puts.len() as u64;
        totals.removals += deletes.len() as u64;
        drop(totals);
        if missing > 0 {
            tracing::error!(missing, "the filter did not have keys that it should have had; it is loaded again");
            drop(front);
            self.reopen();
        }
        Ok(Ok(counts))
    }

    /// Handles an error of the store. redb then refuses everything until it is reopened.
    fn fail(&mut self, error: &redb::Error) {
        tracing::error!(%error, "the store failed and is reopened");
        self.list.totals().store_failures += 1;
        self.reopen_and_pause();
    }

    fn reopen_and_pause(&mut self) {
        let begun = Instant::now();
        self.reopen();
        self.retry = Instant::now() + PAUSE.max(begun.elapsed() * PAUSE_PER_REOPENING);
    }

    /// Reopens the store, and loads a filter from it. Lookups that need the store fail until then.
    fn reopen(&mut self) {
        let list = &self.list;
        let filter = Arc::clone(&list.front.load().filter);
        list.front.store(Arc::new(Front { filter, store: None }));
        let begun = Instant::now();
        let opened = loop {
            match open_store(&list.config.store(), list.config.cache_mib << 20) {
                Err(redb::Error::DatabaseAlreadyOpen) if begun.elapsed() < READS_END => {
                    thread::sleep(Duration::from_millis(10))
                }
                opened => break opened.map_err(|error| error.to_string()),
            }
        };
        match opened.and_then(|(store, version)| Ok((load_filter(&list.config, &store)?, store, version))) {
            Ok((filter, store, version)) => {
                list.front.store(Arc::new(Front { filter: Arc::new(filter), store: Some(store) }));
                self.version = version;
                tracing::warn!("the store was reopened");
            }
            Err(error) => tracing::error!(error, "the store cannot be reopened"),
        }
    }

    /// Checks after a failed read whether the store has failed: after an error of the file, no transaction can begin.
    fn check_store(&mut self) {
        self.list.is_check_sent.swap(false, Ordering::AcqRel);
        let front = self.list.front.load_full();
        let failed = front.store.as_ref().map(|store| store.begin_write().err());
        drop(front);
        match failed {
            Some(Some(error)) => self.fail(&error.into()),
            // While reads fail without pause, `run` does not time out, so it does not reopen the store.
            None if Instant::now() >= self.retry => self.reopen_and_pause(),
            _ => {}
        }
    }

    /// Replaces the current list by a new one.
    fn switch(&mut self, file: NamedTempFile, front: Front, version: u128) -> Result<u64, String> {
        // The last snapshot would be stale.
        if self.list.queue.is_closed() {
            return Err(closed());
        }
        self.synced = false;
        file.persist(self.list.config.store()).map_err(|error| format!("{error}; the list was not changed"))?;
        let keys = front.filter.len() as u64;
        self.list.front.store(Arc::new(front));
        (self.version, self.retry) = (version, Instant::now());
        self.list.totals().replacements += 1;
        self.sync().map_err(|error| format!("the list was replaced, which a power cut may undo: {error}"))?;
        Ok(keys)
    }

    /// Syncs the folder unless that was done since the last replacement.
    fn sync(&mut self) -> io::Result<()> {
        if !self.synced {
            sync(&self.list.config.data).inspect_err(|_| self.retry = Instant::now() + PAUSE)?;
            self.synced = true;
        }
        Ok(())
    }

    /// Returns a copy of the filter and its version, or `None` if that version has been saved.
    fn copy(&mut self) -> Result<Option<(Filter, u128)>, String> {
        let front = self.list.front.load();
        if front.store.is_none() {
            return Err("the store has failed".to_owned());
        }
        if self.list.totals().snapshot.as_ref().is_some_and(|saved| saved.version == self.version) {
            return Ok(None);
        }
        let filter = front.filter.try_clone().map_err(|error| format!("the filter cannot be copied: {error}"))?;
        Ok(Some((filter, self.version)))
    }

    /// Makes a saved snapshot the current one.
    fn keep(&mut self, saved: TempPath, version: u128) -> io::Result<()> {
        let bytes = fs::metadata(&saved)?.len();
        saved.persist(self.list.config.snapshot())?;
        self.list.totals().snapshot = Some(Saved { version, bytes });
        tracing::info!(bytes, "a snapshot was saved");
        Ok(())
    }

    fn close(&mut self) {
        self.ends = true;
        let filter = Arc::clone(&self.list.front.load().filter);
        self.list.front.store(Arc::new(Front { filter, store: None }));
    }
}

/// A new list in a file of its own.
pub(crate) struct NewList {
    transaction: WriteTransaction,
    store: Database,
    /// The file is removed on drop, unless it has become the list.
    file: NamedTempFile,
}

impl NewList {
    /// The memory for pages of the store while it is filled.
    pub(crate) const CACHE_BYTES: usize = 16 << 20;

    /// Starts a new list beside the current one. If it is dropped, nothing remains. Blocks.
    pub(crate) fn begin(config: &Config) -> Result<Self, String> {
        let begin = || -> Result<Self, redb::Error> {
            let file = NamedTempFile::new_in(config.unfinished())?;
            let store = Database::builder().set_cache_size(Self::CACHE_BYTES).create(file.path())?;
            Ok(NewList { transaction: store.begin_write()?, store, file })
        };
        begin().map_err(|error| format!("a new list cannot be started: {error}"))
    }

    /// Adds keys, one per line. Blocks.
    pub(crate) fn add(&mut self, config: &Config, keys: &str) -> Result<(), Refusal> {
        let add = || -> Result<u64, redb::Error> {
            let mut table = self.transaction.open_table(KEYS)?;
            keys.split_terminator('\n').try_for_each(|key| table.insert(key, ()).map(drop))?;
            Ok(table.len()?)
        };
        let keys = add().map_err(|error| format!("the new list cannot be written: {error}"))?;
        config.check_len(keys)
    }

    /// Commits the list, and closes its file.
    fn commit(self) -> Result<NamedTempFile, redb::Error> {
        let NewList { transaction, store, file } = self;
        // A list without a key has this table, too.
        transaction.open_table(KEYS)?;
        write_state(&transaction)?;
        transaction.commit()?;
        drop(store);
        Ok(file)
    }

    fn finish(self, config: &Config) -> Result<(NamedTempFile, Front, u128), String> {
        let compact = || -> Result<_, redb::Error> {
            let file = self.commit()?;
            // Reopened with the memory of a list, and with the smallest possible file.
            let (mut store, version) = open_store(file.path(), config.cache_mib << 20)?;
            store.compact()?;
            Ok((file, store, version))
        };
        let (file, store, version) = compact().map_err(|error| format!("the new list cannot be written: {error}"))?;
        let filter = load_filter(config, &store)?;
        Ok((file, Front { filter: Arc::new(filter), store: Some(store) }, version))
    }
}

/// Locks the folder, creates a list if there is none, and opens the store.
fn open_folder(config: &Config) -> Result<(File, Database, u128), AnyError> {
    fs::create_dir_all(&config.data)?;
    // A lock of the store does not suffice, because a new list is another file.
    let lock = File::create(config.data.join("lock"))?;
    lock.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => "another server uses it".into(),
        TryLockError::Error(error) => AnyError::from(error),
    })?;
    let _ = fs::remove_dir_all(config.unfinished());
    fs::create_dir_all(config.unfinished())?;
    let path = config.store();
    if !path.exists() {
        NewList::begin(config)?.commit()?.persist(&path)?;
    }
    // At every start, because an earlier one may have been killed before this.
    sync(&config.data)?;
    // The folders above may be new, too. Others need not be readable.
    fs::canonicalize(&config.data)?.ancestors().skip(1).for_each(|folder| drop(sync(folder)));
    let (store, version) = open_store(&path, config.cache_mib << 20).map_err(|error| format!("list.redb: {error}"))?;
    Ok((lock, store, version))
}

/// Syncs a folder if its file system can do that.
fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all().or_else(|error| match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => Ok(()),
        _ => Err(error),
    })
}

/// Opens the store at a path, and returns the version of its list.
fn open_store(path: &Path, cache_bytes: usize) -> Result<(Database, u128), redb::Error> {
    let store = Database::builder().set_cache_size(cache_bytes).open(path)?;
    let row = match store.begin_read()?.open_table(STATE) {
        Ok(table) => table.get(())?.map(|row| row.value()),
        Err(TableError::Storage(error)) => return Err(error.into()),
        Err(_) => None,
    };
    match row {
        Some((FORMAT, version)) => Ok((store, version)),
        _ => {
            Err(redb::Error::Corrupted("it is no list of this version of the program; give another folder".to_owned()))
        }
    }
}

/// Writes a new version, and returns it.
fn write_state(transaction: &WriteTransaction) -> Result<u128, redb::Error> {
    // The keys of std's hasher are random, so its hash of a constant is random, too.
    let random = RandomState::new();
    let version = u128::from(random.hash_one(0)) << 64 | u128::from(random.hash_one(1));
    transaction.open_table(STATE)?.insert((), (FORMAT, version))?;
    Ok(version)
}

/// Loads a filter with all keys of the store.
fn load_filter(config: &Config, store: &Database) -> Result<Filter, String> {
    let load = || -> Result<Filter, AnyError> {
        let table = store.begin_read()?.open_table(KEYS)?;
        let filter = config.filter(table.len()?)?;
        for entry in table.iter()? {
            filter.insert(entry?.0.value())?;
        }
        Ok(filter)
    };
    load().map_err(|error| format!("the filter cannot be loaded: {error}"))
}

/// Loads the filter of the snapshot, or returns an error if the snapshot has another version of the list.
fn load_snapshot(config: &Config, store: &Database, version: u128) -> Result<(Filter, Saved), AnyError> {
    let path = config.snapshot();
    let reader = SnapshotReader::open(&path)?;
    let header = reader.header();
    if header.metadata != version.to_le_bytes() {
        return Err("the snapshot is of another state of the list".into());
    }
    if (header.config.max_capacity, header.config.false_positive_rate)
        != (config.most_keys(), Some(config.false_positive_rate))
    {
        return Err("the snapshot is of a filter for another rate, or for another number of keys".into());
    }
    let filter: Filter = reader.into_filter()?;
    let keys = store.begin_read()?.open_table(KEYS)?.len()?;
    if filter.len() as u64 != keys {
        return Err(format!("the snapshot has {} keys, and the store {keys}", filter.len()).into());
    }
    Ok((filter, Saved { version, bytes: fs::metadata(path)?.len() }))
}
