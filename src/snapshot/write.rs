//! Writing: each shard, or table of a growing filter, is copied under its locks, and written without locks.

use super::format::{self, GrowingFields, Header, Kind, MAX_METADATA, MAX_NAME, Record, Sums};
use super::key_type::KeyType;
use super::{Saved, Snapshot};
use crate::error::SnapshotError;
use crate::filter::Clock;
use crate::hashing::{SavedHasher, probe};
use crate::layout::{Extent, Plan};
use crate::raw::{RawFilter, SlotKind};
use core::ops::Range;
use crc32c::crc32c;
use std::io::Write;

impl<K: ?Sized + 'static, S: SavedHasher> Snapshot<'_, K, S> {
    pub(super) fn write(&self, header: &Header, writer: impl Write) -> Result<(), SnapshotError> {
        let (mut writer, saved) = (writer, &self.saved);
        saved.raw.write(header, saved.shards.start, &mut writer, saved.clock)
    }

    /// Checks the options and returns the header. All user code of a snapshot runs here.
    pub(super) fn header(&self) -> Result<Header, SnapshotError> {
        const { assert!(S::NAME.len() <= MAX_NAME, "the name of a hasher has at most 64 bytes") };
        let Saved { raw, beside, ref shards, plan, capacities: [capacity, max_capacity], rate, hasher, .. } =
            self.saved;
        if self.shards.is_empty() || self.shards.start < shards.start || self.shards.end > shards.end {
            return Err(SnapshotError::NoSuchShards { requested: self.shards.clone(), there: shards.clone() });
        }
        if let Some(name) = self.key_type.filter(|name| name.len() > MAX_NAME) {
            return Err(SnapshotError::TooLong {
                what: "name of the type of the keys",
                len: name.len(),
                most: MAX_NAME,
            });
        }
        if self.metadata.len() > MAX_METADATA {
            return Err(SnapshotError::TooLong { what: "metadata", len: self.metadata.len(), most: MAX_METADATA });
        }
        let (Plan { reserve_bits, extension_bits, .. }, max_capacity) = (plan, max_capacity as u64);
        let growing = plan.grows().then_some(GrowingFields { reserve_bits, extension_bits, max_capacity });
        let stored = raw.stored_in(self.shards.start - shards.start..self.shards.end - shards.start);
        Ok(Header {
            plan,
            kind: Kind { growing, ..beside },
            part: self.shards.clone(),
            capacity,
            rate,
            stored,
            key_type: self.key_type.map_or_else(KeyType::of::<K>, KeyType::named),
            hasher: S::NAME.into(),
            probe: probe(hasher),
            keys: if self.with_seeds { hasher.seeds() } else { None },
            metadata: self.metadata.into(),
        })
    }
}

/// The records after a header, and the trailer that sums them up.
pub(super) struct Records<W> {
    writer: W,
    origin: u32,
    sums: Sums,
}

impl<W: Write> Records<W> {
    pub(super) fn begin(header: &Header, mut writer: W) -> Result<Self, SnapshotError> {
        let bytes = header.to_bytes();
        writer.write_all(&bytes)?;
        let origin = format::origin(&bytes);
        Ok(Records { writer, origin, sums: Sums::new(origin) })
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
        let head = Record { sum: crc32c(bytes), ..*record }.to_bytes(self.origin);
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

    /// Returns the number of slots in use in these shards.
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
        let (mut words, mut bytes) = (zeros(header.plan.words)?, zeros(format::padded(header.plan.words))?);
        let mut records = Records::begin(header, to)?;
        let shards = header.part.start - first..header.part.end - first;
        self.copy_each(shards, &mut words, |copy, words| {
            let first_cell = copy.extent.first_cell + first * header.plan.cells_at(0);
            let (extent, epoch) = (Extent { first_cell, ..copy.extent }, copy.epoch);
            let record = Record::of(&header.plan, &header.kind, &extent, copy.count);
            let passed = clock.map_or(0, |clock| clock.passed_in(epoch));
            records.write_words(Record { epoch, passed, ..record }, words, &mut bytes)
        })?;
        records.end()
    }

    fn stored_in(&self, shards: Range<usize>) -> u64 {
        self.stored_in(shards)
    }
}

/// Returns `len` zeros, or an error if allocation fails.
fn zeros<T: Default + Clone>(len: usize) -> Result<Vec<T>, SnapshotError> {
    let mut vec = Vec::new();
    vec.try_reserve_exact(len).map_err(|_| SnapshotError::OutOfMemory { bytes: len * size_of::<T>() })?;
    vec.resize(len, T::default());
    Ok(vec)
}
