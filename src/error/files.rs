//! The errors of files: of snapshots, and of filters shared by processes.

use super::{BuildError, debug_is_display, errors};
use core::error::Error;
use core::fmt;
use core::ops::Range;
use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

errors! {
    /// A part of a snapshot.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum SnapshotPlace {
        /// The header, before the shards.
        Header => ("the header"),
        /// A shard.
        Shard {
            /// The number of the shard, from 0.
            number: usize,
        } => ("shard {number}"),
        /// A table of a growing filter.
        Table {
            /// Its position in the snapshot, from 0.
            number: usize,
        } => ("table {number}"),
        /// A change of a delta.
        Change {
            /// Its position in the delta, from 0.
            number: usize,
        } => ("change {number}"),
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
    /// let hasher = StableHashBuilder::with_seeds(1, 2);
    /// let error = CuckooFilter::<String, _>::read_from(&b"something else, of some length"[..], hasher).unwrap_err();
    /// assert!(matches!(error, SnapshotError::NotASnapshot));
    /// assert_eq!(error.to_string(), "the data does not begin with the header of a snapshot");
    /// ```
    pub enum SnapshotError {
        /// An error of the reader, of the writer or of the system. If a file was saved or loaded, the text names the
        /// file, and the source is the error of the system.
        Io(error: io::Error) => ("{error}"),
        /// The data does not begin with the header of a snapshot.
        NotASnapshot => ("the data does not begin with the header of a snapshot"),
        /// This version of the crate does not read the version of the format.
        UnknownVersion {
            /// The version of the snapshot.
            found: u32,
            /// The version that this version of the crate reads.
            known: u32,
        } => ("the snapshot is of format {found}; this version of the crate reads format {known}"),
        /// The bytes end too soon.
        Truncated {
            /// The part of the snapshot in which the bytes end.
            place: SnapshotPlace,
        } => ("the snapshot ends within {place}"),
        /// A checksum does not match.
        Damaged {
            /// The part of the snapshot with this checksum.
            place: SnapshotPlace,
        } => ("{place} of the snapshot is damaged: its checksum does not match"),
        /// A field has an impossible value, although the checksum matches.
        Invalid {
            /// The part of the snapshot with this field.
            place: SnapshotPlace,
            /// The name of the field.
            field: &'static str,
            /// The value of the field, or the value counted in its place.
            found: String,
        } => ("{place} of the snapshot is not valid: {field} is {found}"),
        /// The snapshot was written with another hash function or other seeds.
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
        NoSeeds {
            /// The name of the hash function.
            hasher: String,
        } => ("the snapshot does not contain the seeds of its hasher {hasher:?}; pass the hasher"),
        /// The snapshot has another type of keys.
        KeyTypeMismatch {
            /// The type of keys in the snapshot.
            saved: Cow<'static, str>,
            /// The requested type of keys.
            requested: Cow<'static, str>,
        } => ("the snapshot has keys of type {saved}; it cannot be read as a filter of {requested}"),
        /// The snapshot has another kind of filter.
        KindMismatch {
            /// The kind in the snapshot: "growing", "expiring", "counting", "tagged", "plain", or a combination.
            saved: String,
            /// The requested kind.
            requested: &'static str,
        } => ("the snapshot has a filter of kind {saved}; it cannot be read as a filter of kind {requested}"),
        /// The data does not begin with the header of a delta.
        NotADelta => ("the data does not begin with the header of a delta"),
        /// The delta, or one of its two snapshots, belongs to a filter that was built differently.
        DeltaOfAnother {
            /// The property that differs.
            what: &'static str,
        } => ("the delta belongs to a filter that was built differently: the {what} differs"),
        /// The contents of the filter differ from the older snapshot of the delta, or after the changes from the newer
        /// one.
        DeltaMismatch {
            /// The [digest](crate::Filter::digest) of the snapshot.
            expected: u64,
            /// The digest of the filter.
            found: u64,
        } => ("the filter has the digest {found:016x}, and the delta requires {expected:016x}; load the newer snapshot"),
        /// A change of the delta failed: an inserted key found no room, or a removed key was absent. Earlier changes
        /// have taken effect.
        DeltaRefused {
            /// The shard of the failed change.
            shard: usize,
        } => ("a change of shard {shard} failed, and earlier changes have taken effect; load the newer snapshot"),
        /// Other bytes follow the snapshot in its file.
        TrailingBytes => ("something follows the snapshot in its file"),
        /// The snapshot is a part of a filter. [`Filter::join`](crate::Filter::join) reads it together with the other
        /// parts.
        PartAlone {
            /// The shards of the part.
            part: Range<usize>,
            /// The number of shards of the filter.
            shards: usize,
        } => (
            "the snapshot is a part of a filter, with shards {part:?} of {shards}; \
             `CuckooFilter::join` reads it together with the other parts"
        ),
        /// No parts were passed to join.
        NoParts => ("no parts were passed; at least one is needed"),
        /// The parts belong to filters that were built differently.
        PartsDiffer {
            /// The property that differs.
            what: &'static str,
            /// The index of the part that differs from the first.
            part: usize,
        } => ("the parts belong to filters that were built differently: the {what} of part {part} differs from part 0"),
        /// Two parts contain the same shard.
        ShardTwice {
            /// The number of the shard.
            number: usize,
            /// The indices of the two parts.
            parts: [usize; 2],
        } => ("shard {number} is in two of the parts, {} and {}, counted from 0", parts[0], parts[1]),
        /// No part contains this shard.
        ShardMissing {
            /// The number of the shard.
            number: usize,
            /// The number of shards of the filter.
            shards: usize,
        } => ("shard {number} of {shards} is in none of the parts"),
        /// The shards requested for a snapshot are not in the filter or part, or the range is empty.
        NoSuchShards {
            /// The requested shards.
            requested: Range<usize>,
            /// The shards of the filter or part.
            there: Range<usize>,
        } => ("shards {requested:?} were requested; the filter or part has {there:?}, and a snapshot needs at least one"),
        /// The metadata or the name of the type of the keys is too long.
        TooLong {
            /// Which of the two.
            what: &'static str,
            /// The length in bytes.
            len: usize,
            /// The maximum length in bytes.
            most: usize,
        } => ("the {what} has {len} bytes; at most {most} fit"),
        /// Allocation failed.
        OutOfMemory {
            /// The size of the allocation.
            bytes: usize,
        } => ("failed to allocate {bytes} bytes"),
    }
}

