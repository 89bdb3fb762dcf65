//! Many keys on many threads: hashed in parallel, sorted by shard in blocks of bounded memory, then a task a shard.
//!
//! ```text
//! keys --fill--> block: tiles, each sorted by shard --for_each_shard--> outcomes --> report
//! ```
//!
//! No key crosses shards, so tasks never meet; in a filter that grows they may, and one waits (`raw/growing/task`). A task locks
//! all stripes of its shard once for thousands of keys and changes words as any writer does: lookups go on, and a single
//! writer waits for one task at most. A thread that has a stripe locked runs no user code and asks nothing of rayon: keys are
//! hashed before a task, and reported after it.

#[expect(clippy::disallowed_types, reason = "a lock around spare memory of rayon's threads, no part of the protocol")]
mod block;
mod options;
mod tasks;

pub use options::Bulk;
pub(crate) use options::{par_contains, par_put};

use crate::filter::CuckooFilter;
use crate::report::{BulkReport, RemoveReport};
use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};

impl<K: ?Sized, S: Sync> CuckooFilter<K, S> {
    /// Stores a copy of each key with these hashes, on many threads. As [`par_insert`](CuckooFilter::par_insert).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::with_capacity(10_000);
    /// let hashes: Vec<u64> = (0..10_000).collect();
    /// assert_eq!(filter.par_insert_hash(&hashes).inserted, 10_000);
    /// ```
    pub fn par_insert_hash(&self, hashes: &[u64]) -> BulkReport {
        self.bulk().insert_hash(hashes)
    }

    /// Stores a copy of each key with these hashes, on many threads. As
    /// [`par_insert_iter`](CuckooFilter::par_insert_iter).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::with_capacity(10_000);
    /// assert_eq!(filter.par_insert_iter_hash(0..10_000).inserted, 10_000);
    /// ```
    pub fn par_insert_iter_hash(&self, hashes: impl IntoIterator<Item = u64>) -> BulkReport {
        self.bulk().insert_iter_hash(hashes)
    }

    /// Stores each key with these hashes that is absent, on many threads. As
    /// [`par_insert_unique`](CuckooFilter::par_insert_unique).
    ///
    /// # Panics
    /// If `hashes` and `admitted` differ in length.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::with_capacity(100);
    /// let mut admitted = [false; 2];
    /// assert_eq!(filter.par_insert_unique_hash(&[1, 1], &mut admitted).inserted, 1);
    /// assert_ne!(admitted[0], admitted[1]);
    /// ```
    #[track_caller]
    pub fn par_insert_unique_hash(&self, hashes: &[u64], admitted: &mut [bool]) -> BulkReport {
        self.bulk().insert_unique_hash(hashes, admitted)
    }

    /// Looks up the keys with these hashes, on many threads. As [`par_contains`](CuckooFilter::par_contains).
    ///
    /// # Panics
    /// If `hashes` and `found` differ in length.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::with_capacity(100);
    /// filter.insert_hash(1)?;
    /// let mut found = [false; 2];
    /// filter.par_contains_hash(&[0, 1], &mut found);
    /// assert_eq!(found, [false, true]);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[track_caller]
    pub fn par_contains_hash(&self, hashes: &[u64], found: &mut [bool]) {
        self.bulk().contains_hash(hashes, found);
    }

    /// Removes one copy of each key with these hashes, on many threads. As [`par_remove`](CuckooFilter::par_remove).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::with_capacity(100);
    /// filter.insert_hash(1)?;
    /// let report = filter.par_remove_hash(&[0, 1]);
    /// assert_eq!((report.removed, report.missing), (1, vec![0]));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    pub fn par_remove_hash(&self, hashes: &[u64]) -> RemoveReport {
        self.bulk().remove_hash(hashes)
    }
}

