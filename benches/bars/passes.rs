//! Passes of single calls over the keys of a field: nanoseconds for each key.

use compare::clock::{timed, warm_timed};
use compare::{Field, Passes, Set};

/// The set with all the keys of the field.
pub(crate) fn filled<T: Set<u64>>(set: T, field: &Field<u64>) -> T {
    set.insert_all(&field.present);
    set
}

pub(crate) fn hits(set: &impl Set<u64>, field: &Field<u64>) -> f64 {
    let (nanos, found) = warm_timed(field.hits.len(), || set.contains_all(&field.hits));
    most(found, field.hits.len());
    nanos
}

pub(crate) fn misses(set: &impl Set<u64>, field: &Field<u64>) -> f64 {
    let (nanos, found) = warm_timed(field.misses.len(), || set.contains_all(&field.misses));
    assert!(found <= field.misses.len() / 100, "{found} of {} found", field.misses.len());
    nanos
}

pub(crate) fn inserts(set: &impl Set<u64>, field: &Field<u64>) -> f64 {
    let (nanos, inserted) = timed(field.present.len(), || set.insert_all(&field.present));
    most(inserted, field.present.len());
    nanos
}

pub(crate) fn removes(set: &impl Set<u64>, field: &Field<u64>) -> f64 {
    let (nanos, removed) = timed(field.present.len(), || set.remove_all(&field.present));
    most(removed, field.present.len());
    nanos
}

/// Checks that hardly a key is missing: atomic-cuckoo-filter refuses and loses some.
fn most(done: usize, all: usize) {
    assert!((all - all / 1000..=all).contains(&done), "{done} of {all}");
}
