//! Some shards of a filter, with their own memory.

use super::Layout;
use crate::error::{BuildError, PartError};
use crate::filter::assert_same_length;
use crate::hashing::SavedHasher;
use crate::layout::{Mixed, Plan};
use crate::raw::{Answers, Bare, Put, RawFilter};
use crate::report::BulkReport;
#[cfg(feature = "snapshot")]
use crate::snapshot::{Beside, Saved, Snapshot};
use crate::sys::memory::HugePages;
use core::fmt;
use core::ops::Range;

/// Some shards of a filter, with the memory of these shards only. A part is filled by hash and written to a file;
/// [`join`](crate::Filter::join) combines it with the parts that contain the other shards.
///
/// [`Builder::build_shards`](crate::Builder::build_shards) returns a part. A part has no lookups: query the joined
/// filter. Every method takes `&self`, and several threads may insert.
///
/// ```
/// use concurrent_cuckoo_filter::{CuckooFilter, StableHashBuilder};
///
/// let hasher = || StableHashBuilder::with_keys(1, 2);
/// let builder = || CuckooFilter::<u64>::builder().capacity(600_000).hasher(hasher());
/// let layout = builder().layout()?;
/// let parts = [0, 1].map(|number| {
///     // On its own machine, with hashes from all machines:
///     let hashes: Vec<u64> = (0..600_000).map(|key| layout.hash(&key)).collect();
///     let hashes: Vec<u64> = hashes.into_iter().filter(|&hash| layout.part_of_hash(hash, 2) == number).collect();
///     let part = builder().build_shards(layout.part(number, 2)).unwrap();
///     let report = part.insert_batch(&hashes).unwrap();
///     assert!(report.rejected.is_empty());
///     let mut bytes = Vec::new();
///     part.snapshot().write_to(&mut bytes).unwrap();
///     bytes
/// });
/// let filter = CuckooFilter::<u64, _>::join(parts.iter().map(|part| &part[..]), hasher())?;
/// assert!((0..600_000).all(|key| filter.contains(&key)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FilterPart<K: ?Sized, S> {
    layout: Layout<K, S>,
    /// The shards of the part, numbered from 0. Only the layout can place a hash.
    raw: RawFilter,
    shards: Range<usize>,
}

impl<K: ?Sized, S> FilterPart<K, S> {
    pub(crate) fn new(layout: Layout<K, S>, shards: Range<usize>, huge_pages: HugePages) -> Result<Self, BuildError> {
        if shards.is_empty() || shards.end > layout.shards() {
            return Err(BuildError::NoSuchShards { requested: shards, shards: layout.shards() });
        }
        let plan = Plan { shards: shards.len(), ..layout.plan };
        let bytes = RawFilter::<Bare>::bytes_of(&plan).unwrap_or(usize::MAX);
        let raw = RawFilter::new(&plan, huge_pages).ok_or(BuildError::OutOfMemory { bytes })?;
        Ok(FilterPart { layout, raw, shards })
    }

    /// Returns the placement of keys in the whole filter.
    #[must_use]
    pub fn layout(&self) -> &Layout<K, S> {
        &self.layout
    }

    /// Returns the shards of this part.
    #[must_use]
    pub fn shards(&self) -> Range<usize> {
        self.shards.clone()
    }

    /// Returns the number of stored copies. See [`Filter::len`](crate::Filter::len).
    #[must_use]
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// Returns whether [`len`](FilterPart::len) is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the total memory in bytes.
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        size_of::<Self>() + self.raw.heap_bytes()
    }

    /// Stores a copy for each hash on the calling thread. See [`Filter::insert_batch`](crate::Filter::insert_batch).
    ///
    /// # Errors
    /// [`PartError`] if a key belongs to another part; nothing is stored then.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let part = CuckooFilter::<String>::builder().capacity(1_000_000).build_shards(0..2)?;
    /// let hash = part.layout().hash("mailinator.com");
    /// match part.insert_batch(&[hash]) {
    ///     Ok(report) => assert_eq!(report.inserted, 1),
    ///     Err(_) => assert!(part.layout().shard_of_hash(hash) >= 2),
    /// }
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn insert_batch(&self, hashes: &[u64]) -> Result<BulkReport, PartError> {
        self.check(hashes)?;
        Ok(self.insert_each(hashes, Put::COPY, Answers::Nothing))
    }

    /// Stores each hash that is absent. See [`Filter::insert_unique_batch`](crate::Filter::insert_unique_batch). The
    /// contents do not depend on repeated keys or on a retry with the same keys.
    ///
    /// # Errors
    /// Those of [`insert_batch`](FilterPart::insert_batch).
    ///
    /// # Panics
    /// If `hashes` and `admitted` differ in length.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let part = CuckooFilter::<u64>::builder().capacity(100).build_shards(0..1)?;
    /// let mut admitted = [false; 3];
    /// let report = part.insert_unique_batch(&[7, 8, 7], &mut admitted)?;
    /// assert_eq!((report.inserted, report.present), (2, 1));
    /// assert_eq!(admitted, [true, true, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn insert_unique_batch(&self, hashes: &[u64], admitted: &mut [bool]) -> Result<BulkReport, PartError> {
        assert_same_length(hashes.len(), admitted.len());
        self.check(hashes)?;
        Ok(self.insert_each(hashes, Put::UNIQUE, Answers::Stored(admitted)))
    }

    /// Returns an error if a key belongs to another part.
    fn check(&self, hashes: &[u64]) -> Result<(), PartError> {
        let shard = |&hash: &u64| self.layout.shard_of_hash(hash);
        match hashes.iter().position(|hash| !self.shards.contains(&shard(hash))) {
            None => Ok(()),
            Some(index) => Err(PartError::OtherPart { index, shard: shard(&hashes[index]), part: self.shards() }),
        }
    }

    /// Stores keys of this part.
    fn insert_each(&self, hashes: &[u64], put: Put, answers: Answers<'_>) -> BulkReport {
        let hashes = &mut hashes.iter().copied().map(Mixed::of);
        self.raw.insert_each_of_part(self.layout.geometry(), self.shards.start, hashes, put, answers)
    }
}

#[cfg(feature = "snapshot")]
impl<K: ?Sized + 'static, S: SavedHasher> FilterPart<K, S> {
    /// Returns an unwritten snapshot of the part, for [`join`](crate::Filter::join).
    pub fn snapshot(&self) -> Snapshot<'_, K, S> {
        let Layout { capacity, rate, plan, ref hasher, .. } = self.layout;
        let (beside, clock, capacities) = (Beside::default(), None, [capacity; 2]);
        Snapshot::new(Saved { raw: &self.raw, beside, clock, shards: self.shards(), plan, capacities, rate, hasher })
    }
}

impl<K: ?Sized, S> fmt::Debug for FilterPart<K, S> {
    /// Shows the shards and the number of copies.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterPart")
            .field("shards", &self.shards)
            .field("len", &self.len())
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}
