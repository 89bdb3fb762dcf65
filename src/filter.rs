//! The filter, one key at a time: hashes a key and hands the hash to `raw`.

use crate::error::{BuildError, InsertError};
use crate::hashing::{DefaultHashBuilder, hash_of, hash_of_str_bytes};
use crate::layout::{Mixed, Plan};
use crate::raw::{Bare, RawFilter};
use crate::stats::Stats;
use crate::sys::memory::HugePages;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;

/// A concurrent cuckoo filter: an approximate set of keys with removal, shared by all the threads of a program.
///
/// Every method takes `&self`; put the filter into an [`Arc`](std::sync::Arc) or a `static` and use it from any thread.
/// Keys are hashed, not kept: a filter of `K` answers about `K` only, so that a `u64` looked up in a filter of `u32` is
/// a compile error and not a silent "no". `CuckooFilter<str>` takes `&String`, `CuckooFilter<[u8]>` takes `b"abc"`: a
/// reference to anything that dereferences to the key type.
///
/// # Classes and copies
/// Keys of equal fingerprint and equal bucket pair are one *class*, and the filter cannot tell them apart: that is
/// where false positives come from. What this page calls exact is exact for classes. A filter is a multiset of classes:
/// [`insert`](CuckooFilter::insert) stores a copy each time, up to 8 for each class.
///
/// # Consistency
/// - Operations on one key are linearizable: each takes effect at one moment between its call and its return, and a
///   key whose insertion returned before a lookup began, and that was not removed, is found. A write is visible to every
///   thread when it returns: of two threads that each insert a key and then look up the other's, at least one finds it.
///   Between threads that have not synchronized, that rests on a fence behind each write, and on x86-64 on the way in which
///   parking_lot unlocks, which it does not promise; a test watches it.
///   Only where the slots of a width straddle words (all but 4, 8, 16 and 32 bits) may a lookup also see a slot in the
///   middle of being written, and say "yes" to an absent key once.
/// - A lookup takes no lock, writes no shared memory and waits for no writer. It repeats only if meanwhile, in the key's
///   stripe, a key was relocated, one of several copies of a class was removed, the filter was cleared, or it grew:
///   lock-free, not wait-free.
/// - [`insert`](CuckooFilter::insert) locks one stripe where there is room. [`insert_unique`](CuckooFilter::insert_unique),
///   removals and [`count`](CuckooFilter::count) lock the stripes of both buckets, and so does each relocation; the last
///   one for a unique key locks three. All stripes of a shard are locked to clear it, to refuse a key as full, and to
///   insert a key after other writers have spoiled its path four or five times.
/// - [`len`](CuckooFilter::len) and what is computed from it add up counts that are read one after the other.
///
/// # Determinism
/// The same version of this crate, the same seeds and sizes, and the same sequence of changes by one thread give the same
/// [snapshot](CuckooFilter::write_to), byte for byte, also if a filter goes on from a snapshot that was loaded. Changes by several
/// threads, bulk operations included, may give others. Filters with tags, and filters that grow, keep this promise, too.
///
/// # In a `static`, and from an iterator
/// A `static` takes a [`LazyLock`](std::sync::LazyLock):
/// `static SEEN: LazyLock<CuckooFilter<str>> = LazyLock::new(|| CuckooFilter::with_capacity(1_000));`
///
/// There is neither `Extend` nor `FromIterator`: they could not say that a key was refused.
/// [`Builder::items`](crate::Builder::items) makes a filter of a list, and [`insert_batch`](CuckooFilter::insert_batch)
/// reports.
///
/// # What may block
/// In an async server, what may take long belongs on a thread of its own (`tokio::task::spawn_blocking`).
///
/// | | may park its thread | on an executor |
/// |---|---|---|
/// | `contains`, `contains_batch`, `len`, `stats` and all else that only tells, but `count` | never | yes |
/// | `insert`, `remove`, `count` and their kind | while another writer is in one of the key's stripes | yes |
/// | an insertion that splits a table of a filter that grows, `reserve` | the same, for all of a table; some 0.7 ms per table | after `reserve` an insertion splits none |
/// | `insert_batch`, `remove_batch` | the same, for each key | up to some hundred keys |
/// | `clear` | the same, for each shard, and it reads all the memory | if the filter is small |
/// | `par_insert` and its kind, `bulk`, `save`, `load`, `merge_from` | yes, and they take as long as their data | no |
///
/// A critical section is a few reads and writes, for one key, or for the part of a bulk operation or a snapshot that is
/// one shard's: no I/O, no code of yours, no wait for anything but another stripe. Of the writes of one thread (2^27
/// slots, 2 cores, `cargo run --release -p compare -- latency --large 27`), 99.99 % took 2 us or less while three other
/// threads wrote too, and 62 us or less during bulk loads on both cores or saves without pause. What takes longer, up to
/// 12 ms there, waits for a holder of the lock that the system has stopped.
///
/// No method returns a guard: nothing of a filter can be held across an `await`. A future of yours that is dropped has
/// either not called a method or has seen it return.
///
/// ```
/// use concurrent_cuckoo_filter::CuckooFilter;
///
/// let filter = CuckooFilter::<str>::with_capacity(1_000);
/// std::thread::scope(|scope| {
///     scope.spawn(|| filter.insert("mailinator.com"));
///     scope.spawn(|| filter.insert("0-mail.com"));
/// });
/// assert!(filter.contains("mailinator.com"));
/// assert!(filter.remove("mailinator.com"));
/// assert!(!filter.contains("mailinator.com"));
/// assert_eq!(filter.len(), 1);
/// ```
pub struct CuckooFilter<K: ?Sized, S = DefaultHashBuilder> {
    pub(crate) raw: RawFilter,
    hasher: S,
    capacity: usize,
    /// The same of a filter that does not grow.
    pub(crate) max_capacity: usize,
    /// The rate that was asked for; 0 where a width was.
    rate: f64,
    key: PhantomData<fn(&K)>,
}

