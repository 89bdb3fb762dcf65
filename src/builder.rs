//! Sizes and options of a filter, checked and turned into a plan.

use crate::error::BuildError;
use crate::filter::Filter;
use crate::filter::key::BatchKey;
use crate::filter::kind::{Beside, Counting, Expiring, Insert, Kind, Plain, Tagged, Timeless};
use crate::hashing::DefaultHashBuilder;
use crate::layout::{self, Accuracy, FINGERPRINT_BITS, GROWING_FINGERPRINT_BITS, Plan, Ungrowable};
use crate::parts::{FilterPart, Layout};
use crate::raw::RawFilter;
use crate::sys::memory::HugePages;
use core::fmt;
use core::hash::BuildHasher;
use core::marker::PhantomData;
use core::ops::{Range, RangeInclusive};
use core::time::Duration;

/// The false-positive rate unless requested otherwise.
const DEFAULT_RATE: f64 = 0.001;

/// Plans a filter of any kind and builds it.
///
/// Set the [`capacity`](Builder::capacity) in keys, and either a [`false_positive_rate`](Builder::false_positive_rate) or the
/// [`fingerprint_bits`](Builder::fingerprint_bits); without both, the rate is 0.1 %, which takes 13 bits. An expiring filter needs a
/// [`time_to_live`](Builder::time_to_live), too. [`build`](Builder::build) returns an error for each impossible request, which names
/// the possible ones.
///
/// ```
/// use concurrent_cuckoo_filter::CuckooFilter;
///
/// let builder = CuckooFilter::<String>::builder().capacity(100_000).false_positive_rate(0.01);
/// let bytes = builder.memory_usage()?;
/// let filter = builder.build()?;
/// assert_eq!(filter.fingerprint_bits(), 10);
/// assert_eq!(filter.memory_usage(), bytes);
/// assert!(bytes < 134_000);
/// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
/// ```
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder<K: ?Sized, S = DefaultHashBuilder, T: Kind = Plain> {
    capacity: Option<usize>,
    max_capacity: Option<usize>,
    rate: Option<f64>,
    bits: Option<u32>,
    stripes: Option<usize>,
    huge_pages: HugePages,
    options: T::Options,
    /// `None` is a `S::default()` made by `build`.
    hasher: Hasher<S>,
    key: PhantomData<fn(&K)>,
}

#[derive(Clone)]
enum Hasher<S> {
    Given(S),
    /// Made at each build, so that a builder used twice gives filters with seeds of their own.
    Made(fn() -> S),
}

impl<S> Hasher<S> {
    fn make(self) -> S {
        match self {
            Hasher::Given(hasher) => hasher,
            Hasher::Made(make) => make(),
        }
    }
}

impl<K: ?Sized, T: Kind> Filter<K, DefaultHashBuilder, T> {
    /// Returns a builder, for a filter with a rate, a width, a hash function, a number of stripes or other options.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<String>::builder().capacity(1_000).false_positive_rate(0.0001).build()?;
    /// assert_eq!(filter.fingerprint_bits(), 17);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn builder() -> Builder<K, DefaultHashBuilder, T> {
        Builder::default()
    }
}

