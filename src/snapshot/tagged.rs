//! Filters with tags in files: the same bytes, with a kind, and an epoch for each shard.

use super::file;
use super::format::{Expiring, Header, Kind, MAX_NAME};
use super::key_type::KeyType;
use super::read::SnapshotReader;
use super::write::write_records;
use crate::error::SnapshotError;
use crate::hashing::{SavedHasher, probe};
use crate::tagged::{Core, CountingFilter, ExpiringFilter, TaggedFilter, nanos};
use core::time::Duration;
use std::io::{Read, Write};
use std::path::Path;

impl<S: SavedHasher> Core<S> {
    fn header<K: ?Sized + 'static>(&self, kind: Kind) -> Header {
        const { assert!(S::NAME.len() <= MAX_NAME, "the name of a hasher has 64 bytes at the most") };
        Header {
            plan: *self.plan(),
            kind,
            part: 0..self.plan().shards,
            capacity: self.capacity,
            rate: self.rate,
            stored: self.raw.shards.len() as u64,
            key_type: KeyType::of::<K>(),
            hasher: S::NAME.into(),
            probe: probe(&self.hasher),
            keys: self.hasher.keys(),
            metadata: Vec::new(),
        }
    }

    /// `passed` says what part of a tick has passed in an epoch.
    fn write(&self, header: &Header, writer: impl Write, passed: impl Fn(u64) -> u32) -> Result<(), SnapshotError> {
        write_records(header, writer, |number, words| {
            let (count, epoch) = self.raw.at(number).copy_to(words);
            (count, epoch, passed(epoch))
        })
    }
}

impl<K: ?Sized + 'static, S: SavedHasher> ExpiringFilter<K, S> {
    fn kind(&self) -> Kind {
        let tag_bits = self.core.plan().slot_bits - self.core.plan().fingerprint_bits;
        let (time_to_live, tick) = (nanos(self.time_to_live()), nanos(self.tick()));
        Kind { expiring: Some(Expiring { tag_bits, time_to_live, tick }), ..Kind::default() }
    }

    /// Writes the filter, while it serves. As [`CuckooFilter::write_to`](crate::CuckooFilter::write_to); each shard is
    /// written with the epoch at which it was copied.
    ///
    /// # Errors
    /// What the writer returns, and if there is no memory for the copy of a shard.
    pub fn write_to(&self, writer: impl Write) -> Result<(), SnapshotError> {
        self.core.write(&self.core.header::<K>(self.kind()), writer, |epoch| self.passed_in(epoch))
    }

    /// Writes the filter to a file, in place of an older one. As [`CuckooFilter::save`](crate::CuckooFilter::save). The time
    /// is that of the last [`advance_to`](ExpiringFilter::advance_to): call it right before.
    ///
    /// # Errors
    /// As [`CuckooFilter::save`](crate::CuckooFilter::save).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::ExpiringFilter;
    /// use std::time::Duration;
    ///
    /// let path = std::env::temp_dir().join("concurrent-cuckoo-filter.example-expiring");
    /// let hour = Duration::from_secs(3600);
    /// let seen = ExpiringFilter::<str>::builder().capacity(1_000).time_to_live(24 * hour).build()?;
    /// seen.see("a.com")?;
    /// seen.advance_to(hour); // `start.elapsed()`
    /// seen.save(&path)?;
    /// // The program starts again some minutes, or a day and a half later.
    /// let seen = ExpiringFilter::<str>::load(&path, hour / 10)?;
    /// assert!(seen.contains("a.com"));
    /// assert!(!ExpiringFilter::<str>::load(&path, 36 * hour)?.contains("a.com"));
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), SnapshotError> {
        file::save(path.as_ref(), |file| self.write_to(file))
    }

    /// Reads a filter that was written with a hasher like this one. `passed` is the time since the last
    /// [`advance_to`](ExpiringFilter::advance_to) before it was written, as the caller knows it: by so much the filter is older,
    /// and what has died is dropped. Zero keeps everything. `advance_to` counts from here, and no part of a tick is lost,
    /// however often a filter is written and read.
    ///
    /// # Errors
    /// As [`CuckooFilter::read_from`](crate::CuckooFilter::read_from).
    pub fn read_from(reader: impl Read, hasher: S, passed: Duration) -> Result<Self, SnapshotError> {
        Self::read(SnapshotReader::new(reader)?, Some(hasher), passed)
    }

    /// Reads a filter from a file, with the keys of the hasher that stand there. As
    /// [`read_from`](ExpiringFilter::read_from).
    ///
    /// # Errors
    /// As [`CuckooFilter::load`](crate::CuckooFilter::load).
    pub fn load(path: impl AsRef<Path>, passed: Duration) -> Result<Self, SnapshotError> {
        file::load(path.as_ref(), |file| Self::read(SnapshotReader::new(file)?, None, passed))
    }

    fn read(reader: SnapshotReader<impl Read>, hasher: Option<S>, passed: Duration) -> Result<Self, SnapshotError> {
        let is_expiring =
            |kind: &Kind| *kind == Kind { expiring: kind.expiring, ..Kind::default() } && kind.expiring.is_some();
        let (core, kind, passed_before) = reader.into_core::<K, S>(hasher, "expiring", is_expiring)?;
        let Expiring { time_to_live, tick, .. } = kind.expiring.expect("it expires");
        let [time_to_live, tick] = [time_to_live, tick].map(Duration::from_nanos);
        Ok(ExpiringFilter::loaded(core, time_to_live, tick, passed_before, passed))
    }
}

