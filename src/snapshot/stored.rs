//! A snapshot that lies somewhere as a whole and is not loaded.

use super::SnapshotHeader;
use super::format::{self, Expiring, Kind, RECORD_HEAD, Record, TRAILER};
use super::read::{SnapshotReader, check_hashing, check_slots, stored_hasher, whole};
use crate::error::{SnapshotError, SnapshotPlace};
use crate::hashing::SavedHasher;
use crate::layout::{Extent, Plan};
use crate::sys::bytes::Bytes;
use core::time::Duration;
use std::io::{self, Read};

/// What is known of the bytes.
pub(crate) struct Stored {
    header: SnapshotHeader,
    /// Bytes of the header.
    length: usize,
    /// The tables of a filter whose records are not all alike.
    tables: Option<Vec<Placed>>,
    /// Of an expiring filter, the epoch, and the part of a tick that had passed, in parts of 2^32.
    latest: (u64, u32),
}

/// Where the words of a table begin, and what its head says of it.
pub(crate) struct Placed {
    pub(crate) first: usize,
    pub(crate) extent: Extent,
    pub(crate) epoch: u64,
}

impl Stored {
    /// Reads the header, and checks that as many bytes are there as it announces. Of records that are alike, none is looked at; of
    /// others, each head is. `asked` is the kind of filter.
    pub(crate) fn new(bytes: &Bytes<'_>, asked: &'static str) -> Result<Self, SnapshotError> {
        let mut reading = Reading { bytes, at: 0 };
        let reader = SnapshotReader::new(&mut reading)?;
        let (header, origin) = (reader.header().clone(), reader.origin);
        let mut stored = Stored { header, length: reading.at, tables: None, latest: (0, 0) };
        let kind = stored.header.0.kind;
        let is_plain = kind == Kind::default();
        if kind.filter() != asked {
            return Err(SnapshotError::KindMismatch { saved: kind.name(), asked });
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

    /// Notes where each table is, and returns where the last one ends. What the heads say is what a reader believes of them.
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

    /// The tables, in the order of their cells; `None` if all shards are alike and lie [`Stored::stride`] apart.
    pub(crate) fn take_tables(&mut self) -> Option<Vec<Placed>> {
        self.tables.take()
    }

    /// Where the words of the first shard begin.
    pub(crate) fn first(&self) -> usize {
        self.length + RECORD_HEAD
    }

    /// How far it is from those of one shard to those of the next.
    pub(crate) fn stride(&self) -> usize {
        RECORD_HEAD + format::padded(self.plan().words)
    }

    /// The slots that are taken, by the trailer, in a filter of so many.
    pub(crate) fn taken(&self, bytes: &Bytes<'_>, slots: usize) -> usize {
        let taken = bytes.eight(bytes.len() - TRAILER + format::TRAILER_COUNT);
        usize::try_from(taken).unwrap_or(usize::MAX).min(slots)
    }

    /// The epoch of a filter whose keys die.
    #[inline(always)]
    pub(crate) fn epoch(&self) -> u64 {
        self.latest.0
    }

    /// The epoch of an expiring filter when this much time has passed since it was last told the time before it was written.
    pub(crate) fn epoch_after(&self, passed: Duration) -> u64 {
        let Some(Expiring { tick, .. }) = self.header.0.kind.expiring else { return 0 };
        let (epoch, part) = self.latest;
        let nanos = ((u128::from(tick) * u128::from(part)) >> 32) + passed.as_nanos();
        epoch.saturating_add(u64::try_from(nanos / u128::from(tick)).unwrap_or(u64::MAX))
    }

    /// The hasher with the keys that are there.
    pub(crate) fn hasher<S: SavedHasher>(&self) -> Result<S, SnapshotError> {
        stored_hasher(&self.header)
    }

    /// Whether this is the hasher and the type of keys.
    pub(crate) fn check_asked<K: ?Sized + 'static, S: SavedHasher>(&self, hasher: &S) -> Result<(), SnapshotError> {
        check_hashing::<K, S>(&self.header, hasher)
    }

    /// Checks all of the records and the trailer.
    pub(crate) fn check(&self, bytes: &Bytes<'_>) -> Result<(), SnapshotError> {
        SnapshotReader::new(Reading { bytes, at: 0 })?.check()
    }
}

/// Bytes as a reader.
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
