//! Sizes and keys.

use fastrand::Rng;

/// Draws `count` keys, the same ones for the same seed; no two are equal, in all likelihood.
pub fn keys(seed: u64, count: usize) -> Vec<u64> {
    let mut random = Rng::with_seed(seed);
    (0..count).map(|_| random.u64(..)).collect()
}

/// The size of a contest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Slots of the table, about; a power of two, since some contestants can do nothing else.
    pub slots: usize,
    /// Keys that it must hold.
    pub keys: usize,
    /// Bits per fingerprint; bits per slot for filters without fingerprints.
    pub bits: u32,
}

impl Size {
    /// A table of 2^`log2` slots, to be filled to 95 %.
    pub fn new(log2: u32, bits: u32) -> Self {
        let slots = 1 << log2;
        Size { slots, keys: slots * 95 / 100, bits }
    }
}

/// The keys of a contest.
pub struct Field {
    /// Those that fill a table to 95 %.
    pub present: Vec<u64>,
    /// Some of `present`, in random order.
    pub hits: Vec<u64>,
    /// As many that are not present.
    pub misses: Vec<u64>,
    /// As many, each a hit or a miss by chance.
    pub half: Vec<u64>,
}

impl Field {
    /// Keys for a table of 2^`log2` slots, and this many to look up.
    pub fn new(log2: u32, probes: usize) -> Self {
        let present = keys(u64::from(log2), Size::new(log2, 0).keys);
        let mut random = Rng::with_seed(1000);
        let hits: Vec<u64> = (0..probes).map(|_| present[random.usize(..present.len())]).collect();
        let misses = keys(1001, probes);
        let half = hits.iter().zip(&misses).map(|(hit, miss)| if random.bool() { *hit } else { *miss }).collect();
        Field { present, hits, misses, half }
    }
}
