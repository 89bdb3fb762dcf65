//! No hash function, for keys that are hashes.

use super::SavedHasher;
use core::hash::{BuildHasher, Hasher};

/// Hashes a `u64` to itself: the hash function of [`Filter::hashed`](crate::Filter::hashed), and for filters whose keys are hashes
/// or identifiers.
///
/// The keys may be of any quality, since a filter mixes them. Keys of other types are hashed by a weak function without seeds: use this
/// for `u64` alone. Keys that collide can be computed by anyone who knows the origin of the numbers.
///
/// ```
/// use concurrent_cuckoo_filter::{CuckooFilter, Prehashed};
///
/// let blocked = CuckooFilter::<u64, _>::with_capacity_and_hasher(100, Prehashed);
/// blocked.insert(&17)?;
/// assert_eq!(blocked.hash(&17), 17);
/// assert!(blocked.contains(&17));
/// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prehashed;

/// The hasher of [`Prehashed`].
#[derive(Clone, Debug, Default)]
pub struct PrehashedHasher(u64);

impl BuildHasher for Prehashed {
    type Hasher = PrehashedHasher;

    #[inline(always)]
    fn build_hasher(&self) -> PrehashedHasher {
        PrehashedHasher(0)
    }
}

impl Hasher for PrehashedHasher {
    #[inline(always)]
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline(always)]
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            // 2^64 divided by the golden ratio; any odd number does.
            self.0 = (self.0.rotate_left(5) ^ u64::from(byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }
}

impl SavedHasher for Prehashed {
    const NAME: &'static str = "prehashed";

    /// Returns zeros: the function has no seeds, and a snapshot can be loaded without passing it.
    fn seeds(&self) -> Option<[u64; 4]> {
        Some([0; 4])
    }

    fn from_seeds(keys: [u64; 4]) -> Option<Self> {
        (keys == [0; 4]).then_some(Prehashed)
    }
}
