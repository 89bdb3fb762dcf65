//! A block of keys, sorted by shard: the keys of a bulk operation in memory at a time. In a growing filter, a group of
//! adjacent cells of the directory serves as a shard.
//!
//! A block consists of *tiles*. One thread at a time hashes the keys of a tile and sorts them by shard, in the order of
//! the input within a shard. The task of a shard then processes its run of keys in every tile, and stores the outcome
//! of each key beside it. To read outcomes in the order of the input, a tile stores the shard of each key: the n-th key
//! of a shard has the n-th outcome of its run.

use crate::layout::{Geometry, Mixed};
use crate::raw::{BLOCK, Next};
use crate::sys::memory::{reserved, zeros};
use core::mem;
use core::ops::{Add, Range};
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};

/// The maximum number of keys of a block, 208 MiB. With fewer keys per shard, hardly a line of the shard would be used
/// twice.
const MAX_KEYS: usize = 1 << 24;

/// The number of keys of a block per shard. With more, writers would wait longer for the task that holds their shard.
const KEYS_PER_SHARD: usize = 1 << 15;

/// The maximum number of keys of a tile, which a thread sorts within its own cache.
const MAX_TILE_KEYS: usize = 1 << 17;

/// The minimum number of keys of a tile per shard: a run takes 36 bytes itself.
const MIN_TILE_KEYS_PER_SHARD: usize = 16;

/// The maximum number of shards for sorted keys. With more, even a block of one tile would have too few keys per shard.
const MAX_SHARDS: usize = MAX_KEYS / MIN_TILE_KEYS_PER_SHARD;

/// The number of keys hashed per call of the function that knows their type.
const HASHED_AT_ONCE: usize = 1 << 8;

/// The keys of a slice without their type: their number, and a function that hashes the keys from an index on.
#[derive(Clone, Copy)]
pub(super) struct Keys<'a> {
    pub(super) count: usize,
    hash: &'a (dyn Fn(usize, &mut [Mixed]) + Sync),
}

impl Keys<'_> {
    /// Calls `work` with these keys.
    pub(super) fn with<T: Sync, R>(
        keys: &[T],
        mixed: impl Fn(&T) -> Mixed + Sync,
        work: impl FnOnce(Keys<'_>) -> R,
    ) -> R {
        let hash = |begin: usize, to: &mut [Mixed]| {
            for (key, to) in keys[begin..].iter().zip(to) {
                *to = mixed(key);
            }
        };
        work(Keys { count: keys.len(), hash: &hash })
    }

    /// Hashes the keys of this range in order.
    pub(super) fn hashing(self, mut left: Range<usize>) -> impl FnMut(&mut [Mixed]) -> usize {
        move |to| {
            let count = left.len().min(to.len());
            (self.hash)(left.start, &mut to[..count]);
            left.start += count;
            count
        }
    }
}

/// Keys hashed one block at a time.
pub(super) struct InBlocks<'a> {
    next: Next<'a>,
    block: [Mixed; BLOCK],
    at: usize,
    end: usize,
}

impl<'a> InBlocks<'a> {
    pub(super) fn new(next: Next<'a>) -> Self {
        InBlocks { next, block: [Mixed::default(); BLOCK], at: 0, end: 0 }
    }
}

impl Iterator for InBlocks<'_> {
    type Item = Mixed;

    #[inline(always)]
    fn next(&mut self) -> Option<Mixed> {
        if self.at == self.end {
            (self.at, self.end) = (0, (self.next)(&mut self.block));
            if self.end == 0 {
                return None;
            }
        }
        let mixed = self.block[self.at % BLOCK];
        self.at += 1;
        Some(mixed)
    }
}

/// The order in which keys are sorted.
#[derive(Clone, Copy)]
pub(super) struct Sorter {
    geometry: Geometry,
    pub(super) shards: usize,
    /// The binary logarithm of the cells per shard in a growing filter.
    cell_bits: Option<u32>,
}

impl Sorter {
    pub(super) fn by_shard(geometry: Geometry) -> Self {
        Sorter { geometry, shards: geometry.shards(), cell_bits: None }
    }

    /// Sorts by groups of 2^`cell_bits` cells of a directory of `cells` cells.
    pub(super) fn by_cells(geometry: Geometry, cells: usize, cell_bits: u32) -> Self {
        Sorter { geometry, shards: cells >> cell_bits, cell_bits: Some(cell_bits) }
    }

    /// Returns the first cell of a shard.
    pub(super) fn first_cell(&self, shard: usize) -> usize {
        shard << self.cell_bits.expect("a growing filter")
    }

    #[inline(always)]
    fn shard(&self, mixed: Mixed) -> usize {
        match self.cell_bits {
            None => self.geometry.shard(mixed),
            Some(bits) => self.geometry.cell_place(mixed).cell >> bits,
        }
    }
}

/// The keys of one shard in one tile, and the outcome of each.
pub(super) type SortedRange<'a, O> = (&'a [Mixed], &'a mut [O]);

