//! H2, H3, H4, H9: insertions under the lock of one bucket, concurrent with lookups and other single writers. An insertion
//! chooses that bucket by a look without locks, which would hide interleavings from loom, so here it is the first bucket of the
//! class. Only the models of whole insertions include the look. Models with tasks, clears and copies are in `exclusive`, `clear`
//! and `copy`.

use super::equal_fingerprint::removal_of_a_copy_is_never_missed;
use super::harness::*;
use crate::layout::Class;
use crate::raw::Put;
use loom::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::sync::atomic::Ordering;

#[test]
fn one_lock_insertions_for_the_last_slot_have_one_winner() {
    // Of different pairs.
    let (one, other) = (key(7, 1, 0), key(8, 1, 2));
    race("there was one slot", || World::new(16, 4, 0).full(1, 3, 20), &[one, other], 3)
        .threads(insert_into_first(one), insert_into_first(other))
        .explore([9]);
}

/// The other insertion locks its pair, in which the shared bucket is the upper or the lower one.
#[test]
fn one_lock_and_pair_insertion_for_the_last_slot_have_one_winner() {
    for second in [0, 2] {
        let (one, other) = (key(7, 1, second), key(8, second, 1));
        let world = move || World::new(16, 4, 0).full(1, 3, 20).full(second, 4, 30);
        race("there was one slot", world, &[one, other], 7)
            .threads(insert_into_first(one), insert(other))
            .explore([9, 9]);
    }
}

/// The key is inserted into the bucket to which another key moves, and there is one slot.
#[test]
fn one_lock_insertion_and_a_move_for_the_last_slot_have_one_winner() {
    let (moved, new) = (key(7, 0, 1), key(8, 1, 2));
    race("there was one slot", move || World::new(16, 4, 0).with(moved).full(1, 3, 20), &[moved, new], 3)
        .threads(insert_into_first(new), moves(moved))
        .explore([9, 9]);
}

/// The key is inserted into the bucket from which another key moves. There is room once that key has moved, and lookups always
/// find it.
#[test]
fn one_lock_insertion_where_a_key_leaves_misses_neither() {
    let plan = plan(16, 4, 0);
    let (moved, new) = (key_in(&plan, 0, 1, 0), key_in(&plan, 0, 1, 2));
    for (looked_up, executions) in [(moved.turned(), 6642), (moved, 5131)] {
        let world = move || World::new(16, 4, 0).with(moved).full(1, 3, 20);
        race("a key that only moved was missed", world, &[moved, new], 3)
            .threads(finds(looked_up), moves(moved))
            .thread([insert_into_first(new)])
            .at_most(3)
            .seen(outcomes(looked_up, moved))
            .explore([executions]);
    }
}

/// The last hop of a path frees a slot in a full bucket and fills it: no other insertion gets that slot.
#[test]
fn one_lock_insertion_never_gets_the_hole_of_a_last_hop() {
    let (moved, by_path, new) = (key(7, 1, 3), key(8, 1, 0), key(9, 1, 2));
    let world = move || World::new(16, 4, 0).with(moved).full(1, 3, 20).full(0, 4, 30);
    race("the hole of a path went to another key", world, &[moved, by_path, new], 7)
        .threads(insert_into_first(new), path([moved], by_path, Put::COPY))
        .explore([9, 9]);
}

/// The hole of a path may be filled before the path is complete: the path is then spoiled, and nothing is lost.
#[test]
fn one_lock_insertion_spoils_a_path_or_finds_no_room() {
    let (near, far) = (key(7, 0, 1), key(8, 1, 2));
    let (by_path, new) = (key(9, 0, 3), key(10, 1, 0));
    let world = move || World::new(16, 4, 0).with(near).with(far).full(0, 3, 20).full(1, 3, 30).full(3, 4, 40);
    race("there was one hole", world, &[near, far, by_path, new], 10)
        .threads(insert_into_first(new), path([far, near], by_path, Put::COPY))
        .also(&[&[1], &[2]], &[1, 1, 0, 1])
        .explore([12, 30]);
}

