//! Snapshots in which somebody has changed something, and all checksums match.

use crc32c::{crc32c, crc32c_append};

/// The bytes of a snapshot.
#[derive(Clone)]
pub(super) struct Sealed {
    pub(super) bytes: Vec<u8>,
    /// The length of the header, and of each shard.
    header: usize,
    shard: usize,
}

impl Sealed {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        let header = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
        let words = u64::from_le_bytes(bytes[header + 16..header + 24].try_into().unwrap()) as usize;
        Sealed { bytes, header, shard: 24 + words * 8 + 4 }
    }

    /// With this at a place of the header, of a shard or of the trailer.
    pub(super) fn with(mut self, at: usize, value: impl AsRef<[u8]>) -> Self {
        let value = value.as_ref();
        self.bytes[at..at + value.len()].copy_from_slice(value);
        self.seal();
        self
    }

    fn seal(&mut self) {
        let (header, rest) = self.bytes.split_at_mut(self.header);
        let (shards, trailer) = rest.split_at_mut(rest.len() - 28);
        let (header, checksum) = header.split_at_mut(header.len() - 4);
        let origin = crc32c(header);
        checksum.copy_from_slice(&origin.to_le_bytes());
        let mut checksums = origin;
        for shard in shards.chunks_exact_mut(self.shard) {
            let (shard, checksum) = shard.split_at_mut(self.shard - 4);
            checksum.copy_from_slice(&crc32c_append(origin, shard).to_le_bytes());
            checksums = crc32c_append(checksums, checksum);
        }
        let (trailer, checksum) = trailer.split_at_mut(24);
        checksum.copy_from_slice(&crc32c_append(checksums, trailer).to_le_bytes());
    }
}
