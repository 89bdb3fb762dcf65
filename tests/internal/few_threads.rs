//! Lookups concurrent with writers, on so few keys and threads that an interpreter of the memory model (`cargo xtask miri`) can
//! run them with many seeds: the shipped code, with the atomics of `core`.

use crate::filter::hashing;
use crate::layout::{Hop, Mixed, Plan};
use crate::raw::{Put, RawFilter};
use crate::sys::memory::HugePages;
use std::thread;

/// Keys that stay, in a table of 32 slots.
const STAYING: u64 = 24;

/// Keys that are inserted and removed.
const OTHERS: u64 = 24;

fn raced(plan: &Plan) {
    let raw: &RawFilter = &RawFilter::new(plan, HugePages::Unadvised).expect("memory");
    let staying: Vec<Mixed> = (0..STAYING).map(Mixed::of).collect();
    staying.iter().for_each(|&key| assert_eq!(raw.put(key, Put::COPY), Ok(0)));
    thread::scope(|scope| {
        scope.spawn(|| {
            for key in (STAYING..STAYING + OTHERS).map(Mixed::of) {
                if raw.put(key, Put::COPY).is_ok() && !plan.grows() {
                    assert!(raw.remove(key), "a key that was just inserted");
                }
            }
        });
        let mut found = [false; STAYING as usize];
        for round in 0..2 {
            staying.iter().for_each(|&key| assert!(raw.contains(key), "round {round}"));
            raw.contains_each(&mut hashing(&staying, |&key| key), &mut found);
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
    [(16, 0), (20, 0), (16, 1)].into_iter().for_each(|(bits, extension_bits)| {
        raced(&Plan { reserve_bits: 2, extension_bits, ..Plan::one_shard(bits, 8, 4) });
    });
}

/// A key that moves back and forth between its buckets, by the step of a path.
#[test]
fn a_key_that_is_relocated_without_pause_is_found() {
    for bits in [8, 13, 16, 24] {
        let raw: &RawFilter = &RawFilter::new(&Plan::one_shard(bits, 8, 4), HugePages::Unadvised).expect("memory");
        let key = Mixed::of(7);
        assert_eq!(raw.put(key, Put::COPY), Ok(0));
        let (shard, class) = raw.flat().locate(key);
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..40 {
                    let moved = [class, class.turned()].map(|class| shard.hop(Hop::of(class)));
                    assert!(moved.contains(&true), "it is in one of the two");
                }
            });
            let mut found = [false; 3];
            for round in 0..60 {
                assert!(raw.contains(key), "round {round}");
                raw.contains_each(&mut hashing(&[key; 3], |&key| key), &mut found);
                assert_eq!(found, [true; 3], "round {round}");
            }
        });
    }
}
