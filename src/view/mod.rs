//! Snapshots that are queried in place, without being loaded.
//!
//! ```text
//! mod       the face: opened, checked, asked for keys
//! records   the records of a plain filter of fixed size, as its shards
//! tables    tables that differ: of filters that grow, and of those whose slots hold more than fingerprints
//! ```

mod records;
mod tables;

use crate::error::SnapshotError;
use crate::filter::key::BatchKey;
use crate::filter::kind::{Kind, Timed, sealed::Sealed as _};
use crate::filter::{CountingFilter, Filter, TaggedFilter, assert_same_length, hashing};
use crate::hashing::{Prehashed, SavedHasher, hash_of};
use crate::layout::{Mixed, Tags};
use crate::raw::{Bare, Contains, Fingerprints, contains_each_in, contains_in};
#[cfg(feature = "mmap")]
use crate::snapshot::open_regular;
use crate::snapshot::{SnapshotHeader, Stored};
use crate::sys::bytes::Bytes;
use crate::sys::isa::Compiled;
use crate::sys::sync::SharedCounter;
use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::time::Duration;
use records::Records;
#[cfg(feature = "mmap")]
use std::path::Path;
use tables::Tables;

/// A filter of which a snapshot can be queried in place: a [`Filter`] of any kind. Sealed.
pub trait Viewed: sealed::Sealed {
    /// The type of its keys.
    type Key: ?Sized;
    /// Its hash function.
    type Hasher;
    /// Its kind.
    type Kind: Kind;
}

mod sealed {
    pub trait Sealed {}
}

impl<K: ?Sized, S, T: Kind> sealed::Sealed for Filter<K, S, T> {}

impl<K: ?Sized, S, T: Kind> Viewed for Filter<K, S, T> {
    type Key = K;
    type Hasher = S;
    type Kind = T;
}

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
/// let filter = CuckooFilter::<String, _>::with_capacity_and_hasher(100, StableHashBuilder::new());
/// filter.insert("key")?;
/// let mut bytes = Vec::new();
/// filter.write_to(&mut bytes)?;
///
/// // Or `include_bytes!("list.filter")`.
/// let view = FilterView::<CuckooFilter<String, StableHashBuilder>>::from_bytes(&bytes)?;
/// assert!(view.contains("key"));
/// assert!(!view.contains("another key"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// The order of the fields is that of `hashed`: the hash function is last.
#[repr(C)]
pub struct FilterView<'a, F: Viewed> {
    lookups: Lookups<'a>,
    stored: Stored,
    /// The epoch of lookups.
    now: SharedCounter,
    hasher: F::Hasher,
}

/// A filter in a file that is mapped, not loaded: opened in less than a millisecond whatever its size (in a time that follows the
/// number of tables, if they differ), shared by all processes that map it through the page cache, and gone from memory when
/// the system needs it for something else.
///
/// What has not been asked for yet comes from the disk when it is. Lookups take no lock and run on any number of threads.
///
/// # The file
/// [`save`](crate::Filter::save) puts a new file in the place of the old one, and never changes one: what is mapped
/// stays what it was, until it is dropped. Open the new file, and swap an `Arc`. A file that is
/// changed by others under the same name gives other answers, and no undefined behaviour. **Where it is truncated, a lookup
/// that reads what is no longer there ends the process** (`SIGBUS` on Unix): a file that is mapped must not be cut off, and
/// no failing disk or network file system be under it.
///
/// ```
/// use concurrent_cuckoo_filter::{CuckooFilter, MappedFilter};
///
/// let path = std::env::temp_dir().join("concurrent-cuckoo-filter.example-mapped");
/// let filter = CuckooFilter::<String>::with_capacity(1_000_000);
/// filter.insert("key")?;
/// filter.save(&path)?;
///
/// let mapped = MappedFilter::<CuckooFilter<String>>::open(&path)?;
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
    /// As [`Filter::load`](crate::Filter::load), but for damage of the records.
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
    /// As [`open`](FilterView::open), and as [`Filter::read_from`](crate::Filter::read_from).
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
    /// As [`Filter::load`](crate::Filter::load).
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
    /// As [`Filter::read_from`](crate::Filter::read_from), and if anything follows the snapshot.
    pub fn from_bytes_with_hasher(bytes: &'a [u8], hasher: F::Hasher) -> Result<Self, SnapshotError> {
        let view = FilterView::new(bytes.into(), |_| Ok(hasher))?;
        view.check()?;
        Ok(view)
    }

    fn new(
        bytes: Bytes<'a>,
        hasher: impl FnOnce(&Stored) -> Result<F::Hasher, SnapshotError>,
    ) -> Result<Self, SnapshotError> {
        let mut stored = Stored::new(&bytes, F::Kind::NAME)?;
        let hasher = hasher(&stored)?;
        stored.check_asked::<F::Key, F::Hasher>(&hasher)?;
        let now = SharedCounter::default();
        now.raise(stored.epoch());
        Ok(FilterView { lookups: Lookups::new(bytes, &mut stored)?, stored, now, hasher })
    }
}

impl<F: Viewed> FilterView<'_, F> {
    /// Checks every byte: all checksums, counts and lengths, as a filter is checked that is loaded. Lookups may go on.
    ///
    /// # Errors
    /// As [`Filter::read_from`](crate::Filter::read_from).
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

    fn slots(&self) -> usize {
        let plan = self.stored.plan();
        self.lookups.tables().map_or(plan.slots(), Tables::slots)
    }
}

