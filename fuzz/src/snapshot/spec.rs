//! A second reader of the format: which bytes are a snapshot by docs/format.md.

use super::EMPTY;
use crc32c::{crc32c, crc32c_append};
use testkit::format::{ALIGN, CHECKSUM, FIXED, HEAD, Layout, SLOTS, WORDS_SUM, checksum, header_length};
use testkit::format::{u32_at, u64_at};

const NAME: &[u8] = b"siphash-1-3";

/// The names of key types in snapshots that can be read as a filter of `u64`: none, and its own.
const KEY_TYPES: [&[u8]; 2] = [b"", b"u64"];

/// Returns whether the bytes begin with the header of a snapshot, for any reader.
pub(super) fn is_header(bytes: &[u8]) -> bool {
    header(bytes).is_some()
}

/// Returns whether the bytes begin with a snapshot that can be read as a filter of `u64` with this hasher.
pub(super) fn is_filter(bytes: &[u8]) -> bool {
    header(bytes).is_some_and(|layout| is_ours(bytes) && shards(bytes, &layout).is_some())
}

fn holds(condition: bool) -> Option<()> {
    condition.then_some(())
}

fn header(bytes: &[u8]) -> Option<Layout> {
    holds(bytes.get(..8)? == b"\xc0cuckoo\n" && u32_at(bytes, 8)? == 2)?;
    let length = header_length(bytes)?;
    let bytes = &bytes[..length];
    holds(u32_at(bytes, length - CHECKSUM)? == checksum(bytes, 0))?;
    let [shards, first, here] = [16, 24, 32].map(|at| u64_at(bytes, at).unwrap_or_default());
    let [buckets, fingerprint, shift, kind] = [40, 44, 48, 52].map(|at| u32_at(bytes, at).unwrap_or_default());
    holds(here >= 1 && first.checked_add(here)? <= shards)?;
    holds(if shards == 1 { buckets >= 2 && buckets % 2 == 0 } else { buckets > 1 << 15 && buckets % 16 == 0 })?;
    holds(buckets <= 1 << 16 && kind < 32)?;
    let [tag, counter] = [161, 162].map(|at| u32::from(bytes[at]));
    holds((4..=32).contains(&fingerprint) && (4..=16).contains(&shift) && fingerprint + tag + counter <= 32)?;
    let words = (u128::from(buckets) * u128::from(SLOTS) * u128::from(fingerprint + tag + counter)).div_ceil(64);
    holds(u128::from(shards) * words * 8 <= isize::MAX as u128)?;
    let capacity = u64_at(bytes, 56)?;
    let (reserve, extension) = (u32::from(bytes[160]), u32::from(bytes[163]));
    holds(extension < 32)?;
    let slots = (u128::from(shards) * u128::from(buckets) * u128::from(SLOTS)) >> extension;
    holds(u128::from(capacity) <= slots)?;
    let rate = u64_at(bytes, 64)?;
    holds(rate == 0 || (f64::from_bits(rate) > 0.0 && f64::from_bits(rate) < 1.0))?;
    let flags = u32_at(bytes, 136)?;
    holds(flags == 1 || flags == 0 && bytes[104..136] == [0; 32])?;
    let [max_capacity, time_to_live, tick] = [168, 176, 184].map(|at| u64_at(bytes, at).unwrap_or_default());
    let [growing, expiring, counting, tagged, renewed] = [1, 2, 4, 8, 16].map(|flag| kind & flag != 0);
    holds(!(tagged && (counting || expiring)) && (!renewed || expiring && counting))?;
    let cell = reserve.checked_sub(extension)?;
    let reserve_is_right = (1..=15).contains(&cell) && fingerprint >= reserve + 5;
    let is_narrow = fingerprint <= 30 && fingerprint + tag + counter != 31;
    holds(if growing { reserve_is_right && is_narrow } else { reserve == 0 })?;
    let bases = buckets >> extension;
    holds(extension == 0 || shards == 1 && bases >= 2 && bases % 2 == 0 && bases << extension == buckets)?;
    let largest = slots << reserve;
    let grows_to = capacity <= max_capacity && u128::from(max_capacity) <= largest;
    holds(if growing { grows_to } else { max_capacity == 0 })?;
    holds(if expiring { (2..=16).contains(&tag) } else { tag == 0 })?;
    holds(if expiring { (1..=time_to_live).contains(&tick) } else { tick == 0 && time_to_live == 0 })?;
    holds(if counting || tagged { (1..=16).contains(&counter) } else { counter == 0 })?;
    holds(bytes[164..168] == [0; 4])?;
    let [name, metadata, key_type] = [140, 144, 148].map(|at| u32_at(bytes, at).unwrap_or_default() as usize);
    holds(name <= 64 && key_type <= 64 && metadata <= 1 << 16)?;
    let end = FIXED + name + key_type + metadata;
    holds((end + CHECKSUM).next_multiple_of(ALIGN) == length && bytes[end..length - CHECKSUM].iter().all(|&b| b == 0))?;
    holds(std::str::from_utf8(&bytes[FIXED..FIXED + name]).is_ok())?;
    holds(std::str::from_utf8(&bytes[FIXED + name..FIXED + name + key_type]).is_ok())?;
    Layout::of(bytes)
}

