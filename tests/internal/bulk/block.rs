//! Of `src/bulk/block.rs`: a block takes the memory of its shape.

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
    // Shards and keys; tiles, and keys per tile.
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

/// Checks the documented memory of `par_insert`, for all sizes from one shard to the address space.
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

/// The memory of a block is that of its shape, before, during and after filling.
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
                let runs = shards * block.tiles.len() * size_of::<SortedRange<'_, u8>>();
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
    // The number of keys in a block is bounded.
    assert!(dense(1, usize::MAX, 32_768) && !dense(1, usize::MAX, 32_769));
}

/// A load whose memory cannot be allocated fails before it begins.
#[test]
fn memory_is_reserved_before_keys_arrive() {
    assert!(reserved::<u64>(100).unwrap().capacity() >= 100);
    assert!(reserved::<u64>(usize::MAX / 4).is_none());
    let block = Block::<bool>::for_stream(by_shards(1), 1000).unwrap();
    assert!(block.scratch().unwrap().capacity() >= block.tile_keys);
}

#[test]
fn a_block_without_keys_has_no_task() {
    let mut block = Block::<u32>::new(by_shards(3), 1000).unwrap();
    fill(&mut block, &[]);
    assert_eq!(block.for_each_shard(0, [1, 2, 3].into_par_iter(), |number, _| number), 0);
}
