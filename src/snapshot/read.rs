//! Reading: each part of a snapshot is checked before it is used.

use super::arriving::{Arriving, Store, exact};
use super::file::open_regular;
use super::format::{self, Expiring, Header, Kind as Beside, PREFIX};
use super::key_type::KeyType;
#[cfg(feature = "rayon")]
use super::par_read;
use crate::error::{SnapshotError, SnapshotPlace};
use crate::filter::kind::Kind;
use crate::filter::kind::sealed::Sealed;
use crate::filter::{Filter, Life};
use crate::hashing::{SavedHasher, probe};
use crate::layout::{Plan, Tags};
use crate::raw::{RawFilter, SlotKind};
use core::fmt;
use core::ops::Range;
use core::time::Duration;
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
/// assert_eq!(reader.header().capacity(), 100);
/// assert_eq!(reader.header().metadata(), b"list of today");
/// let loaded: CuckooFilter<String> = reader.into_filter()?;
/// # Ok::<(), concurrent_cuckoo_filter::SnapshotError>(())
/// ```
pub struct SnapshotReader<R> {
    pub(super) reader: R,
    pub(super) header: SnapshotHeader,
    /// The checksum of the header, with which all others begin.
    pub(super) origin: u32,
    /// The file, if the snapshot is its only content, for errors.
    file: Option<PathBuf>,
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
/// assert_eq!((header.capacity(), header.max_capacity(), header.false_positive_rate()), (100, 100, Some(0.001)));
/// assert_eq!((header.fingerprint_bits(), header.shards(), header.part()), (13, 1, 0..1));
/// assert_eq!((header.stored(), header.key_type(), header.metadata()), (1, "u64", &b"day 2"[..]));
/// assert!(header.has_keys() && header.hasher_name().starts_with("ahash"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct SnapshotHeader(pub(super) Header);

impl SnapshotHeader {
    /// Returns the bytes that were passed to [`Snapshot::metadata`](super::Snapshot::metadata).
    #[must_use]
    pub fn metadata(&self) -> &[u8] {
        &self.0.metadata
    }

    /// Returns the [name](SavedHasher::NAME) of the hash function.
    #[must_use]
    pub fn hasher_name(&self) -> &str {
        &self.0.hasher
    }

    /// Returns whether the snapshot contains the seeds of the hash function.
    #[must_use]
    pub fn has_keys(&self) -> bool {
        self.0.keys.is_some()
    }

    /// Returns the requested number of keys.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.0.capacity
    }

    /// Returns the number of keys that the filter grows to; the [capacity](SnapshotHeader::capacity) if it does not
    /// grow.
    #[must_use]
    pub fn max_capacity(&self) -> usize {
        self.0.max_capacity()
    }

    /// Returns the bits of a fingerprint. See [`Filter::fingerprint_bits`].
    #[must_use]
    pub fn fingerprint_bits(&self) -> u32 {
        self.0.plan.told_bits()
    }

    /// Returns the number of shards of the filter.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.0.plan.shards
    }

    /// Returns the shards in this snapshot: all shards, unless it is a part.
    #[must_use]
    pub fn part(&self) -> Range<usize> {
        self.0.part.clone()
    }

    /// Returns the requested false-positive rate; `None` if a width was requested.
    #[must_use]
    pub fn false_positive_rate(&self) -> Option<f64> {
        self.0.rate
    }

    /// Returns the number of slots in use in the shards of this snapshot when writing began. It is exact if no writer
    /// ran during the write.
    #[must_use]
    pub fn stored(&self) -> u64 {
        self.0.stored
    }

    /// Returns the name of the type of the keys; empty if it has none ([the named types](Filter::read_from)).
    #[must_use]
    pub fn key_type(&self) -> &str {
        self.0.key_type.name()
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.0.plan
    }

    /// Returns the first difference between the filters of two headers, if any.
    pub(super) fn difference(&self, other: &Self) -> Option<&'static str> {
        let (one, other) = (&self.0, &other.0);
        let probes = one.key_type.probes();
        [
            (!one.plan.places_alike(&other.plan) || one.capacity != other.capacity, "size"),
            (one.kind != other.kind, "kind"),
            (one.rate != other.rate, "false-positive rate"),
            (one.key_type != other.key_type, "type of the keys"),
            (one.hasher != other.hasher || one.probe[..probes] != other.probe[..probes], "hasher or its seeds"),
        ]
        .into_iter()
        .find_map(|(differs, what)| differs.then_some(what))
    }
}

