//! The tasks: what is done to the keys of a block, a shard at a time.

use super::block::{Block, Run};
use crate::batch::lookup_batch;
use crate::error::InsertError;
use crate::layout::{Class, Geometry, Search, SearchBudget};
use crate::raw::{Admission, Exclusive, Fixed, KEYS_UNDER_LOCKS, RawFilter, Shard, rolling};
use crate::sys::prefetch::CacheLevel;
use core::ops::Add;
use rayon::prelude::*;

/// Fewer keys are one batch on the calling thread: by the time others have woken up, it is done.
pub(super) const FEW_KEYS: usize = BATCH_KEYS;

/// Fewer keys for each shard are batches on all threads: a task would find nothing of its shard in the cache.
const FEW_KEYS_PER_SHARD: usize = 1 << 8;

/// Keys of such a batch.
const BATCH_KEYS: usize = 1 << 12;

/// Keys that are worked on in batches between two calls for progress. Their outcomes take a byte or two each.
const GROUP_KEYS: usize = 1 << 22;

/// Keys whose lines are on their way while a task works on one.
const KEYS_AHEAD: usize = 16;
/// What became of a key.
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
    pub(super) fn of(result: Result<bool, InsertError>) -> Self {
        match result {
            Ok(true) => Outcome::Inserted,
            Ok(false) => Outcome::Present,
            Err(InsertError::Full) => Outcome::Full,
            Err(InsertError::TooManyCopies) => Outcome::TooManyCopies,
            Err(InsertError::OutOfMemory) => Outcome::OutOfMemory,
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

/// How many keys of a block were not stored.
#[derive(Clone, Copy, Default)]
pub(super) struct NotStored {
    pub(super) present: usize,
    pub(super) refused: usize,
}

impl Add for NotStored {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        NotStored { present: self.present + other.present, refused: self.refused + other.refused }
    }
}

impl RawFilter {
    /// A block to sort `keys` keys by shard; `None` where they are too few for that, or there is no memory.
    pub(super) fn block<O: Copy + Default + Send + Sync>(&self, keys: usize) -> Option<Block<O>> {
        let many =
            self.growing().is_none() && keys >= FEW_KEYS && keys / self.geometry().shards() >= FEW_KEYS_PER_SHARD;
        if many { Block::new(*self.geometry(), keys) } else { None }
    }

    pub(super) fn budgets(&self) -> Vec<SearchBudget> {
        vec![SearchBudget::full(); self.geometry().shards()]
    }

    /// Stores the keys of the block.
    pub(super) fn insert_block(
        &self,
        block: &mut Block<Outcome>,
        budgets: &mut [SearchBudget],
        admission: Admission,
    ) -> NotStored {
        block.for_each_shard(self.par_shards().zip(budgets), |(shard, budget), runs| {
            let (mut not_stored, mut search) = (NotStored::default(), Search::new());
            change(self.geometry(), shard, runs, |shard, class, outcome| {
                let Ok(result) = shard.insert(Fixed, &mut search, budget, class, admission);
                not_stored.present += usize::from(result == Ok(false));
                not_stored.refused += usize::from(result.is_err());
                *outcome = Outcome::of(result);
            });
            not_stored
        })
    }

    /// Removes the keys of the block, and says how many were missing.
    pub(super) fn remove_block(&self, block: &mut Block<bool>) -> usize {
        block.for_each_shard(self.par_shards(), |shard, runs| {
            let mut missing = 0;
            change(self.geometry(), shard, runs, |shard, class, removed| {
                *removed = shard.remove(class);
                missing += usize::from(!*removed);
            });
            missing
        })
    }

    pub(super) fn par_shards(&self) -> impl IndexedParallelIterator<Item = Shard<'_>> {
        (0..self.geometry().shards()).into_par_iter().map(|number| self.shard(number))
    }

    pub(super) fn lookup_block(&self, block: &mut Block<bool>) {
        block.for_each_shard(self.par_shards(), |shard, runs| {
            fetch_all(shard, runs);
            for (keys, found) in runs {
                lookup_batch(self, keys, |&mixed| mixed, found);
            }
            0
        });
    }
}

/// Works on the keys of a shard, with all others locked out but for a moment after every [`KEYS_UNDER_LOCKS`] keys.
#[inline(always)]
fn change<O>(
    geometry: &Geometry,
    shard: Shard<'_>,
    runs: &mut [Run<'_, O>],
    mut work: impl FnMut(&Exclusive<'_>, Class, &mut O),
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

/// The keys that batches work on between two calls for progress; none at all are one group.
pub(super) fn groups<T>(keys: &[T]) -> impl Iterator<Item = &[T]> {
    let none = keys.is_empty().then_some(keys);
    none.into_iter().chain(keys.chunks(GROUP_KEYS))
}

/// Works on some keys at a time: few by this thread, many by all.
pub(super) fn batches<T: Sync, R: Send>(keys: &[T], work: impl Fn(&[T]) -> R + Sync + Send) -> Vec<R> {
    if keys.len() <= BATCH_KEYS { vec![work(keys)] } else { keys.par_chunks(BATCH_KEYS).map(work).collect() }
}

/// Begins to fetch the whole shard, if the keys will need most of it: sequential access is faster than random.
fn fetch_all<O>(shard: Shard<'_>, runs: &[Run<'_, O>]) {
    let keys: usize = runs.iter().map(|(keys, _)| keys.len()).sum();
    if keys * 64 >= shard.table_bytes() {
        shard.fetch_all();
    }
}
