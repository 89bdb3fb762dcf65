//! Many keys at a time: batches, and bulk operations on the threads of rayon.

use super::singles::Worker;
use crate::operations::{INSERTS, LOOKUPS, REMOVES};
use crate::{Answer, MAX_COPIES, Promise};
use concurrent_cuckoo_filter::InsertError;
use std::sync::MutexGuard;

/// Keys whose flags this thread holds, each once or twice in the list that is handed over.
struct Group<'a> {
    flags: Vec<Member<'a>>,
    keys: Vec<u64>,
    /// Of each key, where its flag is.
    members: Vec<usize>,
}

struct Member<'a> {
    key: u64,
    copies: MutexGuard<'a, u8>,
    times: u8,
    /// How many of those were refused, or missing.
    failed: u8,
}

impl Worker<'_> {
    pub(super) fn group(&mut self, size: usize) {
        let field = self.field;
        let size = size.min(field.copies.len());
        let first = self.rng.usize(..=field.copies.len() - size);
        let flags = (first..first + size).filter_map(|number| {
            let copies = field.try_flag(number)?;
            Some(Member { key: number as u64, copies, times: 1 + u8::from(self.rng.u8(..8) == 0), failed: 0 })
        });
        let flags: Vec<_> = flags.collect();
        let mut members: Vec<usize> =
            (0..flags.len()).chain((0..flags.len()).filter(|&i| flags[i].times == 2)).collect();
        self.rng.shuffle(&mut members);
        let keys = members.iter().map(|&member| flags[member].key).collect();
        let mut group = Group { flags, keys, members };

        self.lookup(&group);
        if self.wants_to_insert() {
            self.insert_group(&mut group);
        } else {
            self.remove_group(&mut group);
        }
        self.lookup(&group);
        self.done.operations += group.keys.len() as u64;
    }

    fn lookup(&mut self, group: &Group<'_>) {
        let (name, lookup) = LOOKUPS[self.rng.usize(..LOOKUPS.len())];
        let mut found = vec![false; group.keys.len()];
        lookup(&self.field.filter, &group.keys, &mut found);
        for (&member, found) in group.members.iter().zip(found) {
            let member = &group.flags[member];
            self.field.check(member.key, *member.copies, name, Answer::Found(found));
        }
        self.done.lookups += group.keys.len() as u64;
    }

    fn insert_group(&mut self, group: &mut Group<'_>) {
        let (name, insert) = INSERTS[self.rng.usize(..INSERTS.len())];
        let report = insert(&self.field.filter, &group.keys);
        let (listed, asked) = (report.rejected.len(), group.keys.len());
        if report.inserted + listed != asked || report.rejected_unlisted > 0 {
            self.field.broken(Promise::Refusal, None, format_args!("{name}: a report of {listed} refusals is wrong"));
        }
        for rejection in &report.rejected {
            group.flags[group.members[rejection.index]].failed += 1;
        }
        for member in &mut group.flags {
            let copies = *member.copies + member.times - member.failed;
            if copies > MAX_COPIES {
                self.field.broken(Promise::Copies, member.key, format_args!("{name} made {copies} copies"));
            }
            *member.copies = copies;
        }
        for rejection in &report.rejected {
            let member = &group.flags[group.members[rejection.index]];
            // No thread removes meanwhile: what has 8 copies in the end is refused for them or, before, for want of room.
            let full = matches!(rejection.error, InsertError::Full);
            let copies = if full { (*member.copies).min(MAX_COPIES - 1) } else { *member.copies };
            self.field.check_refusal(member.key, copies, name, rejection.error);
        }
    }

    fn remove_group(&mut self, group: &mut Group<'_>) {
        let (name, remove) = REMOVES[self.rng.usize(..REMOVES.len())];
        let report = remove(&self.field.filter, &group.keys);
        for &missing in &report.missing {
            group.flags[group.members[missing]].failed += 1;
        }
        let mut removed = 0;
        for member in &mut group.flags {
            let (copies, there) = (*member.copies, member.times.min(*member.copies));
            if member.times - member.failed.min(member.times) != there {
                let what = format_args!("{name} missed {} of {} with {copies} copies", member.failed, member.times);
                self.field.broken(Promise::Removal, member.key, what);
            }
            *member.copies -= there;
            removed += usize::from(there);
        }
        if report.removed != removed || report.missing_unlisted > 0 {
            let what = format_args!("{name}: {} removed, not {removed}", report.removed);
            self.field.broken(Promise::Removal, None, what);
        }
    }
}
