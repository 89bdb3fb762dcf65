//! Every sentence that a user may be told.

use core::error::Error;
use core::fmt;
use core::ops::{Range, RangeInclusive};
use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

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
debug_is_display!(BuildError, MergeError, PartError, SnapshotError);
#[cfg(all(feature = "shared", target_os = "linux"))]
debug_is_display!(SharedError);

/// An enum of errors: what each of them means, and behind `=>` what a user is told, as `write!` takes it.
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
        pub enum $name {
            $($(#[$means])* $variant $({ $($(#[$holds])* $field: $type,)+ })? $(($inner_type))?,)+
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

errors! {
    /// Why a key was not inserted. The filter is as it was: no other key and no count has changed.
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
    #[non_exhaustive]
    pub enum InsertError {
        /// No chain of relocations within reach makes room for the key. This was decided with all other writers of the key's
        /// shard locked out. Up to the capacity that was requested this is not expected (see
        /// [`Builder::capacity`](crate::Builder::capacity)), and in a filter that grows up to its
        /// [`max_capacity`](crate::Builder::max_capacity).
        Full => ("the filter is full: no relocation makes room for this key"),
        /// All 8 slots of the key's two buckets hold its own fingerprint. More room would not help: either the key was
        /// inserted 8 times, or other keys share its fingerprint and buckets.
        TooManyCopies => ("all 8 slots of this key hold copies of it already"),
        /// The filter needs to grow ([`Builder::max_capacity`](crate::Builder::max_capacity)), and allocation failed.
        OutOfMemory => ("the filter failed to allocate the memory that it needs to grow"),
        /// The requested life is longer than the time to live of the filter, so that a slot has no bits for its deadline
        /// ([`insert_for`](crate::ExpiringFilter::insert_for)).
        BeyondTimeToLive => ("the requested life is longer than the time to live of the filter, which `time_to_live` returns"),
        /// The tag does not fit the bits of a tag ([`TaggedFilter`](crate::TaggedFilter)).
        TagTooLarge => ("the tag is larger than the largest one of the filter, which `max_tag` returns"),
    }
}

errors! {
    /// Why a filter cannot be built: what was requested, and what is possible.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{BuildError, CuckooFilter};
    ///
    /// let error = CuckooFilter::<String>::builder().capacity(1000).false_positive_rate(1.5).build().unwrap_err();
    /// assert!(matches!(error, BuildError::RateOutOfRange { asked: 1.5, .. }));
    /// assert_eq!(
    ///     error.to_string(),
    ///     "a false-positive rate of 1.5 was requested; it must lie between 0 and 1, both excluded"
    /// );
    /// assert_eq!(format!("{error:?}"), error.to_string()); // a `main` that returns it prints the sentence
    /// ```
    #[derive(Clone, PartialEq)]
    #[non_exhaustive]
    pub enum BuildError {
        /// [`Builder::capacity`](crate::Builder::capacity) was not called.
        NoCapacity => ("no capacity was requested; give the number of keys that the filter is to hold"),
        /// A false-positive rate that is not a number between 0 and 1.
        #[non_exhaustive]
        RateOutOfRange {
            /// The rate asked for.
            asked: f64,
        } => ("a false-positive rate of {asked} was requested; it must lie between 0 and 1, both excluded"),
        /// A false-positive rate that would take fingerprints of more bits than fit: 32, less those of a deadline, a counter or
        /// a tag; 30 in a filter that grows.
        #[non_exhaustive]
        RateTooLow {
            /// The rate asked for.
            asked: f64,
            /// The rate of the widest fingerprints at this capacity.
            lowest: f64,
            /// Their bits.
            widest: u32,
        } => (
            "a false-positive rate of {asked:e} was requested; the widest fingerprint, of {widest} bits, reaches {:.2e}",
            // Rounded up, so that the rate that is named can be had.
            lowest * 1.005
        ),
        /// Fingerprints narrower than 4 or wider than 32 bits; in a filter that grows, narrower than 6 or wider than 30.
        #[non_exhaustive]
        FingerprintBitsOutOfRange {
            /// The bits asked for.
            asked: u32,
            /// What is possible.
            possible: RangeInclusive<u32>,
        } => (
            "fingerprints of {asked} bits were requested; {} to {} are possible",
            possible.start(),
            possible.end()
        ),
        /// Both a rate and a width: each decides the other.
        #[non_exhaustive]
        RateAndFingerprintBits {
            /// The rate asked for.
            rate: f64,
            /// The bits asked for.
            bits: u32,
        } => ("both a false-positive rate of {rate} and fingerprints of {bits} bits were requested; give one of them"),
        /// A filter that is to grow to fewer keys than it begins with.
        #[non_exhaustive]
        MaxCapacityTooLow {
            /// The capacity asked for.
            capacity: usize,
            /// What it is to grow to.
            max_capacity: usize,
        } => ("a capacity of {capacity} keys was requested, to grow to {max_capacity}; it cannot grow to less"),
        /// A part of a filter that grows. Parts are of filters of fixed size.
        GrowingPart => ("a part of a filter that grows was requested; a filter that is built in parts has a fixed size"),
        /// No stripes: without a lock nothing can be inserted.
        NoStripes => ("0 stripes were requested; at least 1 is needed"),
        /// Shards that the filter does not have, or none, for a part of it.
        #[non_exhaustive]
        NoSuchShards {
            /// Those asked for.
            asked: Range<usize>,
            /// How many there are.
            shards: usize,
        } => (
            "a part with the shards {} to {} was requested, the last excluded; there are {shards}, and at least one is needed",
            asked.start,
            asked.end
        ),
        /// A key of the list was refused.
        #[non_exhaustive]
        Refused {
            /// Its place in the list.
            index: usize,
            /// Why.
            error: InsertError,
        } => ("key {index} of the list was refused: {error}"),
        /// The filter does not fit the address space.
        #[non_exhaustive]
        TooLarge {
            /// The capacity asked for.
            capacity: usize,
            /// The bits of a fingerprint.
            fingerprint_bits: u32,
        } => (
            "a capacity of {capacity} keys at {fingerprint_bits} bits was requested; \
                         it does not fit the {} bits of the address space",
            usize::BITS
        ),
        /// [`Builder::time_to_live`](crate::Builder::time_to_live) was not called, or with no time at all.
        NoTimeToLive => ("no time to live was requested; give the time that a key is to be remembered, longer than 0"),
        /// A time to live of more than 2^64 nanoseconds.
        #[non_exhaustive]
        TimeToLiveTooLong {
            /// The time to live asked for.
            asked: core::time::Duration,
        } => ("a time to live of {asked:?} was requested; up to 584 years are possible"),
        /// No steps, or more than 254.
        #[non_exhaustive]
        StepsOutOfRange {
            /// The steps asked for.
            asked: u32,
        } => ("{asked} steps of the time to live were requested; 1 to 254 are possible"),
        /// Counters of no bits, or of more than 16.
        #[non_exhaustive]
        CounterBitsOutOfRange {
            /// The bits asked for.
            asked: u32,
        } => ("counters of {asked} bits were requested; 1 to 16 are possible"),
        /// No tags, or more than 65,535.
        #[non_exhaustive]
        TagsOutOfRange {
            /// The number asked for.
            asked: u32,
        } => ("{asked} different tags were requested; 1 to 65535 are possible"),
        /// The system refused the memory.
        #[non_exhaustive]
        OutOfMemory {
            /// The memory of the filter, everything included.
            bytes: usize,
        } => ("failed to allocate the {bytes} bytes of the filter"),
    }
}

errors! {
    /// Why a part of a filter takes none of the keys that it was given. It has not changed.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let part = CuckooFilter::<u64>::builder().capacity(1_000_000).build_shards(2..4)?;
    /// let hash = (0..).find(|&hash| part.layout().shard_of_hash(hash) == 0).unwrap();
    /// let error = part.insert_batch(&[hash]).unwrap_err();
    /// assert_eq!(error.to_string(), "key 0 belongs to shard 0; this part has the shards 2 to 4, the last excluded");
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[derive(Clone, PartialEq, Eq)]
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
        } => (
            "key {index} belongs to shard {shard}; this part has the shards {} to {}, the last excluded",
            part.start,
            part.end
        ),
    }
}

errors! {
    /// A part of a snapshot.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum SnapshotPlace {
        /// What stands before the shards.
        Header => ("the header"),
        /// A shard.
        #[non_exhaustive]
        Shard {
            /// Its number, from 0.
            number: usize,
        } => ("shard {number}"),
        /// A table of a filter that grows.
        #[non_exhaustive]
        Table {
            /// Its number in the order of the snapshot, from 0.
            number: usize,
        } => ("table {number}"),
        /// What stands behind the shards.
        Trailer => ("the trailer"),
    }
}

