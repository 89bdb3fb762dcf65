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

    /// The same of bytes that are there, as the caller has made sure when it took these bytes for a filter. So release builds
    /// do not ask again; debug builds, the fuzzer's and AddressSanitizer's do.
    fn number_within(&self, at: usize) -> u64;

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

    #[inline(always)]
    #[allow(unsafe_code)]
    fn number_within(&self, at: usize) -> u64 {
        debug_assert!(self.get(at..).is_some_and(|bytes| bytes.len() >= 8), "8 bytes at {at} of {}", self.len());
        // SAFETY: the bytes are there, by what is said above; any place and any value will do.
        u64::from_le(unsafe { self.as_ptr().add(at).cast::<u64>().read_unaligned() })
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
