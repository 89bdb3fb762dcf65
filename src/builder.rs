//! From the user's question to a filter.

use crate::error::BuildError;
use crate::filter::CuckooFilter;
use crate::hashing::DefaultHashBuilder;
use crate::layout::{self, Ask, FINGERPRINT_BITS, GROWING_FINGERPRINT_BITS, Plan, Ungrowable};
use crate::parts::{FilterPart, Layout};
use crate::raw::{RawFilter, Tagging};
use crate::sys::memory::HugePages;
use crate::tagged::{Core, Life};
use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;
use core::ops::Range;

/// The false-positive rate of a filter that was not asked for any.
const DEFAULT_RATE: f64 = 0.001;

/// Plans a filter and builds it.
///
/// Give the [`capacity`](Builder::capacity) in keys, and either a [`false_positive_rate`](Builder::false_positive_rate)
/// or the [`fingerprint_bits`](Builder::fingerprint_bits); without both, the rate is 0.1 %, which takes 13 bits. What
/// is impossible is an error of [`build`](Builder::build) that says what would be possible.
///
/// ```
/// use concurrent_cuckoo_filter::CuckooFilter;
///
/// let builder = CuckooFilter::<str>::builder().capacity(100_000).false_positive_rate(0.01);
/// let bytes = builder.memory_usage()?;
/// let filter = builder.build()?;
/// assert_eq!(filter.fingerprint_bits(), 10);
/// assert_eq!(filter.memory_usage(), bytes);
/// assert!(bytes < 134_000);
/// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
/// ```
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder<K: ?Sized, S = DefaultHashBuilder> {
    capacity: Option<usize>,
    max_capacity: Option<usize>,
    rate: Option<f64>,
    bits: Option<u32>,
    stripes: Option<usize>,
    huge_pages: HugePages,
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

impl<K: ?Sized> CuckooFilter<K> {
    /// Builds a filter for this many keys at a false-positive rate of 0.1 %, hashed with random seeds.
    ///
    /// # Panics
    /// As `Vec` does: if the size overflows the address space or the system refuses the memory.
    /// [`Builder::build`] returns an error instead.
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

    /// Begins a filter with a rate, a width, a hasher, a number of stripes or a kind of memory of the caller's choice.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::builder().capacity(1_000).false_positive_rate(0.0001).build()?;
    /// assert_eq!(filter.fingerprint_bits(), 17);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn builder() -> Builder<K> {
        Builder::new()
    }
}

impl<K: ?Sized, S> CuckooFilter<K, S> {
    /// Builds a filter for this many keys at a false-positive rate of 0.1 %, with this hash function.
    ///
    /// # Panics
    /// As [`with_capacity`](CuckooFilter::with_capacity).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    /// use std::hash::RandomState;
    ///
    /// let filter = CuckooFilter::<str, _>::with_capacity_and_hasher(100, RandomState::new());
    /// assert!(filter.insert("key").is_ok());
    /// ```
    #[must_use]
    #[track_caller]
    pub fn with_capacity_and_hasher(keys: usize, hasher: S) -> Self {
        match Builder::<K>::new().capacity(keys).hasher(hasher).build() {
            Ok(filter) => filter,
            Err(error) => panic!("{error}"),
        }
    }
}

impl<K: ?Sized> Builder<K> {
    pub(crate) fn new() -> Self {
        Builder {
            capacity: None,
            max_capacity: None,
            rate: None,
            bits: None,
            stripes: None,
            huge_pages: HugePages::Advised,
            hasher: Hasher::Made(DefaultHashBuilder::new),
            key: PhantomData,
        }
    }
}

impl<K: ?Sized> Default for Builder<K> {
    /// As [`CuckooFilter::builder`].
    fn default() -> Self {
        Builder::new()
    }
}

