//! The filter type, shared by all kinds: it hashes keys and passes the hashes to `raw`.
//!
//! ```text
//! mod        the type, its aliases, size and statistics
//! kind       the differences of the four kinds
//! key        the forms of keys in batches
//! single     one key at a time
//! batch      many keys on the calling thread
//! time       the clock of kinds whose keys or counts die
//! expiring, counting, tagged   operations of one kind
//! copy       clones and merges
//! ```

mod batch;
mod copy;
mod counting;
mod expiring;
pub(crate) mod key;
pub(crate) mod kind;
mod single;
mod tagged;
mod time;

pub(crate) use batch::{assert_same_length, hashing};
pub use counting::CountingFilter;
pub use expiring::ExpiringFilter;
pub use tagged::TaggedFilter;
pub(crate) use time::{Clock, Life, Time, nanos};

use crate::error::InsertError;
use crate::hashing::{DefaultHashBuilder, Prehashed};
use crate::layout::Plan;
use crate::raw::RawFilter;
use crate::stats::{Config, Stats};
use core::fmt;
use core::marker::PhantomData;
use kind::{Kind, Plain};

/// A concurrent cuckoo filter: a thread-safe approximate set of keys with removal. It is used through four aliases, one
/// per [kind](crate::kind): [`CuckooFilter`], [`ExpiringFilter`], [`CountingFilter`] and [`TaggedFilter`].
///
/// Every method takes `&self`; put the filter into an [`Arc`](std::sync::Arc) or a `static` and use it from any thread.
/// Keys are hashed, not stored. As in a `HashMap`, keys are queried by their borrowed forms: a filter of `String` takes
/// `&str` and `&String`, and looking up a `u64` in a filter of `u32` is a compile error rather than a silent `false`.
///
/// # Classes and copies
/// Keys with the same fingerprint and the same pair of buckets form a *class*. The filter cannot distinguish the keys
/// of a class, and this causes false positives. Whatever this page calls exact is exact per class, not per key. A
/// filter is a multiset of classes: [`insert`](Filter::insert) stores a copy on each call, up to 8 per class.
///
/// # Consistency
/// - Operations on one key are linearizable: each takes effect at one moment between its call and its return, and a
///   lookup finds each key whose insertion returned before the lookup began and that was not removed. A write is
///   visible to every thread when it returns: if two threads each insert a key and then look up the other thread's key,
///   at least one of them finds it. Between threads that have not synchronized, a fence after each write guarantees
///   this. On x86-64 the unlock of parking_lot serves as that fence; parking_lot does not document this, so a test
///   checks it. At widths other than 4, 8, 16 and 32 bits a slot can straddle two words; a lookup may then read a
///   half-written slot, and return `true` once for an absent key.
/// - A lookup takes no lock, writes no shared memory and waits for no writer. It restarts only if a concurrent writer
///   relocated a key, or removed or retagged one of several copies of a class, in the same stripe, or if the filter was
///   cleared, grew or ticked meanwhile. Lookups are therefore lock-free, but not wait-free.
/// - [`insert`](Filter::insert) locks one stripe if one of the two buckets has room.
///   [`insert_unique`](Filter::insert_unique), removals and [`count`](Filter::count) lock the stripes of both
///   buckets, as does each relocation; the last relocation for a unique key locks three. Before an insertion
///   returns [`InsertError::Full`], it reads the version and the count of each stripe of the shard at least twice,
///   to verify that all buckets it searched were full at the same moment. It waits for the lock of a stripe only if
///   another writer holds it at that moment. All stripes of a shard are locked together by a clear, a bulk
///   operation, a merge, a copy or snapshot and a split, by an insertion after other writers have interfered four
///   or five times, and by one that cannot be refused otherwise: into a table that may still grow or has more than
///   1024 stripes, or if its two buckets hold copies of it.
/// - [`len`](Filter::len) and all values computed from it are sums of counts that are read one after the other, not at
///   one moment.
///
/// # Determinism
/// The same version of this crate, the same seeds and sizes, and the same sequence of changes by one thread produce the
/// same [snapshot](Filter::write_to), byte for byte, even if the filter was loaded from a snapshot in between. Changes
/// by several threads, bulk operations included, may produce different bytes. Determinism holds for filters of every
/// kind, fixed or growing.
///
/// # In a `static`, and from an iterator
/// In a `static`, wrap the filter in a [`LazyLock`](std::sync::LazyLock):
/// `static SEEN: LazyLock<CuckooFilter<String>> = LazyLock::new(|| CuckooFilter::with_capacity(1_000));`
///
/// Filters implement neither `Extend` nor `FromIterator`, because these could not report refused keys.
/// [`Builder::items`](crate::Builder::items) builds a filter from an iterator, and
/// [`insert_batch`](Filter::insert_batch) returns a report of the refused keys.
///
/// # What may block
/// In an async server, move long operations to a separate thread (`tokio::task::spawn_blocking`).
///
/// | | may block its thread | suitable on an executor |
/// |---|---|---|
/// | `contains`, `contains_batch`, `len`, `stats` and everything else that only reads, except `count` | never | yes |
/// | `insert`, `remove`, `count`, `see`, `add` and the like | while another writer holds a stripe of the key, or, before it is refused, any stripe of the shard | yes |
/// | insertions that split a table, `reserve` | likewise, and 0.2 ms per split of a table of 12,000 keys | after `reserve`, none splits |
/// | `insert_batch`, `remove_batch` and the like | likewise, per key | up to a few hundred keys |
/// | `clear` | likewise, per shard; it reads all memory | if the filter is small |
/// | `advance`, `advance_to`, `sweep` | during another tick; they read all memory, some microseconds per lock | no |
/// | `par_insert`, `bulk`, `save`, `load`, `merge_from` and the like | yes, in proportion to their data | no |
///
/// A critical section consists of a few reads and writes for one key, or of one shard's share of a bulk operation or a
/// snapshot. It does no I/O, runs no user code, and waits for nothing but the lock of another stripe. Of single writes
/// during bulk loads on both of two cores (2^24 slots, `cargo run --release -p compare latency`), 99.9 % took about 1 us
/// or less, and the slowest some milliseconds: they waited for a lock holder that the system had descheduled.
///
/// No method returns a guard, so no lock can be held across an `await`. No method is `async`, so dropping a future
/// never interrupts one.
///
/// ```
/// use concurrent_cuckoo_filter::CuckooFilter;
///
/// let filter = CuckooFilter::<String>::with_capacity(1_000);
/// std::thread::scope(|scope| {
///     scope.spawn(|| filter.insert("mailinator.com"));
///     scope.spawn(|| filter.insert("0-mail.com"));
/// });
/// assert!(filter.contains("mailinator.com"));
/// assert!(filter.remove("mailinator.com"));
/// assert!(!filter.contains("mailinator.com"));
/// assert_eq!(filter.len(), 1);
/// ```
// `hashed` relies on the order of the fields: the hash function must be last.
#[repr(C)]
pub struct Filter<K: ?Sized, S = DefaultHashBuilder, T: Kind = Plain> {
    pub(crate) raw: RawFilter<T::Slots>,
    pub(crate) time: T::Time,
    pub(crate) capacity: usize,
    /// Equal to the capacity in a filter of fixed size.
    pub(crate) max_capacity: usize,
    /// The requested rate; 0 if a width was requested.
    rate: f64,
    key: PhantomData<fn(&K)>,
    pub(crate) hasher: S,
}

