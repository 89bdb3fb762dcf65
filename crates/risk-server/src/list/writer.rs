//! The one thread that changes the store and the front.

use super::error::{ChangeError, SnapshotError, StoreError};
use super::key::Change;
use super::snapshot::{Copied, Stamp};
use super::store::{self, CHANGES, DELETE, KEYS, Meta, PUT};
use super::{Filter, Shared};
use redb::WriteTransaction;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::sync::oneshot;

/// Changes in one transaction, about.
const GROUP_CHANGES: usize = 4096;

/// Entries that are removed from the log in one transaction.
const TRIMMED_ENTRIES: usize = 8192;

/// After a failure, the shortest pause in which nothing is tried, and how many times as long as the last attempt it is, during
/// which nothing could be read.
const PAUSE: Duration = Duration::from_millis(200);
const PAUSE_PER_ATTEMPT: u32 = 10;

/// A command, with the sender of its answer. A writer that ends drops what it has not answered: the list is closed then.
pub(super) enum Command {
    Change(Request),
    Do(Box<dyn FnOnce(&mut Writer) + Send>),
}

/// Changes that are made together.
pub(super) struct Request {
    pub(super) changes: Vec<Change>,
    pub(super) reply: oneshot::Sender<Result<Vec<bool>, ChangeError>>,
}

/// Has the writer do something between two transactions. Nothing is returned if the list is closed.
pub(super) async fn ask<T: Send + 'static>(
    sender: &Sender<Command>,
    work: impl FnOnce(&mut Writer) -> T + Send + 'static,
) -> Option<T> {
    let (reply, answer) = oneshot::channel();
    // A requester that no longer waits does not need the answer.
    let command = Command::Do(Box::new(|writer| drop(reply.send(work(writer)))));
    sender.send(command).await.ok()?;
    answer.await.ok()
}

/// The state of the thread.
pub(super) struct Writer {
    pub(super) shared: Arc<Shared>,
    commands: Receiver<Command>,
    /// It ends after this command.
    pub(super) ends: bool,
    /// The meta row of the store, but for what is in doubt.
    pub(super) meta: Meta,
    /// The store failed, and has not been reopened since.
    broken: Option<StoreError>,
    /// The front has more than the list: a commit that failed would have made this the number of the last change.
    doubt: Option<u64>,
    /// Failures since the last commit. After the second one, nothing is tried before this moment.
    failures: u32,
    pause: Option<(Instant, StoreError)>,
    /// The last change in the newest snapshot.
    saved: Option<u64>,
    /// The replacement in progress: it is abandoned when its token is gone.
    pub(super) replacing: Option<Weak<()>>,
    /// The spare table has keys of a list that is over.
    pub(super) spare_is_dirty: bool,
    /// The log has been trimmed up to this change.
    trimmed: u64,
}

/// A group that is written and not yet committed.
struct Written {
    transaction: WriteTransaction,
    /// For each change, whether it changes the list.
    answers: Vec<Vec<bool>>,
    /// The net effect: each key is put or deleted at most once.
    puts: Vec<Box<str>>,
    deletes: Vec<Box<str>>,
    /// The meta row once it is committed.
    meta: Meta,
}

impl Writer {
    /// `saved` is the last change in the snapshot that the front came from.
    pub(super) fn new(
        shared: Arc<Shared>,
        commands: Receiver<Command>,
        meta: Meta,
        saved: Option<u64>,
        spare_is_dirty: bool,
    ) -> Self {
        Writer {
            shared,
            commands,
            ends: false,
            meta,
            broken: None,
            doubt: None,
            failures: 0,
            pause: None,
            saved,
            replacing: None,
            spare_is_dirty,
            trimmed: 0,
        }
    }

