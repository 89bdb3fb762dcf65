//! H2: to the keys of one class, the removal of a copy is a move.

use super::harness::*;
use crate::geometry::Candidates;
use std::sync::Arc;

/// One copy lies in `stays`'s first bucket, where the look-up reads last. Another key of the class is inserted where
/// the look-up reads first, and its removal takes the old copy: `exchange` does both. The class is present all the time.
pub(super) fn removal_of_a_copy_is_never_missed(
    name: &'static str,
    width: u32,
    stripe_shift: u32,
    executions: [usize; 4],
    exchange: fn(&Arc<World>, Candidates),
) {
    let configurations = [(false, 0, 1), (false, 1, 0), (true, 0, 1), (true, 1, 0)];
    for ((swapped, low, high), executions) in configurations.into_iter().zip(executions) {
        Model { name, executions, preemptions: None, outcomes: &["found", "repeated"] }.explore(move |seen| {
            let world = World::new(width, 2.max(1 << stripe_shift), stripe_shift);
            let stays = key(7, low, high);
            world.put(stays);
            let (reader, writer, seen) = (Arc::clone(&world), Arc::clone(&world), seen.clone());
            run_two(
                swapped,
                move || {
                    assert!(reader.contains(turned(stays)), "a class that was never absent was missed");
                    seen.note("found");
                },
                move || exchange(&writer, stays),
            );
            world.holds(&[(stays, 1)], 0);
        });
    }
}

fn one_by_one(world: &Arc<World>, stays: Candidates) {
    assert!(world.insert(turned(stays)));
    assert!(world.remove(stays));
}

#[test]
fn equal_fingerprint_removal_at_16_bits() {
    removal_of_a_copy_is_never_missed("equal_fingerprint_removal_at_16_bits", 16, 0, [165, 165, 225, 225], one_by_one);
}

#[test]
fn equal_fingerprint_removal_at_12_bits() {
    removal_of_a_copy_is_never_missed("equal_fingerprint_removal_at_12_bits", 12, 2, [303, 303, 471, 471], one_by_one);
}

#[test]
fn equal_fingerprint_removal_at_13_bits() {
    removal_of_a_copy_is_never_missed(
        "equal_fingerprint_removal_at_13_bits",
        13,
        4,
        [1686, 3471, 2160, 4863],
        one_by_one,
    );
}

#[test]
fn equal_fingerprint_removal_at_24_bits() {
    removal_of_a_copy_is_never_missed("equal_fingerprint_removal_at_24_bits", 24, 1, [249, 339, 291, 447], one_by_one);
}

/// Both candidates are one bucket, and the copies lie in its two words: slot 0 of bucket 1 in one, slot 2 in the other.
#[test]
fn equal_fingerprint_removal_where_candidates_coincide() {
    let name = "equal_fingerprint_removal_where_candidates_coincide";
    Model { name, executions: 303, preemptions: None, outcomes: &["found"] }.explore(|seen| {
        let world = World::new(12, 4, 2);
        let (stays, other) = (key(7, 1, 1), key(8, 1, 1));
        assert!(world.insert(other) && world.insert(other) && world.insert(stays));
        assert!(world.remove(other));
        let (reader, writer, seen) = (Arc::clone(&world), Arc::clone(&world), seen.clone());
        run_two(
            false,
            move || {
                assert!(reader.contains(stays), "a class that was never absent was missed");
                seen.note("found");
            },
            move || {
                assert!(writer.insert(stays));
                assert_eq!(writer.count(stays), 2, "coinciding candidates are one bucket");
                assert!(writer.remove(stays));
            },
        );
        world.holds(&[(stays, 1), (other, 1)], 0);
    });
}

/// The removal of all copies is one event: who missed the class does not find it again.
#[test]
fn equal_fingerprint_removal_of_all_copies_is_one_event() {
    let name = "equal_fingerprint_removal_of_all_copies_is_one_event";
    Model { name, executions: 657, preemptions: None, outcomes: &["found", "missed", "repeated"] }.explore(|seen| {
        let class = key(7, 0, 1);
        removal_is_one_event(seen, class, move |world| assert_eq!(world.remove_all(class), 2));
    });
}
