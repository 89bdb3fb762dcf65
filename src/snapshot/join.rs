//! Parts of a filter: joined in memory, or shard by shard from files to a file.

use super::arriving::Arrived;
use super::file;
use super::read::{SnapshotHeader, SnapshotReader};
use super::write::Records;
use crate::error::SnapshotError;
use crate::filter::kind::{Kind, sealed::Sealed};
use crate::filter::{Filter, Time};
use crate::hashing::SavedHasher;
use crate::layout::Plan;
use crate::raw::{Assembly, Bare, RawFilter, SlotKind};
use crate::sys::memory::HugePages;
use core::ops::Range;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The fraction of a filter that must have arrived before memory for all of it is taken at once.
const ARRIVED_PART: usize = 5;

pub(super) struct Store<K: SlotKind> {
    assembly: Assembly<K>,
    bytes: usize,
    /// The latest epoch and the elapsed part of its tick.
    latest: Mutex<(u64, u32)>,
}

impl<K: SlotKind> Store<K> {
    /// Creates a store for a snapshot of which `arrived` bytes have arrived.
    fn new(plan: &Plan, arrived: usize) -> Result<Self, SnapshotError> {
        let bytes = RawFilter::<K>::bytes_at(plan, 0).unwrap_or(usize::MAX);
        // Untouched pages of the system cost nothing, whatever the header announces.
        let huge_pages = if bytes / ARRIVED_PART <= arrived { HugePages::Reused } else { HugePages::Advised };
        let assembly = Assembly::new(plan, huge_pages).ok_or(SnapshotError::OutOfMemory { bytes })?;
        Ok(Store { assembly, bytes, latest: Mutex::default() })
    }

    pub(super) fn add(&self, arrived: &Arrived) -> Result<(), SnapshotError> {
        let record = &arrived.head.record;
        let added = self.assembly.add(&record.extent, record.epoch, |shard| arrived.store_in(shard));
        added.map_err(|unfilled| arrived.refused(unfilled))?;
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        *latest = (*latest).max((record.epoch, record.passed));
        Ok(())
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
    pub(super) fn new(header: &SnapshotHeader) -> Self {
        Parts { header: header.clone(), store: None, arrived: Vec::new() }
    }

    /// Returns the place of the records, the first of which has `arrived` bytes. The size in the header may be false, so memory for
    /// the filter is allocated only after a record has been read.
    pub(super) fn store(&mut self, arrived: usize) -> Result<&Store<K>, SnapshotError> {
        let store = self.store.take().map_or_else(|| Store::new(self.header.plan(), arrived), Ok)?;
        Ok(self.store.insert(store))
    }

    /// Begins a part. Returns an error, before the part is read, if it belongs to another filter or repeats a shard.
    pub(super) fn begin(&mut self, header: &SnapshotHeader) -> Result<(), SnapshotError> {
        let (here, part) = (self.arrived.len(), &header.parsed.part);
        if let Some(what) = self.header.difference(header) {
            return Err(SnapshotError::PartsDiffer { what, part: here });
        }
        let overlap = |other: &Range<usize>| (other.start.max(part.start)..other.end.min(part.end)).next();
        let twice = self.arrived.iter().enumerate().filter_map(|(first, other)| Some((overlap(other)?, first))).min();
        if let Some((number, first)) = twice {
            return Err(SnapshotError::ShardTwice { number, parts: [first, here] });
        }
        self.arrived.push(part.clone());
        Ok(())
    }

    /// Returns an error if a shard is missing.
    fn complete(&mut self) -> Result<(), SnapshotError> {
        let shards = self.header.plan().shards;
        self.arrived.sort_unstable_by_key(|part| part.start);
        let ends = self.arrived.iter().map(|part| part.end);
        let starts = self.arrived.iter().map(|part| part.start).chain([shards]);
        let gap = core::iter::once(0).chain(ends).zip(starts).find(|(end, start)| end < start);
        gap.map_or(Ok(()), |(number, _)| Err(SnapshotError::ShardMissing { number, shards }))
    }

    pub(super) fn into_filter<Q: ?Sized, H, T: Kind + Sealed<Slots = K>>(
        mut self,
        hasher: H,
    ) -> Result<Filter<Q, H, T>, SnapshotError> {
        self.complete()?;
        let header = self.header.parsed;
        let missing = SnapshotError::ShardMissing { number: 0, shards: header.plan.shards };
        let Store { assembly, bytes, latest } = self.store.ok_or(missing)?;
        let raw = assembly.finish().ok_or(SnapshotError::OutOfMemory { bytes })?;
        let (_, passed) = latest.into_inner().unwrap_or_else(PoisonError::into_inner);
        let time = T::Time::new(&raw, header.life, passed);
        Ok(Filter::from_raw(header.capacities(), header.rate, raw, time, hasher))
    }
}

pub(super) fn join<K: ?Sized + 'static, S: SavedHasher, T: Kind>(
    parts: impl IntoIterator<Item = impl Read>,
    hasher: S,
) -> Result<Filter<K, S, T>, SnapshotError> {
    let mut joined: Option<Parts<T::Slots>> = None;
    for part in parts {
        let mut reader = SnapshotReader::new(part)?;
        let joined = match &mut joined {
            None => {
                reader.header.check_filter::<K, S, T>(&hasher)?;
                joined.insert(Parts::new(&reader.header))
            }
            Some(joined) => joined,
        };
        joined.begin(&reader.header)?;
        reader.arriving().each(|arrived| {
            if joined.header.parsed.life.is_some() {
                arrived.restart(&joined.header.parsed)?;
            }
            joined.store(arrived.bytes.len())?.add(arrived)
        })?;
    }
    joined.ok_or(SnapshotError::NoParts)?.into_filter(hasher)
}

