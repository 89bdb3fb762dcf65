//! The errors and their texts.

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

/// Defines an enum of errors: each variant with its documentation and, after `=>`, its text as arguments of `write!`.
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
    #[non_exhaustive]
    pub enum InsertError {
        /// No path of relocations makes room for the key, as of one moment between the call and its return. The error
        /// is not expected up to the requested [`capacity`](crate::Builder::capacity), nor in a growing filter up to
        /// its [`max_capacity`](crate::Builder::max_capacity).
        Full => ("the filter is full: no relocation makes room for this key"),
        /// All 8 slots of the key's two buckets hold its fingerprint. A larger filter does not help: either the key was
        /// inserted 8 times, or other keys share its fingerprint and buckets.
        TooManyCopies => ("all 8 slots of this key hold copies of it already"),
        /// The filter must grow ([`Builder::max_capacity`](crate::Builder::max_capacity)), and allocation failed. A
        /// later insertion may succeed.
        OutOfMemory => ("the filter failed to allocate the memory to grow"),
        /// The life passed to [`insert_for`](crate::ExpiringFilter::insert_for) exceeds the time to live of the filter,
        /// which bounds the deadlines that a slot can store.
        BeyondTimeToLive => ("the requested life exceeds the time to live of the filter, which `time_to_live` returns"),
        /// The tag exceeds [`max_tag`](crate::TaggedFilter::max_tag).
        TagTooLarge => ("the tag exceeds the largest tag of the filter, which `max_tag` returns"),
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
    #[non_exhaustive]
    pub enum BuildError {
        /// [`Builder::capacity`](crate::Builder::capacity) was not called.
        NoCapacity => ("no capacity was requested; call `capacity` with the expected number of keys"),
        /// The false-positive rate is not a number between 0 and 1.
        #[non_exhaustive]
        RateOutOfRange {
            /// The requested rate.
            requested: f64,
        } => ("a false-positive rate of {requested} was requested; it must lie between 0 and 1, both excluded"),
        /// The false-positive rate requires wider fingerprints than fit: 32 bits, or 30 in a growing filter, less the
        /// bits of a deadline, a counter or a tag.
        #[non_exhaustive]
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
        /// The width of a fingerprint is not between 4 and 32 bits, or in a growing filter between 6 and 30.
        #[non_exhaustive]
        FingerprintBitsOutOfRange {
            /// The requested bits.
            requested: u32,
            /// The possible bits.
            possible: RangeInclusive<u32>,
        } => (
            "fingerprints of {requested} bits were requested; {} to {} are possible",
            possible.start(),
            possible.end()
        ),
        /// Both a rate and a width were requested, each of which determines the other.
        #[non_exhaustive]
        RateAndFingerprintBits {
            /// The requested rate.
            rate: f64,
            /// The requested bits.
            bits: u32,
        } => ("both a false-positive rate of {rate} and fingerprints of {bits} bits were requested; give one of them"),
        /// The filter is to grow to fewer keys than its capacity.
        #[non_exhaustive]
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
        #[non_exhaustive]
        NoSuchShards {
            /// The requested shards.
            requested: Range<usize>,
            /// The number of shards of the filter.
            shards: usize,
        } => (
            "a part with shards {}..{} was requested; the filter has {shards} shards, and a part needs at least one",
            requested.start,
            requested.end
        ),
        /// A key passed to [`Builder::items`](crate::Builder::items) was refused.
        #[non_exhaustive]
        Refused {
            /// The index of the key in the list.
            index: usize,
            /// The reason.
            error: InsertError,
        } => ("key {index} of the list was refused: {error}"),
        /// The filter exceeds the address space.
        #[non_exhaustive]
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
        #[non_exhaustive]
        TimeToLiveTooLong {
            /// The requested time to live.
            requested: core::time::Duration,
        } => ("a time to live of {requested:?} was requested; up to 584 years are possible"),
        /// The number of steps is not between 1 and 254.
        #[non_exhaustive]
        StepsOutOfRange {
            /// The requested steps.
            requested: u32,
        } => ("{requested} steps of the time to live were requested; 1 to 254 are possible"),
        /// The width of a counter is not between 1 and 16 bits.
        #[non_exhaustive]
        CounterBitsOutOfRange {
            /// The requested bits.
            requested: u32,
        } => ("counters of {requested} bits were requested; 1 to 16 are possible"),
        /// The number of tags is not between 1 and 65,535.
        #[non_exhaustive]
        TagsOutOfRange {
            /// The requested number.
            requested: u32,
        } => ("{requested} different tags were requested; 1 to 65535 are possible"),
        /// Allocation failed.
        #[non_exhaustive]
        OutOfMemory {
            /// The total memory of the filter.
            bytes: usize,
        } => ("failed to allocate the {bytes} bytes of the filter"),
    }
}

