//! The tasks: what is done to the keys of a block, a shard at a time.

use super::block::{Block, Run, Sorter};
use crate::error::InsertError;
use crate::filter::hashing;
use crate::layout::{Class, Geometry, Search, SearchBudget};
use crate::raw::{Exclusive, Fixed, Flat, Growing, KEYS_UNDER_LOCKS, Put, RawFilter, Shard, SlotKind, Slots, rolling};
use crate::sys::prefetch::CacheLevel;
use core::ops::{Add, Range};
use rayon::prelude::*;

/// Fewer keys are one batch on the calling thread: by the time others have woken up, it is done.
pub(super) const FEW_KEYS: usize = BATCH_KEYS;

/// Fewer keys for each shard are batches on all threads: a task would find nothing of its shard in the cache.
const FEW_KEYS_PER_SHARD: usize = 1 << 8;

/// Keys of such a batch.
pub(super) const BATCH_KEYS: usize = 1 << 12;

/// Keys that are worked on in batches between two calls for progress. Their outcomes take a byte or two each.
pub(super) const GROUP_KEYS: usize = 1 << 22;

/// Keys whose lines are on their way while a task works on one.
const KEYS_AHEAD: usize = 16;

/// Shards by which the keys of a filter that grows are sorted, at the most: with more, what a block has of each is soon done.
const MAX_GROUPS: usize = 1 << 13;

/// Fewer keys of a filter that grows are not worth all locks of their table.
const FEW_KEYS_OF_A_TASK: usize = 32;

/// One of so many shards says what is to be expected of the others.
const SHARDS_TO_ASK: usize = 16;

/// The part of the expected keys for which tables are split ahead. Those that need it are split later, but none is that would not
/// have been.
const CERTAIN: f64 = 0.97;

/// The outcome of a key, in one byte.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Outcome {
    #[default]
    Inserted,
    Present,
    Refused(InsertError),
}

impl Outcome {
    pub(super) fn of(result: Result<u32, InsertError>) -> Self {
        match result {
            Ok(0) => Outcome::Inserted,
            Ok(_) => Outcome::Present,
            Err(error) => Outcome::Refused(error),
        }
    }

    pub(super) fn result(self) -> Result<bool, InsertError> {
        match self {
            Outcome::Inserted => Ok(true),
            Outcome::Present => Ok(false),
            Outcome::Refused(error) => Err(error),
        }
    }
}

/// How many keys of a block were not stored.
#[derive(Clone, Copy, Default)]
pub(super) struct NotStored {
    pub(super) present: usize,
    pub(super) refused: usize,
}

impl NotStored {
    #[inline(always)]
    fn note(&mut self, outcome: &mut Outcome, result: Result<u32, InsertError>) {
        self.present += usize::from(result.as_ref().is_ok_and(|&had| had != 0));
        self.refused += usize::from(result.is_err());
        *outcome = Outcome::of(result);
    }
}

impl Add for NotStored {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        NotStored { present: self.present + other.present, refused: self.refused + other.refused }
    }
}

impl<K: SlotKind> RawFilter<K> {
    /// A block to sort `keys` keys by shard; `None` where they are too few for that, or there is no memory.
    pub(super) fn block<O: Copy + Default + Send + Sync>(&self, keys: usize) -> Option<Block<O>> {
        let sorter = self.sorter(keys);
        let many = keys >= FEW_KEYS && keys / sorter.shards() >= FEW_KEYS_PER_SHARD;
        if many { Block::new(sorter, keys) } else { None }
    }

    /// The same of a filter of fixed size; `None` also for one that grows.
    pub(super) fn flat_block(&self, keys: usize) -> Option<(&Flat<K>, Block<bool>)> {
        match self {
            RawFilter::Flat(flat) => Some((flat, self.block(keys)?)),
            RawFilter::Growing(_) => None,
        }
    }

    /// A block to look up `keys` keys, of which there are at least `a_shard` for each shard; `None` where the table is near, or
    /// there is no memory, or the filter grows.
    pub(super) fn lookup_block(&self, keys: usize, a_shard: usize) -> Option<(&Flat<K>, Block<bool>)> {
        let RawFilter::Flat(flat) = self else { return None };
        let sorter = Sorter::by_shard(*self.geometry());
        let many = !flat.shards.is_near() && Block::<bool>::is_dense(sorter, keys, a_shard);
        if many { Some((flat, Block::new(sorter, keys)?)) } else { None }
    }

    /// To sort up to `keys` keys. In a filter that grows, by as many shards as there are tables, and as there would be if all
    /// of them were stored.
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
            change(self.shards.geometry(), shard, runs, |shard, class, outcome| {
                let Ok(result) = shard.insert(Fixed, &mut search, budget, class, put);
                not_stored.note(outcome, result);
            });
            not_stored
        })
    }

    /// Removes from each key of the block the copy with this value, or the one that dies first; returns the number of absent keys.
    pub(super) fn remove_block(&self, block: &mut Block<bool>, value: Option<u32>) -> usize {
        block.for_each_shard(0, self.par_each(), |shard, runs| {
            let mut missing = 0;
            change(self.shards.geometry(), shard, runs, |shard, class, removed| {
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
        (0..self.shards.plan().shards).into_par_iter().map(|number| self.at(number))
    }
}

impl<K: SlotKind> Growing<K> {
    /// Stores the keys of the block. How many of the first shards' keys were new says how many of the others are: for so many
    /// tables are split before they hold much, and not for keys that come twice.
    fn insert_block(&self, block: &mut Block<Outcome>, budgets: &mut [SearchBudget], put: Put) -> NotStored {
        let (plan, sorter, before) = (self.plan(), block.sorter(), self.len());
        let shards = sorter.shards();
        let grows = self.tables() < plan.tables_at(plan.doublings_for(before + block.keys()));
        let asked = if grows && shards >= SHARDS_TO_ASK { shards.div_ceil(SHARDS_TO_ASK) } else { shards };
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

/// One for each shard of the block.
pub(super) fn budgets(block: &Block<Outcome>) -> Vec<SearchBudget> {
    vec![SearchBudget::full(); block.sorter().shards()]
}

/// Works on the keys of a shard, with all others locked out but for a moment after every [`KEYS_UNDER_LOCKS`] keys.
#[inline(always)]
fn change<O, T: Slots>(
    geometry: &Geometry,
    shard: Shard<'_, T>,
    runs: &mut [Run<'_, O>],
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

/// The keys between two calls for progress; none at all are one range.
pub(super) fn ranges(keys: usize, at_a_time: usize) -> impl Iterator<Item = Range<usize>> {
    let ranges = keys.div_ceil(at_a_time).max(1);
    (0..ranges).map(move |range| range * at_a_time..((range + 1) * at_a_time).min(keys))
}

/// Works on some keys at a time, which have these answers, if any: few by this thread, many by all.
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

/// Begins to fetch the whole shard, if the keys will need most of it: sequential access is faster than random.
/// Says how many keys there are.
fn fetch_all<O>(shard: Shard<'_, impl Slots>, runs: &[Run<'_, O>]) -> usize {
    let keys: usize = runs.iter().map(|(keys, _)| keys.len()).sum();
    if keys * 64 >= shard.table_bytes() {
        shard.fetch_all();
    }
    keys
}
