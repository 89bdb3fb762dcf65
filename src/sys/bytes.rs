//! Bytes that are read where they lie.

use super::prefetch::{CacheLevel, prefetch};

/// Bytes that somebody else owns.
pub(crate) trait Bytes {
    /// How many there are.
    fn len(&self) -> usize;

    /// Eight of them as a little-endian number.
    ///
    /// # Panics
    /// If they are not there.
    fn number_at(&self, at: usize) -> u64;

    /// Copies some.
    ///
    /// # Panics
    /// If they are not there.
    fn copy_from(&self, at: usize, to: &mut [u8]);

    /// Begins to fetch the line of a byte.
    fn fetch(&self, at: usize, level: CacheLevel);
}

impl Bytes for &[u8] {
    fn len(&self) -> usize {
        (**self).len()
    }

    #[inline(always)]
    fn number_at(&self, at: usize) -> u64 {
        u64::from_le_bytes(self[at..][..8].try_into().expect("8 bytes"))
    }

    fn copy_from(&self, at: usize, to: &mut [u8]) {
        to.copy_from_slice(&self[at..][..to.len()]);
    }

    #[inline(always)]
    fn fetch(&self, at: usize, level: CacheLevel) {
        if let Some(byte) = self.get(at) {
            prefetch(byte, level);
        }
    }
}