impl<K: ?Sized, S> CuckooFilter<K, S> {
    /// Takes the memory of the plan, `bytes` in all.
    pub(crate) fn from_plan(
        capacities: [usize; 2],
        rate: Option<f64>,
        plan: &Plan,
        huge_pages: HugePages,
        bytes: usize,
        hasher: S,
    ) -> Result<Self, BuildError> {
        let raw = RawFilter::new(plan, huge_pages).ok_or(BuildError::OutOfMemory { bytes })?;
        Ok(CuckooFilter::from_raw(capacities, rate, raw, hasher))
    }

    pub(crate) fn from_raw([capacity, max_capacity]: [usize; 2], rate: Option<f64>, raw: RawFilter, hasher: S) -> Self {
        CuckooFilter { raw, hasher, capacity, max_capacity, rate: rate.unwrap_or(0.0), key: PhantomData }
    }

    /// The memory of a filter of this plan; `None` if no address space holds it.
    pub(crate) fn bytes_of(plan: &Plan) -> Option<usize> {
        Self::bytes_at(plan, 0)
    }

    /// The same when all tables of a growing filter have doubled so often.
    pub(crate) fn bytes_at(plan: &Plan, doublings: u32) -> Option<usize> {
        let bytes = RawFilter::<Bare>::bytes_at(plan, doublings)?.checked_add(size_of::<Self>())?;
        isize::try_from(bytes).is_ok().then_some(bytes)
    }

    #[inline]
    pub(crate) fn plan(&self) -> &Plan {
        self.raw.plan()
    }

