//! The description of a shared filter in its file: the header of a snapshot, without records.

use super::read::{SnapshotReader, check, check_plain, stored_hasher, whole};
use crate::error::SnapshotError;
use crate::filter::CuckooFilter;
use crate::hashing::SavedHasher;
use crate::layout::Plan;

/// A parsed description.
pub(crate) struct Described<S> {
    pub(crate) plan: Plan,
    pub(crate) capacity: usize,
    pub(crate) rate: Option<f64>,
    pub(crate) hasher: S,
}

/// Describes a filter.
pub(crate) fn describe<K: ?Sized + 'static, S: SavedHasher>(
    filter: &CuckooFilter<K, S>,
) -> Result<Vec<u8>, SnapshotError> {
    Ok(filter.snapshot().header()?.to_bytes())
}

/// Reads and checks the description of a plain filter of fixed size.
pub(crate) fn described<K: ?Sized + 'static, S: SavedHasher>(bytes: &[u8]) -> Result<Described<S>, SnapshotError> {
    let reader = SnapshotReader::new(bytes)?;
    let hasher: S = stored_hasher(&reader.header)?;
    check::<K, S>(&reader.header, &hasher)?;
    check_plain(&reader.header)?;
    whole(&reader.header)?;
    let header = &reader.header.0;
    Ok(Described { plan: header.plan, capacity: header.capacity, rate: header.rate, hasher })
}
