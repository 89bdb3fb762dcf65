//! Records as they arrive, and the filter that stores them.

use super::format::{self, Header, Kind, RECORD_HEAD, Record, TRAILER};
use crate::error::{SnapshotError, SnapshotPlace};
use crate::layout::{Extent, Plan};
use crate::raw::{Assembly, RawFilter, Shard, SlotKind, Unfilled, fill_alone};
use crate::sys::memory::HugePages;
use core::ops::Range;
use crc32c::crc32c;
use std::io::{self, Read};
use std::sync::{Mutex, PoisonError};

/// Bytes allocated at a time, which bounds the allocation for a false length.
const CHUNK: usize = 64 << 10;

/// The fraction of a filter that must have arrived before memory for all of it is taken at once.
const ARRIVED_PART: usize = 5;

/// The records of a snapshot, one after another.
pub(super) struct Arriving<R> {
    reader: R,
    pub(super) plan: Plan,
    kind: Kind,
    /// The cells whose records are outstanding; a filter of fixed size has one cell per shard.
    cells: Range<usize>,
    origin: u32,
    /// The expected fields of the trailer.
    records: usize,
    total: u64,
    checksums: u32,
}

/// A record whose words are unchecked.
pub(super) struct Arrived {
    /// The number of the shard, or of the record in a growing filter.
    pub(super) number: usize,
    place: SnapshotPlace,
    pub(super) extent: Extent,
    pub(super) bytes: Vec<u8>,
    pub(super) head: Record,
}

impl<R: Read> Arriving<R> {
    pub(super) fn new(reader: R, Header { plan, kind, part, .. }: Header, origin: u32) -> Self {
        let cells = part.start * plan.cells_at(0)..part.end * plan.cells_at(0);
        Arriving { reader, plan, kind, cells, origin, records: 0, total: 0, checksums: origin }
    }

    /// Reads the next record into this memory. Returns `None` after the last record, once the trailer has been read and
    /// checked.
    pub(super) fn next(&mut self, mut bytes: Vec<u8>) -> Result<Option<Arrived>, SnapshotError> {
        if self.cells.is_empty() {
            return self.trailer().map(|()| None);
        }
        let (number, place) = if self.plan.grows() {
            (self.records, SnapshotPlace::Table { number: self.records })
        } else {
            (self.cells.start, SnapshotPlace::Shard { number: self.cells.start })
        };
        let mut head = [0; RECORD_HEAD];
        exact(&mut self.reader, &mut head, place)?;
        let record = Record::parse(&head, self.origin, place)?;
        let extent = record.check(&self.plan, &self.kind, self.cells.start, place)?;
        take(&mut self.reader, format::padded(record.words as usize), &mut bytes, place)?;
        self.cells.start += self.plan.cells_at(extent.depth);
        self.records += 1;
        self.checksums = format::with_head(self.checksums, &head);
        // A sum of counts of existing slots never overflows.
        self.total = self.total.wrapping_add(record.count);
        Ok(Some(Arrived { number, place, extent, bytes, head: record }))
    }

    fn trailer(&mut self) -> Result<(), SnapshotError> {
        let mut trailer = [0; TRAILER];
        exact(&mut self.reader, &mut trailer, SnapshotPlace::Trailer)?;
        if trailer != format::trailer(self.records, self.total, self.checksums) {
            return Err(SnapshotError::Damaged { place: SnapshotPlace::Trailer });
        }
        Ok(())
    }
}

impl Arrived {
    /// Returns an error unless the words match the checksum of the head.
    pub(super) fn check(&self) -> Result<(), SnapshotError> {
        if crc32c(&self.bytes) == self.head.sum {
            return Ok(());
        }
        Err(SnapshotError::Damaged { place: self.place })
    }

    /// Stores the words if they match their head.
    pub(super) fn store_in(&self, shard: Shard<'_>) -> Result<(), SnapshotError> {
        self.check()?;
        let (count, place) = (self.head.count, self.place);
        let (field, found) = match shard.occupied_in(&self.bytes) {
            Some(found) if found == count => {
                let words = self.bytes[..shard.word_bytes()].chunks_exact(size_of::<u64>());
                shard.fill_with(words.map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes"))), count);
                return Ok(());
            }
            Some(found) => ("number of fingerprints", found.to_string()),
            None => ("end of the last bucket", String::from("not 0")),
        };
        Err(SnapshotError::Invalid { place, field, found })
    }

    /// Returns the error for refused words.
    fn refused(&self, unfilled: Unfilled<SnapshotError>) -> SnapshotError {
        match unfilled {
            Unfilled::Other(error) => error,
            Unfilled::OutOfMemory => SnapshotError::OutOfMemory { bytes: self.bytes.len() },
            Unfilled::Stranger(found) => SnapshotError::Invalid {
                place: self.place,
                field: "fingerprint",
                found: format!("{found:x}, which is not of this table"),
            },
        }
    }

    /// Checks the words without storing them.
    pub(super) fn check_alone(&self, plan: &Plan) -> Result<(), SnapshotError> {
        fill_alone(plan, &self.extent, |shard| self.store_in(shard)).map_err(|unfilled| self.refused(unfilled))
    }

    /// Stores the words in a filter under assembly.
    pub(super) fn add_to<K: SlotKind>(&self, store: &Store<K>) -> Result<(), SnapshotError> {
        let added = store.assembly.add(&self.extent, self.head.epoch, |shard| self.store_in(shard));
        added.map_err(|unfilled| self.refused(unfilled))?;
        let mut latest = store.latest.lock().unwrap_or_else(PoisonError::into_inner);
        *latest = (*latest).max((self.head.epoch, self.head.passed));
        Ok(())
    }
}

/// A filter under assembly.
pub(super) struct Store<K: SlotKind> {
    assembly: Assembly<K>,
    bytes: usize,
    /// The latest epoch and the elapsed part of its tick.
    latest: Mutex<(u64, u32)>,
}

impl<K: SlotKind> Store<K> {
    /// Creates a store for a snapshot of which `arrived` bytes have arrived.
    pub(super) fn new(plan: &Plan, arrived: usize) -> Result<Self, SnapshotError> {
        let bytes = RawFilter::<K>::bytes_of(plan).unwrap_or(usize::MAX);
        // Untouched pages of the system cost nothing, whatever the header announces.
        let huge_pages = if bytes / ARRIVED_PART <= arrived { HugePages::Reused } else { HugePages::Advised };
        let assembly = Assembly::new(plan, huge_pages).ok_or(SnapshotError::OutOfMemory { bytes })?;
        Ok(Store { assembly, bytes, latest: Mutex::default() })
    }

    /// Returns the complete filter and the elapsed part of its tick.
    pub(super) fn finish(self) -> Result<(RawFilter<K>, u32), SnapshotError> {
        let (_, passed) = self.latest.into_inner().unwrap_or_else(PoisonError::into_inner);
        let raw = self.assembly.finish().ok_or(SnapshotError::OutOfMemory { bytes: self.bytes })?;
        Ok((raw, passed))
    }
}

/// Fills the buffer, or returns an error that names the place where the bytes end.
pub(super) fn exact(reader: &mut impl Read, buffer: &mut [u8], place: SnapshotPlace) -> Result<(), SnapshotError> {
    reader.read_exact(buffer).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => SnapshotError::Truncated { place },
        _ => SnapshotError::Io(error),
    })
}

/// Reads `len` bytes into the buffer, which grows as they arrive.
pub(super) fn take(
    reader: &mut impl Read,
    len: usize,
    buffer: &mut Vec<u8>,
    place: SnapshotPlace,
) -> Result<(), SnapshotError> {
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