/// A tile takes 12 bytes and the outcome per key; `ends` is per shard.
struct Tile<O> {
    /// In the order of the input.
    shards: Vec<u32>,
    /// The keys, sorted by shard.
    sorted: Vec<Mixed>,
    outcomes: Vec<O>,
    /// The end of the run of each shard.
    ends: Vec<u32>,
}

/// Keys of a bulk operation, each with an outcome of type `O`.
pub(super) struct Block<O> {
    pub(super) sorter: Sorter,
    tile_keys: usize,
    tiles: Vec<Tile<O>>,
    /// Memory for the hashes of the tiles that are filled at the same time.
    scratch: Mutex<Vec<Vec<Mixed>>>,
}

/// The division of a block into tiles, which determines its memory: 13 bytes per key, 36 per shard of each tile, and 8
/// per key of a tile that is being filled.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shape {
    tiles: usize,
    tile_keys: usize,
}

impl Shape {
    /// `None` for more than [`MAX_SHARDS`].
    fn new(shards: usize, keys: usize, threads: usize) -> Option<Self> {
        let keys = keys.max(1);
        let wanted = keys.div_ceil(4 * threads).min(MAX_TILE_KEYS);
        // Rounded down: all runs together are never more than MAX_SHARDS.
        let most = (keys / MIN_TILE_KEYS_PER_SHARD / shards).max(1);
        let tiles = keys.div_ceil(wanted).min(most);
        (shards <= MAX_SHARDS).then_some(Shape { tiles, tile_keys: keys.div_ceil(tiles) })
    }
}

impl<O: Copy + Default + Send + Sync> Block<O> {
    /// Returns a block to process `keys` keys; `None` if allocation fails or there are too many shards.
    pub(super) fn new(sorter: Sorter, keys: usize) -> Option<Self> {
        Block::with_keys(sorter, keys.min(max_keys(sorter.shards)), rayon::current_num_threads())
    }

    /// Returns one of two blocks to process `keys` keys, for [`Block::fill_from`].
    pub(super) fn for_stream(sorter: Sorter, keys: usize) -> Option<Self> {
        Block::with_keys(sorter, keys.min(max_keys(sorter.shards)).div_ceil(2), 0)
    }

    /// Allocates memory for [`Block::fill_from`].
    pub(super) fn scratch(&self) -> Option<Vec<Mixed>> {
        reserved(self.tile_keys)
    }

    /// Returns a block with memory for `filling` threads that fill it.
    fn with_keys(sorter: Sorter, keys: usize, filling: usize) -> Option<Self> {
        let Shape { tiles: count, tile_keys } = Shape::new(sorter.shards, keys, rayon::current_num_threads())?;
        let (mut tiles, mut scratch) = (reserved(count)?, reserved(count)?);
        for _ in 0..count {
            tiles.push(Tile::new(tile_keys, sorter.shards)?);
        }
        for _ in 0..filling.min(count) {
            scratch.push(reserved(tile_keys)?);
        }
        Some(Block { sorter, tile_keys, tiles, scratch: Mutex::new(scratch) })
    }

    /// Returns whether blocks to process `keys` keys contain at least `a_shard` keys per shard.
    pub(super) fn is_dense(sorter: Sorter, keys: usize, a_shard: usize) -> bool {
        keys.min(max_keys(sorter.shards)) / sorter.shards >= a_shard
    }

    /// Returns the maximum number of keys in the block.
    pub(super) fn max_keys(&self) -> usize {
        self.tiles.len() * self.tile_keys
    }

    /// Returns the number of keys in the block.
    pub(super) fn keys(&self) -> usize {
        self.keys_of(self.sorter.shards)
    }

    /// Returns the number of keys of the first `shards` shards.
    pub(super) fn keys_of(&self, shards: usize) -> usize {
        self.tiles.iter().map(|tile| tile.ends[shards - 1] as usize).sum()
    }

    /// Fills the block on this thread. `scratch` is memory for hashes.
    pub(super) fn fill_from(&mut self, next: Next<'_>, scratch: &mut Vec<Mixed>) {
        let mut most = self.tile_keys;
        for tile in &mut self.tiles {
            tile.fill(&self.sorter, scratch, most, next);
            if tile.sorted.len() < most {
                most = 0;
            }
        }
    }

    /// Fills the block with up to [`Block::max_keys`] keys, on all threads.
    pub(super) fn fill(&mut self, keys: Keys<'_>, range: Range<usize>) {
        let (sorter, tile_keys, all_scratch) = (self.sorter, self.tile_keys, &self.scratch);
        let locked = || all_scratch.lock().unwrap_or_else(PoisonError::into_inner);
        self.tiles.par_iter_mut().enumerate().for_each(|(number, tile)| {
            // None is left if user code calls rayon, which may run another tile on this thread in the meantime.
            let mut scratch = locked().pop().unwrap_or_default();
            let begin = (range.start + number * tile_keys).min(range.end);
            let end = (begin + tile_keys).min(range.end);
            tile.fill(&sorter, &mut scratch, end - begin, &mut keys.hashing(begin..end));
            locked().push(scratch);
        });
    }