impl fmt::Debug for SnapshotHeader {
    /// Shows neither the seeds of the hash function, nor hashes made with them, nor the metadata.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotHeader")
            .field("capacity", &self.capacity())
            .field("max_capacity", &self.max_capacity())
            .field("fingerprint_bits", &self.fingerprint_bits())
            .field("shards", &self.shards())
            .field("part", &self.part())
            .field("hasher_name", &self.hasher_name())
            .field("has_keys", &self.has_keys())
            .field("key_type", &self.key_type())
            .field("stored", &self.stored())
            .field("metadata", &format_args!("{} bytes", self.metadata().len()))
            .finish_non_exhaustive()
    }
}

impl SnapshotReader<BufReader<File>> {
    /// Opens a file and reads the header. Errors name the file, which must contain nothing but the snapshot.
    ///
    /// # Errors
    /// Those of [`new`](SnapshotReader::new); if the file cannot be read or is not a regular one.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, SnapshotReader};
    ///
    /// let path = std::env::temp_dir().join("concurrent-cuckoo-filter.example-reader");
    /// CuckooFilter::<u64>::with_capacity(100).save(&path)?;
    /// let loaded: CuckooFilter<u64> = SnapshotReader::open(&path)?.into_filter()?;
    /// assert!(loaded.is_empty());
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        let path = path.as_ref();
        let opened = open_regular(path).map_err(SnapshotError::Io);
        let reader = opened.and_then(|file| SnapshotReader::new(BufReader::with_capacity(1 << 16, file)));
        let reader = reader.map_err(|error| error.of_file(path))?;
        Ok(SnapshotReader { file: Some(path.into()), ..reader })
    }
}

