//! Filters built in parts: key placement without a filter, and some shards with their memory.

use crate::builder::{Builder, Planned};
use crate::error::{BuildError, PartError};
use crate::filter::assert_same_length;
use crate::hashing::{SavedHasher, hash_of};
use crate::layout::{Geometry, Mixed, Plan};
use crate::raw::{Answers, Bare, Put, RawFilter};
use crate::report::BulkReport;
#[cfg(feature = "snapshot")]
use crate::snapshot::{Header, Snapshot};
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
/// let builder = || CuckooFilter::<String>::builder().capacity(1_000_000).hasher(StableHashBuilder::with_seeds(1, 2));
/// let layout = builder().layout()?;
/// assert_eq!(layout.part(0, 1), 0..4); // all shards
///
/// let hash = layout.hash("mailinator.com");
/// let part = layout.part_of_hash(hash, 2);
/// assert!(layout.part(part, 2).contains(&layout.shard_of_hash(hash)));
/// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
/// ```
pub struct Layout<K: ?Sized, S> {
    capacity: usize,
    /// The requested rate, if any.
    rate: Option<f64>,
    plan: Plan,
    hasher: S,
    geometry: Geometry,
    key: PhantomData<fn(&K)>,
}

impl<K: ?Sized, S> Layout<K, S> {
    pub(crate) fn new(capacity: usize, rate: Option<f64>, plan: Plan, hasher: S) -> Self {
        Layout { capacity, rate, plan, hasher, geometry: Geometry::new(&plan), key: PhantomData }
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

impl<K: ?Sized, S> Builder<K, S> {
    /// Plans the filter without taking its memory: the placement of its keys, for filters that are built in parts.
    ///
    /// # Errors
    /// Those of [`memory_usage`](Builder::memory_usage); [`BuildError::GrowingPart`] for a filter that grows.
    pub fn layout(self) -> Result<Layout<K, S>, BuildError> {
        let Planned { plan, capacities: [capacity, _], rate, .. } = self.plan()?;
        if plan.grows() {
            return Err(BuildError::GrowingPart);
        }
        Ok(Layout::new(capacity, rate, plan, self.hasher.make()))
    }

    /// Builds a part of the filter, empty: these shards, with their memory alone. [`Layout::part`] returns shards of even parts.
    ///
    /// # Errors
    /// Those of [`build`](Builder::build) and [`layout`](Builder::layout); [`BuildError::NoSuchShards`].
    pub fn build_shards(self, shards: Range<usize>) -> Result<FilterPart<K, S>, BuildError> {
        let (huge_pages, layout) = (self.huge_pages, self.layout()?);
        if shards.is_empty() || shards.end > layout.plan.shards {
            return Err(BuildError::NoSuchShards { requested: shards, shards: layout.plan.shards });
        }
        let plan = Plan { shards: shards.len(), ..layout.plan };
        let bytes = RawFilter::<Bare>::bytes_at(&plan, 0).unwrap_or(usize::MAX);
        let raw = RawFilter::new(&plan, huge_pages).ok_or(BuildError::OutOfMemory { bytes })?;
        Ok(FilterPart { layout, raw, shards })
    }
}

/// Some shards of a filter, with the memory of these shards only. A part is filled by hash and written to a file;
/// [`join`](crate::Filter::join) combines it with the parts that contain the other shards.
///
/// [`Builder::build_shards`](crate::Builder::build_shards) returns a part. A part has no lookups: query the joined
/// filter. Every method takes `&self`, and several threads may insert.
///
/// ```
/// use concurrent_cuckoo_filter::{CuckooFilter, StableHashBuilder};
///
/// let hasher = || StableHashBuilder::with_seeds(1, 2);
/// let builder = || CuckooFilter::<u64>::builder().capacity(600_000).hasher(hasher());
/// let layout = builder().layout()?;
/// let parts = [0, 1].map(|number| {
///     // On its own machine, with hashes from all machines:
///     let hashes: Vec<u64> = (0..600_000).map(|key| layout.hash(&key)).collect();
///     let hashes: Vec<u64> = hashes.into_iter().filter(|&hash| layout.part_of_hash(hash, 2) == number).collect();
///     let part = builder().build_shards(layout.part(number, 2)).unwrap();
///     let report = part.insert_batch(&hashes).unwrap();
///     assert!(report.refused.is_empty());
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
    /// Returns the placement of keys in the whole filter.
    #[must_use]
    pub fn layout(&self) -> &Layout<K, S> {
        &self.layout
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
            Some(index) => Err(PartError { index, shard: shard(&hashes[index]), part: self.shards.clone() }),
        }
    }

    /// Stores keys of this part.
    fn insert_each(&self, hashes: &[u64], put: Put, answers: Answers<'_>) -> BulkReport {
        let hashes = &mut hashes.iter().copied().map(Mixed::of);
        let (geometry, first) = (&self.layout.geometry, self.shards.start);
        self.raw.insert_each_of_part(geometry, first, hashes, put, usize::MAX, answers)
    }
}

#[cfg(feature = "snapshot")]
impl<K: ?Sized + 'static, S: SavedHasher> FilterPart<K, S> {
    /// Returns an unwritten snapshot of the part, for [`join`](crate::Filter::join).
    pub fn snapshot(&self) -> Snapshot<'_, K, S> {
        let Layout { capacity, rate, plan, hasher, .. } = &self.layout;
        let header = Header::of::<K, S>("plain", plan, None, [*capacity; 2], *rate, hasher);
        Snapshot::new(&self.raw, self.shards.clone(), None, header)
    }
}

impl<K: ?Sized, S> fmt::Debug for FilterPart<K, S> {
    /// Shows the shards and the number of copies.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterPart")
            .field("shards", &self.shards)
            .field("len", &self.raw.len())
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}