    /// Stores a copy of the key with this hash. As [`insert`](CuckooFilter::insert).
    ///
    /// # Errors
    /// As [`insert`](CuckooFilter::insert).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::with_capacity(100);
    /// let hash = filter.hash("key");
    /// filter.insert_hash(hash)?;
    /// assert!(filter.contains("key"));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> Result<(), InsertError> {
        self.raw.insert(Mixed::of(hash))
    }

    /// Stores the key with this hash if it is absent. As [`insert_unique`](CuckooFilter::insert_unique).
    ///
    /// # Errors
    /// As [`insert_unique`](CuckooFilter::insert_unique).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::with_capacity(100);
    /// assert_eq!(filter.insert_unique_hash(7), Ok(true));
    /// assert_eq!(filter.insert_unique_hash(7), Ok(false));
    /// ```
    #[inline]
    pub fn insert_unique_hash(&self, hash: u64) -> Result<bool, InsertError> {
        self.raw.insert_unique(Mixed::of(hash))
    }

    /// Says whether the key with this hash is present. As [`contains`](CuckooFilter::contains).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::with_capacity(100);
    /// filter.insert("key")?;
    /// assert!(filter.contains_hash(filter.hash("key")));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.raw.contains(Mixed::of(hash))
    }

    /// Counts the copies of the key with this hash. As [`count`](CuckooFilter::count).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::with_capacity(100);
    /// filter.insert_hash(7)?;
    /// filter.insert_hash(7)?;
    /// assert_eq!(filter.count_hash(7), 2);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[must_use]
    pub fn count_hash(&self, hash: u64) -> usize {
        self.raw.count(Mixed::of(hash))
    }

    /// Removes one copy of the key with this hash. As [`remove`](CuckooFilter::remove).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::with_capacity(100);
    /// filter.insert_hash(7)?;
    /// assert!(filter.remove_hash(7));
    /// assert!(!filter.remove_hash(7));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    pub fn remove_hash(&self, hash: u64) -> bool {
        self.raw.remove(Mixed::of(hash))
    }

    /// Removes every copy of the key with this hash. As [`remove_all`](CuckooFilter::remove_all).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::with_capacity(100);
    /// filter.insert_hash(7)?;
    /// filter.insert_hash(7)?;
    /// assert_eq!(filter.remove_all_hash(7), 2);
    /// assert!(filter.is_empty());
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    pub fn remove_all_hash(&self, hash: u64) -> usize {
        self.raw.remove_all(Mixed::of(hash))
    }

    /// Removes everything, a shard at a time.
    ///
    /// It is not atomic across keys: concurrent lookups find some keys and miss others, and what other threads insert
    /// meanwhile may stay or go. Each key by itself is either there or gone. Memory stays reserved.
    ///
    /// # Complexity
    /// Reads every word and writes those that hold keys, with all stripes of one shard (2^16 buckets at the most)
    /// locked at a time.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::with_capacity(100);
    /// filter.insert("key")?;
    /// filter.clear();
    /// assert!(filter.is_empty());
    /// assert!(!filter.contains("key"));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    pub fn clear(&self) {
        self.raw.clear();
    }

    /// Counts the stored copies.
    ///
    /// A sum over all stripes, each read at a moment of its own: exact when there are no writers. Concurrently with
    /// writers it may miss or include what changes meanwhile, and see a copy that is being relocated twice or not at all.
    /// These errors do not add up: they are gone once the writers have returned.
    ///
    /// # Complexity
    /// Reads one number for each stripe, 1024 or about as many shards as there are at the most; takes no lock. A filter that
    /// grows has two stripes or more in each of its [`tables`](crate::Stats::tables), which are visited one after the other.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::with_capacity(100);
    /// filter.insert("key")?;
    /// filter.insert("key")?;
    /// assert_eq!(filter.len(), 2);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// Says whether [`len`](CuckooFilter::len) is 0.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// assert!(CuckooFilter::<str>::with_capacity(100).is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of keys that was asked for. The table has room for a few more, without promise.
    /// [`max_capacity`](CuckooFilter::max_capacity) tells what it grows to.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// assert_eq!(CuckooFilter::<str>::with_capacity(100).capacity(), 100);
    /// ```
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The part of all slots that is in use: [`len`](CuckooFilter::len) / slots. About 0.96 at a full capacity
    /// of 100,000 keys or more, less in smaller filters.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<u64>::with_capacity(1_000_000);
    /// for key in 0..1_000_000 {
    ///     filter.insert(&key)?;
    /// }
    /// assert!(filter.load_factor() > 0.96);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[must_use]
    pub fn load_factor(&self) -> f64 {
        self.len() as f64 / self.raw.slots() as f64
    }

    /// The false-positive rate that was asked for; `None` if a width was.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// assert_eq!(CuckooFilter::<u64>::with_capacity(100).false_positive_rate(), Some(0.001));
    /// let filter = CuckooFilter::<u64>::builder().capacity(100).fingerprint_bits(16).build()?;
    /// assert_eq!(filter.false_positive_rate(), None);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[must_use]
    pub fn false_positive_rate(&self) -> Option<f64> {
        (self.rate > 0.0).then_some(self.rate)
    }

    /// The slots of the table, each of which holds a copy: a few per cent more than the [`capacity`](CuckooFilter::capacity).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<u64>::with_capacity(1_000_000);
    /// assert_eq!(filter.slots(), 1_038_336);
    /// ```
    #[must_use]
    pub fn slots(&self) -> usize {
        self.raw.slots()
    }

    /// Says whether the filter holds its capacity or more, that to which it grows if it does. Some keys may go in all the same, at a rate above the one that was
    /// asked for, until an insertion is refused.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<u64>::with_capacity(100);
    /// (0..99).for_each(|key| filter.insert(&key).unwrap());
    /// assert!(!filter.is_full());
    /// filter.insert(&99)?;
    /// assert!(filter.is_full());
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len() >= self.max_capacity
    }

    /// Bits of a fingerprint, 4 to 32. Of a filter that grows, those that it would have if it had its largest size from the
    /// beginning.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// assert_eq!(CuckooFilter::<str>::with_capacity(100_000).fingerprint_bits(), 13);
    /// ```
    #[must_use]
    pub fn fingerprint_bits(&self) -> u32 {
        self.plan().told_bits()
    }

    /// The part of absent keys that [`contains`](CuckooFilter::contains) takes for present, at the present load:
    /// 1 - exp(-8 load / (2^f - 1)) for fingerprints of f bits. In a filter that grows it rises with the number of keys, and
    /// reaches the rate asked for when there are as many as it can grow to.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<u64>::with_capacity(10_000);
    /// assert_eq!(filter.expected_false_positive_rate(), 0.0);
    /// for key in 0..10_000 {
    ///     filter.insert(&key)?;
    /// }
    /// let rate = filter.expected_false_positive_rate();
    /// assert!(0.0005 < rate && rate <= 0.001);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[must_use]
    pub fn expected_false_positive_rate(&self) -> f64 {
        Stats::of(&self.raw).expected_false_positive_rate
    }

    /// Bytes of memory, everything included: table, stripes and the value itself. Most of it is not backed by pages before
    /// keys arrive. Large tables are aligned to 2 MiB, which takes some address space more, and no memory.
    /// [`Builder::memory_usage`](crate::Builder::memory_usage) tells it beforehand.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let bytes = CuckooFilter::<str>::with_capacity(1_000_000).memory_usage();
    /// assert!((bytes as f64) < 1.015 * 1_000_000.0 * 13.0 / 8.0 / 0.96);
    /// ```
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        size_of::<Self>() + self.raw.heap_bytes()
    }

    /// The number of shards: small filters of their own, between which no key ever moves. A list can be split by
    /// [`shard_of`](CuckooFilter::shard_of), built in parts and [joined](CuckooFilter::join).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// assert_eq!(CuckooFilter::<u64>::with_capacity(1_000_000).shards(), 4);
    /// ```
    #[must_use]
    pub fn shards(&self) -> usize {
        self.plan().shards
    }

    /// The shard of the key with this hash. As [`shard_of`](CuckooFilter::shard_of).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<u64>::with_capacity(1_000_000);
    /// assert_eq!(filter.shard_of_hash(filter.hash(&7)), filter.shard_of(&7));
    /// ```
    #[must_use]
    pub fn shard_of_hash(&self, hash: u64) -> usize {
        self.raw.geometry().shard(Mixed::of(hash))
    }

    /// The class of the key with this hash. As [`class_of`](CuckooFilter::class_of).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::with_capacity(100);
    /// assert_eq!(filter.class_of_hash(filter.hash("key")), filter.class_of("key"));
    /// ```
    #[must_use]
    pub fn class_of_hash(&self, hash: u64) -> u128 {
        self.raw.geometry().class_number(Mixed::of(hash))
    }

    /// The hash function, for building other filters that hash alike.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let one = CuckooFilter::<str>::with_capacity(100);
    /// let other = CuckooFilter::<str, _>::with_capacity_and_hasher(200, one.hasher().clone());
    /// assert_eq!(one.hash("key"), other.hash("key"));
    /// ```
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.hasher
    }
}