/// Filters with a number of the same meaning at all times. `$store` stores "a", and `$told` is what the filter then says.
macro_rules! kept {
    ($filter:ident, $asked:literal, $tagged:literal, $store:literal, $told:literal) => {
        impl<K: ?Sized + 'static, S: SavedHasher> $filter<K, S> {
            fn kind(&self) -> Kind {
                let counter_bits = self.core.plan().slot_bits - self.core.plan().fingerprint_bits;
                Kind { counter_bits, tagged: $tagged, ..Kind::default() }
            }

            /// Writes the filter, while it serves. As [`CuckooFilter::write_to`](crate::CuckooFilter::write_to).
            ///
            /// # Errors
            /// What the writer returns, and if there is no memory for the copy of a shard.
            pub fn write_to(&self, writer: impl Write) -> Result<(), SnapshotError> {
                self.core.write(&self.core.header::<K>(self.kind()), writer, |_| 0)
            }

            /// Writes the filter to a file, in place of an older one. As [`CuckooFilter::save`](crate::CuckooFilter::save).
            ///
            /// # Errors
            /// As [`CuckooFilter::save`](crate::CuckooFilter::save).
            ///
            /// ```
            #[doc = concat!("use concurrent_cuckoo_filter::", stringify!($filter), ";")]
            ///
            #[doc = concat!("let path = std::env::temp_dir().join(\"concurrent-cuckoo-filter.example-", $asked, "\");")]
            #[doc = concat!("let words = ", stringify!($filter), "::<str>::builder().capacity(1_000).build()?;")]
            #[doc = concat!("words.", $store, "?;")]
            /// words.save(&path)?;
            #[doc = concat!("let words = ", stringify!($filter), "::<str>::load(&path)?;")]
            #[doc = concat!("assert_eq!(words.", $told, ");")]
            /// # std::fs::remove_file(&path)?;
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn save(&self, path: impl AsRef<Path>) -> Result<(), SnapshotError> {
                file::save(path.as_ref(), |file| self.write_to(file))
            }

            /// Reads a filter that was written with a hasher like this one.
            ///
            /// # Errors
            /// As [`CuckooFilter::read_from`](crate::CuckooFilter::read_from).
            pub fn read_from(reader: impl Read, hasher: S) -> Result<Self, SnapshotError> {
                Self::read(SnapshotReader::new(reader)?, Some(hasher))
            }

            /// Reads a filter from a file, with the keys of the hasher that stand there.
            ///
            /// # Errors
            /// As [`CuckooFilter::load`](crate::CuckooFilter::load).
            pub fn load(path: impl AsRef<Path>) -> Result<Self, SnapshotError> {
                file::load(path.as_ref(), |file| Self::read(SnapshotReader::new(file)?, None))
            }

            fn read(reader: SnapshotReader<impl Read>, hasher: Option<S>) -> Result<Self, SnapshotError> {
                let is_asked = |kind: &Kind| {
                    let counter_bits = kind.counter_bits;
                    counter_bits > 0 && *kind == Kind { counter_bits, tagged: $tagged, ..Kind::default() }
                };
                let (core, ..) = reader.into_core::<K, S>(hasher, $asked, is_asked)?;
                Ok($filter::from_core(core))
            }
        }
    };
}

kept!(CountingFilter, "counting", false, "add(\"a\")", "count(\"a\"), 1");
kept!(TaggedFilter, "tagged", true, "insert(\"a\", 3)", "tag(\"a\"), Some(3)");
