//! A second reader of the snapshot format, written from its description (docs/format.md) without the library's code, so that it
//! does not repeat a mistake of the library.

mod place;

pub use crc32c::{crc32c, crc32c_append};
pub use place::{Place, hash_of_text, may_hold, place};

use std::ops::Range;

/// The number of bytes of a header before its names.
pub const FIXED: usize = 192;
/// The alignment of the beginning and the end of each piece of a snapshot.
pub const ALIGN: usize = 64;
/// The number of bytes of a checksum.
pub const CHECKSUM: usize = 4;
/// The number of bytes of a record before its words, and of the trailer.
pub const HEAD: usize = 64;
/// The place of the checksum of the words in the head of a record.
pub const WORDS_SUM: usize = 56;
/// The number of slots in a bucket.
pub const SLOTS: u64 = 4;

/// The sizes that follow from a header, or, in a growing filter, from a header and the width of a table.
#[derive(Clone)]
pub struct Layout {
    /// The number of bytes of the header.
    pub header: usize,
    /// The numbers of the shards.
    pub part: Range<u64>,
    /// The number of bytes of the words of a record, without the zeros behind them.
    pub words: usize,
    /// The number of buckets of a shard.
    pub buckets: u64,
    /// The number of bits of a slot.
    pub width: u64,
    /// The number of bits of a stored fingerprint.
    pub fingerprint: u64,
    /// The number of bits of the tag and the counter below it.
    pub beside: u64,
    /// The number of bits of the reserve, in a growing filter.
    pub reserve: u64,
    /// The number of these bits that extend a bucket; in the layout of a table, those that it has used.
    pub extension: u64,
}

impl Layout {
    /// Returns `None` if the header is incomplete, or if no shard has these sizes.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let header = header_length(bytes)?;
        let (first, count) = (u64_at(bytes, 24)?, u64_at(bytes, 32)?);
        let (buckets, fingerprint) = (u64::from(u32_at(bytes, 40)?), u64::from(u32_at(bytes, 44)?));
        let beside = u64::from(bytes[161]) + u64::from(bytes[162]);
        let width = fingerprint + beside;
        let [reserve, extension] = [160, 163].map(|at| bytes[at].into());
        if buckets > 1 << 16 || !(4..=32).contains(&width) || reserve >= width || extension > reserve || extension > 15
        {
            return None;
        }
        let part = first..first.checked_add(count)?;
        Some(
            Layout { header, part, words: 0, buckets, width, fingerprint, beside, reserve, extension }
                .of_table(0, extension),
        )
    }

    /// Returns the layout of a table of this depth whose slots omit `dropped` bits of the fingerprint. They are as wide as keeps
    /// tag and counter in one word.
    #[must_use]
    pub fn of_table(&self, dropped: u64, depth: u64) -> Self {
        let fits = |width: &u64| self.beside <= 1 << width.trailing_zeros();
        let (fingerprint, extension) = (self.fingerprint - dropped, self.extension.min(depth));
        let width = (fingerprint + self.beside..).find(fits).expect("a power of two");
        let buckets = self.buckets >> (self.extension - extension);
        let words = (buckets * SLOTS * width).div_ceil(64) as usize * 8;
        Layout { width, fingerprint, buckets, extension, words, ..self.clone() }
    }

    /// Returns the layout of the record with this head; `None` if no record has it.
    pub fn of_record(&self, head: &[u8]) -> Option<Self> {
        let dropped = self.fingerprint.checked_sub((*head.get(22)?).into())?;
        (dropped <= self.reserve).then(|| self.of_table(dropped, head[20].into()))
    }

    /// The number of bits of the reserve that select a table, below those that extend a bucket.
    pub fn cell(&self) -> u64 {
        self.reserve - self.extension
    }

    /// Returns the highest bits of a whole fingerprint, as many as this table extends a bucket by, for a fingerprint with this
    /// core in this bucket. A whole fingerprint consists of the core and `reserve` bits above it.
    pub fn extended(&self, whole: &Layout, core: u64, bucket: u64) -> u64 {
        let (extension, is_odd) = (bucket % (1 << self.extension), bucket >> self.extension & 1 == 1);
        let extension = if is_odd { place::turned(core, self.extension, extension) } else { extension };
        extension << (whole.width - self.extension)
    }

    /// The number of bytes of a record.
    pub fn record(&self) -> usize {
        HEAD + self.words.next_multiple_of(ALIGN)
    }

    /// Returns the slots in use, with their numbers. The words may be incomplete.
    pub fn taken<'a>(&self, words: &'a [u8]) -> impl Iterator<Item = (u64, u64)> + use<'a> {
        let (width, there) = (self.width, (words.len() as u64 * 8).div_ceil(self.width));
        let slots = there.min(self.buckets * SLOTS);
        let values = (0..slots).map(move |slot| (slot, bits_at(words, slot * width, width)));
        values.filter(|&(_, value)| value != 0)
    }

    /// Returns whether a bit behind the last slot is set.
    pub fn has_more_bits(&self, words: &[u8]) -> bool {
        let end = self.buckets * SLOTS * self.width;
        bits_at(words, end, self.words as u64 * 8 - end) != 0
    }
}

