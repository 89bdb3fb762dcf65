//! What the memory can do.

use crate::clock::timed;
use std::hint::black_box;

/// A table of words to load from, as large as a filter's. The *two-line limit* is one thread that loads two random
/// words a key from it, and does nothing else.
pub struct Lines(Vec<u64>);

impl Lines {
    /// As many bytes as 2^`log2` slots of 16 bits.
    pub fn new(log2: u32) -> Self {
        Lines((0..1u64 << (log2 - 2)).collect())
    }

    /// Nanoseconds for each key.
    pub fn pass(&self, keys: &[u64]) -> f64 {
        let mask = self.0.len() - 1;
        let (nanos, sum) = timed(keys.len(), || {
            keys.iter().fold(0u64, |sum, key| {
                let first = (key >> 32) as usize & mask;
                let second = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
                sum.wrapping_add(self.0[first] ^ self.0[second])
            })
        });
        black_box(sum);
        nanos
    }
}
