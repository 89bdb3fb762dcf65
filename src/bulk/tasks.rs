//! The tasks: operations on the keys of a block, one shard at a time.

use super::block::{Block, SortedRange, Sorter};
use crate::error::InsertError;
use crate::filter::hashing;
use crate::layout::{Class, Geometry, Search, SearchBudget};
use crate::raw::{Exclusive, Fixed, Flat, Growing, KEYS_UNDER_LOCKS, Put, RawFilter, Shard, SlotKind, Slots, rolling};
use crate::sys::prefetch::CacheLevel;
use core::ops::{Add, Range};
use rayon::prelude::*;

/// Fewer keys are one batch on the calling thread, which finishes before other threads wake up.
pub(super) const FEW_KEYS: usize = BATCH_KEYS;

/// Fewer keys per shard are batches on all threads, since a task would find none of its shard in the cache.
const FEW_KEYS_PER_SHARD: usize = 1 << 8;

/// The number of keys of such a batch.
pub(super) const BATCH_KEYS: usize = 1 << 12;

/// The number of keys per shard from which lookups are sorted by shard: then each line is used often enough to repay
/// the sorting.
const LOOKUPS_PER_SHARD: usize = 1 << 14;

/// The number of keys in batches between two calls for progress. Their outcomes take a byte or two per key.
pub(super) const GROUP_KEYS: usize = 1 << 22;

/// The number of keys whose lines are fetched ahead by a task.
const KEYS_AHEAD: usize = 16;

/// The maximum number of shards for the keys of a growing filter: with more, a block would have too few keys of each.
const MAX_GROUPS: usize = 1 << 13;

/// Fewer keys of a growing filter do not repay locking a whole table.
const FEW_KEYS_OF_A_TASK: usize = 32;

/// One in this many shards is sampled to predict the new keys of the others.
const SHARDS_TO_ASK: usize = 16;

/// The fraction of the expected keys for which tables are split in advance. It is below 1, so that no table is split
/// unnecessarily; further splits follow on demand.
const CERTAIN: f64 = 0.97;

/// The outcome of a key, in one byte.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Outcome {
    #[default]
    Inserted,
    Present,
    Full,
    TooManyCopies,
    OutOfMemory,
}

impl Outcome {
    #[cold]
    fn refused(error: InsertError) -> Self {
        match error {
            InsertError::Full => Outcome::Full,
            InsertError::TooManyCopies => Outcome::TooManyCopies,
            InsertError::OutOfMemory => Outcome::OutOfMemory,
            _ => unreachable!("{error}: that is checked before the first key"),
        }
    }

    pub(super) fn result(self) -> Result<bool, InsertError> {
        match self {
            Outcome::Inserted => Ok(true),
            Outcome::Present => Ok(false),
            Outcome::Full => Err(InsertError::Full),
            Outcome::TooManyCopies => Err(InsertError::TooManyCopies),
            Outcome::OutOfMemory => Err(InsertError::OutOfMemory),
        }
    }
}

/// The numbers of keys of a block that were not stored.
#[derive(Clone, Copy, Default)]
pub(super) struct NotStored {
    pub(super) present: usize,
    pub(super) refused: usize,
}

impl NotStored {
    #[inline(always)]
    fn note(&mut self, outcome: &mut Outcome, result: Result<u32, InsertError>) {
        match result {
            Ok(had) => {
                self.present += usize::from(had != 0);
                *outcome = if had == 0 { Outcome::Inserted } else { Outcome::Present };
            }
            Err(error) => {
                self.refused += 1;
                *outcome = Outcome::refused(error);
            }
        }
    }
}

impl Add for NotStored {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        NotStored { present: self.present + other.present, refused: self.refused + other.refused }
    }
}

impl<K: SlotKind> RawFilter<K> {
    /// Returns a block to sort `keys` keys by shard; `None` for too few keys, or if allocation fails.
    pub(super) fn block<O: Copy + Default + Send + Sync>(&self, keys: usize) -> Option<Block<O>> {
        let sorter = self.sorter(keys);
        let many = keys >= FEW_KEYS && keys / sorter.shards >= FEW_KEYS_PER_SHARD;
        if many { Block::new(sorter, keys) } else { None }
    }

