//! Writing: each shard is copied under its locks, and written without them.

use super::format::{self, Header, Kind, MAX_METADATA, MAX_NAME, Record};
use super::key_type::KeyType;
use super::{Saved, Snapshot};
use crate::error::SnapshotError;
use crate::hashing::{SavedHasher, probe};
use crate::layout::Plan;
use crate::raw::Shard;
use crc32c::crc32c;
use std::io::Write;

impl<K: ?Sized + 'static, S: SavedHasher> Snapshot<'_, K, S> {
    /// Writes what the header announces.
    pub(super) fn write(&self, header: &Header, writer: impl Write) -> Result<(), SnapshotError> {
        write_records(header, writer, |number, words| (self.shard(number).copy_to(words), 0))
    }

    /// The shard that has this number in the whole filter.
    fn shard(&self, number: usize) -> Shard<'_> {
        self.saved.raw.shard(number - self.saved.shards.start)
    }

    /// Refuses what cannot be written, before anything is. The user code that a snapshot takes runs here.
    pub(super) fn header(&self) -> Result<Header, SnapshotError> {
        const { assert!(S::NAME.len() <= MAX_NAME, "the name of a hasher has 64 bytes at the most") };
        let Saved { ref shards, plan, capacity, rate, hasher, .. } = self.saved;
        if plan.grows() {
            return Err(SnapshotError::Growing);
        }
        if self.shards.is_empty() || self.shards.start < shards.start || self.shards.end > shards.end {
            return Err(SnapshotError::NoSuchShards { asked: self.shards.clone(), there: shards.clone() });
        }
        if let Some(name) = self.key_type.filter(|name| name.len() > MAX_NAME) {
            return Err(SnapshotError::NameTooLong { len: name.len(), most: MAX_NAME });
        }
        if self.metadata.len() > MAX_METADATA {
            return Err(SnapshotError::MetadataTooLong { len: self.metadata.len(), most: MAX_METADATA });
        }
        Ok(Header {
            plan,
            kind: Kind::default(),
            part: self.shards.clone(),
            capacity,
            rate,
            stored: self.shards.clone().map(|number| self.shard(number).len()).sum(),
            key_type: self.key_type.map_or_else(KeyType::of::<K>, KeyType::named),
            hasher: S::NAME.into(),
            probe: probe(hasher),
            keys: if self.with_keys { hasher.keys() } else { None },
            metadata: self.metadata.into(),
        })
    }
}

/// What follows a header: a record for each shard, and the trailer that sums them up.
pub(super) struct Records<'a, W> {
    writer: W,
    plan: &'a Plan,
    kind: &'a Kind,
    origin: u32,
    checksums: u32,
    written: usize,
    total: u64,
}

impl<'a, W: Write> Records<'a, W> {
    /// Writes the header.
    pub(super) fn begin(header: &'a Header, mut writer: W) -> Result<Self, SnapshotError> {
        let bytes = header.to_bytes();
        writer.write_all(&bytes)?;
        let origin = format::origin(&bytes);
        let Header { plan, kind, .. } = header;
        Ok(Records { writer, plan, kind, origin, checksums: origin, written: 0, total: 0 })
    }

    /// Writes a shard: its number, how many slots are taken, the epoch at which it was copied, its words and the zeros
    /// behind them.
    pub(super) fn write(&mut self, number: usize, count: u64, epoch: u64, bytes: &[u8]) -> Result<(), SnapshotError> {
        let record = Record { epoch, ..Record::of(self.plan, self.kind, number, count, crc32c(bytes)) };
        let head = record.to_bytes(self.origin);
        self.writer.write_all(&head)?;
        self.writer.write_all(bytes)?;
        self.checksums = format::with_head(self.checksums, &head);
        self.written += 1;
        // No sum of counts, each of slots that are there, overflows.
        self.total = self.total.wrapping_add(count);
        Ok(())
    }

    pub(super) fn end(mut self) -> Result<(), SnapshotError> {
        self.writer.write_all(&format::trailer(self.written, self.total, self.checksums))?;
        self.writer.flush()?;
        Ok(())
    }
}

/// Writes what the header announces: `copy` copies the words of a shard, and says how many slots are taken in them, and at
/// what epoch.
pub(super) fn write_records(
    header: &Header,
    writer: impl Write,
    copy: impl Fn(usize, &mut [u64]) -> (u64, u64),
) -> Result<(), SnapshotError> {
    let mut words = filled(header.plan.words, 0_u64)?;
    // Zeros behind the words, up to where the next record begins.
    let mut bytes = filled(format::padded(header.plan.words), 0_u8)?;
    let mut records = Records::begin(header, writer)?;
    for number in header.part.clone() {
        let (count, epoch) = copy(number, &mut words);
        for (word, to) in words.iter().zip(bytes.chunks_exact_mut(size_of::<u64>())) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        records.write(number, count, epoch, &bytes)?;
    }
    records.end()
}

/// `len` copies of a value; an error when there is no memory.
fn filled<T: Clone>(len: usize, value: T) -> Result<Vec<T>, SnapshotError> {
    let mut vec = Vec::new();
    vec.try_reserve_exact(len).map_err(|_| SnapshotError::OutOfMemory { bytes: len * size_of::<T>() })?;
    vec.resize(len, value);
    Ok(vec)
}
