//! Which bytes are a snapshot: the description of the format (DESIGN.md, "Format 1"), read literally and once more.

use super::EMPTY;
use crc32c::crc32c_append;
use testkit::format::{CHECKSUM, Layout, MIN_HEADER, SHARD_PREFIX, SLOTS, TRAILER, checksum, header_length};
use testkit::format::{u32_at, u64_at};

const NAME: &[u8] = b"siphash-1-3";

/// The key types that a filter of `u64` may be read from: others, and its own.
const KEY_TYPES: [u32; 2] = [0, 6];
const MAX_KEY_TYPE: u32 = 16;

/// Whether the header of a snapshot stands here, whoever reads it.
pub(super) fn is_header(bytes: &[u8]) -> bool {
    header(bytes).is_some()
}

/// Whether these bytes begin with a snapshot that is to be read as a filter of `u64` with this hasher.
pub(super) fn is_filter(bytes: &[u8]) -> bool {
    header(bytes).is_some_and(|layout| is_ours(bytes) && shards(bytes, &layout).is_some())
}

fn holds(condition: bool) -> Option<()> {
    condition.then_some(())
}

fn header(bytes: &[u8]) -> Option<Layout> {
    holds(bytes.get(..8)? == b"\xc0cuckoo\n" && u32_at(bytes, 8)? == 1)?;
    let length = header_length(bytes)?;
    let bytes = &bytes[..length];
    holds(u32_at(bytes, length - CHECKSUM)? == checksum(bytes, 0))?;
    let [shards, first, here] = [16, 24, 32].map(|at| u64_at(bytes, at).unwrap_or_default());
    let [buckets, width, shift, key_type] = [40, 44, 48, 52].map(|at| u32_at(bytes, at).unwrap_or_default());
    holds(here >= 1 && first.checked_add(here)? <= shards)?;
    holds(if shards == 1 { buckets >= 2 && buckets % 2 == 0 } else { buckets > 1 << 15 && buckets % 16 == 0 })?;
    holds(buckets <= 1 << 16)?;
    holds((4..=32).contains(&width) && (4..=16).contains(&shift) && key_type <= MAX_KEY_TYPE)?;
    let words = (u128::from(buckets) * u128::from(SLOTS) * u128::from(width)).div_ceil(64);
    holds(u128::from(shards) * words * 8 <= isize::MAX as u128)?;
    holds(u128::from(u64_at(bytes, 56)?) <= u128::from(shards) * u128::from(buckets) * u128::from(SLOTS))?;
    let rate = u64_at(bytes, 64)?;
    holds(rate == 0 || (f64::from_bits(rate) > 0.0 && f64::from_bits(rate) < 1.0))?;
    let flags = u32_at(bytes, 136)?;
    holds(flags == 1 || flags == 0 && bytes[104..136] == [0; 32])?;
    let (name, metadata) = (u32_at(bytes, 140)? as usize, u32_at(bytes, 144)? as usize);
    holds(name <= 64 && metadata <= 1 << 16 && MIN_HEADER + name + metadata == length)?;
    holds(u32_at(bytes, 148)? == 0 && std::str::from_utf8(&bytes[152..152 + name]).is_ok())?;
    Layout::of(bytes)
}

/// Whether a filter of `u64` with this hasher may be read from a snapshot with this header.
fn is_ours(bytes: &[u8]) -> bool {
    // The fourth number of the probe is of what other types feed to a hasher.
    let (key_type, name) = (u32_at(bytes, 52).unwrap_or_default(), u32_at(bytes, 140).unwrap_or_default() as usize);
    let probe = if key_type == 0 { 72..104 } else { 72..96 };
    KEY_TYPES.contains(&key_type) && bytes[152..152 + name] == *NAME && bytes[probe.clone()] == EMPTY[probe]
}

fn shards(bytes: &[u8], layout: &Layout) -> Option<()> {
    holds(layout.part == (0..u64_at(bytes, 16)?))?;
    let origin = checksum(&bytes[..layout.header], 0);
    let (mut at, mut checksums, mut total) = (layout.header, origin, 0_u64);
    for number in layout.part.clone() {
        let shard = bytes.get(at..at + layout.shard())?;
        let (words, count) = (&shard[SHARD_PREFIX..SHARD_PREFIX + layout.words], u64_at(shard, 8)?);
        let sum = u32_at(shard, SHARD_PREFIX + layout.words)?;
        holds(sum == checksum(shard, origin))?;
        holds(u64_at(shard, 0)? == number && u64_at(shard, 16)? == layout.words as u64 / 8)?;
        holds(layout.taken(words).count() as u64 == count && !layout.has_more_bits(words))?;
        checksums = crc32c_append(checksums, &sum.to_le_bytes());
        total += count;
        at += layout.shard();
    }
    let trailer = bytes.get(at..at + TRAILER)?;
    holds(trailer[..8] == *b"\xc0/cuckoo" && u64_at(trailer, 8)? == layout.part.end && u64_at(trailer, 16)? == total)?;
    holds(u32_at(trailer, 24)? == checksum(trailer, checksums))
}
