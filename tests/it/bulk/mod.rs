//! Operations on many keys do what a loop of single operations does, on pools of any size, concurrently with anything else
//! that uses the filter.
//!
//! What a bulk operation has in memory at a time is a block: up to 32,768 keys for each shard, of an iterator half as many.
//! A filter of up to about 250,000 keys is one shard. (Panics of user code: `faults`. Concurrent loads: `stress`.)

mod lists;
mod loops;
mod reports;
mod unique;
mod user_code;

use crate::support::pool;
use concurrent_cuckoo_filter::BulkReport;
use rayon::ThreadPool;
use testkit::{Filter, builder};

const ONE_SHARD: usize = 240_000;
const SOME_SHARDS: usize = 1_000_000;
/// 13 shards. With 24 bits the table is out of cache.
const MANY_SHARDS: usize = 3_200_000;

/// Of an iterator, to a filter of one shard.
const BLOCK: usize = 1 << 14;

/// Filters of one shape have equal seeds, so that false positives are equal too.
fn build(capacity: usize, bits: u32) -> Filter {
    builder(capacity, bits).build().unwrap()
}

fn pools() -> [ThreadPool; 3] {
    [1, 2, 7].map(pool)
}

fn indices(report: &BulkReport) -> Vec<usize> {
    report.refused.iter().map(|refusal| refusal.index).collect()
}
