//! Snapshots of the filter, written to memory, read back and counted.

use super::{Exact, Tally};
use crate::{Filter, MAX_COPIES, Promise};
use concurrent_cuckoo_filter::{SnapshotError, SnapshotReader};
use fastrand::Rng;
use std::sync::MutexGuard;

/// Flagged keys that are held still while a snapshot is taken.
const MAX_HELD: usize = 2048;

/// Of this many snapshots every copy is counted in one, which takes as long as to take some dozens.
const COUNTED: u64 = 16;

/// Returns also how many that were.
pub(super) fn take(field: &Exact, mut rng: Rng) -> (Tally, u64) {
    let (mut done, mut snapshots) = (Tally::default(), 0);
    loop {
        let mut bytes = Vec::new();
        let held = hold(field, &mut rng);
        if let Err(error) = field.filter.snapshot().metadata(b"stress").write_to(&mut bytes) {
            field.broken(Promise::Snapshot, None, format_args!("not written: {error}"));
        }
        let still: Vec<(u64, u8)> = held.into_iter().map(|(key, copies)| (key, *copies)).collect();
        match read(&bytes, field, rng.bool()) {
            Ok(copy) => {
                done.lookups += check(field, &copy, &still);
                if snapshots % COUNTED == 0 {
                    done.lookups += count_all(field, &copy);
                }
            }
            Err(error) => field.broken(Promise::Snapshot, None, format_args!("not read back: {error}")),
        }
        snapshots += 1;
        if !field.is_worked_on() {
            break;
        }
    }
    (done, snapshots)
}

fn hold<'a>(field: &'a Exact, rng: &mut Rng) -> Vec<(u64, MutexGuard<'a, u8>)> {
    let held = MAX_HELD.min(field.copies.len() / 2);
    let first = rng.usize(..field.copies.len() - held);
    (first..first + held).filter_map(|number| Some((number as u64, field.try_flag(number)?))).collect()
}

fn read(bytes: &[u8], field: &Exact, parallel: bool) -> Result<Filter, SnapshotError> {
    let reader = SnapshotReader::new(bytes)?;
    let reader = if parallel { reader.in_parallel() } else { reader };
    reader.into_filter(field.filter.hasher().clone())
}

/// What stood still meanwhile is in the copy. Returns how many keys were counted.
fn check(field: &Exact, copy: &Filter, still: &[(u64, u8)]) -> u64 {
    let stable = field.keys.stable.clone().map(|key| (key, 1));
    let mut counted = 0;
    for (key, copies) in stable.chain(still.iter().copied()) {
        if count(field, copy, key) != usize::from(copies) {
            let count = copy.count(&key);
            field.broken(Promise::Snapshot, key, format_args!("{count} copies in a snapshot, {copies} meanwhile"));
        }
        counted += 1;
    }
    counted
}

/// All that is in the copy is one of the keys. Returns how many keys were counted.
fn count_all(field: &Exact, copy: &Filter) -> u64 {
    let keys = &field.keys;
    let fleeting = keys.bulk.start..keys.contested.end;
    let mut sum = 0;
    for (range, most) in [(&keys.flagged, MAX_COPIES), (&keys.stable, 1), (&fleeting, 1), (&keys.absent, 0)] {
        for key in range.clone() {
            let count = count(field, copy, key);
            if count > usize::from(most) {
                field.broken(Promise::Snapshot, key, format_args!("{count} copies in a snapshot, {most} at the most"));
            }
            sum += count;
        }
    }
    if copy.len() != sum {
        field.broken(Promise::Snapshot, None, format_args!("len is {}, but {sum} copies are counted", copy.len()));
    }
    keys.absent.end
}

fn count(field: &Exact, copy: &Filter, key: u64) -> usize {
    let count = copy.count(&key);
    if copy.contains(&key) != (count > 0) {
        field.broken(Promise::Snapshot, key, format_args!("contains and count, {count}, differ in a snapshot"));
    }
    count
}
