//! Every sentence that a user may be told.

use core::error::Error;
use core::fmt;
use core::ops::Range;
use core::time::Duration;
use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

/// Why a key was not inserted. The filter is as it was: no other key and no count has changed.
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
/// assert_eq!(error, InsertError::TooManyCopies);
/// assert_eq!(error.to_string(), "all 8 slots of this key hold copies of it already");
/// assert_eq!(filter.len(), 8);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InsertError {
    /// No chain of relocations within reach makes room for the key. This was decided with all other writers of the key's
    /// shard locked out. Up to the capacity that was asked for this is not expected (see
    /// [`Builder::capacity`](crate::Builder::capacity)), and in a filter that grows up to its
    /// [`max_capacity`](crate::Builder::max_capacity).
    Full,
    /// All 8 slots of the key's two buckets hold its own fingerprint. More room would not help: either the key was
    /// inserted 8 times, or other keys share its fingerprint and buckets.
    TooManyCopies,
    /// The filter is to grow ([`Builder::max_capacity`](crate::Builder::max_capacity)), and the system refused the memory.
    OutOfMemory,
}

impl fmt::Display for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InsertError::Full => write!(f, "the filter is full: no relocation makes room for this key"),
            InsertError::TooManyCopies => write!(f, "all 8 slots of this key hold copies of it already"),
            InsertError::OutOfMemory => write!(f, "the filter is to grow, and the system refused the memory"),
        }
    }
}

impl Error for InsertError {}

/// Why a key was not stored for a time of its own ([`ExpiringFilter::insert_for`](crate::ExpiringFilter::insert_for)). The
/// filter is as it was.
///
/// ```
/// use concurrent_cuckoo_filter::ExpiringFilter;
/// use std::time::Duration;
///
/// let minute = Duration::from_secs(60);
/// let filter = ExpiringFilter::<u64>::builder().capacity(100).time_to_live(minute).build()?;
/// let error = filter.insert_for(&1, 2 * minute).unwrap_err();
/// assert_eq!(error.to_string(), "the key was to live for 120s; the filter was built with a time to live of 60s");
/// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InsertForError {
    /// It was to live longer than the filter's time to live: a slot has no room for such a deadline.
    #[non_exhaustive]
    BeyondTimeToLive {
        /// The time asked for.
        asked: Duration,
        /// The longest.
        time_to_live: Duration,
    },
    /// As an insertion for the time to live would have been.
    Refused(InsertError),
}

impl fmt::Display for InsertForError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InsertForError::BeyondTimeToLive { asked, time_to_live } => write!(
                f,
                "the key was to live for {asked:?}; the filter was built with a time to live of {time_to_live:?}"
            ),
            InsertForError::Refused(error) => error.fmt(f),
        }
    }
}

impl Error for InsertForError {}