impl<K: ?Sized, T: Timeless> Filter<K, DefaultHashBuilder, T> {
    /// Builds a filter for this many keys at a false-positive rate of 0.1 %, hashed with random seeds.
    ///
    /// # Panics
    /// If the size overflows the address space or allocation fails. [`Builder::build`] returns an error instead.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<u64>::with_capacity(100_000);
    /// assert_eq!(filter.capacity(), 100_000);
    /// assert_eq!(filter.fingerprint_bits(), 13);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn with_capacity(keys: usize) -> Self {
        Self::with_capacity_and_hasher(keys, DefaultHashBuilder::new())
    }

    /// Builds a filter that grows by itself, from room for the first number of keys to room for the second one, at a false-positive rate
    /// of 0.1 % at its largest size, hashed with random seeds.
    ///
    /// At its largest size it takes 8 to 10 % more memory than a filter that was built for as many keys. Before, it takes more: all
    /// tables keep a bit per slot for each doubling to come, and are half empty just after one. With a second number of 64 times the
    /// first, these are 20 bits per key when the first tables are full and 39 just after they have doubled, where a filter of fixed size
    /// takes 13.6; `1_000..=1_000_000_000` takes 49 at a million keys. So choose a second number that is expected (16 to 64 times the
    /// first); [`Builder::memory_usage_at`] returns the bytes at any number of keys, and docs/guide.md has a table. The filter begins
    /// with room for at least a 2^17th of the second number.
    ///
    /// # Panics
    /// If the range is empty, the size overflows the address space, or allocation fails.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<String>::growing(1_000..=1_000_000_000);
    /// assert_eq!(filter.max_capacity(), 1_000_000_000);
    /// assert!(filter.memory_usage() < 500_000);
    /// filter.insert("key")?;
    /// assert!(filter.contains("key"));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub fn growing(keys: RangeInclusive<usize>) -> Self {
        built(Self::builder().capacity(*keys.start()).max_capacity(*keys.end()))
    }
}

impl<K: ?Sized, S, T: Timeless> Filter<K, S, T> {
    /// Builds a filter for this many keys at a false-positive rate of 0.1 %, with this hash function.
    ///
    /// # Panics
    /// If the size overflows the address space or allocation fails.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    /// use std::hash::RandomState;
    ///
    /// let filter = CuckooFilter::<String, _>::with_capacity_and_hasher(100, RandomState::new());
    /// assert!(filter.insert("key").is_ok());
    /// ```
    #[must_use]
    #[track_caller]
    pub fn with_capacity_and_hasher(keys: usize, hasher: S) -> Self {
        built(Builder::default().capacity(keys).hasher(hasher))
    }
}

#[track_caller]
fn built<K: ?Sized, S, T: Kind>(builder: Builder<K, S, T>) -> Filter<K, S, T> {
    match builder.build() {
        Ok(filter) => filter,
        Err(error) => panic!("{error}"),
    }
}

impl<K: ?Sized, T: Kind> Default for Builder<K, DefaultHashBuilder, T> {
    /// Returns a builder, like [`Filter::builder`].
    fn default() -> Self {
        Builder {
            capacity: None,
            max_capacity: None,
            rate: None,
            bits: None,
            stripes: None,
            huge_pages: HugePages::Advised,
            options: T::OPTIONS,
            hasher: Hasher::Made(DefaultHashBuilder::new),
            key: PhantomData,
        }
    }
}

impl<K: ?Sized, S: BuildHasher, T: Insert> Builder<K, S, T> {
    /// Builds a filter that holds these keys, each once. Without a [`capacity`](Builder::capacity) it is built for the number of keys;
    /// with a larger one, more can follow.
    ///
    /// # Errors
    /// Those of [`build`](Builder::build); [`BuildError::Refused`] if a key beyond the capacity finds no room.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<String>::builder().items(["a.com", "b.com", "a.com"])?;
    /// assert!(filter.contains("a.com"));
    /// assert_eq!(filter.len(), 2);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn items<I, F>(mut self, keys: I) -> Result<Filter<K, S, T>, BuildError>
    where
        I: IntoIterator<Item: BatchKey<K, F>, IntoIter: ExactSizeIterator>,
    {
        let keys = keys.into_iter();
        self.capacity = self.capacity.or(Some(keys.len()));
        let filter = self.build()?;
        for (index, key) in keys.enumerate() {
            filter.admit(&key).map_err(|error| BuildError::Refused { index, error })?;
        }
        Ok(filter)
    }
}