impl<K: ?Sized + Hash, S: BuildHasher> CuckooFilter<K, S> {
    /// Hashes the key, for the methods that end in `_hash`: to hash once and ask several filters that share a hasher,
    /// or to hash where the key is and ask elsewhere. It is what [`BuildHasher::hash_one`] returns, unless that method is
    /// overridden: filters call `build_hasher`, `hash` and `finish`.
    ///
    /// The result depends on the key and the hasher, not on the filter: filters agree on it if their hashers have the same
    /// type and the same keys. Numbers from elsewhere, such as identifiers or hashes of another function, may be used as
    /// hashes too, of whatever quality, by a filter that is only asked through `_hash` methods.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    /// use std::hash::BuildHasher;
    ///
    /// let filter = CuckooFilter::<str>::with_capacity(100);
    /// filter.insert("key")?;
    /// assert!(filter.contains_hash(filter.hash("key")));
    /// assert_eq!(filter.hash("key"), filter.hash(&String::from("key")));
    /// assert_eq!(filter.hash("key"), filter.hasher().hash_one("key"));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[inline(always)]
    #[must_use]
    pub fn hash(&self, key: &K) -> u64 {
        hash_of(&self.hasher, key)
    }

    /// Hashes the key, begins to fetch from memory all that a lookup of it reads, and returns the hash, for
    /// [`contains_hash`](CuckooFilter::contains_hash): a lookup in two steps, for callers that cannot batch their keys but know a
    /// key before they need the answer. Out of cache, a lookup waits for its lines; begun ahead, several wait at the same time.
    ///
    /// Nothing is read yet: the answer is as of the second step, and a key that is inserted or removed between the steps is
    /// found as if there had been no first one. A prefetch that comes to nothing costs a few nanoseconds. Where the
    /// filter fits the caches, [`contains`](CuckooFilter::contains) alone is faster; where several keys are known at the same
    /// time, [`contains_batch`](CuckooFilter::contains_batch) is. A growing filter reads its directory in the first step.
    ///
    /// A loop that begins eight lookups, then reads their answers:
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<u64>::with_capacity(1_000);
    /// (0..500).try_for_each(|key| filter.insert(&key))?;
    ///
    /// let keys = Vec::from_iter(400..600_u64);
    /// let (mut hashes, mut found) = ([0; 8], 0);
    /// for keys in keys.chunks(8) {
    ///     for (hash, key) in hashes.iter_mut().zip(keys) {
    ///         *hash = filter.prefetch(key);
    ///     }
    ///     found += hashes[..keys.len()].iter().filter(|&&hash| filter.contains_hash(hash)).count();
    /// }
    /// assert!(found >= 100);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    ///
    /// A handler that begins when a request arrives, and reads the answer after it has waited for something else:
    /// ```
    /// # use concurrent_cuckoo_filter::CuckooFilter;
    /// # async fn authenticate(_: &str) -> bool { true }
    /// async fn is_blocked(filter: &CuckooFilter<str>, user: &str, domain: &str) -> bool {
    ///     let hash = filter.prefetch(domain);
    ///     authenticate(user).await && filter.contains_hash(hash)
    /// }
    /// # let filter = CuckooFilter::<str>::with_capacity(100);
    /// # filter.insert("spam.example")?;
    /// # let mut blocked = std::pin::pin!(is_blocked(&filter, "user", "spam.example"));
    /// # let context = &mut std::task::Context::from_waker(std::task::Waker::noop());
    /// # assert_eq!(blocked.as_mut().poll(context), std::task::Poll::Ready(true));
    /// # use std::future::Future;
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[inline]
    #[must_use = "the hash is what the second step takes"]
    pub fn prefetch(&self, key: &K) -> u64 {
        let hash = self.hash(key);
        self.raw.prefetch(Mixed::of(hash));
        hash
    }

