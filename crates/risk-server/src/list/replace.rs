//! A whole new list: its keys are gathered in the spare table, its filter is built on another thread, and the writer
//! switches to both between two transactions.

use super::Shared;
use super::doubt::{Doubt, Outcome};
use super::error::{ReplaceError, StoreError};
use super::front::Side;
use super::key::find_invalid;
use super::snapshot;
use super::store::{KEYS, Meta, count};
use super::writer::{Command, Writer};
use std::sync::{Arc, Weak};
use std::time::Instant;
use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;

/// Keys that are gathered for one transaction, and their bytes, about. In a large list, each key of a small transaction
/// costs a page of the table; in a large transaction, sorted, many keys share a page.
const GATHERED_KEYS: usize = 1 << 17;
const GATHERED_BYTES: usize = 1 << 23;

/// A replacement of the whole list, started by [`List::begin_replacement`](super::List::begin_replacement). Until
/// [`commit`](Replacement::commit), the current list is asked and changed as ever; those changes vanish with it. Dropped
/// without a commit, a replacement changes nothing.
pub(crate) struct Replacement {
    shared: Arc<Shared>,
    sender: Sender<Command>,
    id: u64,
    /// Keys that the writer does not have yet, and their bytes.
    gathered: Vec<Box<str>>,
    bytes: usize,
    /// The writer holds the other end: a replacement whose token is gone is abandoned.
    _token: Arc<()>,
}

impl Replacement {
    pub(super) async fn begin(shared: Arc<Shared>, sender: Sender<Command>) -> Result<Self, ReplaceError> {
        let token = Arc::new(());
        let weak = Arc::downgrade(&token);
        let id = ask(&sender, |reply| Command::Begin(weak, reply)).await?;
        Ok(Replacement { shared, sender, id, gathered: Vec::new(), bytes: 0, _token: token })
    }

    /// Adds keys to the new list, some thousands at a time. A key that is added twice counts once. After an error other
    /// than [`ReplaceError::Key`] the replacement cannot be committed any more, and neither if this future is dropped.
    pub(crate) async fn add(&mut self, keys: Vec<Box<str>>) -> Result<(), ReplaceError> {
        if let Some((index, error)) = find_invalid(keys.iter().map(|key| &**key)) {
            return Err(ReplaceError::Key { index, error });
        }
        self.bytes += keys.iter().map(|key| key.len()).sum::<usize>();
        self.gathered.extend(keys);
        if self.gathered.len() < GATHERED_KEYS && self.bytes < GATHERED_BYTES { Ok(()) } else { self.flush().await }
    }

    async fn flush(&mut self) -> Result<(), ReplaceError> {
        self.bytes = 0;
        let keys = std::mem::take(&mut self.gathered);
        if keys.is_empty() {
            return Ok(());
        }
        ask(&self.sender, |reply| Command::Add(self.id, keys, reply)).await
    }

    /// Replaces the current list: at no moment is a key on both lists answered "no". Returns the number of keys. Once
    /// begun, it is completed even if its future is dropped.
    pub(crate) async fn commit(mut self) -> Result<u64, ReplaceError> {
        tokio::spawn(async move {
            let begun = Instant::now();
            self.flush().await?;
            let meta = ask(&self.sender, |reply| Command::Reserve(self.id, reply)).await?;
            let shared = Arc::clone(&self.shared);
            // Changes go on meanwhile.
            let built = tokio::task::spawn_blocking(move || {
                let transaction = shared.store.read().map_err(ReplaceError::Store)?;
                let keys = count(&transaction, meta.spare()).map_err(ReplaceError::Store)?;
                let filter = shared.options.filter_for(keys).map_err(|error| ReplaceError::Load(error.into()))?;
                let side = Side::new(filter);
                side.load(&transaction, meta.spare(), || shared.is_closing(), |_| {})?;
                Ok::<_, ReplaceError>(side)
            });
            let side = Arc::new(built.await.map_err(|_| ReplaceError::Closed)??);
            let keys = ask(&self.sender, |reply| Command::Switch(self.id, side, reply)).await?;
            tracing::info!(keys, took = ?begun.elapsed(), "the list was replaced");
            // Until it is saved, a start loads the filter from the store.
            snapshot::save_later(&self.shared, self.sender.clone());
            Ok(keys)
        })
        .await
        .map_err(|_| ReplaceError::Closed)?
    }
}

type Reply<T> = oneshot::Sender<Result<T, ReplaceError>>;

async fn ask<T>(sender: &Sender<Command>, command: impl FnOnce(Reply<T>) -> Command) -> Result<T, ReplaceError> {
    let (reply, answer) = oneshot::channel();
    sender.send(command(reply)).await.map_err(|_| ReplaceError::Closed)?;
    answer.await.map_err(|_| ReplaceError::Closed)?
}

/// The replacement in progress, as the writer sees it.
#[derive(Default)]
pub(super) enum Replacing {
    #[default]
    None,
    /// Keys come in.
    Filling(u64, Weak<()>),
    /// All keys are there, and the filter is being built.
    Building(u64, Weak<()>),
}

impl Replacing {
    /// Whether a larger filter may be built: one at a time, because of the memory.
    pub(super) fn allows_build(&self) -> bool {
        !matches!(self, Replacing::Building(..))
    }
}