    /// Works until the list is closed or its last handle is gone. Then requesters learn that it is closed.
    pub(super) fn run(mut self) {
        let mut next = None;
        while !self.ends {
            self.note();
            let command = match next.take() {
                Some(command) => Some(command),
                None if self.can_trim() => match self.commands.try_recv() {
                    Ok(command) => Some(command),
                    Err(TryRecvError::Empty) => None,
                    Err(TryRecvError::Disconnected) => break,
                },
                None => match self.commands.blocking_recv() {
                    Some(command) => Some(command),
                    None => break,
                },
            };
            match command {
                None => {}
                Some(Command::Change(first)) => next = self.change(first),
                Some(Command::Do(work)) => work(&mut self),
            }
            self.do_chores();
        }
    }

    /// Tells the state of the store.
    fn note(&mut self) {
        let file = std::fs::metadata(self.shared.options.store());
        let mut totals = self.shared.totals.lock();
        totals.changes_since_snapshot = self.meta.sequence - self.saved.unwrap_or(0).min(self.meta.sequence);
        totals.store_bytes = file.map_or(totals.store_bytes, |file| file.len());
    }

    /// Makes the first changes and those that wait, in one transaction. Returns the command that ends the group.
    fn change(&mut self, first: Request) -> Option<Command> {
        let mut len = first.changes.len();
        let mut group = vec![first];
        let mut next = None;
        while len < GROUP_CHANGES && next.is_none() {
            match self.commands.try_recv() {
                Ok(Command::Change(request)) => {
                    len += request.changes.len();
                    group.push(request);
                }
                Ok(command) => next = Some(command),
                Err(_) => break,
            }
        }
        self.make(group);
        next
    }

    fn make(&mut self, group: Vec<Request>) {
        let made = self.try_group(&group);
        self.note();
        match made {
            Ok(answers) => {
                for (request, answers) in group.into_iter().zip(answers) {
                    let _ = request.reply.send(Ok(answers));
                }
            }
            // No request fails because of the keys of another one.
            Err(ChangeError::Refused(_)) if group.len() > 1 => {
                group.into_iter().for_each(|request| self.make(vec![request]));
            }
            Err(error) => {
                tracing::error!(%error, "changes were not acknowledged");
                self.shared.totals.lock().write_failures += group.len() as u64;
                for request in group {
                    let _ = request.reply.send(Err(error.clone()));
                }
            }
        }
    }

    fn try_group(&mut self, group: &[Request]) -> Result<Vec<Vec<bool>>, ChangeError> {
        self.be_ready().map_err(ChangeError::Store)?;
        let written = self.write_group(group).map_err(|error| {
            self.fail(&error);
            // It may be read again at once.
            let _ = self.be_ready();
            ChangeError::Store(error)
        })?;
        let Written { transaction, answers, puts, deletes, meta } = written;
        if meta == self.meta {
            // Nothing changes, so everything is on disk already.
            return Ok(answers);
        }
        let filter = self.shared.front.current();
        let refused = filter.insert_batch(&puts).rejected;
        if let Some(first) = refused.first() {
            let is_refused = |index: &usize| refused.binary_search_by_key(index, |rejection| rejection.index).is_ok();
            let inserted = (0..puts.len()).filter(|index| !is_refused(index));
            let _ = filter.remove_batch(&inserted.map(|index| &*puts[index]).collect::<Vec<_>>());
            return Err(ChangeError::Refused(first.error));
        }
        if self.commit(transaction, meta)? {
            let faults = filter.remove_batch(&deletes).missing.len();
            self.shared.totals.lock().keys += puts.len() as u64;
            self.shared.totals.lock().keys -= deletes.len() as u64;
            if faults > 0 {
                self.mend(faults);
            }
        }
        let mut totals = self.shared.totals.lock();
        totals.inserts += puts.len() as u64;
        totals.removals += deletes.len() as u64;
        Ok(answers)
    }

