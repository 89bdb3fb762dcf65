//! Snapshots made right again after they were changed (DESIGN.md, "Snapshots").

use crc32c::crc32c_append;
use std::ops::Range;

/// The least header, which has neither a name nor metadata.
const LEAST_HEADER: usize = 156;
const CHECKSUM: usize = 4;
/// What stands before the words of a shard.
const SHARD_PREFIX: usize = 24;
const TRAILER: usize = 28;
const SLOTS: u64 = 4;

/// A larger snapshot is not put together: it would have little more to find, and take long.
const MOST_BYTES: u64 = 1 << 18;

/// The length that a header gives, if the header is there.
pub(crate) fn header_length(bytes: &[u8]) -> Option<usize> {
    let length = u32_at(bytes, 12)? as usize;
    (LEAST_HEADER..=bytes.len()).contains(&length).then_some(length)
}

/// The same bytes with right checksums, as far as header, shards and trailer are there.
pub(crate) fn checksums(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = bytes.to_vec();
    let shape = Shape::of(&bytes)?;
    let origin = mend_header(&mut bytes[..shape.header]);
    let (mut at, mut checksums) = (shape.header, origin);
    for _ in shape.part.clone() {
        let Some(shard) = bytes.get_mut(at..at + shape.shard()) else { break };
        let checksum = mend_end(shard, origin);
        checksums = crc32c_append(checksums, &checksum);
        at += shape.shard();
    }
    if let Some(trailer) = bytes.get_mut(at..at + TRAILER) {
        mend_end(trailer, checksums);
    }
    Some(bytes)
}

/// A whole snapshot with this header: the words are those of the bytes, and zero where there are none.
pub(crate) fn all(bytes: &[u8]) -> Option<Vec<u8>> {
    let shape = Shape::of(bytes)?;
    let shards = shape.part.end - shape.part.start;
    if shards.checked_mul(shape.shard() as u64)? > MOST_BYTES {
        return None;
    }
    let (header, rest) = bytes.split_at(shape.header);
    let mut whole = header.to_vec();
    let origin = mend_header(&mut whole);
    let mut given = rest.chunks(shape.shard());
    let (mut checksums, mut total) = (origin, 0);
    for number in shape.part.clone() {
        let given = given.next().and_then(|shard| shard.get(SHARD_PREFIX..)).unwrap_or_default();
        let given = &given[..given.len().min(shape.words)];
        let count = shape.taken(given);
        let begin = whole.len();
        for field in [number, count, shape.words as u64 / 8] {
            whole.extend(field.to_le_bytes());
        }
        whole.extend(given);
        whole.resize(begin + shape.shard(), 0);
        checksums = crc32c_append(checksums, &mend_end(&mut whole[begin..], origin));
        total += count;
    }
    let begin = whole.len();
    whole.extend(b"\xc0/cuckoo");
    whole.extend(shards.to_le_bytes());
    whole.extend(total.to_le_bytes());
    whole.extend([0; CHECKSUM]);
    mend_end(&mut whole[begin..], checksums);
    Some(whole)
}

/// The slots that are taken in all shards of a whole snapshot.
pub(crate) fn taken(bytes: &[u8]) -> Option<u64> {
    let shape = Shape::of(bytes)?;
    let shards = bytes[shape.header..bytes.len() - TRAILER].chunks_exact(shape.shard());
    Some(shards.map(|shard| shape.taken(&shard[SHARD_PREFIX..SHARD_PREFIX + shape.words])).sum())
}

/// What a header says of what follows it.
struct Shape {
    /// Its length.
    header: usize,
    part: Range<u64>,
    /// Bytes of the words of a shard.
    words: usize,
    buckets: u64,
    width: u64,
}

impl Shape {
    fn of(bytes: &[u8]) -> Option<Self> {
        let header = header_length(bytes)?;
        let (first, count) = (u64_at(bytes, 24)?, u64_at(bytes, 32)?);
        let (buckets, width) = (u64::from(u32_at(bytes, 40)?), u64::from(u32_at(bytes, 44)?));
        let words = (buckets * SLOTS).checked_mul(width)?.div_ceil(64).checked_mul(8)?;
        let words = usize::try_from(words).ok().filter(|&words| words as u64 <= MOST_BYTES)?;
        Some(Shape { header, part: first..first.checked_add(count)?, words, buckets, width })
    }

    /// Bytes of a shard.
    fn shard(&self) -> usize {
        SHARD_PREFIX + self.words + CHECKSUM
    }

    /// The slots that are taken, of words that may not all be there.
    fn taken(&self, words: &[u8]) -> u64 {
        let bits = words.len() as u64 * 8;
        let bit = |at: u64| at < bits && words[(at / 8) as usize] >> (at % 8) & 1 == 1;
        let slots = (0..self.buckets * SLOTS).map(|slot| slot * self.width..(slot + 1) * self.width);
        slots.take_while(|slot| slot.start < bits).filter(|slot| slot.clone().any(bit)).count() as u64
    }
}

/// Gives a header its checksum, from which all others go on.
fn mend_header(header: &mut [u8]) -> u32 {
    u32::from_le_bytes(mend_end(header, 0))
}

/// Gives a piece its checksum, at its end, that goes on from another one.
fn mend_end(piece: &mut [u8], from: u32) -> [u8; CHECKSUM] {
    let (body, end) = piece.split_at_mut(piece.len() - CHECKSUM);
    let checksum = crc32c_append(from, body).to_le_bytes();
    end.copy_from_slice(&checksum);
    checksum
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
