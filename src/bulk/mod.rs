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
    /// which releases the shard after every 4096 keys: during loads of 128 M slots on two threads, 99.99 % of a third
    /// thread's writes took 50 us or less, including the scheduler on two cores. If the user's `Hash` panics, the panic
    /// propagates to the caller; keys of earlier blocks are stored, and others may not be.
    ///
    /// The calling thread alone stores fewer than 4096 keys. All threads store fewer than 256 keys per shard in
    /// batches, with locks per key. In a filter of one shard (up to about 250,000 keys), all threads hash and one
    /// stores, since threads that contend for so few stripes are slower than one alone.
    ///
    /// A growing filter grows in advance: a 16th of each block predicts the number of new keys in the rest. Its memory
    /// is then that of the distinct keys.
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
    /// assert!(report.rejected.is_empty());
    /// ```
    pub fn par_insert<Q: BatchKey<K, F> + Sync, F>(&self, keys: &[Q]) -> BulkReport
    where
        S: Sync,
    {
        self.bulk().insert(keys)
    }

    /// Stores a copy of each key of an iterator, owned or borrowed, as [`par_insert`](Filter::par_insert) does with a slice: a list of any
    /// length streams through. Keys are numbered as they come, from 0, and the report names refused keys by these numbers.
    ///
    /// The iterator and the hash function run on the calling thread, and fill one block while the threads of the pool
    /// store the one before; an iterator must not wait for other work of the same pool. If either panics, the panic
    /// propagates to the caller; up to 2^24 keys before it may not be stored.
    ///
    /// # Panics
    /// If the system refuses rayon its threads, like [`par_insert`](Filter::par_insert).
    ///
    /// # Complexity
    /// That of [`par_insert`](Filter::par_insert), with two blocks of half the size.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    /// use std::io::{BufRead, BufReader};
    ///
    /// let file = BufReader::new("a.com\nb.com\n".as_bytes()); // or a `File`
    /// let blocked = CuckooFilter::<String>::with_capacity(1_000);
    /// let mut broken = None;
    /// let lines = file.lines().map_while(|line| line.map_err(|error| broken = Some(error)).ok());
    /// let report = blocked.par_insert_iter(lines);
    /// assert!(broken.is_none());
    /// assert_eq!(report.inserted, 2);
    /// assert!(blocked.contains("b.com"));
    ///
    /// let more = vec![String::from("c.com")];
    /// assert_eq!(blocked.par_insert_iter(more.iter()).inserted, 1);
    /// ```
    pub fn par_insert_iter<Q: BatchKey<K, F>, F>(&self, keys: impl IntoIterator<Item = Q>) -> BulkReport {
        self.bulk().insert_iter(keys)
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

#[cfg(test)]
mod tests {

    use super::tasks::batches;
    use crate::CuckooFilter;

    use crate::sys::steps::{Step, with_hook};
    use std::cell::Cell;
    use std::rc::Rc;

    fn filter(capacity: usize) -> CuckooFilter<u64> {
        CuckooFilter::builder().capacity(capacity).fingerprint_bits(16).build().unwrap()
    }

    #[test]
    fn few_keys_are_not_sorted() {
        let sorted = |filter: &CuckooFilter<u64>, keys| filter.raw.block::<bool>(keys).is_some();
        let small = filter(1000);
        assert!(!sorted(&small, 4095) && sorted(&small, 4096));
        // Its memory is reserved, not written.
        let large = filter(10_000_000);
        let enough = large.shards() * 256;
        assert!(enough > 4096 && !sorted(&large, enough - 1) && sorted(&large, enough));
    }

    #[test]
    fn few_keys_are_one_batch() {
        let lengths = |count: usize| batches(0..count, None, |keys, _| keys.len());
        assert_eq!(lengths(0), [0]);
        assert_eq!(lengths(4096), [4096]);
        assert_eq!(lengths(4097), [4096, 1]);
    }

    /// Into a filter of one shard, and of forty: the keys of few batches, and of blocks of which the last is not full.
    #[test]
    fn progress_is_reported_after_each_block() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let told = |work: &dyn Fn(&mut Vec<usize>)| {
            let mut told = Vec::new();
            work(&mut told);
            told
        };
        for (capacity, count, in_a_slice, in_a_stream) in [
            (100_000, 0, vec![0], vec![0]),
            (100_000, 100, vec![100], vec![100]),
            (100_000, 4095, vec![4095], vec![4095]),
            (100_000, 4096, vec![4096], vec![2048, 4096]),
            (100_000, 40_000, vec![32_768, 40_000], vec![16_384, 32_768, 40_000]),
            (10_000_000, 9000, vec![9000], vec![4500, 9000]),
        ] {
            let keys: Vec<u64> = (0..count).collect();
            pool.install(|| {
                let filter = filter(capacity);
                let bulk = || filter.bulk();
                let inserted = |told: &mut Vec<_>| {
                    assert_eq!(bulk().progress(|done| told.push(done)).insert(&keys).inserted, keys.len());
                };
                let removed = |told: &mut Vec<_>| {
                    assert_eq!(bulk().progress(|done| told.push(done)).remove(&keys).removed, keys.len());
                };
                let streamed = |told: &mut Vec<_>| {
                    assert_eq!(bulk().progress(|done| told.push(done)).insert_iter(&keys).inserted, keys.len());
                };
                let looked_up = |told: &mut Vec<_>| {
                    let mut found = vec![false; keys.len()];
                    bulk().progress(|done| told.push(done)).contains(&keys, &mut found);
                    assert!(found.iter().all(|&found| found));
                };
                assert_eq!(told(&inserted), in_a_slice);
                assert_eq!(told(&removed), in_a_slice);
                assert_eq!(told(&streamed), in_a_stream);
                // The table fits the cache, or a shard has few keys: not sorted.
                assert_eq!(told(&looked_up), [keys.len()]);
            });
        }
    }

    /// A task lets other writers of its shard proceed. On one thread a block has four tiles, each with a run of keys
    /// for the only shard.
    #[test]
    fn a_task_locks_its_shard_anew_after_at_most_4096_keys() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        // 4 runs of 1024, of 2048 and of 2500; 4 runs of 8192, and a block of 4096 and 3136 in one tile.
        for (count, expected) in [(4096, 1), (8192, 2), (10_000, 4), (40_000, 10)] {
            let hashes: Vec<u64> = (0..count).collect();
            let times = pool.install(|| {
                let filter = filter(100_000);
                let counted = |work: &dyn Fn()| {
                    let locked = Rc::new(Cell::new(0));
                    let noted = Rc::clone(&locked);
                    with_hook(move |step| noted.set(noted.get() + usize::from(step == Step::Locked)), work);
                    locked.get()
                };
                let inserted = counted(&|| assert_eq!(filter.hashed().par_insert(&hashes).inserted, hashes.len()));
                (inserted, counted(&|| assert_eq!(filter.hashed().bulk().remove(&hashes).removed, hashes.len())))
            });
            assert_eq!(times, (expected, expected), "{count} keys");
        }
    }
}