/// A set of keys with removal: the plain [`Filter`].
pub type CuckooFilter<K, S = DefaultHashBuilder> = Filter<K, S, Plain>;

impl<K: ?Sized, S, T: Kind> Filter<K, S, T> {
    pub(crate) fn from_raw(
        [capacity, max_capacity]: [usize; 2],
        rate: Option<f64>,
        raw: RawFilter<T::Slots>,
        time: T::Time,
        hasher: S,
    ) -> Self {
        Filter { raw, time, capacity, max_capacity, rate: rate.unwrap_or(0.0), key: PhantomData, hasher }
    }

    #[inline]
    pub(crate) fn plan(&self) -> &Plan {
        self.raw.plan()
    }

    /// Returns the number of slots in use: those of stored copies and, in a filter with a time to live, of expired
    /// copies that have not yet been swept or overwritten. In a counting filter, a key takes one slot, whatever its
    /// count.
    ///
    /// The result is the sum of one count per stripe, and the counts are read one after the other. Without concurrent
    /// writers it is exact. Otherwise it may miss or include concurrent changes, and may count a copy twice, or not at
    /// all, while the copy is being relocated. These errors do not accumulate: they disappear once the writers have
    /// returned.
    ///
    /// # Complexity
    /// Reads one number per stripe and takes no lock. Unless
    /// [`Builder::stripes`](crate::Builder::stripes) asks for more, there are at most 1024 stripes, or about as many as
    /// shards. A growing filter has one or more in each of its [`tables`](Stats::tables), which are visited one after
    /// the other.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<String>::with_capacity(100);
    /// filter.insert("key")?;
    /// filter.insert("key")?;
    /// assert_eq!(filter.len(), 2);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// Returns whether [`len`](Filter::len) is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the requested number of keys. The table usually has room for a few more, but this is not guaranteed.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the fixed properties of the filter: sizes, rate and width, times, the largest count and tag.
    #[must_use]
    pub fn config(&self) -> Config {
        Config::new(T::NAME, self.plan(), [self.capacity, self.max_capacity], self.rate(), self.life())
    }

