//! The work of a bulk operation: its keys in blocks, the task of each shard, and the outcomes in a report.

use super::block::{Block, InBlocks, Keys};
use super::tasks::{BATCH_KEYS, FEW_KEYS, GROUP_KEYS, NotStored, Outcome, batches, budgets, ranges};
use crate::filter::hashing;
use crate::layout::Mixed;
use crate::raw::{Answers, Next, Put, RawFilter, SlotKind};
use crate::report::{BulkReport, RemoveReport, Report};
use rayon::prelude::*;

/// The number of unsorted lookups per job of a thread, and between two calls for progress.
const LOOKUPS_PER_JOB: usize = 1 << 14;
const LOOKUPS_PER_BLOCK: usize = 1 << 22;

/// A bulk operation without the types of its keys and of its callback, compiled once per kind of slot.
pub(super) struct Work<'a, T: SlotKind> {
    pub(super) raw: &'a RawFilter<T>,
    pub(super) max_listed: usize,
    pub(super) progress: &'a mut dyn FnMut(usize),
}

impl<T: SlotKind> Work<'_, T> {
    pub(super) fn insert(self, keys: Keys<'_>, put: Put, answers: Answers<'_>) -> BulkReport {
        let Work { raw, max_listed, .. } = self;
        let (mut places, wanted) = match answers {
            Answers::Stored(places) => (Some(places), Outcome::Inserted),
            Answers::Present(places) => (Some(places), Outcome::Present),
            // Counts differ with the order of equal keys, which threads do not keep.
            Answers::Nothing | Answers::Counts(..) => (None, Outcome::Inserted),
        };
        let Some(mut block) = raw.block(keys.count) else {
            return self.in_batches(keys, places, |hashes, places| {
                let answers = match places {
                    None => Answers::Nothing,
                    Some(places) if wanted == Outcome::Present => Answers::Present(places),
                    Some(places) => Answers::Stored(places),
                };
                raw.insert_each(hashes, put, max_listed, answers)
            });
        };
        let (mut report, mut budgets) = (BulkReport::default(), budgets(&block));
        for range in ranges(keys.count, block.max_keys()) {
            block.fill(keys, range.clone());
            let not_stored = raw.insert_block(&mut block, &mut budgets, put);
            self.note(&mut report, &block, range.start, not_stored);
            if let Some(places) = &mut places {
                block.read(&mut places[range.clone()], |outcome| outcome == wanted);
            }
            (self.progress)(range.end);
        }
        report
    }

    /// Processes keys that are too few for a block, in batches, each with its part of `places`.
    fn in_batches<R: Report>(
        self,
        keys: Keys<'_>,
        mut places: Option<&mut [bool]>,
        work: impl Fn(&mut InBlocks<'_>, Option<&mut [bool]>) -> R + Sync,
    ) -> R {
        let mut report = R::default();
        for group in ranges(keys.count, GROUP_KEYS) {
            let places = places.as_mut().map(|places| &mut places[group.clone()]);
            let reports = batches(group.clone(), places, |batch, places| {
                work(&mut InBlocks::new(&mut keys.hashing(batch)), places)
            });
            for (batch, reported) in reports.into_iter().enumerate() {
                report.append(group.start + batch * BATCH_KEYS, reported, self.max_listed);
            }
            (self.progress)(group.end);
        }
        report
    }

    /// Stores one block while the next one is filled. There are at most `most` keys.
    pub(super) fn insert_stream(self, next: Next<'_>, put: Put, most: usize) -> BulkReport {
        let raw = self.raw;
        let mut first = vec![Mixed::default(); FEW_KEYS];
        let count = next(&mut first);
        let mut first = hashing(&first[..count], |&mixed| mixed);
        let mut next = |to: &mut [Mixed]| {
            let now = first(to);
            now + next(&mut to[now..])
        };
        // An iterator may state a wrong bound: with 0, each block would hold one key.
        let most = most.max(count);
        // Computed once for both halves, since another writer may double the filter between them.
        let sorter = raw.sorter(most);
        let half = || if count < FEW_KEYS { None } else { Block::for_stream(sorter, most) };
        let blocks = half().zip(half());
        let scratch = blocks.as_ref().and_then(|(block, _)| block.scratch());
        let Some(((mut now, mut later), mut scratch)) = blocks.zip(scratch) else {
            let report = raw.insert_each(&mut InBlocks::new(&mut next), put, self.max_listed, Answers::Nothing);
            (self.progress)(report.inserted + report.present + report.refused.len() + report.refused_unlisted);
            return report;
        };
        let mut report = BulkReport::default();
        let mut budgets = budgets(&now);
        let mut done = 0;
        now.fill_from(&mut next, &mut scratch);
        while now.keys() > 0 {
            let mut not_stored = NotStored::default();
            rayon::in_place_scope(|scope| {
                scope.spawn(|_| not_stored = raw.insert_block(&mut now, &mut budgets, put));
                later.fill_from(&mut next, &mut scratch);
            });
            self.note(&mut report, &now, done, not_stored);
            done += now.keys();
            (self.progress)(done);
            core::mem::swap(&mut now, &mut later);
        }
        report
    }

    /// Adds a block to the report. The keys are visited only if some were refused.
    fn note(&self, report: &mut BulkReport, block: &Block<Outcome>, before: usize, not_stored: NotStored) {
        if not_stored.refused == 0 {
            report.inserted += block.keys() - not_stored.present;
            report.present += not_stored.present;
        } else {
            block.for_each(|index, outcome| report.note(before + index, outcome.result(), self.max_listed));
        }
    }

    pub(super) fn remove(self, keys: Keys<'_>, value: Option<u32>) -> RemoveReport {
        let Work { raw, max_listed, .. } = self;
        let Some((flat, mut block)) = raw.flat_block(keys.count) else {
            return self.in_batches(keys, None, |hashes, _| raw.remove_each(hashes, value, max_listed));
        };
        let mut report = RemoveReport::default();
        for range in ranges(keys.count, block.max_keys()) {
            block.fill(keys, range.clone());
            if flat.remove_block(&mut block, value) == 0 {
                report.removed += range.len();
            } else {
                block.for_each(|index, removed| report.note(range.start + index, removed, max_listed));
            }
            (self.progress)(range.end);
        }
        report
    }

    pub(super) fn contains(self, keys: Keys<'_>, found: &mut [bool]) {
        let raw = self.raw;
        let mut block = raw.lookup_block(keys.count);
        let at_a_time = block.as_ref().map_or(LOOKUPS_PER_BLOCK, |(_, block)| block.max_keys());
        for range in ranges(keys.count, at_a_time) {
            let found = &mut found[range.clone()];
            if let Some((flat, block)) = &mut block {
                block.fill(keys, range.clone());
                flat.look_up_block(block);
                block.read(found, |found| found);
            } else {
                found.par_chunks_mut(LOOKUPS_PER_JOB).enumerate().for_each(|(job, found)| {
                    let begin = range.start + job * LOOKUPS_PER_JOB;
                    raw.contains_each(&mut keys.hashing(begin..begin + found.len()), found);
                });
            }
            (self.progress)(range.end);
        }
    }
}