errors! {
    /// The reason why a part of a filter stored none of the keys. The part is unchanged.
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
    pub enum PartError {
        /// A key belongs to another part.
        #[non_exhaustive]
        OtherPart {
            /// The index of the first such key in the slice.
            index: usize,
            /// The shard of the key.
            shard: usize,
            /// The shards of this part.
            part: Range<usize>,
        } => (
            "key {index} belongs to shard {shard}; this part has shards {}..{}",
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
        /// The header, before the shards.
        Header => ("the header"),
        /// A shard.
        #[non_exhaustive]
        Shard {
            /// The number of the shard, from 0.
            number: usize,
        } => ("shard {number}"),
        /// A table of a growing filter.
        #[non_exhaustive]
        Table {
            /// Its position in the snapshot, from 0.
            number: usize,
        } => ("table {number}"),
        /// The trailer, after the shards.
        Trailer => ("the trailer"),
    }
}

errors! {
    /// The reason why a filter cannot be written or read.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, SnapshotError, StableHashBuilder};
    ///
    /// let hasher = StableHashBuilder::with_keys(1, 2);
    /// let error = CuckooFilter::<String, _>::read_from(&b"something else, of some length"[..], hasher).unwrap_err();
    /// assert!(matches!(error, SnapshotError::NotASnapshot));
    /// assert_eq!(error.to_string(), "the data does not begin with the header of a snapshot");
    /// ```
    #[non_exhaustive]
    pub enum SnapshotError {
        /// An error of the reader, of the writer or of the system. If a file was saved or loaded, the text names the
        /// file, and the source is the error of the system.
        Io(error: io::Error) => ("{error}"),
        /// The data does not begin with the header of a snapshot.
        NotASnapshot => ("the data does not begin with the header of a snapshot"),
        /// This version of the crate does not read the version of the format.
        #[non_exhaustive]
        UnknownVersion {
            /// The version of the snapshot.
            found: u32,
            /// The version that this version of the crate reads.
            known: u32,
        } => ("the snapshot is of format {found}; this version of the crate reads format {known}"),
        /// The bytes end too soon.
        #[non_exhaustive]
        Truncated {
            /// The part of the snapshot in which the bytes end.
            place: SnapshotPlace,
        } => ("the snapshot ends within {place}"),
        /// A checksum does not match.
        #[non_exhaustive]
        Damaged {
            /// The part of the snapshot with this checksum.
            place: SnapshotPlace,
        } => ("{place} of the snapshot is damaged: its checksum does not match"),
        /// A field has an impossible value, although the checksum matches.
        #[non_exhaustive]
        Invalid {
            /// The part of the snapshot with this field.
            place: SnapshotPlace,
            /// The name of the field.
            field: &'static str,
            /// The value of the field, or the value counted in its place.
            found: String,
        } => ("{place} of the snapshot is not valid: {field} is {found}"),
        /// The snapshot was written with another hash function or other seeds.
        #[non_exhaustive]
        HasherMismatch {
            /// The name of the hash function in the snapshot.
            saved: String,
            /// The name of the hash function of the reader.
            given: &'static str,
        } => (
            "the snapshot was made with the hasher {saved:?}{}",
            if saved == given {
                " and other seeds, or the output of the hasher has changed".into()
            } else {
                format!("; it cannot be read with {given:?}")
            }
        ),
        /// The snapshot does not contain the seeds of its hash function: pass the hash function to
        /// [`SnapshotReader::into_filter_with_hasher`](crate::SnapshotReader::into_filter_with_hasher).
        #[non_exhaustive]
        NoKeys {
            /// The name of the hash function.
            hasher: String,
        } => ("the snapshot does not contain the seeds of its hasher {hasher:?}; pass the hasher"),
        /// The snapshot has another type of keys.
        #[non_exhaustive]
        KeyTypeMismatch {
            /// The type of keys in the snapshot.
            saved: Cow<'static, str>,
            /// The requested type of keys.
            requested: Cow<'static, str>,
        } => ("the snapshot has keys of type {saved}; it cannot be read as a filter of {requested}"),
        /// The snapshot has another kind of filter.
        #[non_exhaustive]
        KindMismatch {
            /// The kind in the snapshot: "growing", "expiring", "counting", "tagged", "plain", or a combination.
            saved: String,
            /// The requested kind.
            requested: &'static str,
        } => ("the snapshot has a filter of kind {saved}; it cannot be read as a filter of kind {requested}"),
        /// The data does not begin with the header of a delta.
        NotADelta => ("the data does not begin with the header of a delta"),
        /// The delta, or one of its two snapshots, belongs to a filter that was built differently.
        #[non_exhaustive]
        DeltaOfAnother {
            /// The property that differs.
            what: &'static str,
        } => ("the delta belongs to a filter that was built differently: the {what} differs"),
        /// The contents of the filter differ from the older snapshot of the delta, or after the changes from the newer
        /// one.
        #[non_exhaustive]
        DeltaMismatch {
            /// The [digest](crate::Filter::digest) of the snapshot.
            expected: u64,
            /// The digest of the filter.
            found: u64,
        } => ("the filter has the digest {found:016x}, and the delta requires {expected:016x}; load the newer snapshot"),
        /// A change of the delta failed: an inserted key found no room, or a removed key was absent. Earlier changes
        /// have taken effect.
        #[non_exhaustive]
        DeltaRefused {
            /// The shard of the failed change.
            shard: usize,
        } => ("a change of shard {shard} failed, and earlier changes have taken effect; load the newer snapshot"),
        /// Other bytes follow the snapshot in its file.
        TrailingBytes => ("something follows the snapshot in its file"),
        /// The snapshot is a part of a filter. [`Filter::join`](crate::Filter::join) reads it together with the other
        /// parts.
        #[non_exhaustive]
        PartAlone {
            /// The shards of the part.
            part: Range<usize>,
            /// The number of shards of the filter.
            shards: usize,
        } => (
            "the snapshot is a part of a filter, with shards {}..{} of {shards}; \
             `CuckooFilter::join` reads it together with the other parts",
            part.start,
            part.end
        ),
        /// No parts were passed to join.
        NoParts => ("no parts were passed; at least one is needed"),
        /// The parts belong to filters that were built differently.
        #[non_exhaustive]
        PartsDiffer {
            /// The property that differs.
            what: &'static str,
            /// The index of the part that differs from the first.
            part: usize,
        } => ("the parts belong to filters that were built differently: the {what} of part {part} differs from part 0"),
        /// Two parts contain the same shard.
        #[non_exhaustive]
        ShardTwice {
            /// The number of the shard.
            number: usize,
            /// The indices of the two parts.
            parts: [usize; 2],
        } => ("shard {number} is in two of the parts, {} and {}, counted from 0", parts[0], parts[1]),
        /// No part contains this shard.
        #[non_exhaustive]
        ShardMissing {
            /// The number of the shard.
            number: usize,
            /// The number of shards of the filter.
            shards: usize,
        } => ("shard {number} of {shards} is in none of the parts"),
        /// The shards requested for a snapshot are not in the filter or part, or the range is empty.
        #[non_exhaustive]
        NoSuchShards {
            /// The requested shards.
            requested: Range<usize>,
            /// The shards of the filter or part.
            there: Range<usize>,
        } => (
            "shards {}..{} were requested; the filter or part has {}..{}, and a snapshot needs at least one",
            requested.start,
            requested.end,
            there.start,
            there.end
        ),
        /// The name of the type of the keys is too long.
        #[non_exhaustive]
        NameTooLong {
            /// The length in bytes.
            len: usize,
            /// The maximum length in bytes.
            most: usize,
        } => ("the name of the type of the keys has {len} bytes; at most {most} fit"),
        /// The metadata is too long.
        #[non_exhaustive]
        MetadataTooLong {
            /// The length in bytes.
            len: usize,
            /// The maximum length in bytes.
            most: usize,
        } => ("the metadata has {len} bytes; at most {most} fit"),
        /// Allocation failed.
        #[non_exhaustive]
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
    /// Adds the path of the file to an error of the system.
    pub(crate) fn of_file(self, path: &Path) -> Self {
        match self {
            SnapshotError::Io(error) => {
                SnapshotError::Io(io::Error::new(error.kind(), OfFile { path: path.into(), error }))
            }
            other => other,
        }
    }
}

/// An error of the system with the path of its file.
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
    /// The reason why two filters cannot be merged. Neither has changed.
    #[derive(Clone, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum MergeError {
        /// The filters were built with different capacities, widths or options.
        SizesDiffer => ("the filters differ in size; build both with the same capacity and rate or bits"),
        /// The filters have different hash functions or different seeds.
        HashersDiffer => (
            "the filters hash differently; build both with the same hasher and the same seeds, such as clones of one hasher"
        ),
        /// Allocation failed.
        #[non_exhaustive]
        OutOfMemory {
            /// The size of the allocation.
            bytes: usize,
        } => ("failed to allocate {bytes} bytes"),
    }
}

