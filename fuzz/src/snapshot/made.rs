//! Snapshots made from an input, with defects and with matching checksums.

use super::EMPTY;
use std::ops::Range;
use testkit::Input;
use testkit::format::{ALIGN, CHECKSUM, FIXED, HEAD, Layout, SLOTS, seal_all};

/// The end of the name of the hasher, `siphash-1-3`.
const NAME_END: usize = FIXED + 11;

const RATES: [f64; 4] = [0.0, 0.001, 0.5, 1e-9];
/// The names of key types, most often `u64`.
const KEY_TYPES: [&[u8]; 6] = [b"u64", b"u64", b"u64", b"", b"", b"isize"];

/// The offsets of the fields of the header, and of the beginning of the name.
const HEADER_FIELDS: [usize; 34] = [
    0, 8, 12, 16, 24, 32, 40, 44, 48, 52, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 140, 144, 148, 152, 160,
    161, 162, 163, 168, 176, 184, 192, 200,
];

/// The offsets of the fields of the head of a record, and of the checksums.
const HEAD_FIELDS: [usize; 14] = [0, 8, 16, 20, 21, 22, 23, 24, 25, 28, 32, 40, 48, 56];

/// The number of tables of a growing filter from which on tables are split only if necessary.
const MANY_TABLES: usize = 8;

/// The pieces of a snapshot of one shard, without their checksums.
struct Pieces {
    header: Vec<u8>,
    records: Vec<Vec<u8>>,
    trailer: Vec<u8>,
}

/// Makes a snapshot from an input: first its shape, then its defects, then its words.
pub(super) fn snapshot(mut input: Input) -> Vec<u8> {
    let defects = input.byte();
    let mut pieces = Pieces { header: header(&mut input), records: Vec::new(), trailer: Vec::new() };
    let changes: Vec<[u8; 4]> = (0..defects % 4).map(|_| [(); 4].map(|()| input.byte())).collect();
    let (cut, more) = if defects & 0x40 > 0 { (input.byte(), input.byte()) } else { (0, 0) };
    pieces.fill(input);
    for change in changes {
        pieces.spoil(change);
    }
    let mut bytes = pieces.sealed();
    bytes.truncate(bytes.len() - usize::from(cut).min(bytes.len()));
    bytes.resize(bytes.len() + usize::from(more), more);
    bytes
}