#[cfg(all(feature = "shared", target_os = "linux"))]
errors! {
    /// The reason why a shared filter cannot be created, opened, changed or queried.
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
        UnknownVersion {
            /// The format of the file.
            found: u32,
            /// The format that this version of the crate reads.
            known: u32,
        } => ("the shared filter is of format {found}; this version of the crate reads format {known}"),
        /// The description of the filter in the file is damaged, or differs from the requested type.
        Header(error: SnapshotError) => ("the header of the shared filter, which has the form of a snapshot, was refused: {error}"),
        /// The file was truncated or extended.
        WrongLength {
            /// The length of the file that the filter requires, in bytes.
            expected: u64,
            /// The length of the file in bytes.
            found: u64,
        } => ("the shared filter requires {expected} bytes; the file has {found}"),
        /// Another handle has opened the filter for writing.
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

/// Implements an error with sources. Its variant `Io` has the text of the system, with the name of the file where there is one.
macro_rules! with_source {
    ($name:ident: $($variant:ident),+) => {
        debug_is_display!($name);

        impl Error for $name {
            fn source(&self) -> Option<&(dyn Error + 'static)> {
                match self {
                    $($name::$variant(error) => Some(error),)+
                    _ => None,
                }
            }
        }

        impl From<io::Error> for $name {
            fn from(error: io::Error) -> Self {
                $name::Io(error)
            }
        }

        impl $name {
            /// Adds the path of the file to an error of the system.
            pub(crate) fn of_file(self, path: &Path) -> Self {
                match self {
                    $name::Io(error) => $name::Io(io::Error::new(error.kind(), OfFile { path: path.into(), error })),
                    other => other,
                }
            }
        }
    };
}
with_source!(SnapshotError: Io);
#[cfg(all(feature = "shared", target_os = "linux"))]
with_source!(SharedError: Io, Build, Header);

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