#[cfg(all(feature = "shared", target_os = "linux"))]
errors! {
    /// The reason why a shared filter cannot be created, opened, changed or queried.
    #[non_exhaustive]
    pub enum SharedError {
        /// An error of the system. The text names the file, and the source is the error of the system.
        Io(error: io::Error) => ("{error}"),
        /// The builder has an impossible request.
        Build(error: BuildError) => ("{error}"),
        /// A growing filter was requested. The memory of a shared filter has a fixed size.
        Growing => ("a growing shared filter was requested; a shared filter has a fixed size: set the largest number of keys as its capacity"),
        /// The file does not begin with the header of a shared filter. It may be a snapshot, which
        /// [`MappedFilter`](crate::MappedFilter) queries.
        NotShared => ("the file does not begin with the header of a shared filter"),
        /// This version of the crate does not read the format of the file.
        #[non_exhaustive]
        UnknownVersion {
            /// The format of the file.
            found: u32,
            /// The format that this version of the crate reads.
            known: u32,
        } => ("the shared filter is of format {found}; this version of the crate reads format {known}"),
        /// The description of the filter in the file is damaged, or differs from the requested type.
        Header(error: SnapshotError) => ("the header of the shared filter, which has the form of a snapshot, was refused: {error}"),
        /// The file was truncated or extended.
        #[non_exhaustive]
        WrongLength {
            /// The length of the file that the filter requires, in bytes.
            expected: u64,
            /// The length of the file in bytes.
            found: u64,
        } => ("the shared filter requires {expected} bytes; the file has {found}"),
        /// Another handle has opened the filter for writing.
        #[non_exhaustive]
        WriterPresent {
            /// The last process that opened the filter for writing.
            pid: u64,
        } => ("the shared filter has a writer already: process {pid}, or a child that it forked"),
        /// The machine stopped while the filter was open for writing, so stores may be lost.
        NotClosed => (
            "the shared filter was not closed before the machine stopped, so its file may be incomplete; \
             load the last snapshot and create it again"
        ),
        /// The file is a copy of a file that was open for writing at that time.
        CopyOfLive => (
            "the file is a copy of a shared filter that was open for writing, so it may mix several states; \
             to copy a filter in use, save a snapshot"
        ),
        /// The file has contents that no writer leaves behind.
        #[non_exhaustive]
        Damaged {
            /// The damaged shard.
            shard: usize,
            /// The damage.
            what: &'static str,
        } => ("the shared filter is damaged: shard {shard} has {what}"),
        /// The filter was opened by a parent process before the fork.
        Forked => ("the shared filter was opened before this process was forked; open a reader in this process, or fork before opening the filter"),
        /// Each of 1024 attempts was interrupted by a relocation or by another write to the file.
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
    /// Adds the path of the file to an error of the system.
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
    fn errors_of_parts_and_of_memory_name_the_cause() {
        let texts = [
            (SnapshotError::NoParts.to_string(), "at least one"),
            (SnapshotError::PartsDiffer { what: "capacity", part: 1 }.to_string(), "capacity"),
            (SnapshotError::ShardTwice { number: 17, parts: [0, 1] }.to_string(), "17"),
            (SnapshotError::ShardMissing { number: 3, shards: 29 }.to_string(), "3 of 29"),
            (SnapshotError::OutOfMemory { bytes: 1234 }.to_string(), "1234 bytes"),
            (MergeError::OutOfMemory { bytes: 1234 }.to_string(), "1234 bytes"),
        ];
        for (text, part) in texts {
            assert!(text.contains(part), "{text}");
        }
    }
}
