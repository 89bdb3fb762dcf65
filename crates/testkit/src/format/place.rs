//! The place of a key, computed from docs/format.md.

use super::{HEAD, Layout, SLOTS, records, u32_at, u64_at};
use siphasher::sip::SipHasher13;

/// The place of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The number of its shard.
    pub shard: u64,
    /// The stored fingerprint: the whole one in a plain filter, else its lower bits.
    pub fingerprint: u64,
    /// Its two buckets in the shard, with the numbers that they have in tables after the last refill.
    pub buckets: [u64; 2],
}

/// Returns the place of a hash in the filter with this header.
pub fn place(header: &[u8], hash: u64) -> Option<Place> {
    let layout = Layout::of(header)?;
    let (shards, buckets) = (u64_at(header, 16)?, layout.buckets);
    let mut mixed = hash;
    for _ in 0..2 {
        mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    }
    mixed ^= mixed >> 32;
    let draw = |number: u64, of: u64| ((u128::from(number) * u128::from(of)) >> 64) as u64;
    let drawn = if shards * buckets <= 1 << 26 { mixed >> 32 << 32 } else { mixed };
    let shard = draw(drawn, shards);
    let first = draw(drawn, shards * buckets) - shard * buckets;
    let core_bits = layout.width - layout.reserve;
    let drawn = mixed % (1 << 32) * ((1 << core_bits) - 1);
    let core = (drawn >> 32) + 1;
    let cell = (drawn % (1 << 32)) >> (32 - layout.cell());
    // All other buckets are extensions of these.
    let bases = buckets >> layout.extension;
    let product = core * 0x9e37_79b9 % (1 << 32);
    let power = (1..).map(|bits| 1 << bits).take_while(|&power| power <= bases).last()?;
    let sum = (product ^ (product >> 16)) & (power - 1) | 1;
    let base = first >> layout.extension;
    let alternate = if sum < base { sum + bases - base } else { sum - base };
    let extensions = [first % (1 << layout.extension), turned(core, layout.extension, first % (1 << layout.extension))];
    let extension = extensions[(base % 2) as usize];
    let fingerprint = (extension << layout.cell() | cell) << core_bits | core;
    let second = alternate << layout.extension | extensions[1];
    Some(Place { shard, fingerprint, buckets: [first, second] })
}

/// Returns the extension of one bucket of a core from that of the other.
pub(super) fn turned(core: u64, bits: u64, extension: u64) -> u64 {
    let apart = (core * 0x9e37_79b9 % (1 << 16)) >> (16 - bits);
    ((1 << bits) - 1 - extension) ^ apart
}

/// Returns whether the filter in these bytes, plain or growing, may hold the key with this hash.
pub fn may_hold(snapshot: &[u8], hash: u64) -> Option<bool> {
    let (whole, place) = (Layout::of(snapshot)?, place(snapshot, hash)?);
    let cell = place.fingerprint >> (whole.width - whole.reserve) & ((1 << whole.cell()) - 1);
    let (layout, record) = records(snapshot, &whole).find(|(_, record)| {
        let (prefix, depth) = (u32_at(record, 16).expect("a head"), u64::from(record[20]).max(whole.extension));
        u64_at(record, 8) == Some(place.shard) && cell >> (whole.reserve - depth) == u64::from(prefix)
    })?;
    let mut taken = layout.taken(record.get(HEAD..HEAD + layout.words)?);
    let stored = place.fingerprint % (1 << layout.width);
    let buckets = place.buckets.map(|bucket| bucket >> (whole.extension - layout.extension));
    Some(taken.any(|(slot, value)| buckets.contains(&(slot / SLOTS)) && value == stored))
}

/// Computes SipHash-1-3 of a string as a key.
pub fn hash_of_text([first, second]: [u64; 2], text: &str) -> u64 {
    SipHasher13::new_with_keys(first, second).hash(&[text.as_bytes(), &[0xff]].concat())
}
