//! Snapshots made right again after they were changed.

use crate::format::{CHECKSUM, Layout, SHARD_PREFIX, TRAILER, checksum, header_length};
use crc32c::crc32c_append;

/// The same bytes with right checksums, as far as header, shards and trailer are there.
pub(super) fn checksums(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = bytes.to_vec();
    let header = header_length(&bytes)?;
    let origin = seal(&mut bytes[..header], 0);
    let Some(layout) = Layout::of(&bytes) else { return Some(bytes) };
    let (mut at, mut checksums) = (header, origin);
    for _ in layout.part.clone() {
        let Some(shard) = bytes.get_mut(at..at + layout.shard()) else { break };
        checksums = crc32c_append(checksums, &seal(shard, origin).to_le_bytes());
        at += layout.shard();
    }
    if let Some(trailer) = bytes.get_mut(at..at + TRAILER) {
        seal(trailer, checksums);
    }
    Some(bytes)
}

/// A whole snapshot with this header, if it is not longer than that: the words are those of the bytes, and zero where
/// there are none.
pub(super) fn all(bytes: &[u8], longest: u64) -> Option<Vec<u8>> {
    let layout = Layout::of(bytes)?;
    let shards = layout.part.end - layout.part.start;
    if shards.checked_mul(layout.shard() as u64)? > longest {
        return None;
    }
    let (header, rest) = bytes.split_at(layout.header);
    let mut whole = header.to_vec();
    let origin = seal(&mut whole, 0);
    let mut given = rest.chunks(layout.shard());
    let (mut checksums, mut total) = (origin, 0);
    for number in layout.part.clone() {
        let given = given.next().and_then(|shard| shard.get(SHARD_PREFIX..)).unwrap_or_default();
        let given = &given[..given.len().min(layout.words)];
        let count = layout.taken(given).count() as u64;
        let begin = whole.len();
        for field in [number, count, layout.words as u64 / 8] {
            whole.extend(field.to_le_bytes());
        }
        whole.extend(given);
        whole.resize(begin + layout.shard(), 0);
        checksums = crc32c_append(checksums, &seal(&mut whole[begin..], origin).to_le_bytes());
        total += count;
    }
    let begin = whole.len();
    whole.extend(b"\xc0/cuckoo");
    whole.extend(shards.to_le_bytes());
    whole.extend(total.to_le_bytes());
    whole.extend([0; CHECKSUM]);
    seal(&mut whole[begin..], checksums);
    Some(whole)
}

/// Gives a piece its checksum, at its end, that goes on from another one.
pub(super) fn seal(piece: &mut [u8], from: u32) -> u32 {
    let sum = checksum(piece, from);
    let end = piece.len() - CHECKSUM;
    piece[end..].copy_from_slice(&sum.to_le_bytes());
    sum
}