impl<K: ?Sized + Hash, S: BuildHasher> Builder<K, S> {
    /// Builds a filter that holds these keys, each once. Without a [`capacity`](Builder::capacity) it is built for as many as
    /// there are; with a larger one, more can follow.
    ///
    /// # Errors
    /// As [`build`](Builder::build); [`BuildError::Refused`] if a key finds no room, as one of those can that are beyond the
    /// capacity.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<str>::builder().items(["a.com", "b.com", "a.com"])?;
    /// assert!(filter.contains("a.com"));
    /// assert_eq!(filter.len(), 2);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn items<I>(mut self, keys: I) -> Result<CuckooFilter<K, S>, BuildError>
    where
        I: IntoIterator<Item: Borrow<K>, IntoIter: ExactSizeIterator>,
    {
        let keys = keys.into_iter();
        self.capacity = self.capacity.or(Some(keys.len()));
        let filter = self.build()?;
        for (index, key) in keys.enumerate() {
            filter.insert_unique(key.borrow()).map_err(|error| BuildError::Refused { index, error })?;
        }
        Ok(filter)
    }
}

impl<K: ?Sized, S> Builder<K, S> {
    /// Sets the number of keys that the filter is to hold. Required.
    ///
    /// That many distinct keys go in, at the rate that was asked for: with 6 bits a fingerprint or more, fewer than one
    /// filter in 10,000 refuses a key before. It is not rounded to a power of two. Copies of one key use it up like
    /// different keys.
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

    /// Lets the filter grow by itself, from the capacity to this number of keys. Without it, its size is fixed.
    ///
    /// That many distinct keys go in, at the rate that was asked for; while there are fewer, the rate is lower. The filter
    /// splits one table after the other in two when it is full, which is a part of an insertion
    /// ([`reserve`](CuckooFilter::reserve) says what it takes) or is done ahead by `reserve`.
    /// Lookups go on meanwhile, and never read more than two buckets. No memory for a split is
    /// [`InsertError::OutOfMemory`](crate::InsertError::OutOfMemory), and the key is not stored.
    ///
    /// # What it costs
    /// At the end about 1.2 bits per key more than a filter that was built for `keys`, and lookups that read the directory first. Before the
    /// end a bit per slot for each doubling to come, and twice the memory just after a doubling:
    /// [`memory_usage_at`](Builder::memory_usage_at) returns the bytes.
    /// A filter begins with room for its [`capacity`](Builder::capacity), and with at least `keys` / 2^17 (for rates below 0.1 % with
    /// more). Its fingerprints are of 6 to 30 bits, by the count of a filter of fixed size. Up to 12,000 keys it grows by copying its
    /// one table into another of twice the size, and keeps the old ones until it is dropped.
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

    /// Sets the part of absent keys for which [`contains`](CuckooFilter::contains) may say "yes", when the filter holds
    /// all of its capacity: above 0, below 1. Takes the narrowest fingerprint that keeps it, of 6 bits at least (0.11):
    /// narrower ones would put the capacity at risk.
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

    /// Sets the bits of a fingerprint, 4 to 32, instead of a rate. 16 bits are the fastest. With 4 or 5 bits so few
    /// classes of keys can be told apart that one may overflow before the capacity is reached.
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

    /// Sets the least number of stripes: one lock and one version for each. The default, up to 1024 within 1 % of the
    /// memory, serves dozens of writing threads; more help only where more threads write at the same time. A stripe
    /// spans at least 16 buckets, so small filters may have fewer.
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