impl<R: Read> SnapshotReader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// If the data is no snapshot, has an unknown version, is damaged or is truncated.
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
        let header = SnapshotHeader(Header::parse(&bytes)?);
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
    /// store a shard is spent by the system on supplying pages, and several threads share that work.
    ///
    /// The result is that of one thread. The memory is the bytes of one more shard per thread.
    ///
    /// The call that reads the shards panics if the system refuses rayon its threads, like [`Filter::par_insert`].
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
        self.header.0.to_bytes()
    }

    /// Checks that the type of the keys has this name, which [`Snapshot::key_type`](super::Snapshot::key_type) set.
    ///
    /// # Errors
    /// [`SnapshotError::KeyTypeMismatch`].
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, SnapshotReader};
    ///
    /// let mut bytes = Vec::new();
    /// CuckooFilter::<(u32, u64)>::with_capacity(100).snapshot().key_type("order-1").write_to(&mut bytes)?;
    /// assert!(SnapshotReader::new(&bytes[..])?.expect_key_type("order-1").is_ok());
    /// assert!(SnapshotReader::new(&bytes[..])?.expect_key_type("order-2").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn expect_key_type(self, name: &str) -> Result<Self, SnapshotError> {
        let (saved, requested) = (self.header.0.key_type.clone(), KeyType::named(name));
        if saved == requested {
            return Ok(self);
        }
        Err(SnapshotError::KeyTypeMismatch { saved: saved.in_words(), requested: requested.in_words() })
    }

    /// Returns the header.
    #[must_use]
    pub fn header(&self) -> &SnapshotHeader {
        &self.header
    }

    /// Reads the shards, with the seeds of the hash function that are stored in the snapshot.
    ///
    /// # Errors
    /// Those of [`Filter::load`].
    pub fn into_filter<K, S, T>(self) -> Result<Filter<K, S, T>, SnapshotError>
    where
        K: ?Sized + 'static,
        S: SavedHasher,
        T: Kind,
    {
        let hasher = stored_hasher(&self.header)?;
        self.into_filter_with_hasher(hasher)
    }

    /// Reads the shards of a snapshot that was written with a hash function of equal output.
    ///
    /// # Errors
    /// Those of [`Filter::read_from`].
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, SnapshotReader, StableHashBuilder};
    ///
    /// let path = std::env::temp_dir().join("concurrent-cuckoo-filter.example-without-keys");
    /// let hasher = StableHashBuilder::with_keys(1, 2);
    /// let filter = CuckooFilter::<String, _>::with_capacity_and_hasher(100, hasher.clone());
    /// filter.insert("key")?;
    /// filter.snapshot().without_keys().save(&path)?;
    /// let loaded: CuckooFilter<String, _> = SnapshotReader::open(&path)?.into_filter_with_hasher(hasher)?;
    /// assert!(loaded.contains("key"));
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn into_filter_with_hasher<K, S, T>(self, hasher: S) -> Result<Filter<K, S, T>, SnapshotError>
    where
        K: ?Sized + 'static,
        S: SavedHasher,
        T: Kind,
    {
        self.read_whole(|snapshot| {
            check_filter::<K, S, T>(&snapshot.header, &hasher)?;
            whole(&snapshot.header)?;
            let mut parts = Parts::new(snapshot.header.clone());
            parts.begin(&snapshot.header)?;
            snapshot.read_into(&mut parts)?;
            parts.into_filter(hasher)
        })
    }

    /// Reads the records, and checks that a file ends after them.
    fn read_whole<A>(
        mut self,
        read: impl FnOnce(SnapshotReader<&mut R>) -> Result<A, SnapshotError>,
    ) -> Result<A, SnapshotError> {
        let read = read(SnapshotReader {
            reader: &mut self.reader,
            header: self.header,
            origin: self.origin,
            file: None,
            #[cfg(feature = "rayon")]
            in_parallel: self.in_parallel,
        });
        let Some(file) = self.file else { return read };
        let ended = read.and_then(|answer| at_end(self.reader).map(|()| answer));
        ended.map_err(|error| error.of_file(&file))
    }

    /// Reads the shards and checks every byte, without building a filter.
    ///
    /// # Errors
    /// Those of [`Filter::read_from`], except mismatches of the kind, the hash function and the type of keys.
    ///
    /// # Complexity
    /// Memory: twice that of a shard.
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
            check_slots(&snapshot.header)?;
            let mut arriving = snapshot.arriving();
            let mut next = arriving.next(Vec::new())?;
            let plan = arriving.plan;
            while let Some(arrived) = next {
                arrived.check_alone(&plan)?;
                next = arriving.next(arrived.bytes)?;
            }
            Ok(())
        })
    }

    /// Returns the records, one after another.
    pub(super) fn arriving(self) -> Arriving<R> {
        Arriving::new(self.reader, self.header.0, self.origin)
    }

    /// Stores the shards among others, after [`Parts::begin`] with this header.
    pub(super) fn read_into<K: SlotKind>(self, parts: &mut Parts<K>) -> Result<(), SnapshotError> {
        #[cfg(feature = "rayon")]
        let in_parallel = self.in_parallel;
        let mut arriving = self.arriving();
        let mut next = arriving.next(Vec::new())?;
        // The header announces the size, so no memory is allocated before a shard has arrived.
        let store = parts.store(next.as_ref().map_or(0, |first| first.bytes.len()))?;
        #[cfg(feature = "rayon")]
        if in_parallel {
            return par_read::read(next, arriving, store);
        }
        while let Some(arrived) = next {
            arrived.add_to(store)?;
            next = arriving.next(arrived.bytes)?;
        }
        Ok(())
    }
}

impl<R> fmt::Debug for SnapshotReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotReader").field("header", &self.header).finish_non_exhaustive()
    }
}

