//! Reads snapshots. The header and each record are checked before they are used.

use super::arriving::{Arriving, Heads, exact};
use super::file::open_regular;
use super::format::{self, Header, PREFIX};
use super::join::Parts;
#[cfg(feature = "rayon")]
use super::par_read;
use crate::error::{SnapshotError, SnapshotPlace};
use crate::filter::Filter;
use crate::filter::kind::Kind;
use crate::hashing::SavedHasher;
use crate::layout::Plan;
use crate::raw::SlotKind;
use crate::stats::Config;
use core::ops::Range;
use core::{fmt, mem};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// A snapshot whose header has been read and checked.
///
/// ```
/// use concurrent_cuckoo_filter::{CuckooFilter, SnapshotReader};
///
/// let filter = CuckooFilter::<String>::with_capacity(100);
/// let mut bytes = Vec::new();
/// filter.snapshot().metadata(b"list of today").write_to(&mut bytes)?;
///
/// let reader = SnapshotReader::new(&bytes[..])?;
/// assert_eq!(reader.header().config.capacity, 100);
/// assert_eq!(reader.header().metadata, b"list of today");
/// let loaded: CuckooFilter<String> = reader.into_filter()?;
/// # Ok::<(), concurrent_cuckoo_filter::SnapshotError>(())
/// ```
pub struct SnapshotReader<R> {
    pub(super) reader: R,
    pub(super) header: SnapshotHeader,
    /// The checksum of the header, from which all other checksums of the snapshot start.
    pub(super) origin: u32,
    /// The path of the file, for errors, if the reader was created by `open`. The file must then end with the snapshot.
    pub(super) file: Option<PathBuf>,
    #[cfg(feature = "rayon")]
    in_parallel: bool,
}

/// The header of a snapshot.
///
/// ```
/// use concurrent_cuckoo_filter::{CuckooFilter, SnapshotReader};
///
/// let filter = CuckooFilter::<u64>::with_capacity(100);
/// filter.insert(&7)?;
/// let mut bytes = Vec::new();
/// filter.snapshot().metadata(b"day 2").write_to(&mut bytes)?;
/// let reader = SnapshotReader::new(&bytes[..])?;
/// let header = reader.header();
/// assert_eq!(header.config, filter.config());
/// assert_eq!((&header.key_type[..], &header.metadata[..]), ("u64", &b"day 2"[..]));
/// assert_eq!((header.part.clone(), header.stored), (0..1, 1));
/// assert!(header.has_seeds && header.hasher_name.starts_with("ahash"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct SnapshotHeader {
    /// The fixed properties of the filter.
    pub config: Config,
    /// The bytes that were passed to [`Snapshot::metadata`](super::Snapshot::metadata).
    pub metadata: Vec<u8>,
    /// The [name](SavedHasher::NAME) of the hash function.
    pub hasher_name: String,
    /// Whether the snapshot contains the seeds of the hash function.
    pub has_seeds: bool,
    /// The name of the key type; empty for a type that is not one of [the named types](Filter::read_from).
    pub key_type: String,
    /// The shards in this snapshot: all shards, unless it is a part.
    pub part: Range<usize>,
    /// The number of slots in use in the shards of this snapshot when the snapshot began to be written; in the header
    /// of a [`FilterView`](crate::FilterView), when it was complete. The number is exact if no thread changed the
    /// filter in between.
    pub stored: u64,
    /// The parsed header, without the metadata, which is in `metadata`.
    pub(super) parsed: Header,
}

impl SnapshotHeader {
    pub(super) fn new(mut parsed: Header) -> Self {
        let Header { plan, kind, rate, ref life, .. } = parsed;
        SnapshotHeader {
            config: Config::new(kind, &plan, parsed.capacities(), rate, life.as_ref()),
            metadata: mem::take(&mut parsed.metadata),
            hasher_name: parsed.hasher.clone(),
            has_seeds: parsed.keys.is_some(),
            key_type: parsed.key_type.name().into(),
            part: parsed.part.clone(),
            stored: parsed.stored,
            parsed,
        }
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.parsed.plan
    }
}

