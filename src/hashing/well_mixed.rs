//! A marker for hash functions that need no further mixing.

use crate::layout::Mixed;
use core::hash::{BuildHasher, Hasher};

/// Marks a hash function whose hashes are evenly distributed over all 64 bits. Filters then do not mix them again,
/// which saves some eleven instructions per lookup.
///
/// A filter mixes every hash by a permutation of 64 bits, so hash functions of poor quality do no harm. The hashes of a
/// `WellMixed<S>` are those of `S` under the inverse permutation, and the two cancel out when they are compiled
/// together. The hashes differ from those of `S`; equal hashes stay equal, and different hashes stay different. SipHash
/// (std's [`RandomState`](std::hash::RandomState)), ahash, foldhash, xxh3 and similar functions are well mixed. FxHash,
/// FNV and identity hashes are not: if they are marked, a filter exceeds the requested false-positive rate and refuses
/// keys early.
///
/// ```
/// use concurrent_cuckoo_filter::{CuckooFilter, WellMixed};
/// use std::hash::RandomState;
///
/// let filter = CuckooFilter::<String, _>::with_capacity_and_hasher(100, WellMixed(RandomState::new()));
/// filter.insert("key")?;
/// assert!(filter.contains("key"));
/// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
/// ```
#[derive(Clone, Copy, Default)]
pub struct WellMixed<S>(pub S);

impl<S: BuildHasher> BuildHasher for WellMixed<S> {
    type Hasher = WellMixedHasher<S::Hasher>;

    #[inline]
    fn build_hasher(&self) -> Self::Hasher {
        WellMixedHasher(self.0.build_hasher())
    }
}

/// The hasher of [`WellMixed`].
///
/// ```
/// use concurrent_cuckoo_filter::WellMixed;
/// use std::hash::{BuildHasher, RandomState};
///
/// let (state, number) = (RandomState::new(), 7_u64);
/// assert_ne!(WellMixed(state.clone()).hash_one(number), state.hash_one(number));
/// ```
#[derive(Clone)]
pub struct WellMixedHasher<H>(pub(super) H);

macro_rules! forward {
    ($($method:ident: $type:ty),* $(,)?) => {
        $(
            #[inline]
            fn $method(&mut self, value: $type) {
                self.0.$method(value);
            }
        )*
    };
}
pub(super) use forward;

impl<H: Hasher> Hasher for WellMixedHasher<H> {
    #[inline]
    fn finish(&self) -> u64 {
        Mixed::unmix(self.0.finish())
    }

    forward! {
        write: &[u8], write_u8: u8, write_u16: u16, write_u32: u32, write_u64: u64, write_u128: u128,
        write_usize: usize, write_i8: i8, write_i16: i16, write_i32: i32, write_i64: i64, write_i128: i128,
        write_isize: isize,
    }
}