/// A filter with some of its shards.
pub(super) struct Parts<K: SlotKind> {
    header: SnapshotHeader,
    /// Created when the first record has arrived.
    store: Option<Store<K>>,
    arrived: Vec<Range<usize>>,
}

impl<K: SlotKind> Parts<K> {
    /// For snapshots with this header.
    pub(super) fn new(header: SnapshotHeader) -> Self {
        Parts { header, store: None, arrived: Vec::new() }
    }

    /// Returns the place of the records. The first record has `arrived` bytes.
    fn store(&mut self, arrived: usize) -> Result<&Store<K>, SnapshotError> {
        let store = self.store.take().map_or_else(|| Store::new(self.header.plan(), arrived), Ok)?;
        Ok(self.store.insert(store))
    }

    /// Begins a part; an error, before the part is read, if it belongs to another filter or repeats a shard.
    pub(super) fn begin(&mut self, header: &SnapshotHeader) -> Result<(), SnapshotError> {
        let (here, part) = (self.arrived.len(), header.part());
        if let Some(what) = self.header.difference(header) {
            return Err(SnapshotError::PartsDiffer { what, part: here });
        }
        let overlap = |other: &Range<usize>| (other.start.max(part.start)..other.end.min(part.end)).next();
        let twice = self.arrived.iter().enumerate().filter_map(|(first, other)| Some((overlap(other)?, first))).min();
        if let Some((number, first)) = twice {
            return Err(SnapshotError::ShardTwice { number, parts: [first, here] });
        }
        self.arrived.push(part);
        Ok(())
    }

    /// Returns an error if a shard is missing.
    pub(super) fn complete(&mut self) -> Result<(), SnapshotError> {
        let shards = self.header.shards();
        self.arrived.sort_unstable_by_key(|part| part.start);
        let ends = self.arrived.iter().map(|part| part.end);
        let starts = self.arrived.iter().map(|part| part.start).chain([shards]);
        let gap = core::iter::once(0).chain(ends).zip(starts).find(|(end, start)| end < start);
        gap.map_or(Ok(()), |(number, _)| Err(SnapshotError::ShardMissing { number, shards }))
    }

    /// Returns the filter, and the elapsed part of its tick.
    pub(super) fn finish(mut self) -> Result<(RawFilter<K>, u32), SnapshotError> {
        self.complete()?;
        let missing = SnapshotError::ShardMissing { number: 0, shards: self.header.shards() };
        self.store.ok_or(missing)?.finish()
    }
}

impl<S: SlotKind> Parts<S> {
    pub(super) fn into_filter<K: ?Sized, H, T: Kind + Sealed<Slots = S>>(
        self,
        hasher: H,
    ) -> Result<Filter<K, H, T>, SnapshotError> {
        let header = self.header.0.clone();
        let life = header.kind.expiring.map(|Expiring { time_to_live, tick, renewed, .. }| {
            let [time, tick] = [time_to_live, tick].map(Duration::from_nanos);
            Life { time, tick, renews: renewed }
        });
        let (raw, passed) = self.finish()?;
        let time = T::resumed(&raw, life, passed);
        Ok(Filter::from_raw([header.capacity, header.max_capacity()], header.rate, raw, time, hasher))
    }
}

/// Returns an error for a part.
pub(super) fn whole(header: &SnapshotHeader) -> Result<(), SnapshotError> {
    let (part, shards) = (header.part(), header.shards());
    if part.len() < shards { Err(SnapshotError::PartAlone { part, shards }) } else { Ok(()) }
}

/// Returns the hash function with the seeds in the snapshot.
pub(super) fn stored_hasher<S: SavedHasher>(header: &SnapshotHeader) -> Result<S, SnapshotError> {
    let header = &header.0;
    if header.hasher != S::NAME {
        return Err(mismatch::<S>(header));
    }
    let hasher = header.keys.and_then(S::from_keys);
    hasher.ok_or_else(|| SnapshotError::NoKeys { hasher: header.hasher.clone() })
}