impl<K: ?Sized, S, T: Kind> Builder<K, S, T> {
    /// Sets the number of keys that the filter is to hold, or of an expiring filter the largest number of keys alive at the same time.
    /// Required.
    ///
    /// That many distinct keys fit, at the requested rate: with fingerprints of 6 bits or more, fewer than one filter in 10,000 refuses
    /// a key before. It is not rounded to a power of two. Copies of one key use it up like different keys.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<u32>::builder().capacity(5).build()?;
    /// assert!((0..5).all(|key| filter.insert(&key).is_ok()));
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn capacity(mut self, keys: usize) -> Self {
        self.capacity = Some(keys);
        self
    }

    /// Sets the number of keys up to which the filter grows by itself, beginning with room for the capacity. By default the size is fixed.
    ///
    /// This many distinct keys fit, at the requested rate; with fewer keys, the rate is lower. When a table is full, the filter splits it
    /// in two, as a part of an insertion or in advance by [`reserve`](Filter::reserve), whose documentation has the time of a split.
    /// Lookups proceed concurrently, and never read more than two buckets. If the memory of a split cannot be allocated, the insertion
    /// returns [`InsertError::OutOfMemory`](crate::InsertError::OutOfMemory).
    ///
    /// # Cost
    /// At the largest size about 1.2 bits per key more than a filter that was built for `keys`, and lookups that read the directory
    /// first. Before, one bit per slot for each doubling to come, and twice the memory just after a doubling:
    /// [`memory_usage_at`](Builder::memory_usage_at) returns the bytes. A filter begins with room for its [`capacity`](Builder::capacity),
    /// and with at least `keys` / 2^17 (more for rates below 0.1 %). Its fingerprints have 6 to 30 bits, counted as in a filter of fixed
    /// size. Up to 12,000 keys it grows by copying its one table into another of twice the size, and keeps the old ones until it is
    /// dropped.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<u32>::builder().capacity(1_000).max_capacity(1_000_000).build()?;
    /// let small = filter.memory_usage();
    /// for key in 0..100_000 {
    ///     filter.insert(&key)?;
    /// }
    /// assert!((0..100_000).all(|key| filter.contains(&key)));
    /// assert!(small < 80_000 && filter.memory_usage() > 2 * small);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_capacity(mut self, keys: usize) -> Self {
        self.max_capacity = Some(keys);
        self
    }

    /// Sets the fraction of absent keys for which [`contains`](Filter::contains) may return `true` at full capacity: above 0, below 1. The
    /// filter takes the narrowest fingerprint that keeps it, of at least 6 bits (0.11): narrower ones would put the capacity at risk. In
    /// filters with tags, fingerprints also take the bits that are left over in a slot.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<u32>::builder().capacity(1000).false_positive_rate(1e-6).build()?;
    /// assert_eq!(filter.fingerprint_bits(), 23);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.rate = Some(rate);
        self
    }

    /// Sets the bits of a fingerprint, 4 to 32, instead of a rate. Slots of 16 bits are the fastest. In filters with tags, fingerprints
    /// also take the bits that are left over in a slot. With 4 or 5 bits there are so few classes that one may overflow before the capacity
    /// is reached.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<u32>::builder().capacity(1000).fingerprint_bits(8).build()?;
    /// assert!(filter.memory_usage() < 2600);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn fingerprint_bits(mut self, bits: u32) -> Self {
        self.bits = Some(bits);
        self
    }

    /// Sets the least number of stripes: one lock and one version each. The default, up to 1024 within 1 % of the memory, serves dozens of
    /// writing threads; more help only where more threads write at the same time. A stripe spans at least 16 buckets, so small
    /// filters may have fewer.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let builder = CuckooFilter::<u32>::builder().capacity(1_000_000);
    /// let more = CuckooFilter::<u32>::builder().capacity(1_000_000).stripes(1000);
    /// assert!(more.memory_usage()? > builder.memory_usage()?);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn stripes(mut self, stripes: usize) -> Self {
        self.stripes = Some(stripes);
        self
    }

    /// Sets whether the system is advised to back large tables (from 2 MiB on) by huge pages. It is by default: lookups out of cache and
    /// bulk loads are faster with them. The tables of a growing filter lie side by side from 4 MiB on, for their sake.
    ///
    /// Only Linux takes the advice, where transparent huge pages are set to `madvise` or `always`; elsewhere this changes nothing.
    /// Refused advice is no error. The system supplies memory by the page, as it is touched, so a large filter with few keys takes less
    /// memory without huge pages. [`memory_usage`](Builder::memory_usage) is the same with and without. A filter that is read from a
    /// snapshot is always advised.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<u32>::builder().capacity(10_000_000).huge_pages(false).build()?;
    /// assert!(filter.is_empty());
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn huge_pages(mut self, advised: bool) -> Self {
        self.huge_pages = if advised { HugePages::Advised } else { HugePages::Unadvised };
        self
    }

    /// Sets the hash function. Without it each filter has a [`DefaultHashBuilder`] with random seeds.
    ///
    /// Hashes have 64 bits, and all of them count: two keys with the same hash are indistinguishable. A poor distribution is corrected
    /// (small integers through an identity hash are fine), missing bits are not. A function with well-distributed hashes may be marked as
    /// [`WellMixed`](crate::WellMixed), so that filters do not mix them again.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    /// use std::hash::RandomState;
    ///
    /// let filter = CuckooFilter::<String>::builder().capacity(10).hasher(RandomState::new()).build()?;
    /// filter.insert("key")?;
    /// assert!(filter.contains("key"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn hasher<H>(self, hasher: H) -> Builder<K, H, T> {
        let Builder { capacity, max_capacity, rate, bits, stripes, huge_pages, options, key, .. } = self;
        let hasher = Hasher::Given(hasher);
        Builder { capacity, max_capacity, rate, bits, stripes, huge_pages, options, hasher, key }
    }

    /// Returns the memory in bytes that the filter would take, everything included, without taking it.
    ///
    /// # Errors
    /// Those of [`build`](Builder::build), except [`BuildError::OutOfMemory`].
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let a_thousand_million = CuckooFilter::<String>::builder().capacity(1_000_000_000).memory_usage()?;
    /// assert!(a_thousand_million / 1_000_000 < 1700);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn memory_usage(&self) -> Result<usize, BuildError> {
        Ok(self.plan()?.bytes)
    }

    /// Returns the memory in bytes that the filter would take with this many keys in it. It differs from
    /// [`memory_usage`](Builder::memory_usage) with a [`max_capacity`](Builder::max_capacity) only.
    ///
    /// All tables fill alike, and are split within a few percent of the keys: the result is exact between these times. For more keys
    /// than fit, it is the memory of the largest size.
    ///
    /// # Errors
    /// Those of [`memory_usage`](Builder::memory_usage).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let builder = CuckooFilter::<u32>::builder().capacity(20_000).max_capacity(1_000_000);
    /// assert_eq!(builder.memory_usage_at(20_000)?, builder.memory_usage()?);
    /// assert!(builder.memory_usage_at(50_000)? > builder.memory_usage()?);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn memory_usage_at(&self, keys: usize) -> Result<usize, BuildError> {
        let Planned { plan, capacities: [_, most], .. } = self.plan()?;
        Self::bytes_at(&plan, plan.doublings_for(keys), most)
    }

    /// Builds the empty filter. Its memory is reserved, not written: the system supplies zeroed pages as keys arrive, so a large filter is
    /// built fast.
    ///
    /// # Errors
    /// [`BuildError`] for each impossible request, and if allocation fails.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{BuildError, CuckooFilter, ExpiringFilter};
    ///
    /// let builder = || CuckooFilter::<String>::builder().capacity(1000);
    /// assert!(builder().build().is_ok());
    /// let error = builder().fingerprint_bits(40).build().unwrap_err();
    /// assert_eq!(error.to_string(), "fingerprints of 40 bits were requested; 4 to 32 are possible");
    ///
    /// let builder = ExpiringFilter::<u64>::builder().capacity(100);
    /// assert_eq!(builder.build().unwrap_err(), BuildError::NoTimeToLive);
    /// ```
    pub fn build(self) -> Result<Filter<K, S, T>, BuildError> {
        let Planned { plan, capacities, rate, bytes, beside } = self.plan()?;
        let raw = RawFilter::new(&plan, self.huge_pages).ok_or(BuildError::OutOfMemory { bytes })?;
        let time = T::time(&raw, beside.and_then(|beside| beside.life));
        Ok(Filter::from_raw(capacities, rate, raw, time, self.hasher.make()))
    }

    fn bytes_at(plan: &Plan, doublings: u32, capacity: usize) -> Result<usize, BuildError> {
        let bytes = RawFilter::<T::Slots>::bytes_at(plan, doublings);
        let bytes = bytes.and_then(|bytes| bytes.checked_add(size_of::<Filter<K, S, T>>()));
        let too_large = BuildError::TooLarge { capacity, fingerprint_bits: plan.fingerprint_bits };
        bytes.filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or(too_large)
    }

    fn plan(&self) -> Result<Planned, BuildError> {
        let capacity = self.capacity.ok_or(BuildError::NoCapacity)?;
        let most = self.max_capacity.unwrap_or(capacity);
        if most < capacity {
            return Err(BuildError::MaxCapacityTooLow { capacity, max_capacity: most });
        }
        if self.stripes == Some(0) {
            return Err(BuildError::NoStripes);
        }
        let beside = T::beside(&self.options)?;
        let (tag_bits, spare) = beside.as_ref().map_or((0, 0.0), |beside| (beside.bits, beside.spare));
        let with_spare = |keys: usize| keys.saturating_add((keys as f64 * spare).ceil() as usize);
        let grows = self.max_capacity.is_some();
        let possible = if grows { GROWING_FINGERPRINT_BITS } else { FINGERPRINT_BITS };
        let possible = *possible.start()..=(*possible.end()).min(FINGERPRINT_BITS.end() - tag_bits);
        let ask = match (self.rate, self.bits) {
            (Some(rate), Some(bits)) => return Err(BuildError::RateAndFingerprintBits { rate, bits }),
            (None, Some(bits)) if possible.contains(&bits) => Accuracy::Bits(bits),
            (None, Some(requested)) => return Err(BuildError::FingerprintBitsOutOfRange { requested, possible }),
            (rate, None) => Accuracy::Rate(in_range(rate.unwrap_or(DEFAULT_RATE))?),
        };
        let (first, last) = (with_spare(capacity), with_spare(most));
        let plan = if grows {
            let plan = Plan::growing(first, last, ask, self.stripes, tag_bits);
            plan.map_err(|error| match error {
                Ungrowable::RateTooLow { lowest } => {
                    let requested = self.rate.unwrap_or(DEFAULT_RATE);
                    BuildError::RateTooLow { requested, lowest, widest: *possible.end() }
                }
                Ungrowable::TooLarge { fingerprint_bits } => BuildError::TooLarge { capacity: most, fingerprint_bits },
            })?
        } else {
            let too_low = |rate| {
                let widest = *possible.end();
                BuildError::RateTooLow { requested: rate, lowest: layout::lowest_rate(first, widest), widest }
            };
            let bits = match ask {
                Accuracy::Bits(bits) => bits,
                Accuracy::Rate(rate) => layout::fingerprint_bits_for(first, rate).ok_or_else(|| too_low(rate))?,
            };
            let slot_bits = Plan::slot_bits_for(bits, tag_bits);
            let slot_bits = slot_bits.ok_or_else(|| too_low(self.rate.unwrap_or(DEFAULT_RATE)))?;
            let too_large =
                |layout::Unplannable| BuildError::TooLarge { capacity, fingerprint_bits: slot_bits - tag_bits };
            Plan::new(first, slot_bits, self.stripes).map_err(too_large)?.with_tags(tag_bits)
        };
        let plan = Plan { count_bits: beside.as_ref().map_or(0, |beside| beside.count_bits), ..plan };
        let rate = self.rate.or(self.bits.is_none().then_some(DEFAULT_RATE));
        Ok(Planned { plan, capacities: [capacity, most], rate, bytes: Self::bytes_at(&plan, 0, most)?, beside })
    }
}