impl<K: ?Sized + Hash, S: BuildHasher + Sync> CuckooFilter<K, S> {
    /// Stores a copy of each key, on all threads of the rayon pool that the caller is in (`pool.install`), or of the
    /// global one. It goes on after a refusal, and says which keys were refused. What becomes of the keys is what a
    /// loop of [`insert`](CuckooFilter::insert) might do with them in some order.
    ///
    /// Keys are hashed by all threads and sorted by shard in blocks; then a task for each shard locks it and stores
    /// its keys. Lookups go on all the while and wait for nothing. A single writer waits at most for the task that
    /// holds its shard, which lets others have their turn after every 4096 keys: during loads of 128 M slots on two
    /// threads, 99.99 % of a third thread's writes took 50 us or less, the scheduler's share on two cores included. If
    /// the user's `Hash` panics, the panic goes on to the caller; keys of the blocks before are stored, others may not
    /// be.
    ///
    /// `keys` holds anything that borrows as the key type, as for [`contains_batch`](CuckooFilter::contains_batch). Fewer
    /// than 4096 keys are stored by this thread alone, and fewer than 256 for each shard by all threads as batches
    /// are, with locks for each key. A filter of one shard (up to about 250,000 keys) is hashed for by all threads and
    /// filled by one: threads that meet in so few stripes are slower than one alone.
    ///
    /// A filter that grows does so ahead of its keys, as far as they need it: of each block, a 16th says how many of the others will
    /// be new. It takes the memory of the keys that it holds then, whatever comes twice.
    ///
    /// A process that was forked off after the pool had started has none of its threads, and hangs here: it needs a pool of
    /// its own.
    ///
    /// # Panics
    /// If the caller is in no pool and the system refuses rayon the threads of its global one, which the first parallel
    /// operation of a program starts. Nothing has been stored then, and later operations outside a pool panic too.
    /// `rayon::ThreadPoolBuilder::build` returns an error instead: build a pool, and call this within its `install`.
    ///
    /// # Complexity
    /// Memory beyond filter and keys: 13 bytes for each key of a block of at most 2^24 keys, 3 more at the most for
    /// its runs, and 8 for each key that a thread is sorting: 213 MiB for 128 M slots on two threads, at most 245 MiB
    /// and 1 MiB for each thread up to 2^31 slots, and never more than 373 MiB. Then the list of refused keys.
    /// Takes the locks of each shard once a block. After a refusal the next search in that shard looks at half as many
    /// buckets, down to 32, and at twice as many after a success, so that an overfull load does not spend a whole
    /// search on each key; of a load beyond what the filter holds, some keys may be refused that a loop would have
    /// stored.
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
    pub fn par_insert<T: Borrow<K> + Sync>(&self, keys: &[T]) -> BulkReport {
        self.bulk().insert(keys)
    }

    /// Stores a copy of each key of an iterator, owned or borrowed, as [`par_insert`](CuckooFilter::par_insert) does
    /// with a slice: a list of any length streams through. Keys are numbered as they come, from 0, and the report
    /// names the refused ones by these numbers.
    ///
    /// An iterator of `&String` does not fit a filter of `str`; `.map(String::as_str)` makes it fit.
    ///
    /// The iterator and the hash function run on this thread, and fill one block while the threads of the pool store
    /// the one before; an iterator must not wait for other work of the same pool. If either panics, the panic goes on
    /// to the caller; up to 2^24 keys before it may not be stored.
    ///
    /// # Panics
    /// As `par_insert`, if there are no threads.
    ///
    /// # Complexity
    /// As `par_insert`, with two blocks of half the size.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    /// use std::io::{BufRead, BufReader};
    ///
    /// let file = BufReader::new("a.com\nb.com\n".as_bytes()); // or a `File`
    /// let blocked = CuckooFilter::<str>::with_capacity(1_000);
    /// let mut broken = None;
    /// let lines = file.lines().map_while(|line| line.map_err(|error| broken = Some(error)).ok());
    /// let report = blocked.par_insert_iter(lines);
    /// assert!(broken.is_none());
    /// assert_eq!(report.inserted, 2);
    /// assert!(blocked.contains("b.com"));
    /// ```
    pub fn par_insert_iter<T: Borrow<K>>(&self, keys: impl IntoIterator<Item = T>) -> BulkReport {
        self.bulk().insert_iter(keys)
    }

