//! Where everything stands in a snapshot, by the description of its format (DESIGN.md, "Format 1") and by nothing of the
//! crate's.

use crc32c::crc32c_append;
use std::ops::Range;

/// The least header, which has neither a name nor metadata.
pub(crate) const MIN_HEADER: usize = 156;
pub(crate) const CHECKSUM: usize = 4;
/// What stands before the words of a shard.
pub(crate) const SHARD_PREFIX: usize = 24;
pub(crate) const TRAILER: usize = 28;
pub(crate) const SLOTS: u64 = 4;

/// What a header says of what follows it.
#[derive(Clone)]
pub(crate) struct Layout {
    /// Its length.
    pub(crate) header: usize,
    /// The numbers of the shards.
    pub(crate) part: Range<u64>,
    /// Bytes of the words of a shard.
    pub(crate) words: usize,
    pub(crate) buckets: u64,
    pub(crate) width: u64,
}

impl Layout {
    /// `None` if the header is not all there, or no shard is like that.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let header = header_length(bytes)?;
        let (first, count) = (u64_at(bytes, 24)?, u64_at(bytes, 32)?);
        let (buckets, width) = (u64::from(u32_at(bytes, 40)?), u64::from(u32_at(bytes, 44)?));
        if buckets > 1 << 16 || !(4..=32).contains(&width) {
            return None;
        }
        let words = (buckets * SLOTS * width).div_ceil(64) as usize * 8;
        Some(Layout { header, part: first..first.checked_add(count)?, words, buckets, width })
    }

    /// Bytes of a shard.
    pub(crate) fn shard(&self) -> usize {
        SHARD_PREFIX + self.words + CHECKSUM
    }

    /// The slots that are taken, by their numbers, of words that may not all be there.
    pub(crate) fn taken<'a>(&self, words: &'a [u8]) -> impl Iterator<Item = (u64, u64)> + use<'a> {
        let (width, there) = (self.width, (words.len() as u64 * 8).div_ceil(self.width));
        let slots = there.min(self.buckets * SLOTS);
        let values = (0..slots).map(move |slot| (slot, bits_at(words, slot * width, width)));
        values.filter(|&(_, value)| value != 0)
    }

    /// Whether anything stands behind the last slot.
    pub(crate) fn has_more_bits(&self, words: &[u8]) -> bool {
        let end = self.buckets * SLOTS * self.width;
        bits_at(words, end, self.words as u64 * 8 - end) != 0
    }
}

/// The length that a header gives, if the header is there.
pub(crate) fn header_length(bytes: &[u8]) -> Option<usize> {
    let length = u32_at(bytes, 12)? as usize;
    (MIN_HEADER..=bytes.len()).contains(&length).then_some(length)
}

/// The fingerprints of a whole snapshot: shard, bucket, value.
pub(crate) fn fingerprints(bytes: &[u8]) -> Option<impl Iterator<Item = (u64, u64, u64)> + use<'_>> {
    let layout = Layout::of(bytes)?;
    let shards = bytes.get(layout.header..bytes.len().checked_sub(TRAILER)?)?.chunks_exact(layout.shard());
    Some(layout.part.clone().zip(shards).flat_map(move |(number, shard)| {
        let slots = layout.taken(&shard[SHARD_PREFIX..SHARD_PREFIX + layout.words]);
        slots.map(move |(slot, value)| (number, slot / SLOTS, value))
    }))
}

/// The checksum that a piece ends with, going on from another one: from 0 for a header.
pub(crate) fn checksum(piece: &[u8], from: u32) -> u32 {
    crc32c_append(from, &piece[..piece.len() - CHECKSUM])
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// Up to 57 bits, counted from the lowest bit of the first byte. Those behind the end are 0.
fn bits_at(bytes: &[u8], at: u64, count: u64) -> u64 {
    let rest = bytes.get((at / 8) as usize..).unwrap_or_default();
    let mut eight = [0; 8];
    let there = rest.len().min(8);
    eight[..there].copy_from_slice(&rest[..there]);
    u64::from_le_bytes(eight) >> (at % 8) & !(u64::MAX << count)
}