impl fmt::Debug for SnapshotHeader {
    /// Shows neither the seeds of the hash function, nor hashes made with them, nor the metadata.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotHeader")
            .field("config", &self.config)
            .field("part", &self.part)
            .field("hasher_name", &self.hasher_name)
            .field("has_seeds", &self.has_seeds)
            .field("key_type", &self.key_type)
            .field("stored", &self.stored)
            .field("metadata", &format_args!("{} bytes", self.metadata.len()))
            .finish_non_exhaustive()
    }
}

impl SnapshotReader<BufReader<File>> {
    /// Opens a file and reads the header. The file must contain nothing but the snapshot. The text of a system error
    /// includes the path.
    ///
    /// # Errors
    /// Those of [`new`](SnapshotReader::new), and an error if the file cannot be read or is not a regular file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        let path = path.as_ref();
        let opened = open_regular(path, File::options().read(true)).map_err(SnapshotError::Io);
        let reader = opened.and_then(|file| SnapshotReader::new(BufReader::with_capacity(1 << 16, file)));
        let reader = reader.map_err(|error| error.of_file(path))?;
        Ok(SnapshotReader { file: Some(path.into()), ..reader })
    }
}

impl<R: Read> SnapshotReader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// If the data is not a snapshot, has an unknown version, is damaged or is truncated.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{SnapshotError, SnapshotReader};
    ///
    /// let error = SnapshotReader::new(&b"another file"[..]).unwrap_err();
    /// assert!(matches!(error, SnapshotError::NotASnapshot));
    /// ```
    pub fn new(mut reader: R) -> Result<Self, SnapshotError> {
        let mut bytes = Vec::with_capacity(PREFIX);
        reader.by_ref().take(PREFIX as u64).read_to_end(&mut bytes)?;
        let prefix = bytes.first_chunk().ok_or_else(|| format::too_short(&bytes))?;
        bytes.resize(Header::length(prefix)?, 0);
        exact(&mut reader, &mut bytes[PREFIX..], SnapshotPlace::Header)?;
        let header = SnapshotHeader::new(Header::parse(&bytes)?);
        Ok(SnapshotReader {
            reader,
            header,
            origin: format::origin(&bytes),
            file: None,
            #[cfg(feature = "rayon")]
            in_parallel: false,
        })
    }

    /// Checks and stores shards on the threads of the caller's rayon pool (or of the global one), while this thread
    /// reads the next shard. This is faster for filters of many shards, from memory or a fast disk: most of the time to
    /// store a shard goes to the system, which supplies pages, and several threads share that work.
    ///
    /// The resulting filter is the same as on one thread. Each thread takes memory for the bytes of one more shard.
    ///
    /// Like [`Filter::par_insert`], the call that reads the shards panics if rayon cannot start its threads.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, SnapshotReader};
    ///
    /// let filter = CuckooFilter::<u64>::with_capacity(300_000);
    /// filter.insert(&7)?;
    /// let mut bytes = Vec::new();
    /// filter.write_to(&mut bytes)?;
    /// let loaded: CuckooFilter<u64> = SnapshotReader::new(&bytes[..])?.in_parallel().into_filter()?;
    /// assert!(loaded.contains(&7));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "rayon")]
    #[must_use]
    pub fn in_parallel(mut self) -> Self {
        self.in_parallel = true;
        self
    }

    pub(super) fn header_bytes(&self) -> Vec<u8> {
        Header { metadata: self.header.metadata.clone(), ..self.header.parsed.clone() }.to_bytes()
    }

    /// Returns the header.
    #[must_use]
    pub fn header(&self) -> &SnapshotHeader {
        &self.header
    }

    /// Reads the shards into a filter whose hash function has the seeds stored in the snapshot.
    ///
    /// # Errors
    /// Those of [`Filter::load`].
    pub fn into_filter<K, S, T>(self) -> Result<Filter<K, S, T>, SnapshotError>
    where
        K: ?Sized + 'static,
        S: SavedHasher,
        T: Kind,
    {
        let hasher = self.header.hasher()?;
        self.into_filter_with_hasher(hasher)
    }

    /// Reads the shards into a filter with this hash function, whose output must equal that of the hash function with
    /// which the snapshot was written.
    ///
    /// # Errors
    /// Those of [`Filter::read_from`].
    pub fn into_filter_with_hasher<K, S, T>(self, hasher: S) -> Result<Filter<K, S, T>, SnapshotError>
    where
        K: ?Sized + 'static,
        S: SavedHasher,
        T: Kind,
    {
        self.read_whole(|snapshot| {
            snapshot.header.check_filter::<K, S, T>(&hasher)?;
            snapshot.header.check_whole()?;
            let mut parts = Parts::new(&snapshot.header);
            parts.begin(&snapshot.header)?;
            snapshot.read_into(&mut parts)?;
            parts.into_filter(hasher)
        })
    }

    /// Calls `read`, which reads the records, and checks that a file opened by `open` ends after them.
    fn read_whole<A>(mut self, read: impl FnOnce(&mut Self) -> Result<A, SnapshotError>) -> Result<A, SnapshotError> {
        let read = read(&mut self);
        let Some(file) = self.file else { return read };
        let ended = read.and_then(|answer| at_end(self.reader).map(|()| answer));
        ended.map_err(|error| error.of_file(&file))
    }

    /// Reads the shards and checks every byte, without building a filter.
    ///
    /// # Errors
    /// Those of [`Filter::read_from`], except those for a different kind of filter, hash function or key type.
    ///
    /// # Complexity
    /// Takes twice the memory of one shard.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, SnapshotReader};
    ///
    /// let filter = CuckooFilter::<String>::with_capacity(100);
    /// let mut bytes = Vec::new();
    /// filter.write_to(&mut bytes)?;
    /// assert!(SnapshotReader::new(&bytes[..])?.check().is_ok());
    /// *bytes.last_mut().unwrap() ^= 1;
    /// assert!(SnapshotReader::new(&bytes[..])?.check().is_err());
    /// # Ok::<(), concurrent_cuckoo_filter::SnapshotError>(())
    /// ```
    pub fn check(self) -> Result<(), SnapshotError> {
        self.read_whole(|snapshot| {
            snapshot.header.check_slots()?;
            let plan = *snapshot.header.plan();
            snapshot.arriving().each(|arrived| arrived.check_alone(&plan))
        })
    }

    /// Returns a reader that yields the records one at a time.
    pub(super) fn arriving(&mut self) -> Arriving<'_, &mut R> {
        Arriving { heads: Heads::new(&self.header.parsed, self.origin), reader: &mut self.reader }
    }

    /// Adds the shards of this snapshot to `parts`. [`Parts::begin`] must have been called with this header.
    pub(super) fn read_into<K: SlotKind>(&mut self, parts: &mut Parts<K>) -> Result<(), SnapshotError> {
        #[cfg(feature = "rayon")]
        if self.in_parallel {
            let mut arriving = self.arriving();
            let first = arriving.next(Vec::new())?;
            let store = parts.store(first.as_ref().map_or(0, |first| first.bytes.len()))?;
            return par_read::read(first, arriving, store);
        }
        self.arriving().each(|arrived| parts.store(arrived.bytes.len())?.add(arrived))
    }
}

impl<R> fmt::Debug for SnapshotReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotReader").field("header", &self.header).finish_non_exhaustive()
    }
}

/// Returns an error unless the reader is at its end.
pub(super) fn at_end(reader: impl Read) -> Result<(), SnapshotError> {
    if io::copy(&mut reader.take(1), &mut io::sink())? == 0 { Ok(()) } else { Err(SnapshotError::TrailingBytes) }
}
