//! Every sentence that a user may be told.

use core::error::Error;
use core::fmt;

/// Why a key was not inserted. Match with `{ .. }`: variants may gain fields. The filter is as it was: no other key and no count has changed.
///
/// ```
/// use concurrent_cuckoo_filter::{CuckooFilter, InsertError};
///
/// let filter = CuckooFilter::<str>::with_capacity(1000);
/// let error = loop {
///     if let Err(error) = filter.insert("again and again") {
///         break error;
///     }
/// };
/// assert!(matches!(error, InsertError::TooManyCopies { .. }));
/// assert_eq!(error.to_string(), "all 8 slots of this key hold copies of it already");
/// assert_eq!(filter.len(), 8);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InsertError {
    /// No chain of relocations within reach makes room for the key. It was decided while the writers of the key's
    /// shard stood still. Up to the capacity that was asked for this is not expected (see
    /// [`Builder::capacity`](crate::Builder::capacity)).
    #[non_exhaustive]
    Full,
    /// All 8 slots of the key's two buckets hold its own fingerprint. More room would not help: either the key was
    /// inserted 8 times, or other keys share its fingerprint and buckets.
    #[non_exhaustive]
    TooManyCopies,
}

impl fmt::Display for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InsertError::Full => write!(f, "the filter is full: no relocation makes room for this key"),
            InsertError::TooManyCopies => write!(f, "all 8 slots of this key hold copies of it already"),
        }
    }
}

impl Error for InsertError {}

/// Why a filter cannot be built: what was asked for, and what is possible.
///
/// ```
/// use concurrent_cuckoo_filter::{BuildError, CuckooFilter};
///
/// let error = CuckooFilter::<str>::builder().capacity(1000).false_positive_rate(1.5).build().unwrap_err();
/// assert!(matches!(error, BuildError::RateOutOfRange { asked: 1.5, .. }));
/// assert_eq!(
///     error.to_string(),
///     "a false-positive rate of 1.5 was asked for; it must lie between 0 and 1, both excluded"
/// );
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BuildError {
    /// [`Builder::capacity`](crate::Builder::capacity) was not called.
    #[non_exhaustive]
    NoCapacity,
    /// A false-positive rate that is not a number between 0 and 1.
    #[non_exhaustive]
    RateOutOfRange {
        /// The rate asked for.
        asked: f64,
    },
    /// A false-positive rate that would take fingerprints of more than 32 bits.
    #[non_exhaustive]
    RateTooLow {
        /// The rate asked for.
        asked: f64,
        /// The rate of 32-bit fingerprints at this capacity.
        lowest: f64,
    },
    /// Fingerprints narrower than 4 or wider than 32 bits.
    #[non_exhaustive]
    FingerprintBitsOutOfRange {
        /// The bits asked for.
        asked: u32,
    },
    /// Both a rate and a width: each decides the other.
    #[non_exhaustive]
    RateAndFingerprintBits {
        /// The rate asked for.
        rate: f64,
        /// The bits asked for.
        bits: u32,
    },
    /// No stripes: without a lock nothing can be inserted.
    #[non_exhaustive]
    NoStripes,
    /// The filter does not fit the address space.
    #[non_exhaustive]
    TooLarge {
        /// The capacity asked for.
        capacity: usize,
        /// The bits of a fingerprint.
        fingerprint_bits: u32,
    },
    /// The system refused the memory.
    #[non_exhaustive]
    OutOfMemory {
        /// The memory of the filter, everything included.
        bytes: usize,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            BuildError::NoCapacity => {
                write!(f, "no capacity was asked for; give the number of keys that the filter is to hold")
            }
            BuildError::RateOutOfRange { asked } => {
                write!(f, "a false-positive rate of {asked} was asked for; it must lie between 0 and 1, both excluded")
            }
            BuildError::RateTooLow { asked, lowest } => write!(
                f,
                "a false-positive rate of {asked:e} was asked for; the widest fingerprint, of 32 bits, reaches {:.2e}",
                // Rounded up, so that the rate that is named can be had.
                lowest * 1.005
            ),
            BuildError::FingerprintBitsOutOfRange { asked } => {
                write!(f, "fingerprints of {asked} bits were asked for; 4 to 32 are possible")
            }
            BuildError::RateAndFingerprintBits { rate, bits } => write!(
                f,
                "both a false-positive rate of {rate} and fingerprints of {bits} bits were asked for; give one of them"
            ),
            BuildError::NoStripes => write!(f, "0 stripes were asked for; at least 1 is needed"),
            BuildError::TooLarge { capacity, fingerprint_bits } => write!(
                f,
                "a capacity of {capacity} keys at {fingerprint_bits} bits was asked for; \
                 it does not fit the {} bits of the address space",
                usize::BITS
            ),
            BuildError::OutOfMemory { bytes } => {
                write!(f, "the filter takes {bytes} bytes of memory, and the system refused them")
            }
        }
    }
}

impl Error for BuildError {}
