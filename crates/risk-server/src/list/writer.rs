//! The one thread that changes the store and the front.

use super::Shared;
use super::doubt::{Doubt, Health, Outcome};
use super::error::{ChangeError, ReplaceError, SnapshotError, StoreError};
use super::front::Side;
use super::growth::Build;
use super::key::Change;
use super::replace::Replacing;
use super::snapshot::{Copied, CopyId};
use super::store::{CHANGES, DELETE, KEYS, Meta, PUT};
use redb::WriteTransaction;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Instant;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::mpsc::{Receiver, WeakSender};
use tokio::sync::oneshot;

/// Changes in one transaction, about.
const GROUP_CHANGES: usize = 4096;

/// Entries that are removed from the log in one transaction.
const TRIMMED_ENTRIES: usize = 8192;

/// A command, and where its answer goes. A writer that ends drops what it has not answered: the list is closed then.
pub(super) enum Command {
    Change(Request),
    /// Copy the filter for a snapshot.
    Copy(oneshot::Sender<Result<Copied, SnapshotError>>),
    /// This copy is on disk.
    Saved(CopyId),
    /// This build of a larger filter is over.
    Built(u64),
    /// Begin a replacement. It is abandoned when the token is gone.
    Begin(Weak<()>, oneshot::Sender<Result<u64, ReplaceError>>),
    Add(u64, Vec<Box<str>>, oneshot::Sender<Result<(), ReplaceError>>),
    Reserve(u64, oneshot::Sender<Result<Meta, ReplaceError>>),
    Switch(u64, Arc<Side>, oneshot::Sender<Result<u64, ReplaceError>>),
    /// Check that the store still works.
    Look,
    /// Copy the filter for a last snapshot, and end.
    Close(oneshot::Sender<Result<Copied, SnapshotError>>),
}

/// Changes that are made together.
pub(super) struct Request {
    pub(super) changes: Vec<Change>,
    pub(super) reply: oneshot::Sender<Result<Vec<bool>, ChangeError>>,
}

/// The state of the thread.
pub(super) struct Writer {
    pub(super) shared: Arc<Shared>,
    commands: Receiver<Command>,
    /// Weak, so that threads that build a filter do not keep the list open.
    pub(super) sender: WeakSender<Command>,
    /// The meta row of the store, unless there is a [`Doubt`].
    pub(super) meta: Meta,
    pub(super) doubt: Option<Doubt>,
    pub(super) health: Health,
    /// The number of the filter since the list was opened.
    pub(super) filter: u64,
    /// What the newest snapshot has.
    pub(super) saved: Option<CopyId>,
    /// The filter did not have a key that it should have had.
    pub(super) faulty: bool,
    pub(super) build: Option<Build>,
    /// The number of builds and replacements begun.
    pub(super) builds: u64,
    /// After a build that failed: when another one is tried.
    pub(super) build_after: Option<Instant>,
    pub(super) replacing: Replacing,
    /// The spare table has keys of a list that is over.
    pub(super) spare_is_dirty: bool,
    /// The log is not needed up to this change, and has been removed up to `trimmed`.
    pub(super) trim_to: u64,
    trimmed: u64,
}

/// The net effect of a group: each key is put or deleted at most once.
#[derive(Debug, Default)]
pub(super) struct Net {
    pub(super) puts: Vec<Box<str>>,
    deletes: Vec<Box<str>>,
}

/// A group that is written and not yet committed.
struct Written {
    transaction: WriteTransaction,
    /// For each change, whether it changes the list.
    answers: Vec<Vec<bool>>,
    net: Net,
    /// The meta row once it is committed.
    meta: Meta,
}