impl Writer {
    /// Ends a replacement that was abandoned, and empties the spare table if nothing needs it.
    pub(super) fn clean_up_replacement(&mut self) -> Result<(), StoreError> {
        if let Replacing::Filling(_, token) | Replacing::Building(_, token) = &self.replacing
            && token.strong_count() == 0
        {
            self.end_replacement();
        }
        if !self.spare_is_dirty || !matches!(self.replacing, Replacing::None) {
            return Ok(());
        }
        let emptied = self.shared.store.write().and_then(|transaction| {
            transaction.delete_table(KEYS[self.meta.spare()])?;
            transaction.open_table(KEYS[self.meta.spare()])?;
            Ok(transaction.commit()?)
        });
        emptied.inspect_err(|error| self.sicken(error))?;
        self.health.note_commit();
        self.spare_is_dirty = false;
        Ok(())
    }

    fn end_replacement(&mut self) {
        self.spare_is_dirty |= !matches!(self.replacing, Replacing::None);
        self.replacing = Replacing::None;
    }

    pub(super) fn begin(&mut self, token: Weak<()>) -> Result<u64, ReplaceError> {
        self.be_ready().and_then(|()| self.clean_up_replacement()).map_err(ReplaceError::Store)?;
        if !matches!(self.replacing, Replacing::None) {
            return Err(ReplaceError::InProgress);
        }
        self.builds += 1;
        self.replacing = Replacing::Filling(self.builds, token);
        Ok(self.builds)
    }

    pub(super) fn add(&mut self, id: u64, keys: Vec<Box<str>>) -> Result<(), ReplaceError> {
        if !matches!(&self.replacing, Replacing::Filling(current, _) if *current == id) {
            return Err(ReplaceError::Incomplete);
        }
        let added = match self.be_ready() {
            Ok(()) => self.add_to_spare(keys).inspect_err(|error| self.sicken(error)),
            Err(error) => Err(error),
        };
        added.map_err(|error| {
            self.end_replacement();
            let _ = self.heal();
            ReplaceError::Store(error)
        })
    }

    fn add_to_spare(&mut self, mut keys: Vec<Box<str>>) -> Result<(), StoreError> {
        // In order, one page of the table is changed after the other.
        keys.sort_unstable();
        let transaction = self.shared.store.write()?;
        {
            let mut table = transaction.open_table(KEYS[self.meta.spare()])?;
            for key in &keys {
                table.insert(&**key, ())?;
            }
        }
        transaction.commit()?;
        self.health.note_commit();
        Ok(())
    }

    /// Lets no larger filter be built until the replacement is over. Returns the state of the store.
    pub(super) fn reserve(&mut self, id: u64) -> Result<Meta, ReplaceError> {
        match std::mem::take(&mut self.replacing) {
            Replacing::Filling(current, token) if current == id => self.replacing = Replacing::Building(id, token),
            other => {
                self.replacing = other;
                return Err(ReplaceError::Incomplete);
            }
        }
        self.heal().map_err(ReplaceError::Store)?;
        self.cancel_build();
        Ok(self.meta)
    }

    /// Switches to the new list. Returns the number of its keys.
    pub(super) fn switch(&mut self, id: u64, new: Arc<Side>) -> Result<u64, ReplaceError> {
        if !matches!(&self.replacing, Replacing::Building(current, _) if *current == id) {
            return Err(ReplaceError::Incomplete);
        }
        self.be_ready().map_err(ReplaceError::Store)?;
        let old = self.shared.front.current();
        let keys = new.len();
        self.shared.front.install(Arc::clone(&old), Some(Arc::clone(&new)));
        let sequence = self.meta.sequence + 1;
        let meta = Meta { sequence, floor: sequence, current: self.meta.spare(), ..self.meta };
        let written = self.shared.store.write().and_then(|transaction| {
            meta.write(&transaction)?;
            Ok(transaction)
        });
        let transaction = match written {
            Ok(transaction) => transaction,
            Err(error) => {
                self.sicken(&error);
                self.undo_switch(old);
                return Err(ReplaceError::Store(error));
            }
        };
        match transaction.commit() {
            Ok(()) => {
                self.health.note_commit();
                self.finish_switch(meta, new);
                Ok(keys)
            }
            Err(error) => match self.resolve(Doubt::Switch { meta, old, new }, &error.into()) {
                Outcome::Made => Ok(keys),
                Outcome::NotMade(error) => Err(ReplaceError::Store(error)),
                Outcome::Unknown(error) => Err(ReplaceError::InDoubt(error)),
            },
        }
    }

    /// The new list is committed.
    pub(super) fn finish_switch(&mut self, meta: Meta, new: Arc<Side>) {
        self.meta = meta;
        {
            let mut totals = self.shared.totals.lock();
            (totals.keys, totals.sequence) = (new.len(), meta.sequence);
            totals.replacements += 1;
        }
        self.put_in_place(new);
        self.trim_to = self.trim_to.max(meta.floor);
        self.end_replacement();
    }

    /// The new list was not committed.
    pub(super) fn undo_switch(&mut self, old: Arc<Side>) {
        self.shared.front.install(old, None);
        self.end_replacement();
    }

    /// Another filter is the current one.
    pub(super) fn put_in_place(&mut self, side: Arc<Side>) {
        let retired = self.shared.front.current().filter.stats();
        self.shared.front.install(side, None);
        let mut totals = self.shared.totals.lock();
        totals.refused_full += retired.refused_full;
        totals.refused_too_many_copies += retired.refused_too_many_copies;
        drop(totals);
        self.filter += 1;
        self.faulty = false;
    }
}
