//! Key placement without a filter.

use crate::hashing::{hash_of, hash_of_str_bytes};
use crate::layout::{Geometry, Mixed, Plan};
use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;
use core::ops::Range;

/// The placement of keys in a filter, without the memory of the filter: hashes a key, and returns its shard and its
/// part.
///
/// Use it for a list spread over several machines. Each machine hashes its keys, and sends the hash, 8 bytes, to the
/// machine that builds the [part](crate::FilterPart) of the key; [`join`](crate::Filter::join) combines all parts.
/// [`Builder::layout`](crate::Builder::layout) returns a layout. Layouts agree on all machines if the capacity, the
/// rate or width, the hash function and its seeds are equal: pass a [`StableHashBuilder`](crate::StableHashBuilder)
/// with given seeds.
///
/// ```
/// use concurrent_cuckoo_filter::{CuckooFilter, StableHashBuilder};
///
/// let builder = || CuckooFilter::<String>::builder().capacity(1_000_000).hasher(StableHashBuilder::with_keys(1, 2));
/// let layout = builder().layout()?;
/// assert_eq!(layout.shards(), 4);
///
/// let hash = layout.hash("mailinator.com");
/// let part = layout.part_of_hash(hash, 2);
/// assert!(layout.part(part, 2).contains(&layout.shard_of_hash(hash)));
/// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
/// ```
pub struct Layout<K: ?Sized, S> {
    pub(super) capacity: usize,
    /// The requested rate, if any.
    pub(super) rate: Option<f64>,
    pub(super) plan: Plan,
    pub(super) hasher: S,
    geometry: Geometry,
    key: PhantomData<fn(&K)>,
}

impl<K: ?Sized, S> Layout<K, S> {
    pub(crate) fn new(capacity: usize, rate: Option<f64>, plan: Plan, hasher: S) -> Self {
        Layout { capacity, rate, plan, hasher, geometry: Geometry::new(&plan), key: PhantomData }
    }

    pub(super) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Returns the number of shards of the filter. Shards have equal size.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.plan.shards
    }

    /// Returns the hash function.
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// Returns the number of the shard of the key with this hash. See [`Filter::shard_of`](crate::Filter::shard_of).
    #[must_use]
    pub fn shard_of_hash(&self, hash: u64) -> usize {
        self.geometry.shard(Mixed::of(hash))
    }

    /// Returns the shards of a part of a filter built in `parts` parts. The sizes of parts differ by at most one shard;
    /// with more parts than shards, some parts are empty.
    ///
    /// # Panics
    /// If `number` is not below `parts`.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let layout = CuckooFilter::<u64>::builder().capacity(2_500_000).layout()?;
    /// assert_eq!(layout.shards(), 10);
    /// assert_eq!([0, 1, 2].map(|number| layout.part(number, 3)), [0..3, 3..6, 6..10]);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub fn part(&self, number: usize, parts: usize) -> Range<usize> {
        assert!(number < parts, "part {number} of {parts} was requested; parts are numbered from 0");
        let begin = |number: usize| (number as u128 * self.plan.shards as u128 / parts as u128) as usize;
        begin(number)..begin(number + 1)
    }

    /// Returns the number of the part of the key with this hash: the part whose [shards](Layout::part) include the
    /// shard of the key.
    ///
    /// # Panics
    /// If `parts` is 0.
    #[must_use]
    #[track_caller]
    pub fn part_of_hash(&self, hash: u64, parts: usize) -> usize {
        assert!(parts > 0, "0 parts were requested; at least 1 is needed");
        // The number of parts that begin at this shard or before it, less one: part i begins at i * shards / parts.
        let shard = self.shard_of_hash(hash) as u128;
        (((shard + 1) * parts as u128 - 1) / self.plan.shards as u128) as usize
    }
}

impl<K: ?Sized, S: BuildHasher> Layout<K, S> {
    /// Hashes the key. See [`Filter::hash`](crate::Filter::hash).
    #[inline]
    #[must_use]
    pub fn hash<Q: ?Sized + Hash>(&self, key: &Q) -> u64
    where
        K: Borrow<Q>,
    {
        hash_of(&self.hasher, key)
    }
}

impl<K: ?Sized + Borrow<str>, S: BuildHasher> Layout<K, S> {
    /// Hashes the bytes of a string. See [`Filter::hash_str_bytes`](crate::Filter::hash_str_bytes).
    #[inline]
    #[must_use]
    pub fn hash_str_bytes(&self, text: &[u8]) -> u64 {
        hash_of_str_bytes(&self.hasher, text)
    }
}

impl<K: ?Sized, S> fmt::Debug for Layout<K, S> {
    /// Does not show the hash function.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layout")
            .field("capacity", &self.capacity)
            .field("fingerprint_bits", &self.plan.fingerprint_bits)
            .field("shards", &self.plan.shards)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A layout with this number of shards of the minimum size.
    fn layout(shards: usize) -> Layout<u64, ()> {
        let plan = Plan { shards, ..Plan::one_shard(13, 32, 4) };
        Layout::new(0, None, plan, ())
    }

    proptest! {
        #[test]
        fn a_key_is_in_one_part_and_parts_are_even(
            hash: u64,
            shards in prop_oneof![1..5_usize, 1..100_000_usize, 1..usize::MAX >> 8],
            parts in prop_oneof![1..5_usize, 1..100_000_usize, 1..=usize::MAX],
        ) {
            let layout = layout(shards);
            let part = layout.part_of_hash(hash, parts);
            prop_assert!(part < parts);
            let range = layout.part(part, parts);
            prop_assert!(range.contains(&layout.shard_of_hash(hash)));
            prop_assert!((shards / parts..=shards.div_ceil(parts)).contains(&range.len()));
            prop_assert_eq!(layout.part(0, parts).start, 0);
            prop_assert_eq!(layout.part(parts - 1, parts).end, shards);
            if part > 0 {
                prop_assert_eq!(layout.part(part - 1, parts).end, range.start);
            }
        }
    }

    #[test]
    #[should_panic(expected = "part 3 of 3 was requested; parts are numbered from 0")]
    fn a_part_that_is_not_there() {
        let _ = layout(10).part(3, 3);
    }

    #[test]
    #[should_panic(expected = "0 parts were requested; at least 1 is needed")]
    fn no_parts() {
        let _ = layout(10).part_of_hash(0, 0);
    }
}
