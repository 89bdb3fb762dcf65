//! Snapshots that are queried in place, without being loaded.
//!
//! ```text
//! mod       the face: opened, checked, asked for keys
//! records   the records of a plain filter of fixed size, as its shards
//! tables    tables that differ: of filters that grow, and of those whose slots hold more than fingerprints
//! ```

mod records;
mod tables;

use crate::batch::{assert_same_length, hashing};
use crate::error::SnapshotError;
use crate::filter::CuckooFilter;
use crate::hashing::{SavedHasher, hash_of, hash_of_str_bytes};
use crate::layout::{self, Mixed, Tags};
use crate::raw::{Bare, Contains, Fingerprints, contains_each_in, contains_in};
#[cfg(feature = "mmap")]
use crate::snapshot::open_regular;
use crate::snapshot::{SnapshotHeader, Stored};
use crate::sys::bytes::Bytes;
use crate::sys::isa::Compiled;
use crate::tagged::{CountingFilter, ExpiringFilter, TaggedFilter};
use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::time::Duration;
use records::Records;
#[cfg(feature = "mmap")]
use std::path::Path;
use tables::Tables;

/// A filter of which a snapshot can be queried in place: [`CuckooFilter`], [`ExpiringFilter`], [`CountingFilter`] and
/// [`TaggedFilter`]. No other type implements it.
pub trait Viewed: sealed::Sealed {
    /// The type of its keys.
    type Key: ?Sized;
    /// Its hash function.
    type Hasher;
}

/// A filter of which a snapshot is queried without a time: its keys do not die, or may also be queried as of the moment at which they were
/// written. No type of another crate implements it.
pub trait Timeless: Viewed {}

mod sealed {
    pub trait Sealed {
        /// The kind of its snapshots.
        const KIND: &'static str;
    }
}

macro_rules! viewed {
    ($($filter:ident: $kind:literal),+) => {
        $(impl<K: ?Sized, S> sealed::Sealed for $filter<K, S> {
            const KIND: &'static str = $kind;
        }

        impl<K: ?Sized, S> Viewed for $filter<K, S> {
            type Key = K;
            type Hasher = S;
        })+
    };
}

viewed!(CuckooFilter: "plain", ExpiringFilter: "expiring", CountingFilter: "counting", TaggedFilter: "tagged");

impl<K: ?Sized, S> Timeless for CuckooFilter<K, S> {}
impl<K: ?Sized, S> Timeless for CountingFilter<K, S> {}
impl<K: ?Sized, S> Timeless for TaggedFilter<K, S> {}

/// How keys are looked up: in shards that are alike, by the lookups of a filter, or in tables that differ.
enum Lookups<'a> {
    Plain {
        records: Records<'a, Bare>,
        contains: Compiled<Contains<Records<'a, Bare>>>,
    },
    /// With tags: the shards are searched for the fingerprint, and what is found is looked up by the time of its own shard.
    Tagged {
        records: Records<'a, Fingerprints>,
        contains: Compiled<Contains<Records<'a, Fingerprints>>>,
        tables: Tables,
    },
    Growing {
        bytes: Bytes<'a>,
        tables: Tables,
    },
}

impl<'a> Lookups<'a> {
    fn new(bytes: Bytes<'a>, stored: &mut Stored) -> Result<Self, SnapshotError> {
        let (placed, plan) = (stored.take_tables(), stored.plan());
        let (first, stride) = (stored.first(), stored.stride());
        let Some(placed) = placed else {
            let records = Records::new(bytes, Bare, plan, first, stride);
            return Ok(Lookups::Plain { contains: contains_in(plan), records });
        };
        let tables = Tables::new(&bytes, plan, &placed)
            .map_err(|_| SnapshotError::OutOfMemory { bytes: size_of_val(&placed[..]) })?;
        if plan.grows() {
            return Ok(Lookups::Growing { bytes, tables });
        }
        let slots = Fingerprints { tag_bits: plan.tag_bits() };
        Ok(Lookups::Tagged {
            contains: contains_in(plan),
            records: Records::new(bytes, slots, plan, first, stride),
            tables,
        })
    }

