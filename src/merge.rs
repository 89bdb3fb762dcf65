//! All that one filter holds, stored in another one that was built alike.

use crate::error::MergeError;
use crate::filter::CuckooFilter;
use crate::hashing::probe;
use crate::raw::{Put, RawFilter, SlotKind};
use crate::report::MergeReport;
use core::hash::BuildHasher;

impl<K: ?Sized, S: BuildHasher> CuckooFilter<K, S> {
    /// Stores a copy of all that the other filter holds, while both serve. What is refused for lack of room is counted;
    /// nothing else is lost.
    ///
    /// Both must have been built with the same capacity and rate or width, and the same hasher with the same keys: two filters
    /// with default hashers have seeds of their own, and cannot be merged. Give both a clone of one hasher
    /// ([`Builder::hasher`](crate::Builder::hasher)), or begin the second as a [clone](CuckooFilter::try_clone) of the first.
    /// Every key that the other one holds from the beginning of the call to its end is merged; one that is inserted or
    /// removed there meanwhile may be or not. Keys that both hold are held twice afterwards, and take two removals. A
    /// filter may be merged with itself, which doubles its copies, and two with each other at the same time.
    ///
    /// # Errors
    /// [`MergeError`] if the two were built differently or there is no memory; nothing has changed then.
    ///
    /// # Complexity
    /// A shard at a time is copied under the locks of the other filter, and stored under those of this one: never are
    /// both held. Lookups go on in both. Memory: a copy of one shard.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, StableHashBuilder};
    ///
    /// let build = || CuckooFilter::<str, _>::with_capacity_and_hasher(100, StableHashBuilder::with_keys(1, 2));
    /// let (one, other) = (build(), build());
    /// one.insert("a.com")?;
    /// other.insert("b.com")?;
    /// let report = one.merge_from(&other)?;
    /// assert_eq!((report.inserted, report.refused), (1, 0));
    /// assert!(one.contains("a.com") && one.contains("b.com"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn merge_from(&self, other: &Self) -> Result<MergeReport, MergeError> {
        merge(&self.raw, &other.raw, probe(self.hasher()) == probe(other.hasher()), |_| Put::COPY)
    }
}

/// Stores what the one filter holds in the other, by what `put` makes of values.
pub(crate) fn merge<K: SlotKind>(
    to: &RawFilter<K>,
    from: &RawFilter<K>,
    hash_alike: bool,
    put: impl Fn(u32) -> Put,
) -> Result<MergeReport, MergeError> {
    if !to.plan().places_alike(from.plan()) {
        return Err(MergeError::SizesDiffer);
    }
    if !hash_alike {
        return Err(MergeError::HashersDiffer);
    }
    let (words, mut room) = (to.plan().words, Vec::new());
    let bytes = words * size_of::<u64>();
    room.try_reserve_exact(words).map_err(|_| MergeError::OutOfMemory { bytes })?;
    room.resize(words, 0);
    let mut report = MergeReport::default();
    to.merge_from(from, &mut room, put, |result| match result {
        Ok(_) => report.inserted += 1,
        Err(_) => report.refused += 1,
    });
    Ok(report)
}
