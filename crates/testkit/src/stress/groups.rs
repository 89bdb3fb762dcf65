//! Many keys at a time: batches, and bulk operations on rayon's threads.

use super::singles::Worker;
use crate::Answer;
use crate::operations::{INSERTS, LOOKUPS, REMOVES};
use std::sync::MutexGuard;

impl Worker<'_> {
    /// Looks up keys whose flags no other thread holds, changes them, and looks them up again.
    pub(super) fn group(&mut self, size: usize) {
        let field = self.field;
        let size = size.min(field.copies.len());
        let first = self.rng.usize(..=field.copies.len() - size);
        let flags = (first..first + size).filter_map(|number| Some((number as u64, field.try_flag(number)?)));
        let mut flags: Vec<(u64, MutexGuard<'_, u8>)> = flags.collect();
        self.rng.shuffle(&mut flags);
        let keys: Vec<u64> = flags.iter().map(|(key, _)| *key).collect();

        self.lookup(&keys, &flags);
        // A report implies one answer for all keys but the listed ones.
        let (name, done, listed) = if self.wants_to_insert() {
            let (name, insert) = INSERTS[self.rng.usize(..INSERTS.len())];
            let report = insert(&field.filter, &keys);
            let refused = report.refused.iter().map(|refusal| (refusal.index, Answer::of_insert(Err(refusal.error))));
            (name, (report.inserted, Answer::Stored), refused.collect::<Vec<_>>())
        } else {
            let (name, remove) = REMOVES[self.rng.usize(..REMOVES.len())];
            let report = remove(&field.filter, &keys);
            let missing = report.missing.iter().map(|&index| (index, Answer::Removed(false)));
            (name, (report.removed, Answer::Removed(true)), missing.collect())
        };
        assert_eq!(done.0 + listed.len(), keys.len(), "{name}");
        let mut listed = listed.into_iter().peekable();
        for (index, (key, copies)) in flags.iter_mut().enumerate() {
            let answer = listed.next_if(|other| other.0 == index).map_or(done.1, |(_, answer)| answer);
            **copies = field.check(*key, **copies, name, answer);
        }
        self.lookup(&keys, &flags);
        self.done.operations += keys.len() as u64;
    }

    fn lookup(&mut self, keys: &[u64], flags: &[(u64, MutexGuard<'_, u8>)]) {
        let (name, lookup) = LOOKUPS[self.rng.usize(..LOOKUPS.len())];
        let mut found = vec![false; keys.len()];
        lookup(&self.field.filter, keys, &mut found);
        for ((key, copies), found) in flags.iter().zip(found) {
            self.field.check(*key, **copies, name, Answer::Found(found));
        }
        self.done.lookups += keys.len() as u64;
    }
}
