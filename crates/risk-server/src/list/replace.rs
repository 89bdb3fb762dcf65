//! A whole new list: its keys are gathered in the spare table, its filter is built on another thread, and the writer
//! switches to both between two transactions.

use super::error::{ChangeError, StoreError};
use super::store::{self, KEYS, Meta};
use super::writer::{Writer, ask};
use super::{Filter, List};
use std::sync::{Arc, Weak};
use std::time::Instant;

/// Keys that are gathered for one transaction, and their bytes, about. In a large list, each key of a small transaction
/// costs a page of the table; in a large transaction, sorted, many keys share a page.
const GATHERED_KEYS: usize = 1 << 17;
const GATHERED_BYTES: usize = 1 << 23;

/// A replacement of the whole list, started by [`List::begin_replacement`]. Until [`commit`](Replacement::commit), the
/// current list is asked and changed as ever; those changes vanish with it. Dropped without a commit, a replacement changes
/// nothing.
pub(crate) struct Replacement {
    list: List,
    /// Keys that the writer does not have yet, and their bytes.
    gathered: Vec<Box<str>>,
    bytes: usize,
    /// The writer knows it: a replacement whose token is gone is abandoned.
    token: Arc<()>,
}

impl Replacement {
    pub(super) async fn begin(list: List) -> Result<Self, ChangeError> {
        let token = Arc::new(());
        let weak = Arc::downgrade(&token);
        ask(&list.0.sender, move |writer| writer.begin(weak)).await.ok_or(ChangeError::Closed)??;
        Ok(Replacement { list, gathered: Vec::new(), bytes: 0, token })
    }

    /// Adds keys to the new list, some thousands at a time. A key that is added twice counts once. After an error the
    /// replacement cannot be committed any more, and neither if this future is dropped.
    pub(crate) async fn add(&mut self, keys: Vec<Box<str>>) -> Result<(), ChangeError> {
        self.bytes += keys.iter().map(|key| key.len()).sum::<usize>();
        self.gathered.extend(keys);
        if self.gathered.len() < GATHERED_KEYS && self.bytes < GATHERED_BYTES { Ok(()) } else { self.flush().await }
    }

    async fn flush(&mut self) -> Result<(), ChangeError> {
        self.bytes = 0;
        let keys = std::mem::take(&mut self.gathered);
        if keys.is_empty() {
            return Ok(());
        }
        let token = Arc::downgrade(&self.token);
        let added = ask(&self.list.0.sender, move |writer| {
            let added = writer.if_current(&token).and_then(|()| writer.add(keys));
            added.inspect_err(|_| writer.give_up_replacement())
        });
        added.await.ok_or(ChangeError::Closed)?
    }

    /// Replaces the current list: at no moment is a key on both lists answered "no". Returns the number of keys. Once
    /// begun, it is completed even if its future is dropped.
    pub(crate) async fn commit(mut self) -> Result<u64, ChangeError> {
        tokio::spawn(async move {
            let begun = Instant::now();
            self.flush().await?;
            let (sender, token) = (&self.list.0.sender, Arc::downgrade(&self.token));
            let meta = ask(sender, {
                let token = token.clone();
                move |writer| {
                    writer.if_current(&token)?;
                    writer.be_ready().map(|()| writer.meta).map_err(ChangeError::Store)
                }
            });
            let meta = meta.await.ok_or(ChangeError::Closed)??;
            let shared = Arc::clone(&self.list.0.shared);
            // Changes go on meanwhile.
            let built = tokio::task::spawn_blocking(move || {
                store::load(&shared.store.read()?, meta.spare(), &shared.options, &shared.closing, |_| {})
            });
            let filter = built.await.map_err(|_| ChangeError::Closed)?.map_err(ChangeError::Store)?;
            let switched = ask(sender, move |writer| {
                writer.if_current(&token)?;
                writer.switch(Arc::new(filter)).inspect_err(|_| writer.shared.totals.lock().write_failures += 1)
            });
            let keys = switched.await.ok_or(ChangeError::Closed)??;
            tracing::info!(keys, took = ?begun.elapsed(), "the list was replaced");
            // Until it is saved, a start loads the filter from the store. It logs its own errors.
            tokio::spawn(async move { self.list.save_snapshot().await });
            Ok(keys)
        })
        .await
        .map_err(|_| ChangeError::Closed)?
    }
}