impl From<InsertError> for InsertForError {
    fn from(error: InsertError) -> Self {
        InsertForError::Refused(error)
    }
}

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
    NoCapacity,
    /// A false-positive rate that is not a number between 0 and 1.
    #[non_exhaustive]
    RateOutOfRange {
        /// The rate asked for.
        asked: f64,
    },
    /// A false-positive rate that would take fingerprints of more bits than fit: 32, less those of a deadline, a counter or
    /// a tag.
    #[non_exhaustive]
    RateTooLow {
        /// The rate asked for.
        asked: f64,
        /// The rate of the widest fingerprints at this capacity.
        lowest: f64,
        /// Their bits.
        widest: u32,
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
    /// A filter that is to grow to fewer keys than it begins with.
    #[non_exhaustive]
    MaxCapacityTooLow {
        /// The capacity asked for.
        capacity: usize,
        /// What it is to grow to.
        max_capacity: usize,
    },
    /// A part of a filter that grows. Parts are of filters of fixed size.
    GrowingPart,
    /// For a filter that grows, fingerprints narrower than 6 or wider than 30 bits.
    #[non_exhaustive]
    GrowingFingerprintBitsOutOfRange {
        /// The bits asked for.
        asked: u32,
    },
    /// For a filter that grows, a false-positive rate that would take fingerprints of more than 30 bits.
    #[non_exhaustive]
    GrowingRateTooLow {
        /// The rate asked for.
        asked: f64,
        /// The rate of 30-bit fingerprints.
        lowest: f64,
    },
    /// No stripes: without a lock nothing can be inserted.
    NoStripes,
    /// Shards that the filter does not have, or none, for a part of it.
    #[non_exhaustive]
    NoSuchShards {
        /// Those asked for.
        asked: Range<usize>,
        /// How many there are.
        shards: usize,
    },
    /// A key of the list was refused.
    #[non_exhaustive]
    Refused {
        /// Its place in the list.
        index: usize,
        /// Why.
        error: InsertError,
    },
    /// The filter does not fit the address space.
    #[non_exhaustive]
    TooLarge {
        /// The capacity asked for.
        capacity: usize,
        /// The bits of a fingerprint.
        fingerprint_bits: u32,
    },
    /// [`ExpiringBuilder::time_to_live`](crate::ExpiringBuilder::time_to_live) was not called, or with no time at all.
    NoTimeToLive,
    /// No steps, or more than 254.
    #[non_exhaustive]
    StepsOutOfRange {
        /// The steps asked for.
        asked: u32,
    },
    /// Counters of no bits, or of more than 16.
    #[non_exhaustive]
    CounterBitsOutOfRange {
        /// The bits asked for.
        asked: u32,
    },
    /// No tags, or more than 65,535.
    #[non_exhaustive]
    TagsOutOfRange {
        /// The number asked for.
        asked: u32,
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
        match self {
            BuildError::NoCapacity => {
                write!(f, "no capacity was asked for; give the number of keys that the filter is to hold")
            }
            BuildError::RateOutOfRange { asked } => {
                write!(f, "a false-positive rate of {asked} was asked for; it must lie between 0 and 1, both excluded")
            }
            BuildError::RateTooLow { asked, lowest, widest } => write!(
                f,
                "a false-positive rate of {asked:e} was asked for; the widest fingerprint, of {widest} bits, reaches {:.2e}",
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
            BuildError::MaxCapacityTooLow { capacity, max_capacity } => write!(
                f,
                "a capacity of {capacity} keys was asked for, to grow to {max_capacity}; it cannot grow to less"
            ),
            BuildError::GrowingPart => {
                write!(
                    f,
                    "a part of a filter that grows was asked for; a filter that is built in parts has a fixed size"
                )
            }
            BuildError::GrowingFingerprintBitsOutOfRange { asked } => {
                write!(f, "fingerprints of {asked} bits were asked for; in a filter that grows, 6 to 30 are possible")
            }
            BuildError::GrowingRateTooLow { asked, lowest } => write!(
                f,
                "a false-positive rate of {asked:e} was asked for; in a filter that grows, the widest fingerprint, \
                 of 30 bits, reaches {:.2e}",
                lowest * 1.005
            ),
            BuildError::NoStripes => write!(f, "0 stripes were asked for; at least 1 is needed"),
            BuildError::NoSuchShards { asked, shards } => write!(
                f,
                "a part with the shards {} to {} was asked for, the last excluded; \
                 there are {shards}, and at least one is needed",
                asked.start, asked.end
            ),
            BuildError::Refused { index, error } => write!(f, "key {index} of the list was refused: {error}"),
            BuildError::TooLarge { capacity, fingerprint_bits } => write!(
                f,
                "a capacity of {capacity} keys at {fingerprint_bits} bits was asked for; \
                 it does not fit the {} bits of the address space",
                usize::BITS
            ),
            BuildError::NoTimeToLive => {
                write!(f, "no time to live was asked for; give the time that a key is to be remembered, longer than 0")
            }
            BuildError::StepsOutOfRange { asked } => {
                write!(f, "{asked} steps of the time to live were asked for; 1 to 254 are possible")
            }
            BuildError::CounterBitsOutOfRange { asked } => {
                write!(f, "counters of {asked} bits were asked for; 1 to 16 are possible")
            }
            BuildError::TagsOutOfRange { asked } => {
                write!(f, "{asked} different tags were asked for; 1 to 65535 are possible")
            }
            BuildError::OutOfMemory { bytes } => {
                write!(f, "the filter takes {bytes} bytes of memory, and the system refused them")
            }
        }
    }
}

impl Error for BuildError {}

/// Why a part of a filter takes none of the keys that it was given. It has not changed.
///
/// ```
/// use concurrent_cuckoo_filter::CuckooFilter;
///
/// let part = CuckooFilter::<u64>::builder().capacity(1_000_000).build_shards(2..4)?;
/// let hash = (0..).find(|&hash| part.layout().shard_of_hash(hash) == 0).unwrap();
/// let error = part.insert_batch_hash(&[hash]).unwrap_err();
/// assert_eq!(error.to_string(), "key 0 belongs to shard 0; this part has the shards 2 to 4, the last excluded");
/// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartError {
    /// A key that belongs to another part.
    #[non_exhaustive]
    OtherPart {
        /// Its place in the slice: the first such key.
        index: usize,
        /// Its shard.
        shard: usize,
        /// The shards of this part.
        part: Range<usize>,
    },
}

