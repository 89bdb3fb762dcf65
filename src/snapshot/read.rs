//! Reading: nothing is believed before it has arrived and was checked.

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

/// A snapshot of which the header has been read and checked.
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
    /// The checksum of the header, from which all others go on.
    pub(super) origin: u32,
    /// The file that it is alone in, which errors name.
    file: Option<PathBuf>,
    #[cfg(feature = "rayon")]
    in_parallel: bool,
}

/// What a snapshot says of itself.
#[derive(Clone)]
pub struct SnapshotHeader(pub(super) Header);

impl SnapshotHeader {
    /// The bytes that the writer gave to [`Snapshot::metadata`](super::Snapshot::metadata).
    #[must_use]
    pub fn metadata(&self) -> &[u8] {
        &self.0.metadata
    }

    /// The [name](SavedHasher::NAME) of the hash function.
    #[must_use]
    pub fn hasher_name(&self) -> &str {
        &self.0.hasher
    }

    /// Whether the keys of the hash function are in the snapshot.
    #[must_use]
    pub fn has_keys(&self) -> bool {
        self.0.keys.is_some()
    }

    /// The number of keys that was asked for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.0.capacity
    }

    /// The number of keys that the filter grows to: the [capacity](SnapshotHeader::capacity) if it does not grow.
    #[must_use]
    pub fn max_capacity(&self) -> usize {
        self.0.max_capacity()
    }

    /// Bits of a fingerprint, as [`Filter::fingerprint_bits`] tells them.
    #[must_use]
    pub fn fingerprint_bits(&self) -> u32 {
        self.0.plan.told_bits()
    }

    /// The shards of the filter.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.0.plan.shards
    }

    /// The shards that this snapshot has: all of them, unless it is a part.
    #[must_use]
    pub fn part(&self) -> Range<usize> {
        self.0.part.clone()
    }

    /// The false-positive rate that was asked for, if one was.
    #[must_use]
    pub fn false_positive_rate(&self) -> Option<f64> {
        self.0.rate
    }

    /// Fingerprints that were stored in the shards of this snapshot when it was begun: how many it has, if no writer ran
    /// meanwhile.
    #[must_use]
    pub fn stored(&self) -> u64 {
        self.0.stored
    }

    /// The name of the type of the keys; empty if it has none ([what is told
    /// apart](Filter::read_from)).
    #[must_use]
    pub fn key_type(&self) -> &str {
        self.0.key_type.name()
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.0.plan
    }

    /// Whether both are of filters built alike.
    pub(super) fn difference(&self, other: &Self) -> Option<&'static str> {
        let (one, other) = (&self.0, &other.0);
        let probes = one.key_type.probes();
        [
            (!one.plan.places_alike(&other.plan) || one.capacity != other.capacity, "size"),
            (one.kind != other.kind, "kind"),
            (one.rate != other.rate, "false-positive rate"),
            (one.key_type != other.key_type, "type of the keys"),
            (one.hasher != other.hasher || one.probe[..probes] != other.probe[..probes], "hasher or its keys"),
        ]
        .into_iter()
        .find_map(|(differs, what)| differs.then_some(what))
    }
}

impl fmt::Debug for SnapshotHeader {
    /// Shows neither the keys of the hash function, nor what was hashed with them, nor the metadata.
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
    /// Opens a file and reads the header. Errors name the file, and it must hold nothing else.
    ///
    /// # Errors
    /// Those of [`new`](SnapshotReader::new); if the file cannot be read or is not a regular one.
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
    /// If this is no snapshot, of a version that is not known, damaged or cut off.
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

    /// Has shards checked and stored on the threads of the caller's rayon pool (or of the global one), while this thread
    /// reads the next. Worth it for filters of many shards, from memory or a fast disk: to store a shard is mostly the
    /// system's work for pages that were never touched, and that is shared.
    ///
    /// The result is the same. Memory: the bytes of one more shard for each thread.
    ///
    /// What reads the shards then panics, as [`Filter::par_insert`] does, if the system refuses rayon its threads.
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