    /// Says whether the system is advised to back large tables (from 2 MiB on) by huge pages. It is by default: lookups that
    /// come from memory and bulk loads are faster with them. The tables of a filter that grows stand side by side from
    /// 4 MiB on, for that sake.
    ///
    /// Only Linux takes the advice, where transparent huge pages are set to `madvise` or `always`; elsewhere this changes
    /// nothing. Advice that is refused is no error. The system supplies memory by the page, as it is touched, so a large
    /// filter that holds few keys takes less memory without huge pages.
    /// [`memory_usage`](Builder::memory_usage) is the same with and without. A filter that is read from a snapshot is
    /// always advised.
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
    /// Hashes are 64 bits, and all of them count: two keys of equal hash cannot be told apart. A poor spread is mended
    /// (small integers through an identity hash are fine), missing bits are not. A function that spreads its hashes
    /// well by itself may be marked as [`WellMixed`](crate::WellMixed): then no time is spent on mixing them again.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    /// use std::hash::RandomState;
    ///
    /// let filter = CuckooFilter::<str>::builder().capacity(10).hasher(RandomState::new()).build()?;
    /// filter.insert("key")?;
    /// assert!(filter.contains("key"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn hasher<T>(self, hasher: T) -> Builder<K, T> {
        Builder {
            capacity: self.capacity,
            max_capacity: self.max_capacity,
            rate: self.rate,
            bits: self.bits,
            stripes: self.stripes,
            huge_pages: self.huge_pages,
            hasher: Hasher::Given(hasher),
            key: PhantomData,
        }
    }

    /// Says how many bytes the filter would take, everything included, without taking them.
    ///
    /// # Errors
    /// As [`build`](Builder::build), but for the memory that the system refuses.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let a_thousand_million = CuckooFilter::<str>::builder().capacity(1_000_000_000).memory_usage()?;
    /// assert!(a_thousand_million / 1_000_000 < 1700);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn memory_usage(&self) -> Result<usize, BuildError> {
        self.plan().map(|(_, _, bytes)| bytes)
    }

    /// Says how many bytes the filter would take when it holds this many keys. Without
    /// [`max_capacity`](Builder::max_capacity) it takes the same at all times.
    ///
    /// All tables fill alike, so that all of them are split within a few percent of the keys: this is exact between these
    /// times. For more keys than fit, it is the memory of the largest size.
    ///
    /// # Errors
    /// As [`memory_usage`](Builder::memory_usage).
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
        let (capacity, plan, _) = self.plan()?;
        let too_large = BuildError::TooLarge { capacity, fingerprint_bits: plan.fingerprint_bits };
        CuckooFilter::<K, S>::bytes_at(&plan, plan.doublings_for(keys)).ok_or(too_large)
    }

    /// Plans the filter without taking its memory: where its keys lie, for filters that are built in parts.
    ///
    /// # Errors
    /// As [`memory_usage`](Builder::memory_usage); if the filter is to grow.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, StableHashBuilder};
    ///
    /// let hasher = StableHashBuilder::with_keys(1, 2);
    /// let layout = CuckooFilter::<str>::builder().capacity(10_000_000_000).hasher(hasher).layout()?;
    /// assert!(layout.part_of_hash(layout.hash("mailinator.com"), 1000) < 1000);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn layout(self) -> Result<Layout<K, S>, BuildError> {
        let (capacity, plan, _) = self.plan()?;
        if plan.grows() {
            return Err(BuildError::GrowingPart);
        }
        Ok(Layout::new(capacity, self.asked_rate(), plan, self.hasher.make()))
    }

    /// Builds a part of the filter, empty: these shards, with the memory of these alone. [`Layout::part`] gives shards
    /// of even parts.
    ///
    /// # Errors
    /// As [`build`](Builder::build); if the filter has no such shards, or is to grow.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, StableHashBuilder};
    ///
    /// let builder = || CuckooFilter::<str>::builder().capacity(10_000_000).hasher(StableHashBuilder::with_keys(1, 2));
    /// let shards = builder().layout()?.part(3, 10);
    /// let part = builder().build_shards(shards)?;
    /// assert!(part.memory_usage() < builder().memory_usage()? / 9);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn build_shards(self, shards: Range<usize>) -> Result<FilterPart<K, S>, BuildError> {
        let huge_pages = self.huge_pages;
        FilterPart::new(self.layout()?, shards, huge_pages)
    }

    /// Builds the filter, empty. Its memory is reserved, not written: the system supplies zeroed pages as keys arrive. So a
    /// large filter is built fast, however many were built before it.
    ///
    /// # Errors
    /// [`BuildError`] for each wish that cannot be met, and when the system refuses the memory.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{BuildError, CuckooFilter};
    ///
    /// let builder = || CuckooFilter::<str>::builder().capacity(1000);
    /// assert!(builder().build().is_ok());
    /// let error = builder().fingerprint_bits(40).build().unwrap_err();
    /// assert_eq!(error.to_string(), "fingerprints of 40 bits were asked for; 4 to 32 are possible");
    /// ```
    pub fn build(self) -> Result<CuckooFilter<K, S>, BuildError> {
        let (capacity, plan, bytes) = self.plan()?;
        let max_capacity = self.max_capacity.unwrap_or(capacity);
        CuckooFilter::from_plan(
            [capacity, max_capacity],
            self.asked_rate(),
            &plan,
            self.huge_pages,
            bytes,
            self.hasher.make(),
        )
    }

    /// What a filter in memory of another kind is made of: capacity, rate, plan, hasher, and whether huge pages are advised.
    #[cfg(all(feature = "shared", target_os = "linux"))]
    pub(crate) fn planned(self) -> Result<(usize, Option<f64>, Plan, S, bool), BuildError> {
        let ((capacity, plan, _), rate) = (self.plan()?, self.asked_rate());
        Ok((capacity, rate, plan, self.hasher.make(), self.huge_pages == HugePages::Advised))
    }

    /// The rate that is asked for, unless a width is.
    fn asked_rate(&self) -> Option<f64> {
        self.rate.or(self.bits.is_none().then_some(DEFAULT_RATE))
    }

    /// The capacity, the plan, and the bytes that it takes.
    fn plan(&self) -> Result<(usize, Plan, usize), BuildError> {
        let capacity = self.capacity.ok_or(BuildError::NoCapacity)?;
        if let Some(max_capacity) = self.max_capacity {
            return self.growing_plan(capacity, max_capacity);
        }
        let width = match (self.rate, self.bits) {
            (Some(rate), Some(bits)) => return Err(BuildError::RateAndFingerprintBits { rate, bits }),
            (None, Some(bits)) if FINGERPRINT_BITS.contains(&bits) => bits,
            (None, Some(asked)) => {
                return Err(BuildError::FingerprintBitsOutOfRange { asked, possible: FINGERPRINT_BITS });
            }
            (rate, None) => width_for(capacity, rate.unwrap_or(DEFAULT_RATE))?,
        };
        let plan = self.plan_of(capacity, width, width)?;
        let too_large = BuildError::TooLarge { capacity, fingerprint_bits: width };
        let bytes = CuckooFilter::<K, S>::bytes_of(&plan).ok_or(too_large)?;
        Ok((capacity, plan, bytes))
    }

    /// The same for slots with a tag of this many bits, in a filter whose value takes `value` bytes. It has room for
    /// `spare` of its capacity more.
    pub(crate) fn tagged_plan(&self, tag_bits: u32, spare: f64, value: usize) -> Result<(Plan, usize), BuildError> {
        let asked = self.capacity.ok_or(BuildError::NoCapacity)?;
        let with_spare = |keys: usize| keys.saturating_add((keys as f64 * spare).ceil() as usize);
        let (capacity, rate) = (with_spare(asked), self.rate.unwrap_or(DEFAULT_RATE));
        let widest = FINGERPRINT_BITS.end() - tag_bits;
        let plan = match self.max_capacity {
            Some(most) if most < asked => {
                return Err(BuildError::MaxCapacityTooLow { capacity: asked, max_capacity: most });
            }
            Some(most) => self.plan_growth(capacity, with_spare(most), Ask::Rate(in_range(rate)?), tag_bits)?,
            None => {
                let slot_bits = |bits| Plan::slot_bits_for(bits, tag_bits);
                let slot_bits = bits_for(capacity, rate)?.and_then(slot_bits);
                let slot_bits = slot_bits.ok_or_else(|| too_low(capacity, rate, widest))?;
                self.plan_of(capacity, slot_bits, slot_bits - tag_bits)?.with_tags(tag_bits)
            }
        };
        let too_large = BuildError::TooLarge { capacity, fingerprint_bits: plan.fingerprint_bits };
        let bytes =
            RawFilter::<Tagging>::bytes_of(&plan).and_then(|bytes| bytes.checked_add(value)).ok_or(too_large)?;
        Ok((plan, bytes))
    }

    /// A filter with slots of this width, of which the fingerprint takes some or all.
    fn plan_of(&self, capacity: usize, slot_bits: u32, fingerprint_bits: u32) -> Result<Plan, BuildError> {
        if self.stripes == Some(0) {
            return Err(BuildError::NoStripes);
        }
        let plan = Plan::new(capacity, slot_bits, self.stripes);
        plan.map_err(|layout::Unplannable| BuildError::TooLarge { capacity, fingerprint_bits })
    }

    /// An empty filter of this plan, of `bytes` in all.
    pub(crate) fn build_tagged(self, plan: &Plan, bytes: usize, life: Option<Life>) -> Result<Core<S>, BuildError> {
        let raw = RawFilter::new(plan, self.huge_pages).ok_or(BuildError::OutOfMemory { bytes })?;
        let (capacity, rate) = (self.capacity.unwrap_or_default(), self.rate.unwrap_or(DEFAULT_RATE));
        let max_capacity = self.max_capacity.unwrap_or(capacity);
        Ok(Core::new(raw, self.hasher.make(), [capacity, max_capacity], Some(rate), life))
    }
}

