//! H1, H6: a look-up beside the relocation of its key, or of its neighbour.

use super::harness::*;
use crate::shard::Admission;
use std::sync::Arc;

/// A look-up of a key that moves once, in both directions, in both spawn orders, in one stripe or two.
fn relocation_is_never_missed(name: &'static str, width: u32, stripe_shift: u32, executions: [usize; 8]) {
    let (up, down) = (key(7, 0, 1), key(7, 1, 0));
    let mut executions = executions.into_iter();
    for (swapped, moved) in [(false, up), (false, down), (true, up), (true, down)] {
        for looked_up in [moved, turned(moved)] {
            let executions = executions.next().expect("8 numbers");
            Model { name, executions, preemptions: None, outcomes: outcomes(looked_up, moved) }.explore(move |seen| {
                let world = World::new(width, 2.max(1 << stripe_shift), stripe_shift);
                assert!(world.insert(moved));
                let (reader, writer, seen) = (Arc::clone(&world), Arc::clone(&world), seen.clone());
                run_two(
                    swapped,
                    move || {
                        assert!(reader.contains(looked_up), "a key that only moved was missed");
                        seen.note("found");
                    },
                    move || assert!(writer.hop(hop(moved))),
                );
                world.holds(&[(moved, 1)], 0);
            });
        }
    }
}

#[test]
fn relocation_is_never_missed_in_one_stripe() {
    relocation_is_never_missed(
        "relocation_is_never_missed_in_one_stripe",
        16,
        1,
        [120, 165, 120, 165, 183, 225, 183, 225],
    );
}

#[test]
fn relocation_is_never_missed_across_stripes() {
    relocation_is_never_missed(
        "relocation_is_never_missed_across_stripes",
        16,
        0,
        [120, 165, 120, 165, 183, 225, 183, 225],
    );
}

#[test]
fn relocation_is_never_missed_in_straddling_slots() {
    relocation_is_never_missed(
        "relocation_is_never_missed_in_straddling_slots",
        12,
        2,
        [738, 738, 738, 738, 1026, 1026, 1026, 1026],
    );
}

/// There and back: the version of the first move must not pass for that of the second.
#[test]
fn two_relocations_there_and_back_are_never_missed() {
    for (looked_up, executions) in [(key(7, 0, 1), 858), (key(7, 1, 0), 1597)] {
        let name = "two_relocations_there_and_back_are_never_missed";
        Model { name, executions, preemptions: Some(3), outcomes: &["found", "repeated"] }.explore(move |seen| {
            let world = World::new(16, 2, 0);
            let moved = key(7, 0, 1);
            assert!(world.insert(moved));
            let (reader, writer, seen) = (Arc::clone(&world), Arc::clone(&world), seen.clone());
            run_two(
                false,
                move || {
                    assert!(reader.contains(looked_up), "a key that moved there and back was missed");
                    seen.note("found");
                },
                move || {
                    assert!(writer.hop(hop(moved)));
                    assert!(writer.hop(hop(turned(moved))));
                },
            );
            world.holds(&[(moved, 1)], 0);
        });
    }
}

/// The last hop, which moves a key out of a full pair and puts the new key into the hole: neither is missed.
#[test]
fn last_hop_is_never_missed() {
    let (moved, new) = (key(7, 0, 1), key(8, 0, 2));
    for (looked_up, executions) in [(moved, 219), (turned(moved), 498)] {
        let name = "last_hop_is_never_missed";
        let outcomes = outcomes(looked_up, moved);
        Model { name, executions, preemptions: None, outcomes }.explore(move |seen| {
            let world = World::new(16, 3, 0);
            assert!(world.insert(moved));
            world.fill(0, 3, 20, 2);
            world.fill(2, 4, 30, 0);
            let (reader, writer, seen) = (Arc::clone(&world), Arc::clone(&world), seen.clone());
            run_two(
                false,
                move || {
                    assert!(reader.contains(looked_up), "the key that made room was missed");
                    seen.note("found");
                },
                move || {
                    assert_eq!(writer.carry_out(&[hop(moved)], new, Admission::Copies), Some(true));
                    assert!(writer.contains(new), "the new key was missed by who inserted it");
                },
            );
            world.holds(&[(moved, 1), (new, 1)], 7);
        });
    }
}

/// H6: a slot that shares a word, and straddles into the next, is written beside a key that stays where it is.
#[test]
fn neighbours_in_the_same_words_stay_found() {
    let name = "neighbours_in_the_same_words_stay_found";
    Model { name, executions: 2592, preemptions: None, outcomes: &["found"] }.explore(|seen| {
        let world = World::new(12, 4, 2);
        // Bucket 1 of 12-bit slots begins at bit 48: its slot 1 straddles two words.
        let (before, after) = (key(7, 1, 3), key(9, 1, 3));
        let between = key(8, 1, 3);
        assert!(world.insert(before) && world.insert(between) && world.insert(after));
        assert!(world.remove(between));
        let (reader, writer, seen) = (Arc::clone(&world), Arc::clone(&world), seen.clone());
        run_two(
            false,
            move || {
                assert!(reader.contains(before), "a neighbour in the lower word was missed");
                assert!(reader.contains(after), "a neighbour in the upper word was missed");
                seen.note("found");
            },
            move || {
                assert!(writer.insert(between));
                assert!(writer.remove(between));
            },
        );
        world.holds(&[(before, 1), (between, 0), (after, 1)], 0);
    });
}
