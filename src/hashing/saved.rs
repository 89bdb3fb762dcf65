//! What a saved filter has to know of its hash function.

use core::hash::BuildHasher;

/// A hash function that a saved filter can name.
///
/// A filter that is asked with another function than it was filled with answers "no" to all that it holds. So a
/// snapshot keeps the name and, with some values hashed, a probe of the function, and is only loaded with one of the
/// same name and output.
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
/// let filter = CuckooFilter::<str, _>::with_capacity_and_hasher(100, Fixed);
/// filter.insert("key")?;
/// let mut bytes = Vec::new();
/// filter.write_to(&mut bytes)?;
/// assert!(CuckooFilter::<str, _>::read_from(&bytes[..], Fixed)?.contains("key"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait SavedHasher: BuildHasher + Sized {
    /// The name in the snapshot, of 64 bytes at the most. Functions of one name may differ in their keys only.
    const NAME: &'static str;

    /// The keys or seeds that the snapshot may keep, so that it can be loaded without being given a hash function.
    /// `None`, the default, if there are none to keep: then the hasher has to be given when the filter is loaded.
    fn keys(&self) -> Option<[u64; 4]> {
        None
    }

    /// The function with such keys. `None`, the default, if [`keys`](SavedHasher::keys) never tells any.
    fn from_keys(_keys: [u64; 4]) -> Option<Self> {
        None
    }
}

/// Some values hashed, one for each way in which keys reach a hasher: a function with other output, or a `Hash` that
/// says other things than it did, shows in them.
pub(crate) fn probe(hasher: &impl BuildHasher) -> [u64; 4] {
    [
        hasher.hash_one("concurrent-cuckoo-filter"),
        hasher.hash_one(&b"concurrent-cuckoo-filter"[..]),
        hasher.hash_one(0x0123_4567_89ab_cdef_u64),
        hasher.hash_one(0x0123_4567_u32),
    ]
}