errors! {
    /// Why a filter cannot be written or read.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, SnapshotError, StableHashBuilder};
    ///
    /// let hasher = StableHashBuilder::with_keys(1, 2);
    /// let error = CuckooFilter::<String, _>::read_from(&b"something else, of some length"[..], hasher).unwrap_err();
    /// assert!(matches!(error, SnapshotError::NotASnapshot));
    /// assert_eq!(error.to_string(), "this is not a snapshot of a filter: it does not begin as one");
    /// ```
    #[non_exhaustive]
    pub enum SnapshotError {
        /// What the reader, the writer or the system returned. Where a file is saved or loaded, the error names it, and has
        /// the system's own error as its source.
        Io(error: io::Error) => ("{error}"),
        /// The first bytes are not those of a snapshot.
        NotASnapshot => ("this is not a snapshot of a filter: it does not begin as one"),
        /// A version of the format that this version of the crate does not know.
        #[non_exhaustive]
        UnknownVersion {
            /// The version found.
            found: u32,
            /// The newest one that is known.
            known: u32,
        } => ("the snapshot is of format {found}; this version of the crate reads format {known}"),
        /// The bytes end too soon.
        #[non_exhaustive]
        Truncated {
            /// Where they end.
            place: SnapshotPlace,
        } => ("the snapshot ends within {place}"),
        /// A checksum does not match.
        #[non_exhaustive]
        Damaged {
            /// Whose.
            place: SnapshotPlace,
        } => ("{place} of the snapshot is damaged: its checksum does not match"),
        /// A number that no filter has, under a checksum that matches.
        #[non_exhaustive]
        Invalid {
            /// Where it stands.
            place: SnapshotPlace,
            /// What it should say.
            field: &'static str,
            /// What it says, or what was counted instead.
            found: String,
        } => ("{place} of the snapshot is not valid: {field} is {found}"),
        /// The filter was filled with another hash function, or with other keys.
        #[non_exhaustive]
        HasherMismatch {
            /// The name of the one that filled it.
            saved: String,
            /// The name of the one that was given.
            given: &'static str,
        } => (
            "the snapshot was made with the hasher {saved:?}{}",
            if saved == given {
                " under other keys, or its output has changed".into()
            } else {
                format!("; it cannot be read with {given:?}")
            }
        ),
        /// The snapshot has no keys for its hash function: give it to
        /// [`SnapshotReader::into_filter_with_hasher`](crate::SnapshotReader::into_filter_with_hasher).
        #[non_exhaustive]
        NoKeys {
            /// The name of the function.
            hasher: String,
        } => ("the snapshot does not keep the keys of its hasher {hasher:?}; give the hasher"),
        /// The filter is of other keys.
        #[non_exhaustive]
        KeyTypeMismatch {
            /// What it was filled with.
            saved: Cow<'static, str>,
            /// What was requested.
            asked: Cow<'static, str>,
        } => ("the snapshot is of keys of type {saved}; it cannot be read as a filter of {asked}"),
        /// The filter is of another kind.
        #[non_exhaustive]
        KindMismatch {
            /// The kind of the one that was saved: "growing", "expiring", "counting", "plain", or some of these.
            saved: String,
            /// The kind of the one that was requested.
            asked: &'static str,
        } => ("the snapshot is of a filter that is {saved}; it cannot be read as one that is {asked}"),
        /// The first bytes are not those of a delta.
        NotADelta => ("this is not a delta of two snapshots: it does not begin as one"),
        /// A delta of filters that were built differently, or for one.
        #[non_exhaustive]
        DeltaOfAnother {
            /// In what.
            what: &'static str,
        } => ("the delta is of a filter that was built differently: the {what} differs"),
        /// The filter does not hold what the delta starts from, or ends at.
        #[non_exhaustive]
        DeltaMismatch {
            /// The [digest](crate::Filter::digest) of what it should hold.
            expected: u64,
            /// That of what it holds.
            found: u64,
        } => ("the filter has the digest {found:016x}, and the delta takes one of {expected:016x}; load the newer snapshot"),
        /// A change of the delta could not be made: a key found no room, or was gone. Changes before it were made.
        #[non_exhaustive]
        DeltaRefused {
            /// The shard in which it was to be made.
            shard: usize,
        } => ("a change of shard {shard} could not be made, and those before it were; load the newer snapshot"),
        /// Something follows the snapshot in its file.
        TrailingBytes => ("something follows the snapshot in its file"),
        /// The snapshot is a part of a filter: [`Filter::join`](crate::Filter::join) reads it, with the others.
        #[non_exhaustive]
        PartAlone {
            /// The shards that it has.
            part: Range<usize>,
            /// How many there are.
            shards: usize,
        } => (
            "the snapshot is a part of a filter, with shards {} to {} of {shards}, the last excluded; \
             `CuckooFilter::join` reads it together with the others",
            part.start,
            part.end
        ),
        /// Nothing was given to join.
        NoParts => ("no parts were given; at least one is needed"),
        /// Parts of filters that were built differently.
        #[non_exhaustive]
        PartsDiffer {
            /// In what.
            what: &'static str,
            /// Which one differs from the first, counted from 0 as they were given.
            part: usize,
        } => ("the parts are of filters that were built differently: the {what} of part {part} is not that of part 0"),
        /// Two parts have the same shard.
        #[non_exhaustive]
        ShardTwice {
            /// Its number.
            number: usize,
            /// The two parts, counted from 0 as they were given.
            parts: [usize; 2],
        } => ("shard {number} is in two of the parts, {} and {}, counted from 0", parts[0], parts[1]),
        /// No part has this shard.
        #[non_exhaustive]
        ShardMissing {
            /// Its number.
            number: usize,
            /// How many there must be.
            shards: usize,
        } => ("shard {number} of {shards} is in none of the parts"),
        /// The filter, or the part of it, has no such shards to write.
        #[non_exhaustive]
        NoSuchShards {
            /// Those asked for.
            asked: Range<usize>,
            /// Those that there are.
            there: Range<usize>,
        } => (
            "the shards {} to {} were requested, the last excluded; there are {} to {}, and at least one is needed",
            asked.start,
            asked.end,
            there.start,
            there.end
        ),
        /// A name for the type of the keys that is longer than fits.
        #[non_exhaustive]
        NameTooLong {
            /// Bytes given.
            len: usize,
            /// Bytes possible.
            most: usize,
        } => ("a name of {len} bytes was given for the type of the keys; at most {most} fit"),
        /// More metadata than fits.
        #[non_exhaustive]
        MetadataTooLong {
            /// Bytes given.
            len: usize,
            /// Bytes possible.
            most: usize,
        } => ("{len} bytes of metadata were given; at most {most} fit"),
        /// The system refused the memory.
        #[non_exhaustive]
        OutOfMemory {
            /// How much was requested.
            bytes: usize,
        } => ("failed to allocate {bytes} bytes"),
    }
}