impl fmt::Display for PartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PartError::OtherPart { index, shard, part: Range { start, end } } = self;
        write!(f, "key {index} belongs to shard {shard}; this part has the shards {start} to {end}, the last excluded")
    }
}

impl Error for PartError {}

/// A part of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SnapshotPlace {
    /// What stands before the shards.
    Header,
    /// A shard.
    #[non_exhaustive]
    Shard {
        /// Its number, from 0.
        number: usize,
    },
    /// A table of a filter that grows.
    #[non_exhaustive]
    Table {
        /// Its number in the order of the snapshot, from 0.
        number: usize,
    },
    /// What stands behind the shards.
    Trailer,
}

impl fmt::Display for SnapshotPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnapshotPlace::Header => write!(f, "the header"),
            SnapshotPlace::Shard { number } => write!(f, "shard {number}"),
            SnapshotPlace::Table { number } => write!(f, "table {number}"),
            SnapshotPlace::Trailer => write!(f, "the trailer"),
        }
    }
}

/// Why a filter cannot be written or read.
///
/// ```
/// use concurrent_cuckoo_filter::{CuckooFilter, SnapshotError, StableHashBuilder};
///
/// let hasher = StableHashBuilder::with_keys(1, 2);
/// let error = CuckooFilter::<str, _>::read_from(&b"something else, of some length"[..], hasher).unwrap_err();
/// assert!(matches!(error, SnapshotError::NotASnapshot));
/// assert_eq!(error.to_string(), "this is not a snapshot of a filter: it does not begin as one");
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum SnapshotError {
    /// What the reader, the writer or the system returned. Where a file is saved or loaded, the error names it, and has
    /// the system's own error as its source.
    Io(io::Error),
    /// The first bytes are not those of a snapshot.
    NotASnapshot,
    /// A version of the format that this version of the crate does not know.
    #[non_exhaustive]
    UnknownVersion {
        /// The version found.
        found: u32,
        /// The newest one that is known.
        known: u32,
    },
    /// The bytes end too soon.
    #[non_exhaustive]
    Truncated {
        /// Where they end.
        place: SnapshotPlace,
    },
    /// A checksum does not match.
    #[non_exhaustive]
    Damaged {
        /// Whose.
        place: SnapshotPlace,
    },
    /// A number that no filter has, under a checksum that matches.
    #[non_exhaustive]
    Invalid {
        /// Where it stands.
        place: SnapshotPlace,
        /// What it should say.
        field: &'static str,
        /// What it says, or what was counted instead.
        found: String,
    },
    /// The filter was filled with another hash function, or with other keys.
    #[non_exhaustive]
    HasherMismatch {
        /// The name of the one that filled it.
        saved: String,
        /// The name of the one that was given.
        given: &'static str,
    },
    /// The snapshot has no keys for its hash function: give it to
    /// [`CuckooFilter::load_with_hasher`](crate::CuckooFilter::load_with_hasher).
    #[non_exhaustive]
    NoKeys {
        /// The name of the function.
        hasher: String,
    },
    /// The filter is of other keys.
    #[non_exhaustive]
    KeyTypeMismatch {
        /// What it was filled with.
        saved: Cow<'static, str>,
        /// What was asked for.
        asked: Cow<'static, str>,
    },
    /// The filter is of another kind.
    #[non_exhaustive]
    KindMismatch {
        /// The kind of the one that was saved: "growing", "expiring", "counting", "plain", or some of these.
        saved: String,
        /// The kind of the one that was asked for.
        asked: &'static str,
    },
    /// The first bytes are not those of a delta.
    NotADelta,
    /// A delta of filters that were built differently, or for one.
    #[non_exhaustive]
    DeltaOfAnother {
        /// In what.
        what: &'static str,
    },
    /// The filter does not hold what the delta starts from, or ends at.
    #[non_exhaustive]
    DeltaMismatch {
        /// The [digest](crate::CuckooFilter::digest) of what it should hold.
        expected: u64,
        /// That of what it holds.
        found: u64,
    },
    /// A change of the delta could not be made: a key found no room, or was gone. Changes before it were made.
    #[non_exhaustive]
    DeltaRefused {
        /// The shard in which it was to be made.
        shard: usize,
    },
    /// Something follows the snapshot in its file.
    TrailingBytes,
    /// The snapshot is a part of a filter: [`CuckooFilter::join`](crate::CuckooFilter::join) reads it, with the others.
    #[non_exhaustive]
    PartAlone {
        /// The shards that it has.
        part: Range<usize>,
        /// How many there are.
        shards: usize,
    },
    /// Nothing was given to join.
    NoParts,
    /// Parts of filters that were built differently.
    #[non_exhaustive]
    PartsDiffer {
        /// In what.
        what: &'static str,
        /// Which one differs from the first, counted from 0 as they were given.
        part: usize,
    },
    /// Two parts have the same shard.
    #[non_exhaustive]
    ShardTwice {
        /// Its number.
        number: usize,
        /// The two parts, counted from 0 as they were given.
        parts: [usize; 2],
    },
    /// No part has this shard.
    #[non_exhaustive]
    ShardMissing {
        /// Its number.
        number: usize,
        /// How many there must be.
        shards: usize,
    },
    /// The filter, or the part of it, has no such shards to write.
    #[non_exhaustive]
    NoSuchShards {
        /// Those asked for.
        asked: Range<usize>,
        /// Those that there are.
        there: Range<usize>,
    },
    /// A name for the type of the keys that is longer than fits.
    #[non_exhaustive]
    NameTooLong {
        /// Bytes given.
        len: usize,
        /// Bytes possible.
        most: usize,
    },
    /// More metadata than fits.
    #[non_exhaustive]
    MetadataTooLong {
        /// Bytes given.
        len: usize,
        /// Bytes possible.
        most: usize,
    },
    /// The system refused the memory.
    #[non_exhaustive]
    OutOfMemory {
        /// How much was asked for.
        bytes: usize,
    },
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnapshotError::Io(error) => write!(f, "{error}"),
            SnapshotError::NotASnapshot => write!(f, "this is not a snapshot of a filter: it does not begin as one"),
            SnapshotError::UnknownVersion { found, known } => {
                write!(f, "the snapshot is of format {found}; this version of the crate reads format {known}")
            }
            SnapshotError::Truncated { place } => write!(f, "the snapshot ends within {place}"),
            SnapshotError::Damaged { place } => {
                write!(f, "{place} of the snapshot is damaged: its checksum does not match")
            }
            SnapshotError::Invalid { place, field, found } => {
                write!(f, "{place} of the snapshot is not valid: {field} is {found}")
            }
            SnapshotError::HasherMismatch { saved, given } if saved == given => {
                write!(f, "the snapshot was made with the hasher {saved:?} under other keys, or its output has changed")
            }
            SnapshotError::HasherMismatch { saved, given } => {
                write!(f, "the snapshot was made with the hasher {saved:?}; it cannot be read with {given:?}")
            }
            SnapshotError::NoKeys { hasher } => {
                write!(f, "the snapshot does not keep the keys of its hasher {hasher:?}; give the hasher")
            }
            SnapshotError::KeyTypeMismatch { saved, asked } => {
                write!(f, "the snapshot is of keys of type {saved}; it cannot be read as a filter of {asked}")
            }
            SnapshotError::KindMismatch { saved, asked } => {
                write!(f, "the snapshot is of a filter that is {saved}; it cannot be read as one that is {asked}")
            }
            SnapshotError::NotADelta => write!(f, "this is not a delta of two snapshots: it does not begin as one"),
            SnapshotError::DeltaOfAnother { what } => {
                write!(f, "the delta is of a filter that was built differently: the {what} differs")
            }
            SnapshotError::DeltaMismatch { expected, found } => write!(
                f,
                "the filter has the digest {found:016x}, and the delta takes one of {expected:016x}; \
                 load the newer snapshot"
            ),
            SnapshotError::DeltaRefused { shard } => write!(
                f,
                "a change of shard {shard} could not be made, and those before it were; load the newer snapshot"
            ),
            SnapshotError::TrailingBytes => write!(f, "something follows the snapshot in its file"),
            SnapshotError::PartAlone { part, shards } => write!(
                f,
                "the snapshot is a part of a filter, with shards {} to {} of {shards}, the last excluded; \
                 `CuckooFilter::join` reads it together with the others",
                part.start, part.end
            ),
            SnapshotError::NoParts => write!(f, "no parts were given; at least one is needed"),
            SnapshotError::PartsDiffer { what, part } => write!(
                f,
                "the parts are of filters that were built differently: the {what} of part {part} is not that of part 0"
            ),
            SnapshotError::ShardTwice { number, parts: [first, second] } => {
                write!(f, "shard {number} is in two of the parts, {first} and {second}, counted from 0")
            }
            SnapshotError::ShardMissing { number, shards } => {
                write!(f, "shard {number} of {shards} is in none of the parts")
            }
            SnapshotError::NoSuchShards { asked, there } => write!(
                f,
                "the shards {} to {} were asked for, the last excluded; \
                 there are {} to {}, and at least one is needed",
                asked.start, asked.end, there.start, there.end
            ),
            SnapshotError::NameTooLong { len, most } => {
                write!(f, "a name of {len} bytes was given for the type of the keys; at most {most} fit")
            }
            SnapshotError::MetadataTooLong { len, most } => {
                write!(f, "{len} bytes of metadata were given; at most {most} fit")
            }
            SnapshotError::OutOfMemory { bytes } => write!(f, "the system refused {bytes} bytes of memory"),
        }
    }
}