impl<K: ?Sized, S> Builder<K, S> {
    /// As [`Builder::plan`], of a filter that grows.
    fn growing_plan(&self, capacity: usize, max_capacity: usize) -> Result<(usize, Plan, usize), BuildError> {
        if max_capacity < capacity {
            return Err(BuildError::MaxCapacityTooLow { capacity, max_capacity });
        }
        let ask = match (self.rate, self.bits) {
            (Some(rate), Some(bits)) => return Err(BuildError::RateAndFingerprintBits { rate, bits }),
            (None, Some(bits)) if GROWING_FINGERPRINT_BITS.contains(&bits) => Ask::Bits(bits),
            (None, Some(asked)) => {
                return Err(BuildError::FingerprintBitsOutOfRange { asked, possible: GROWING_FINGERPRINT_BITS });
            }
            (rate, None) => Ask::Rate(in_range(rate.unwrap_or(DEFAULT_RATE))?),
        };
        let plan = self.plan_growth(capacity, max_capacity, ask, 0)?;
        let too_large = BuildError::TooLarge { capacity: max_capacity, fingerprint_bits: plan.fingerprint_bits };
        let bytes = CuckooFilter::<K, S>::bytes_of(&plan).ok_or(too_large)?;
        Ok((capacity, plan, bytes))
    }