    /// Returns [`len`](Filter::len) divided by the number of slots. At full capacity the load factor is about 0.96 for
    /// capacities of 100,000 keys or more, and lower for smaller ones.
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

    pub(crate) fn rate(&self) -> Option<f64> {
        (self.rate > 0.0).then_some(self.rate)
    }

    /// Returns the total memory in bytes: table, stripes and the value itself. Most of this memory is not backed by
    /// pages until keys arrive. Large tables are aligned to 2 MiB, which takes additional address space, but no memory.
    /// [`Builder::memory_usage`](crate::Builder::memory_usage) returns the number before the filter is built.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let bytes = CuckooFilter::<String>::with_capacity(1_000_000).memory_usage();
    /// assert!((bytes as f64) < 1.015 * 1_000_000.0 * 13.0 / 8.0 / 0.96);
    /// ```
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        size_of::<Self>() + self.raw.heap_bytes()
    }

    /// Returns the hash function, for building other filters with the same hashes.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let one = CuckooFilter::<String>::with_capacity(100);
    /// let other = CuckooFilter::<String, _>::with_capacity_and_hasher(200, one.hasher().clone());
    /// assert_eq!(one.hash("key"), other.hash("key"));
    /// ```
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// Returns the load and the counters of the filter. The call is cheap enough to be made every second.
    ///
    /// Like [`len`](Filter::len), it returns sums of numbers that are read one after the other while other threads may
    /// write. The counters never decrease, not even by [`clear`](Filter::clear) or removals. In a loaded filter they
    /// start at zero.
    ///
    /// # Complexity
    /// Reads the cache line of each stripe twice, takes no lock and waits for no writer. There are as many
    /// stripes as for [`len`](Filter::len).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<String>::with_capacity(1_000);
    /// for _ in 0..9 {
    ///     let _ = filter.insert("again");
    /// }
    /// let stats = filter.stats();
    /// assert_eq!((stats.len, stats.refused_too_many_copies, stats.refused_full), (8, 1, 0));
    /// assert_eq!(stats.relocations, 0);
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats::of(&self.raw)
    }

    /// Removes everything, one shard at a time.
    ///
    /// It is not atomic across keys: concurrent lookups find some keys and miss others, and keys inserted in the
    /// meantime may or may not be removed. At every moment, each single key is either present or absent. The memory
    /// stays allocated.
    ///
    /// # Complexity
    /// Reads every word, and writes the words that hold keys, with all stripes of one shard (at most 2^16 buckets)
    /// locked at a time.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<String>::with_capacity(100);
    /// filter.insert("key")?;
    /// filter.clear();
    /// assert!(filter.is_empty());
    /// assert!(!filter.contains("key"));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    pub fn clear(&self) {
        self.raw.clear();
    }

    /// Grows the filter until this many more keys fit, so that inserting them need not grow it. Call it from a
    /// background thread: concurrent lookups do not wait, and a writer waits at most for the split of the table that it
    /// writes.
    ///
    /// # Errors
    /// [`InsertError::Full`] if the keys would exceed the requested maximum; the filter is then unchanged. Expired keys count until they
    /// are [swept](crate::ExpiringFilter::sweep).
    /// [`InsertError::OutOfMemory`] if an allocation fails; the filter has then grown as far as the memory allowed.
    ///
    /// # Complexity
    /// Proportional to the slots of the tables that are split, of up to 250,000 keys each. The split of a
    /// table of 12,000 keys takes 0.2 to 0.4 ms, with four writers and two readers on two cores (docs/reliability.md,
    /// 10.4).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, InsertError};
    ///
    /// let filter = CuckooFilter::<u32>::builder().capacity(1_000).max_capacity(1_000_000).build()?;
    /// filter.reserve(500_000)?;
    /// let bytes = filter.memory_usage();
    /// for key in 0..500_000 {
    ///     filter.insert(&key)?;
    /// }
    /// assert_eq!(filter.memory_usage(), bytes);
    /// assert_eq!(filter.reserve(600_000), Err(InsertError::Full));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reserve(&self, additional: usize) -> Result<(), InsertError> {
        let slots_for = |keys| self.life().map_or(keys, |life| life.slots_for(keys));
        // Dead keys take a slot until they are swept.
        let slots = self.len().saturating_add(slots_for(additional));
        if slots > slots_for(self.max_capacity) {
            return Err(InsertError::Full);
        }
        self.raw.growing().map_or(Ok(()), |growing| growing.reserve(slots))
    }

    /// Returns this filter as a filter whose keys are hashes returned by [`hash`](Filter::hash). Use it to hash a key
    /// once for several filters with the same hash function, or to hash it in another process. A filter that is used
    /// only through `hashed` accepts any numbers as keys, such as identifiers or the output of another hash function,
    /// of any quality.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<String>::with_capacity(100);
    /// let hash = filter.hash("key");
    /// filter.hashed().insert(&hash)?;
    /// assert!(filter.contains("key") && filter.hashed().contains(&hash));
    /// let mut found = [false; 2];
    /// filter.hashed().contains_batch(&[hash, filter.hash("another")], &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn hashed(&self) -> &Filter<u64, Prehashed, T> {
        #[expect(unsafe_code)]
        // SAFETY: 1. both types are `repr(C)` and have fields of the same types in the same order, except for the last
        // one, the hash function; `Prehashed` takes no bytes there. So the first bytes of this filter are a valid
        // filter of hashes.
        unsafe {
            crate::sys::prefix::begin(self)
        }
    }
}

impl<K: ?Sized, S, T: Kind> fmt::Debug for Filter<K, S, T> {
    /// Shows size, load and rate, not contents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = self.stats();
        let mut shown = f.debug_struct(T::TYPE);
        shown.field("len", &stats.len).field("capacity", &self.capacity).field("load_factor", &stats.load_factor);
        shown.field("max_capacity", &self.max_capacity).field("fingerprint_bits", &self.plan().told_bits());
        match T::NAME {
            "counting" => _ = shown.field("max_count", &self.config().max_count),
            "tagged" => _ = shown.field("max_tag", &self.config().max_tag),
            _ => {}
        }
        if let Some(life) = self.life() {
            shown.field("time", &life.time).field("tick", &life.tick);
        }
        shown.field("expected_false_positive_rate", &stats.expected_false_positive_rate).finish_non_exhaustive()
    }
}