/// A checked request.
pub(crate) struct Planned {
    pub(crate) plan: Plan,
    /// The capacity, and the one that the filter grows to.
    pub(crate) capacities: [usize; 2],
    /// `None` if a width was requested.
    pub(crate) rate: Option<f64>,
    bytes: usize,
    beside: Option<Beside>,
}

impl<K: ?Sized, S> Builder<K, S> {
    /// Plans the filter without taking its memory: the placement of its keys, for filters that are built in parts.
    ///
    /// # Errors
    /// Those of [`memory_usage`](Builder::memory_usage); [`BuildError::GrowingPart`] for a filter that grows.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, StableHashBuilder};
    ///
    /// let hasher = StableHashBuilder::with_keys(1, 2);
    /// let layout = CuckooFilter::<String>::builder().capacity(10_000_000_000).hasher(hasher).layout()?;
    /// assert!(layout.part_of_hash(layout.hash("mailinator.com"), 1000) < 1000);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
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
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, StableHashBuilder};
    ///
    /// let builder = || CuckooFilter::<String>::builder().capacity(10_000_000).hasher(StableHashBuilder::with_keys(1, 2));
    /// let shards = builder().layout()?.part(3, 10);
    /// let part = builder().build_shards(shards)?;
    /// assert!(part.memory_usage() < builder().memory_usage()? / 9);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn build_shards(self, shards: Range<usize>) -> Result<FilterPart<K, S>, BuildError> {
        let huge_pages = self.huge_pages;
        FilterPart::new(self.layout()?, shards, huge_pages)
    }

    /// The plan of a filter in memory of another kind, its hash function, and whether huge pages are advised.
    #[cfg(all(feature = "shared", target_os = "linux"))]
    pub(crate) fn planned(self) -> Result<(Planned, S, bool), BuildError> {
        Ok((self.plan()?, self.hasher.make(), self.huge_pages == HugePages::Advised))
    }
}