    fn plan_growth(&self, capacity: usize, most: usize, ask: Ask, tag_bits: u32) -> Result<Plan, BuildError> {
        if self.stripes == Some(0) {
            return Err(BuildError::NoStripes);
        }
        Plan::growing(capacity, most, ask, self.stripes, tag_bits).map_err(|error| match error {
            Ungrowable::RateTooLow { lowest } => {
                let asked = self.rate.unwrap_or(DEFAULT_RATE);
                let widest = (*GROWING_FINGERPRINT_BITS.end()).min(FINGERPRINT_BITS.end() - tag_bits);
                BuildError::RateTooLow { asked, lowest, widest }
            }
            Ungrowable::TooLarge { fingerprint_bits } => BuildError::TooLarge { capacity: most, fingerprint_bits },
        })
    }
}

fn in_range(rate: f64) -> Result<f64, BuildError> {
    if rate > 0.0 && rate < 1.0 { Ok(rate) } else { Err(BuildError::RateOutOfRange { asked: rate }) }
}

fn width_for(capacity: usize, rate: f64) -> Result<u32, BuildError> {
    bits_for(capacity, rate)?.ok_or_else(|| too_low(capacity, rate, *FINGERPRINT_BITS.end()))
}

/// The bits of a fingerprint for this rate; `None` if there is none so wide.
fn bits_for(capacity: usize, rate: f64) -> Result<Option<u32>, BuildError> {
    Ok(layout::fingerprint_bits_for(capacity, in_range(rate)?))
}

fn too_low(capacity: usize, rate: f64, widest: u32) -> BuildError {
    BuildError::RateTooLow { asked: rate, lowest: layout::lowest_rate(capacity, widest), widest }
}

impl<K: ?Sized, S: Clone> Clone for Builder<K, S> {
    fn clone(&self) -> Self {
        Builder { hasher: self.hasher.clone(), ..*self }
    }
}

impl<K: ?Sized, S> fmt::Debug for Builder<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("capacity", &self.capacity)
            .field("max_capacity", &self.max_capacity)
            .field("false_positive_rate", &self.rate)
            .field("fingerprint_bits", &self.bits)
            .field("stripes", &self.stripes)
            .finish_non_exhaustive()
    }
}