    /// Returns a block of a filter of fixed size; `None` also for a growing filter.
    pub(super) fn flat_block(&self, keys: usize) -> Option<(&Flat<K>, Block<bool>)> {
        let RawFilter::Flat(flat) = self else { return None };
        Some((flat, self.block(keys)?))
    }

    /// Returns a block to look up `keys` keys; `None` for too few keys, or if the table fits the caches, if allocation
    /// fails, or if the filter grows.
    pub(super) fn lookup_block(&self, keys: usize) -> Option<(&Flat<K>, Block<bool>)> {
        let RawFilter::Flat(flat) = self else { return None };
        let sorter = Sorter::by_shard(*self.geometry());
        let many = !flat.shards.is_near() && Block::<bool>::is_dense(sorter, keys, LOOKUPS_PER_SHARD);
        if many { Some((flat, Block::new(sorter, keys)?)) } else { None }
    }

    /// Returns the order for up to `keys` keys. A growing filter has as many shards as it will have tables if all keys
    /// are new.
    pub(super) fn sorter(&self, keys: usize) -> Sorter {
        let RawFilter::Growing(growing) = self else { return Sorter::by_shard(*self.geometry()) };
        let plan = self.plan();
        let tables = growing.tables().max(plan.tables_at(plan.doublings_for(self.len().saturating_add(keys))));
        let cells_of_one = (growing.cells() / tables.min(MAX_GROUPS.max(plan.shards))).max(1);
        Sorter::by_cells(*self.geometry(), growing.cells(), cells_of_one.ilog2())
    }

    /// Stores the keys of the block.
    pub(super) fn insert_block(&self, block: &mut Block<Outcome>, budgets: &mut [SearchBudget], put: Put) -> NotStored {
        match self {
            RawFilter::Flat(flat) => flat.insert_block(block, budgets, put),
            RawFilter::Growing(growing) => growing.insert_block(block, budgets, put),
        }
    }
}

impl<K: SlotKind> Flat<K> {
    fn insert_block(&self, block: &mut Block<Outcome>, budgets: &mut [SearchBudget], put: Put) -> NotStored {
        block.for_each_shard(0, self.par_each().zip(budgets), |(shard, budget), runs| {
            let (mut not_stored, mut search) = (NotStored::default(), Search::new());
            change(&self.geometry, shard, runs, |shard, class, outcome| {
                let Ok(result) = shard.insert(Fixed, &mut search, budget, class, put);
                not_stored.note(outcome, result);
            });
            not_stored
        })
    }

    /// Removes one copy of each key of the block, with this value or the earliest deadline, and returns the number of
    /// absent keys.
    pub(super) fn remove_block(&self, block: &mut Block<bool>, value: Option<u32>) -> usize {
        block.for_each_shard(0, self.par_each(), |shard, runs| {
            let mut missing = 0;
            change(&self.geometry, shard, runs, |shard, class, removed| {
                *removed = shard.remove(class, value) != 0;
                missing += usize::from(!*removed);
            });
            missing
        })
    }

    pub(super) fn look_up_block(&self, block: &mut Block<bool>) {
        block.for_each_shard(0, self.par_each(), |shard, runs| {
            fetch_all(shard, runs);
            for (keys, found) in runs {
                self.contains_each(&mut hashing(keys, |&mixed| mixed), found);
            }
            0
        });
    }

    fn par_each(&self) -> impl IndexedParallelIterator<Item = Shard<'_, K::Slots<'_>>> {
        (0..self.shards.plan.shards).into_par_iter().map(|number| self.at(number))
    }
}

