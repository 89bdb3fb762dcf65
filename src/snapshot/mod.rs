//! Filters in files: saved during use, and checked when loaded.
//!
//! ```text
//! write   one shard at a time: locked and copied, then unlocked, then written
//! read    each record is checked and stored in its shard
//! delta   the changes between two snapshots, applied to a filter with the contents of the first
//! join    parts: joined to a filter, or shard by shard to a file
//! file    written next to the old file, synced and renamed
//! ```

mod arriving;
mod checks;
mod delta;
mod file;
mod format;
#[expect(clippy::disallowed_types, reason = "a lock around numbers of a snapshot, no part of the protocol")]
mod join;
mod key_type;
#[cfg(feature = "rayon")]
mod par_read;
mod read;
#[cfg(feature = "serde")]
mod serde;
mod stored;
mod write;

pub use delta::DeltaReport;
#[cfg(all(test, feature = "shared", target_os = "linux", not(cuckoo_model)))]
pub(crate) use file::in_tests::with_failing_calls;
#[cfg(feature = "mmap")]
pub(crate) use file::open_regular;
#[cfg(all(feature = "shared", target_os = "linux"))]
pub(crate) use file::{TempFile, folder_and_name};
pub(crate) use format::Header;
pub use read::{SnapshotHeader, SnapshotReader};
pub(crate) use stored::{Placed, Stored};
pub(crate) use write::Copied;

use crate::error::SnapshotError;
use crate::filter::kind::Kind;
use crate::filter::{Clock, Filter, Time};
use crate::hashing::SavedHasher;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Range;
use key_type::KeyType;
use std::io::{Read, Write};
use std::path::Path;

/// An unwritten snapshot of a filter, with options. [`Filter::snapshot`] returns one.
///
/// ```
/// use concurrent_cuckoo_filter::{CuckooFilter, SnapshotReader};
///
/// let filter = CuckooFilter::<String>::with_capacity(100);
/// filter.insert("key")?;
/// let mut bytes = Vec::new();
/// filter.snapshot().metadata(b"log offset 17").write_to(&mut bytes)?;
///
/// let reader = SnapshotReader::new(&bytes[..])?;
/// assert_eq!(reader.header().metadata, b"log offset 17");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is written before `write_to` or `save` is called"]
pub struct Snapshot<'a, K: ?Sized, S> {
    /// A filter, or some of its shards, numbered from 0.
    raw: &'a (dyn Copied + Sync),
    /// The numbers of these shards in the whole filter.
    there: Range<usize>,
    /// The time of a filter whose keys or counts die.
    clock: Option<&'a Clock>,
    header: Header,
    types: PhantomData<fn(&K, &S)>,
}

impl<'a, K: ?Sized + 'static, S: SavedHasher> Snapshot<'a, K, S> {
    pub(crate) fn new(
        raw: &'a (dyn Copied + Sync),
        there: Range<usize>,
        clock: Option<&'a Clock>,
        header: Header,
    ) -> Self {
        let header = Header { part: there.clone(), ..header };
        Snapshot { raw, there, clock, header, types: PhantomData }
    }

    /// Stores up to 64 KiB of the caller's bytes in the snapshot, such as the position in a log of changes up to which
    /// the filter is current.
    ///
    /// # Replaying a log
    /// If no writer runs between the moment of the position and the end of the call that writes, replaying the
    /// successful changes after the position, in order, gives an equal filter (a nearly full filter may refuse a key).
    /// Lookups may run at any time. Writers pause for a shorter time if the snapshot is written to memory.
    ///
    /// With concurrent writers, the snapshot already contains some of the changes after the position, and replaying
    /// them is wrong: an insertion stores a second copy, which a removal leaves behind; and the removal of an absent key
    /// removes the copy of another key of the same class, if any: a false negative.
    ///
    /// Such a snapshot is sufficient for a filter without removals. Read the position before the snapshot is written,
    /// after all earlier changes have been made; replay each insertion as [`insert_unique`](Filter::insert_unique), and
    /// no removal. Then lookups find every key, and no key is stored twice. Keys that the log removed may still be
    /// found. Later removals are wrong, even of inserted keys: a key whose `insert_unique` returned `false` may rely on
    /// the copy of another key, and removing either of the two removes both.
    pub fn metadata(mut self, bytes: &'a [u8]) -> Self {
        self.header.metadata = bytes.into();
        self
    }

    /// Omits the seeds of the hash function. The hash function must then be passed to load the snapshot
    /// ([`Filter::read_from`]).
    ///
    /// A reader of the seeds can compute colliding keys.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, StableHashBuilder};
    ///
    /// let hasher = StableHashBuilder::with_seeds(1, 2);
    /// let filter = CuckooFilter::<String, _>::with_capacity_and_hasher(100, hasher.clone());
    /// filter.insert("key")?;
    /// let mut bytes = Vec::new();
    /// filter.snapshot().without_seeds().write_to(&mut bytes)?;
    /// assert!(CuckooFilter::<String, _>::read_from(&bytes[..], hasher)?.contains("key"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn without_seeds(mut self) -> Self {
        self.header.keys = None;
        self
    }

    /// Sets the name of the type of the keys, of at most 64 bytes, for user types, which have no name otherwise. Compare it with the
    /// [`key_type`](SnapshotHeader::key_type) of the header before loading, and choose a new name whenever the `Hash` of the type changes.
    /// It replaces the name of [a named type](Filter::read_from): filters of that type do not load the snapshot under another name.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, SnapshotReader};
    ///
    /// type Orders = CuckooFilter<(u32, u64)>;
    /// let mut bytes = Vec::new();
    /// Orders::with_capacity(100).snapshot().key_type("order-1").write_to(&mut bytes)?;
    ///
    /// let reader = SnapshotReader::new(&bytes[..])?;
    /// assert_eq!(reader.header().key_type, "order-1");
    /// let orders: Orders = reader.into_filter()?;
    /// # Ok::<(), concurrent_cuckoo_filter::SnapshotError>(())
    /// ```
    pub fn key_type(mut self, name: &'a str) -> Self {
        self.header.key_type = KeyType::named(name);
        self
    }

    /// Writes only these shards, as a part for [`Filter::join`].
    pub fn shards(mut self, shards: Range<usize>) -> Self {
        self.header.part = shards;
        self
    }

    /// Writes the snapshot. See [`Filter::write_to`].
    ///
    /// # Errors
    /// Those of [`Filter::write_to`]; if the metadata or the name of the key type is too long; if a requested shard
    /// does not exist.
    pub fn write_to(self, writer: impl Write) -> Result<(), SnapshotError> {
        self.checked()?.write(writer)
    }

    /// Writes the snapshot to a file. See [`Filter::save`].
    ///
    /// # Errors
    /// Those of [`Snapshot::write_to`] and [`Filter::save`].
    pub fn save(self, path: impl AsRef<Path>) -> Result<(), SnapshotError> {
        let checked = self.checked()?;
        file::save(path.as_ref(), |file| checked.write(file))
    }
}

