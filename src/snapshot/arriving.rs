//! Records as they arrive, and where they are stored.

use super::format::{self, Header, Kind, RECORD_HEAD, Record, TRAILER};
use crate::error::{SnapshotError, SnapshotPlace};
use crate::layout::{Extent, Plan};
use crate::raw::{Assembly, RawFilter, Shard, SlotKind, Unfilled, fill_alone};
use crate::sys::memory::HugePages;
use core::ops::Range;
use crc32c::crc32c;
use std::io::{self, Read};
use std::sync::{Mutex, PoisonError};

/// Bytes that are asked for at a time: as many as may have been taken in vain when a length lies.
const CHUNK: usize = 64 << 10;

/// The part of a filter that must have arrived before memory is taken for all of it at once.
const ARRIVED_PART: usize = 5;

/// The records of a snapshot, one after another.
pub(super) struct Arriving<R> {
    reader: R,
    pub(super) plan: Plan,
    kind: Kind,
    /// Those of which records are yet to come; a filter that does not grow has one for each shard.
    cells: Range<usize>,
    origin: u32,
    /// What the trailer will say.
    records: usize,
    total: u64,
    checksums: u32,
}

/// The words of a record, not yet checked.
pub(super) struct Arrived {
    /// Of the shard; of a filter that grows, that of the record.
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

    /// Reads the next record, into this memory. `None` behind the last one, when the trailer has been read and checked.
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
        // No sum of counts, each of slots that are there, overflows.
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
    /// Whether the words are those of which the head has the checksum.
    pub(super) fn check(&self) -> Result<(), SnapshotError> {
        if crc32c(&self.bytes) == self.head.sum {
            return Ok(());
        }
        Err(SnapshotError::Damaged { place: self.place })
    }

    /// Stores the words, if they are what their head says of them.
    pub(super) fn store_in(&self, shard: Shard<'_>) -> Result<(), SnapshotError> {
        self.check()?;
        let (count, place) = (self.head.count, self.place);
        let (field, found) = match shard.occupied_in(&self.bytes) {
            Some(found) if found == count => {
                let words = self.bytes[..shard.table_bytes()].chunks_exact(size_of::<u64>());
                shard.fill_with(words.map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes"))), count);
                return Ok(());
            }
            Some(found) => ("number of fingerprints", found.to_string()),
            None => ("end of the last bucket", String::from("not 0")),
        };
        Err(SnapshotError::Invalid { place, field, found })
    }

    /// The error for words that were refused.
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

    /// Checks the words as if they were stored.
    pub(super) fn check_alone(&self, plan: &Plan) -> Result<(), SnapshotError> {
        fill_alone(plan, &self.extent, |shard| self.store_in(shard)).map_err(|unfilled| self.refused(unfilled))
    }

    /// Stores the words in a filter that is put together.
    pub(super) fn add_to<K: SlotKind>(&self, store: &Store<K>) -> Result<(), SnapshotError> {
        let added = store.assembly.add(&self.extent, self.head.epoch, |shard| self.store_in(shard));
        added.map_err(|unfilled| self.refused(unfilled))?;
        let mut latest = store.latest.lock().unwrap_or_else(PoisonError::into_inner);
        *latest = (*latest).max((self.head.epoch, self.head.passed));
        Ok(())
    }
}

/// Where what has arrived is stored.
pub(super) struct Store<K: SlotKind> {
    assembly: Assembly<K>,
    bytes: usize,
    /// The latest epoch, and what had passed of its tick.
    latest: Mutex<(u64, u32)>,
}

impl<K: SlotKind> Store<K> {
    /// For a snapshot of which so many bytes have arrived.
    pub(super) fn new(plan: &Plan, arrived: usize) -> Result<Self, SnapshotError> {
        let bytes = RawFilter::<K>::bytes_of(plan).unwrap_or(usize::MAX);
        // Pages of the system cost nothing until they are touched, whatever the header announces.
        let huge_pages = if bytes / ARRIVED_PART <= arrived { HugePages::Reused } else { HugePages::Advised };
        let assembly = Assembly::new(plan, huge_pages).ok_or(SnapshotError::OutOfMemory { bytes })?;
        Ok(Store { assembly, bytes, latest: Mutex::default() })
    }

    /// Once everything is there: the filter, and what has passed of its tick.
    pub(super) fn finish(self) -> Result<(RawFilter<K>, u32), SnapshotError> {
        let (_, passed) = self.latest.into_inner().unwrap_or_else(PoisonError::into_inner);
        let raw = self.assembly.finish().ok_or(SnapshotError::OutOfMemory { bytes: self.bytes })?;
        Ok((raw, passed))
    }
}

/// Fills the buffer, or says where the bytes ended.
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
