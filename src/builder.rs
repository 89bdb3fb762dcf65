//! Sizes and options of a filter, checked and turned into a plan.

use crate::error::BuildError;
use crate::filter::key::BatchKey;
use crate::filter::kind::{Beside, Insert, Kind, Options, Plain, Timeless};
use crate::filter::{Filter, Life, Time};
use crate::hashing::DefaultHashBuilder;
use crate::layout::{self, Accuracy, FINGERPRINT_BITS, Plan, Ungrowable};
use crate::raw::{IfPresent, RawFilter};
use crate::sys::memory::HugePages;
use core::fmt;
use core::hash::BuildHasher;
use core::marker::PhantomData;

/// The false-positive rate unless requested otherwise.
const DEFAULT_RATE: f64 = 0.001;

/// Plans a filter of any kind and builds it.
///
/// Set the [`capacity`](Builder::capacity) in keys, and either a [`false_positive_rate`](Builder::false_positive_rate) or the
/// [`fingerprint_bits`](Builder::fingerprint_bits); without both, the rate is 0.1 %, which takes 13 bits. An expiring filter also needs a
/// [`time_to_live`](Builder::time_to_live).
///
/// ```
/// use concurrent_cuckoo_filter::CuckooFilter;
///
/// let builder = CuckooFilter::<String>::builder().capacity(100_000).false_positive_rate(0.01);
/// assert!(builder.memory_usage()? < 134_000);
/// assert_eq!(builder.build()?.config().fingerprint_bits, 10);
/// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
/// ```
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder<K: ?Sized, S = DefaultHashBuilder, T: Kind = Plain> {
    capacity: Option<usize>,
    max_capacity: Option<usize>,
    rate: Option<f64>,
    bits: Option<u32>,
    stripes: Option<usize>,
    pub(crate) huge_pages: HugePages,
    pub(crate) options: Options,
    pub(crate) hasher: Hasher<S>,
    types: PhantomData<fn(&K) -> T>,
}

#[derive(Clone)]
pub(crate) enum Hasher<S> {
    Given(S),
    /// Made at each build, so that a builder used twice gives filters with seeds of their own.
    Made(fn() -> S),
}

impl<S> Hasher<S> {
    pub(crate) fn make(self) -> S {
        match self {
            Hasher::Given(hasher) => hasher,
            Hasher::Made(make) => make(),
        }
    }
}

impl<K: ?Sized, T: Kind> Filter<K, DefaultHashBuilder, T> {
    /// Returns a [`Builder`], for a filter with a rate, a width, a hash function, a number of stripes or other options.
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
    /// assert_eq!(CuckooFilter::<u64>::with_capacity(100_000).config().fingerprint_bits, 13);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn with_capacity(keys: usize) -> Self {
        built(Builder::default().capacity(keys))
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
            options: Options::DEFAULT,
            hasher: Hasher::Made(DefaultHashBuilder::default),
            types: PhantomData,
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
    /// assert_eq!(CuckooFilter::<String>::builder().items(["a.com", "b.com", "a.com"])?.len(), 2);
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
            let admitted = filter.raw.put(filter.mixed(&key), filter.put(IfPresent::Keep));
            admitted.map_err(|error| BuildError::Refused { index, error })?;
        }
        Ok(filter)
    }
}