    fn bytes(&self) -> &Bytes<'a> {
        match self {
            Lookups::Plain { records, .. } => &records.bytes,
            Lookups::Tagged { records, .. } => &records.bytes,
            Lookups::Growing { bytes, .. } => bytes,
        }
    }

    fn tables(&self) -> Option<&Tables> {
        match self {
            Lookups::Plain { .. } => None,
            Lookups::Tagged { tables, .. } | Lookups::Growing { tables, .. } => Some(tables),
        }
    }

    #[inline]
    fn contains(&self, mixed: Mixed, now: u64) -> bool {
        match self {
            Lookups::Plain { records, contains } => contains.call(records, mixed),
            Lookups::Tagged { records, contains, tables } => {
                contains.call(records, mixed) && tables.is_alive(&records.bytes, mixed, now)
            }
            Lookups::Growing { bytes, tables } => tables.contains(bytes, mixed, now),
        }
    }

    /// # Panics
    /// If `keys` and `found` differ in length.
    #[track_caller]
    fn contains_each<T>(&self, keys: &[T], mixed: impl Fn(&T) -> Mixed, now: u64, found: &mut [bool]) {
        assert_same_length(keys.len(), found.len());
        match self {
            Lookups::Plain { records, .. } => {
                contains_each_in(records, records.bytes.len(), &mut hashing(keys, mixed), found);
            }
            Lookups::Tagged { records, tables, .. } => {
                contains_each_in(records, records.bytes.len(), &mut hashing(keys, &mixed), found);
                tables.keep_alive(&records.bytes, keys, mixed, now, found);
            }
            Lookups::Growing { bytes, tables } => {
                tables.find_each(bytes, &mut hashing(keys, &mixed), found);
                tables.keep_alive(bytes, keys, mixed, now, found);
            }
        }
    }

    /// The values of the copies of a key of a filter that has some, of those that are alive at this epoch.
    fn values(&self, mixed: Mixed, now: u64) -> impl ExactSizeIterator<Item = u32> + use<> {
        let values = self.tables().map(|tables| tables.values(self.bytes(), mixed, now));
        values.unwrap_or_default().into_iter()
    }

    /// A number of the tags, of a filter that has some.
    fn of_tags(&self, number: impl FnOnce(Tags) -> u32) -> u32 {
        self.tables().and_then(Tables::tags).map_or(1, number)
    }
}

/// A filter that is read from the bytes of a snapshot, where they lie: it can be asked, and not changed.
///
/// [`FilterView::from_bytes`] takes any slice of bytes, such as one that is compiled into the program.
/// [`MappedFilter`] is the same for a file.
///
/// ```
/// use concurrent_cuckoo_filter::{CuckooFilter, FilterView, StableHashBuilder};
///
/// let filter = CuckooFilter::<str, _>::with_capacity_and_hasher(100, StableHashBuilder::new());
/// filter.insert("key")?;
/// let mut bytes = Vec::new();
/// filter.write_to(&mut bytes)?;
///
/// // Or `include_bytes!("list.filter")`.
/// let view = FilterView::<CuckooFilter<str, StableHashBuilder>>::from_bytes(&bytes)?;
/// assert!(view.contains("key"));
/// assert!(!view.contains("another key"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FilterView<'a, F: Viewed> {
    lookups: Lookups<'a>,
    stored: Stored,
    hasher: F::Hasher,
}

/// A filter in a file that is mapped, not loaded: opened in less than a millisecond whatever its size (in a time that follows the
/// number of tables, if they differ), shared by all processes that map it through the page cache, and gone from memory when
/// the system needs it for something else.
///
/// What has not been asked for yet comes from the disk when it is. Lookups take no lock and run on any number of threads.
///
/// # The file
/// [`save`](crate::CuckooFilter::save) puts a new file in the place of the old one, and never changes one: what is mapped
/// stays what it was, until it is dropped. Open the new file, and swap an `Arc`. A file that is
/// changed by others under the same name gives other answers, and no undefined behaviour. **Where it is truncated, a lookup
/// that reads what is no longer there ends the process** (`SIGBUS` on Unix): a file that is mapped must not be cut off, and
/// no failing disk or network file system be under it.
///
/// ```
/// use concurrent_cuckoo_filter::{CuckooFilter, MappedFilter};
///
/// let path = std::env::temp_dir().join("concurrent-cuckoo-filter.example-mapped");
/// let filter = CuckooFilter::<str>::with_capacity(1_000_000);
/// filter.insert("key")?;
/// filter.save(&path)?;
///
/// let mapped = MappedFilter::<CuckooFilter<str>>::open(&path)?;
/// mapped.check()?;
/// assert!(mapped.contains("key"));
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "mmap")]
#[cfg_attr(docsrs, doc(cfg(feature = "mmap")))]
pub type MappedFilter<F> = FilterView<'static, F>;