impl Writer {
    /// `saved` is the last change in the snapshot that the front came from.
    pub(super) fn new(
        shared: Arc<Shared>,
        commands: Receiver<Command>,
        sender: WeakSender<Command>,
        meta: Meta,
        saved: Option<u64>,
        spare_is_dirty: bool,
    ) -> Self {
        Writer {
            shared,
            commands,
            sender,
            meta,
            doubt: None,
            health: Health::default(),
            filter: 0,
            saved: saved.map(|sequence| CopyId { sequence, filter: 0 }),
            faulty: false,
            build: None,
            builds: 0,
            build_after: None,
            replacing: Replacing::None,
            spare_is_dirty,
            trim_to: saved.unwrap_or(0).max(meta.floor),
            trimmed: 0,
        }
    }

    /// Works until the list is closed or its last handle is gone.
    pub(super) fn run(mut self) {
        let mut next = None;
        loop {
            if let Ok(file) = std::fs::metadata(self.shared.options.store()) {
                self.shared.totals.lock().store_bytes = file.len();
            }
            self.grow();
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
            // A requester that no longer waits does not need the answer.
            match command {
                None => {}
                Some(Command::Change(first)) => next = self.change(first),
                Some(Command::Copy(reply)) => drop(reply.send(self.copy())),
                Some(Command::Saved(id)) => self.note_saved(id),
                Some(Command::Built(id)) => self.built(id),
                Some(Command::Begin(token, reply)) => drop(reply.send(self.begin(token))),
                Some(Command::Add(id, keys, reply)) => {
                    drop(reply.send(self.add(id, keys).inspect_err(|_| self.shared.totals.lock().write_failures += 1)));
                }
                Some(Command::Reserve(id, reply)) => drop(reply.send(self.reserve(id))),
                Some(Command::Switch(id, side, reply)) => {
                    drop(
                        reply
                            .send(self.switch(id, side).inspect_err(|_| self.shared.totals.lock().write_failures += 1)),
                    );
                }
                Some(Command::Look) => self.look(),
                Some(Command::Close(reply)) => {
                    let _ = reply.send(self.copy());
                    break;
                }
            }
            self.do_chores();
        }
        self.end();
    }

    /// Answers nothing any more: requesters learn that the list is closed.
    fn end(mut self) {
        self.commands.close();
        while self.commands.blocking_recv().is_some() {}
        self.shared.closing.store(true, Ordering::Release);
        if let Some(thread) = self.cancel_build() {
            let _ = thread.join();
        }
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
        if self.shared.is_overflowing() {
            // Puts wait for the larger filter, so that the exact set of refused keys stays small.
            self.finish_build();
        }
        if self.shared.is_overflowing() {
            let has_puts = |request: &mut Request| request.changes.iter().any(Change::is_put);
            for request in group.extract_if(.., has_puts) {
                let _ = request.reply.send(Err(ChangeError::NoRoom));
            }
        }
        match self.try_group(&group) {
            Ok(answers) => {
                for (request, answers) in group.into_iter().zip(answers) {
                    let _ = request.reply.send(Ok(answers));
                }
            }
            Err(error) => {
                tracing::error!(%error, "changes were not acknowledged");
                self.shared.totals.lock().write_failures += group.len() as u64;
                for request in group {
                    let _ = request.reply.send(Err(error.clone()));
                }
            }
        }
        next
    }