impl<K: ?Sized, S> Builder<K, S, Expiring> {
    /// Sets the time that a key lives at least, counted from its insertion or renewal. Required.
    pub fn time_to_live(mut self, time: Duration) -> Self {
        self.options.time_to_live = time;
        self
    }

    /// Sets the least number of steps that the time to live is divided into, 1 to 254: a key lives at most one step longer than requested.
    /// 6 unless set. The number is raised to the largest one of as many bits.
    ///
    /// | steps | bits | room for keys that live longer |
    /// |---:|---:|---:|
    /// | 2 | 2 | 50 % |
    /// | 6 | 3 | 17 % |
    /// | 14 | 4 | 7 % |
    /// | 30, 62 | 5, 6 | 3 %, 2 % |
    /// | 126, 254 | 7, 8 | under 1 % |
    ///
    /// The bits of a step and of a fingerprint share a slot, whose width is a multiple of 4 with 3 or 4 bits, and of 8 with more: 13 and 3
    /// fill 16, which is fastest.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::ExpiringFilter;
    /// use std::time::Duration;
    ///
    /// let day = Duration::from_secs(24 * 3600);
    /// let filter = ExpiringFilter::<String>::builder().capacity(100_000).time_to_live(day).steps(14).build()?;
    /// assert_eq!(filter.tick(), Some(day.div_f64(14.0)));
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn steps(mut self, steps: u32) -> Self {
        self.options.steps = steps;
        self
    }
}

