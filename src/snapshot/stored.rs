//! A complete snapshot in memory or in a mapped file, queried without loading.

use super::SnapshotHeader;
use super::format::{self, Expiring, Kind, RECORD_HEAD, Record, TRAILER};
use super::read::{SnapshotReader, check_hashing, check_slots, stored_hasher, whole};
use crate::error::{SnapshotError, SnapshotPlace};
use crate::hashing::SavedHasher;
use crate::layout::{Extent, Plan};
use crate::sys::bytes::Bytes;
use core::time::Duration;
use std::io::{self, Read};

/// The header and the layout of the bytes.
pub(crate) struct Stored {
    header: SnapshotHeader,
    /// The length of the header in bytes.
    length: usize,
    /// The tables of a filter whose records differ.
    tables: Option<Vec<Placed>>,
    /// The epoch of an expiring filter and the elapsed part of its tick, in units of 2^-32.
    latest: (u64, u32),
}

/// A table: the offset of its words, and the fields of its head.
pub(crate) struct Placed {
    pub(crate) first: usize,
    pub(crate) extent: Extent,
    pub(crate) epoch: u64,
}

impl Stored {
    /// Reads the header, and checks the length that it announces. Reads each head if records differ, and no record
    /// otherwise. `requested` is the requested kind of filter.
    pub(crate) fn new(bytes: &Bytes<'_>, requested: &'static str) -> Result<Self, SnapshotError> {
        let mut reading = Reading { bytes, at: 0 };
        let reader = SnapshotReader::new(&mut reading)?;
        let (header, origin) = (reader.header().clone(), reader.origin);
        let mut stored = Stored { header, length: reading.at, tables: None, latest: (0, 0) };
        let kind = stored.header.0.kind;
        let is_plain = kind == Kind::default();
        if kind.filter() != requested {
            return Err(SnapshotError::KindMismatch { saved: kind.name(), requested });
        }
        check_slots(&stored.header)?;
        whole(&stored.header)?;
        let end = if is_plain { stored.end_of_shards(bytes)? } else { stored.read_heads(bytes, origin)? };
        match bytes.len() - end {
            ..TRAILER => Err(SnapshotError::Truncated { place: SnapshotPlace::Trailer }),
            TRAILER => Ok(stored),
            _ => Err(SnapshotError::TrailingBytes),
        }
    }

    fn end_of_shards(&self, bytes: &Bytes<'_>) -> Result<usize, SnapshotError> {
        let shards = self.plan().shards;
        let records = bytes.len().saturating_sub(self.length) / self.stride();
        if records < shards {
            return Err(SnapshotError::Truncated { place: SnapshotPlace::Shard { number: records } });
        }
        Ok(self.length + shards * self.stride())
    }

    /// Records the place of each table, and returns the end of the last one. The heads are checked as a reader checks
    /// them.
    fn read_heads(&mut self, bytes: &Bytes<'_>, origin: u32) -> Result<usize, SnapshotError> {
        let (plan, kind) = (*self.plan(), self.header.0.kind);
        let (mut tables, mut cell, mut at) = (Vec::new(), 0, self.length);
        while cell < plan.shards * plan.cells_at(0) {
            let number = tables.len();
            let place = if plan.grows() { SnapshotPlace::Table { number } } else { SnapshotPlace::Shard { number } };
            let there = |count: usize, at: usize| {
                if bytes.len() - at < count { Err(SnapshotError::Truncated { place }) } else { Ok(at + count) }
            };
            let first = there(RECORD_HEAD, at)?;
            let mut head = [0; RECORD_HEAD];
            bytes.copy_from(at, &mut head);
            let record = Record::parse(&head, origin, place)?;
            let extent = record.check(&plan, &kind, cell, place)?;
            at = there(format::padded(record.words as usize), first)?;
            cell += plan.cells_at(extent.depth);
            self.latest = self.latest.max((record.epoch, record.passed));
            tables.push(Placed { first, extent, epoch: record.epoch });
        }
        self.tables = Some(tables);
        Ok(at)
    }

    pub(crate) fn header(&self) -> &SnapshotHeader {
        &self.header
    }

    pub(crate) fn plan(&self) -> &Plan {
        self.header.plan()
    }

    /// Returns the tables in the order of their cells; `None` if all records have equal length, [`Stored::stride`]
    /// apart.
    pub(crate) fn take_tables(&mut self) -> Option<Vec<Placed>> {
        self.tables.take()
    }

    /// Returns the offset of the words of the first shard.
    pub(crate) fn first(&self) -> usize {
        self.length + RECORD_HEAD
    }

    /// Returns the distance between the words of consecutive shards.
    pub(crate) fn stride(&self) -> usize {
        RECORD_HEAD + format::padded(self.plan().words)
    }

    /// Returns the number of slots in use according to the trailer, at most `slots`.
    pub(crate) fn taken(&self, bytes: &Bytes<'_>, slots: usize) -> usize {
        let taken = bytes.eight(bytes.len() - TRAILER + format::TRAILER_COUNT);
        usize::try_from(taken).unwrap_or(usize::MAX).min(slots)
    }

    /// Returns the epoch of a filter whose keys or counts die.
    #[inline(always)]
    pub(crate) fn epoch(&self) -> u64 {
        self.latest.0
    }

    /// Returns the epoch of an expiring filter after this much time since the last `advance_to` before the snapshot was
    /// written.
    pub(crate) fn epoch_after(&self, passed: Duration) -> u64 {
        let Some(Expiring { tick, .. }) = self.header.0.kind.expiring else { return 0 };
        let (epoch, part) = self.latest;
        let nanos = ((u128::from(tick) * u128::from(part)) >> 32) + passed.as_nanos();
        epoch.saturating_add(u64::try_from(nanos / u128::from(tick)).unwrap_or(u64::MAX))
    }

    /// Returns the hash function with the seeds in the snapshot.
    pub(crate) fn hasher<S: SavedHasher>(&self) -> Result<S, SnapshotError> {
        stored_hasher(&self.header)
    }

    /// Returns an error if the hash function or the type of keys differs.
    pub(crate) fn check_asked<K: ?Sized + 'static, S: SavedHasher>(&self, hasher: &S) -> Result<(), SnapshotError> {
        check_hashing::<K, S>(&self.header, hasher)
    }

    /// Checks all records and the trailer.
    pub(crate) fn check(&self, bytes: &Bytes<'_>) -> Result<(), SnapshotError> {
        SnapshotReader::new(Reading { bytes, at: 0 })?.check()
    }
}

/// A reader of bytes.
struct Reading<'a> {
    bytes: &'a Bytes<'a>,
    at: usize,
}

impl Read for Reading<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = buffer.len().min(self.bytes.len() - self.at);
        self.bytes.copy_from(self.at, &mut buffer[..len]);
        self.at += len;
        Ok(len)
    }
}