    /// Hashes another form of a key, for the twins that end in `_hash`: one that hashes as the key does, such as `(u32, &str)` for
    /// `(u32, String)`. **Whether it does is yours to know.** Where it does not, the filter answers for another key. Tuples and
    /// derived structs hash field by field, `&T`, `Box<T>` and the like as `T`, `String` as `str` and `Vec<T>` as `[T]`; an array does
    /// not hash as a tuple, nor `u32` as `u64`.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<(u32, String)>::with_capacity(100);
    /// filter.insert(&(7, String::from("name")))?;
    /// assert!(filter.contains_hash(filter.hash_equivalent(&(7_u32, "name"))));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn hash_equivalent<Q: ?Sized + Hash>(&self, key: &Q) -> u64 {
        hash_of(&self.hasher, key)
    }

    /// What places the key: its hash, spread over the whole word.
    #[inline(always)]
    pub(crate) fn mixed(&self, key: &K) -> Mixed {
        Mixed::of(self.hash(key))
    }

    /// The number of the shard in which the key lies or would lie, below [`shards`](CuckooFilter::shards).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<u64>::with_capacity(1_000_000);
    /// assert!(filter.shard_of(&7) < filter.shards());
    /// ```
    #[must_use]
    pub fn shard_of(&self, key: &K) -> usize {
        self.raw.geometry().shard(self.mixed(key))
    }

    /// The class of the key, present or not: a number that two keys share exactly if the filter cannot tell them apart,
    /// whatever size it grows to. It is for what is kept beside a filter by class, such as copies of a key beyond the eighth.
    ///
    /// It stays the same for as long as the filter lives, and is the same in its clones, in filters that are loaded from its
    /// snapshots, and in all others of equal plan, hasher and seeds. It is below 2^64 in filters with room for up to 2^34 keys at
    /// the beginning.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, InsertError};
    /// use std::collections::HashMap;
    ///
    /// let filter = CuckooFilter::<str>::growing(100..=100_000);
    /// let mut more = HashMap::<u128, usize>::new();
    /// for _ in 0..20 {
    ///     if filter.insert("key") == Err(InsertError::TooManyCopies) {
    ///         *more.entry(filter.class_of("key")).or_default() += 1;
    ///     }
    /// }
    /// assert_eq!(filter.count("key") + more[&filter.clone().class_of("key")], 20);
    /// ```
    #[must_use]
    pub fn class_of(&self, key: &K) -> u128 {
        self.class_of_hash(self.hash(key))
    }

    /// Stores a copy of the key, whether it is present or not.
    ///
    /// Use this where keys are removed: each inserted key has a copy of its own, so that [`remove`](CuckooFilter::remove) never
    /// takes that of another. Every copy occupies a slot until it is removed; [`insert_unique`](CuckooFilter::insert_unique)
    /// stores a key once.
    ///
    /// # Errors
    /// [`InsertError::Full`], [`InsertError::TooManyCopies`] and, in a filter that grows, [`InsertError::OutOfMemory`] store
    /// nothing.
    ///
    /// # Complexity
    /// Two buckets, and one lock where one of them has room. Where both are full, about 1.4 relocations at 95 % load, each
    /// under two or three locks of its own. A refusal searches up to 2000 buckets twice, and up to five times if other
    /// writers interfere, the last time with all stripes of the shard locked.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::with_capacity(100);
    /// filter.insert("key")?;
    /// filter.insert("key")?;
    /// assert_eq!(filter.count("key"), 2);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[inline]
    pub fn insert(&self, key: &K) -> Result<(), InsertError> {
        self.raw.insert(self.mixed(key))
    }

    /// Stores the key if it is absent, and returns whether it was.
    ///
    /// Use this to admit keys that are not removed. After `Ok(false)` the key has no copy of its own: removing it takes the copy
    /// of an equal key or, after a false positive, of another key, which lookups then miss. Where keys are removed, use
    /// [`insert`](CuckooFilter::insert).
    ///
    /// Of several threads that do this with one key at the same time, at most one gets `Ok(true)`; exactly one, if the
    /// key's class was absent, it is not removed, and no insertion of it is refused. `Ok(false)` may be a false positive,
    /// like the "yes" of a lookup.
    ///
    /// # Errors
    /// [`InsertError::Full`] and, in a filter that grows, [`InsertError::OutOfMemory`] store nothing.
    ///
    /// # Complexity
    /// As [`insert`](CuckooFilter::insert), with the stripes of both buckets locked: one lock or two.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let seen = CuckooFilter::<str>::with_capacity(100);
    /// assert!(seen.insert_unique("event 1")?);
    /// assert!(!seen.insert_unique("event 1")?);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[inline]
    pub fn insert_unique(&self, key: &K) -> Result<bool, InsertError> {
        self.raw.insert_unique(self.mixed(key))
    }

    /// Says whether the key is present: "no" is certain, "yes" is wrong at the
    /// [expected rate](CuckooFilter::expected_false_positive_rate).
    ///
    /// Takes no lock and waits for no writer, not even one that was stopped in the middle of its work.
    ///
    /// # Complexity
    /// One version and two buckets: three cache lines, and at most two more where the words of a bucket lie in two
    /// lines (never at 16 bits); the version once more for a "no".
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<[u8]>::with_capacity(100);
    /// filter.insert(b"abc")?;
    /// assert!(filter.contains(b"abc"));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains(&self, key: &K) -> bool {
        self.raw.contains(self.mixed(key))
    }

    /// Counts the copies of the key, 0 to 8. Exact for its class: other keys of the class count too.
    ///
    /// # Complexity
    /// Two buckets, under one or two locks.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::with_capacity(100);
    /// assert_eq!(filter.count("key"), 0);
    /// filter.insert("key")?;
    /// assert_eq!(filter.count("key"), 1);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[must_use]
    pub fn count(&self, key: &K) -> usize {
        self.raw.count(self.mixed(key))
    }

    /// Removes one copy of the key and says whether there was one. A present key is always removed, whatever other
    /// threads do meanwhile.
    ///
    /// Remove only what was inserted. The removal of a key that never was may, as often as a lookup is wrong, take
    /// away the copy of another key of its class, which is then missed.
    ///
    /// # Complexity
    /// Two buckets, under one or two locks.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::with_capacity(100);
    /// filter.insert("key")?;
    /// assert!(filter.remove("key"));
    /// assert!(!filter.remove("key"));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    pub fn remove(&self, key: &K) -> bool {
        self.raw.remove(self.mixed(key))
    }

    /// Removes every copy of the key and says how many there were.
    ///
    /// This takes the copies of other keys of the class too. Prefer [`remove`](CuckooFilter::remove) unless the key
    /// alone is known to be stored.
    ///
    /// # Complexity
    /// Two buckets, under one or two locks.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::with_capacity(100);
    /// filter.insert("key")?;
    /// filter.insert("key")?;
    /// assert_eq!(filter.remove_all("key"), 2);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    pub fn remove_all(&self, key: &K) -> usize {
        self.raw.remove_all(self.mixed(key))
    }
}

