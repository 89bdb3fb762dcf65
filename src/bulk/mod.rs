//! Many keys on many threads: hashed in parallel, sorted by shard in blocks of bounded memory, then processed by one
//! task per shard.
//!
//! ```text
//! keys --fill--> block: tiles, each sorted by shard --for_each_shard--> outcomes --> report
//! ```
//!
//! No key crosses shards, so tasks never contend; in a growing filter they may, and one waits (`raw/growing/task`). A
//! task locks all stripes of its shard once for thousands of keys and changes words like any writer: lookups proceed,
//! and a single writer waits for at most one task. A thread with a locked stripe runs no user code and makes no call to
//! rayon: keys are hashed before a task, and reported after it.

#[expect(clippy::disallowed_types, reason = "a lock around spare memory of rayon's threads, no part of the protocol")]
mod block;
mod options;
mod tasks;
mod work;

pub use options::Bulk;

use crate::filter::Filter;
use crate::filter::key::BatchKey;
use crate::filter::kind::{Insert, Kind};
use crate::report::BulkReport;
use core::hash::BuildHasher;

impl<K: ?Sized, S: BuildHasher, T: Insert> Filter<K, S, T> {
    /// Stores a copy of each key, on all threads of the rayon pool that the caller is in (`pool.install`), or of the global one. It goes
    /// on after a refusal, and lists refused keys. The outcome is one that a loop of [`insert`](Filter::insert) might have in some order.
    /// [`bulk`](Filter::bulk) has options and further operations.
    ///
    /// All threads hash keys and sort them by shard in blocks; then a task per shard locks the shard and stores its
    /// keys. Lookups proceed and wait for nothing. A single writer waits at most for the task that holds its shard,
    /// which releases the shard after every 4096 keys ([what may block](Filter#what-may-block)). If the user's `Hash`
    /// panics, the panic propagates to the caller; keys of earlier blocks are stored, and others may not be.
    ///
    /// The calling thread alone stores fewer than 4096 keys. All threads store fewer than 256 keys per shard in
    /// batches, with locks per key. In a filter of one shard (up to about 250,000 keys), all threads hash and one
    /// stores, since threads that contend for so few stripes are slower than one alone.
    ///
    /// A growing filter grows in advance: a 16th of each block predicts the number of new keys in the rest, or in a unique
    /// insertion that of distinct new keys. Expired keys are removed before.
    ///
    /// A child forked after the pool has started has none of the pool's threads, and this call hangs there: create a
    /// pool in the child.
    ///
    /// # Panics
    /// If the caller is in no pool and the system refuses rayon the threads of its global one, which the first parallel operation of a
    /// program starts. Nothing has been stored then, and later operations outside a pool panic too. `rayon::ThreadPoolBuilder::build`
    /// returns an error instead: build a pool, and call this within its `install`.
    ///
    /// # Complexity
    /// Memory beyond filter and keys: 13 bytes per key of a block of at most 2^24 keys, at most 3 more for its runs, and 8 per key that a
    /// thread is sorting: 213 MiB for 128 M slots on two threads, at most 245 MiB and 1 MiB per thread up to 2^31 slots, and never more
    /// than 373 MiB. Then the list of refused keys. Takes the locks of each shard once per block. After a refusal the next search in that
    /// shard visits half as many buckets, down to 32, and twice as many after a success, so that an overfull load does not spend a whole
    /// search on each key; of a load beyond the capacity, some keys may be refused that a loop would have stored.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<u64>::with_capacity(100_000);
    /// let keys: Vec<u64> = (0..100_000).collect();
    /// let report = filter.par_insert(&keys);
    /// assert_eq!(report.inserted, 100_000);
    /// assert!(report.refused.is_empty());
    /// ```
    pub fn par_insert<Q: BatchKey<K, F> + Sync, F>(&self, keys: &[Q]) -> BulkReport
    where
        S: Sync,
    {
        self.bulk().insert(keys)
    }
}

impl<K: ?Sized, S: BuildHasher + Sync, T: Kind> Filter<K, S, T> {
    /// Looks up many keys on all threads of the caller's rayon pool: `found[i]` is the answer of [`contains`](Filter::contains) for
    /// `keys[i]`, at some moment during the call.
    ///
    /// Takes no lock and waits for no writer. Very many keys (16,384 per shard, 8.4 M for 128 M slots) are sorted by shard first, if the
    /// table is larger than 8 MiB and has at most 2^28 slots: a shard fits a core's cache. In larger tables a block has too few keys per
    /// shard to make up for the sorting.
    ///
    /// # Panics
    /// If `keys` and `found` differ in length; if the system refuses rayon its threads, as [`par_insert`](Filter::par_insert).
    ///
    /// # Complexity
    /// That of a loop of `contains`. Memory as of [`par_insert`](Filter::par_insert) where keys are sorted, none otherwise.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<u64>::with_capacity(100);
    /// filter.insert(&1)?;
    /// let mut found = [false; 2];
    /// filter.par_contains(&[0, 1], &mut found);
    /// assert_eq!(found, [false, true]);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[track_caller]
    pub fn par_contains<Q: BatchKey<K, F> + Sync, F>(&self, keys: &[Q], found: &mut [bool]) {
        self.bulk().contains(keys, found);
    }
}

#[cfg(all(test, not(cuckoo_model)))]
#[path = "../../tests/internal/bulk/mod.rs"]
mod tests;
