//! Snapshots queried in place, without loading.
//!
//! ```text
//! mod       the API: opening, checks and lookups
//! lookups   the lookups of each kind of filter
//! records   the records of a plain filter of fixed size, as its shards
//! tables    tables that differ: of growing filters, and of filters with values beside fingerprints
//! ```

mod lookups;
mod records;
mod tables;

use crate::error::SnapshotError;
use crate::filter::key::BatchKey;
use crate::filter::kind::{Kind, Timed};
use crate::filter::{CountingFilter, Filter, TaggedFilter};
use crate::hashing::{Prehashed, SavedHasher, hash_of};
use crate::layout::Mixed;
#[cfg(feature = "mmap")]
use crate::snapshot::open_regular;
use crate::snapshot::{SnapshotHeader, Stored};
use crate::sys::bytes::Bytes;
use crate::sys::sync::RelaxedCounter;
use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::time::Duration;
use lookups::Lookups;
#[cfg(feature = "mmap")]
use std::{fs::File, path::Path};

/// A filter whose snapshots can be queried in place: a [`Filter`] of any kind. Sealed.
pub trait Viewed: sealed::Sealed {
    /// The type of the keys.
    type Key: ?Sized;
    /// The hash function.
    type Hasher;
    /// The kind.
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

/// A read-only filter over the bytes of a snapshot, queried in place.
///
/// [`FilterView::from_bytes`] takes any slice of bytes, such as one compiled into the program. [`MappedFilter`] maps a
/// file.
///
/// ```
/// use concurrent_cuckoo_filter::{CuckooFilter, FilterView, StableHashBuilder};
///
/// let filter = CuckooFilter::<String, _>::with_capacity_and_hasher(100, StableHashBuilder::default());
/// filter.insert("key")?;
/// let mut bytes = Vec::new();
/// filter.write_to(&mut bytes)?;
///
/// // Or `include_bytes!("list.filter")`.
/// let view = FilterView::<CuckooFilter<String, StableHashBuilder>>::from_bytes(&bytes)?;
/// assert!(view.contains("key"));
/// assert_eq!((view.header().stored, &view.header().key_type[..]), (1, "str"));
/// let mut found = [true; 2];
/// view.contains_batch(&["key", "another key"], &mut found);
/// assert_eq!(found, [true, false]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// The order of the fields is that of `hashed`: the hash function is last.
#[repr(C)]
pub struct FilterView<'a, F: Viewed> {
    lookups: Lookups<'a>,
    stored: Stored,
    /// The epoch of lookups.
    now: RelaxedCounter,
    hasher: F::Hasher,
}

/// A read-only filter in a mapped file. It opens in less than a millisecond at any size (growing filters and filters
/// with values take time per table). All processes that map the file share its memory, which the system can reclaim.
/// The first lookup of a page reads it from the disk. Lookups take no lock.
///
/// # The file
/// [`save`](crate::Filter::save) replaces the file and never changes it, so a mapped filter is unchanged until it is
/// dropped. To update, open the new file and swap an `Arc`. If another program changes the file in place, lookups
/// return other results, without undefined behaviour. **If the file is truncated, or the disk fails, a lookup kills the
/// process** (`SIGBUS` on Unix).
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
    /// Maps a file, with the seeds of the hash function in the file.
    ///
    /// Checks the header, the hash function, the type of the keys and the length of the file. **Records are not
    /// checked**: with damaged records, `contains` may return `false` for stored keys. For files from a network or of
    /// long storage, call [`check`](FilterView::check), before the first lookup or concurrently.
    ///
    /// # Errors
    /// Those of [`Filter::load`](crate::Filter::load), except damage of the records.
    ///
    /// # Complexity
    /// Reads a few pages of the file at any size. For a growing, expiring, counting or tagged filter, reads a page per
    /// table or shard, and allocates 4 bytes per cell of the directory.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        Self::map(path.as_ref(), SnapshotHeader::hasher)
    }

    /// Maps a file with this hash function, for a file without the seeds of its hash function. See
    /// [`open`](FilterView::open).
    ///
    /// # Errors
    /// Those of [`open`](FilterView::open) and [`Filter::read_from`](crate::Filter::read_from).
    pub fn open_with_hasher(path: impl AsRef<Path>, hasher: F::Hasher) -> Result<Self, SnapshotError> {
        Self::map(path.as_ref(), |_| Ok(hasher))
    }

    fn map(
        path: &Path,
        hasher: impl FnOnce(&SnapshotHeader) -> Result<F::Hasher, SnapshotError>,
    ) -> Result<Self, SnapshotError> {
        let mapped = open_regular(path, File::options().read(true))
            .and_then(|file| Bytes::map(&file))
            .map_err(SnapshotError::Io);
        let filter = mapped.and_then(|bytes| FilterView::new(bytes, hasher));
        filter.map_err(|error| error.of_file(path))
    }
}

