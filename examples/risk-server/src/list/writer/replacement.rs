//! A whole new list: its keys are gathered in the spare table, its filter is built elsewhere, and here it takes the
//! place of the present one.

use super::super::error::{ReplaceError, StoreError};
use super::super::front::Side;
use super::super::store::{KEYS, Meta};
use super::Writer;
use super::doubt::{Doubt, Outcome};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use tokio::sync::oneshot;

/// The replacement that is under way. It is abandoned when its token is gone.
#[derive(Default)]
pub(super) enum Replacing {
    /// There is none.
    #[default]
    Over,
    /// It waits for the spare table to be emptied.
    Waiting(Weak<()>, oneshot::Sender<Result<u64, ReplaceError>>),
    /// Keys come in.
    Filling(u64, Weak<()>),
    /// All keys are there, and its filter is being built.
    Building(u64, Weak<()>),
}

impl Replacing {
    /// Whether nobody needs the spare table.
    pub(super) fn is_over(&self) -> bool {
        matches!(self, Replacing::Over | Replacing::Waiting(..))
    }

    /// Whether another filter may be built: only one is at a time, because of its memory.
    pub(super) fn lets_build(&self) -> bool {
        !matches!(self, Replacing::Building(..))
    }

    fn is_abandoned(&self) -> bool {
        match self {
            Replacing::Over => false,
            Replacing::Waiting(token, reply) => reply.is_closed() || token.strong_count() == 0,
            Replacing::Filling(_, token) | Replacing::Building(_, token) => token.strong_count() == 0,
        }
    }
}

impl Writer {
    pub(super) fn forget_abandoned_replacement(&mut self) {
        if self.replacing.is_abandoned() {
            self.end_replacement();
        }
    }

    /// What it has put into the spare table is removed as a chore.
    fn end_replacement(&mut self) {
        self.spare_is_dirty |= !self.replacing.is_over();
        self.replacing = Replacing::Over;
    }

    pub(super) fn begin(&mut self, token: Weak<()>, reply: oneshot::Sender<Result<u64, ReplaceError>>) {
        self.forget_abandoned_replacement();
        let refusal = match self.be_ready() {
            Err(error) => ReplaceError::Store(error),
            Ok(()) if !matches!(self.replacing, Replacing::Over) => ReplaceError::UnderWay,
            // It begins when the spare table is empty, at once if it is.
            Ok(()) => return self.replacing = Replacing::Waiting(token, reply),
        };
        let _ = reply.send(Err(refusal));
    }

    pub(super) fn begin_waiting_replacement(&mut self) {
        if !matches!(self.replacing, Replacing::Waiting(..)) {
            return;
        }
        let ready = self.be_ready();
        if self.spare_is_dirty && ready.is_ok() {
            return;
        }
        match (std::mem::take(&mut self.replacing), ready) {
            (Replacing::Waiting(_, reply), Err(error)) => drop(reply.send(Err(ReplaceError::Store(error)))),
            (Replacing::Waiting(token, reply), Ok(())) => {
                self.builds += 1;
                if reply.send(Ok(self.builds)).is_ok() {
                    self.replacing = Replacing::Filling(self.builds, token);
                }
            }
            (other, _) => self.replacing = other,
        }
    }

    pub(super) fn add(&mut self, id: u64, keys: Vec<Box<str>>) -> Result<(), ReplaceError> {
        if !matches!(&self.replacing, Replacing::Filling(now, _) if *now == id) {
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

    pub(super) fn reserve(&mut self, id: u64) -> Result<Meta, ReplaceError> {
        match std::mem::take(&mut self.replacing) {
            Replacing::Filling(now, token) if now == id => self.replacing = Replacing::Building(id, token),
            other => {
                self.replacing = other;
                return Err(ReplaceError::Incomplete);
            }
        }
        self.heal().map_err(ReplaceError::Store)?;
        self.cancel_build();
        Ok(self.meta)
    }

    /// Answers how many keys the new list has.
    pub(super) fn switch(&mut self, id: u64, side: Side) -> Result<u64, ReplaceError> {
        if !matches!(&self.replacing, Replacing::Building(now, _) if *now == id) {
            return Err(ReplaceError::Incomplete);
        }
        self.be_ready().map_err(ReplaceError::Store)?;
        let (old, new) = (self.shared.front.current(), Arc::new(side));
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
                self.take_back_switch(old);
                return Err(ReplaceError::Store(error));
            }
        };
        if let Err(error) = transaction.commit() {
            let error = error.into();
            self.doubt = Some(Doubt::Switch { meta, old, new });
            self.sicken(&error);
            return match self.resolve() {
                Outcome::Made => Ok(keys),
                Outcome::NotMade => Err(ReplaceError::Store(error)),
                Outcome::Unknown => Err(ReplaceError::InDoubt(error)),
            };
        }
        self.health.note_commit();
        self.finish_switch(meta, new);
        Ok(keys)
    }

    /// The new list is committed.
    pub(super) fn finish_switch(&mut self, meta: Meta, new: Arc<Side>) {
        self.meta = meta;
        self.shared.counters.keys.store(new.len(), Ordering::Relaxed);
        self.put_in_place(new);
        self.add_to(|counters| &counters.replacements, 1);
        self.tell_sequence();
        self.trim_to = self.trim_to.max(meta.floor);
        self.replacing = Replacing::Over;
        self.spare_is_dirty = true;
    }

    /// The new list was not committed.
    pub(super) fn take_back_switch(&mut self, old: Arc<Side>) {
        self.shared.front.install(old, None);
        self.end_replacement();
    }

    /// Another filter is the present one.
    pub(super) fn put_in_place(&mut self, side: Arc<Side>) {
        self.shared.front.install(side, None);
        self.filter += 1;
        self.faulty = false;
        self.shared.room.notify_waiters();
    }
}
