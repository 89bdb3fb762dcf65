//! A block of keys, sorted by shard: what a bulk operation has in memory at a time. In a filter that grows, some cells of the
//! directory that lie side by side are a shard to it.
//!
//! A block is some *tiles*, each the work of one thread at a time: it hashes the keys of the tile and sorts them by
//! shard, each shard's in the order of the input. Then each shard takes its run of keys from every tile, and its task
//! notes next to each key what became of it. To read that in the order of the input, a tile remembers the shard of each
//! key: the n-th key of a shard has the n-th outcome of its run.

use crate::layout::{Geometry, Mixed};
use crate::raw::{BLOCK, Next};
use core::mem;
use core::ops::{Add, Range};
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Keys of a block at the most, 208 MiB of them. Fewer would touch a shard so briefly that hardly a line of it is used
/// twice.
const MAX_KEYS: usize = 1 << 24;

/// Keys of a block for each shard. More would make writers wait longer for the task that holds their shard.
const KEYS_PER_SHARD: usize = 1 << 15;

/// Keys of a tile at the most: what a thread sorts stays in its own cache.
const MAX_TILE_KEYS: usize = 1 << 17;

/// Keys of a tile at the least, for each shard: a run takes 36 bytes of its own.
const MIN_TILE_KEYS_PER_SHARD: usize = 16;

/// Shards for which keys are sorted, at the most. With more, even a block of one tile would have too few keys for each.
const MAX_SHARDS: usize = MAX_KEYS / MIN_TILE_KEYS_PER_SHARD;

/// Keys that are hashed at a time, by a call of what knows their type.
const HASHED_AT_ONCE: usize = 1 << 8;

/// The keys of a slice, of whatever type: how many, and what hashes those from a number on.
#[derive(Clone, Copy)]
pub(super) struct Keys<'a> {
    pub(super) count: usize,
    hash: &'a (dyn Fn(usize, &mut [Mixed]) + Sync),
}

impl Keys<'_> {
    /// Hands over these keys.
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

    /// Hashes these in turn.
    pub(super) fn hashing(self, mut left: Range<usize>) -> impl FnMut(&mut [Mixed]) -> usize {
        move |to| {
            let count = left.len().min(to.len());
            (self.hash)(left.start, &mut to[..count]);
            left.start += count;
            count
        }
    }
}

/// Keys that are hashed a block at a time.
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

/// What keys are sorted by.
#[derive(Clone, Copy)]
pub(super) struct Sorter {
    geometry: Geometry,
    shards: usize,
    /// Of a filter that grows, cells of a shard as a power of two.
    cell_bits: Option<u32>,
}

impl Sorter {
    pub(super) fn by_shard(geometry: Geometry) -> Self {
        Sorter { geometry, shards: geometry.shards(), cell_bits: None }
    }

    /// By so many cells at a time of a directory of `cells`.
    pub(super) fn by_cells(geometry: Geometry, cells: usize, cell_bits: u32) -> Self {
        Sorter { geometry, shards: cells >> cell_bits, cell_bits: Some(cell_bits) }
    }

    pub(super) fn shards(&self) -> usize {
        self.shards
    }

    /// The first of the cells of a shard.
    pub(super) fn first_cell(&self, shard: usize) -> usize {
        shard << self.cell_bits.expect("of a filter that grows")
    }

    #[inline(always)]
    fn shard(&self, mixed: Mixed) -> usize {
        match self.cell_bits {
            None => self.geometry.shard(mixed),
            Some(bits) => self.geometry.aim(mixed).cell >> bits,
        }
    }
}

/// The keys of one shard in one tile, and the outcome of each.
pub(super) type Run<'a, O> = (&'a [Mixed], &'a mut [O]);

/// 12 bytes a key and the outcome; `ends` is shared by many.
struct Tile<O> {
    /// In the order of the input.
    shards: Vec<u32>,
    /// By shard.
    sorted: Vec<Mixed>,
    outcomes: Vec<O>,
    /// Where the run of each shard ends.
    ends: Vec<u32>,
}

/// Keys of a bulk operation, each with an outcome of type `O`.
pub(super) struct Block<O> {
    sorter: Sorter,
    tile_keys: usize,
    tiles: Vec<Tile<O>>,
    /// Memory to hash tiles into: for as many as are filled at the same time.
    scratch: Mutex<Vec<Vec<Mixed>>>,
}

