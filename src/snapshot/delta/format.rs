//! The bytes of a delta (docs/format.md).

use super::{Name, Piece};
use crate::error::{SnapshotError, SnapshotPlace};
use crate::snapshot::format::{PIECE, number, sealed};
use crc32c::crc32c;

pub(super) const NAME: usize = 6;

pub(super) const MAGIC_LEN: usize = 8;

const MAGIC: [u8; MAGIC_LEN] = *b"\xc0delta.\n";
const CHANGE: [u8; MAGIC_LEN] = *b"\xc0change\n";
const TRAILER: [u8; MAGIC_LEN] = *b"\xc0/delta\n";
const VERSION: u64 = 2;

pub(super) fn head() -> [u8; PIECE] {
    sealed(MAGIC, &[VERSION], 0)
}

/// Returns an error unless these first bytes, at most [`PIECE`], begin a delta of the known version.
pub(super) fn check_head(bytes: &[u8]) -> Result<(), SnapshotError> {
    let magic = bytes.len().min(MAGIC_LEN);
    if bytes[..magic] != MAGIC[..magic] {
        return Err(SnapshotError::NotADelta);
    }
    let bytes = bytes.first_chunk().ok_or(SnapshotError::Truncated { place: SnapshotPlace::Header })?;
    match number(bytes, 0) {
        VERSION if *bytes == head() => Ok(()),
        VERSION => Err(SnapshotError::Damaged { place: SnapshotPlace::Header }),
        found => Err(SnapshotError::UnknownVersion {
            found: u32::try_from(found).unwrap_or(u32::MAX),
            known: VERSION as u32,
        }),
    }
}

/// The changes of a shard, or of a part of one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) piece: Piece,
    pub(super) removed: u64,
    pub(super) inserted: u64,
    /// The checksum of the classes, zero padding included.
    pub(super) sum: u32,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) changes: u64,
    pub(super) from: u64,
    pub(super) to: u64,
}

/// The piece after the header or after a change.
pub(super) enum Next {
    Change(Change),
    End(End),
}

impl Change {
    /// The checksum continues that of the header.
    pub(super) fn to_bytes(&self, origin: u32) -> [u8; PIECE] {
        let Piece { shard, prefix, bits } = self.piece;
        let part = u64::from(prefix) | u64::from(bits) << 32;
        sealed(CHANGE, &[shard as u64, self.removed, self.inserted, self.sum.into(), part], origin)
    }

    /// Returns the bytes of the classes, zero padding included; `None` for more than `most` removed or inserted classes.
    pub(super) fn len(&self, most: u64) -> Option<usize> {
        let are_few = self.removed.max(self.inserted) <= most;
        let names = are_few.then(|| usize::try_from(self.removed + self.inserted).ok())??;
        names.checked_mul(NAME)?.checked_next_multiple_of(PIECE)
    }
}

impl End {
    /// The checksum continues that of the header and of the checksums of all changes.
    pub(super) fn to_bytes(&self, checksums: u32) -> [u8; PIECE] {
        sealed(TRAILER, &[self.changes, self.from, self.to], checksums)
    }
}

impl Next {
    /// Returns the place of the piece with this magic that follows `number` changes.
    pub(super) fn place(magic: &[u8], number: usize) -> SnapshotPlace {
        if magic == TRAILER { SnapshotPlace::Trailer } else { SnapshotPlace::Change { number } }
    }

    pub(super) fn parse(
        bytes: &[u8; PIECE],
        place: SnapshotPlace,
        origin: u32,
        checksums: u32,
    ) -> Result<Self, SnapshotError> {
        let (next, written) = if place == SnapshotPlace::Trailer {
            let [changes, from, to] = [0, 1, 2].map(|index| number(bytes, index));
            let end = End { changes, from, to };
            let written = end.to_bytes(checksums);
            (Next::End(end), written)
        } else {
            let [shard, removed, inserted, sum, part] = [0, 1, 2, 3, 4].map(|index| number(bytes, index));
            let shard = usize::try_from(shard).unwrap_or(usize::MAX);
            let piece = Piece { shard, prefix: part as u32, bits: (part >> 32) as u32 };
            let change = Change { piece, removed, inserted, sum: sum as u32 };
            let written = change.to_bytes(origin);
            (Next::Change(change), written)
        };
        // A piece that would be written differently is damaged, including its zeros, magic and checksum.
        if written == *bytes { Ok(next) } else { Err(SnapshotError::Damaged { place }) }
    }
}

/// Returns the classes of a change as bytes, and their checksum.
pub(super) fn names_to_bytes(names: impl Iterator<Item = Name>) -> (Vec<u8>, u32) {
    let mut bytes = Vec::new();
    for Name { bucket, fingerprint } in names {
        bytes.extend((bucket as u16).to_le_bytes());
        bytes.extend(fingerprint.to_le_bytes());
    }
    bytes.resize(bytes.len().next_multiple_of(PIECE), 0);
    let sum = crc32c(&bytes);
    (bytes, sum)
}

/// Returns the classes in bytes.
pub(super) fn names(bytes: &[u8]) -> impl Iterator<Item = Name> + Clone + '_ {
    bytes.chunks_exact(NAME).map(|name| {
        let (bucket, fingerprint) = name.split_at(2);
        Name {
            bucket: u16::from_le_bytes(bucket.try_into().expect("2 bytes")).into(),
            fingerprint: u32::from_le_bytes(fingerprint.try_into().expect("4 bytes")),
        }
    })
}
