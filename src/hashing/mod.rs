//! The default hash function, behind a name of our own; and a stable one for filters that are saved.

mod prehashed;
mod saved;
#[cfg(feature = "snapshot")]
mod stable;
mod well_mixed;

pub use prehashed::{Prehashed, PrehashedHasher};
pub use saved::SavedHasher;
pub(crate) use saved::probe;
#[cfg(feature = "snapshot")]
pub use stable::{StableHashBuilder, StableHasher};
use well_mixed::forward;
pub use well_mixed::{WellMixed, WellMixedHasher};

use core::fmt;
use core::hash::{BuildHasher, Hash, Hasher};

/// Builds the hashers of a filter that was given no other: ahash with 256 bits of seed.
///
/// [`DefaultHashBuilder::new`] takes random seeds, so each filter hashes differently: keys that collide in one filter do
/// not in another, and without the seeds they cannot be computed in advance. Seeds hide nothing from a party that can
/// insert keys and ask about others: it finds false positives, and keys that collide, by asking. Where that matters, limit
/// what one party may insert and ask, confirm a "yes" in an exact store, and rebuild with new seeds if refusals as
/// [`TooManyCopies`](crate::InsertError::TooManyCopies) become frequent. ahash is fast, and not a cryptographic function:
/// [`StableHashBuilder`] is made to keep its key secret from those who see hashes.
///
/// Equal seeds give equal hashes within one build of a program; ahash promises nothing between platforms or between its
/// own versions, and Cargo may resolve any 0.8. The [name](SavedHasher::NAME) in a snapshot only says which code path was
/// compiled: with AES instructions, where the target has them enabled, or without. Whether a snapshot can be loaded is
/// decided by its probe of the function's output, so a program may be unable to load its own files after an update of
/// ahash. Use [`StableHashBuilder`] for filters that are saved.
///
/// Its hashes are [`WellMixed`]: a filter spends no time on mixing them again.
///
/// ```
/// use concurrent_cuckoo_filter::{CuckooFilter, DefaultHashBuilder};
///
/// let seeded = || CuckooFilter::<String, _>::with_capacity_and_hasher(100, DefaultHashBuilder::with_seeds(1, 2, 3, 4));
/// assert_eq!(seeded().hash("key"), seeded().hash("key"));
///
/// let random = || CuckooFilter::<String>::with_capacity(100);
/// assert_ne!(random().hash("key"), random().hash("key"));
/// ```
#[derive(Clone)]
pub struct DefaultHashBuilder {
    state: ahash::RandomState,
    /// Of which ahash has made its state, and which it does not tell.
    seeds: [u64; 4],
}

impl DefaultHashBuilder {
    /// Takes random seeds, different ones at each call.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::DefaultHashBuilder;
    /// use std::hash::BuildHasher;
    ///
    /// assert_ne!(DefaultHashBuilder::new().hash_one("key"), DefaultHashBuilder::new().hash_one("key"));
    /// ```
    #[must_use]
    pub fn new() -> Self {
        let random = ahash::RandomState::new();
        let [a, b, c, d] = [0_u64, 1, 2, 3].map(|number| random.hash_one(number));
        DefaultHashBuilder::with_seeds(a, b, c, d)
    }

    /// Takes these seeds, for results that can be repeated. Whoever knows or guesses them can compute keys that collide.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::DefaultHashBuilder;
    /// use std::hash::BuildHasher;
    ///
    /// let hash = |d| DefaultHashBuilder::with_seeds(1, 2, 3, d).hash_one("key");
    /// assert_eq!(hash(4), hash(4));
    /// assert_ne!(hash(4), hash(5));
    /// ```
    #[must_use]
    pub fn with_seeds(a: u64, b: u64, c: u64, d: u64) -> Self {
        DefaultHashBuilder { state: ahash::RandomState::with_seeds(a, b, c, d), seeds: [a, b, c, d] }
    }
}

impl Default for DefaultHashBuilder {
    /// As [`DefaultHashBuilder::new`].
    fn default() -> Self {
        DefaultHashBuilder::new()
    }
}

impl fmt::Debug for DefaultHashBuilder {
    /// Does not show the seeds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DefaultHashBuilder").finish_non_exhaustive()
    }
}

impl BuildHasher for DefaultHashBuilder {
    type Hasher = DefaultHasher;

    #[inline]
    fn build_hasher(&self) -> DefaultHasher {
        DefaultHasher(WellMixedHasher::new(self.state.build_hasher()))
    }
}

/// The hash of a key: [`BuildHasher::hash_one`] as it is unless overridden. That one is not always compiled in place, and
/// where it is, the mix of a filter cancels out with the end of [`WellMixed`].
#[inline(always)]
#[expect(
    clippy::manual_hash_one,
    reason = "an overridden method may hash otherwise, in ahash from one compiler to the next"
)]
pub(crate) fn hash_of<K: ?Sized + Hash>(builder: &impl BuildHasher, key: &K) -> u64 {
    let mut state = builder.build_hasher();
    key.hash(&mut state);
    state.finish()
}

/// The hash of a `str` with these bytes, if they are one: what `str` feeds to a hasher is its bytes and one that no text has.
#[inline(always)]
pub(crate) fn hash_of_str_bytes(builder: &impl BuildHasher, text: &[u8]) -> u64 {
    let mut state = builder.build_hasher();
    state.write(text);
    state.write_u8(0xff);
    state.finish()
}

/// Whether ahash multiplies to 128 bits without AES: the list of its build script, in which "riscv64gc" is never the name of
/// an architecture.
const LONG_PRODUCTS: bool = cfg!(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "mips64",
    target_arch = "powerpc64",
    target_arch = "s390x",
));

impl SavedHasher for DefaultHashBuilder {
    /// The code path of ahash. Its version is left to the probe.
    const NAME: &'static str = {
        let aes = cfg!(all(any(target_arch = "x86", target_arch = "x86_64"), target_feature = "aes", not(miri)));
        match (aes, cfg!(target_feature = "ssse3"), LONG_PRODUCTS, cfg!(target_endian = "big")) {
            (true, true, ..) => "ahash-aes",
            (true, false, ..) => "ahash-aes-sse2",
            (false, _, true, false) => "ahash-fallback",
            (false, _, true, true) => "ahash-fallback-be",
            (false, _, false, false) => "ahash-fallback-short",
            (false, _, false, true) => "ahash-fallback-short-be",
        }
    };

    fn keys(&self) -> Option<[u64; 4]> {
        Some(self.seeds)
    }

    fn from_keys([a, b, c, d]: [u64; 4]) -> Option<Self> {
        Some(DefaultHashBuilder::with_seeds(a, b, c, d))
    }
}

/// The hasher of [`DefaultHashBuilder`].
#[derive(Clone)]
pub struct DefaultHasher(WellMixedHasher<ahash::AHasher>);

impl fmt::Debug for DefaultHasher {
    /// Does not show the state.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DefaultHasher").finish_non_exhaustive()
    }
}

/// Hands the call on to ahash, which has a fast way for each of these.
impl Hasher for DefaultHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0.finish()
    }

    forward! {
        write: &[u8], write_u8: u8, write_u16: u16, write_u32: u32, write_u64: u64, write_u128: u128,
        write_usize: usize,
    }
}