    /// Stores each key that is absent, on all threads of the caller's rayon pool: `admitted[i]` says whether `keys[i]` was
    /// stored. Of equal keys exactly one is, in this call and in those of all other threads together. `admitted` is false
    /// for refused keys and for present ones, and the report tells them apart.
    ///
    /// What [`par_insert`](CuckooFilter::par_insert) says of blocks, locks, memory and panics is so here too. "Exactly one" is
    /// said of classes, as everywhere: a key that is a false positive is taken for present.
    ///
    /// # Panics
    /// If `keys` and `admitted` differ in length; as [`par_insert`](CuckooFilter::par_insert), if there are no threads.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let seen = CuckooFilter::<str>::with_capacity(100);
    /// let urls = ["a.com/1", "a.com/2", "a.com/1"];
    /// let mut admitted = [false; 3];
    /// let report = seen.par_insert_unique(&urls, &mut admitted);
    /// assert_eq!((report.inserted, report.present), (2, 1));
    /// assert!(admitted[1] && admitted[0] != admitted[2]);
    /// ```
    #[track_caller]
    pub fn par_insert_unique<T: Borrow<K> + Sync>(&self, keys: &[T], admitted: &mut [bool]) -> BulkReport {
        self.bulk().insert_unique(keys, admitted)
    }

    /// Stores each key of an iterator that is absent. As [`par_insert_iter`](CuckooFilter::par_insert_iter) otherwise; the
    /// report counts the keys that were present.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let seen = CuckooFilter::<u64>::with_capacity(1_000);
    /// let report = seen.par_insert_unique_iter((0..1_000).map(|number| number % 100));
    /// assert_eq!((report.inserted, report.present), (100, 900));
    /// ```
    pub fn par_insert_unique_iter<T: Borrow<K>>(&self, keys: impl IntoIterator<Item = T>) -> BulkReport {
        self.bulk().unique().insert_iter(keys)
    }

    /// Says of each key whether it is present, on all threads of the caller's rayon pool: `found[i]` is what
    /// [`contains`](CuckooFilter::contains) answers for `keys[i]`, asked at some moment during the call.
    ///
    /// Takes no lock and waits for no writer. Very many keys (16,384 for each shard, 8.4 M for 128 M slots) are sorted
    /// by shard first, if the table is larger than 8 MiB and has at most 2^28 slots: a shard fits a core's cache. In
    /// larger tables a block has too few keys for each shard to make up for the sorting.
    ///
    /// # Panics
    /// If `keys` and `found` differ in length; as [`par_insert`](CuckooFilter::par_insert), if there are no threads.
    ///
    /// # Complexity
    /// As a loop of `contains`. Memory as [`par_insert`](CuckooFilter::par_insert) where keys are sorted, none
    /// otherwise.
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
    pub fn par_contains<T: Borrow<K> + Sync>(&self, keys: &[T], found: &mut [bool]) {
        self.bulk().contains(keys, found);
    }

    /// Removes one copy of each key, on all threads of the caller's rayon pool, and says of which there was none.
    /// Remove only what was inserted.
    ///
    /// What [`par_insert`](CuckooFilter::par_insert) says of blocks, locks, memory and panics is so here too.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<u64>::with_capacity(100);
    /// filter.insert(&1)?;
    /// let report = filter.par_remove(&[0, 1]);
    /// assert_eq!((report.removed, report.missing), (1, vec![0]));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    pub fn par_remove<T: Borrow<K> + Sync>(&self, keys: &[T]) -> RemoveReport {
        self.bulk().remove(keys)
    }
}

#[cfg(test)]
mod tests {

    use super::tasks::batches;
    use super::*;

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
    fn progress_is_told_after_each_block() {
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
                // Near the cache, or few for each shard: not sorted.
                assert_eq!(told(&looked_up), [keys.len()]);
            });
        }
    }

    /// A task lets other writers of its shard have their turn. On one thread a block has four tiles, each with a run of
    /// keys for the only shard.
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
                let inserted = counted(&|| assert_eq!(filter.par_insert_hash(&hashes).inserted, hashes.len()));
                (inserted, counted(&|| assert_eq!(filter.par_remove_hash(&hashes).removed, hashes.len())))
            });
            assert_eq!(times, (expected, expected), "{count} keys");
        }
    }
}