impl<R: Read> SnapshotReader<R> {
    /// Joins parts, in any order, and writes the whole filter without holding it in memory. Returns the header of the result.
    ///
    /// The result is that of [`Filter::join`] and [`write_to`](Filter::write_to), for any type of keys and any hash function. It
    /// contains the seeds of the hash function if all parts contain them, and no metadata. Words are compared with their checksums;
    /// counts are checked when the result is loaded.
    ///
    /// # Errors
    /// Those of [`Filter::join`]. Missing, repeated and foreign parts are detected by their headers, before anything is written.
    ///
    /// # Complexity
    /// Memory: the bytes of one shard, or twice that of a filter with a time to live. All readers are open at the same time.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, SnapshotReader, StableHashBuilder};
    ///
    /// let hasher = || StableHashBuilder::with_seeds(1, 2);
    /// let parts = [2..4, 0..2].map(|shards| {
    ///     let builder = CuckooFilter::<u64>::builder().capacity(1_000_000).hasher(hasher());
    ///     let mut bytes = Vec::new();
    ///     builder.build_shards(shards).unwrap().snapshot().write_to(&mut bytes).unwrap();
    ///     bytes
    /// });
    /// let mut whole = Vec::new();
    /// let header = SnapshotReader::join_to(parts.iter().map(|part| &part[..]), &mut whole)?;
    /// assert_eq!((header.part, &header.key_type[..]), (0..4, "u64"));
    /// assert!(CuckooFilter::<u64, _>::read_from(&whole[..], hasher())?.is_empty());
    /// # Ok::<(), concurrent_cuckoo_filter::SnapshotError>(())
    /// ```
    pub fn join_to(parts: impl IntoIterator<Item = R>, writer: impl Write) -> Result<SnapshotHeader, SnapshotError> {
        let (header, readers) = whole(parts)?;
        write(&header, readers, writer)?;
        Ok(header)
    }

    /// Joins parts to a file, and replaces an older file. See [`join_to`](SnapshotReader::join_to) and [`Filter::save`].
    ///
    /// # Errors
    /// Those of [`join_to`](SnapshotReader::join_to) and [`Filter::save`].
    pub fn join_to_file(
        parts: impl IntoIterator<Item = R>,
        path: impl AsRef<Path>,
    ) -> Result<SnapshotHeader, SnapshotError> {
        let (path, (header, readers)) = (path.as_ref(), whole(parts)?);
        file::save(path, |file| write(&header, readers, file))?;
        Ok(header)
    }
}

/// Returns the parts in the order of their shards, and the header of the whole filter.
fn whole<R: Read>(
    parts: impl IntoIterator<Item = R>,
) -> Result<(SnapshotHeader, Vec<SnapshotReader<R>>), SnapshotError> {
    let mut readers = Vec::new();
    let mut joined: Option<Parts<Bare>> = None;
    for part in parts {
        let reader = SnapshotReader::new(part)?;
        reader.header.check_slots()?;
        joined.get_or_insert_with(|| Parts::new(&reader.header)).begin(&reader.header)?;
        readers.push(reader);
    }
    joined.ok_or(SnapshotError::NoParts)?.complete()?;
    let headers = || readers.iter().map(|reader| &reader.header.parsed);
    let mut whole = readers[0].header.parsed.clone();
    whole.part = 0..whole.plan.shards;
    whole.stored = headers().map(|header| header.stored).fold(0, u64::wrapping_add);
    whole.keys = whole.keys.filter(|_| headers().all(|header| header.keys.is_some()));
    readers.sort_by_key(|reader| reader.header.parsed.part.start);
    Ok((SnapshotHeader::new(whole), readers))
}

fn write<R: Read>(
    header: &SnapshotHeader,
    readers: Vec<SnapshotReader<R>>,
    writer: impl Write,
) -> Result<(), SnapshotError> {
    let mut records = Records::begin(&header.parsed, writer)?;
    for mut reader in readers {
        reader.arriving().each(|arrived| {
            match header.parsed.life {
                None => arrived.check()?,
                Some(_) => arrived.restart(&header.parsed)?,
            }
            records.write(&arrived.head.record, &arrived.bytes)
        })?;
    }
    records.end()
}