/// Returns whether a snapshot with this header can be read as a plain filter of `u64` with this hasher, fixed or growing.
fn is_ours(bytes: &[u8]) -> bool {
    let [kind, name, key_type] = [52, 140, 148].map(|at| u32_at(bytes, at).unwrap_or_default() as usize);
    let (name, key_type) = (&bytes[FIXED..FIXED + name], &bytes[FIXED + name..FIXED + name + key_type]);
    // The fourth number of the probe is for types that this reader does not have.
    let probe = if key_type.is_empty() { 72..104 } else { 72..96 };
    kind <= 1 && KEY_TYPES.contains(&key_type) && name == NAME && bytes[probe.clone()] == EMPTY[probe]
}

fn shards(bytes: &[u8], whole: &Layout) -> Option<()> {
    holds(whole.part == (0..u64_at(bytes, 16)?))?;
    let origin = checksum(&bytes[..whole.header], 0);
    let (mut at, mut checksums, mut total, mut records) = (whole.header, origin, 0_u64, 0);
    // A filter of fixed size has one cell per shard.
    let (cells, core) = (whole.cell(), whole.width - whole.reserve);
    let mut cell = 0;
    while cell < whole.part.end << cells {
        let head = bytes.get(at..at + HEAD)?;
        let sum = u32_at(head, HEAD - CHECKSUM)?;
        holds(sum == checksum(head, origin) && head[..8] == *b"\xc0record\n")?;
        let layout = whole.of_record(head)?;
        let words = bytes.get(at + HEAD..at + layout.record())?;
        holds(u32_at(head, WORDS_SUM)? == crc32c(words))?;
        let (prefix, depth) = (u64::from(u32_at(head, 16)?), u64::from(head[20]));
        holds(u64_at(head, 8)? == cell >> cells && depth <= whole.reserve && whole.width - layout.width <= depth)?;
        let beyond = depth.max(whole.extension);
        holds(prefix << (whole.reserve - beyond) == cell % (1 << cells))?;
        holds([head[21], head[22]] == [layout.width as u8; 2] && head[23..40] == [0; 17])?;
        let count = u64_at(head, 40)?;
        holds(u64_at(head, 48)? == layout.words as u64 / 8)?;
        let (words, zeros) = words.split_at(layout.words);
        holds(layout.taken(words).count() as u64 == count && !layout.has_more_bits(words))?;
        holds(zeros.iter().all(|&byte| byte == 0))?;
        // The stored bits of the prefix and of the extension, and a core that is not 0.
        let cell_bits = prefix << (whole.width - beyond);
        let is_own = |(slot, value): (u64, u64)| {
            let known = cell_bits | layout.extended(whole, value % (1 << core), slot / SLOTS);
            let mask = (1 << (whole.width - whole.extension)) - (1 << (whole.width - beyond));
            let extended = (1 << whole.width) - (1 << (whole.width - layout.extension));
            (value ^ known) & (mask | extended) & ((1 << layout.width) - 1) == 0
        };
        holds(layout.taken(words).all(|slot| is_own(slot) && slot.1 % (1 << core) != 0))?;
        checksums = crc32c_append(checksums, &sum.to_le_bytes());
        (total, records, at) = (total + count, records + 1, at + layout.record());
        cell += 1 << (whole.reserve - beyond);
    }
    let trailer = bytes.get(at..at + HEAD)?;
    holds(trailer[..8] == *b"\xc0/cuckoo" && u64_at(trailer, 8)? == records && u64_at(trailer, 16)? == total)?;
    holds(trailer[24..60] == [0; 36] && u32_at(trailer, 60)? == checksum(trailer, checksums))
}
