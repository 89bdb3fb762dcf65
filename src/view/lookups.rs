//! The lookups of views, for each kind of filter.

use super::records::Records;
use super::tables::Tables;
use crate::error::SnapshotError;
use crate::filter::{assert_same_length, hashing};
use crate::layout::Mixed;
use crate::raw::contains_each_in;
use crate::snapshot::{Placed, Stored};
use crate::sys::bytes::Bytes;

pub(super) enum Lookups<'a> {
    /// The equal shards of a plain filter of fixed size.
    Records(Records<'a>),
    Tables(Tables<'a>),
}

impl<'a> Lookups<'a> {
    pub(super) fn new(bytes: Bytes<'a>, stored: &Stored, placed: Option<Vec<Placed>>) -> Result<Self, SnapshotError> {
        let Some(placed) = placed else { return Ok(Lookups::Records(Records::new(bytes, stored))) };
        let refused = |_| SnapshotError::OutOfMemory { bytes: size_of_val(&placed[..]) };
        Tables::new(bytes, stored.plan(), &placed).map(Lookups::Tables).map_err(refused)
    }

    pub(super) fn bytes(&self) -> &Bytes<'a> {
        match self {
            Lookups::Records(records) => &records.bytes,
            Lookups::Tables(tables) => &tables.bytes,
        }
    }

    /// Returns the tables of a filter whose slots have tags.
    pub(super) fn with_tags(&self) -> &Tables<'a> {
        match self {
            Lookups::Records(_) => unreachable!("a plain filter has no tags"),
            Lookups::Tables(tables) => tables,
        }
    }

    #[inline]
    pub(super) fn contains(&self, mixed: Mixed, now: u64) -> bool {
        match self {
            Lookups::Records(records) => records.contains.call(records, mixed),
            Lookups::Tables(tables) => tables.contains(mixed, now),
        }
    }

    /// # Panics
    /// If `keys` and `found` differ in length.
    #[track_caller]
    pub(super) fn contains_each<T>(&self, keys: &[T], mixed: impl Fn(&T) -> Mixed, now: u64, found: &mut [bool]) {
        assert_same_length(keys.len(), found.len());
        match self {
            Lookups::Records(records) => {
                contains_each_in(records, records.bytes.len(), &mut hashing(keys, mixed), found);
            }
            Lookups::Tables(tables) => tables.contains_each(keys, mixed, now, found),
        }
    }
}