/// Returns the complete records behind a header, with their layouts.
pub fn records<'a>(bytes: &'a [u8], whole: &Layout) -> impl Iterator<Item = (Layout, &'a [u8])> + use<'a> {
    let (whole, mut rest) = (whole.clone(), bytes.get(whole.header..).unwrap_or_default());
    let mut left = whole.part.end - whole.part.start;
    std::iter::from_fn(move || {
        let layout = if whole.reserve > 0 {
            rest.starts_with(b"\xc0record\n").then(|| whole.of_record(rest))??
        } else {
            left = left.checked_sub(1)?;
            whole.clone()
        };
        let (record, behind) = rest.split_at_checked(layout.record())?;
        rest = behind;
        Some((layout, record))
    })
}

/// Returns the length of the header if the header is complete.
pub fn header_length(bytes: &[u8]) -> Option<usize> {
    let length = u32_at(bytes, 12)? as usize;
    (length.is_multiple_of(ALIGN) && (FIXED + CHECKSUM..=bytes.len()).contains(&length)).then_some(length)
}

/// Returns the fingerprints of a whole snapshot: shard, bucket and value, including the bits that a table does not store.
pub fn fingerprints(bytes: &[u8]) -> Option<impl Iterator<Item = (u64, u64, u64)> + use<'_>> {
    let whole = Layout::of(bytes)?;
    let records = records(bytes, &whole);
    Some(records.flat_map(move |(layout, record)| {
        let shard = u64_at(record, 8).expect("a head");
        let depth = u64::from(record[20]).max(whole.extension);
        let cell = u64::from(u32_at(record, 16).expect("a head")) << (whole.reserve - depth);
        let core_bits = whole.width - whole.reserve;
        let (whole, slots) = (whole.clone(), layout.taken(&record[HEAD..HEAD + layout.words]));
        slots.map(move |(slot, value)| {
            let (bucket, core) = (slot / SLOTS, value % (1 << core_bits));
            (shard, bucket, value | cell << core_bits | layout.extended(&whole, core, bucket))
        })
    }))
}

/// Computes the checksum of a piece, without the checksum at its end, continued from another one, or from 0 for a header.
pub fn checksum(piece: &[u8], from: u32) -> u32 {
    crc32c_append(from, &piece[..piece.len() - CHECKSUM])
}

/// Writes the checksum to the end of a piece, continued from another one.
pub fn seal(piece: &mut [u8], from: u32) -> u32 {
    let sum = checksum(piece, from);
    let end = piece.len() - CHECKSUM;
    piece[end..].copy_from_slice(&sum.to_le_bytes());
    sum
}

/// Corrects all checksums of a header, of records of these lengths and of a trailer, as far as they are complete. The checksum of
/// a head continues that of the header, and the checksum of the trailer continues those of all heads.
pub fn seal_all(bytes: &mut [u8], header: usize, records: &[usize]) {
    let origin = seal(&mut bytes[..header], 0);
    let (mut at, mut checksums) = (header, origin);
    for length in records {
        let record = &mut bytes[at..at + length];
        let words = crc32c(&record[HEAD..]);
        record[WORDS_SUM..WORDS_SUM + CHECKSUM].copy_from_slice(&words.to_le_bytes());
        checksums = crc32c_append(checksums, &seal(&mut record[..HEAD], origin).to_le_bytes());
        at += length;
    }
    if let Some(trailer) = bytes.get_mut(at..at + HEAD) {
        seal(trailer, checksums);
    }
}

/// A snapshot that can be changed while its checksums stay correct.
#[derive(Clone)]
pub struct Sealed {
    /// The snapshot.
    pub bytes: Vec<u8>,
    /// The lengths of the header and of the records before any change.
    header: usize,
    records: Vec<usize>,
}

impl Sealed {
    /// # Panics
    ///
    /// If these are not the bytes of a snapshot.
    pub fn new(bytes: Vec<u8>) -> Self {
        let layout = Layout::of(&bytes).expect("a snapshot");
        let records = records(&bytes, &layout).map(|(_, record)| record.len()).collect();
        Sealed { bytes, header: layout.header, records }
    }

    /// Writes a value to this place in the header, a record or the trailer.
    #[must_use]
    pub fn with(mut self, at: usize, value: impl AsRef<[u8]>) -> Self {
        let value = value.as_ref();
        self.bytes[at..at + value.len()].copy_from_slice(value);
        seal_all(&mut self.bytes, self.header, &self.records);
        self
    }
}

/// Returns a number of 32 bits, if it is complete.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Returns a number of 64 bits, if it is complete.
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// Returns up to 57 bits, counted from the lowest bit of the first byte. Bits behind the end are 0.
fn bits_at(bytes: &[u8], at: u64, count: u64) -> u64 {
    let rest = bytes.get((at / 8) as usize..).unwrap_or_default();
    let mut eight = [0; 8];
    let there = rest.len().min(8);
    eight[..there].copy_from_slice(&rest[..there]);
    u64::from_le_bytes(eight) >> (at % 8) & !(u64::MAX << count)
}
