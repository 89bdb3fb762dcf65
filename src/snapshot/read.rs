//! Reading: nothing is believed before it has arrived and was checked.

use super::format::{self, CHECKSUM, Header, PREFIX, SHARD_PREFIX, TRAILER};
use super::key_type::KeyType;
use super::par_read;
use crate::error::{SnapshotError, SnapshotPlace};
use crate::filter::CuckooFilter;
use crate::hashing::{SavedHasher, probe};
use crate::layout::Plan;
use crate::raw::RawFilter;
use crate::sys::memory::HugePages;
use core::fmt;
use core::ops::Range;
use crc32c::crc32c_append;
use std::io::{self, BufRead, Read};

/// Bytes that are asked for at a time: as many as may have been taken in vain when a length lies.
const CHUNK: usize = 64 << 10;

/// A snapshot of which the header has been read and checked.
///
/// ```
/// use concurrent_cuckoo_filter::{CuckooFilter, SnapshotReader};
///
/// let filter = CuckooFilter::<str>::with_capacity(100);
/// let mut bytes = Vec::new();
/// filter.snapshot().metadata(b"list of today").write_to(&mut bytes)?;
///
/// let reader = SnapshotReader::new(&bytes[..])?;
/// assert_eq!(reader.header().capacity(), 100);
/// assert_eq!(reader.header().metadata(), b"list of today");
/// let loaded: CuckooFilter<str> = reader.into_filter_with_stored_keys()?;
/// # Ok::<(), concurrent_cuckoo_filter::SnapshotError>(())
/// ```
pub struct SnapshotReader<R> {
    reader: R,
    header: SnapshotHeader,
    /// The checksum of the header, from which all others go on.
    origin: u32,
    in_parallel: bool,
}