    fn try_group(&mut self, group: &[Request]) -> Result<Vec<Vec<bool>>, ChangeError> {
        self.be_ready().map_err(ChangeError::Store)?;
        let written = self.write_group(group).map_err(|error| {
            self.sicken(&error);
            ChangeError::Store(error)
        })?;
        let Written { transaction, answers, net, meta } = written;
        if meta == self.meta {
            // Nothing changes, so everything is on disk already.
            return Ok(answers);
        }
        let puts: Vec<&str> = net.puts.iter().map(|key| &**key).collect();
        self.shared.front.current().insert_batch(&puts);
        match transaction.commit() {
            Ok(()) => {
                self.health.note_commit();
                self.finish_group(meta, net);
                Ok(answers)
            }
            Err(error) => match self.resolve(Doubt::Group { meta, net }, &error.into()) {
                Outcome::Made => Ok(answers),
                Outcome::NotMade(error) => Err(ChangeError::Store(error)),
                Outcome::Unknown(error) => Err(ChangeError::InDoubt(error)),
            },
        }
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
                for change in changes {
                    let (key, after) = (change.key(), change.is_put());
                    let is_effective =
                        if after { keys.insert(key, ())?.is_none() } else { keys.remove(key)?.is_some() };
                    if is_effective {
                        touched.entry(key).or_insert((!after, after)).1 = after;
                    }
                    changed.push(is_effective);
                }
                answers.push(changed);
            }
        }
        let mut net = Net::default();
        for (key, states) in touched {
            match states {
                (false, true) => net.puts.push(key.into()),
                (true, false) => net.deletes.push(key.into()),
                _ => {}
            }
        }
        let changes = (net.puts.len() + net.deletes.len()) as u64;
        let meta = Meta { sequence: self.meta.sequence + changes, ..self.meta };
        if changes > 0 {
            let mut log = transaction.open_table(CHANGES)?;
            let puts = net.puts.iter().map(|key| (PUT, key));
            let deletes = net.deletes.iter().map(|key| (DELETE, key));
            for (sequence, (what, key)) in (self.meta.sequence + 1..).zip(puts.chain(deletes)) {
                log.insert(sequence, (what, &**key))?;
            }
            meta.write(&transaction)?;
        }
        Ok(Written { transaction, answers, net, meta })
    }

    /// The group is committed.
    pub(super) fn finish_group(&mut self, meta: Meta, net: Net) {
        self.remove_from_front(&net.deletes);
        self.meta = meta;
        let (puts, deletes) = (net.puts.len() as u64, net.deletes.len() as u64);
        {
            let mut totals = self.shared.totals.lock();
            totals.inserts += puts;
            totals.removals += deletes;
            totals.keys = totals.keys + puts - deletes;
            totals.sequence = meta.sequence;
        }
        if let Some(build) = &mut self.build {
            build.note(net.puts.into_iter().map(Change::Put).chain(net.deletes.into_iter().map(Change::Delete)));
        }
    }

    /// Removes keys that must be there. If one is not, another filter is built.
    pub(super) fn remove_from_front(&mut self, keys: &[Box<str>]) {
        let side = self.shared.front.current();
        let faults = keys.iter().filter(|key| !side.remove(key)).count();
        if faults > 0 {
            tracing::error!(faults, "the filter did not have keys that it should have had; another one is built");
            self.shared.totals.lock().filter_faults += faults as u64;
            self.faulty = true;
        }
    }

    fn can_trim(&self) -> bool {
        self.health.is_good() && self.trimmed < self.trim_to
    }

    /// Does what waits for a quiet moment, a bounded piece at a time. After an error the chore is still there.
    fn do_chores(&mut self) {
        if self.health.is_good() {
            let done = self.clean_up_replacement();
            let done = done.and_then(|()| if self.can_trim() { self.trim() } else { Ok(()) });
            if done.is_err() {
                let _ = self.heal();
            }
        }
    }

    fn trim(&mut self) -> Result<(), StoreError> {
        let trimmed = self.trim_some();
        let (meta, trimmed) = trimmed.inspect_err(|error| self.sicken(error))?;
        (self.meta, self.trimmed) = (meta, trimmed);
        Ok(())
    }

    fn trim_some(&mut self) -> Result<(Meta, u64), StoreError> {
        let transaction = self.shared.store.write()?;
        let (mut removed, mut last) = (0, 0);
        for entry in
            transaction.open_table(CHANGES)?.extract_from_if(..=self.trim_to, |_, _| true)?.take(TRIMMED_ENTRIES)
        {
            (removed, last) = (removed + 1, entry?.0.value());
        }
        let trimmed = if removed < TRIMMED_ENTRIES { self.trim_to } else { last };
        let meta = Meta { floor: self.meta.floor.max(trimmed), ..self.meta };
        if removed > 0 || meta != self.meta {
            meta.write(&transaction)?;
            transaction.commit()?;
            self.health.note_commit();
        }
        Ok((meta, trimmed))
    }
}