/// Two insertions of one class, one of them unique. If the other one has returned, the unique one sees its copy.
#[test]
fn one_lock_against_unique_counts_right() {
    for (class, executions) in [(key(7, 0, 1), [24, 30]), (key(7, 1, 0), [24, 30])] {
        // The flag says that the other insertion has returned. It orders nothing: the copy is visible through the locks.
        type Flagged = (Arc<World>, AtomicBool);
        let world = || Arc::new((World::new(16, 4, 0), AtomicBool::new(false)));
        let left = move |(world, _): &Flagged| world.left(&[class], 0);
        Race::new("admitted after another insertion of the class had returned", world, left)
            .thread([
                op(|(_, returned): &Flagged| returned.load(Ordering::Relaxed)),
                op(move |(world, _): &Flagged| world.put(class.turned(), Put::UNIQUE)),
            ])
            .thread([
                op(move |(world, _): &Flagged| world.insert_into_first(class)),
                op(|(_, returned): &Flagged| returned.store(true, Ordering::Relaxed)),
            ])
            .never(|told, _| told[0] == [1, 1])
            .explore(executions);
    }
}

fn insert_and_remove(stays: Class) -> Vec<Op<World>> {
    vec![insert_into_first(stays.turned()), remove(stays)]
}

models! {
    /// As in the models of equal_fingerprint.
    one_lock_removal_of_a_copy_is_never_missed_at_16_bits =>
        removal_of_a_copy_is_never_missed(16, 0, [165, 165, 225, 225], insert_and_remove);
    /// Bucket 1 is in two words, and shares the first of them with bucket 0.
    one_lock_removal_of_a_copy_is_never_missed_at_13_bits =>
        removal_of_a_copy_is_never_missed(13, 4, [1092, 4683, 1440, 5991], insert_and_remove);
}

/// The same by two threads: one inserts a copy, and the other removes one if there are two.
#[test]
fn one_lock_insertion_and_removal_by_two_threads_are_never_missed() {
    for stays in [key(7, 0, 1), key(7, 1, 0)] {
        let take = remove(stays);
        race("a class that was never absent was missed", move || World::new(16, 2, 0).with(stays), &[stays], 0)
            .threads(finds(stays.turned()), insert_into_first(stays.turned()))
            .thread([op(move |world: &World| world.count(stays) == 2 && take(world) == 1)])
            .at_most(3)
            .seen(&["repeated"])
            .explore([2072]);
    }
}

/// A full bucket: there is room once the other key is removed.
#[test]
fn one_lock_insertion_against_a_removal_at_a_full_bucket() {
    let (old, new) = (key(7, 0, 1), key(8, 1, 2));
    let world = move || World::new(16, 4, 0).with(old.turned()).full(1, 3, 20);
    race("a present key was not removed", world, &[old, new], 3)
        .threads(insert_into_first(new), remove(old))
        .explore([9, 15]);
}

/// `count` returns 1 or 2, and what it has counted is in the sum of all counts.
#[test]
fn one_lock_against_count_is_exact() {
    for class in [key(7, 0, 1), key(7, 1, 0)] {
        race("a copy was counted twice or not at all", move || World::new(16, 4, 0).with(class.turned()), &[class], 0)
            .thread([count(class), len()])
            .thread([insert_into_first(class)])
            .explore([27, 21]);
    }
}

/// One slot is left in each bucket of the pair: both keys are stored, whether or not both have chosen the same slot.
#[test]
fn one_lock_whole_insertions_use_both_buckets() {
    let (one, other) = (key(7, 1, 0), key(8, 1, 0));
    let left = move |world: &World| [world.left(&[one, other], 6), vec![world.in_first(one)]].concat();
    Race::new("there were two slots", || World::new(16, 2, 0).full(0, 3, 20).full(1, 3, 30), left)
        .threads(insert_whole(one), insert_whole(other))
        .explore([30]);
}

/// A class occupies all slots of its pair but one: the second insertion is refused for its copies, not for lack of room.
#[test]
fn one_lock_whole_insertions_of_one_class_too_many() {
    let class = key(7, 0, 1);
    race("there was one slot", move || World::new(16, 2, 0).with_copies(7, class), &[class], 0)
        .threads(insert_whole(class), insert_whole(class.turned()))
        .explore([30]);
}

/// The same while a copy is removed: refused or not, the count agrees.
#[test]
fn one_lock_whole_insertion_against_a_removal_of_a_saturated_class() {
    let class = key(7, 0, 1);
    race("a class of eight is refused for its copies", move || World::new(16, 2, 0).with_copies(8, class), &[class], 0)
        .threads(insert_whole(class), remove(class.turned()))
        .never(|told, _| told[0] == [0])
        .explore([111, 177]);
}
