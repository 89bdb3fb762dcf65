//! The lookups of views, for each kind of filter.

use super::records::Records;
use super::tables::Tables;
use crate::error::SnapshotError;
use crate::filter::{assert_same_length, hashing};
use crate::layout::{Mixed, Plan, Tags};
use crate::raw::{Bare, Contains, Fingerprints, contains_each_in, contains_in};
use crate::snapshot::{Placed, Stored};
use crate::sys::bytes::Bytes;
use crate::sys::isa::Compiled;

/// The lookups in equal shards, or in tables that differ.
pub(super) enum Lookups<'a> {
    Plain {
        records: Records<'a, Bare>,
        contains: Compiled<Contains<Records<'a, Bare>>>,
    },
    /// With tags: the shards are searched for the fingerprint, and the values of hits are read at the epoch of their shard.
    Tagged {
        records: Records<'a, Fingerprints>,
        contains: Compiled<Contains<Records<'a, Fingerprints>>>,
        tables: Tables,
    },
    Growing {
        bytes: Bytes<'a>,
        tables: Tables,
    },
}

impl<'a> Lookups<'a> {
    pub(super) fn new(bytes: Bytes<'a>, stored: &Stored, placed: Option<Vec<Placed>>) -> Result<Self, SnapshotError> {
        let plan = stored.plan();
        let Some(placed) = placed else {
            return Ok(Lookups::Plain { contains: contains_in(plan), records: Records::new(bytes, Bare, stored) });
        };
        let tables = Tables::new(&bytes, plan, &placed)
            .map_err(|_| SnapshotError::OutOfMemory { bytes: size_of_val(&placed[..]) })?;
        if plan.grows() {
            return Ok(Lookups::Growing { bytes, tables });
        }
        let records = Records::new(bytes, Fingerprints { tag_bits: plan.tag_bits() }, stored);
        Ok(Lookups::Tagged { contains: contains_in(plan), records, tables })
    }

    pub(super) fn bytes(&self) -> &Bytes<'a> {
        match self {
            Lookups::Plain { records, .. } => &records.bytes,
            Lookups::Tagged { records, .. } => &records.bytes,
            Lookups::Growing { bytes, .. } => bytes,
        }
    }

    fn tables(&self) -> Option<&Tables> {
        match self {
            Lookups::Plain { .. } => None,
            Lookups::Tagged { tables, .. } | Lookups::Growing { tables, .. } => Some(tables),
        }
    }

    pub(super) fn slots(&self, plan: &Plan) -> usize {
        self.tables().map_or(plan.slots(), Tables::slots)
    }

    #[inline]
    pub(super) fn contains(&self, mixed: Mixed, now: u64) -> bool {
        match self {
            Lookups::Plain { records, contains } => contains.call(records, mixed),
            Lookups::Tagged { records, contains, tables } => {
                contains.call(records, mixed) && tables.is_alive(&records.bytes, mixed, now)
            }
            Lookups::Growing { bytes, tables } => tables.contains(bytes, mixed, now),
        }
    }

    /// # Panics
    /// If `keys` and `found` differ in length.
    #[track_caller]
    pub(super) fn contains_each<T>(&self, keys: &[T], mixed: impl Fn(&T) -> Mixed, now: u64, found: &mut [bool]) {
        assert_same_length(keys.len(), found.len());
        match self {
            Lookups::Plain { records, .. } => {
                contains_each_in(records, records.bytes.len(), &mut hashing(keys, mixed), found);
            }
            Lookups::Tagged { records, tables, .. } => {
                contains_each_in(records, records.bytes.len(), &mut hashing(keys, &mixed), found);
                tables.keep_alive(&records.bytes, keys, mixed, now, found);
            }
            Lookups::Growing { bytes, tables } => {
                tables.find_each(bytes, &mut hashing(keys, &mixed), found);
                tables.keep_alive(bytes, keys, mixed, now, found);
            }
        }
    }

    /// Returns the values of the copies of the key that are alive at this epoch; none for a plain filter.
    pub(super) fn values(&self, mixed: Mixed, now: u64) -> impl ExactSizeIterator<Item = u32> + use<> {
        let values = self.tables().map(|tables| tables.values(self.bytes(), mixed, now));
        values.unwrap_or_default().into_iter()
    }

    /// Returns a number of the tags, or 1 for a plain filter.
    pub(super) fn of_tags(&self, number: impl FnOnce(Tags) -> u32) -> u32 {
        self.tables().and_then(Tables::tags).map_or(1, number)
    }
}
