//! The default hash function behind a type of this crate, and a stable one for saved filters.

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

/// `Debug` without seeds, and without a state that contains them.
macro_rules! debug_without_seeds {
    ($($type:ident $(<$part:ident>)?),+) => {
        $(impl$(<$part>)? fmt::Debug for $type$(<$part>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($type)).finish_non_exhaustive()
            }
        })+
    };
}
debug_without_seeds!(DefaultHashBuilder, DefaultHasher, WellMixed<S>, WellMixedHasher<H>);
#[cfg(feature = "snapshot")]
debug_without_seeds!(StableHashBuilder, StableHasher);

/// The default hash function of filters: ahash with 256 bits of seeds.
///
/// [`DefaultHashBuilder::default`] chooses random seeds, so each filter hashes differently: keys that collide in one filter
/// do not collide in another, and collisions cannot be computed without the seeds. Seeds do not protect against a party
/// that can insert keys and query others: it finds false positives and collisions by trial. In that case limit the
/// insertions and queries per party, confirm each "yes" in an exact store, and rebuild with new seeds if
/// [`TooManyCopies`](crate::InsertError::TooManyCopies) becomes frequent. ahash is fast, but not a cryptographic
/// function: [`StableHashBuilder`] is designed to keep its seeds secret from readers of hashes.
///
/// Equal seeds give equal hashes within one build of a program. ahash does not guarantee equal output across platforms
/// or across its versions, and Cargo may resolve any 0.8. The [name](SavedHasher::NAME) in a snapshot identifies only
/// the compiled code path: with AES instructions, if the target has them enabled, or without. A probe of the output
/// decides whether a snapshot loads, so a program may fail to load its own files after an update of ahash. Use
/// [`StableHashBuilder`] for saved filters.
///
/// Its hashes are [`WellMixed`], so filters do not mix them again.
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
    /// The seeds of `state`, which ahash does not return.
    seeds: [u64; 4],
}

impl DefaultHashBuilder {
    /// Creates a hash function with these seeds, for reproducible results. Collisions can be computed from known or
    /// guessed seeds.
    #[must_use]
    pub fn with_seeds(a: u64, b: u64, c: u64, d: u64) -> Self {
        DefaultHashBuilder { state: ahash::RandomState::with_seeds(a, b, c, d), seeds: [a, b, c, d] }
    }
}

impl Default for DefaultHashBuilder {
    /// Creates a hash function with new random seeds.
    fn default() -> Self {
        let random = ahash::RandomState::new();
        let [a, b, c, d] = [0_u64, 1, 2, 3].map(|number| random.hash_one(number));
        DefaultHashBuilder::with_seeds(a, b, c, d)
    }
}

impl BuildHasher for DefaultHashBuilder {
    type Hasher = DefaultHasher;

    #[inline]
    fn build_hasher(&self) -> DefaultHasher {
        DefaultHasher(WellMixedHasher(self.state.build_hasher()))
    }
}

/// Hashes a key like the default [`BuildHasher::hash_one`]. `hash_one` is not always inlined; inlined, the mix of a
/// filter cancels out with the end of [`WellMixed`].
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

/// Whether ahash multiplies to 128 bits without AES, by the list of its build script, whose "riscv64gc" never matches
/// an architecture.
const LONG_PRODUCTS: bool = cfg!(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "mips64",
    target_arch = "powerpc64",
    target_arch = "s390x",
));

impl SavedHasher for DefaultHashBuilder {
    /// The code path of ahash. The probe detects a different version.
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

    fn seeds(&self) -> Option<[u64; 4]> {
        Some(self.seeds)
    }

    fn from_seeds([a, b, c, d]: [u64; 4]) -> Option<Self> {
        Some(DefaultHashBuilder::with_seeds(a, b, c, d))
    }
}

/// The hasher of [`DefaultHashBuilder`].
#[derive(Clone)]
pub struct DefaultHasher(WellMixedHasher<ahash::AHasher>);

/// Forwards each method to ahash, which specializes them.
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