impl<K: ?Sized, S> Builder<K, S, Counting> {
    /// Sets the bits of a counter, 1 to 16, which counts up to 2^bits - 1, or to 2^bits with a time to live or to idle. 4 unless set. The
    /// width of a slot is a multiple of 4 with 3 or 4 bits, of 8 with 5 to 8, and of 16 with more; the bits of
    /// [steps](Builder::steps) count, too.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    ///
    /// let filter = CountingFilter::<String>::builder().capacity(100_000).counter_bits(8).build()?;
    /// assert_eq!((filter.max_count(), filter.fingerprint_bits()), (255, 16)); // slots of 24 bits
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn counter_bits(mut self, bits: u32) -> Self {
        self.options.counter_bits = bits;
        self
    }

    /// Sets the minimum life of a count, counted from the first addition of its window. Replaces a
    /// [`time_to_idle`](Builder::time_to_idle). [`CountingFilter`](crate::CountingFilter#counts-within-a-window) lists the resulting
    /// promises.
    pub fn time_to_live(mut self, time: Duration) -> Self {
        self.options.life = Some((time, false));
        self
    }

    /// Sets the minimum life of a count, counted from the last addition of its key. Replaces a
    /// [`time_to_live`](Builder::time_to_live). Lookups, and additions that [`try_add`](crate::CountingFilter::try_add) refuses, do not
    /// restart the time.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    /// use std::time::Duration;
    ///
    /// let minute = Duration::from_secs(60);
    /// let failures = CountingFilter::<String>::builder().capacity(100).time_to_idle(10 * minute).build()?;
    /// failures.add("192.0.2.1")?;
    /// failures.advance_to(9 * minute);
    /// assert_eq!(failures.add("192.0.2.1")?, 2);
    /// failures.advance_to(18 * minute);
    /// assert_eq!(failures.count("192.0.2.1"), 2);
    /// failures.advance_to(21 * minute);
    /// assert_eq!(failures.count("192.0.2.1"), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn time_to_idle(mut self, time: Duration) -> Self {
        self.options.life = Some((time, true));
        self
    }

    /// Sets the least number of steps that the time to live or to idle is divided into, 1 to 254; 6 unless set. It has no effect where
    /// counts do not die. [Expiring filters](#method.steps) have a table of steps and bits.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    /// use std::time::Duration;
    ///
    /// // 2 bits for the steps, 2 for counts up to 4, and 12 for a fingerprint: slots of 16.
    /// let builder = CountingFilter::<u64>::builder().capacity(1_000).false_positive_rate(0.002).counter_bits(2);
    /// let filter = builder.time_to_live(Duration::from_secs(60)).steps(2).build()?;
    /// assert_eq!((filter.max_count(), filter.fingerprint_bits()), (4, 12));
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn steps(mut self, steps: u32) -> Self {
        self.options.steps = steps;
        self
    }
}