#[cfg(feature = "mmap")]
#[cfg_attr(docsrs, doc(cfg(feature = "mmap")))]
impl<F: Viewed<Key: 'static, Hasher: SavedHasher>> MappedFilter<F> {
    /// Maps a file, with the keys of the hasher that stand there.
    ///
    /// The header is checked, with the hasher and the type of the keys, and the length of the file. **What the records
    /// hold is believed**: a file that is damaged there may answer "no" to what it holds. Where files come over a network or
    /// lie for long, call [`check`](FilterView::check), before the first lookup or beside them.
    ///
    /// # Errors
    /// As [`CuckooFilter::load`](crate::CuckooFilter::load), but for damage of the records.
    ///
    /// # Complexity
    /// A few pages of the file, whatever its size. Of a filter that grows, expires, counts or has tags, a page for each table or
    /// shard, and 4 bytes of memory for each cell of the directory.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        Self::map(path.as_ref(), |stored| stored.hasher())
    }

    /// Maps a file that was written with a hasher like this one: for a file without the keys of its hasher. As
    /// [`open`](FilterView::open).
    ///
    /// # Errors
    /// As [`open`](FilterView::open), and as [`CuckooFilter::read_from`](crate::CuckooFilter::read_from).
    pub fn open_with_hasher(path: impl AsRef<Path>, hasher: F::Hasher) -> Result<Self, SnapshotError> {
        Self::map(path.as_ref(), |_| Ok(hasher))
    }

    fn map(
        path: &Path,
        hasher: impl FnOnce(&Stored) -> Result<F::Hasher, SnapshotError>,
    ) -> Result<Self, SnapshotError> {
        let mapped = open_regular(path).and_then(|file| Bytes::map(&file)).map_err(SnapshotError::Io);
        let filter = mapped.and_then(|bytes| FilterView::new(bytes, hasher));
        filter.map_err(|error| error.of_file(path))
    }
}

impl<'a, F: Viewed<Key: 'static, Hasher: SavedHasher>> FilterView<'a, F> {
    /// Takes the bytes of a snapshot, with the keys of the hasher that stand there, and checks them in full. They may lie
    /// at any address. What is compiled in by `include_bytes!` is read when it is asked for, as the program itself.
    ///
    /// # Errors
    /// As [`CuckooFilter::load`](crate::CuckooFilter::load).
    ///
    /// # Complexity
    /// Each byte once, in the memory of two shards, 2 MiB at the most.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, SnapshotError> {
        let view = FilterView::new(bytes.into(), |stored| stored.hasher())?;
        view.check()?;
        Ok(view)
    }

    /// Takes the bytes of a snapshot that was written with a hasher like this one. As [`from_bytes`](FilterView::from_bytes).
    ///
    /// # Errors
    /// As [`CuckooFilter::read_from`](crate::CuckooFilter::read_from), and if anything follows the snapshot.
    pub fn from_bytes_with_hasher(bytes: &'a [u8], hasher: F::Hasher) -> Result<Self, SnapshotError> {
        let view = FilterView::new(bytes.into(), |_| Ok(hasher))?;
        view.check()?;
        Ok(view)
    }

    fn new(
        bytes: Bytes<'a>,
        hasher: impl FnOnce(&Stored) -> Result<F::Hasher, SnapshotError>,
    ) -> Result<Self, SnapshotError> {
        let mut stored = Stored::new(&bytes, <F as sealed::Sealed>::KIND)?;
        let hasher = hasher(&stored)?;
        stored.check_asked::<F::Key, F::Hasher>(&hasher)?;
        Ok(FilterView { lookups: Lookups::new(bytes, &mut stored)?, stored, hasher })
    }
}

impl<F: Viewed> FilterView<'_, F> {
    /// Checks every byte: all checksums, counts and lengths, as a filter is checked that is loaded. Lookups may go on.
    ///
    /// # Errors
    /// As [`CuckooFilter::read_from`](crate::CuckooFilter::read_from).
    ///
    /// # Complexity
    /// Each byte once, in the memory of two shards, 2 MiB at the most.
    pub fn check(&self) -> Result<(), SnapshotError> {
        self.stored.check(self.lookups.bytes())
    }

    /// What the snapshot says of itself.
    #[must_use]
    pub fn header(&self) -> &SnapshotHeader {
        self.stored.header()
    }

    /// The hash function.
    #[must_use]
    pub fn hasher(&self) -> &F::Hasher {
        &self.hasher
    }

    /// The stored copies, as the end of the snapshot has them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.stored.taken(self.lookups.bytes(), self.slots())
    }

    /// Says whether [`len`](FilterView::len) is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Stored copies per slot, 0 to 1.
    #[must_use]
    pub fn load_factor(&self) -> f64 {
        self.len() as f64 / self.slots() as f64
    }

    fn slots(&self) -> usize {
        let plan = self.stored.plan();
        self.lookups.tables().map_or(plan.slots(), Tables::slots)
    }

    /// The chance that the lookup of an absent key says "yes". As
    /// [`CuckooFilter::expected_false_positive_rate`](crate::CuckooFilter::expected_false_positive_rate).
    #[must_use]
    pub fn expected_false_positive_rate(&self) -> f64 {
        let plan = self.stored.plan();
        let load = self.len() as f64 / (plan.first_slots() as f64 * 2f64.powi(plan.reserve_bits as i32));
        layout::expected_false_positive_rate(load, plan.core_bits())
    }
}

