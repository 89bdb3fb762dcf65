//! Filters that can be compared: those of one shape have equal seeds.

use concurrent_cuckoo_filter::{Builder, CuckooFilter, DefaultHashBuilder};

pub(super) type Filter = CuckooFilter<u64, DefaultHashBuilder>;

/// Keys that are asked for and not there, or that must not be mistaken for others, begin here.
pub(super) const ABSENT: u64 = 1 << 40;

pub(super) fn builder(capacity: usize, bits: u32) -> Builder<u64> {
    let hasher = DefaultHashBuilder::with_seeds(1, 2, 3, capacity as u64);
    CuckooFilter::builder().capacity(capacity).fingerprint_bits(bits).hasher(hasher)
}