impl<K: ?Sized, S, T: Kind> Builder<K, S, T> {
    /// Sets the number of keys that the filter is to hold, or of an expiring filter the largest number of keys alive at the same time.
    /// Required.
    ///
    /// That many distinct keys fit, at the requested rate: with fingerprints of 6 bits or more, fewer than one filter in 10,000 refuses
    /// a key before. It is not rounded to a power of two. Copies of one key use it up like different keys, and sooner where most keys
    /// have two or more: the guide has the numbers.
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
    /// first. Until it has that size, one bit per slot for each doubling to come, and twice the memory just after a doubling:
    /// [`memory_usage_at`](Builder::memory_usage_at) returns the bytes, and docs/guide.md has a table. So choose a maximum that is
    /// expected, 16 to 64 times the capacity: at 64 times, the filter takes 20 bits per key when its first tables are full and 39
    /// just after they have doubled, where a filter of fixed size takes 13.6. A filter begins with room for its
    /// [`capacity`](Builder::capacity), and with at least `keys` / 2^17 (more for rates below 0.1 %). Its fingerprints have 6 to 30
    /// bits (fewer beside deadlines, counters and tags), counted as in a filter of fixed size. Where its only table is too small to be
    /// split (below 12,000 keys, in some ranges up to 125,000), it is copied into another of twice the size, and the old ones are
    /// kept until the filter is dropped.
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
    /// assert!(CuckooFilter::<u32>::builder().capacity(1000).fingerprint_bits(8).memory_usage()? < 2600);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn fingerprint_bits(mut self, bits: u32) -> Self {
        self.bits = Some(bits);
        self
    }

    /// Sets the least number of stripes: one lock and one version each, in 128 bytes. The default is up to 1024 within 1 % of the memory,
    /// and 8 in small filters. More stripes help where several threads write to a small filter without pause: two threads together make
    /// half as many changes as one alone with 8 stripes, and four fifths as many with 512 (docs/benchmarks/limits.md has the table,
    /// and a model of 64 threads). A stripe spans at least 16 buckets, so small filters may have fewer.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let builder = || CuckooFilter::<u32>::builder().capacity(1_000_000);
    /// assert!(builder().stripes(1000).memory_usage()? > builder().memory_usage()?);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn stripes(mut self, stripes: usize) -> Self {
        self.stripes = Some(stripes);
        self
    }

    /// Sets whether the system is advised to back large tables (from 2 MiB on) by huge pages. It is by default: lookups out of cache and
    /// bulk loads are faster with them. The tables of a growing filter lie side by side from 4 MiB on, for their sake.
    ///
    /// Only Linux takes the advice, where transparent huge pages are set to `madvise` or `always`. The system supplies memory by the page,
    /// as it is touched, so a large filter with few keys takes less memory without huge pages, at an equal
    /// [`memory_usage`](Builder::memory_usage). A clone is always advised, and so is a filter read from a snapshot.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// assert!(CuckooFilter::<u32>::builder().capacity(10_000_000).huge_pages(false).build()?.is_empty());
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
    pub fn hasher<H>(self, hasher: H) -> Builder<K, H, T> {
        let Builder { capacity, max_capacity, rate, bits, stripes, huge_pages, options, types, .. } = self;
        let hasher = Hasher::Given(hasher);
        Builder { capacity, max_capacity, rate, bits, stripes, huge_pages, options, hasher, types }
    }

    /// Returns the memory in bytes that the filter would take, everything included, without taking it.
    ///
    /// # Errors
    /// Those of [`build`](Builder::build), except [`BuildError::OutOfMemory`].
    pub fn memory_usage(&self) -> Result<usize, BuildError> {
        Ok(self.plan()?.bytes)
    }

    /// Returns the memory in bytes that the filter would take with this many keys in it. It differs from
    /// [`memory_usage`](Builder::memory_usage) with a [`max_capacity`](Builder::max_capacity) only.
    ///
    /// All tables fill alike, and are split within a few percent of the keys: the result is exact between these times. For more keys
    /// than fit, it is the memory of the largest size. Errors are those of [`memory_usage`](Builder::memory_usage).
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
        let Planned { plan, capacities: [_, most], life, .. } = self.plan()?;
        let slots = life.map_or(keys, |life| life.slots_for(keys));
        Self::bytes_at(&plan, plan.doublings_for(slots), most)
    }

    /// Builds the empty filter. Its memory is reserved, not written: the system supplies zeroed pages as keys arrive.
    ///
    /// # Errors
    /// [`BuildError`] for an impossible request, with the possible values, and if allocation fails.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{BuildError, CuckooFilter, ExpiringFilter};
    ///
    /// let error = CuckooFilter::<String>::builder().capacity(1000).fingerprint_bits(40).build().unwrap_err();
    /// assert_eq!(error.to_string(), "40 bits per fingerprint were requested; 4 to 32 are possible");
    ///
    /// assert_eq!(ExpiringFilter::<u64>::builder().capacity(100).build().unwrap_err(), BuildError::NoTimeToLive);
    /// ```
    pub fn build(self) -> Result<Filter<K, S, T>, BuildError> {
        let Planned { plan, capacities, rate, bytes, life } = self.plan()?;
        let raw = RawFilter::new(&plan, self.huge_pages).ok_or(BuildError::OutOfMemory { bytes })?;
        let time = T::Time::new(&raw, life, 0);
        Ok(Filter::from_raw(capacities, rate, raw, time, self.hasher.make()))
    }

    fn bytes_at(plan: &Plan, doublings: u32, capacity: usize) -> Result<usize, BuildError> {
        let bytes = RawFilter::<T::Slots>::bytes_at(plan, doublings);
        let bytes = bytes.and_then(|bytes| bytes.checked_add(size_of::<Filter<K, S, T>>()));
        let too_large = BuildError::TooLarge { capacity, fingerprint_bits: plan.fingerprint_bits };
        bytes.filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or(too_large)
    }

    pub(crate) fn plan(&self) -> Result<Planned, BuildError> {
        let capacity = self.capacity.ok_or(BuildError::NoCapacity)?;
        let most = self.max_capacity.unwrap_or(capacity);
        if most < capacity {
            return Err(BuildError::MaxCapacityTooLow { capacity, max_capacity: most });
        }
        if self.stripes == Some(0) {
            return Err(BuildError::NoStripes);
        }
        let Beside { bits: tag_bits, count_bits, life } = T::beside(&self.options)?;
        let slots_for = |keys: usize| life.map_or(keys, |life| life.slots_for(keys));
        let grows = self.max_capacity.is_some();
        let possible = match grows {
            true => layout::growing_fingerprint_bits(tag_bits),
            false => *FINGERPRINT_BITS.start()..=FINGERPRINT_BITS.end() - tag_bits,
        };
        let ask = match (self.rate, self.bits) {
            (Some(rate), Some(bits)) => return Err(BuildError::RateAndFingerprintBits { rate, bits }),
            (None, Some(bits)) if possible.contains(&bits) => Accuracy::Bits(bits),
            (None, Some(requested)) => {
                return Err(BuildError::OutOfRange { what: "bits per fingerprint", requested, possible });
            }
            (rate, None) => Accuracy::Rate(in_range(rate.unwrap_or(DEFAULT_RATE))?),
        };
        let (first, last) = (slots_for(capacity), slots_for(most));
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
            let too_large = BuildError::TooLarge { capacity, fingerprint_bits: slot_bits - tag_bits };
            Plan::new(first, slot_bits, self.stripes).ok_or(too_large)?.with_tags(tag_bits)
        };
        let plan = Plan { count_bits, ..plan };
        let rate = self.rate.or(self.bits.is_none().then_some(DEFAULT_RATE));
        Ok(Planned { plan, capacities: [capacity, most], rate, bytes: Self::bytes_at(&plan, 0, most)?, life })
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
    life: Option<Life>,
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