impl<F: Timeless> FilterView<'_, F> {
    /// Says whether the key with this hash may be in the filter. As [`contains`](FilterView::contains).
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.lookups.contains(Mixed::of(hash), self.stored.epoch())
    }

    /// Looks up the keys with these hashes. As [`contains_batch`](FilterView::contains_batch).
    ///
    /// # Panics
    /// As [`contains_batch`](FilterView::contains_batch).
    #[track_caller]
    pub fn contains_batch_hash(&self, hashes: &[u64], found: &mut [bool]) {
        self.lookups.contains_each(hashes, |&hash| Mixed::of(hash), self.stored.epoch(), found);
    }
}

impl<F: Viewed<Key: Hash, Hasher: BuildHasher>> FilterView<'_, F> {
    /// Hashes the key. As [`CuckooFilter::hash`](crate::CuckooFilter::hash).
    #[inline]
    #[must_use]
    pub fn hash(&self, key: &F::Key) -> u64 {
        hash_of(&self.hasher, key)
    }

    fn mixed(&self, key: &F::Key) -> Mixed {
        Mixed::of(self.hash(key))
    }
}

impl<F: Timeless<Key: Hash, Hasher: BuildHasher>> FilterView<'_, F> {
    /// Says whether the key may be in the filter. "No" is certain, "yes" is wrong at the rate that was asked for.
    ///
    /// # Complexity
    /// Two buckets of one shard are read, each in one cache line or two. Of a file that is mapped, pages that were not asked
    /// for yet are read from the disk.
    #[inline]
    #[must_use]
    pub fn contains(&self, key: &F::Key) -> bool {
        self.contains_hash(self.hash(key))
    }

    /// Looks up many keys: `found[i]` says whether `keys[i]` may be in the filter. Faster than a loop of
    /// [`contains`](FilterView::contains) in large filters, whose cache lines are fetched 32 keys at a time.
    ///
    /// # Panics
    /// If `keys` and `found` differ in length.
    #[track_caller]
    pub fn contains_batch<T: Borrow<F::Key>>(&self, keys: &[T], found: &mut [bool]) {
        self.lookups.contains_each(keys, |key| self.mixed(key.borrow()), self.stored.epoch(), found);
    }
}

impl<F: Viewed<Key: Hash, Hasher: BuildHasher>> FilterView<'_, F> {
    /// Says whether the key is present and alive when this much time has `passed` since the last
    /// [`advance_to`](ExpiringFilter::advance_to) before the snapshot was written, as [`ExpiringFilter::load`] is told it. Zero
    /// asks for the moment of the snapshot. Where keys do not die, the time changes nothing.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{ExpiringFilter, FilterView, StableHashBuilder};
    /// use std::time::Duration;
    ///
    /// type Seen = ExpiringFilter<str, StableHashBuilder>;
    /// let hour = Duration::from_secs(3600);
    /// let seen = ExpiringFilter::<str>::builder().capacity(100).time_to_live(24 * hour);
    /// let seen: Seen = seen.hasher(StableHashBuilder::new()).build()?;
    /// seen.see("a.com")?;
    /// let mut bytes = Vec::new();
    /// seen.write_to(&mut bytes)?;
    ///
    /// let view = FilterView::<Seen>::from_bytes(&bytes)?;
    /// assert!(view.contains_at("a.com", 23 * hour));
    /// assert!(!view.contains_at("a.com", 29 * hour));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn contains_at(&self, key: &F::Key, passed: Duration) -> bool {
        self.lookups.contains(self.mixed(key), self.stored.epoch_after(passed))
    }

    /// Looks up many keys: `found[i]` is the answer of [`contains_at`](FilterView::contains_at) for `keys[i]`. Lines are fetched
    /// ahead.
    ///
    /// # Panics
    /// If `keys` and `found` differ in length.
    #[track_caller]
    pub fn contains_batch_at<T: Borrow<F::Key>>(&self, keys: &[T], passed: Duration, found: &mut [bool]) {
        let now = self.stored.epoch_after(passed);
        self.lookups.contains_each(keys, |key| self.mixed(key.borrow()), now, found);
    }
}