/// Makes the header of a filter of one shard as the crate writes it.
fn header(input: &mut Input) -> Vec<u8> {
    let mut header = EMPTY[..NAME_END].to_vec();
    let bases = u32::from(input.byte() % 24 + 1) * 2;
    let width = u32::from(input.byte() % 29 + 4);
    let capacity = u32::from(input.byte()).min(bases * SLOTS as u32);
    let shift = u32::from(input.byte() % 13 + 4);
    let (rate, key_type) = (input.pick(&RATES), input.pick(&KEY_TYPES));
    let (options, mut buckets) = (input.byte(), bases);
    if options & 0x80 > 0 && (6..=30).contains(&width) {
        let reserve = u32::from(input.pick(&[1_u8, 2, 3, 5, 15])).min(width - 5);
        header[52] = 1;
        let extension = u32::from(input.byte() % 4).min(reserve - 1);
        buckets <<= extension;
        (header[160], header[163]) = (reserve as u8, extension as u8);
        let most = u64::from(capacity).max(u64::from(bases << reserve));
        header[168..176].copy_from_slice(&most.to_le_bytes());
    }
    for (at, value) in [(40, buckets), (44, width), (48, shift), (56, capacity)] {
        header[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    header[64..72].copy_from_slice(&rate.to_bits().to_le_bytes());
    if options & 1 > 0 {
        header[104..140].fill(0);
    }
    let metadata = input.take(usize::from(options >> 1) % 32);
    for (at, length) in [(144, metadata.len()), (148, key_type.len())] {
        header[at..at + 4].copy_from_slice(&(length as u32).to_le_bytes());
    }
    header.extend(key_type);
    header.extend(metadata);
    header.resize((header.len() + CHECKSUM).next_multiple_of(ALIGN), 0);
    let length = header.len() as u32;
    header[12..16].copy_from_slice(&length.to_le_bytes());
    header
}

impl Pieces {
    /// Adds the records, with words from the input and zeros behind its end, and the trailer.
    fn fill(&mut self, mut input: Input) {
        let whole = Layout::of(&self.header).expect("it was just made");
        let mut total = 0_u64;
        if whole.reserve == 0 {
            let end = (whole.buckets * SLOTS * whole.width / 8) as usize;
            total += self.add(&whole, [0, 0], input.take(end));
        }
        let mut cell = 0;
        while whole.reserve > 0 && cell < 1_u64 << whole.cell() {
            let (cells, refills) = (whole.cell(), whole.extension);
            // After all refills, or one table of any depth.
            let least = cells - u64::from(cell.trailing_zeros()).min(cells);
            let more = if self.records.len() < MANY_TABLES { u64::from(input.byte() % 3) } else { 0 };
            let splits = (least + more).min(cells);
            let level = if splits == 0 { u64::from(input.byte()) % (refills + 1) } else { refills };
            let depth = level + splits;
            // Bits that are in the number of a bucket are not stored.
            let layout = whole.of_table(level + u64::from(input.byte()) % (splits + 1), depth);
            let begin = cell << (whole.width - whole.reserve);
            let words = own_words(&layout, begin, whole.width - depth, &mut input);
            total += self.add(&layout, [cell >> (cells - splits), depth].map(|number| number as u32), &words);
            cell += 1 << (cells - splits);
        }
        self.trailer.extend(b"\xc0/cuckoo");
        self.trailer.extend((self.records.len() as u64).to_le_bytes());
        self.trailer.extend(total.to_le_bytes());
        self.trailer.resize(HEAD, 0);
    }

    /// Adds a record, and returns the number of its slots in use.
    fn add(&mut self, layout: &Layout, prefix_and_depth: [u32; 2], words: &[u8]) -> u64 {
        let count = layout.taken(words).count() as u64;
        let mut record = head(layout, prefix_and_depth, count).to_vec();
        record.extend(words);
        record.resize(layout.record(), 0);
        self.records.push(record);
        count
    }

    /// Changes a field, or a word.
    fn spoil(&mut self, [piece, field, how, value]: [u8; 4]) {
        let (field, record) = (usize::from(field), usize::from(piece >> 3) % self.records.len());
        let record = &mut self.records[record];
        let (piece, at) = match piece % 8 {
            0..3 => (&mut self.header, one_of(&HEADER_FIELDS, field)),
            3 => (&mut self.trailer, eight_at(field % 7 * 8)),
            4 | 5 => (record, one_of(&HEAD_FIELDS, field)),
            _ => {
                // Including the zeros behind the words.
                let words = (record.len() - HEAD) / 8;
                (record, eight_at(HEAD + field % words * 8))
            }
        };
        let len = at.len();
        let field = &mut piece[at];
        let mut eight = [0; 8];
        eight[..len].copy_from_slice(field);
        let old = u64::from_le_bytes(eight);
        let value = u64::from(value);
        let new = match how % 8 {
            0 => value,
            1 => old.wrapping_add(1),
            2 => old.wrapping_sub(1),
            3 => old.wrapping_add(value * 2),
            4 => old ^ 1 << (value % 64),
            5 => u64::MAX,
            6 => value << 56,
            _ => old.rotate_left(value as u32),
        };
        field.copy_from_slice(&new.to_le_bytes()[..len]);
    }

    fn sealed(self) -> Vec<u8> {
        let lengths: Vec<usize> = self.records.iter().map(Vec::len).collect();
        let length = self.header.len();
        let mut bytes = [self.header, self.records.concat(), self.trailer].concat();
        seal_all(&mut bytes, length, &lengths);
        bytes
    }
}

/// Makes the head of a record of the only shard, without its checksums.
fn head(layout: &Layout, [prefix, depth]: [u32; 2], count: u64) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(b"\xc0record\n");
    head[16..20].copy_from_slice(&prefix.to_le_bytes());
    head[20] = depth as u8;
    head[21] = layout.width as u8;
    head[22] = layout.width as u8;
    for (at, field) in [(40, count), (48, layout.words as u64 / 8)] {
        head[at..at + 8].copy_from_slice(&field.to_le_bytes());
    }
    head
}

/// Makes the words of a table that holds only fingerprints of its own. These have the bits `known` from the bit `free` on.
fn own_words(layout: &Layout, known: u64, free: u64, input: &mut Input) -> Vec<u8> {
    let (mut words, known) = (vec![0; layout.words], known & ((1 << layout.width) - 1));
    for slot in 0..layout.buckets * SLOTS {
        let drawn = u64::from(input.byte()).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - free);
        // The lowest bit belongs to the core, which is not 0.
        let value = if drawn > 0 { known | drawn | 1 } else { 0 };
        for bit in (0..layout.width).filter(|bit| value >> bit & 1 > 0) {
            let at = (slot * layout.width + bit) as usize;
            words[at / 8] |= 1 << (at % 8);
        }
    }
    words
}

fn one_of(fields: &[usize], number: usize) -> Range<usize> {
    let number = number % (fields.len() - 1);
    fields[number]..fields[number + 1]
}

fn eight_at(at: usize) -> Range<usize> {
    at..at + 8
}