    /// Refuses a snapshot whose keys do not have this name, which [`Snapshot::key_type`](super::Snapshot::key_type) gave them.
    ///
    /// # Errors
    /// [`SnapshotError::KeyTypeMismatch`].
    pub fn expect_key_type(self, name: &str) -> Result<Self, SnapshotError> {
        let (saved, asked) = (self.header.0.key_type.clone(), KeyType::named(name));
        if saved == asked {
            return Ok(self);
        }
        Err(SnapshotError::KeyTypeMismatch { saved: saved.in_words(), asked: asked.in_words() })
    }

    /// What the snapshot says of itself.
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

    /// Reads the shards, as the filter that was written with a hash function like this one.
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

    /// Reads what follows the header, and nothing else if it is a file.
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

    /// Reads the shards and checks everything, as for a filter that is loaded, without building one.
    ///
    /// # Errors
    /// As [`Filter::read_from`], but for what is asked there: hasher and type of keys may be any.
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

    /// The records, one after another.
    pub(super) fn arriving(self) -> Arriving<R> {
        Arriving::new(self.reader, self.header.0, self.origin)
    }

    /// Stores the shards with others, which have begun with this part.
    pub(super) fn read_into<K: SlotKind>(self, parts: &mut Parts<K>) -> Result<(), SnapshotError> {
        #[cfg(feature = "rayon")]
        let in_parallel = self.in_parallel;
        let mut arriving = self.arriving();
        let mut next = arriving.next(Vec::new())?;
        // Announced by the header, so not before a shard has arrived.
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

/// A filter of which some shards have arrived.
pub(super) struct Parts<K: SlotKind> {
    header: SnapshotHeader,
    /// Made when the first record has arrived.
    store: Option<Store<K>>,
    arrived: Vec<Range<usize>>,
}

impl<K: SlotKind> Parts<K> {
    /// For snapshots with this header.
    pub(super) fn new(header: SnapshotHeader) -> Self {
        Parts { header, store: None, arrived: Vec::new() }
    }

    /// Where records are stored, of which the first has so many bytes.
    fn store(&mut self, arrived: usize) -> Result<&Store<K>, SnapshotError> {
        let store = self.store.take().map_or_else(|| Store::new(self.header.plan(), arrived), Ok)?;
        Ok(self.store.insert(store))
    }

    /// Begins with a part; an error if it is of another filter or some of it is there already, before it is read.
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

    /// Whether all shards are there.
    pub(super) fn complete(&mut self) -> Result<(), SnapshotError> {
        let shards = self.header.shards();
        self.arrived.sort_unstable_by_key(|part| part.start);
        let ends = self.arrived.iter().map(|part| part.end);
        let starts = self.arrived.iter().map(|part| part.start).chain([shards]);
        let gap = core::iter::once(0).chain(ends).zip(starts).find(|(end, start)| end < start);
        gap.map_or(Ok(()), |(number, _)| Err(SnapshotError::ShardMissing { number, shards }))
    }

    /// The filter, and what has passed of its tick.
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

/// Whether all of the filter is there.
pub(super) fn whole(header: &SnapshotHeader) -> Result<(), SnapshotError> {
    let (part, shards) = (header.part(), header.shards());
    if part.len() < shards { Err(SnapshotError::PartAlone { part, shards }) } else { Ok(()) }
}

/// The hasher with the keys that are in the snapshot.
pub(super) fn stored_hasher<S: SavedHasher>(header: &SnapshotHeader) -> Result<S, SnapshotError> {
    let header = &header.0;
    if header.hasher != S::NAME {
        return Err(mismatch::<S>(header));
    }
    let hasher = header.keys.and_then(S::from_keys);
    hasher.ok_or_else(|| SnapshotError::NoKeys { hasher: header.hasher.clone() })
}

/// Whether slots hold fingerprints alone.
pub(super) fn check_kind(SnapshotHeader(header): &SnapshotHeader) -> Result<(), SnapshotError> {
    check_kind_is(header.kind, Beside { growing: header.kind.growing, ..Beside::default() })
}

/// Whether tags and counters lie in one word each, and live as long as the header says. Kinds that nothing writes are refused.
pub(super) fn check_slots(SnapshotHeader(header): &SnapshotHeader) -> Result<(), SnapshotError> {
    let Header { plan, kind, .. } = header;
    let bits = plan.slot_bits - plan.fingerprint_bits;
    if kind.tagged && kind.expiring.is_some() {
        return Err(SnapshotError::KindMismatch { saved: kind.name(), asked: "plain" });
    }
    let invalid = |field, found: u64| {
        Err(SnapshotError::Invalid { place: SnapshotPlace::Header, field, found: found.to_string() })
    };
    if bits > Tags::most_bits(plan.slot_bits) {
        return invalid("bits beside a fingerprint", bits.into());
    }
    match kind.expiring {
        // One value is dead, and of the others the last one may have begun.
        Some(Expiring { tag_bits, time_to_live, tick, .. })
            if tick.saturating_mul((1 << tag_bits) - 2) < time_to_live =>
        {
            invalid("tick", tick)
        }
        _ => Ok(()),
    }
}

/// Whether, beyond that, each shard is one record.
pub(super) fn check_plain(SnapshotHeader(header): &SnapshotHeader) -> Result<(), SnapshotError> {
    check_kind_is(header.kind, Beside::default())
}

fn check_kind_is(kind: Beside, possible: Beside) -> Result<(), SnapshotError> {
    if kind == possible {
        return Ok(());
    }
    Err(SnapshotError::KindMismatch { saved: kind.name(), asked: "plain" })
}

/// Whether this is the hasher and the type of keys of the snapshot, and slots hold fingerprints alone.
pub(super) fn check<K, S>(header: &SnapshotHeader, hasher: &S) -> Result<(), SnapshotError>
where
    K: ?Sized + 'static,
    S: SavedHasher,
{
    check_kind(header)?;
    check_hashing::<K, S>(header, hasher)
}

/// Whether this is the kind, the hash function and the type of keys of the snapshot.
pub(super) fn check_filter<K, S, T>(header: &SnapshotHeader, hasher: &S) -> Result<(), SnapshotError>
where
    K: ?Sized + 'static,
    S: SavedHasher,
    T: Kind,
{
    let (saved, asked) = (header.0.kind, T::NAME);
    if saved.filter() != asked {
        return Err(SnapshotError::KindMismatch { saved: saved.name(), asked });
    }
    check_slots(header)?;
    check_hashing::<K, S>(header, hasher)
}

/// Whether this is the hash function and the type of keys of the snapshot.
pub(super) fn check_hashing<K, S>(SnapshotHeader(header): &SnapshotHeader, hasher: &S) -> Result<(), SnapshotError>
where
    K: ?Sized + 'static,
    S: SavedHasher,
{
    let asked = KeyType::of::<K>();
    if !header.key_type.may_be(&asked) {
        let saved = header.key_type.clone();
        return Err(SnapshotError::KeyTypeMismatch { saved: saved.in_words(), asked: asked.in_words() });
    }
    let probes = header.key_type.probes().max(asked.probes());
    if header.hasher != S::NAME || header.probe[..probes] != probe(hasher)[..probes] {
        return Err(mismatch::<S>(header));
    }
    Ok(())
}

/// Nothing may follow.
pub(super) fn at_end(reader: impl Read) -> Result<(), SnapshotError> {
    if io::copy(&mut reader.take(1), &mut io::sink())? == 0 { Ok(()) } else { Err(SnapshotError::TrailingBytes) }
}

fn mismatch<S: SavedHasher>(header: &Header) -> SnapshotError {
    SnapshotError::HasherMismatch { saved: header.hasher.clone(), given: S::NAME }
}
