//! A snapshot that lies somewhere as a whole and is not loaded.

use super::SnapshotHeader;
use super::format::{self, RECORD_HEAD, TRAILER};
use super::read::{SnapshotReader, check, check_plain, stored_hasher, whole};
use crate::error::{SnapshotError, SnapshotPlace};
use crate::hashing::SavedHasher;
use crate::layout::Plan;
use crate::sys::bytes::Bytes;
use std::io::{self, Read};

/// What is known of the bytes.
pub(crate) struct Stored {
    header: SnapshotHeader,
    /// Bytes of the header.
    length: usize,
}

impl Stored {
    /// Reads the header, and checks that as many bytes are there as it announces. The records are not looked at.
    pub(crate) fn new(bytes: &Bytes<'_>) -> Result<Self, SnapshotError> {
        let mut reading = Reading { bytes, at: 0 };
        let header = SnapshotReader::new(&mut reading)?.header().clone();
        let stored = Stored { header, length: reading.at };
        check_plain(&stored.header)?;
        whole(&stored.header)?;
        let shards = stored.plan().shards;
        let records = bytes.len().saturating_sub(stored.length) / stored.stride();
        if records < shards {
            return Err(SnapshotError::Truncated { place: SnapshotPlace::Shard { number: records } });
        }
        match bytes.len() - stored.length - shards * stored.stride() {
            ..TRAILER => Err(SnapshotError::Truncated { place: SnapshotPlace::Trailer }),
            TRAILER => Ok(stored),
            _ => Err(SnapshotError::TrailingBytes),
        }
    }

    pub(crate) fn header(&self) -> &SnapshotHeader {
        &self.header
    }

    pub(crate) fn plan(&self) -> &Plan {
        self.header.plan()
    }

    /// Where the words of the first shard begin.
    pub(crate) fn first(&self) -> usize {
        self.length + RECORD_HEAD
    }

    /// How far it is from those of one shard to those of the next.
    pub(crate) fn stride(&self) -> usize {
        RECORD_HEAD + format::padded(self.plan().words)
    }

    /// The slots that are taken, by the trailer.
    pub(crate) fn taken(&self, bytes: &Bytes<'_>) -> usize {
        let taken = bytes.eight(self.length + self.plan().shards * self.stride() + format::TRAILER_COUNT);
        usize::try_from(taken).unwrap_or(usize::MAX).min(self.plan().slots())
    }

    /// The hasher with the keys that are there.
    pub(crate) fn hasher<S: SavedHasher>(&self) -> Result<S, SnapshotError> {
        stored_hasher(&self.header)
    }

    /// Whether this is the hasher and the type of keys.
    pub(crate) fn check_asked<K: ?Sized + 'static, S: SavedHasher>(&self, hasher: &S) -> Result<(), SnapshotError> {
        check::<K, S>(&self.header, hasher)
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