/// What a snapshot says of itself.
#[derive(Clone)]
pub struct SnapshotHeader(Header);

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

    /// Bits of a fingerprint.
    #[must_use]
    pub fn fingerprint_bits(&self) -> u32 {
        self.0.plan.fingerprint_bits
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

    /// Whether both are of filters built alike.
    fn difference(&self, other: &Self) -> Option<&'static str> {
        let (one, other) = (&self.0, &other.0);
        let probes = one.key_type.probes();
        [
            (!one.plan.places_alike(&other.plan) || one.capacity != other.capacity, "size"),
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
            .field("fingerprint_bits", &self.fingerprint_bits())
            .field("shards", &self.shards())
            .field("part", &self.part())
            .field("hasher_name", &self.hasher_name())
            .field("has_keys", &self.has_keys())
            .field("metadata", &format_args!("{} bytes", self.metadata().len()))
            .finish_non_exhaustive()
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
        Ok(SnapshotReader { reader, header, origin: format::origin(&bytes), in_parallel: false })
    }

    /// Has shards checked and stored on the threads of the caller's rayon pool (or of the global one), while this thread
    /// reads the next. Worth it for filters of many shards, from memory or a fast disk: to store a shard is mostly the
    /// system's work for pages that were never touched, and that is shared.
    ///
    /// The result is the same. Memory: the bytes of one more shard for each thread.
    ///
    /// What reads the shards then panics, as [`CuckooFilter::par_insert`] does, if the system refuses rayon its threads.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, SnapshotReader};
    ///
    /// let filter = CuckooFilter::<u64>::with_capacity(300_000);
    /// filter.insert(&7)?;
    /// let mut bytes = Vec::new();
    /// filter.write_to(&mut bytes)?;
    /// let loaded: CuckooFilter<u64> = SnapshotReader::new(&bytes[..])?.in_parallel().into_filter_with_stored_keys()?;
    /// assert!(loaded.contains(&7));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn in_parallel(mut self) -> Self {
        self.in_parallel = true;
        self
    }

    /// What the snapshot says of itself.
    #[must_use]
    pub fn header(&self) -> &SnapshotHeader {
        &self.header
    }

    /// Reads the shards, as the filter that was written with a hasher like this one. As [`CuckooFilter::read_from`].
    ///
    /// # Errors
    /// As [`CuckooFilter::read_from`].
    pub fn into_filter<K, S>(self, hasher: S) -> Result<CuckooFilter<K, S>, SnapshotError>
    where
        K: ?Sized + 'static,
        S: SavedHasher,
    {
        let (part, shards) = (self.header.part(), self.header.shards());
        check::<K, S>(&self.header, &hasher)?;
        if part.len() < shards {
            return Err(SnapshotError::PartAlone { part, shards });
        }
        let mut parts = Parts::new(self.header.clone());
        self.read_into(&mut parts)?;
        parts.into_filter(hasher)
    }

    /// Reads the shards, with the keys of the hasher that are in the snapshot. As [`CuckooFilter::load`].
    ///
    /// # Errors
    /// As [`CuckooFilter::read_from`], and if the snapshot was written [without the
    /// keys](super::Snapshot::without_keys).
    pub fn into_filter_with_stored_keys<K, S>(self) -> Result<CuckooFilter<K, S>, SnapshotError>
    where
        K: ?Sized + 'static,
        S: SavedHasher,
    {
        let header = &self.header.0;
        if header.hasher != S::NAME {
            return Err(mismatch::<S>(header));
        }
        let hasher = header.keys.and_then(S::from_keys);
        let hasher = hasher.ok_or_else(|| SnapshotError::NoKeys { hasher: header.hasher.clone() })?;
        self.into_filter(hasher)
    }

    fn read_into(self, parts: &mut Parts) -> Result<(), SnapshotError> {
        parts.begin(self.header.part())?;
        let in_parallel = self.in_parallel;
        let mut arriving = Arriving::new(self);
        let mut next = arriving.next(Vec::new())?;
        // Announced by the header, so not before a shard has arrived.
        let raw = parts.raw()?;
        if in_parallel {
            return par_read::read(next, arriving, raw);
        }
        while let Some(arrived) = next {
            arrived.store_in(raw)?;
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

/// The shards of a snapshot, one after another.
pub(super) struct Arriving<R> {
    reader: R,
    plan: Plan,
    numbers: Range<usize>,
    origin: u32,
    /// What the trailer will say.
    shards: usize,
    total: u64,
    checksums: u32,
}

/// The bytes of a shard, not yet checked.
pub(super) struct Arrived {
    pub(super) number: usize,
    pub(super) bytes: Vec<u8>,
    origin: u32,
    prefix: [u8; SHARD_PREFIX],
    count: u64,
    checksum: [u8; CHECKSUM],
}

impl<R: Read> Arriving<R> {
    fn new(SnapshotReader { reader, header, origin, .. }: SnapshotReader<R>) -> Self {
        let Header { plan, part, .. } = header.0;
        Arriving { reader, plan, shards: part.len(), numbers: part, origin, total: 0, checksums: origin }
    }

    /// Reads the next shard, into this memory. `None` behind the last one, when the trailer has been read and checked.
    pub(super) fn next(&mut self, mut bytes: Vec<u8>) -> Result<Option<Arrived>, SnapshotError> {
        let Some(number) = self.numbers.next() else { return self.trailer().map(|()| None) };
        let place = SnapshotPlace::Shard { number };
        let mut prefix = [0; SHARD_PREFIX];
        exact(&mut self.reader, &mut prefix, place)?;
        let count = format::shard_count(&prefix, number, self.plan.words)?;
        take(&mut self.reader, self.plan.words * size_of::<u64>(), &mut bytes, place)?;
        let mut checksum = [0; CHECKSUM];
        exact(&mut self.reader, &mut checksum, place)?;
        self.checksums = crc32c_append(self.checksums, &checksum);
        // No sum of counts, each of slots that are there, overflows.
        self.total = self.total.wrapping_add(count);
        Ok(Some(Arrived { number, bytes, origin: self.origin, prefix, count, checksum }))
    }

    fn trailer(&mut self) -> Result<(), SnapshotError> {
        let mut trailer = [0; TRAILER];
        exact(&mut self.reader, &mut trailer, SnapshotPlace::Trailer)?;
        if trailer != format::trailer(self.shards, self.total, self.checksums) {
            return Err(SnapshotError::Damaged { place: SnapshotPlace::Trailer });
        }
        Ok(())
    }
}

impl Arrived {
    /// Stores the shard, if the bytes are what its checksum and its count say.
    pub(super) fn store_in(&self, raw: &RawFilter) -> Result<(), SnapshotError> {
        let Arrived { ref bytes, count, .. } = *self;
        let place = SnapshotPlace::Shard { number: self.number };
        if crc32c_append(crc32c_append(self.origin, &self.prefix), bytes) != u32::from_le_bytes(self.checksum) {
            return Err(SnapshotError::Damaged { place });
        }
        let words = bytes.chunks_exact(size_of::<u64>());
        let shard = raw.shard(self.number);
        shard.fill_with(words.map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes"))), count);
        let (field, found) = match shard.occupied() {
            Some(found) if found == count => return Ok(()),
            Some(found) => ("number of fingerprints", found.to_string()),
            None => ("end of the last bucket", String::from("not 0")),
        };
        Err(SnapshotError::Invalid { place, field, found })
    }
}

/// A filter of which some shards have arrived.
pub(super) struct Parts {
    header: SnapshotHeader,
    /// Address space for the whole, reserved when the first shard has arrived; the system supplies memory for what is
    /// stored.
    raw: Option<RawFilter>,
    arrived: Vec<Range<usize>>,
}

impl Parts {
    /// For snapshots with this header.
    fn new(header: SnapshotHeader) -> Self {
        Parts { header, raw: None, arrived: Vec::new() }
    }

    /// Where shards are stored.
    fn raw(&mut self) -> Result<&RawFilter, SnapshotError> {
        let plan = &self.header.0.plan;
        if self.raw.is_none() {
            self.raw = RawFilter::new(plan, HugePages::Advised);
        }
        let bytes = RawFilter::bytes_of(plan).unwrap_or(usize::MAX);
        self.raw.as_ref().ok_or(SnapshotError::OutOfMemory { bytes })
    }

    /// Begins with a part; an error if some of it is there already, before it is read.
    fn begin(&mut self, part: Range<usize>) -> Result<(), SnapshotError> {
        let overlap = |other: &Range<usize>| (other.start.max(part.start)..other.end.min(part.end)).next();
        if let Some(number) = self.arrived.iter().filter_map(overlap).min() {
            return Err(SnapshotError::ShardTwice { number });
        }
        self.arrived.push(part);
        Ok(())
    }

    fn into_filter<K: ?Sized, S>(mut self, hasher: S) -> Result<CuckooFilter<K, S>, SnapshotError> {
        let header = &self.header.0;
        let shards = header.plan.shards;
        self.arrived.sort_unstable_by_key(|part| part.start);
        let ends = self.arrived.iter().map(|part| part.end);
        let starts = self.arrived.iter().map(|part| part.start).chain([shards]);
        let gap = core::iter::once(0).chain(ends).zip(starts).find(|(end, start)| end < start);
        if let Some((number, _)) = gap {
            return Err(SnapshotError::ShardMissing { number, shards });
        }
        let raw = self.raw.ok_or(SnapshotError::ShardMissing { number: 0, shards })?;
        Ok(CuckooFilter::from_raw(header.capacity, header.rate, raw, hasher))
    }
}

/// Whether this is the hasher and the type of keys of the snapshot.
fn check<K: ?Sized + 'static, S: SavedHasher>(header: &SnapshotHeader, hasher: &S) -> Result<(), SnapshotError> {
    let header = &header.0;
    let asked = KeyType::of::<K>();
    if !header.key_type.may_be(asked) {
        return Err(SnapshotError::KeyTypeMismatch { saved: header.key_type.name(), asked: asked.name() });
    }
    let probes = header.key_type.probes().max(asked.probes());
    if header.hasher != S::NAME || header.probe[..probes] != probe(hasher)[..probes] {
        return Err(mismatch::<S>(header));
    }
    Ok(())
}

pub(super) fn join<K, S, R>(parts: impl IntoIterator<Item = R>, hasher: S) -> Result<CuckooFilter<K, S>, SnapshotError>
where
    K: ?Sized + 'static,
    S: SavedHasher,
    R: Read,
{
    let mut joined: Option<Parts> = None;
    for part in parts {
        let reader = SnapshotReader::new(part)?;
        let joined = match &mut joined {
            None => {
                check::<K, S>(&reader.header, &hasher)?;
                joined.insert(Parts::new(reader.header.clone()))
            }
            Some(joined) => joined,
        };
        if let Some(what) = joined.header.difference(&reader.header) {
            return Err(SnapshotError::PartsDiffer { what });
        }
        reader.read_into(joined)?;
    }
    joined.ok_or(SnapshotError::NoParts)?.into_filter(hasher)
}

/// Nothing may follow.
pub(super) fn at_end(reader: impl BufRead) -> Result<(), SnapshotError> {
    match reader.bytes().next().transpose()? {
        None => Ok(()),
        Some(_) => Err(SnapshotError::TrailingBytes),
    }
}

fn mismatch<S: SavedHasher>(header: &Header) -> SnapshotError {
    SnapshotError::HasherMismatch { saved: header.hasher.clone(), given: S::NAME }
}

/// Fills the buffer, or says where the bytes ended.
fn exact(reader: &mut impl Read, buffer: &mut [u8], place: SnapshotPlace) -> Result<(), SnapshotError> {
    reader.read_exact(buffer).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => SnapshotError::Truncated { place },
        _ => SnapshotError::Io(error),
    })
}

/// Reads `len` bytes into the buffer, which grows as they arrive.
fn take(reader: &mut impl Read, len: usize, buffer: &mut Vec<u8>, place: SnapshotPlace) -> Result<(), SnapshotError> {
    let mut have = 0;
    while have < len {
        let next = have.saturating_mul(2).max(CHUNK).min(len);
        let grown = next.max(buffer.len());
        buffer.try_reserve(grown - buffer.len()).map_err(|_| SnapshotError::OutOfMemory { bytes: next })?;
        buffer.resize(grown, 0);
        exact(reader, &mut buffer[have..next], place)?;
        have = next;
    }
    buffer.truncate(len);
    Ok(())
}
