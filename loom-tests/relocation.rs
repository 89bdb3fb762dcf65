//! H1, H6: a look-up beside the relocation of its key, or of its neighbour.

use super::harness::*;
use crate::geometry::Candidates;
use crate::shard::Admission;
use crate::table::{Layout, Run, TwoRuns, Word};
use std::sync::Arc;

/// A look-up of a key that moves once, in both directions, in both spawn orders, in one stripe or two. In bucket 1 it
/// has `below` slots below it. `look` is how it is looked up.
fn relocation_is_never_missed(
    name: &'static str,
    width: u32,
    stripe_shift: u32,
    below: u32,
    look: fn(&World, Candidates) -> bool,
    executions: [usize; 8],
) {
    let (up, down) = (key(0xa5c, 0, 1), key(0xa5c, 1, 0));
    let mut executions = executions.into_iter();
    for (swapped, moved) in [(false, up), (false, down), (true, up), (true, down)] {
        // The order in which a miss is possible comes first: a fault is reported as one, not by the count of executions.
        for looked_up in [turned(moved), moved] {
            let executions = executions.next().expect("8 numbers");
            Model { name, executions, preemptions: None, outcomes: outcomes(looked_up, moved) }.explore(move |seen| {
                let world = World::new(width, 2.max(1 << stripe_shift), stripe_shift);
                world.fill(1, below, 20);
                world.put(moved);
                let (reader, writer, seen) = (Arc::clone(&world), Arc::clone(&world), seen.clone());
                run_two(
                    swapped,
                    move || {
                        assert!(look(&reader, looked_up), "a key that only moved was missed");
                        seen.note("found");
                    },
                    move || assert!(writer.hop(hop(moved))),
                );
                world.holds(&[(moved, 1)], u64::from(below));
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
        0,
        World::contains,
        [165, 120, 165, 120, 225, 183, 225, 183],
    );
}

#[test]
fn relocation_is_never_missed_across_stripes() {
    relocation_is_never_missed(
        "relocation_is_never_missed_across_stripes",
        16,
        0,
        0,
        World::contains,
        [165, 120, 165, 120, 225, 183, 225, 183],
    );
}

/// Bucket 1 of 12-bit slots begins at bit 48: its slot 1 straddles two words.
#[test]
fn relocation_is_never_missed_in_straddling_slots() {
    relocation_is_never_missed(
        "relocation_is_never_missed_in_straddling_slots",
        12,
        2,
        1,
        World::contains,
        [1686, 1686, 3471, 2739, 2160, 2160, 4863, 3999],
    );
}

/// A look-up of a batch, which finds its words first and reads them later.
fn aimed<L: Layout>(world: &World, key: Candidates) -> bool {
    let aim = world.shard.aim::<L>(&world.format, key);
    aim.look(&world.format).unwrap_or_else(|| world.shard.look_again(&world.format, key))
}

#[test]
fn batch_look_up_beside_relocation_at_16_bits() {
    let name = "batch_look_up_beside_relocation_at_16_bits";
    relocation_is_never_missed(name, 16, 0, 0, aimed::<Word>, [411, 330, 411, 330, 417, 348, 417, 348]);
}

#[test]
fn batch_look_up_beside_relocation_at_12_bits() {
    let name = "batch_look_up_beside_relocation_at_12_bits";
    relocation_is_never_missed(name, 12, 2, 1, aimed::<Run>, [5589, 5589, 6486, 5511, 5577, 5577, 6948, 5976]);
}

#[test]
fn batch_look_up_beside_relocation_at_24_bits() {
    let name = "batch_look_up_beside_relocation_at_24_bits";
    relocation_is_never_missed(name, 24, 1, 1, aimed::<TwoRuns>, [5757, 4365, 8262, 6012, 4191, 3147, 7470, 5112]);
}

/// There and back: the version of the first move must not pass for that of the second.
#[test]
fn two_relocations_there_and_back_are_never_missed() {
    for (looked_up, executions) in [(key(7, 0, 1), 858), (key(7, 1, 0), 2012)] {
        let name = "two_relocations_there_and_back_are_never_missed";
        Model { name, executions, preemptions: Some(3), outcomes: &["found", "repeated"] }.explore(move |seen| {
            let world = World::new(16, 2, 0);
            let moved = key(7, 0, 1);
            world.put(moved);
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
    for (looked_up, executions) in [(turned(moved), 498), (moved, 219)] {
        let name = "last_hop_is_never_missed";
        let outcomes = outcomes(looked_up, moved);
        Model { name, executions, preemptions: None, outcomes }.explore(move |seen| {
            let world = World::new(16, 3, 0);
            world.put(moved);
            world.fill(0, 3, 20);
            world.fill(2, 4, 30);
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
    // Slot 1 of bucket 1 straddles, and both of its parts hold bits.
    let (before, between, after) = (key(7, 1, 1), key(0xa5c, 1, 1), key(9, 1, 1));
    for (looked_up, executions) in [(before, 2592), (after, 2592)] {
        Model { name, executions, preemptions: None, outcomes: &["found"] }.explore(move |seen| {
            let world = World::new(12, 4, 2);
            assert!(world.insert(before) && world.insert(between) && world.insert(after));
            assert!(world.remove(between));
            let (reader, writer, seen) = (Arc::clone(&world), Arc::clone(&world), seen.clone());
            run_two(
                false,
                move || {
                    assert!(reader.contains(looked_up), "a neighbour that stayed where it is was missed");
                    seen.note("found");
                },
                move || {
                    assert!(writer.insert(between));
                    assert!(writer.remove(between));
                },
            );
            world.holds(&[(before, 1), (between, 0), (after, 1)], 0);
            let both = [10, 11].map(|fingerprint| world.insert(key(fingerprint, 1, 1)));
            assert_eq!(both, [true, true], "the slot that was freed has room again");
        });
    }
}
