//! The errors and their texts.

mod files;

#[cfg(all(feature = "shared", target_os = "linux"))]
pub use files::SharedError;
pub use files::{SnapshotError, SnapshotPlace};

use core::error::Error;
use core::fmt;
use core::ops::{Range, RangeInclusive};

/// `Debug` is `Display`: a `main` that returns an error prints it by `Debug`.
macro_rules! debug_is_display {
    ($($error:ident),+) => {
        $(impl fmt::Debug for $error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        })+
    };
}
use debug_is_display;
debug_is_display!(BuildError, MergeError, PartError);

/// Defines an enum of errors: each variant with its documentation and, after `=>`, its text as arguments of `write!`. The enum
/// and its variants with named fields are `non_exhaustive`.
macro_rules! errors {
    (
        $(#[$about:meta])*
        pub enum $name:ident {
            $(
                $(#[$means:meta])*
                $variant:ident
                $({ $($(#[$holds:meta])* $field:ident: $type:ty,)+ })?
                $(($inner:ident: $inner_type:ty))?
                => ($($said:tt)+),
            )+
        }
    ) => {
        $(#[$about])*
        #[non_exhaustive]
        pub enum $name {
            $(
                $(#[$means])*
                // Repeats with the fields, and adds nothing for any of them.
                $($(#[cfg_attr(any(), $field)])+ #[non_exhaustive])?
                $variant $({ $($(#[$holds])* $field: $type,)+ })? $(($inner_type))?,
            )+
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $($name::$variant $({ $($field),+ })? $(($inner))? => write!(f, $($said)+),)+
                }
            }
        }
    };
}
use errors;

errors! {
    /// The reason why a key was not inserted. The filter is unchanged: no other key and no count is affected.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, InsertError};
    ///
    /// let filter = CuckooFilter::<String>::with_capacity(1000);
    /// let error = loop {
    ///     if let Err(error) = filter.insert("again and again") {
    ///         break error;
    ///     }
    /// };
    /// assert_eq!(error, InsertError::TooManyCopies);
    /// assert_eq!(error.to_string(), "all 8 slots of this key hold copies of it already");
    /// assert_eq!(filter.len(), 8);
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    // As wide as a value, so that a result is two registers: with one byte, an insertion into a growing filter waited for
    // a store of which it loaded a part, and took up to 1.2 times as long.
    #[repr(u32)]
    pub enum InsertError {
        /// Both buckets of the key were full, and a search of up to 2000 buckets found no path of relocations that makes room, as of one
        /// moment between the call and its return. After a refusal, batches search fewer buckets. The error is not expected up to the
        /// requested [`capacity`](crate::Builder::capacity), unless most keys have two or more copies or tags, nor in a growing filter up
        /// to its [`max_capacity`](crate::Builder::max_capacity), unless most have four or more.
        Full => ("the filter is full: no relocation makes room for this key"),
        /// All 8 slots of the key's two buckets hold its fingerprint. A larger filter does not help: either the key was
        /// inserted 8 times, or other keys share its fingerprint and buckets.
        TooManyCopies => ("all 8 slots of this key hold copies of it already"),
        /// The filter must grow ([`Builder::max_capacity`](crate::Builder::max_capacity)), and allocation failed. A
        /// later insertion may succeed.
        OutOfMemory => ("the filter failed to allocate the memory to grow"),
        /// The life passed to [`insert_for`](crate::ExpiringFilter::insert_for) exceeds the time to live of the filter,
        /// which bounds the deadlines that a slot can store.
        BeyondTimeToLive => ("the requested life exceeds the time to live of the filter, the `time_to_live` of its `config()`"),
        /// The tag exceeds [`max_tag`](crate::Config::max_tag).
        TagTooLarge => ("the tag exceeds the largest tag of the filter, the `max_tag` of its `config()`"),
    }
}

errors! {
    /// The reason why a filter cannot be built. The text names the requested value and the possible ones.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{BuildError, CuckooFilter};
    ///
    /// let error = CuckooFilter::<String>::builder().capacity(1000).false_positive_rate(1.5).build().unwrap_err();
    /// assert!(matches!(error, BuildError::RateOutOfRange { requested: 1.5, .. }));
    /// assert_eq!(
    ///     error.to_string(),
    ///     "a false-positive rate of 1.5 was requested; it must lie between 0 and 1, both excluded"
    /// );
    /// assert_eq!(format!("{error:?}"), error.to_string()); // a `main` that returns it prints the sentence
    /// ```
    #[derive(Clone, PartialEq)]
    pub enum BuildError {
        /// [`Builder::capacity`](crate::Builder::capacity) was not called.
        NoCapacity => ("no capacity was requested; call `capacity` with the expected number of keys"),
        /// The false-positive rate is not a number between 0 and 1.
        RateOutOfRange {
            /// The requested rate.
            requested: f64,
        } => ("a false-positive rate of {requested} was requested; it must lie between 0 and 1, both excluded"),
        /// The false-positive rate requires wider fingerprints than fit: 32 bits, or 30 in a growing filter, less the
        /// bits of a deadline, a counter or a tag.
        RateTooLow {
            /// The requested rate.
            requested: f64,
            /// The rate of the widest fingerprints at this capacity.
            lowest: f64,
            /// The bits of the widest fingerprints.
            widest: u32,
        } => (
            "a false-positive rate of {requested:e} was requested; the widest fingerprint, of {widest} bits, reaches {:.2e}",
            // Rounded up, so that a request of the named rate succeeds.
            lowest * 1.005
        ),
        /// The bits of a fingerprint or of a counter, the steps of the time to live or the number of tags are out of range.
        OutOfRange {
            /// The name of the option, in the plural.
            what: &'static str,
            /// The requested number.
            requested: u32,
            /// The possible numbers.
            possible: RangeInclusive<u32>,
        } => ("{requested} {what} were requested; {} to {} are possible", possible.start(), possible.end()),
        /// Both a rate and a width were requested, each of which determines the other.
        RateAndFingerprintBits {
            /// The requested rate.
            rate: f64,
            /// The requested bits.
            bits: u32,
        } => ("both a false-positive rate of {rate} and fingerprints of {bits} bits were requested; give one of them"),
        /// The filter is to grow to fewer keys than its capacity.
        MaxCapacityTooLow {
            /// The requested capacity.
            capacity: usize,
            /// The requested `max_capacity`.
            max_capacity: usize,
        } => ("a `max_capacity` of {max_capacity} keys was requested, which is below the capacity of {capacity} keys"),
        /// A part of a growing filter was requested. Parts have a fixed size.
        GrowingPart => ("a part of a growing filter was requested; a filter built in parts has a fixed size"),
        /// Zero stripes were requested. Insertions need at least one lock.
        NoStripes => ("0 stripes were requested; at least 1 is needed"),
        /// The shards requested for a part do not exist, or the range is empty.
        NoSuchShards {
            /// The requested shards.
            requested: Range<usize>,
            /// The number of shards of the filter.
            shards: usize,
        } => ("a part with shards {requested:?} was requested; the filter has {shards} shards, and a part needs at least one"),
        /// A key passed to [`Builder::items`](crate::Builder::items) was refused.
        Refused {
            /// The index of the key in the list.
            index: usize,
            /// The reason.
            error: InsertError,
        } => ("key {index} of the list was refused: {error}"),
        /// The filter exceeds the address space.
        TooLarge {
            /// The requested capacity.
            capacity: usize,
            /// The bits of a fingerprint.
            fingerprint_bits: u32,
        } => (
            "a capacity of {capacity} keys at {fingerprint_bits} bits was requested; \
                         it does not fit the {} bits of the address space",
            usize::BITS
        ),
        /// [`Builder::time_to_live`](crate::Builder::time_to_live) was not called, or called with zero.
        NoTimeToLive => ("no time to live was requested; call `time_to_live` with a duration above zero"),
        /// The time to live exceeds 2^64 nanoseconds.
        TimeToLiveTooLong {
            /// The requested time to live.
            requested: core::time::Duration,
        } => ("a time to live of {requested:?} was requested; up to 584 years are possible"),
        /// Allocation failed.
        OutOfMemory {
            /// The total memory of the filter.
            bytes: usize,
        } => ("failed to allocate the {bytes} bytes of the filter"),
    }
}

/// The reason why a part of a filter stored none of the keys: one of them belongs to another part. The part is unchanged.
///
/// ```
/// use concurrent_cuckoo_filter::CuckooFilter;
///
/// let part = CuckooFilter::<u64>::builder().capacity(1_000_000).build_shards(2..4)?;
/// let hash = (0..).find(|&hash| part.layout().shard_of_hash(hash) == 0).unwrap();
/// let error = part.insert_batch(&[hash]).unwrap_err();
/// assert_eq!(error.to_string(), "key 0 belongs to shard 0; this part has shards 2..4");
/// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartError {
    /// The index of the first such key in the slice.
    pub index: usize,
    /// The shard of the key.
    pub shard: usize,
    /// The shards of this part.
    pub part: Range<usize>,
}

impl fmt::Display for PartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {} belongs to shard {}; this part has shards {:?}", self.index, self.shard, self.part)
    }
}

errors! {
    /// The reason why two filters cannot be merged. Neither has changed.
    #[derive(Clone, PartialEq, Eq)]
    pub enum MergeError {
        /// The filters were built with different capacities, widths or options.
        SizesDiffer => ("the filters differ in size; build both with the same capacity and rate or bits"),
        /// The filters have different hash functions or different seeds.
        HashersDiffer => (
            "the filters hash differently; build both with the same hasher and the same seeds, such as clones of one hasher"
        ),
        /// Allocation failed.
        OutOfMemory {
            /// The size of the allocation.
            bytes: usize,
        } => ("failed to allocate {bytes} bytes"),
    }
}

impl Error for InsertError {}
impl Error for BuildError {}
impl Error for PartError {}
impl Error for MergeError {}
