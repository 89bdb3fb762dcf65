//! H3, H4, H9: writers concurrent with writers, and the counts after each.

use super::harness::*;
use crate::raw::Put;

/// A full pair: one thread frees a slot and takes it again, and another one wants it. The thread that loses gets a refusal. They
/// name their stripes in opposite order: no deadlock.
#[test]
fn crossing_pairs_for_one_slot_have_one_winner() {
    let (wanted, churned) = (key(7, 0, 1), key(8, 1, 0));
    let world = move || World::new(16, 2, 0).full(0, 4, 20).full(1, 3, 30).with(churned);
    race("there was one slot", world, &[wanted, churned], 7)
        .thread([insert(wanted)])
        .thread([remove(churned), insert(churned)])
        .explore([15, 39]);
}

/// A present key is removed, whether it has moved yet or not.
#[test]
fn removal_against_a_move_always_removes() {
    let moved = key(7, 0, 1);
    race("a present key was not removed", move || World::new(16, 2, 0).with(moved), &[moved], 0)
        .threads(remove(moved.turned()), moves(moved))
        .explore([12, 18]);
}

#[test]
fn removals_of_one_copy_have_one_winner() {
    let class = key(7, 0, 1);
    race("one copy is removed once", move || World::new(16, 2, 0).with(class), &[class], 0)
        .threads(remove(class), remove(class.turned()))
        .explore([12]);
}

/// `count` takes the locks, since during a relocation both copies are in the table.
#[test]
fn count_against_a_move_is_exact() {
    let moved = key(7, 0, 1);
    race("a key that moves was counted twice or not at all", move || World::new(16, 2, 0).with(moved), &[moved], 0)
        .threads(count(moved), moves(moved))
        .explore([12, 12]);
}

/// Insertions and removals of other keys in the same stripe add up.
#[test]
fn counts_of_concurrent_changes_add_up() {
    let (old, one, other) = (key(7, 0, 1), key(8, 0, 1), key(9, 1, 0));
    race("changes add up", move || World::new(16, 2, 1).with(old), &[old, one, other], 0)
        .thread([insert(one), remove(old)])
        .thread([insert(other)])
        .explore([36]);
}

/// Two last hops out of the same full pair, named in opposite order, into the same third stripe: no deadlock, and both keys are
/// stored. Copies lock two stripes each, unique keys three.
#[test]
fn crossing_last_hops_do_not_deadlock() {
    let (near, far) = (key(7, 0, 3), key(8, 1, 3));
    let (one, other) = (key(9, 0, 1), key(10, 1, 0));
    for (put, executions) in [(Put::COPY, 18), (Put::UNIQUE, 24)] {
        let world = move || World::new(16, 4, 0).with(near).with(far).full(0, 3, 20).full(1, 3, 30);
        race("both have a way", world, &[near, far, one, other], 6)
            .threads(path([near], one, put), path([far], other, put))
            .explore([executions]);
    }
}
