//! Bulk loads and bulk removals of a range of keys that no other thread touches.

use super::{Exact, Tally};
use crate::Promise;
use crate::operations::{INSERTS, LOOKUPS, REMOVES};
use fastrand::Rng;

/// Returns also how many loads and removals that were.
pub(super) fn load_and_remove(field: &Exact, mut rng: Rng) -> (Tally, u64) {
    let (mut done, mut rounds) = (Tally::default(), 0);
    let mut all: Vec<u64> = field.keys.bulk.clone().collect();
    loop {
        // A few keys that the filter has room for, or more than that.
        rng.shuffle(&mut all);
        let keys = &all[..rng.usize(1..=all.len())];
        let (name, insert) = INSERTS[rng.usize(..INSERTS.len())];
        let report = insert(&field.filter, keys);
        if report.inserted + report.rejected.len() != keys.len() {
            field.broken(Promise::Refusal, None, format_args!("the report of {name} does not add up"));
        }
        let mut present = vec![true; keys.len()];
        for refusal in &report.rejected {
            field.check_refusal(keys[refusal.index], 0, name, refusal.error);
            present[refusal.index] = false;
        }

        let (name, lookup) = LOOKUPS[rng.usize(..LOOKUPS.len())];
        let mut found = vec![false; keys.len()];
        lookup(&field.filter, keys, &mut found);
        if let Some(wrong) = (0..keys.len()).find(|&index| found[index] != present[index]) {
            let promise = if present[wrong] { Promise::Present } else { Promise::Absent };
            field.broken(promise, keys[wrong], format_args!("{name} after a bulk load says {}", found[wrong]));
        }

        let (name, remove) = REMOVES[rng.usize(..REMOVES.len())];
        let removal = remove(&field.filter, keys);
        let refused = report.rejected.iter().map(|refusal| refusal.index);
        if !removal.missing.iter().copied().eq(refused) || removal.removed != report.inserted {
            let what = format_args!("{name} removed {} of {} keys", removal.removed, report.inserted);
            field.broken(Promise::Removal, None, what);
        }
        done.operations += 2 * keys.len() as u64;
        done.lookups += keys.len() as u64;
        rounds += 2;
        if !field.is_worked_on() {
            break;
        }
    }
    (done, rounds)
}
