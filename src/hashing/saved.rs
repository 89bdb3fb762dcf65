//! What a saved filter has to know of its hash function.

use super::hash_of;
use core::hash::BuildHasher;

/// A hash function that a saved filter can name.
///
/// A filter that is asked with another function than it was filled with answers "no" to all that it holds. So a
/// snapshot keeps the name and, with some values hashed, a probe of the function, and is only loaded with one of the
/// same name and output.
///
/// The probe is 44 values: numbers, and texts and bytes of 12 lengths up to 300. A function whose output changes for
/// one of them is found out. One that changes for others only, such as longer keys or slices of your own types, is not,
/// and the filter then answers "no" to what it holds. So the name has to tell: whenever the output changes for any key,
/// [`NAME`](SavedHasher::NAME) changes, too. A function of another crate may change with every version that Cargo
/// resolves: use one whose output is defined.
///
/// ```
/// use concurrent_cuckoo_filter::{CuckooFilter, SavedHasher};
/// use std::hash::{BuildHasher, DefaultHasher};
///
/// /// The function of std without random keys.
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
    /// The name in the snapshot, of 64 bytes at the most. Functions of one name may differ in their keys only: one with
    /// another output takes another name, such as "mine-2" after "mine-1", be it a new version of the same one.
    ///
    /// **Do not take the name of a hasher of this crate**, not even for a type that wraps it and has its output. Filters mix
    /// the hashes of your types and not those of [`DefaultHashBuilder`](crate::DefaultHashBuilder) and
    /// [`StableHashBuilder`](crate::StableHashBuilder), so their keys lie elsewhere. The name is all that tells: under the
    /// same one the snapshot loads, and the filter answers "no" to what it holds.
    const NAME: &'static str;

    /// The keys or seeds that the snapshot may keep, so that it can be loaded without being given a hash function.
    /// `None`, the default, if there are none to keep: then the hasher has to be given when the filter is loaded.
    /// Larger keys cannot be kept: return `None` too.
    fn keys(&self) -> Option<[u64; 4]> {
        None
    }

    /// The function with such keys. `None`, the default, if [`keys`](SavedHasher::keys) never tells any: the two come
    /// as a pair.
    fn from_keys(_keys: [u64; 4]) -> Option<Self> {
        None
    }
}

/// Values of many types and lengths hashed, in four groups: texts; bytes; single numbers; and what is fed to a hasher
/// as it lies in memory, differently on platforms of another byte order. A function with other output, or a `Hash`
/// that says other things than it did, shows in them.
pub(crate) fn probe(hasher: &impl BuildHasher) -> [u64; 4] {
    // Hash functions treat short and long keys differently, and each in several ways.
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

/// One number of several, their order included.
fn fold(hashes: &[u64]) -> u64 {
    // 2^64 divided by the golden ratio; any odd number does.
    hashes.iter().fold(0, |sum: u64, hash| (sum.rotate_left(5) ^ hash).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
