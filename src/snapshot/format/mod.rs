//! The bytes of a snapshot (docs/format.md). Bytes in, values out; all numbers are little-endian.
//!
//! ```text
//! header | record | record | ... | trailer
//!          head, words
//! ```
//!
//! Each piece begins at a multiple of [`ALIGN`] from the beginning of the snapshot, and so do the words of a record: a file can be
//! mapped. A head describes its words completely, so a reader knows their length and contents in advance.

mod header;
mod record;

pub(crate) use header::Header;
pub(super) use header::{MAX_METADATA, MAX_NAME, PREFIX, ensure, origin, too_short};
pub(super) use record::{Record, padded};

use crate::error::{SnapshotError, SnapshotPlace};
use crc32c::crc32c_append;

/// A cache line.
const ALIGN: usize = 64;

/// Bytes of the head of a record, of the trailer, and of each piece of fixed length of a delta.
pub(super) const PIECE: usize = 64;

const CHECKSUM: usize = 4;

/// The offset of the number of slots in use in the trailer.
pub(super) const TRAILER_COUNT: usize = 16;

/// The contents of a trailer: the records so far, their slots in use, and the checksum of the header and of the checksums of all heads.
pub(super) struct Sums {
    pub(super) records: usize,
    total: u64,
    checksums: u32,
}

impl Sums {
    pub(super) fn new(origin: u32) -> Self {
        Sums { records: 0, total: 0, checksums: origin }
    }

    /// Adds the head of a record with `count` slots in use.
    pub(super) fn add(&mut self, head: &[u8; PIECE], count: u64) {
        self.records += 1;
        // A sum of counts of existing slots never overflows.
        self.total = self.total.wrapping_add(count);
        self.checksums = with_sum_of(self.checksums, head);
    }

    pub(super) fn trailer(&self) -> [u8; PIECE] {
        sealed(*b"\xc0/cuckoo", &[self.records as u64, self.total], self.checksums)
    }
}

/// Returns a magic, numbers and a checksum that continues `from`.
pub(super) fn sealed(magic: [u8; 8], numbers: &[u64], from: u32) -> [u8; PIECE] {
    let mut bytes = [0; PIECE];
    bytes[..8].copy_from_slice(&magic);
    for (number, to) in numbers.iter().zip(bytes[8..].chunks_exact_mut(8)) {
        to.copy_from_slice(&number.to_le_bytes());
    }
    let (sealed, checksum) = bytes.split_at_mut(PIECE - CHECKSUM);
    checksum.copy_from_slice(&crc32c_append(from, sealed).to_le_bytes());
    bytes
}

/// Returns a number of a [`sealed`] piece.
pub(super) fn number(bytes: &[u8; PIECE], index: usize) -> u64 {
    Fields(&bytes[8 + 8 * index..]).u64()
}

/// Returns the checksum that a trailer continues, with one more piece.
pub(super) fn with_sum_of(checksums: u32, piece: &[u8; PIECE]) -> u32 {
    crc32c_append(checksums, &piece[PIECE - CHECKSUM..])
}

/// Takes fields from the front of bytes that are long enough.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (field, rest) = self.0.split_at(count);
        self.0 = rest;
        field
    }

    fn u8(&mut self) -> u8 {
        self.bytes(1)[0]
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes(4).try_into().expect("4 bytes"))
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes(8).try_into().expect("8 bytes"))
    }

    /// Returns whether the next `count` bytes are 0.
    fn zeros(&mut self, count: usize) -> bool {
        self.bytes(count).iter().all(|&byte| byte == 0)
    }
}

fn put_u32<const N: usize>(bytes: &mut Vec<u8>, numbers: [u32; N]) {
    bytes.extend(numbers.map(u32::to_le_bytes).as_flattened());
}

fn put_u64<const N: usize>(bytes: &mut Vec<u8>, numbers: [u64; N]) {
    bytes.extend(numbers.map(u64::to_le_bytes).as_flattened());
}

/// Returns the error for a number that no writer stores.
pub(super) fn invalid(place: SnapshotPlace, field: &'static str, found: impl ToString) -> SnapshotError {
    SnapshotError::Invalid { place, field, found: found.to_string() }
}
