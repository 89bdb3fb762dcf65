//! Sizes and keys.

use arrayvec::ArrayString;
use fastrand::Rng;
use std::hash::Hash;

/// A key of 24 bytes of text.
pub type Text = ArrayString<24>;

/// What contests use as keys.
pub trait Key: Hash + Eq + Copy + Send + Sync + 'static {
    /// Its name in the names of benchmarks.
    const NAME: &'static str;

    /// Draws a key that no other one equals, in all likelihood.
    fn random(random: &mut Rng) -> Self;
}

impl Key for u64 {
    const NAME: &'static str = "u64";

    fn random(random: &mut Rng) -> Self {
        random.u64(..)
    }
}

impl Key for Text {
    const NAME: &'static str = "text";

    fn random(random: &mut Rng) -> Self {
        let mut text = Text::new();
        while !text.is_full() {
            text.push(random.alphanumeric());
        }
        text
    }
}

/// Draws `count` keys, the same ones for the same seed.
pub fn keys<K: Key>(seed: u64, count: usize) -> Vec<K> {
    let mut random = Rng::with_seed(seed);
    (0..count).map(|_| K::random(&mut random)).collect()
}

/// The size of a contest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Slots of the table, about; a power of two, since some contestants can do nothing else.
    pub slots: usize,
    /// Keys that it must hold.
    pub keys: usize,
    /// Bits of a fingerprint; bits a slot for filters without fingerprints.
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
pub struct Field<K> {
    /// Those that fill a table to 95 %.
    pub present: Vec<K>,
    /// Some of `present`, in random order.
    pub hits: Vec<K>,
    /// As many that are not present.
    pub misses: Vec<K>,
    /// As many, each a hit or a miss by chance.
    pub half: Vec<K>,
}

impl<K: Key> Field<K> {
    /// Keys for a table of 2^`log2` slots, and this many to look up.
    pub fn new(log2: u32, probes: usize) -> Self {
        let present: Vec<K> = keys(u64::from(log2), Size::new(log2, 0).keys);
        let mut random = Rng::with_seed(1000);
        let hits: Vec<K> = (0..probes).map(|_| present[random.usize(..present.len())]).collect();
        let misses: Vec<K> = keys(1001, probes);
        let half = hits.iter().zip(&misses).map(|(hit, miss)| if random.bool() { *hit } else { *miss }).collect();
        Field { present, hits, misses, half }
    }
}