    /// Everything but the commit. If it fails, nothing has happened.
    fn write_group(&self, group: &[Request]) -> Result<Written, StoreError> {
        let transaction = self.shared.store.write()?;
        let mut answers = Vec::with_capacity(group.len());
        // For each key that is touched, whether it was on the list before the group, and is after it.
        let mut touched: HashMap<&str, (bool, bool)> = HashMap::new();
        {
            let mut keys = transaction.open_table(KEYS[self.meta.current])?;
            for Request { changes, .. } in group {
                let mut changed = Vec::with_capacity(changes.len());
                for Change { key, put } in changes {
                    let is_effective =
                        if *put { keys.insert(&**key, ())?.is_none() } else { keys.remove(&**key)?.is_some() };
                    if is_effective {
                        touched.entry(key).or_insert((!put, *put)).1 = *put;
                    }
                    changed.push(is_effective);
                }
                answers.push(changed);
            }
        }
        let net = |states| touched.iter().filter(move |(_, both)| **both == states).map(|(&key, _)| key.into());
        let (puts, deletes): (Vec<Box<str>>, Vec<Box<str>>) =
            (net((false, true)).collect(), net((true, false)).collect());
        let changes = (puts.len() + deletes.len()) as u64;
        let meta = Meta { sequence: self.meta.sequence + changes, ..self.meta };
        if changes > 0 {
            let mut log = transaction.open_table(CHANGES)?;
            let all = puts.iter().map(|key| (PUT, key)).chain(deletes.iter().map(|key| (DELETE, key)));
            for (sequence, (what, key)) in (self.meta.sequence + 1..).zip(all) {
                log.insert(sequence, (what, &**key))?;
            }
            meta.write(&transaction)?;
        }
        Ok(Written { transaction, answers, puts, deletes, meta })
    }

    /// This is the state of the store now.
    pub(super) fn committed(&mut self, meta: Meta) {
        self.meta = meta;
        self.failures = 0;
    }

    /// The filter did not have keys that it should have had: it is loaded again.
    fn mend(&mut self, faults: usize) {
        tracing::error!(faults, "the filter did not have keys that it should have had; it is loaded from the store");
        self.shared.totals.lock().filter_faults += faults as u64;
        self.doubt = Some(self.meta.sequence);
        self.broken = Some(StoreError::new("the filter is not sound"));
        self.saved = None;
        let _ = self.be_ready();
    }

    /// A step of the store failed. redb refuses everything then until it is reopened.
    pub(super) fn fail(&mut self, error: &StoreError) {
        tracing::error!(%error, "the store failed and will be reopened");
        self.broken = Some(error.clone());
        self.failures += 1;
    }

    /// Commits. `false` if the commit failed and was made all the same: then the front has been loaded from the store again.
    pub(super) fn commit(&mut self, transaction: WriteTransaction, meta: Meta) -> Result<bool, ChangeError> {
        let Err(error) = transaction.commit().map_err(StoreError::from) else {
            self.committed(meta);
            return Ok(true);
        };
        match self.resolve(meta, &error) {
            Ok(true) => Ok(false),
            Ok(false) => Err(ChangeError::Store(error)),
            Err(error) => Err(ChangeError::InDoubt(error)),
        }
    }

    /// A commit failed. Returns whether it was made all the same, if that can be told.
    fn resolve(&mut self, meta: Meta, error: &StoreError) -> Result<bool, StoreError> {
        self.doubt = Some(meta.sequence);
        self.fail(error);
        self.reopen().map_err(|_| error.clone())?;
        Ok(self.meta == meta)
    }

    /// Without an error, the store can be written and agrees with the front.
    ///
    /// After an error the store is reopened at once. A full disk, for example, lets it be opened each time, and fails each
    /// time: so the second failure in a row is followed by a pause in which nothing is written, and reads go on.
    pub(super) fn be_ready(&mut self) -> Result<(), StoreError> {
        match &self.pause {
            Some((until, error)) if Instant::now() < *until => return Err(error.clone()),
            _ => self.pause = None,
        }
        if self.broken.is_some() { self.reopen() } else { Ok(()) }
    }