impl<K: SlotKind> Growing<K> {
    /// Stores the keys of the block. The number of new keys in the first shards predicts the number in the others:
    /// tables are split in advance for new keys, while they are nearly empty, and not for keys that a unique insertion repeats, nor
    /// for dead ones.
    fn insert_block(&self, block: &mut Block<Outcome>, budgets: &mut [SearchBudget], put: Put) -> NotStored {
        let (plan, sorter, keys) = (&self.plan, block.sorter, block.keys());
        let shards = sorter.shards;
        let grows = |stored| self.tables() < plan.tables_at(plan.doublings_for(stored + keys));
        let mut before = self.len();
        if grows(before) {
            self.sweep_all();
            before = self.len();
        }
        let asked = if grows(before) && shards >= SHARDS_TO_ASK { shards.div_ceil(SHARDS_TO_ASK) } else { shards };
        let sampled = block.keys_of(asked);
        let mut insert = |shards: Range<usize>, doublings| {
            let each = shards.clone().into_par_iter().zip(&mut budgets[shards.clone()]);
            block.for_each_shard(shards.start, each, |(shard, budget), runs| {
                let mut not_stored = NotStored::default();
                let table = self.split_ahead(sorter.first_cell(shard), doublings);
                let count = fetch_all(table, runs);
                let note = |outcome: &mut Outcome, result| not_stored.note(outcome, result);
                let keys = runs.iter_mut().flat_map(|(keys, outcomes)| keys.iter().copied().zip(&mut **outcomes));
                let mut task = self.insert_task(budget, put, note);
                if count < FEW_KEYS_OF_A_TASK {
                    task.run_for_few(keys)
                } else {
                    task.run(keys)
                }
                not_stored
            })
        };
        let not_stored = insert(0..asked, 0);
        let new = (sampled - not_stored.present - not_stored.refused) as f64 * shards as f64 / asked as f64;
        let doublings = plan.doublings_for(before + (new * CERTAIN) as usize).min(plan.reserve_bits - 1);
        not_stored + insert(asked..shards, doublings)
    }
}

/// Returns one budget per shard of the block.
pub(super) fn budgets(block: &Block<Outcome>) -> Vec<SearchBudget> {
    vec![SearchBudget::full(); block.sorter.shards]
}

/// Processes the keys of a shard under all its locks, which are released briefly after every [`KEYS_UNDER_LOCKS`] keys.
#[inline(always)]
fn change<O, T: Slots>(
    geometry: &Geometry,
    shard: Shard<'_, T>,
    runs: &mut [SortedRange<'_, O>],
    mut work: impl FnMut(&Exclusive<'_, T>, Class, &mut O),
) {
    fetch_all(shard, runs);
    let mut locked = None;
    let mut left = 0;
    for (keys, outcomes) in runs {
        for (keys, outcomes) in keys.chunks(KEYS_UNDER_LOCKS).zip(outcomes.chunks_mut(KEYS_UNDER_LOCKS)) {
            if left < keys.len() {
                // Unlocked before it is locked again.
                drop(locked.take());
                left = KEYS_UNDER_LOCKS;
            }
            left -= keys.len();
            let exclusive = locked.get_or_insert_with(|| shard.exclusive());
            let keys = keys.iter().zip(outcomes).map(|(&mixed, outcome)| {
                let class = geometry.locate(mixed).1;
                shard.fetch(class, CacheLevel::L1);
                (class, outcome)
            });
            rolling::<KEYS_AHEAD, _>(keys, |_| {}, |(class, outcome)| work(exclusive, class, outcome));
        }
    }
}

/// Returns the ranges of keys between two calls for progress; zero keys are one range.
pub(super) fn ranges(keys: usize, at_a_time: usize) -> impl Iterator<Item = Range<usize>> {
    let ranges = keys.div_ceil(at_a_time).max(1);
    (0..ranges).map(move |range| range * at_a_time..((range + 1) * at_a_time).min(keys))
}

/// Processes keys in batches, with their places for answers: few keys on this thread, many on all threads.
pub(super) fn batches<R: Send>(
    keys: Range<usize>,
    answers: Option<&mut [bool]>,
    work: impl Fn(Range<usize>, Option<&mut [bool]>) -> R + Sync,
) -> Vec<R> {
    if keys.len() <= BATCH_KEYS {
        return vec![work(keys, answers)];
    }
    let mut answers = answers.map(|answers| answers.chunks_mut(BATCH_KEYS));
    let batch = |begin: usize| (begin..(begin + BATCH_KEYS).min(keys.end), answers.as_mut().and_then(Iterator::next));
    let batches: Vec<_> = keys.clone().step_by(BATCH_KEYS).map(batch).collect();
    batches.into_par_iter().map(|(keys, answers)| work(keys, answers)).collect()
}

/// Prefetches the whole shard if the keys will touch most of it, since sequential access is faster than random. Returns
/// the number of keys.
fn fetch_all<O>(shard: Shard<'_, impl Slots>, runs: &[SortedRange<'_, O>]) -> usize {
    let keys: usize = runs.iter().map(|(keys, _)| keys.len()).sum();
    if keys * 64 >= shard.word_bytes() {
        shard.fetch_all();
    }
    keys
}
