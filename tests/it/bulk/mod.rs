//! Operations on many keys have the results of a loop of single operations, on pools of any size, concurrently with any other use
//! of the filter.
//!
//! A bulk operation holds one block in memory at a time: up to 32,768 keys per shard, from an iterator half as many. A filter of
//! up to about 250,000 keys is one shard. (`faults` tests panics of user code, `stress` concurrent loads.)

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
/// Three shards.
const SOME_SHARDS: usize = 700_000;
/// Thirteen shards. With 24 bits the table is beyond the cache.
const MANY_SHARDS: usize = 3_200_000;

/// The block of an iterator, for a filter of one shard.
const BLOCK: usize = 1 << 14;

/// Filters of one shape have equal seeds, and so equal false positives.
fn build(capacity: usize, bits: u32) -> Filter {
    builder(capacity, bits).build().unwrap()
}

fn pools() -> [ThreadPool; 3] {
    [1, 2, 7].map(pool)
}

fn indices(report: &BulkReport) -> Vec<usize> {
    report.refused.iter().map(|refusal| refusal.index).collect()
}
