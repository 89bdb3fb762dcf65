//! Reading: nothing is believed before it has arrived and was checked.

use super::format::{self, CHECKSUM, Header, PREFIX, SHARD_PREFIX, TRAILER};
use super::key_type::KeyType;
use super::par_read;
use crate::error::{SnapshotError, SnapshotPlace};
use crate::filter::CuckooFilter;
use crate::geometry::{Geometry, Plan};
use crate::hashing::{SavedHasher, probe};
use crate::shard::Shard;
use crate::table::Format;
use core::fmt;
use core::ops::Range;
use crc32c::crc32c_append;
use std::collections::BTreeMap;
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
/// let loaded: CuckooFilter<str> = reader.into_filter_with_its_keys()?;
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
        self.0.plan.width
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

    /// Has shards checked and built on the threads of the caller's rayon pool (or of the global one), while this thread
    /// reads the next. Worth it for filters of many shards, from memory or a fast disk: building a filter is mostly the
    /// system's work for pages that nobody has touched, and that is shared.
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
    /// let loaded: CuckooFilter<u64> = SnapshotReader::new(&bytes[..])?.in_parallel().into_filter_with_its_keys()?;
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
        let mut parts = Parts::new(self.header.clone());
        parts.check::<K, S>(&hasher)?;
        let (part, shards) = (self.header.part(), self.header.shards());
        if part.len() < shards {
            return Err(SnapshotError::PartAlone { part, shards });
        }
        self.read_into(&mut parts)?;
        parts.into_filter(hasher)
    }

    /// Reads the shards, with the keys of the hasher that are in the snapshot. As [`CuckooFilter::load`].
    ///
    /// # Errors
    /// As [`CuckooFilter::read_from`], and if the snapshot was written [without the
    /// keys](super::Snapshot::without_keys).
    pub fn into_filter_with_its_keys<K, S>(self) -> Result<CuckooFilter<K, S>, SnapshotError>
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
        let in_parallel = self.in_parallel;
        let mut arriving = Arriving::new(self);
        if in_parallel {
            return par_read::read(arriving, parts);
        }
        let mut bytes = Vec::new();
        while let Some(arrived) = arriving.next(bytes)? {
            parts.push(arrived.number, arrived.shard()?)?;
            bytes = arrived.bytes;
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

/// The bytes of a shard, which nobody has looked at.
pub(super) struct Arrived {
    pub(super) number: usize,
    pub(super) bytes: Vec<u8>,
    plan: Plan,
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
        Ok(Some(Arrived { number, bytes, plan: self.plan, origin: self.origin, prefix, count, checksum }))
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
    /// The shard, if the bytes are what its checksum and its count say.
    pub(super) fn shard(&self) -> Result<Shard, SnapshotError> {
        let Arrived { ref plan, ref bytes, count, .. } = *self;
        let place = SnapshotPlace::Shard { number: self.number };
        if crc32c_append(crc32c_append(self.origin, &self.prefix), bytes) != u32::from_le_bytes(self.checksum) {
            return Err(SnapshotError::Damaged { place });
        }
        let words = bytes.chunks_exact(size_of::<u64>());
        let words = words.map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")));
        let memory = || SnapshotError::OutOfMemory { bytes: bytes.len() };
        let shard = Shard::of_words(plan, words, count).ok_or_else(memory)?;
        let (field, found) = match shard.occupied(&Geometry::new(plan), &Format::new(plan.width)) {
            Some(found) if found == count => return Ok(shard),
            Some(found) => ("number of fingerprints", found.to_string()),
            None => ("end of the last bucket", String::from("not 0")),
        };
        Err(SnapshotError::Invalid { place, field, found })
    }
}

/// Shards that have arrived, of a filter that is not yet whole.
pub(super) struct Parts {
    header: SnapshotHeader,
    shards: Vec<(usize, Shard)>,
}

impl Parts {
    fn new(header: SnapshotHeader) -> Self {
        Parts { header, shards: Vec::new() }
    }

    pub(super) fn push(&mut self, number: usize, shard: Shard) -> Result<(), SnapshotError> {
        let bytes = size_of::<(usize, Shard)>();
        self.shards.try_reserve(1).map_err(|_| SnapshotError::OutOfMemory { bytes })?;
        self.shards.push((number, shard));
        Ok(())
    }

    /// Whether this is the hasher and the type of keys of the snapshot.
    fn check<K: ?Sized + 'static, S: SavedHasher>(&self, hasher: &S) -> Result<(), SnapshotError> {
        let header = &self.header.0;
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

    fn into_filter<K: ?Sized, S>(mut self, hasher: S) -> Result<CuckooFilter<K, S>, SnapshotError> {
        let header = &self.header.0;
        self.shards.sort_unstable_by_key(|&(number, _)| number);
        let numbers = self.shards.iter().map(|&(number, _)| number);
        let missing = numbers.zip(0..).find_map(|(number, expected)| (number != expected).then_some(expected));
        if let Some(number) = missing.or((self.shards.len() < header.plan.shards).then_some(self.shards.len())) {
            return Err(SnapshotError::ShardMissing { number, shards: header.plan.shards });
        }
        let shards = self.shards.into_iter().map(|(_, shard)| shard).collect();
        Ok(CuckooFilter::of_shards(header.capacity, header.rate, &header.plan, shards, hasher))
    }
}

pub(super) fn join<K, S, R>(parts: impl IntoIterator<Item = R>, hasher: S) -> Result<CuckooFilter<K, S>, SnapshotError>
where
    K: ?Sized + 'static,
    S: SavedHasher,
    R: Read,
{
    let mut joined: Option<Parts> = None;
    // Where the part that begins with a shard ends.
    let mut ends = BTreeMap::new();
    for part in parts {
        let reader = SnapshotReader::new(part)?;
        let joined = joined.get_or_insert_with(|| Parts::new(reader.header.clone()));
        joined.check::<K, S>(&hasher)?;
        if let Some(what) = joined.header.difference(&reader.header) {
            return Err(SnapshotError::PartsDiffer { what });
        }
        // Before its shards are read: they would only be kept to be refused.
        let part = reader.header.part();
        let nearest = ends.range(..part.end).next_back();
        if let Some((&start, _)) = nearest.filter(|&(_, &end)| end > part.start) {
            return Err(SnapshotError::ShardTwice { number: part.start.max(start) });
        }
        ends.insert(part.start, part.end);
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
        io::ErrorKind::UnexpectedEof => SnapshotError::CutOff { place },
        _ => SnapshotError::Io(error),
    })
}

/// Reads so many bytes into the buffer, which grows as they arrive.
fn take(reader: &mut impl Read, len: usize, buffer: &mut Vec<u8>, place: SnapshotPlace) -> Result<(), SnapshotError> {
    let mut have = 0;
    while have < len {
        let next = have.saturating_mul(2).max(CHUNK).min(len);
        if buffer.len() < next {
            buffer.try_reserve(next - buffer.len()).map_err(|_| SnapshotError::OutOfMemory { bytes: next })?;
            buffer.resize(next, 0);
        }
        exact(reader, &mut buffer[have..next], place)?;
        have = next;
    }
    buffer.truncate(len);
    Ok(())
}