/// How the keys of a block are divided. The memory of the block follows from it: 13 bytes a key, 36 for each shard of
/// each tile, and 8 for each key of a tile that is being filled.
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
    /// A block to go through `keys` keys. `None` when there is no memory, or there are too many shards.
    pub(super) fn new(sorter: Sorter, keys: usize) -> Option<Self> {
        Block::with_keys(sorter, keys.min(max_keys(sorter.shards)), rayon::current_num_threads())
    }

    /// One of two blocks to go through `keys` keys, for [`Block::fill_from`].
    pub(super) fn for_stream(sorter: Sorter, keys: usize) -> Option<Self> {
        Block::with_keys(sorter, keys.min(max_keys(sorter.shards)).div_ceil(2), 0)
    }

    /// Memory for [`Block::fill_from`].
    pub(super) fn scratch(&self) -> Option<Vec<Mixed>> {
        reserved(self.tile_keys)
    }

    /// With memory for `filling` threads to fill it.
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

    /// Whether blocks to go through `keys` keys hold at least `a_shard` for each shard.
    pub(super) fn is_dense(sorter: Sorter, keys: usize, a_shard: usize) -> bool {
        keys.min(max_keys(sorter.shards)) / sorter.shards >= a_shard
    }

    pub(super) fn sorter(&self) -> Sorter {
        self.sorter
    }

    /// Keys that the block takes at a time.
    pub(super) fn max_keys(&self) -> usize {
        self.tiles.len() * self.tile_keys
    }

    /// Keys that the block holds.
    pub(super) fn keys(&self) -> usize {
        self.keys_of(self.sorter.shards)
    }

    /// Keys of the first `shards` shards.
    pub(super) fn keys_of(&self, shards: usize) -> usize {
        self.tiles.iter().map(|tile| tile.ends[shards - 1] as usize).sum()
    }

    /// Takes as many keys as it can, on this thread. `scratch` is some memory.
    pub(super) fn fill_from(&mut self, next: Next<'_>, scratch: &mut Vec<Mixed>) {
        let mut most = self.tile_keys;
        for tile in &mut self.tiles {
            tile.fill(&self.sorter, scratch, most, next);
            if tile.sorted.len() < most {
                most = 0;
            }
        }
    }

    /// Takes these, up to [`Block::max_keys`] keys, on all threads.
    pub(super) fn fill(&mut self, keys: Keys<'_>, range: Range<usize>) {
        let (sorter, tile_keys, all_scratch) = (self.sorter, self.tile_keys, &self.scratch);
        let locked = || all_scratch.lock().unwrap_or_else(PoisonError::into_inner);
        self.tiles.par_iter_mut().enumerate().for_each(|(number, tile)| {
            // None is left if the user's own code calls rayon, which may have this thread take another tile meanwhile.
            let mut scratch = locked().pop().unwrap_or_default();
            let begin = (range.start + number * tile_keys).min(range.end);
            let end = (begin + tile_keys).min(range.end);
            tile.fill(&sorter, &mut scratch, end - begin, &mut keys.hashing(begin..end));
            locked().push(scratch);
        });
    }

    /// Hands each shard its keys, from this shard on, and adds up what the tasks return.
    pub(super) fn for_each_shard<'a, E: Send, R: Default + Add<Output = R> + Send>(
        &'a mut self,
        first: usize,
        each: impl IndexedParallelIterator<Item = E>,
        task: impl Fn(E, &mut [Run<'a, O>]) -> R + Sync + Send,
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

    /// Writes down for each key what its outcome means, in the order of the input.
    pub(super) fn read<A: Send>(&self, answers: &mut [A], means: impl Fn(O) -> A + Sync) {
        let tiles = self.tiles.par_iter().zip(answers.par_chunks_mut(self.tile_keys));
        tiles.for_each_init(Vec::new, |next, (tile, answers)| {
            for (outcome, to) in tile.in_input_order(next).zip(answers) {
                *to = means(outcome);
            }
        });
    }

    /// The outcomes, in the order of the input.
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

/// Keys of a block at the most, for filters of this many shards.
fn max_keys(shards: usize) -> usize {
    shards.saturating_mul(KEYS_PER_SHARD).min(MAX_KEYS)
}

/// `None` when there is no memory.
fn reserved<T>(len: usize) -> Option<Vec<T>> {
    let mut vec = Vec::new();
    vec.try_reserve_exact(len).ok()?;
    Some(vec)
}

impl<O: Copy + Default> Tile<O> {
    fn new(keys: usize, shards: usize) -> Option<Self> {
        let mut ends = reserved(shards)?;
        ends.resize(shards, 0);
        Some(Tile { shards: reserved(keys)?, sorted: reserved(keys)?, outcomes: reserved(keys)?, ends })
    }

    /// Sorts `most` keys or fewer by counting: a pass to hash and count, a pass to put in place. `scratch` is memory to
    /// keep hashes in between.
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

    /// The run of each shard in turn.
    fn runs(&mut self) -> impl Iterator<Item = Run<'_, O>> {
        let (mut keys, mut outcomes, mut begin) = (&self.sorted[..], &mut self.outcomes[..], 0);
        self.ends.iter().map(move |&end| {
            let count = (end - mem::replace(&mut begin, end)) as usize;
            let (run, rest) = mem::take(&mut outcomes).split_at_mut(count);
            let (run_keys, rest_keys) = keys.split_at(count);
            (keys, outcomes) = (rest_keys, rest);
            (run_keys, run)
        })
    }

    /// The outcomes in the order of the input. `next` is some memory.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Plan;

    fn by_shards(shards: usize) -> Sorter {
        Sorter::by_shard(Geometry::new(&Plan { shards, ..Plan::one_shard(16, 1 << 16, 4) }))
    }

    fn on_two_threads<T: Send>(work: impl FnOnce() -> T + Send) -> T {
        rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap().install(work)
    }

    #[test]
    fn a_block_has_bounded_tiles_and_room_for_all_keys_or_its_most() {
        // Shards and keys; tiles, and keys of each.
        for (shards, keys, tiles, tile_keys) in [
            (1, 0, 1, 1),
            (1, 100, 6, 17),
            (1, 1000, 8, 125),
            (1, 1_000_000, 8, 4096),
            (5, 1_000_000, 8, 20_480),
            (100, 1000, 1, 1000),
            (100, 10_000_000, 25, 131_072),
        ] {
            let (block, half) = on_two_threads(|| {
                let block = Block::<bool>::new(by_shards(shards), keys).unwrap();
                (block, Block::<bool>::for_stream(by_shards(shards), keys).unwrap())
            });
            assert_eq!((block.tiles.len(), block.tile_keys), (tiles, tile_keys), "{keys} keys, {shards} shards");
            assert_eq!(block.max_keys(), tiles * tile_keys);
            assert_eq!((block.keys(), scratches(&block), scratches(&half)), (0, tiles.min(2), 0));
            assert!((half.max_keys() * 2).abs_diff(block.max_keys()) <= 2 * half.tiles.len().max(tiles));
        }
        assert_eq!(max_keys(1), 32_768);
        assert_eq!(max_keys(512), 16_777_216);
        assert_eq!(max_keys(513), 16_777_216);
    }

    fn fill<O: Copy + Default + Send + Sync>(block: &mut Block<O>, hashes: &[u64]) {
        Keys::with(hashes, |&hash| Mixed::of(hash), |keys| block.fill(keys, 0..keys.count));
    }

    fn scratches<O>(block: &Block<O>) -> usize {
        block.scratch.lock().unwrap().len()
    }

    const MIB: usize = 1 << 20;

    /// The memory of a block of this shape and of the list of its runs, when `threads` threads fill it.
    fn bytes(Shape { tiles, tile_keys }: Shape, shards: usize, threads: usize) -> usize {
        13 * tiles * tile_keys + 36 * shards * tiles + 8 * threads.min(tiles) * tile_keys
    }

    /// What the documentation of `par_insert` says, for all sizes from one shard to more than there can be.
    #[test]
    fn the_memory_of_a_block_is_bounded() {
        let sizes = (0..=40).flat_map(|log| [(1 << log) - 1, 1 << log, (1 << log) + 1, 3 << log]).skip(1);
        let sizes: Vec<usize> = sizes.map(|size: u64| usize::try_from(size).unwrap_or(usize::MAX)).collect();
        for &shards in &sizes {
            for keys in sizes.iter().map(|&keys| keys.min(max_keys(shards))) {
                for threads in [1, 2, 3, 16, 64, 100, 1024] {
                    let Some(shape) = Shape::new(shards, keys, threads) else {
                        assert!(shards > 1 << 20);
                        continue;
                    };
                    let told = format!("{shards} shards, {keys} keys, {threads} threads: {shape:?}");
                    assert!(shape.tiles * shape.tile_keys >= keys, "{told}");
                    assert!(bytes(shape, shards, threads) <= 373 * MIB, "{told}");
                    if shards <= 8192 {
                        assert!(bytes(shape, shards, threads) <= (245 + threads) * MIB, "{told}");
                    }
                }
            }
        }
        assert!(Shape::new(1 << 20, 1 << 24, 1).is_some() && Shape::new((1 << 20) + 1, 1 << 24, 1).is_none());
        // 128 M slots on two threads; 2^31 slots; 2^34 slots on 16 and on 64 threads.
        for (shards, threads, mib) in [(512, 2, 212), (8192, 2, 246), (65_536, 16, 372), (65_536, 64, 372)] {
            let shape = Shape::new(shards, max_keys(shards), threads).unwrap();
            assert_eq!(bytes(shape, shards, threads) / MIB, mib, "{shards} shards, {threads} threads");
        }
    }

    /// What a block has taken is what its shape says, before it is filled, while it is, and afterwards.
    #[test]
    fn a_block_takes_the_memory_of_its_shape() {
        for (shards, keys, threads) in [(1, 10_000, 2), (40, 1_000_000, 2), (10_000, 2_000_000, 3), (300, 300_000, 5)] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut block = Block::<u8>::new(by_shards(shards), keys).unwrap();
                let hashes: Vec<u64> = (0..block.max_keys() as u64).collect();
                let shape = Shape::new(shards, keys.min(max_keys(shards)), threads).unwrap();
                for _ in 0..2 {
                    let mut taken = 0;
                    for tile in &block.tiles {
                        taken += 4 * tile.shards.capacity() + 8 * tile.sorted.capacity() + tile.outcomes.capacity();
                        taken += 4 * tile.ends.capacity();
                    }
                    taken += block.scratch.lock().unwrap().iter().map(|scratch| 8 * scratch.capacity()).sum::<usize>();
                    let runs = shards * block.tiles.len() * size_of::<Run<'_, u8>>();
                    assert_eq!(taken + runs, bytes(shape, shards, threads), "{shards} shards, {threads} threads");
                    fill(&mut block, &hashes);
                }
            });
        }
    }

    #[test]
    fn a_block_is_dense_if_it_has_so_many_keys_for_each_shard() {
        let dense = |shards, keys, a_shard| Block::<bool>::is_dense(by_shards(shards), keys, a_shard);
        assert!(dense(5, 500, 100) && !dense(5, 499, 100));
        // However many there are, a block has no more.
        assert!(dense(1, usize::MAX, 32_768) && !dense(1, usize::MAX, 32_769));
    }

    /// A load that is refused the memory is so before it begins.
    #[test]
    fn memory_is_reserved_before_keys_arrive() {
        assert!(reserved::<u64>(100).unwrap().capacity() >= 100);
        assert!(reserved::<u64>(usize::MAX / 4).is_none());
        let block = Block::<bool>::for_stream(by_shards(1), 1000).unwrap();
        assert!(block.scratch().unwrap().capacity() >= block.tile_keys);
    }

    /// Keys that fill all tiles, a part of one, a part of some and none: each comes to its shard once, and its outcome
    /// back to its place.
    #[test]
    fn each_key_comes_to_its_shard_and_its_outcome_back() {
        let sorter = by_shards(3);
        let number = |key: Mixed| (sorter.shard(key) as u32 + 1) * 1_000_000;
        for count in [1000, 999, 126, 125, 124, 1, 0] {
            let keys: Vec<u64> = (0..count).collect();
            let mut block = on_two_threads(|| Block::<u32>::new(sorter, 1000).unwrap());
            fill(&mut block, &keys);
            assert_eq!(block.keys(), keys.len());
            let sum = block.for_each_shard(0, [1u32, 2, 3].into_par_iter(), |shard, runs| {
                let mut nth = 0;
                for (keys, outcomes) in runs {
                    for (&key, outcome) in keys.iter().zip(&mut **outcomes) {
                        assert_eq!(number(key), shard * 1_000_000);
                        nth += 1;
                        *outcome = number(key) + nth;
                    }
                }
                nth as usize
            });
            assert_eq!(sum, keys.len());
            let mut nth = [0; 3];
            let expected: Vec<u32> = keys
                .iter()
                .map(|&key| {
                    let shard = sorter.shard(Mixed::of(key));
                    nth[shard] += 1;
                    number(Mixed::of(key)) + nth[shard]
                })
                .collect();
            let mut read = vec![0; keys.len()];
            block.read(&mut read, |outcome| outcome);
            assert_eq!(read, expected);
            let mut told = Vec::new();
            block.for_each(|index, outcome| told.push((index, outcome)));
            assert_eq!(told, expected.into_iter().enumerate().collect::<Vec<_>>());
        }
    }
}