impl<S: BuildHasher> CuckooFilter<str, S> {
    /// Hashes a text that is given as bytes: the same hash as that of the `str`, without a check that it is one. What other
    /// systems call a string is not always UTF-8, and has a hash here all the same.
    ///
    /// A hasher sees what `str` feeds it, by [`write`](core::hash::Hasher::write) and `write_u8`. One that treats texts by a
    /// method of their own (`Hasher::write_str`, unstable) hashes them otherwise; none of this crate does.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::with_capacity(100);
    /// assert_eq!(filter.hash_str_bytes(b"key"), filter.hash("key"));
    /// filter.insert_hash(filter.hash_str_bytes(b"\xff is no text"))?;
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn hash_str_bytes(&self, text: &[u8]) -> u64 {
        hash_of_str_bytes(&self.hasher, text)
    }
}

impl<K: ?Sized, S> fmt::Debug for CuckooFilter<K, S> {
    /// Shows size, load and rate, not contents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CuckooFilter")
            .field("len", &self.len())
            .field("capacity", &self.capacity)
            .field("load_factor", &self.load_factor())
            .field("max_capacity", &self.max_capacity)
            .field("fingerprint_bits", &self.fingerprint_bits())
            .field("expected_false_positive_rate", &self.expected_false_positive_rate())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_knows_the_rate_that_it_was_asked_for() {
        let builder = || CuckooFilter::<u64>::builder().capacity(10);
        assert_eq!(builder().false_positive_rate(0.25).build().unwrap().false_positive_rate(), Some(0.25));
        assert_eq!(builder().build().unwrap().false_positive_rate(), Some(0.001));
        assert_eq!(builder().fingerprint_bits(8).build().unwrap().false_positive_rate(), None);
    }

