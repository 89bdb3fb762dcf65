//! The one thread that changes the store and the front.
//!
//! ```text
//! commands --> group (changes)     chores (the log is trimmed, the spare table emptied) when nothing waits
//!              copy (snapshots)
//!              growth, replacement (other filters)      doubt: what a failed commit left, after every error
//! ```

mod chores;
mod command;
mod copy;
mod doubt;
mod group;
mod growth;
mod health;
mod replacement;

pub(super) use command::{Built, Changes, Command, Copied, CopyOf};

use super::shared::Shared;
use super::store::Meta;
use command::Build;
use doubt::Doubt;
use health::Health;
use replacement::Replacing;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::mpsc::{Receiver, WeakSender};

/// Changes that go into one transaction, about: then those that wait go into the next one.
const GROUP_CHANGES: usize = 4096;

/// The state of the thread.
pub(super) struct Writer {
    shared: Arc<Shared>,
    commands: Receiver<Command>,
    /// For the threads that build filters, so that they do not keep the list open.
    sender: WeakSender<Command>,
    /// What the store says of itself: known, but for a [`Doubt`].
    meta: Meta,
    doubt: Option<Doubt>,
    health: Health,
    /// The number of the filter since the list was opened.
    filter: u64,
    /// What the newest snapshot is of.
    saved: Option<CopyOf>,
    /// A filter did not have what it should have.
    faulty: bool,
    build: Option<Build>,
    builds: u64,
    /// A build failed; another one is tried from then on.
    build_after: Option<Instant>,
    replacing: Replacing,
    /// The spare table has keys of a list that is over.
    spare_is_dirty: bool,
    /// Changes up to this one are not needed, and up to that one they have been removed.
    trim_to: u64,
    trimmed: u64,
}

impl Writer {
    /// `saved` is the change up to which the front came from a snapshot.
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
            saved: saved.map(|sequence| CopyOf { sequence, filter: 0 }),
            faulty: false,
            build: None,
            builds: 0,
            build_after: None,
            replacing: Replacing::default(),
            spare_is_dirty,
            trim_to: saved.unwrap_or(0).max(meta.floor),
            trimmed: 0,
        }
    }

    /// Works until the list is closed or nobody has it any more.
    pub(super) fn run(mut self) {
        let mut next = None;
        loop {
            self.shared.measure_store();
            self.grow();
            let command = match next.take() {
                Some(command) => Some(command),
                None if self.has_chores() => match self.commands.try_recv() {
                    Ok(command) => Some(command),
                    Err(TryRecvError::Empty) => None,
                    Err(TryRecvError::Disconnected) => break,
                },
                None => match self.commands.blocking_recv() {
                    Some(command) => Some(command),
                    None => break,
                },
            };
            // Who no longer waits for an answer does not need it.
            match command {
                None => {}
                Some(Command::Change(first)) => next = self.change(first),
                Some(Command::Copy(reply)) => drop(reply.send(self.copy())),
                Some(Command::Saved(of)) => self.note_saved(of),
                Some(Command::Rebuilt(id, built, reply)) => drop(reply.send(self.rebuilt(id, built))),
                Some(Command::Begin(token, reply)) => self.begin(token, reply),
                Some(Command::Add(id, keys, reply)) => {
                    drop(reply.send(self.add(id, keys).inspect_err(|_| self.note_write_failures(1))))
                }
                Some(Command::Reserve(id, reply)) => drop(reply.send(self.reserve(id))),
                Some(Command::Switch(id, side, reply)) => {
                    drop(reply.send(self.switch(id, side).inspect_err(|_| self.note_write_failures(1))))
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

    /// Makes the first changes and those that wait, in one transaction; gives back the command that ends the group.
    fn change(&mut self, first: Changes) -> Option<Command> {
        let mut len = first.changes.len();
        let mut group = vec![first];
        let mut next = None;
        while len < GROUP_CHANGES && next.is_none() {
            match self.commands.try_recv() {
                Ok(Command::Change(changes)) => {
                    len += changes.changes.len();
                    group.push(changes);
                }
                Ok(command) => next = Some(command),
                Err(_) => break,
            }
        }
        self.change_group(group);
        next
    }

    /// Answers nothing any more; who waits for an answer learns that the list is closed.
    fn end(mut self) {
        self.commands.close();
        while self.commands.blocking_recv().is_some() {}
        self.shared.closing.store(true, Ordering::Release);
        self.shared.room.notify_waiters();
        self.replacing = Replacing::default();
        if let Some(build) = self.build.take() {
            build.cancel.store(true, Ordering::Relaxed);
            let _ = build.thread.join();
        }
    }

    fn note_write_failures(&self, requests: usize) {
        self.add_to(|counters| &counters.write_failures, requests as u64);
    }

    fn add_to(&self, counter: impl FnOnce(&super::shared::Counters) -> &AtomicU64, number: u64) {
        counter(&self.shared.counters).fetch_add(number, Ordering::Relaxed);
    }

    /// After the store and the front have changed.
    fn tell_sequence(&self) {
        self.shared.counters.sequence.store(self.meta.sequence, Ordering::Relaxed);
    }
}
