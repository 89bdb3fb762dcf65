//! From the user's question to a filter.

use crate::error::BuildError;
use crate::filter::CuckooFilter;
use crate::hashing::DefaultHashBuilder;
use crate::layout::{self, FINGERPRINT_BITS, Plan};
use crate::sys::memory::HugePages;
use core::fmt;
use core::marker::PhantomData;

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

impl<K: ?Sized> Builder<K> {
    pub(crate) fn new() -> Self {
        Builder {
            capacity: None,
            rate: None,
            bits: None,
            stripes: None,
            huge_pages: HugePages::Advised,
            hasher: Hasher::Made(DefaultHashBuilder::new),
            key: PhantomData,
        }
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
    /// come from memory and bulk loads are faster with them.
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
        let hasher = match self.hasher {
            Hasher::Given(hasher) => hasher,
            Hasher::Made(make) => make(),
        };
        let rate = self.rate.or(self.bits.is_none().then_some(DEFAULT_RATE));
        CuckooFilter::from_plan(capacity, rate, &plan, self.huge_pages, bytes, hasher)
    }

    /// The capacity, the plan, and the bytes that it takes.
    fn plan(&self) -> Result<(usize, Plan, usize), BuildError> {
        let capacity = self.capacity.ok_or(BuildError::NoCapacity)?;
        let width = match (self.rate, self.bits) {
            (Some(rate), Some(bits)) => return Err(BuildError::RateAndFingerprintBits { rate, bits }),
            (None, Some(bits)) if FINGERPRINT_BITS.contains(&bits) => bits,
            (None, Some(asked)) => return Err(BuildError::FingerprintBitsOutOfRange { asked }),
            (rate, None) => width_for(capacity, rate.unwrap_or(DEFAULT_RATE))?,
        };
        if self.stripes == Some(0) {
            return Err(BuildError::NoStripes);
        }
        let too_large = BuildError::TooLarge { capacity, fingerprint_bits: width };
        let plan = Plan::new(capacity, width, self.stripes).map_err(|layout::Unplannable| too_large.clone())?;
        let bytes = CuckooFilter::<K, S>::bytes_of(&plan).ok_or(too_large)?;
        Ok((capacity, plan, bytes))
    }
}

fn width_for(capacity: usize, rate: f64) -> Result<u32, BuildError> {
    if !(rate > 0.0 && rate < 1.0) {
        return Err(BuildError::RateOutOfRange { asked: rate });
    }
    layout::fingerprint_bits_for(capacity, rate)
        .ok_or_else(|| BuildError::RateTooLow { asked: rate, lowest: layout::lowest_rate(capacity) })
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
            .field("false_positive_rate", &self.rate)
            .field("fingerprint_bits", &self.bits)
            .field("stripes", &self.stripes)
            .finish_non_exhaustive()
    }
}
