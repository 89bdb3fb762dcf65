//! Memory that another process writes and this one only reads.

use super::memory::Buffer;
use super::prefetch::{CacheLevel, prefetch};
use super::sync::{AtomicU64, ReadWord};
use super::unaligned;

/// Words that are only read: this process may be unable to write their pages.
#[repr(transparent)]
pub(crate) struct ReadOnly(Buffer<AtomicU64>);

impl ReadOnly {
    #[cfg(all(feature = "shared", target_os = "linux"))]
    pub(super) fn new(words: Buffer<AtomicU64>) -> Self {
        ReadOnly(words)
    }

    #[cfg(all(test, cuckoo_loom))]
    #[allow(unsafe_code)]
    pub(crate) fn over(words: &Buffer<AtomicU64>) -> &Self {
        // SAFETY: `ReadOnly` has the layout of its field, and its methods are a subset.
        unsafe { &*core::ptr::from_ref(words).cast() }
    }

    #[inline(always)]
    pub(crate) fn at(&self, number: usize) -> ReadWord<'_> {
        ReadWord::of(self.0.at(number))
    }

    /// Reads the eight bytes from this one on, where [`unaligned::AVAILABLE`].
    #[inline(always)]
    pub(crate) fn eight(&self, byte: usize) -> u64 {
        unaligned::load(&self.0, byte)
    }

    #[inline(always)]
    pub(crate) fn fetch(&self, number: usize, level: CacheLevel) {
        prefetch(self.0.at(number), level);
    }
}
