//! Lookups beside writers, on so few keys and threads that an interpreter of the memory model (`cargo xtask miri`) gets through
//! them with many seeds: the code that ships, with the atomics of `core`.

use crate::batch::lookup_batch;
use crate::layout::{Mixed, Plan};
use crate::raw::RawFilter;
use crate::sys::memory::HugePages;
use std::thread;

/// Keys that stay, of a table of 32 slots that is nearly full: each other insertion relocates one.
const STAYING: u64 = 24;

/// Keys that come and go.
const OTHERS: u64 = 24;

fn raced(plan: &Plan) {
    let raw: &RawFilter = &RawFilter::new(plan, HugePages::Unadvised).expect("memory");
    let staying: Vec<Mixed> = (0..STAYING).map(Mixed::of).collect();
    staying.iter().for_each(|&key| assert_eq!(raw.insert(key), Ok(())));
    thread::scope(|scope| {
        scope.spawn(|| {
            for key in (STAYING..STAYING + OTHERS).map(Mixed::of) {
                if raw.insert(key).is_ok() && !plan.grows() {
                    assert!(raw.remove(key), "a key that was just inserted");
                }
            }
        });
        let mut found = [false; STAYING as usize];
        for round in 0..2 {
            staying.iter().for_each(|&key| assert!(raw.contains(key), "round {round}"));
            lookup_batch(raw, &staying, |&key| key, &mut found);
            assert!(found.iter().all(|&found| found), "round {round}: {found:?}");
        }
    });
    assert!(staying.iter().all(|&key| raw.contains(key)));
}

#[test]
fn keys_that_stay_are_found_beside_keys_that_come_and_go() {
    [8, 13, 16, 24].into_iter().for_each(|bits| raced(&Plan::one_shard(bits, 8, 4)));
}

#[test]
fn keys_that_stay_are_found_while_tables_are_split() {
    [16, 20].into_iter().for_each(|bits| raced(&Plan { reserve_bits: 2, ..Plan::one_shard(bits, 8, 4) }));
}
