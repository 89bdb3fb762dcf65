//! Filters with tags in files: the same bytes, with a kind, and an epoch for each shard.

use super::file;
use super::format::{Expiring, Kind};
use super::read::SnapshotReader;
use super::{Saved, Snapshot};
use crate::error::SnapshotError;
use crate::hashing::SavedHasher;
use crate::tagged::{Core, CountingFilter, Elapsed, ExpiringFilter, TaggedFilter, nanos};
use core::time::Duration;
use std::io::{Read, Write};
use std::path::Path;

/// What is written and read of every kind. `$elapsed` is the time of those that expire; `$age` is an argument of their readers.
macro_rules! saved {
    ($filter:ident, $elapsed:expr, $($age:ident: $of:ty)?) => {
        impl<K: ?Sized + 'static, S: SavedHasher> $filter<K, S> {
            /// Begins a snapshot with options. [`write_to`](Self::write_to) and [`save`](Self::save) are the same without any.
            pub fn snapshot(&self) -> Snapshot<'_, K, S> {
                let elapsed: fn(&Self) -> Option<&Elapsed> = $elapsed;
                self.core.snapshot(self.beside(), elapsed(self))
            }

            /// Writes the filter, while it serves. As [`CuckooFilter::write_to`](crate::CuckooFilter::write_to); each table is
            /// written with the epoch at which it was copied.
            ///
            /// # Errors
            /// What the writer returns, and if there is no memory for the copy of a table.
            pub fn write_to(&self, writer: impl Write) -> Result<(), SnapshotError> {
                self.snapshot().write_to(writer)
            }

            /// Writes the filter to a file, in place of an older one. As [`CuckooFilter::save`](crate::CuckooFilter::save).
            ///
            /// # Errors
            /// As [`CuckooFilter::save`](crate::CuckooFilter::save).
            pub fn save(&self, path: impl AsRef<Path>) -> Result<(), SnapshotError> {
                self.snapshot().save(path)
            }

            /// Reads a filter that was written with a hasher like this one. As [`from_snapshot`](Self::from_snapshot).
            ///
            /// # Errors
            /// As [`CuckooFilter::read_from`](crate::CuckooFilter::read_from).
            pub fn read_from(reader: impl Read, hasher: S $(, $age: $of)?) -> Result<Self, SnapshotError> {
                Self::from_snapshot(SnapshotReader::new(reader)?, Some(hasher) $(, $age)?)
            }

            /// Reads a filter from a file, with the keys of the hasher that stand there. As
            /// [`from_snapshot`](Self::from_snapshot).
            ///
            /// # Errors
            /// As [`CuckooFilter::load`](crate::CuckooFilter::load).
            pub fn load(path: impl AsRef<Path> $(, $age: $of)?) -> Result<Self, SnapshotError> {
                file::load(path.as_ref(), |file| Self::from_snapshot(SnapshotReader::new(file)?, None $(, $age)?))
            }

            /// As [`load`](Self::load), on all threads of the rayon pool that the caller is in, or of the global one.
            ///
            /// # Errors
            /// As [`CuckooFilter::load`](crate::CuckooFilter::load).
            ///
            /// # Panics
            /// As [`CuckooFilter::par_insert`](crate::CuckooFilter::par_insert), if the system refuses rayon its threads.
            #[cfg(feature = "rayon")]
            #[cfg_attr(docsrs, doc(cfg(feature = "rayon")))]
            pub fn par_load(path: impl AsRef<Path> $(, $age: $of)?) -> Result<Self, SnapshotError> {
                file::load(path.as_ref(), |file| {
                    Self::from_snapshot(SnapshotReader::new(file)?.in_parallel(), None $(, $age)?)
                })
            }
        }
    };
}

impl<S: SavedHasher> Core<S> {
    fn snapshot<'a, K: ?Sized + 'static>(&'a self, beside: Kind, elapsed: Option<&'a Elapsed>) -> Snapshot<'a, K, S> {
        let Core { ref raw, ref hasher, capacity, max_capacity, rate } = *self;
        let plan = *self.plan();
        let (shards, capacities) = (0..plan.shards, [capacity, max_capacity]);
        Snapshot::new(Saved { raw, beside, elapsed, shards, plan, capacities, rate, hasher })
    }
}

impl<K: ?Sized + 'static, S: SavedHasher> ExpiringFilter<K, S> {
    fn beside(&self) -> Kind {
        let tag_bits = self.core.plan().tag_bits();
        let (time_to_live, tick) = (nanos(self.time_to_live()), nanos(self.tick()));
        Kind { expiring: Some(Expiring { tag_bits, time_to_live, tick }), ..Kind::default() }
    }

    /// Reads the tables of a snapshot, as the filter that was written with this hasher, or with the one that is stored in it.
    /// `passed` is the time since the last [`advance_to`](ExpiringFilter::advance_to) before it was written, as the caller
    /// knows it: by so much the filter is older, and what has died is dropped. Zero keeps everything. `advance_to` counts from
    /// here, and no part of a tick is lost, however often a filter is written and read.
    ///
    /// # Errors
    /// As [`CuckooFilter::read_from`](crate::CuckooFilter::read_from).
    pub fn from_snapshot(
        snapshot: SnapshotReader<impl Read>,
        hasher: Option<S>,
        passed: Duration,
    ) -> Result<Self, SnapshotError> {
        let is_expiring = |kind: &Kind| {
            let Kind { growing, expiring, .. } = *kind;
            *kind == Kind { growing, expiring, ..Kind::default() } && expiring.is_some()
        };
        let (core, kind, passed_before) = snapshot.into_core::<K, S>(hasher, "expiring", is_expiring)?;
        let Expiring { time_to_live, tick, .. } = kind.expiring.expect("it expires");
        let [time_to_live, tick] = [time_to_live, tick].map(Duration::from_nanos);
        Ok(ExpiringFilter::loaded(core, time_to_live, tick, passed_before, passed))
    }
}

saved!(ExpiringFilter, |filter| Some(filter.elapsed()), passed: Duration);
saved!(CountingFilter, |_| None,);
saved!(TaggedFilter, |_| None,);

/// Filters of which the numbers mean the same at all times.
macro_rules! kept {
    ($filter:ident, $asked:literal, $tagged:literal) => {
        impl<K: ?Sized + 'static, S: SavedHasher> $filter<K, S> {
            fn beside(&self) -> Kind {
                Kind { counter_bits: self.core.plan().tag_bits(), tagged: $tagged, ..Kind::default() }
            }

            /// Reads the tables of a snapshot, as the filter that was written with this hasher, or with the one that is stored
            /// in it.
            ///
            /// # Errors
            /// As [`CuckooFilter::read_from`](crate::CuckooFilter::read_from).
            pub fn from_snapshot(
                snapshot: SnapshotReader<impl Read>,
                hasher: Option<S>,
            ) -> Result<Self, SnapshotError> {
                let is_asked = |kind: &Kind| {
                    let Kind { growing, counter_bits, .. } = *kind;
                    counter_bits > 0 && *kind == Kind { growing, counter_bits, tagged: $tagged, ..Kind::default() }
                };
                let (core, ..) = snapshot.into_core::<K, S>(hasher, $asked, is_asked)?;
                Ok($filter::from_core(core))
            }
        }
    };
}

kept!(CountingFilter, "counting", false);
kept!(TaggedFilter, "tagged", true);
