//! H2: to the keys of one class, the removal of a copy is a move.

use super::harness::*;
use crate::layout::Class;
use std::sync::Arc;

/// One copy lies in `stays`'s first bucket, where the lookup reads last. Another key of the class is inserted where
/// the lookup reads first, and its removal takes the old copy: `exchange` does both. The class is present all the time.
pub(super) fn removal_of_a_copy_is_never_missed(
    width: u32,
    stripe_shift: u32,
    executions: [usize; 4],
    exchange: fn(&Arc<World>, Class),
) {
    let configurations = [(false, 0, 1), (false, 1, 0), (true, 0, 1), (true, 1, 0)];
    for ((swapped, low, high), executions) in configurations.into_iter().zip(executions) {
        Model { executions, preemptions: None, outcomes: &["found", "repeated"] }.explore(move |seen| {
            let world = World::new(width, 2.max(1 << stripe_shift), stripe_shift);
            let stays = key_in(world.plan(), 0, low, high);
            world.put(stays);
            let seen = seen.clone();
            run_two(
                &world,
                swapped,
                move |reader| {
                    assert!(reader.contains(stays.turned()), "a class that was never absent was missed");
                    seen.note("found");
                },
                move |writer| exchange(writer, stays),
            );
            world.assert_holds(&[(stays, 1)], 0);
        });
    }
}

fn one_by_one(world: &Arc<World>, stays: Class) {
    assert!(world.insert(stays.turned()));
    assert!(world.remove(stays));
}

#[test]
fn equal_fingerprint_removal_at_16_bits() {
    removal_of_a_copy_is_never_missed(16, 0, [165, 165, 225, 225], one_by_one);
}

#[test]
fn equal_fingerprint_removal_at_12_bits() {
    removal_of_a_copy_is_never_missed(12, 2, [303, 303, 471, 471], one_by_one);
}

#[test]
fn equal_fingerprint_removal_at_13_bits() {
    removal_of_a_copy_is_never_missed(13, 4, [1092, 4683, 1440, 5991], one_by_one);
}

#[test]
fn equal_fingerprint_removal_at_24_bits() {
    removal_of_a_copy_is_never_missed(24, 1, [249, 339, 291, 447], one_by_one);
}

/// The copies lie in the two words of one bucket: slot 0 of bucket 1 in one, slot 2 in the other.
#[test]
fn equal_fingerprint_removal_in_one_bucket() {
    Model { executions: 303, preemptions: None, outcomes: &["found"] }.explore(|seen| {
        let world = World::new(12, 4, 2);
        let (stays, other) = (key_in(world.plan(), 0, 1, 0), key(8, 1, 1));
        // So that they go to bucket 1.
        world.fill(0, 4, 20);
        assert!(world.insert(other) && world.insert(other) && world.insert(stays));
        assert!(world.remove(other));
        let seen = seen.clone();
        run_two(
            &world,
            false,
            move |reader| {
                assert!(reader.contains(stays), "a class that was never absent was missed");
                seen.note("found");
            },
            move |writer| {
                assert!(writer.insert(stays));
                assert_eq!(writer.count(other), 1, "coinciding candidates are one bucket");
                assert!(writer.remove(stays));
            },
        );
        world.assert_holds(&[(stays, 1), (other, 1)], 4);
    });
}

/// The removal of all copies is one event: a reader that missed the class does not find it again.
#[test]
fn equal_fingerprint_removal_of_all_copies_is_one_event() {
    Model { executions: 498, preemptions: None, outcomes: &["found", "missed", "repeated"] }.explore(|seen| {
        let class = key(7, 0, 1);
        removal_is_one_event(seen, class, 1, move |world| assert_eq!(world.remove_all(class), 2));
    });
}

/// The same with two copies in one bucket and one in the other, whichever is emptied first.
#[test]
fn equal_fingerprint_removal_of_three_copies_is_one_event() {
    for (lower_first, executions) in [(true, 7701), (false, 1668)] {
        let outcomes: &[&str] = &["found", "missed", "repeated"];
        Model { executions, preemptions: None, outcomes }.explore(move |seen| {
            let class = key(7, 0, 1);
            let removed = if lower_first { class } else { class.turned() };
            removal_is_one_event(seen, class, 2, move |world| assert_eq!(world.remove_all(removed), 3));
        });
    }
}
