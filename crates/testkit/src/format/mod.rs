//! The snapshot format, read a second time: by its description (docs/format.md), and sharing nothing with the
//! library, so that a mistake there is not repeated here.

mod place;

pub use crc32c::{crc32c, crc32c_append};
pub use place::{Place, hash_of_text, may_hold, place};

use std::ops::Range;

/// Bytes of a header before its names.
pub const FIXED: usize = 192;
/// What each piece of a snapshot begins at a multiple of, and ends at one.
pub const ALIGN: usize = 64;
/// Bytes of a checksum.
pub const CHECKSUM: usize = 4;
/// Bytes of a record before its words, and of the trailer.
pub const HEAD: usize = 64;
/// Where a head has the checksum of the words.
pub const WORDS_SUM: usize = 56;
/// Slots of a bucket.
pub const SLOTS: u64 = 4;

/// What a header says of what follows it.
#[derive(Clone)]
pub struct Layout {
    /// Bytes of the header.
    pub header: usize,
    /// The numbers of the shards.
    pub part: Range<u64>,
    /// Bytes of the words of a shard, without the zeros behind them.
    pub words: usize,
    /// Of a shard.
    pub buckets: u64,
    /// Bits of a slot of a plain filter.
    pub width: u64,
}

impl Layout {
    /// `None` if the header is not all there, or no shard is like that.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let header = header_length(bytes)?;
        let (first, count) = (u64_at(bytes, 24)?, u64_at(bytes, 32)?);
        let (buckets, width) = (u64::from(u32_at(bytes, 40)?), u64::from(u32_at(bytes, 44)?));
        if buckets > 1 << 16 || !(4..=32).contains(&width) {
            return None;
        }
        let words = (buckets * SLOTS * width).div_ceil(64) as usize * 8;
        Some(Layout { header, part: first..first.checked_add(count)?, words, buckets, width })
    }

    /// Bytes of the record of a shard.
    pub fn record(&self) -> usize {
        HEAD + self.words.next_multiple_of(ALIGN)
    }

    /// The slots that are taken, by their numbers, of words that may not all be there.
    pub fn taken<'a>(&self, words: &'a [u8]) -> impl Iterator<Item = (u64, u64)> + use<'a> {
        let (width, there) = (self.width, (words.len() as u64 * 8).div_ceil(self.width));
        let slots = there.min(self.buckets * SLOTS);
        let values = (0..slots).map(move |slot| (slot, bits_at(words, slot * width, width)));
        values.filter(|&(_, value)| value != 0)
    }

    /// Whether anything stands behind the last slot.
    pub fn has_more_bits(&self, words: &[u8]) -> bool {
        let end = self.buckets * SLOTS * self.width;
        bits_at(words, end, self.words as u64 * 8 - end) != 0
    }
}

/// The length that a header gives, if the header is there.
pub fn header_length(bytes: &[u8]) -> Option<usize> {
    let length = u32_at(bytes, 12)? as usize;
    (length.is_multiple_of(ALIGN) && (FIXED + CHECKSUM..=bytes.len()).contains(&length)).then_some(length)
}

/// The fingerprints of a whole snapshot: shard, bucket, value.
pub fn fingerprints(bytes: &[u8]) -> Option<impl Iterator<Item = (u64, u64, u64)> + use<'_>> {
    let layout = Layout::of(bytes)?;
    let shards = bytes.get(layout.header..bytes.len().checked_sub(HEAD)?)?.chunks_exact(layout.record());
    Some(layout.part.clone().zip(shards).flat_map(move |(number, shard)| {
        let slots = layout.taken(&shard[HEAD..HEAD + layout.words]);
        slots.map(move |(slot, value)| (number, slot / SLOTS, value))
    }))
}

/// The checksum that a piece ends with, going on from another one: from 0 for a header.
pub fn checksum(piece: &[u8], from: u32) -> u32 {
    crc32c_append(from, &piece[..piece.len() - CHECKSUM])
}

/// Gives a piece its checksum, at its end, that goes on from another one.
pub fn seal(piece: &mut [u8], from: u32) -> u32 {
    let sum = checksum(piece, from);
    let end = piece.len() - CHECKSUM;
    piece[end..].copy_from_slice(&sum.to_le_bytes());
    sum
}

/// Gives a record its checksums: that of the words, and that of the head, which goes on from the header's.
pub fn seal_record(record: &mut [u8], origin: u32) -> u32 {
    let sum = crc32c(&record[HEAD..]);
    record[WORDS_SUM..WORDS_SUM + CHECKSUM].copy_from_slice(&sum.to_le_bytes());
    seal(&mut record[..HEAD], origin)
}

/// Makes all checksums right, as far as header, records and trailer are there.
pub fn seal_all(bytes: &mut [u8], layout: &Layout) {
    let origin = seal(&mut bytes[..layout.header], 0);
    let (mut at, mut checksums) = (layout.header, origin);
    for _ in layout.part.clone() {
        let Some(record) = bytes.get_mut(at..at + layout.record()) else { break };
        checksums = crc32c_append(checksums, &seal_record(record, origin).to_le_bytes());
        at += layout.record();
    }
    if let Some(trailer) = bytes.get_mut(at..at + HEAD) {
        seal(trailer, checksums);
    }
}

/// A snapshot that can be changed while its checksums stay right.
#[derive(Clone)]
pub struct Sealed {
    /// The snapshot.
    pub bytes: Vec<u8>,
    /// Where everything was before the changes.
    layout: Layout,
}

impl Sealed {
    /// # Panics
    ///
    /// If these are not the bytes of a snapshot.
    pub fn new(bytes: Vec<u8>) -> Self {
        Sealed { layout: Layout::of(&bytes).expect("a snapshot"), bytes }
    }

    /// With this at a place of the header, of a record or of the trailer.
    #[must_use]
    pub fn with(mut self, at: usize, value: impl AsRef<[u8]>) -> Self {
        let value = value.as_ref();
        self.bytes[at..at + value.len()].copy_from_slice(value);
        seal_all(&mut self.bytes, &self.layout);
        self
    }
}

/// A number of 32 bits, if it is all there.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// A number of 64 bits, if it is all there.
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
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