impl<K: ?Sized, S> fmt::Debug for Snapshot<'_, K, S> {
    /// Shows the options, not the metadata.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("metadata", &format_args!("{} bytes", self.header.metadata.len()))
            .field("with_seeds", &self.header.keys.is_some())
            .field("shards", &self.header.part)
            .finish_non_exhaustive()
    }
}

impl<K: ?Sized + 'static, S: SavedHasher, T: Kind> Filter<K, S, T> {
    /// Returns an unwritten snapshot, for options. [`write_to`](Filter::write_to) and [`save`](Filter::save) write a
    /// snapshot without options.
    pub fn snapshot(&self) -> Snapshot<'_, K, S> {
        let (plan, capacities) = (self.plan(), [self.capacity, self.max_capacity]);
        let header = Header::of::<K, S>(T::NAME, plan, self.life().copied(), capacities, self.rate(), &self.hasher);
        Snapshot::new(&self.raw, 0..plan.shards, self.time.clock(), header)
    }

    /// Writes the filter, while other threads use it.
    ///
    /// Every key that is in the filter during the whole call is in the snapshot; a key that is inserted or removed in the
    /// meantime may be in it or not ([consequences for a log](Snapshot::metadata)). Lookups never wait, and a writer
    /// waits at most for the copy of one shard, at most 1 MiB.
    ///
    /// The bytes mean the same on every platform; where the hashes of a type of keys do not, as those of IP addresses in another byte
    /// order or with another width of `usize`, loading fails. The seeds of the hash function are among the bytes, unless
    /// [`Snapshot::without_seeds`] leaves them out.
    ///
    /// # Errors
    /// Those of the writer, and [`SnapshotError::OutOfMemory`].
    ///
    /// # Complexity
    /// Each word once. Memory: twice that of a shard.
    pub fn write_to(&self, writer: impl Write) -> Result<(), SnapshotError> {
        self.snapshot().write_to(writer)
    }

    /// Writes the filter to a file, in place of an older one. On Unix, a crash of the program or of the machine leaves the
    /// old file or the new one: the new file is written next to the old one, under a name that ends in `.tmp`, synced and
    /// renamed, and the folder is synced. Elsewhere the folder is not synced.
    ///
    /// The file may contain the seeds of the hash function, so on Unix only its owner can read and write a new file; a
    /// file that replaces an older one keeps its permission bits. A symbolic link is replaced, and its target is
    /// unchanged. Files left by a killed process may be removed while no process saves.
    ///
    /// # Errors
    /// Those of [`write_to`](Filter::write_to); errors of the system for the file and its folder, which on Unix must be
    /// readable; if the path is neither a file nor a link. The old file stays, unless only the folder could not be
    /// synced: then a power cut may undo the replacement.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let path = std::env::temp_dir().join("concurrent-cuckoo-filter.example");
    /// let filter = CuckooFilter::<String>::with_capacity(100);
    /// filter.insert("key")?;
    /// filter.save(&path)?;
    /// assert!(CuckooFilter::<String>::load(&path)?.contains("key"));
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), SnapshotError> {
        self.snapshot().save(path)
    }

    /// Reads a filter that was written with a hash function like this one. Bytes that follow it are left unread.
    ///
    /// Everything is checked before it is used: the header, the checksum and the count of each shard, the hash function
    /// and the type of the keys. Memory is allocated as bytes arrive, so a false length causes an error, not a large
    /// allocation; without the feature `mmap`, a filter of fixed size is allocated whole once its first shard has been
    /// read. Where keys or counts die, time continues from the last [`advance_to`](Filter::advance_to) before the
    /// snapshot was written.
    ///
    /// These checks can miss damage to more than 32 bits, with probability 2^-32; a hash function whose output has
    /// changed under the same name, but for none of the probed values ([`SavedHasher`]); and intent. A filter that is
    /// damaged or queried with another function may return `false` for its keys.
    ///
    /// # Types of keys
    /// `str`, `[u8]`, `bool`, `char`, each type of integer and the addresses of `std::net` without ports are
    /// distinguished. `String`, and `&'static`, `Box`, `Arc`, `Rc` or `Cow` of `str`, count as `str`, and those of bytes
    /// as `[u8]`. All other types, such as tuples, arrays and user types, have no name in the snapshot, and match any
    /// type. If two such types hash differently, or if the `Hash` of a type has changed, the filter returns `false` for
    /// its keys, without an error. [`Snapshot::key_type`] names such a type.
    ///
    /// # Errors
    /// [`SnapshotError`], which names the error and its place. Only [`join`](Filter::join) reads a
    /// [part](Snapshot::shards).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, SnapshotError, StableHashBuilder};
    ///
    /// let filter = CuckooFilter::<String, _>::with_capacity_and_hasher(100, StableHashBuilder::with_seeds(1, 2));
    /// let mut bytes = Vec::new();
    /// filter.write_to(&mut bytes)?;
    /// let other = CuckooFilter::<String, _>::read_from(&bytes[..], StableHashBuilder::with_seeds(1, 3));
    /// assert!(matches!(other, Err(SnapshotError::HasherMismatch { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read_from(reader: impl Read, hasher: S) -> Result<Self, SnapshotError> {
        SnapshotReader::new(reader)?.into_filter_with_hasher(hasher)
    }

    /// Reads a filter from a file, with the seeds of the hash function that are stored there. See
    /// [`read_from`](Filter::read_from). To use several threads, or to pass the hash function, use
    /// [`SnapshotReader::open`].
    ///
    /// # Errors
    /// Those of [`read_from`](Filter::read_from); if the file cannot be read or is not a regular one; if it was written
    /// [without seeds](Snapshot::without_seeds); if anything follows the snapshot. For a pipe, use
    /// [`SnapshotReader::new`].
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, SnapshotError};
    ///
    /// let path = std::env::temp_dir().join("concurrent-cuckoo-filter.example-load");
    /// CuckooFilter::<u64>::with_capacity(100).save(&path)?;
    /// assert!(CuckooFilter::<u64>::load(&path)?.is_empty());
    /// let other = CuckooFilter::<String>::load(&path);
    /// assert!(matches!(other, Err(SnapshotError::KeyTypeMismatch { .. })));
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn load(path: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        SnapshotReader::open(path)?.into_filter()
    }

    /// Joins [parts](Snapshot::shards) of filters that were built alike (capacity, rate or width, options of their kind, hash function with
    /// its seeds), in other processes or on other machines: a list divided by [`shard_of`](Filter::shard_of) is loaded by all of
    /// them at once.
    ///
    /// The metadata of the parts, which may differ, is dropped: read it with [`SnapshotReader`]. Bytes that follow a part in its reader are
    /// left unread. In a filter with a time to live, each key keeps the ticks that it had left when its part was written,
    /// whenever that was: the clock of the joined filter begins anew, with a whole tick.
    ///
    /// # Errors
    /// Those of [`read_from`](Filter::read_from); if the parts are of different filters, if a shard is missing, or if a
    /// part has a shard of an earlier part, of which only the header is read then.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, StableHashBuilder};
    ///
    /// let hasher = || StableHashBuilder::with_seeds(1, 2);
    /// let build = || CuckooFilter::<u64, _>::with_capacity_and_hasher(600_000, hasher());
    /// let parts = [0..1, 1..build().config().shards].map(|shards| {
    ///     // In a process of its own:
    ///     let filter = build();
    ///     let keys: Vec<u64> = (0..10_000).filter(|key| shards.contains(&filter.shard_of(key))).collect();
    ///     assert!(filter.par_insert(&keys).refused.is_empty());
    ///     let mut part = Vec::new();
    ///     filter.snapshot().shards(shards).write_to(&mut part).map(|()| part)
    /// });
    /// let [first, second] = parts;
    /// let filter = CuckooFilter::<u64, _>::join([&first?[..], &second?[..]], hasher())?;
    /// assert!((0..10_000).all(|key| filter.contains(&key)));
    /// # Ok::<(), concurrent_cuckoo_filter::SnapshotError>(())
    /// ```
    pub fn join<R: Read>(parts: impl IntoIterator<Item = R>, hasher: S) -> Result<Self, SnapshotError> {
        join::join(parts, hasher)
    }
}