    #[test]
    fn load_and_rate_are_those_of_the_slots() {
        let filter = CuckooFilter::<u64>::builder().capacity(0).fingerprint_bits(8).build().unwrap();
        (0..4).for_each(|hash| filter.insert_hash(hash).unwrap());
        // Four of 16 slots.
        assert_eq!(filter.load_factor(), 0.25);
        assert!((filter.expected_false_positive_rate() - 0.007_812_5).abs() < 1e-4);
        let stats = filter.stats();
        assert_eq!(stats.load_factor, filter.load_factor());
        assert_eq!(stats.expected_false_positive_rate, filter.expected_false_positive_rate());
    }

    #[test]
    fn a_key_lies_in_the_shard_that_is_said() {
        let filter = CuckooFilter::<u64>::builder().capacity(1_000_000).build().unwrap();
        assert_eq!(filter.shards(), 4);
        for key in 0..100 {
            let (shard, hash) = (filter.shard_of(&key), filter.hash(&key));
            assert_eq!(filter.shard_of_hash(hash), shard);
            let before: Vec<_> = filter.raw.flat().each().map(|shard| shard.len()).collect();
            filter.insert(&key).unwrap();
            for (number, before) in before.into_iter().enumerate() {
                assert_eq!(filter.raw.flat().at(number).len() - before, u64::from(number == shard));
            }
        }
    }
}
