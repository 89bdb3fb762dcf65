//! The records of a snapshot, one after another.

use super::format::{self, Header, PIECE, Record, Sums, invalid};
use crate::error::{SnapshotError, SnapshotPlace};
use crate::layout::{Packer, Plan, Tags, unpack};
use crate::raw::{Shard, Unfilled, fill_alone};
use core::ops::Range;
use crc32c::crc32c;
use std::io::{self, Read};

/// Bytes allocated at a time, which bounds the allocation for a false length.
const CHUNK: usize = 64 << 10;

/// The heads of the records, and the sums of the heads so far.
pub(super) struct Heads<'a> {
    header: &'a Header,
    /// The cells whose records are outstanding; a filter of fixed size has one cell per shard.
    cells: Range<usize>,
    origin: u32,
    sums: Sums,
}

pub(super) struct Head {
    pub(super) place: SnapshotPlace,
    pub(super) record: Record,
    /// The bytes of the words.
    pub(super) len: usize,
}

impl<'a> Heads<'a> {
    pub(super) fn new(header: &'a Header, origin: u32) -> Self {
        let cells = header.part.start * header.plan.cells_at(0)..header.part.end * header.plan.cells_at(0);
        Heads { header, cells, origin, sums: Sums::new(origin) }
    }

    pub(super) fn plan(&self) -> &'a Plan {
        &self.header.plan
    }

    /// Reads the next head. Returns `None` after the last record, once the trailer has been read and checked.
    pub(super) fn next(&mut self, reader: &mut impl Read) -> Result<Option<Head>, SnapshotError> {
        let mut head = [0; PIECE];
        if self.cells.is_empty() {
            exact(reader, &mut head, SnapshotPlace::Trailer)?;
            let is_right = head == self.sums.trailer();
            return if is_right { Ok(None) } else { Err(SnapshotError::Damaged { place: SnapshotPlace::Trailer }) };
        }
        let place = if self.plan().grows() {
            SnapshotPlace::Table { number: self.sums.records }
        } else {
            SnapshotPlace::Shard { number: self.cells.start }
        };
        exact(reader, &mut head, place)?;
        let record = Record::parse(&head, self.header, self.origin, self.cells.start, place)?;
        self.cells.start += self.plan().cells_at(record.extent.depth);
        self.sums.add(&head, record.count);
        let len = format::padded(self.plan().leaf(&record.extent).words as usize);
        Ok(Some(Head { place, record, len }))
    }
}

pub(super) struct Arriving<'a, R> {
    pub(super) reader: R,
    pub(super) heads: Heads<'a>,
}

/// A record whose words are unchecked.
pub(super) struct Arrived {
    pub(super) head: Head,
    pub(super) bytes: Vec<u8>,
}

impl<R: Read> Arriving<'_, R> {
    /// Reads the next record into this memory; `None` after the last one.
    pub(super) fn next(&mut self, mut bytes: Vec<u8>) -> Result<Option<Arrived>, SnapshotError> {
        let Some(head) = self.heads.next(&mut self.reader)? else { return Ok(None) };
        take(&mut self.reader, head.len, &mut bytes, head.place)?;
        Ok(Some(Arrived { head, bytes }))
    }

    /// Calls `work` with each record, one at a time in the same memory.
    pub(super) fn each(
        mut self,
        mut work: impl FnMut(&mut Arrived) -> Result<(), SnapshotError>,
    ) -> Result<(), SnapshotError> {
        let mut bytes = Vec::new();
        while let Some(mut arrived) = self.next(bytes)? {
            work(&mut arrived)?;
            bytes = arrived.bytes;
        }
        Ok(())
    }
}

impl Arrived {
    /// Returns an error unless the words match the checksum of the head.
    pub(super) fn check(&self) -> Result<(), SnapshotError> {
        if crc32c(&self.bytes) == self.head.record.sum {
            return Ok(());
        }
        Err(SnapshotError::Damaged { place: self.head.place })
    }

    /// Checks the words, and moves their time to the beginning of epoch 0, where each slot has the epochs that it has left:
    /// parts come from filters whose clocks began at different times.
    pub(super) fn restart(&mut self, header: &Header) -> Result<(), SnapshotError> {
        self.check()?;
        let (table, record) = (header.plan.leaf(&self.head.record.extent), &mut self.head.record);
        let (tags, slot_bits) = (Tags::new(&table), table.slot_bits);
        let (then, zero) = (tags.moment(record.epoch), tags.moment(0));
        let words: Vec<u64> = self.bytes.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)).collect();
        let mut at = self.bytes.as_chunks_mut().0.iter_mut();
        let mut packer = Packer::new(slot_bits, |word: u64| {
            if let Some(at) = at.next() {
                *at = word.to_le_bytes();
            }
        });
        for slot in unpack(&words, slot_bits, table.buckets as usize).flatten() {
            // Dead slots stay: the count of the record includes them.
            let moved = if slot == 0 { 0 } else { tags.moved(slot, then, zero) };
            packer.push(moved.into());
        }
        packer.end();
        (record.epoch, record.passed, record.sum) = (0, 0, crc32c(&self.bytes));
        Ok(())
    }

    /// Stores the words if they match their head.
    pub(super) fn store_in(&self, shard: Shard<'_>) -> Result<(), SnapshotError> {
        self.check()?;
        let (count, place) = (self.head.record.count, self.head.place);
        let (field, found) = match shard.occupied_in(&self.bytes) {
            Some(found) if found == count => {
                let words = self.bytes[..shard.word_bytes()].as_chunks().0;
                shard.fill_with(words.iter().map(|&word| u64::from_le_bytes(word)), count);
                return Ok(());
            }
            Some(found) => ("number of fingerprints", found.to_string()),
            None => ("end of the last bucket", String::from("not 0")),
        };
        Err(invalid(place, field, found))
    }

    /// Returns the error for refused words.
    pub(super) fn refused(&self, unfilled: Unfilled<SnapshotError>) -> SnapshotError {
        match unfilled {
            Unfilled::Other(error) => error,
            Unfilled::OutOfMemory => SnapshotError::OutOfMemory { bytes: self.bytes.len() },
            Unfilled::Stranger(found) => {
                invalid(self.head.place, "fingerprint", format!("{found:x}, which is not of this table"))
            }
        }
    }

    pub(super) fn check_alone(&self, plan: &Plan) -> Result<(), SnapshotError> {
        fill_alone(plan, &self.head.record.extent, |shard| self.store_in(shard))
            .map_err(|unfilled| self.refused(unfilled))
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
