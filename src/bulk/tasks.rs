//! The tasks: what is done to the keys of a block, a shard at a time.

use super::block::{Block, Run};
use crate::batch::lookup_batch;
use crate::error::InsertError;
use crate::layout::{Class, Geometry, Search, SearchBudget};
use crate::raw::{Admission, Exclusive, KEYS_UNDER_LOCKS, RawFilter, Shard, rolling};
use crate::sys::prefetch::CacheLevel;
use rayon::prelude::*;

/// Fewer keys are one batch on the calling thread: by the time others have woken up, it is done.
pub(super) const FEW_KEYS: usize = BATCH_KEYS;

/// Fewer keys for each shard are batches on all threads: a task would find nothing of its shard in the cache.
const FEW_KEYS_PER_SHARD: usize = 1 << 8;

/// Keys of such a batch.
pub(super) const BATCH_KEYS: usize = 1 << 12;

/// Keys whose lines are on their way while a task works on one.
const KEYS_AHEAD: usize = 16;
/// What became of a key.
#[derive(Clone, Copy, Default)]
pub(super) enum Outcome {
    #[default]
    Inserted,
    Full,
    TooManyCopies,
}

impl Outcome {
    pub(super) fn of(result: Result<(), InsertError>) -> Self {
        match result {
            Ok(()) => Outcome::Inserted,
            Err(InsertError::Full) => Outcome::Full,
            Err(InsertError::TooManyCopies) => Outcome::TooManyCopies,
        }
    }

    pub(super) fn result(self) -> Result<(), InsertError> {
        match self {
            Outcome::Inserted => Ok(()),
            Outcome::Full => Err(InsertError::Full),
            Outcome::TooManyCopies => Err(InsertError::TooManyCopies),
        }
    }
}

impl RawFilter {
    /// A block to sort `keys` keys by shard; `None` where they are too few for that, or there is no memory.
    pub(super) fn block<O: Copy + Default + Send + Sync>(&self, keys: usize) -> Option<Block<O>> {
        let many = keys >= FEW_KEYS && keys / self.geometry().shards() >= FEW_KEYS_PER_SHARD;
        if many { Block::new(*self.geometry(), keys) } else { None }
    }

    pub(super) fn budgets(&self) -> Vec<SearchBudget> {
        vec![SearchBudget::full(); self.geometry().shards()]
    }

    /// Stores the keys of the block, and says how many were refused.
    pub(super) fn insert_block(&self, block: &mut Block<Outcome>, budgets: &mut [SearchBudget]) -> usize {
        block.for_each_shard(self.par_shards().zip(budgets), |(shard, budget), runs| {
            let (mut refused, mut search) = (0, Search::new());
            change(self.geometry(), shard, runs, |shard, class, outcome| {
                let result = shard.insert(&mut search, budget, class, Admission::Copies).map(|_| ());
                refused += usize::from(result.is_err());
                *outcome = Outcome::of(result);
            });
            refused
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