impl Error for SnapshotError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            SnapshotError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for SnapshotError {
    fn from(error: io::Error) -> Self {
        SnapshotError::Io(error)
    }
}

impl SnapshotError {
    /// Names the file in what the system said of it.
    pub(crate) fn of_file(self, path: &Path) -> Self {
        match self {
            SnapshotError::Io(error) => {
                SnapshotError::Io(io::Error::new(error.kind(), OfFile { path: path.into(), error }))
            }
            other => other,
        }
    }
}

/// What the system said of a file.
#[derive(Debug)]
struct OfFile {
    path: PathBuf,
    error: io::Error,
}

impl fmt::Display for OfFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.path, self.error)
    }
}

impl Error for OfFile {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}

/// Why two filters cannot be merged. Neither has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeError {
    /// They were built for another number of keys, or with another width.
    SizesDiffer,
    /// They hash differently: another function, or other keys.
    HashersDiffer,
    /// The system refused the memory.
    #[non_exhaustive]
    OutOfMemory {
        /// How much was asked for.
        bytes: usize,
    },
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MergeError::SizesDiffer => {
                write!(f, "the filters differ in size; both must be built with the same capacity and rate or bits")
            }
            MergeError::HashersDiffer => {
                write!(
                    f,
                    "the filters hash differently; both must be built with the same hasher and the same keys, such as clones of one"
                )
            }
            MergeError::OutOfMemory { bytes } => write!(f, "the system refused {bytes} bytes of memory"),
        }
    }
}

impl Error for MergeError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_parts_and_of_memory_name_what_was_wrong() {
        let said = [
            (SnapshotError::NoParts.to_string(), "at least one"),
            (SnapshotError::PartsDiffer { what: "capacity", part: 1 }.to_string(), "capacity"),
            (SnapshotError::ShardTwice { number: 17, parts: [0, 1] }.to_string(), "17"),
            (SnapshotError::ShardMissing { number: 3, shards: 29 }.to_string(), "3 of 29"),
            (SnapshotError::OutOfMemory { bytes: 1234 }.to_string(), "1234 bytes"),
            (MergeError::OutOfMemory { bytes: 1234 }.to_string(), "1234 bytes"),
        ];
        for (text, what) in said {
            assert!(text.contains(what), "{text}");
        }
    }
}