impl<'a, F: Viewed> FilterView<'a, F> {
    /// Returns this view as one of a filter of hashes. See [`Filter::hashed`].
    #[inline]
    #[must_use]
    pub fn hashed(&self) -> &FilterView<'a, Filter<u64, Prehashed, F::Kind>> {
        #[expect(unsafe_code)]
        // SAFETY: 1. both are `repr(C)`, and their fields are of the same types in the same order, up to the hash function, which is
        // the last one and takes no bytes in `Prehashed`.
        unsafe {
            crate::sys::prefix::begin(self)
        }
    }
}

impl<F: Viewed<Hasher: BuildHasher>> FilterView<'_, F> {
    fn mixed<Q: ?Sized + Hash>(&self, key: &Q) -> Mixed {
        Mixed::of(hash_of(&self.hasher, key))
    }

    /// Returns whether the key is present, and alive at the time of the last [`advance_to`](FilterView::advance_to). `false` is certain,
    /// `true` is wrong at the requested rate.
    ///
    /// # Complexity
    /// Two buckets of one shard are read, each in one cache line or two. Of a mapped file, pages that were not read yet come from the disk.
    #[inline]
    #[must_use]
    pub fn contains<Q: ?Sized + Hash>(&self, key: &Q) -> bool
    where
        F::Key: Borrow<Q>,
    {
        self.lookups.contains(self.mixed(key), self.now.get())
    }

    /// Looks up many keys: `found[i]` is the result of [`contains`](FilterView::contains) for `keys[i]`. Faster than a loop in large
    /// filters, whose cache lines are fetched 32 keys at a time.
    ///
    /// # Panics
    /// If `keys` and `found` differ in length.
    #[track_caller]
    pub fn contains_batch<Q: BatchKey<F::Key, Form>, Form>(&self, keys: &[Q], found: &mut [bool]) {
        self.lookups.contains_each(keys, |key| self.mixed(key), self.now.get(), found);
    }
}

impl<F: Viewed<Kind: Timed>> FilterView<'_, F> {
    /// Sets the time of lookups: this much time has passed since the last [`advance_to`](Filter::advance_to) before the snapshot was
    /// written. Time never goes back; without a call, it is that of the snapshot.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{ExpiringFilter, FilterView, StableHashBuilder};
    /// use std::time::Duration;
    ///
    /// type Seen = ExpiringFilter<String, StableHashBuilder>;
    /// let hour = Duration::from_secs(3600);
    /// let seen = ExpiringFilter::<String>::builder().capacity(100).time_to_live(24 * hour);
    /// let seen: Seen = seen.hasher(StableHashBuilder::new()).build()?;
    /// seen.see("a.com")?;
    /// let mut bytes = Vec::new();
    /// seen.write_to(&mut bytes)?;
    ///
    /// let view = FilterView::<Seen>::from_bytes(&bytes)?;
    /// view.advance_to(23 * hour);
    /// assert!(view.contains("a.com"));
    /// view.advance_to(29 * hour);
    /// assert!(!view.contains("a.com"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn advance_to(&self, passed: Duration) {
        self.now.raise(self.stored.epoch_after(passed));
    }
}

impl<K: ?Sized, S: BuildHasher> FilterView<'_, CountingFilter<K, S>> {
    /// Returns the count of the key, 0 if it is absent. See [`Filter::count`].
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CountingFilter, MappedFilter};
    ///
    /// let path = std::env::temp_dir().join("concurrent-cuckoo-filter.example-mapped-counts");
    /// let words = CountingFilter::<String>::with_capacity(100);
    /// words.add("a")?;
    /// words.add("a")?;
    /// words.save(&path)?;
    /// let words = MappedFilter::<CountingFilter<String>>::open(&path)?;
    /// assert_eq!((words.count("a"), words.count("b")), (2, 0));
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn count<Q: ?Sized + Hash>(&self, key: &Q) -> u32
    where
        K: Borrow<Q>,
    {
        let values = self.lookups.values(self.mixed(key), self.now.get());
        values.map(|value| self.lookups.of_tags(|tags| tags.count(value))).max().unwrap_or(0)
    }
}

impl<K: ?Sized, S: BuildHasher> FilterView<'_, TaggedFilter<K, S>> {
    /// Returns the tag of the key, the smallest if there are several; `None` if the key is absent. See [`Filter::tag`].
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{MappedFilter, TaggedFilter};
    ///
    /// let path = std::env::temp_dir().join("concurrent-cuckoo-filter.example-mapped-tags");
    /// let lists = TaggedFilter::<String>::with_capacity(100);
    /// lists.insert("a.com", 3)?;
    /// lists.save(&path)?;
    /// let lists = MappedFilter::<TaggedFilter<String>>::open(&path)?;
    /// assert_eq!((lists.tag("a.com"), lists.tag("b.com")), (Some(3), None));
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn tag<Q: ?Sized + Hash>(&self, key: &Q) -> Option<u32>
    where
        K: Borrow<Q>,
    {
        self.tags(key).min()
    }

    /// Returns the tags of the key, in no order, one per copy. See [`Filter::tags`].
    pub fn tags<Q: ?Sized + Hash>(&self, key: &Q) -> impl ExactSizeIterator<Item = u32> + use<K, S, Q>
    where
        K: Borrow<Q>,
    {
        self.lookups.values(self.mixed(key), 0).map(|value| value - 1)
    }
}

impl<F: Viewed> fmt::Debug for FilterView<'_, F> {
    /// Shows what the header says, not the keys of the hash function.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterView").field("header", self.stored.header()).finish_non_exhaustive()
    }
}