impl Writer {
    fn begin(&mut self, token: Weak<()>) -> Result<(), ChangeError> {
        self.be_ready().and_then(|()| self.clean_up_replacement()).map_err(ChangeError::Store)?;
        if self.replacing.is_some() {
            return Err(ChangeError::InProgress);
        }
        self.replacing = Some(token);
        Ok(())
    }

    /// Whether this replacement is in progress, and has lost nothing.
    fn if_current(&self, token: &Weak<()>) -> Result<(), ChangeError> {
        let is_current = self.replacing.as_ref().is_some_and(|current| current.ptr_eq(token));
        if is_current { Ok(()) } else { Err(ChangeError::Incomplete) }
    }

    fn add(&mut self, mut keys: Vec<Box<str>>) -> Result<(), ChangeError> {
        self.be_ready().map_err(ChangeError::Store)?;
        // In order, one page of the table is changed after the other.
        keys.sort_unstable();
        self.add_to_spare(&keys).map_err(|error| {
            self.fail(&error);
            let _ = self.be_ready();
            self.shared.totals.lock().write_failures += 1;
            ChangeError::Store(error)
        })
    }

    fn add_to_spare(&mut self, keys: &[Box<str>]) -> Result<(), StoreError> {
        let transaction = self.shared.store.write()?;
        {
            let mut table = transaction.open_table(KEYS[self.meta.spare()])?;
            for key in keys {
                table.insert(&**key, ())?;
            }
        }
        transaction.commit()?;
        self.committed(self.meta);
        Ok(())
    }

    /// Switches to the new list. Returns the number of its keys.
    fn switch(&mut self, new: Arc<Filter>) -> Result<u64, ChangeError> {
        self.be_ready().map_err(ChangeError::Store)?;
        let (old, keys) = (self.shared.front.current(), new.len() as u64);
        self.shared.front.install(Arc::clone(&old), Some(Arc::clone(&new)));
        let sequence = self.meta.sequence + 1;
        let meta = Meta { sequence, floor: sequence, current: self.meta.spare(), ..self.meta };
        self.give_up_replacement();
        let written = self.shared.store.write().and_then(|transaction| {
            meta.write(&transaction)?;
            Ok(transaction)
        });
        let transaction = written.map_err(|error| {
            self.shared.front.install(old, None);
            self.fail(&error);
            let _ = self.be_ready();
            ChangeError::Store(error)
        })?;
        if self.commit(transaction, meta)? {
            self.shared.front.install(new, None);
        }
        let mut totals = self.shared.totals.lock();
        totals.keys = keys;
        totals.replacements += 1;
        Ok(keys)
    }

    fn give_up_replacement(&mut self) {
        self.spare_is_dirty |= self.replacing.take().is_some();
    }

    /// Ends a replacement that was abandoned, and empties the spare table if nothing needs it.
    pub(super) fn clean_up_replacement(&mut self) -> Result<(), StoreError> {
        if self.replacing.as_ref().is_some_and(|token| token.strong_count() == 0) {
            self.give_up_replacement();
        }
        if !self.spare_is_dirty || self.replacing.is_some() {
            return Ok(());
        }
        let transaction = self.shared.store.write()?;
        transaction.delete_table(KEYS[self.meta.spare()])?;
        transaction.open_table(KEYS[self.meta.spare()])?;
        transaction.commit()?;
        self.committed(self.meta);
        self.spare_is_dirty = false;
        Ok(())
    }
}
