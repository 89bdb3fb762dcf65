//! The filter: a hash function in front of `raw`, for all kinds of slots.
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
pub(crate) use time::{Clock, Life, nanos};

use crate::error::InsertError;
use crate::hashing::{DefaultHashBuilder, Prehashed};
use crate::layout::Plan;
use crate::raw::RawFilter;
use crate::stats::Stats;
use core::fmt;
use core::marker::PhantomData;
use kind::{Counting, Expiring, Kind, Plain, Tagged};

/// A concurrent cuckoo filter: a thread-safe approximate set of keys with removal. It is used through four aliases, one per
/// [kind](crate::kind): [`CuckooFilter`], [`ExpiringFilter`], [`CountingFilter`] and [`TaggedFilter`].
///
/// Every method takes `&self`; put the filter into an [`Arc`](std::sync::Arc) or a `static` and use it from any thread. Keys are hashed,
/// not stored. As in a `HashMap`, keys are queried by their borrowed forms: a filter of `String` takes `&str` and `&String`, and a `u64`
/// looked up in a filter of `u32` is a compile error and not a silent "no".
///
/// # Classes and copies
/// Keys with the same fingerprint and the same pair of buckets are one *class*. The filter cannot tell them apart, which is the
/// origin of false positives. Everything this page calls exact is exact for classes. A filter is a multiset of classes:
/// [`insert`](Filter::insert) stores a copy on each call, up to 8 per class.
///
/// # Consistency
/// - Operations on one key are linearizable: each takes effect at one moment between its call and its return, and a lookup finds each
///   key whose insertion returned before the lookup began and that was not removed. A write is visible to every thread when it returns:
///   of two threads that each insert a key and then look up the other's, at least one finds it. Between threads that have not
///   synchronized, this rests on a fence after each write, and on x86-64 on the unlock of parking_lot, which does not document it;
///   a test checks it. Only where the slots of a width straddle words (all but 4, 8, 16 and 32 bits) may a lookup read a slot in the
///   middle of a write, and return `true` for an absent key once.
/// - A lookup takes no lock, writes no shared memory and waits for no writer. It repeats only if, in the meantime and in the stripe of
///   the key, a key was relocated, one of several copies of a class was removed, the filter was cleared, or it grew: lock-free, not
///   wait-free.
/// - [`insert`](Filter::insert) locks one stripe where there is room. [`insert_unique`](Filter::insert_unique), removals and
///   [`count`](Filter::count) lock the stripes of both buckets, as does each relocation; the last relocation for a unique key locks three.
///   A refusal as full locks each stripe of the shard for a moment, one after the other. All stripes of a shard are locked to clear it, and
///   to insert or refuse a key after other writers have interfered four or five times.
/// - [`len`](Filter::len) and everything computed from it add up counts that are read one after the other.
///
/// # Determinism
/// The same version of this crate, the same seeds and sizes, and the same sequence of changes by one thread produce the same
/// [snapshot](Filter::write_to), byte for byte, also if a filter was loaded from a snapshot in between. Changes by several threads, bulk
/// operations included, may produce different bytes. Filters of every kind keep this promise, fixed or growing.
///
/// # In a `static`, and from an iterator
/// A `static` takes a [`LazyLock`](std::sync::LazyLock):
/// `static SEEN: LazyLock<CuckooFilter<String>> = LazyLock::new(|| CuckooFilter::with_capacity(1_000));`
///
/// There is neither `Extend` nor `FromIterator`, which could not report refused keys. [`Builder::items`](crate::Builder::items) builds
/// a filter from a list, and [`insert_batch`](Filter::insert_batch) reports.
///
/// # What may block
/// In an async server, move operations that take long to a thread of their own (`tokio::task::spawn_blocking`).
///
/// | | may park its thread | on an executor |
/// |---|---|---|
/// | `contains`, `contains_batch`, `len`, `stats` and everything else that only reads, except `count` | never | yes |
/// | `insert`, `remove`, `count`, `see`, `add` and the like | while another writer is in one of the key's stripes | yes |
/// | an insertion that splits a table of a growing filter, `reserve` | likewise, for a whole table; 0.7 ms per table | after `reserve` no insertion splits |
/// | `insert_batch`, `remove_batch` and the like | likewise, per key | up to some hundred keys |
/// | `clear` | likewise, per shard, and it reads all memory | if the filter is small |
/// | `advance`, `advance_to`, `sweep` | for another tick; they read all memory, some microseconds per lock | no |
/// | `par_insert`, `bulk`, `save`, `load`, `merge_from` and the like | yes, and they take as long as their data | no |
///
/// A critical section is a few reads and writes, for one key, or for one shard's share of a bulk operation or a snapshot: no I/O, no
/// user code, no wait for anything but another stripe. Of the writes of one thread (2^27 slots, 2 cores,
/// `cargo run --release -p compare -- latency --large 27`), 99.99 % took 2 us or less while three other threads wrote too, and 62 us or
/// less during bulk loads on both cores or saves without pause. The slowest, up to 12 ms there, waited for a lock holder that the system
/// had descheduled.
///
/// No method returns a guard: nothing of a filter can be held across an `await`. A dropped future has either not called a
/// method or has seen it return.
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
// The order of the fields is that of `hashed`: the hash function is last.
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

