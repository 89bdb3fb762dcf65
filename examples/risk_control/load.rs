//! From keys into the filter, on all processors.

use crate::list::List;
use crate::made::{self, MadeKey};
use crate::progress::bar;
use concurrent_cuckoo_filter::{BulkReport, CuckooFilter};

/// Fewer keys are loaded before anybody could read a progress bar.
const MANY_KEYS: u64 = 1 << 23;

/// Gives each key of the list a copy of its own.
///
/// Keys are known to be distinct here, so this is an `insert` of each. `insert_unique` would take a key for present
/// when another one shares its fingerprint and buckets; the two would share a copy, and taking one of them off the
/// list would take off the other too. A list that never changes may well use it.
pub(crate) fn listed(filter: &CuckooFilter<str>, list: &List) -> Result<(), String> {
    let progress = bar("loading the list", list.keys.len() as u64, MANY_KEYS);
    let bulk = filter.bulk().max_listed(1).progress(|done| progress.set_position(done as u64));
    all_taken(bulk.insert(&list.keys), |index| list.keys[index].into())
}

/// The same for made keys, which stream in.
pub(crate) fn made(filter: &CuckooFilter<str>, keys: usize) -> Result<(), String> {
    let progress = bar("loading made keys", keys as u64, MANY_KEYS);
    let bulk = filter.bulk().max_listed(1).progress(|done| progress.set_position(done as u64));
    all_taken(bulk.insert_iter(made::keys(0..keys)), |index| MadeKey::new(index as u64).as_str().into())
}

/// Within the capacity a refusal is not expected. A service would build a filter anew, with other seeds.
fn all_taken(report: BulkReport, key: impl FnOnce(usize) -> String) -> Result<(), String> {
    let Some(first) = report.rejected.first() else { return Ok(()) };
    Err(format!(
        "the filter took no copy of {:?}: {}; keys refused in all: {}",
        key(first.index),
        first.error,
        report.rejected.len() + report.rejected_unlisted
    ))
}
