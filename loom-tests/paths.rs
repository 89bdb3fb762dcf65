//! H1, H4, H5: paths of several hops, complete and spoiled.

use super::harness::*;
use crate::layout::Class;
use crate::raw::Put;
use std::sync::Arc;

/// A bucket of 32-bit slots, in two words: the key in the upper word, an empty slot in the lower one, the others full.
///
/// The hole that a path leaves and the slot that its next hop fills are then in different words. A thread's second store to a word
/// hides the loads between the two from loom, so with both in one word a model explores next to nothing.
fn key_above_a_hole(world: Arc<World>, key: Class, fillers: u32) -> Arc<World> {
    let bucket = key.first.get();
    world.full(bucket, 3, fillers).with(key).without(self::key(fillers, bucket, bucket))
}

/// A path through buckets 0, 1, 2 and so on, carried out from its end while one of its keys is looked up.
fn path_is_never_missed<const HOPS: usize>(stripe_shift: u32, executions: &[usize]) {
    // The pair of the new key is bucket 0 and one beyond the path, both full.
    let beyond = (HOPS as u32 + 1) | 1;
    let buckets = (beyond + 1).next_power_of_two();
    let plan = plan(32, buckets, stripe_shift);
    let on_path: [Class; HOPS] = core::array::from_fn(|at| key_in(&plan, 0, at as u32, at as u32 + 1));
    let new = key_in(&plan, 1, 0, beyond);
    let world = move || {
        let world = World::new(32, buckets, stripe_shift).full(0, 3, 100).with(on_path[0]).full(beyond, 4, 200);
        on_path[1..].iter().zip([300, 400]).fold(world, |world, (&key, fillers)| key_above_a_hole(world, key, fillers))
    };
    let from_its_end: [Class; HOPS] = core::array::from_fn(|at| on_path[HOPS - 1 - at]);
    let lookups = on_path.iter().flat_map(|moved| [(moved.turned(), *moved), (*moved, *moved)]);
    for ((looked_up, moved), &executions) in lookups.zip(executions) {
        race("a key on the path was missed", world, &[&on_path[..], &[new]].concat(), 7 + 2 * (HOPS - 1))
            .threads(finds(looked_up), path(from_its_end, new, Put::COPY))
            .seen(outcomes(looked_up, moved))
            .explore([executions]);
    }
}

models! {
    path_of_two_hops_is_never_missed => path_is_never_missed::<2>(0, &[9123, 1293, 1023, 486]);
    path_of_three_hops_is_never_missed => path_is_never_missed::<3>(1, &[9123, 1932, 16707, 2367, 3273, 486]);
}

/// A key of the path is removed while the path is carried out: it is removed once, wherever it is; the new key is stored or not,
/// and the count agrees.
#[test]
fn path_spoiled_by_a_removal_leaves_the_counts_exact() {
    let (near, far, new) = (key(7, 0, 1), key(8, 1, 2), key(9, 0, 1));
    let world = move || World::new(16, 3, 0).with(near).with(far).full(0, 3, 20).full(1, 3, 30);
    race("a present key was not removed", world, &[near, far, new], 6)
        .threads(remove(far), path([far, near], new, Put::COPY))
        .explore([15, 36]);
}

/// Two insertions have found the same path: one carries it out, and the other sees that its hop is stale, although there would be
/// room for another.
#[test]
fn path_found_twice_is_carried_out_once() {
    let (moved, one, other) = (key(7, 0, 1), key(8, 0, 2), key(9, 0, 2));
    let world = move || World::new(16, 3, 0).with(moved).full(0, 3, 20).full(1, 2, 30).full(2, 4, 40);
    race("there was one hole", world, &[one, other, moved], 9)
        .threads(path([moved], one, Put::COPY), path([moved], other, Put::COPY))
        .explore([12]);
}

/// Two insertions of one class: a copy by a path, under the locks of its last hop alone, and a unique one that finds room in the
/// other bucket. Their common bucket is the upper one of each pair of locks.
#[test]
fn copy_by_path_against_unique_counts_right() {
    let (moved, class) = (key(7, 3, 1), key(9, 3, 2));
    race("it is there or admitted", move || World::new(16, 4, 0).with(moved).full(3, 3, 20), &[class, moved], 3)
        .threads(insert_unique(class), path([moved], class, Put::COPY))
        .explore([9, 9]);
}

/// Two paths end in the last empty slot of one bucket: one key moves there, and the other insertion sees that there is no room.
#[test]
fn paths_that_meet_in_one_hole_move_one_key() {
    let (one, other) = (key(7, 0, 2), key(8, 1, 2));
    race("there was one hole", move || World::new(16, 3, 0).with(one).with(other).full(2, 3, 20), &[one, other], 3)
        .threads(moves(one), moves(other))
        .explore([9]);
}