/// A [`Filter`] whose keys are forgotten after a time: "was it seen in the last 24 hours?".
///
/// The low bits of each slot are a deadline, counted in *ticks*: the time to live is divided into
/// [steps](crate::Builder::steps), 6 by default, of one [tick](Filter::tick) each. A key lives at least its time to live and at most one
/// tick longer. There is no clock and no thread inside: a timer calls [`advance_to`](Filter::advance_to). A filter that is never
/// advanced forgets nothing, so that a stopped timer never makes a lookup miss a key.
///
/// ```
/// use concurrent_cuckoo_filter::ExpiringFilter;
/// use std::time::Duration;
///
/// let hour = Duration::from_secs(3600);
/// let seen = ExpiringFilter::<String>::builder().capacity(1_000_000).time_to_live(24 * hour).build()?;
/// assert_eq!(seen.tick(), Some(4 * hour));
/// assert!(!seen.see("a.com")?); // not seen before
/// assert!(seen.see("a.com")?); // seen now, and for 24 hours from now on
/// seen.advance_to(25 * hour); // from a timer: `start.elapsed()`
/// assert!(seen.contains("a.com")); // at most one tick of 4 hours longer
/// seen.advance_to(28 * hour);
/// assert!(!seen.contains("a.com"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Consistency
/// A lookup repeats once more per tick that comes while it runs. A key is found by every lookup that begins before its deadline, unless it
/// was removed. A renewal concurrent with the very tick at which its key dies is the one operation that takes effect at two moments:
/// it returns that the key lived, a lookup after the tick misses the key, and then the key lives again.
///
/// # Classes
/// Each copy has a deadline of its own. [`insert`](Filter::insert) stores one more on each call, up to 8 live copies per class;
/// [`see`](Filter::see), [`renew`](Filter::renew) and [`remove`](Filter::remove) work on the copy that dies first, so that no key of the
/// same class dies before its time. Two rules are left to the caller:
/// - Remove a key only while it lives. After its deadline a removal may, as often as a lookup is wrong, remove another key of its class.
/// - Where keys are renewed or seen, remove none of them: a key that was taken for present by mistake has no copy of its own, and
///   removing it removes the copy of another key.
///
/// The capacity is the largest number of keys alive at the same time. With a [`max_capacity`](crate::Builder::max_capacity) the filter
/// grows to that; it never shrinks when keys die.
pub type ExpiringFilter<K, S = DefaultHashBuilder> = Filter<K, S, Expiring>;