impl<K: ?Sized + Hash, S: BuildHasher> FilterView<'_, CountingFilter<K, S>> {
    /// Returns the count of the key, 0 if it was never added. As [`CountingFilter::count`]; where counts die, as of the moment of the
    /// snapshot.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CountingFilter, MappedFilter};
    ///
    /// let path = std::env::temp_dir().join("concurrent-cuckoo-filter.example-mapped-counts");
    /// let words = CountingFilter::<str>::builder().capacity(100).build()?;
    /// words.add("a")?;
    /// words.add("a")?;
    /// words.save(&path)?;
    /// let words = MappedFilter::<CountingFilter<str>>::open(&path)?;
    /// assert_eq!((words.count("a"), words.count("b"), words.max_count()), (2, 0, 15));
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn count(&self, key: &K) -> u32 {
        self.count_in(self.stored.epoch(), key)
    }

    /// Returns the count of the key when this much time has `passed` since the last
    /// [`advance_to`](CountingFilter::advance_to) before the snapshot was written.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CountingFilter, FilterView, StableHashBuilder};
    /// use std::time::Duration;
    ///
    /// type Failures = CountingFilter<str, StableHashBuilder>;
    /// let minute = Duration::from_secs(60);
    /// let failures = CountingFilter::<str>::builder().capacity(100).time_to_live(10 * minute);
    /// let failures: Failures = failures.hasher(StableHashBuilder::new()).build()?;
    /// failures.add("192.0.2.1")?;
    /// let mut bytes = Vec::new();
    /// failures.write_to(&mut bytes)?;
    ///
    /// let view = FilterView::<Failures>::from_bytes(&bytes)?;
    /// assert_eq!((view.count("192.0.2.1"), view.count_at("192.0.2.1", 10 * minute)), (1, 1));
    /// assert_eq!(view.count_at("192.0.2.1", 12 * minute), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn count_at(&self, key: &K, passed: Duration) -> u32 {
        self.count_in(self.stored.epoch_after(passed), key)
    }

    fn count_in(&self, epoch: u64, key: &K) -> u32 {
        let counts =
            self.lookups.values(self.mixed(key), epoch).map(|value| self.lookups.of_tags(|tags| tags.count(value)));
        counts.max().unwrap_or(0)
    }

    /// The largest count. As [`CountingFilter::max_count`].
    #[must_use]
    pub fn max_count(&self) -> u32 {
        self.lookups.of_tags(Tags::max_count)
    }
}

impl<K: ?Sized + Hash, S: BuildHasher> FilterView<'_, TaggedFilter<K, S>> {
    /// Returns the tag of the key, the smallest if there are more; `None` if the key is absent. As [`TaggedFilter::tag`].
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{MappedFilter, TaggedFilter};
    ///
    /// let path = std::env::temp_dir().join("concurrent-cuckoo-filter.example-mapped-tags");
    /// let lists = TaggedFilter::<str>::builder().capacity(100).build()?;
    /// lists.insert("a.com", 3)?;
    /// lists.save(&path)?;
    /// let lists = MappedFilter::<TaggedFilter<str>>::open(&path)?;
    /// assert_eq!((lists.tag("a.com"), lists.tag("b.com")), (Some(3), None));
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn tag(&self, key: &K) -> Option<u32> {
        self.tags(key).min()
    }

    /// Returns the tags of the key, in no order, one for each copy. As [`TaggedFilter::tags`].
    pub fn tags(&self, key: &K) -> impl ExactSizeIterator<Item = u32> + use<K, S> {
        self.lookups.values(self.mixed(key), 0).map(|value| value - 1)
    }

    /// The largest tag. As [`TaggedFilter::max_tag`].
    #[must_use]
    pub fn max_tag(&self) -> u32 {
        self.lookups.of_tags(Tags::most) - 1
    }
}

impl<F: Viewed<Key = str, Hasher: BuildHasher>> FilterView<'_, F> {
    /// Hashes a text that is given as bytes. As [`CuckooFilter::hash_str_bytes`](crate::CuckooFilter::hash_str_bytes).
    #[inline]
    #[must_use]
    pub fn hash_str_bytes(&self, text: &[u8]) -> u64 {
        hash_of_str_bytes(&self.hasher, text)
    }
}

impl<F: Viewed> fmt::Debug for FilterView<'_, F> {
    /// Shows what the header says, not the keys of the hash function.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterView").field("header", self.stored.header()).finish_non_exhaustive()
    }
}
