//! Writing: each shard, or table of a growing filter, is copied under its locks, and written without locks.

use super::Snapshot;
use super::format::{self, Header, MAX_METADATA, MAX_NAME, Record, Sums};
use super::key_type::KeyType;
use crate::error::SnapshotError;
use crate::filter::{Clock, Life};
use crate::hashing::{SavedHasher, probe};
use crate::layout::{Extent, Plan};
use crate::raw::{RawFilter, SlotKind};
use crate::sys::memory::zeros;
use core::ops::Range;
use crc32c::crc32c;
use std::io::Write;

impl Header {
    /// Returns the header of a whole filter, with its seeds. All user code of a snapshot runs here.
    pub(crate) fn of<K: ?Sized + 'static, S: SavedHasher>(
        kind: &'static str,
        plan: &Plan,
        life: Option<Life>,
        [capacity, max_capacity]: [usize; 2],
        rate: Option<f64>,
        hasher: &S,
    ) -> Self {
        const { assert!(S::NAME.len() <= MAX_NAME, "the name of a hasher has at most 64 bytes") };
        Header {
            plan: *plan,
            kind,
            life,
            part: 0..plan.shards,
            capacity,
            max_capacity: max_capacity as u64,
            rate,
            stored: 0,
            key_type: KeyType::of::<K>(),
            hasher: S::NAME.into(),
            probe: probe(hasher),
            keys: hasher.seeds(),
            metadata: Vec::new(),
        }
    }
}

impl<K: ?Sized, S> Snapshot<'_, K, S> {
    /// Checks the options, and counts the slots in use.
    pub(super) fn checked(mut self) -> Result<Self, SnapshotError> {
        let (Header { part, key_type, metadata, .. }, there) = (&self.header, &self.there);
        if part.is_empty() || part.start < there.start || part.end > there.end {
            return Err(SnapshotError::NoSuchShards { requested: part.clone(), there: there.clone() });
        }
        for (what, len, most) in [
            ("name of the type of the keys", key_type.name().len(), MAX_NAME),
            ("metadata", metadata.len(), MAX_METADATA),
        ] {
            if len > most {
                return Err(SnapshotError::TooLong { what, len, most });
            }
        }
        self.header.stored = self.raw.stored_in(part.start - there.start..part.end - there.start);
        Ok(self)
    }

    pub(super) fn write(&self, mut writer: impl Write) -> Result<(), SnapshotError> {
        self.raw.write(&self.header, self.there.start, &mut writer, self.clock)
    }
}

/// The records after a header, and the trailer that sums them up.
pub(super) struct Records<'a, W> {
    header: &'a Header,
    writer: W,
    origin: u32,
    sums: Sums,
}

impl<'a, W: Write> Records<'a, W> {
    pub(super) fn begin(header: &'a Header, mut writer: W) -> Result<Self, SnapshotError> {
        let bytes = header.to_bytes();
        writer.write_all(&bytes)?;
        let origin = format::origin(&bytes);
        Ok(Records { header, writer, origin, sums: Sums::new(origin) })
    }

    /// Writes a record with these words, through the buffer `bytes`, which has room for any record.
    fn write_words(&mut self, record: Record, words: &[u64], bytes: &mut [u8]) -> Result<(), SnapshotError> {
        let bytes = &mut bytes[..format::padded(words.len())];
        let (to, zeros) = bytes.split_at_mut(size_of_val(words));
        for (word, to) in words.iter().zip(to.chunks_exact_mut(size_of::<u64>())) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        zeros.fill(0);
        self.write(&record, bytes)
    }

    /// Writes a record with the bytes of its words, padded with zeros.
    pub(super) fn write(&mut self, record: &Record, bytes: &[u8]) -> Result<(), SnapshotError> {
        let head = Record { sum: crc32c(bytes), ..*record }.to_bytes(self.header, self.origin);
        self.writer.write_all(&head)?;
        self.writer.write_all(bytes)?;
        self.sums.add(&head, record.count);
        Ok(())
    }

    pub(super) fn end(mut self) -> Result<(), SnapshotError> {
        self.writer.write_all(&self.sums.trailer())?;
        Ok(self.writer.flush()?)
    }
}

/// The part of a filter of any kind that a snapshot reads.
pub(crate) trait Copied {
    /// Writes the records that the header announces. The first shard has the number `first` in the whole filter.
    fn write(
        &self,
        header: &Header,
        first: usize,
        to: &mut dyn Write,
        clock: Option<&Clock>,
    ) -> Result<(), SnapshotError>;

    /// Returns the number of slots in use in these shards. Tables are counted one after the other.
    fn stored_in(&self, shards: Range<usize>) -> u64;
}

impl<K: SlotKind> Copied for RawFilter<K> {
    fn write(
        &self,
        header: &Header,
        first: usize,
        to: &mut dyn Write,
        clock: Option<&Clock>,
    ) -> Result<(), SnapshotError> {
        let words = header.plan.words as usize;
        let padded = format::padded(words);
        let refused = |bytes| SnapshotError::OutOfMemory { bytes };
        let mut bytes = zeros(padded).ok_or(refused(padded))?;
        let mut words = zeros(words).ok_or(refused(words * size_of::<u64>()))?;
        let mut records = Records::begin(header, to)?;
        let shards = header.part.start - first..header.part.end - first;
        self.copy_each(shards, &mut words, |copy, words| {
            let first_cell = copy.extent.first_cell + first * header.plan.cells_at(0);
            let (extent, count, epoch) = (Extent { first_cell, ..copy.extent }, copy.count, copy.epoch);
            let passed = clock.map_or(0, |clock| clock.passed_in(epoch));
            records.write_words(Record { extent, count, epoch, passed, sum: 0 }, words, &mut bytes)
        })?;
        records.end()
    }

    fn stored_in(&self, shards: Range<usize>) -> u64 {
        match self {
            RawFilter::Flat(flat) => shards.map(|number| flat.at(number).len()).sum(),
            RawFilter::Growing(growing) => growing.stored_in(shards),
        }
    }
}