    /// Runs the task of each shard from `first` on, and returns the sum of the results.
    pub(super) fn for_each_shard<'a, E: Send, R: Default + Add<Output = R> + Send>(
        &'a mut self,
        first: usize,
        each: impl IndexedParallelIterator<Item = E>,
        task: impl Fn(E, &mut [SortedRange<'a, O>]) -> R + Sync + Send,
    ) -> R {
        let shards = self.sorter.shards;
        let filled = self.tiles.iter_mut().filter(|tile| !tile.sorted.is_empty());
        let mut tiles: Vec<_> = filled.map(Tile::runs).collect();
        let mut runs = Vec::with_capacity(shards * tiles.len());
        for _ in 0..shards {
            runs.extend(tiles.iter_mut().map(|tile| tile.next().expect("a run for each shard")));
        }
        let runs = runs.par_chunks_mut(tiles.len().max(1)).skip(first);
        each.zip(runs).map(|(each, runs)| task(each, runs)).reduce(R::default, Add::add)
    }

    /// Stores `means(outcome)` for each key, in the order of the input.
    pub(super) fn read<A: Send>(&self, answers: &mut [A], means: impl Fn(O) -> A + Sync) {
        let tiles = self.tiles.par_iter().zip(answers.par_chunks_mut(self.tile_keys));
        tiles.for_each_init(Vec::new, |next, (tile, answers)| {
            for (outcome, to) in tile.in_input_order(next).zip(answers) {
                *to = means(outcome);
            }
        });
    }

    /// Calls `tell` with the index and the outcome of each key, in the order of the input.
    pub(super) fn for_each(&self, mut tell: impl FnMut(usize, O)) {
        let (mut index, mut next) = (0, Vec::new());
        for tile in &self.tiles {
            for outcome in tile.in_input_order(&mut next) {
                tell(index, outcome);
                index += 1;
            }
        }
    }
}

/// Returns the maximum number of keys of a block for filters of this many shards.
fn max_keys(shards: usize) -> usize {
    shards.saturating_mul(KEYS_PER_SHARD).min(MAX_KEYS)
}

impl<O: Copy + Default> Tile<O> {
    fn new(keys: usize, shards: usize) -> Option<Self> {
        let (shards, ends) = (reserved(keys)?, zeros(shards)?);
        Some(Tile { shards, sorted: reserved(keys)?, outcomes: reserved(keys)?, ends })
    }

    /// Sorts up to `most` keys by counting: the first pass hashes and counts, the second moves keys into place.
    /// `scratch` is memory for hashes between the passes.
    fn fill(&mut self, sorter: &Sorter, scratch: &mut Vec<Mixed>, most: usize, next: Next<'_>) {
        self.ends.fill(0);
        scratch.resize(most, Mixed::default());
        self.shards.resize(most, 0);
        for (hashes, shards) in scratch.chunks_mut(HASHED_AT_ONCE).zip(self.shards.chunks_mut(HASHED_AT_ONCE)) {
            let hashed = next(hashes);
            for (&mixed, to) in hashes[..hashed].iter().zip(shards) {
                let shard = sorter.shard(mixed);
                *to = shard as u32;
                self.ends[shard] += 1;
            }
            if hashed < hashes.len() {
                break;
            }
        }
        let mut count = 0;
        for end in &mut self.ends {
            count += mem::replace(end, count);
        }
        self.shards.truncate(count as usize);
        self.sorted.resize(count as usize, Mixed::default());
        self.outcomes.resize(count as usize, O::default());
        for (&shard, &mixed) in self.shards.iter().zip(&*scratch) {
            let end = &mut self.ends[shard as usize];
            self.sorted[*end as usize] = mixed;
            *end += 1;
        }
    }

    /// Returns the run of each shard in order.
    fn runs(&mut self) -> impl Iterator<Item = SortedRange<'_, O>> {
        let (mut keys, mut outcomes, mut begin) = (&self.sorted[..], &mut self.outcomes[..], 0);
        self.ends.iter().map(move |&end| {
            let count = (end - mem::replace(&mut begin, end)) as usize;
            let (run, rest) = mem::take(&mut outcomes).split_at_mut(count);
            let (run_keys, rest_keys) = keys.split_at(count);
            (keys, outcomes) = (rest_keys, rest);
            (run_keys, run)
        })
    }

    /// Returns the outcomes in the order of the input. `next` is memory for positions.
    fn in_input_order<'a>(&'a self, next: &'a mut Vec<u32>) -> impl Iterator<Item = O> + 'a
    where
        O: 'a,
    {
        next.clear();
        next.push(0);
        next.extend_from_slice(&self.ends);
        self.shards.iter().map(move |&shard| {
            let place = &mut next[shard as usize];
            *place += 1;
            self.outcomes[*place as usize - 1]
        })
    }
}

#[cfg(all(test, not(cuckoo_model)))]
#[path = "../../tests/internal/bulk/block.rs"]
mod tests;
