//! H3, H4, H9: writers against writers, and the counts after each.

use super::harness::*;
use crate::raw::Put;
use std::sync::Arc;

#[test]
fn inserts_for_the_last_slot_have_one_winner() {
    Model { executions: 12, preemptions: None, outcomes: &["first", "second"] }.explore(|seen| {
        let world = World::new(16, 2, 0);
        world.fill(0, 4, 20);
        world.fill(1, 3, 30);
        let (one, other) = (key(7, 0, 1), key(8, 1, 0));
        let won =
            run_two(&world, false, move |writer| writer.insert(one), move |other_writer| other_writer.insert(other));
        let [first, second] = seen.one_winner(["first", "second"], won, "there was one slot");
        world.assert_holds(&[(one, first), (other, second)], 7);
    });
}

/// A full pair: one thread frees a slot and takes it back, another wants it. The one that loses is told.
#[test]
fn insert_against_remove_and_insert_at_a_full_pair() {
    in_both_orders([15, 39], &["wanted lost", "wanted won"], |seen, swapped| {
        let world = World::new(16, 2, 0);
        let (wanted, churned) = (key(7, 0, 1), key(8, 1, 0));
        world.fill(0, 4, 20);
        world.fill(1, 3, 30);
        world.put(churned);
        let won = run_two(
            &world,
            swapped,
            move |inserter| inserter.insert(wanted),
            move |churner| {
                assert!(churner.remove(churned), "a present key was not removed");
                churner.insert(churned)
            },
        );
        let [inserted, back] = seen.one_winner(["wanted won", "wanted lost"], won, "there was one slot");
        world.assert_holds(&[(wanted, inserted), (churned, back)], 7);
    });
}

/// A present key is removed, whether it has moved yet or not.
#[test]
fn removal_against_a_move_always_removes() {
    in_both_orders([12, 18], &["moved first", "removed first"], |seen, swapped| {
        let world = World::new(16, 2, 0);
        let moved = key(7, 0, 1);
        world.put(moved);
        let seen = seen.clone();
        run_two(
            &world,
            swapped,
            move |remover| assert!(remover.remove(moved.turned()), "a present key was not removed"),
            move |mover| seen.note(if mover.hop(hop(moved)) { "moved first" } else { "removed first" }),
        );
        world.assert_holds(&[(moved, 0)], 0);
    });
}

#[test]
fn removals_of_one_copy_have_one_winner() {
    Model { executions: 12, preemptions: None, outcomes: &["first", "second"] }.explore(|seen| {
        let world = World::new(16, 2, 0);
        let class = key(7, 0, 1);
        world.put(class);
        let removed = run_two(
            &world,
            false,
            move |writer| writer.remove(class),
            move |other_writer| other_writer.remove(class.turned()),
        );
        seen.one_winner(["first", "second"], removed, "one copy is removed once");
        world.assert_holds(&[(class, 0)], 0);
    });
}

/// `count` takes the locks: in the middle of a relocation both copies stand in the table.
#[test]
fn count_against_a_move_is_exact() {
    in_both_orders([12, 12], &["counted"], |seen, swapped| {
        let world = World::new(16, 2, 0);
        let moved = key(7, 0, 1);
        world.put(moved);
        let seen = seen.clone();
        run_two(
            &world,
            swapped,
            move |counter| {
                assert_eq!(counter.count(moved), 1, "a key that moves was counted twice or not at all");
                seen.note("counted");
            },
            move |mover| assert!(mover.hop(hop(moved))),
        );
        world.assert_holds(&[(moved, 1)], 0);
    });
}

/// Insertions and removals of other keys in the same stripe add up.
#[test]
fn counts_of_concurrent_changes_add_up() {
    Model { executions: 36, preemptions: None, outcomes: &["added up"] }.explore(|seen| {
        let world = World::new(16, 2, 1);
        let (old, one, other) = (key(7, 0, 1), key(8, 0, 1), key(9, 1, 0));
        world.put(old);
        run_two(
            &world,
            false,
            move |writer| {
                assert!(writer.insert(one));
                assert!(writer.remove(old));
            },
            move |other_writer| assert!(other_writer.insert(other)),
        );
        world.assert_holds(&[(old, 0), (one, 1), (other, 1)], 0);
        seen.note("added up");
    });
}

/// Two pairs of the same two stripes, named in opposite order: no deadlock.
#[test]
fn crossing_pairs_do_not_deadlock() {
    Model { executions: 12, preemptions: None, outcomes: &["both"] }.explore(|seen| {
        let world = World::new(16, 2, 0);
        let (one, other) = (key(7, 0, 1), key(8, 1, 0));
        run_two(
            &world,
            false,
            move |writer| assert!(writer.insert(one)),
            move |other_writer| assert!(other_writer.insert(other)),
        );
        world.assert_holds(&[(one, 1), (other, 1)], 0);
        seen.note("both");
    });
}

/// Two last hops out of the same full pair, named in opposite order, into the same third stripe: no deadlock, and both
/// keys get in. Copies lock two stripes each, unique keys three.
#[test]
fn crossing_last_hops_do_not_deadlock() {
    for (admission, executions) in [(Put::COPY, 18), (Put::UNIQUE, 24)] {
        Model { executions, preemptions: None, outcomes: &["both"] }.explore(move |seen| {
            let world = World::new(16, 4, 0);
            let (near, far) = (key(7, 0, 3), key(8, 1, 3));
            let (one, other) = (key(9, 0, 1), key(10, 1, 0));
            world.put(near);
            world.put(far);
            world.fill(0, 3, 20);
            world.fill(1, 3, 30);
            run_two(
                &world,
                false,
                move |writer| assert_eq!(writer.carry_out(&[hop(near)], one, admission), Some(true)),
                move |other_writer| assert_eq!(other_writer.carry_out(&[hop(far)], other, admission), Some(true)),
            );
            world.assert_holds(&[(near, 1), (far, 1), (one, 1), (other, 1)], 6);
            seen.note("both");
        });
    }
}
