//! The hash functions of saved filters.

use super::hash_of;
use core::hash::BuildHasher;

/// A hash function for saved filters.
///
/// Querying with a different hash function returns `false` for stored keys. A snapshot therefore stores the name of the
/// function and a probe, the hashes of some values, and loads only with a function of the same name and output.
///
/// The probe covers 44 values: numbers, and strings and bytes of 12 lengths up to 300. It detects a function whose
/// output changes for any of them. It misses a change that affects other values only, such as longer keys or slices of
/// your own types, and the filter then returns `false` for stored keys. Therefore change [`NAME`](SavedHasher::NAME)
/// whenever the output changes for any key. A function of another crate may change with every version that Cargo
/// resolves: use a function with specified output.
///
/// ```
/// use concurrent_cuckoo_filter::{CuckooFilter, SavedHasher};
/// use std::hash::{BuildHasher, DefaultHasher};
///
/// /// The hash function of std without random seeds.
/// #[derive(Default)]
/// struct Fixed;
///
/// impl BuildHasher for Fixed {
///     type Hasher = DefaultHasher;
///     fn build_hasher(&self) -> DefaultHasher {
///         DefaultHasher::new()
///     }
/// }
///
/// impl SavedHasher for Fixed {
///     const NAME: &'static str = "std, fixed";
/// }
///
/// let filter = CuckooFilter::<String, _>::with_capacity_and_hasher(100, Fixed);
/// filter.insert("key")?;
/// let mut bytes = Vec::new();
/// filter.write_to(&mut bytes)?;
/// assert!(CuckooFilter::<String, _>::read_from(&bytes[..], Fixed)?.contains("key"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait SavedHasher: BuildHasher + Sized {
    /// The name in the snapshot, at most 64 bytes. Functions with the same name may differ only in their seeds. A new
    /// version with another output needs another name, such as "mine-2" after "mine-1".
    const NAME: &'static str;

    /// Returns the seeds to store in the snapshot, which then loads without passing the hash function. `None`, the
    /// default, stores none, and the hash function must be passed to load the filter. Return `None` also for seeds of
    /// more than 256 bits.
    fn seeds(&self) -> Option<[u64; 4]> {
        None
    }

    /// Creates the function with these seeds. Implement it together with [`seeds`](SavedHasher::seeds); the default,
    /// `None`, goes with a `seeds` that returns `None`.
    fn from_seeds(_keys: [u64; 4]) -> Option<Self> {
        None
    }
}

/// Hashes values of many types and lengths, in four groups: strings; bytes; single numbers; and slices of wider
/// integers, which are fed to a hasher in the byte order of the platform. The result changes with the output of the
/// function, and with a changed `Hash` of these types.
pub(crate) fn probe(hasher: &impl BuildHasher) -> [u64; 4] {
    // Hash functions have different code paths for short and long keys.
    const LENGTHS: [usize; 12] = [0, 1, 3, 4, 8, 12, 16, 24, 32, 48, 100, 300];
    let text: String = ('a'..='z').cycle().take(300).collect();
    let texts = LENGTHS.map(|length| hash_of(hasher, &text[..length]));
    let bytes = LENGTHS.map(|length| hash_of(hasher, &text.as_bytes()[..length]));
    let numbers = [
        hash_of(hasher, &0x01_u8),
        hash_of(hasher, &0x0123_u16),
        hash_of(hasher, &0x0123_4567_u32),
        hash_of(hasher, &0x0123_4567_89ab_cdef_u64),
        hash_of(hasher, &0x0123_4567_89ab_cdef_0011_2233_4455_6677_u128),
        hash_of(hasher, &0x0123_4567_usize),
        hash_of(hasher, &-2_i8),
        hash_of(hasher, &-2_i16),
        hash_of(hasher, &-2_i32),
        hash_of(hasher, &-2_i64),
        hash_of(hasher, &-2_i128),
        hash_of(hasher, &-2_isize),
        hash_of(hasher, &true),
        hash_of(hasher, &'\u{df}'),
        hash_of(hasher, &(1_u8, 2_u32, "three")),
        hash_of(hasher, &Some(5_u64)),
    ];
    let as_in_memory = [
        hash_of(hasher, &[0x0123_u16; 3]),
        hash_of(hasher, &[0x0123_4567_u32; 3]),
        hash_of(hasher, &[0x0123_4567_89ab_cdef_u64; 3]),
        hash_of(hasher, &[0x0123_4567_usize; 3]),
    ];
    [fold(&texts), fold(&bytes), fold(&numbers), fold(&as_in_memory)]
}

/// Combines several numbers into one that depends on their order.
fn fold(hashes: &[u64]) -> u64 {
    // 2^64 divided by the golden ratio; any odd number does.
    hashes.iter().fold(0, |sum: u64, hash| (sum.rotate_left(5) ^ hash).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
