//! Changes: many in one transaction, since the disk takes its time for each.

use super::super::change::Change;
use super::super::error::{ChangeError, StoreError};
use super::super::store::{CHANGES, DELETE, KEYS, Meta, PUT};
use super::doubt::{Doubt, Outcome};
use super::{Changes, Writer};
use redb::WriteTransaction;
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// What a group does to the list when all is said and done: a key is put or deleted once at the most.
#[derive(Debug, Default)]
pub(super) struct Net {
    pub(super) puts: Vec<Box<str>>,
    pub(super) deletes: Vec<Box<str>>,
}

impl Net {
    fn len(&self) -> usize {
        self.puts.len() + self.deletes.len()
    }
}

/// A group that is written and not yet committed.
struct Written {
    transaction: WriteTransaction,
    /// Of each change, whether it changes the list.
    answers: Vec<Vec<bool>>,
    net: Net,
    /// What the store says of itself when it is committed.
    meta: Meta,
}

/// Whether a key was on the list before the group, and whether it is after it.
struct Touched {
    before: bool,
    after: bool,
}

impl Writer {
    pub(super) fn change_group(&mut self, group: Vec<Changes>) {
        match self.try_group(&group) {
            Ok(answers) => {
                for (changes, answers) in group.into_iter().zip(answers) {
                    let _ = changes.reply.send(Ok(answers));
                }
            }
            Err(error) => {
                tracing::error!(%error, "changes were not acknowledged");
                self.note_write_failures(group.len());
                for changes in group {
                    let _ = changes.reply.send(Err(error.clone()));
                }
            }
        }
    }

    fn try_group(&mut self, group: &[Changes]) -> Result<Vec<Vec<bool>>, ChangeError> {
        self.be_ready().map_err(ChangeError::Store)?;
        let Written { transaction, answers, net, meta } = match self.write_group(group) {
            Ok(written) => written,
            Err(error) => {
                self.sicken(&error);
                return Err(ChangeError::Store(error));
            }
        };
        if net.len() == 0 {
            // What is so already is on disk already.
            return Ok(answers);
        }
        let puts: Vec<&str> = net.puts.iter().map(|key| &**key).collect();
        self.shared.front.current().insert_batch(&puts);
        match transaction.commit() {
            Ok(()) => {
                self.health.note_commit();
                self.finish_group(meta, &net);
                Ok(answers)
            }
            Err(error) => {
                let error = error.into();
                self.doubt = Some(Doubt::Group { meta, net });
                self.sicken(&error);
                match self.resolve() {
                    Outcome::Made => Ok(answers),
                    Outcome::NotMade => Err(ChangeError::Store(error)),
                    Outcome::Unknown => Err(ChangeError::InDoubt(error)),
                }
            }
        }
    }

    /// Everything but the commit. If it fails, nothing has happened.
    fn write_group(&self, group: &[Changes]) -> Result<Written, StoreError> {
        let transaction = self.shared.store.write()?;
        let mut answers = Vec::with_capacity(group.len());
        let mut touched: HashMap<&str, Touched> = HashMap::new();
        {
            let mut keys = transaction.open_table(KEYS[self.meta.current])?;
            for Changes { changes, .. } in group {
                let mut changed = Vec::with_capacity(changes.len());
                for change in changes {
                    let key = change.key();
                    let effective = match change {
                        Change::Put(_) => keys.insert(key, ())?.is_none(),
                        Change::Delete(_) => keys.remove(key)?.is_some(),
                    };
                    if effective {
                        let after = change.is_put();
                        touched.entry(key).or_insert(Touched { before: !after, after }).after = after;
                    }
                    changed.push(effective);
                }
                answers.push(changed);
            }
        }
        let mut net = Net::default();
        for (key, Touched { before, after }) in touched {
            match (before, after) {
                (false, true) => net.puts.push(key.into()),
                (true, false) => net.deletes.push(key.into()),
                _ => {}
            }
        }
        let meta = Meta { sequence: self.meta.sequence + net.len() as u64, ..self.meta };
        if net.len() > 0 {
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
    pub(super) fn finish_group(&mut self, meta: Meta, net: &Net) {
        let side = self.shared.front.current();
        for key in &net.deletes {
            if !side.remove(key) {
                self.note_faults(1);
            }
        }
        self.meta = meta;
        let (puts, deletes) = (net.puts.len() as u64, net.deletes.len() as u64);
        self.add_to(|counters| &counters.puts, puts);
        self.add_to(|counters| &counters.deletes, deletes);
        let keys = &self.shared.counters.keys;
        // No other thread writes it.
        keys.store(keys.load(Ordering::Relaxed) + puts - deletes, Ordering::Relaxed);
        self.tell_sequence();
        if deletes > 0 {
            self.shared.room.notify_waiters();
        }
    }

    /// The group was not committed.
    pub(super) fn take_back_group(&mut self, net: &Net) {
        let side = self.shared.front.current();
        for key in &net.puts {
            if !side.remove(key) {
                self.note_faults(1);
            }
        }
    }

    /// Removals that found nothing: another filter is built.
    pub(super) fn note_faults(&mut self, faults: u64) {
        if faults > 0 {
            tracing::error!(faults, "the filter did not have keys that it should have had; it is built anew");
            self.add_to(|counters| &counters.faults, faults);
            self.faulty = true;
        }
    }
}
