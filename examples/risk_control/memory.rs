//! Memory: what the program is going to take, and what it took. In bytes.

use concurrent_cuckoo_filter::{BuildError, Builder};
use std::fs;

/// What a bulk insertion takes besides the filter: for each key of a block, as `CuckooFilter::par_insert` has it; for
/// each thread with each of two blocks.
const BYTES_PER_BLOCK_KEY: usize = 13;
const MAX_BLOCK_KEYS: usize = 1 << 24;
const LOAD_BYTES_PER_THREAD: usize = 2 << 20;

/// A block is sorted in tiles, which note where the keys of each shard are. A shard is made for more keys than this.
const TILES: usize = 128;
const BYTES_A_TILE_AND_SHARD: usize = 36;
const MIN_SHARD_KEYS: usize = 120_000;

/// The pages that four pieces of memory do not quite fill.
const LOST_BYTES_A_TILE: usize = 4 << 12;

/// The used part of a stack, a histogram, what the allocator keeps for a thread.
const BYTES_PER_THREAD: usize = 1 << 16;

/// What is going to be taken, told beforehand.
pub(crate) struct Announced {
    pub(crate) filter: usize,
    /// For the load alone.
    pub(crate) load: usize,
    pub(crate) threads: usize,
    /// What is there already: lists, sign-ups, the program. `None` where the system does not say.
    pub(crate) taken: Option<usize>,
}

impl Announced {
    /// For a filter of this many keys, and this many threads that work with it.
    pub(crate) fn new<S>(filter: &Builder<str, S>, keys: usize, threads: usize) -> Result<Self, BuildError> {
        let filter = filter.memory_usage_at(keys)?;
        let load_threads = rayon::current_num_threads();
        let shards = keys.div_ceil(MIN_SHARD_KEYS);
        let tiles = TILES.max(4 * load_threads) * (shards * BYTES_A_TILE_AND_SHARD + LOST_BYTES_A_TILE);
        let keys = keys.min(MAX_BLOCK_KEYS) * BYTES_PER_BLOCK_KEY;
        Ok(Announced {
            filter,
            load: keys + tiles + load_threads * LOAD_BYTES_PER_THREAD,
            threads: threads * BYTES_PER_THREAD,
            taken: peak(),
        })
    }

    pub(crate) fn total(&self) -> usize {
        self.filter + self.load + self.threads + self.taken.unwrap_or(0)
    }

    /// Refuses what the machine cannot hold, where it says what it can: a system that hands out memory by the page
    /// might only find out in the middle of the load, and end the program.
    pub(crate) fn check(&self) -> Result<(), String> {
        let needed = self.filter + self.load + self.threads;
        match bytes_in("/proc/meminfo", "MemAvailable:") {
            Some(available) if needed > available => Err(format!(
                "the filter and its load take {:.1} MiB of memory, and {:.1} MiB are available",
                mebibytes(needed),
                mebibytes(available)
            )),
            _ => Ok(()),
        }
    }
}

/// The most memory that this process has had, where the system says so.
pub(crate) fn peak() -> Option<usize> {
    bytes_in("/proc/self/status", "VmHWM:")
}

pub(crate) fn mebibytes(bytes: usize) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// A number in a file of lines such as `VmHWM:     1234 kB`.
fn bytes_in(file: &str, name: &str) -> Option<usize> {
    let lines = fs::read_to_string(file).ok()?;
    let number = lines.lines().find_map(|line| line.strip_prefix(name))?.trim().strip_suffix(" kB")?;
    number.parse::<usize>().ok()?.checked_mul(1024)
}
