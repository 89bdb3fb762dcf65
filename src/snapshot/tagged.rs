//! Filters with tags in files: the same bytes, with a kind, and an epoch for each shard.

use super::file;
use super::format::{Expiring, Kind};
use super::read::SnapshotReader;
use super::{Saved, Snapshot};
use crate::error::SnapshotError;
use crate::hashing::SavedHasher;
use crate::tagged::{Core, CountingFilter, ExpiringFilter, TaggedFilter, nanos};
use core::time::Duration;
use std::io::{Read, Write};
use std::path::Path;

/// What is written and read of every kind. `$asked` is its name in files, and `$age` an argument of readers.
macro_rules! saved {
    ($filter:ident, $asked:literal, $tagged:literal, $since:expr, $(#[doc = $said:literal])* $($age:ident: $of:ty)?) => {
        impl<K: ?Sized + 'static, S: SavedHasher> $filter<K, S> {
            /// Begins a snapshot with options. [`write_to`](Self::write_to) and [`save`](Self::save) are the same without any.
            pub fn snapshot(&self) -> Snapshot<'_, K, S> {
                self.core.snapshot($tagged)
            }

            /// Reads the tables of a snapshot, as the filter that was written with this hasher, or with the one that is stored
            /// in it.
            $(#[doc = $said])*
            ///
            /// # Errors
            /// As [`CuckooFilter::read_from`](crate::CuckooFilter::read_from).
            pub fn from_snapshot(
                snapshot: SnapshotReader<impl Read>,
                hasher: Option<S>
                $(, $age: $of)?
            ) -> Result<Self, SnapshotError> {
                snapshot.into_core::<K, S>(hasher, $asked, $since).map(Self::from_core)
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
    fn snapshot<K: ?Sized + 'static>(&self, tagged: bool) -> Snapshot<'_, K, S> {
        let Core { ref raw, ref hasher, capacity, max_capacity, rate, ref clock, .. } = *self;
        let plan = *self.plan();
        let expiring = self.life().map(|life| Expiring {
            tag_bits: plan.tag_bits() - plan.count_bits,
            time_to_live: nanos(life.time),
            tick: nanos(life.tick),
            renewed: life.renews,
        });
        let counter_bits = if expiring.is_some() { plan.count_bits } else { plan.tag_bits() };
        let beside = Kind { growing: None, expiring, counter_bits, tagged };
        let (shards, capacities, clock) = (0..plan.shards, [capacity, max_capacity], clock.as_ref());
        Snapshot::new(Saved { raw, beside, clock, shards, plan, capacities, rate, hasher })
    }
}

saved!(
    ExpiringFilter,
    "expiring",
    false,
    passed,
    /// `passed` is the time since the last [`advance_to`](ExpiringFilter::advance_to) before it was written, as the caller
    /// knows it: by so much the filter is older, and what has died is dropped. Zero keeps everything. `advance_to` counts from
    /// here, and no part of a tick is lost, however often a filter is written and read.
    passed: Duration
);
saved!(
    CountingFilter,
    "counting",
    false,
    Duration::ZERO,
    /// Where counts die, time goes on from the last [`advance_to`](CountingFilter::advance_to) before it was written, and no part of a
    /// tick is lost: if the caller knows how long ago that was, `advance_to` is called with that time and the time since then.
);
saved!(TaggedFilter, "tagged", true, Duration::ZERO,);