/// A [`Filter`] that counts: how often was this key added, ever or within a window?
///
/// The low bits of each slot are a counter, so that a key takes one slot, however often it is added. A count is **never too low**,
/// except at the largest count ([`max_count`](Filter::max_count), at which a counter stays) and after removals; it is too high as often
/// as a lookup is wrong, by the counts of other keys of the class. Counting locks the one or two stripes of the key;
/// [`count`](Filter::count) and [`contains`](Filter::contains) take no lock.
///
/// ```
/// use concurrent_cuckoo_filter::CountingFilter;
///
/// let logins = CountingFilter::<String>::with_capacity(100_000);
/// std::thread::scope(|scope| {
///     for _ in 0..3 {
///         scope.spawn(|| logins.add("192.0.2.1"));
///     }
/// });
/// assert_eq!(logins.count("192.0.2.1"), 3);
/// assert_eq!(logins.add("192.0.2.1")?, 4); // this addition included
/// assert_eq!(logins.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Counts within a window
/// With a [`time_to_live`](crate::Builder::time_to_live), the first addition of a key begins its *window*, the count dies when the window
/// ends, and the next addition begins another window at 1. With a [`time_to_idle`](crate::Builder::time_to_idle), each addition restarts
/// the time, so that a count dies when its key has not been added for that long. As in an [`ExpiringFilter`], a timer calls
/// [`advance_to`](Filter::advance_to), and a count lives at least its time and at most one tick longer.
///
/// ```
/// use concurrent_cuckoo_filter::CountingFilter;
/// use std::time::Duration;
///
/// let minute = Duration::from_secs(60);
/// let failures = CountingFilter::<String>::builder().capacity(100_000).time_to_live(10 * minute).build()?;
/// assert_eq!([failures.add("192.0.2.1")?, failures.add("192.0.2.1")?], [1, 2]);
/// failures.advance_to(12 * minute); // from a timer: `start.elapsed()`
/// assert_eq!(failures.count("192.0.2.1"), 0);
/// assert_eq!(failures.add("192.0.2.1")?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A count is that of the key's class since the window of that class began. Two keys share a class as often as a lookup is wrong, and
/// then the first addition of either begins the window of both. The promises below hold for additions that succeeded, without removals,
/// subtractions and full counters:
///
/// | | `time_to_live` | `time_to_idle` |
/// |---|---|---|
/// | A count is at least the number of additions of the key since the window of its class began. | yes | yes |
/// | A count is at least the number of additions of the key within the last such time. | **no**, whether or not its class is shared: a window may have ended between them | yes |
/// | A count is at least that of a filter in which no key shares a class. | **no**, if its class is shared: another key began the window earlier, and it ends earlier | yes |
/// | Additions of a key that [`try_add`](Filter::try_add) with the limit L makes within any such time: at most | 2 L - 1, also if its class is shared | L, also if its class is shared |
/// | A count is never too high. | no, if its class is shared | no, also because a key that is added again and again never begins anew |
///
/// Where a count must never be too low, use `time_to_idle`. A late call of `advance_to` shortens the windows that began in the meantime
/// by its lateness.
pub type CountingFilter<K, S = DefaultHashBuilder> = Filter<K, S, Counting>;

