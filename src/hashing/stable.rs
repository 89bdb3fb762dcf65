//! A keyed hash function with the same output on every platform, for saved filters.

use super::SavedHasher;
use core::hash::{BuildHasher, Hasher};
use siphasher::sip::SipHasher13;
use std::hash::RandomState;

/// The hash function for filters that are saved and loaded elsewhere: SipHash-1-3 with 128 bits of seeds.
///
/// Equal seeds give equal hashes in every process, on every platform and with every version of this crate, for `bool`,
/// `char`, integers, `str`, `String`, and slices, arrays and `Vec`s of `u8`: a number is hashed as its little-endian
/// bytes, `usize` and `isize` as 64 bits. For other types this holds as far as their `Hash` feeds the same values in
/// the same order everywhere. A derived `Hash` does, as long as the fields are unchanged. Slices, arrays and `Vec`s of
/// wider integers are fed to a hasher in their memory representation, and IP addresses as numbers with their bytes in
/// memory, so their hashes agree only on platforms of the same byte order and, for `usize`, the same width. If std ever
/// changes how `str` or slices are fed to a hasher, loading a saved filter fails, unless no hash of the values that are
/// probed on loading changes with it.
///
/// SipHash is a keyed function whose hashes do not reveal its seeds, so collisions cannot be computed without the
/// seeds. As with any function, they can be found by trial ([limits of seeds](crate::DefaultHashBuilder)). The output
/// is fixed by its definition ([Aumasson and Bernstein, 2012](https://www.aumasson.jp/siphash/siphash.pdf)). It is
/// slower than the default: 4 ns for a number and 10 ns for a string of 24 bytes, where the default takes 1 and 3.
///
/// ```
/// use concurrent_cuckoo_filter::{CuckooFilter, StableHashBuilder};
/// use std::hash::BuildHasher;
///
/// let hasher = StableHashBuilder::with_seeds(1, 2);
/// assert_eq!(hasher.hash_one("key"), 0x96fe_19be_2a74_4f9f);
///
/// let filter = CuckooFilter::<String, _>::with_capacity_and_hasher(100, hasher);
/// assert_eq!(filter.hash("key"), 0x96fe_19be_2a74_4f9f);
/// ```
#[derive(Clone)]
pub struct StableHashBuilder([u64; 2]);

impl StableHashBuilder {
    /// Creates a hash function with these seeds. Collisions can be computed from known or guessed seeds.
    #[must_use]
    pub fn with_seeds(first: u64, second: u64) -> Self {
        StableHashBuilder([first, second])
    }
}

impl Default for StableHashBuilder {
    /// Creates a hash function with new random seeds.
    fn default() -> Self {
        let random = RandomState::new();
        StableHashBuilder([random.hash_one(0_u8), random.hash_one(1_u8)])
    }
}

impl BuildHasher for StableHashBuilder {
    type Hasher = StableHasher;

    #[inline]
    fn build_hasher(&self) -> StableHasher {
        StableHasher(SipHasher13::new_with_keys(self.0[0], self.0[1]))
    }
}

impl SavedHasher for StableHashBuilder {
    const NAME: &'static str = "siphash-1-3";

    fn seeds(&self) -> Option<[u64; 4]> {
        Some([self.0[0], self.0[1], 0, 0])
    }

    fn from_seeds([first, second, rest @ ..]: [u64; 4]) -> Option<Self> {
        (rest == [0, 0]).then_some(StableHashBuilder([first, second]))
    }
}

/// The hasher of [`StableHashBuilder`].
#[derive(Clone)]
pub struct StableHasher(SipHasher13);

/// Hashes numbers as little-endian bytes.
macro_rules! little_endian {
    ($($method:ident: $type:ty),* $(,)?) => {
        $(
            #[inline]
            fn $method(&mut self, value: $type) {
                self.0.write(&value.to_le_bytes());
            }
        )*
    };
}

impl Hasher for StableHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0.finish()
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    #[inline]
    fn write_isize(&mut self, value: isize) {
        self.write_i64(value as i64);
    }

    little_endian! {
        write_u8: u8, write_u16: u16, write_u32: u32, write_u64: u64, write_u128: u128,
        write_i8: i8, write_i16: i16, write_i32: i32, write_i64: i64, write_i128: i128,
    }
}

#[cfg(all(test, not(cuckoo_model)))]
#[path = "../../tests/internal/stable_hash.rs"]
mod tests;