impl Error for InsertError {}
impl Error for BuildError {}
impl Error for PartError {}
impl Error for MergeError {}

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

errors! {
    /// Why two filters cannot be merged. Neither has changed.
    #[derive(Clone, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum MergeError {
        /// They were built for another number of keys, or with another width.
        SizesDiffer => ("the filters differ in size; both must be built with the same capacity and rate or bits"),
        /// They hash differently: another function, or other keys.
        HashersDiffer => (
            "the filters hash differently; both must be built with the same hasher and the same keys, such as clones of one"
        ),
        /// The system refused the memory.
        #[non_exhaustive]
        OutOfMemory {
            /// How much was requested.
            bytes: usize,
        } => ("failed to allocate {bytes} bytes"),
    }
}

#[cfg(all(feature = "shared", target_os = "linux"))]
errors! {
    /// Why a shared filter cannot be created, opened, changed or queried.
    #[non_exhaustive]
    pub enum SharedError {
        /// What the system returned. The error names the file, and has the system's own error as its source.
        Io(error: io::Error) => ("{error}"),
        /// The builder asks for what is impossible.
        Build(error: BuildError) => ("{error}"),
        /// A filter that grows: the memory of a shared one has a fixed size.
        Growing => ("a shared filter that grows was requested; a shared filter has a fixed size: give the capacity that it is to reach"),
        /// The file does not begin as a shared filter: a snapshot, say, which [`MappedFilter`](crate::MappedFilter) reads.
        NotShared => ("this is not a shared filter: it does not begin as one"),
        /// A format that this version of the crate does not know.
        #[non_exhaustive]
        UnknownVersion {
            /// The format found.
            found: u32,
            /// The one that is known.
            known: u32,
        } => ("the shared filter is of format {found}; this version of the crate reads format {known}"),
        /// The description of the filter in the file is damaged, or of another filter than was requested.
        Header(error: SnapshotError) => ("the header of the shared filter was refused as that of a snapshot: {error}"),
        /// The file was cut off, or something was added to it.
        #[non_exhaustive]
        WrongLength {
            /// Bytes of such a filter.
            expected: u64,
            /// Bytes of the file.
            found: u64,
        } => ("the shared filter takes {expected} bytes; the file has {found}"),
        /// Another handle has the filter open for writing.
        #[non_exhaustive]
        WriterPresent {
            /// The process that opened it last.
            pid: u64,
        } => ("the shared filter has a writer already: process {pid}, or a child that it forked"),
        /// The machine stopped while the filter was open for writing, so that stores of it may be lost.
        NotClosed => (
            "the shared filter was not closed before the machine stopped, so that its file may lack some of its contents; \
             load the last snapshot and create it again"
        ),
        /// The file is a copy of one that was open for writing at that time.
        CopyOfLive => (
            "the file is a copy of a shared filter that was open for writing, so that it mixes several states; \
             save a snapshot to copy a filter that is in use"
        ),
        /// The contents of the file are such as no writer leaves behind.
        #[non_exhaustive]
        Damaged {
            /// The shard where that was found.
            shard: usize,
            /// What it is.
            what: &'static str,
        } => ("the shared filter is damaged: shard {shard} has {what}"),
        /// The filter was opened by the process that this one was forked from.
        Forked => ("the shared filter was opened before this process was forked; open a reader here, or open the filter after forking"),
        /// Keys were relocated, or the file was written by something else, at each of 1024 attempts.
        Contended => ("the lookup was interrupted by a writer 1024 times in a row"),
    }
}

#[cfg(all(feature = "shared", target_os = "linux"))]
impl Error for SharedError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            SharedError::Io(error) => Some(error),
            SharedError::Build(error) => Some(error),
            SharedError::Header(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(all(feature = "shared", target_os = "linux"))]
impl SharedError {
    /// Names the file in what the system said of it.
    pub(crate) fn of_file(self, path: &Path) -> Self {
        match self {
            SharedError::Io(error) => {
                SharedError::Io(io::Error::new(error.kind(), OfFile { path: path.into(), error }))
            }
            other => other,
        }
    }
}

#[cfg(all(feature = "shared", target_os = "linux"))]
impl From<io::Error> for SharedError {
    fn from(error: io::Error) -> Self {
        SharedError::Io(error)
    }
}

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