impl<'a, F: Viewed<Key: 'static, Hasher: SavedHasher>> FilterView<'a, F> {
    /// Views the bytes of a snapshot, with the seeds of the hash function in the bytes, and checks every byte. The
    /// bytes need no alignment.
    ///
    /// # Errors
    /// Those of [`Filter::load`](crate::Filter::load).
    ///
    /// # Complexity
    /// Each byte once, in the memory of two shards, 2.5 MiB at the most.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, FilterView, SnapshotError};
    ///
    /// let mut bytes = Vec::new();
    /// CuckooFilter::<u64>::with_capacity(100).write_to(&mut bytes)?;
    /// assert!(!FilterView::<CuckooFilter<u64>>::from_bytes(&bytes)?.contains(&7));
    /// let truncated = FilterView::<CuckooFilter<u64>>::from_bytes(&bytes[..bytes.len() - 1]);
    /// assert!(matches!(truncated, Err(SnapshotError::Truncated { .. })));
    /// # Ok::<(), SnapshotError>(())
    /// ```
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, SnapshotError> {
        let view = FilterView::new(bytes.into(), SnapshotHeader::hasher)?;
        view.check()?;
        Ok(view)
    }

    /// Views the bytes of a snapshot with this hash function. See [`from_bytes`](FilterView::from_bytes).
    ///
    /// # Errors
    /// Those of [`Filter::read_from`](crate::Filter::read_from), and if anything follows the snapshot.
    pub fn from_bytes_with_hasher(bytes: &'a [u8], hasher: F::Hasher) -> Result<Self, SnapshotError> {
        let view = FilterView::new(bytes.into(), |_| Ok(hasher))?;
        view.check()?;
        Ok(view)
    }

    fn new(
        bytes: Bytes<'a>,
        hasher: impl FnOnce(&SnapshotHeader) -> Result<F::Hasher, SnapshotError>,
    ) -> Result<Self, SnapshotError> {
        let (stored, tables, hasher) = Stored::new(&bytes, |header| {
            let hasher = hasher(header)?;
            header.check_filter::<F::Key, F::Hasher, F::Kind>(&hasher).map(|()| hasher)
        })?;
        let now = RelaxedCounter::default();
        now.raise(stored.epoch_after(Duration::ZERO));
        let lookups = Lookups::new(bytes, &stored, tables)?;
        Ok(FilterView { lookups, stored, now, hasher })
    }
}

impl<F: Viewed> FilterView<'_, F> {
    /// Checks every byte: all checksums, counts and lengths, as loading does. Lookups proceed concurrently.
    ///
    /// # Errors
    /// Those of [`Filter::read_from`](crate::Filter::read_from).
    ///
    /// # Complexity
    /// Each byte once, in the memory of two shards, 2.5 MiB at the most.
    pub fn check(&self) -> Result<(), SnapshotError> {
        self.stored.check(self.lookups.bytes())
    }

    /// Returns the header of the snapshot.
    #[must_use]
    pub fn header(&self) -> &SnapshotHeader {
        &self.stored.header
    }

    /// Returns the hash function.
    #[must_use]
    pub fn hasher(&self) -> &F::Hasher {
        &self.hasher
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
    /// Two buckets of one shard are read, each in one cache line or two. A mapped file reads missing pages from the
    /// disk.
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
    /// let seen: Seen = seen.hasher(StableHashBuilder::default()).build()?;
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
        self.lookups.with_tags().count(self.mixed(key), self.now.get())
    }
}

impl<K: ?Sized, S: BuildHasher> FilterView<'_, TaggedFilter<K, S>> {
    /// Returns the tags of the key, in no order, one per copy, like [`Filter::tags`]. The smallest is the result of [`Filter::tag`].
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{FilterView, TaggedFilter};
    ///
    /// let lists = TaggedFilter::<String>::with_capacity(100);
    /// lists.insert("a.com", 3)?;
    /// let mut bytes = Vec::new();
    /// lists.write_to(&mut bytes)?;
    /// let view = FilterView::<TaggedFilter<String>>::from_bytes(&bytes)?;
    /// assert_eq!(view.tags("a.com").collect::<Vec<u32>>(), [3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tags<Q: ?Sized + Hash>(&self, key: &Q) -> impl ExactSizeIterator<Item = u32> + use<K, S, Q>
    where
        K: Borrow<Q>,
    {
        self.lookups.with_tags().values(self.mixed(key), 0).into_iter().map(|value| value - 1)
    }
}

impl<F: Viewed> fmt::Debug for FilterView<'_, F> {
    /// Shows the header, not the seeds of the hash function.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterView").field("header", &self.stored.header).finish_non_exhaustive()
    }
}
