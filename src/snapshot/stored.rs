//! A complete snapshot in memory or in a mapped file, queried without loading.

use super::arriving::Heads;
use super::format::{self, PIECE, Record};
use super::{SnapshotHeader, SnapshotReader};
use crate::error::{SnapshotError, SnapshotPlace};
use crate::layout::{Extent, Plan};
use crate::sys::bytes::Bytes;
use core::time::Duration;
use std::io::{self, Read};

/// The header and the layout of the bytes.
pub(crate) struct Stored {
    pub(crate) header: SnapshotHeader,
    /// The offset of the words of the first shard.
    pub(crate) first: usize,
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
    /// Reads the header, whose filter `check` accepts, and checks the length that it announces. If records differ, reads each head
    /// and the trailer, and returns the tables in the order of their cells; reads no record otherwise.
    pub(crate) fn new<H>(
        bytes: &Bytes<'_>,
        check: impl FnOnce(&SnapshotHeader) -> Result<H, SnapshotError>,
    ) -> Result<(Self, Option<Vec<Placed>>, H), SnapshotError> {
        let mut reading = Reading { bytes, at: 0 };
        let SnapshotReader { header, origin, .. } = SnapshotReader::new(&mut reading)?;
        let checked = check(&header)?;
        header.check_whole()?;
        let mut stored = Stored { header, first: reading.at + PIECE, latest: (0, 0) };
        let (slots, tables) = if stored.header.parsed.kind == "plain" && !stored.plan().grows() {
            let (shards, left) = (stored.plan().shards, bytes.len() - reading.at);
            if left / stored.stride() < shards {
                let place = SnapshotPlace::Shard { number: left / stored.stride() };
                return Err(SnapshotError::Truncated { place });
            }
            reading.skip(shards * stored.stride() + PIECE, SnapshotPlace::Trailer)?;
            (stored.plan().slots(), None)
        } else {
            let (mut heads, mut slots, mut tables) = (Heads::new(&stored.header.parsed, origin), 0, Vec::new());
            while let Some(head) = heads.next(&mut reading)? {
                let Record { extent, epoch, passed, .. } = head.record;
                stored.latest = stored.latest.max((epoch, passed));
                tables.push(Placed { first: reading.at, extent, epoch });
                slots += heads.plan().leaf(&extent).slots();
                reading.skip(head.len, head.place)?;
            }
            (slots, Some(tables))
        };
        if reading.at != bytes.len() {
            return Err(SnapshotError::TrailingBytes);
        }
        stored.header.stored = bytes.eight(bytes.len() - PIECE + format::TRAILER_COUNT).min(slots as u64);
        Ok((stored, tables, checked))
    }

    pub(crate) fn plan(&self) -> &Plan {
        self.header.plan()
    }

    /// Returns the distance between the words of consecutive shards of equal length.
    pub(crate) fn stride(&self) -> usize {
        PIECE + format::padded(self.plan().words as usize)
    }

    /// Returns the epoch of an expiring filter after this much time since the last `advance_to` before the snapshot was written.
    pub(crate) fn epoch_after(&self, passed: Duration) -> u64 {
        let Some(life) = self.header.parsed.life else { return 0 };
        let ((epoch, part), tick) = (self.latest, life.tick.as_nanos());
        let nanos = ((tick * u128::from(part)) >> 32) + passed.as_nanos();
        epoch.saturating_add(u64::try_from(nanos / tick).unwrap_or(u64::MAX))
    }

    /// Checks all records and the trailer.
    pub(crate) fn check(&self, bytes: &Bytes<'_>) -> Result<(), SnapshotError> {
        SnapshotReader::new(Reading { bytes, at: 0 })?.check()
    }
}

struct Reading<'a> {
    bytes: &'a Bytes<'a>,
    at: usize,
}

impl Reading<'_> {
    fn skip(&mut self, count: usize, place: SnapshotPlace) -> Result<(), SnapshotError> {
        if self.bytes.len() - self.at < count {
            return Err(SnapshotError::Truncated { place });
        }
        self.at += count;
        Ok(())
    }
}

impl Read for Reading<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = buffer.len().min(self.bytes.len() - self.at);
        self.bytes.copy_from(self.at, &mut buffer[..len]);
        self.at += len;
        Ok(len)
    }
}
