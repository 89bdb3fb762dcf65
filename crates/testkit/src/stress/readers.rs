//! Readers that hold no flags: they find stable keys at all times, and absent keys never.

use super::{Exact, Tally};
use crate::operations::LOOKUPS;
use fastrand::Rng;

/// Single lookups of stable keys between two lookups of many keys.
const SINGLES: u64 = 10_000;

pub(super) fn ask(field: &Exact, mut rng: Rng) -> Tally {
    let mut done = Tally::default();
    let mut found = Vec::new();
    loop {
        // One at a time, as often as possible: a fault would hide a key that moves for a moment only.
        for _ in 0..SINGLES {
            let key = rng.u64(field.keys.stable.clone());
            assert!(field.filter.contains(&key), "contains missed a stable key, {key}");
        }
        done.lookups += SINGLES;
        for (all, present) in [(&field.keys.stable, true), (&field.keys.absent, false)] {
            let (name, lookup) = LOOKUPS[rng.usize(..LOOKUPS.len())];
            // Thousands of keys are a bulk operation, hundreds a batch.
            let keys: Vec<u64> =
                (0..if rng.u32(..8) == 0 { 4096 } else { 256 }).map(|_| rng.u64(all.clone())).collect();
            found.clear();
            found.resize(keys.len(), !present);
            lookup(&field.filter, &keys, &mut found);
            let wrong = found.iter().position(|&found| found != present);
            assert_eq!(wrong.map(|wrong| keys[wrong]), None, "{name} is wrong about a key; it is present: {present}");
            done.lookups += keys.len() as u64;
        }
        if !field.is_worked_on() {
            break;
        }
    }
    done
}