impl<K: ?Sized, S> Builder<K, S, Tagged> {
    /// Sets the number of different tags, 1 to 65,535: they are 0 to one less. 7 unless set. It is raised to the largest number of as many
    /// bits, 2^bits - 1. The width of a slot is a multiple of 4 with 3 or 4 bits, of 8 with 5 to 8, and of 16 with more.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::TaggedFilter;
    ///
    /// let filter = TaggedFilter::<String>::builder().capacity(100_000).tags(100).build()?;
    /// assert_eq!((filter.max_tag(), filter.fingerprint_bits()), (126, 17)); // slots of 24 bits
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn tags(mut self, tags: u32) -> Self {
        self.options.tags = tags;
        self
    }
}

fn in_range(rate: f64) -> Result<f64, BuildError> {
    if rate > 0.0 && rate < 1.0 { Ok(rate) } else { Err(BuildError::RateOutOfRange { requested: rate }) }
}

impl<K: ?Sized, S: Clone, T: Kind> Clone for Builder<K, S, T> {
    fn clone(&self) -> Self {
        Builder { hasher: self.hasher.clone(), ..*self }
    }
}

impl<K: ?Sized, S, T: Kind> fmt::Debug for Builder<K, S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("capacity", &self.capacity)
            .field("max_capacity", &self.max_capacity)
            .field("false_positive_rate", &self.rate)
            .field("fingerprint_bits", &self.bits)
            .field("stripes", &self.stripes)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
