//! The end of a snapshot.

use super::CHECKSUM;
use crc32c::crc32c_append;

const MAGIC: [u8; 8] = *b"\xc0/cuckoo";

/// Bytes of the trailer.
pub(in crate::snapshot) const TRAILER: usize = 64;

/// The offset of the number of slots in use.
pub(in crate::snapshot) const COUNT: usize = 16;

/// Returns the trailer. `checksums` is the checksum of the header and of all checksums of heads.
pub(in crate::snapshot) fn trailer(records: usize, count: u64, checksums: u32) -> [u8; TRAILER] {
    let mut bytes = [0; TRAILER];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..16].copy_from_slice(&(records as u64).to_le_bytes());
    bytes[COUNT..COUNT + 8].copy_from_slice(&count.to_le_bytes());
    let (said, checksum) = bytes.split_at_mut(TRAILER - CHECKSUM);
    checksum.copy_from_slice(&crc32c_append(checksums, said).to_le_bytes());
    bytes
}