/// Returns an error if slots hold more than fingerprints.
pub(super) fn check_kind(SnapshotHeader(header): &SnapshotHeader) -> Result<(), SnapshotError> {
    check_kind_is(header.kind, Beside { growing: header.kind.growing, ..Beside::default() })
}

/// Returns an error if a tag or counter straddles words, or if the ticks are too short for the time to live. Refuses
/// kinds that no version writes.
pub(super) fn check_slots(SnapshotHeader(header): &SnapshotHeader) -> Result<(), SnapshotError> {
    let Header { plan, kind, .. } = header;
    let bits = plan.slot_bits - plan.fingerprint_bits;
    if kind.tagged && kind.expiring.is_some() {
        return Err(SnapshotError::KindMismatch { saved: kind.name(), requested: "plain" });
    }
    let invalid = |field, found: u64| {
        Err(SnapshotError::Invalid { place: SnapshotPlace::Header, field, found: found.to_string() })
    };
    if bits > Tags::most_bits(plan.slot_bits) {
        return invalid("bits beside a fingerprint", bits.into());
    }
    match kind.expiring {
        // One value is dead, and a part of the last tick may have passed.
        Some(Expiring { tag_bits, time_to_live, tick, .. })
            if tick.saturating_mul((1 << tag_bits) - 2) < time_to_live =>
        {
            invalid("tick", tick)
        }
        _ => Ok(()),
    }
}

/// Returns an error unless the filter is plain and of fixed size.
pub(super) fn check_plain(SnapshotHeader(header): &SnapshotHeader) -> Result<(), SnapshotError> {
    check_kind_is(header.kind, Beside::default())
}

fn check_kind_is(kind: Beside, possible: Beside) -> Result<(), SnapshotError> {
    if kind == possible {
        return Ok(());
    }
    Err(SnapshotError::KindMismatch { saved: kind.name(), requested: "plain" })
}

/// Returns an error if the hash function or the type of keys differs, or if slots hold more than fingerprints.
pub(super) fn check<K, S>(header: &SnapshotHeader, hasher: &S) -> Result<(), SnapshotError>
where
    K: ?Sized + 'static,
    S: SavedHasher,
{
    check_kind(header)?;
    check_hashing::<K, S>(header, hasher)
}

/// Returns an error if the kind, the hash function or the type of keys differs.
pub(super) fn check_filter<K, S, T>(header: &SnapshotHeader, hasher: &S) -> Result<(), SnapshotError>
where
    K: ?Sized + 'static,
    S: SavedHasher,
    T: Kind,
{
    let (saved, requested) = (header.0.kind, T::NAME);
    if saved.filter() != requested {
        return Err(SnapshotError::KindMismatch { saved: saved.name(), requested });
    }
    check_slots(header)?;
    check_hashing::<K, S>(header, hasher)
}

/// Returns an error if the hash function or the type of keys differs.
pub(super) fn check_hashing<K, S>(SnapshotHeader(header): &SnapshotHeader, hasher: &S) -> Result<(), SnapshotError>
where
    K: ?Sized + 'static,
    S: SavedHasher,
{
    let requested = KeyType::of::<K>();
    if !header.key_type.may_be(&requested) {
        let saved = header.key_type.clone();
        return Err(SnapshotError::KeyTypeMismatch { saved: saved.in_words(), requested: requested.in_words() });
    }
    let probes = header.key_type.probes().max(requested.probes());
    if header.hasher != S::NAME || header.probe[..probes] != probe(hasher)[..probes] {
        return Err(mismatch::<S>(header));
    }
    Ok(())
}

/// Returns an error unless the reader is at its end.
pub(super) fn at_end(reader: impl Read) -> Result<(), SnapshotError> {
    if io::copy(&mut reader.take(1), &mut io::sink())? == 0 { Ok(()) } else { Err(SnapshotError::TrailingBytes) }
}

fn mismatch<S: SavedHasher>(header: &Header) -> SnapshotError {
    SnapshotError::HasherMismatch { saved: header.hasher.clone(), given: S::NAME }
}