    /// Reopens the store. If a commit was in doubt, the front is loaded again: until then it has what is needed in either
    /// case.
    fn reopen(&mut self) -> Result<(), StoreError> {
        let begun = Instant::now();
        let (last, doubt) = (self.meta, self.doubt);
        // With any other meta row it is another file, which the front does not belong to.
        let expected = |now: &Meta| now.id == last.id && (now.sequence == last.sequence || Some(now.sequence) == doubt);
        let opened = self.shared.store.reopen(expected).and_then(|meta| {
            let filter = doubt.map(|_| self.load(meta.current)).transpose()?;
            Ok((meta, filter))
        });
        if self.failures > 1 || opened.is_err() {
            let error = opened.as_ref().err().cloned().or_else(|| self.broken.clone());
            let error = error.unwrap_or_else(|| StoreError::new("the store failed"));
            self.pause = Some((Instant::now() + PAUSE.max(begun.elapsed() * PAUSE_PER_ATTEMPT), error));
        }
        let (meta, filter) = opened.inspect_err(|error| tracing::error!(%error, "the store cannot be reopened"))?;
        tracing::warn!(made = doubt == Some(meta.sequence), "the store was reopened");
        (self.meta, self.broken, self.doubt) = (meta, None, None);
        let mut totals = self.shared.totals.lock();
        totals.store_reopenings += 1;
        if let Some(filter) = filter {
            totals.keys = filter.len() as u64;
            self.shared.front.install(Arc::new(filter), None);
        }
        Ok(())
    }

    fn load(&self, table: usize) -> Result<Filter, StoreError> {
        store::load(&self.shared.store.read()?, table, &self.shared.options, &self.shared.closing, |_| {})
    }

    /// Checks that the store still works: a read has failed.
    pub(super) fn look(&mut self) {
        // A read may be answered from memory; beginning to write is refused after any error.
        if self.broken.is_none()
            && let Err(error) = self.shared.store.write().map(drop)
        {
            self.fail(&error);
        }
        // It logs its own errors.
        let _ = self.be_ready();
    }

    /// Copies the filter between two transactions: it has the changes up to the last one and no others, so that the log
    /// can be replayed over it. Writes wait for as long as the copy takes. There is none if the snapshot has everything.
    pub(super) fn copy(&mut self) -> Result<Option<Copied>, SnapshotError> {
        self.be_ready()?;
        if self.saved == Some(self.meta.sequence) {
            return Ok(None);
        }
        let (begun, filter) = (Instant::now(), self.shared.front.current().try_clone()?);
        let stamp = Stamp { id: self.meta.id, sequence: self.meta.sequence };
        Ok(Some(Copied { filter, stamp, took: begun.elapsed() }))
    }

    /// A copy is on disk: the log is needed from there on.
    pub(super) fn note_saved(&mut self, sequence: u64) {
        self.saved = self.saved.max(Some(sequence));
    }

    /// The log is not needed up to this change.
    fn trim_to(&self) -> u64 {
        self.saved.unwrap_or(0).max(self.meta.floor)
    }

    fn can_trim(&self) -> bool {
        self.broken.is_none() && self.pause.is_none() && self.trimmed < self.trim_to()
    }

    /// Does what waits for a quiet moment, a bounded piece at a time. After an error the chore is still there.
    fn do_chores(&mut self) {
        if self.broken.is_some() || self.be_ready().is_err() {
            return;
        }
        let done = self.clean_up_replacement();
        if let Err(error) = done.and_then(|()| if self.can_trim() { self.trim() } else { Ok(()) }) {
            self.fail(&error);
            let _ = self.be_ready();
        }
    }

    fn trim(&mut self) -> Result<(), StoreError> {
        let to = self.trim_to();
        let transaction = self.shared.store.write()?;
        let (mut removed, mut last) = (0, 0);
        let mut log = transaction.open_table(CHANGES)?;
        for entry in log.extract_from_if(..=to, |_, _| true)?.take(TRIMMED_ENTRIES) {
            (removed, last) = (removed + 1, entry?.0.value());
        }
        drop(log);
        let trimmed = if removed < TRIMMED_ENTRIES { to } else { last };
        let meta = Meta { floor: self.meta.floor.max(trimmed), ..self.meta };
        if removed > 0 || meta != self.meta {
            meta.write(&transaction)?;
            transaction.commit()?;
            self.committed(meta);
        }
        self.trimmed = trimmed;
        Ok(())
    }
}