/// A [`Filter`] with a small number beside each key, its *tag*: which list, which reason, which shard?
///
/// It is a multiset of pairs of a key and a tag: `insert` and `remove` take both.
/// [`tags`](Filter::tags) **never omits** a tag that the key was inserted with; it returns more as often as a lookup is wrong, namely
/// those of other keys of the class. [`tag`](Filter::tag) is for keys with one tag each. Reading takes no lock.
///
/// ```
/// use concurrent_cuckoo_filter::TaggedFilter;
///
/// const MALWARE: u32 = 0;
/// const PHISHING: u32 = 1;
/// let blocked = TaggedFilter::<String>::with_capacity(100_000);
/// assert_eq!(blocked.insert_batch(&["a.com", "b.com"], MALWARE)?.inserted, 2);
/// blocked.insert("c.com", PHISHING)?;
/// assert_eq!(blocked.tag("c.com"), Some(PHISHING));
/// assert_eq!(blocked.tag("d.com"), None);
/// assert!(blocked.retag("b.com", MALWARE, PHISHING)?);
/// assert!(blocked.remove("b.com", PHISHING) && !blocked.contains("b.com"));
/// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
/// ```
pub type TaggedFilter<K, S = DefaultHashBuilder> = Filter<K, S, Tagged>;

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

    /// Returns the number of slots in use: stored copies, and in a filter with a time to live copies that have died and were neither
    /// swept nor overwritten yet. In a counting filter, a key takes one slot, whatever its count.
    ///
    /// It adds up a count per stripe, each read at a moment of its own: exact when there are no writers. Concurrently with writers it may
    /// miss or include concurrent changes, and count a copy that is being relocated twice or not at all. These errors do not add up: they
    /// are gone once the writers have returned.
    ///
    /// # Complexity
    /// Reads one number per stripe, at most 1024 or about as many as there are shards; takes no lock. A growing filter has two or more
    /// stripes in each of its [`tables`](Stats::tables), which are visited one after the other.
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
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// assert!(CuckooFilter::<String>::with_capacity(100).is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the requested number of keys. The table has room for a few more, without promise.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// assert_eq!(CuckooFilter::<String>::with_capacity(100).capacity(), 100);
    /// ```
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of keys that the filter grows to; [`capacity`](Filter::capacity) if it does not grow.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// assert_eq!(CuckooFilter::<String>::growing(100..=10_000_000).max_capacity(), 10_000_000);
    /// assert_eq!(CuckooFilter::<String>::with_capacity(100).max_capacity(), 100);
    /// ```
    #[must_use]
    pub fn max_capacity(&self) -> usize {
        self.max_capacity
    }

    /// Returns [`len`](Filter::len) divided by the number of slots. About 0.96 at a full capacity of 100,000 keys or more, less in smaller
    /// filters.
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

    /// Returns the requested false-positive rate; `None` if a width was requested.
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

    /// Returns the probability that [`contains`](Filter::contains) returns `true` for an absent key at the present load:
    /// 1 - exp(-8 load / (2^f - 1)) for fingerprints of f bits. In a growing filter it rises with the number of keys, and reaches the
    /// requested rate at the largest size.
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
        self.stats().expected_false_positive_rate
    }

    /// Returns the bits of a fingerprint, 4 to 32. For a growing filter, these are the bits of a filter that had the largest size
    /// from the beginning.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// assert_eq!(CuckooFilter::<String>::with_capacity(100_000).fingerprint_bits(), 13);
    /// ```
    #[must_use]
    pub fn fingerprint_bits(&self) -> u32 {
        self.plan().told_bits()
    }

    /// Returns the memory in bytes, everything included: table, stripes and the value itself. Most of it is not backed by pages before
    /// keys arrive. Large tables are aligned to 2 MiB, which takes some more address space, and no memory.
    /// [`Builder::memory_usage`](crate::Builder::memory_usage) returns it in advance.
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

    /// Returns the number of shards: small filters of their own, between which no key ever moves. A list can be divided by
    /// [`shard_of`](Filter::shard_of), built in parts and [joined](Filter::join).
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

    /// Returns load and counters; cheap enough to poll every second.
    ///
    /// Like [`len`](Filter::len), it adds up numbers that are read one after the other while others write. The counters never fall:
    /// neither [`clear`](Filter::clear) nor a removal takes anything from them. A loaded filter begins with zero counters.
    ///
    /// # Complexity
    /// Reads the line of each stripe twice, at most 1024 or about as many as there are shards, or two or more per table of a growing
    /// filter; takes no lock and waits for no writer.
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
    /// It is not atomic across keys: concurrent lookups find some keys and miss others, and keys inserted in the meantime may stay or
    /// go. Each key by itself is either there or gone. Memory stays reserved.
    ///
    /// # Complexity
    /// Reads every word and writes those that hold keys, with all stripes of one shard (at most 2^16 buckets) locked at a time.
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

    /// Grows the filter until this many more keys fit, so that their insertions need not grow it: call it from a background thread. Lookups
    /// wait for nothing, and writers at most for the split of their table.
    ///
    /// # Errors
    /// [`InsertError::Full`] if the requested maximum does not hold that many keys, before anything is done;
    /// [`InsertError::OutOfMemory`] if allocation fails: the filter has grown as far as memory allowed.
    ///
    /// # Complexity
    /// Proportional to the slots of the tables that are split, of up to 250,000 keys each. In the record (docs/reliability.md, 10.4) a
    /// split took 0.72 ms on average, with four writers and two readers on two cores.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, InsertError};
    ///
    /// let filter = CuckooFilter::<u32>::growing(1_000..=1_000_000);
    /// filter.reserve(500_000)?;
    /// let bytes = filter.memory_usage();
    /// for key in 0..500_000 {
    ///     filter.insert(&key)?;
    /// }
    /// assert_eq!(filter.memory_usage(), bytes);
    /// assert_eq!(filter.reserve(600_000), Err(InsertError::Full));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    pub fn reserve(&self, additional: usize) -> Result<(), InsertError> {
        let keys = self.len().saturating_add(additional);
        if keys > self.max_capacity {
            return Err(InsertError::Full);
        }
        self.raw.growing().map_or(Ok(()), |growing| growing.reserve(keys))
    }

    /// Returns this filter as a filter of hashes, for every operation on keys that were hashed before: once for several filters with
    /// the same hash function, or in another process. A hash is what [`hash`](Filter::hash) returns. A filter that is used only
    /// through `hashed` takes any numbers, such as identifiers or hashes of another function, of whatever quality.
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
        // SAFETY: 1. both are `repr(C)`, and their fields are of the same types in the same order, up to the hash function, which is
        // the last one and takes no bytes in `Prehashed`. So a filter begins with bytes that are valid as the other one.
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
        shown.field("max_capacity", &self.max_capacity).field("fingerprint_bits", &self.fingerprint_bits());
        T::show(&self.raw, &mut shown);
        if let Some(clock) = T::clock(&self.time) {
            shown.field("time", &clock.life.time).field("tick", &clock.life.tick);
        }
        shown.field("expected_false_positive_rate", &stats.expected_false_positive_rate).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn false_positive_rate_returns_the_requested_rate() {
        let builder = || CuckooFilter::<u64>::builder().capacity(10);
        assert_eq!(builder().false_positive_rate(0.25).build().unwrap().false_positive_rate(), Some(0.25));
        assert_eq!(builder().build().unwrap().false_positive_rate(), Some(0.001));
        assert_eq!(builder().fingerprint_bits(8).build().unwrap().false_positive_rate(), None);
    }

    #[test]
    fn load_and_rate_are_computed_from_slots() {
        let filter = CuckooFilter::<u64>::builder().capacity(0).fingerprint_bits(8).build().unwrap();
        (0..4).for_each(|hash| filter.hashed().insert(&hash).unwrap());
        // Four of 16 slots.
        assert_eq!(filter.load_factor(), 0.25);
        assert!((filter.expected_false_positive_rate() - 0.007_812_5).abs() < 1e-4);
        let stats = filter.stats();
        assert_eq!(stats.load_factor, filter.load_factor());
        assert_eq!(stats.expected_false_positive_rate, filter.expected_false_positive_rate());
    }

    #[test]
    fn shard_of_returns_the_shard_that_an_insertion_changes() {
        let filter = CuckooFilter::<u64>::builder().capacity(1_000_000).build().unwrap();
        assert_eq!(filter.shards(), 4);
        for key in 0..100 {
            let (shard, hash) = (filter.shard_of(&key), filter.hash(&key));
            assert_eq!(filter.hashed().shard_of(&hash), shard);
            let before: Vec<_> = filter.raw.flat().each().map(|shard| shard.len()).collect();
            filter.insert(&key).unwrap();
            for (number, before) in before.into_iter().enumerate() {
                assert_eq!(filter.raw.flat().at(number).len() - before, u64::from(number == shard));
            }
        }
    }

    /// A filter and its view of hashes have all bytes but those of the hash function in common.
    #[test]
    fn hashed_is_the_same_filter() {
        let filter = CountingFilter::<String>::builder().capacity(100).build().unwrap();
        assert_eq!(filter.add("key"), Ok(1));
        let hashed = filter.hashed();
        assert_eq!((hashed.count(&filter.hash("key")), hashed.len(), hashed.max_count()), (1, 1, 15));
        assert_eq!((hashed.capacity(), hashed.false_positive_rate()), (100, Some(0.001)));
        assert_eq!(hashed.hashed().hash(&7), 7);
    }
}
