//! H1, H4, H5: paths of several hops, whole and spoiled.

use super::harness::*;
use crate::layout::Class;
use crate::raw::Put;
use std::sync::Arc;

/// A bucket of 32-bit slots, two words: the key in the upper one, an empty slot in the lower, the rest filled.
///
/// The hole that a path leaves and the slot that its next hop fills are then in different words. A thread's second store
/// to one word hides the loads between the two from loom, and with both in one word a model explores next to nothing.
fn key_above_a_hole(world: &World, key: Class, fillers: u32) {
    let bucket = key.first.get();
    world.fill(bucket, 3, fillers);
    world.put(key);
    assert!(world.remove(self::key(fillers, bucket, bucket)));
}

/// A path through buckets 0, 1, 2 and so on, carried out from its end while one of its keys is looked up.
fn path_is_never_missed(hops: u32, stripe_shift: u32, executions: &[usize]) {
    // The new key's pair is bucket 0 and one beyond the path, both full.
    let beyond = (hops + 1) | 1;
    let buckets = (beyond + 1).next_power_of_two();
    let plan = plan(32, buckets, stripe_shift);
    let on_path: Vec<_> = (0..hops).map(|at| key_in(&plan, 0, at, at + 1)).collect();
    let new = key_in(&plan, 1, 0, beyond);
    let mut executions = executions.iter();
    for &moved in &on_path {
        for looked_up in [moved.turned(), moved] {
            let executions = *executions.next().expect("a number for each");
            let on_path = on_path.clone();
            Model { executions, preemptions: None, outcomes: outcomes(looked_up, moved) }.explore(move |seen| {
                let world = World::new(32, buckets, stripe_shift);
                world.fill(0, 3, 100);
                world.put(on_path[0]);
                world.fill(beyond, 4, 200);
                for (&key, fillers) in on_path[1..].iter().zip([300, 400]) {
                    key_above_a_hole(&world, key, fillers);
                }
                let seen = seen.clone();
                let path: Vec<_> = on_path.iter().rev().map(|&key| hop(key)).collect();
                run_two(
                    &world,
                    false,
                    move |reader| {
                        assert!(reader.contains(looked_up), "a key on the path was missed");
                        seen.note("found");
                    },
                    move |writer| assert_eq!(writer.carry_out(&path, new, Put::COPY), Some(true)),
                );
                let mut classes: Vec<_> = on_path.iter().map(|&key| (key, 1)).collect();
                classes.push((new, 1));
                world.assert_holds(&classes, 7 + 2 * (u64::from(hops) - 1));
            });
        }
    }
}

#[test]
fn path_of_two_hops_is_never_missed() {
    path_is_never_missed(2, 0, &[9123, 1293, 1023, 486]);
}

#[test]
fn path_of_three_hops_is_never_missed() {
    path_is_never_missed(3, 1, &[9123, 1932, 16707, 2367, 3273, 486]);
}

/// A key of the path is removed while the path is carried out: it is removed once, wherever it is, and the new key is
/// in or not in, with the count to match.
#[test]
fn path_spoiled_by_a_removal_leaves_the_counts_exact() {
    in_both_orders([15, 36], &["inserted", "spoiled"], |seen, swapped| {
        let world = World::new(16, 3, 0);
        let (near, far, new) = (key(7, 0, 1), key(8, 1, 2), key(9, 0, 1));
        world.put(near);
        world.put(far);
        world.fill(0, 3, 20);
        world.fill(1, 3, 30);
        let ((), inserted) = run_two(
            &world,
            swapped,
            move |remover| assert!(remover.remove(far), "a present key was not removed"),
            move |writer| writer.carry_out(&[hop(far), hop(near)], new, Put::COPY).is_some(),
        );
        seen.note(if inserted { "inserted" } else { "spoiled" });
        world.assert_holds(&[(near, 1), (far, 0), (new, usize::from(inserted))], 6);
    });
}

/// Two insertions have found the same path: one carries it out, and the other sees that its hop is stale, though there
/// would be room for another.
#[test]
fn path_found_twice_is_carried_out_once() {
    Model { executions: 12, preemptions: None, outcomes: &["first", "second"] }.explore(|seen| {
        let world = World::new(16, 3, 0);
        let (moved, one, other) = (key(7, 0, 1), key(8, 0, 2), key(9, 0, 2));
        world.put(moved);
        world.fill(0, 3, 20);
        world.fill(1, 2, 30);
        world.fill(2, 4, 40);
        let [writer, other_writer] =
            [one, other].map(|new| move |world: &Arc<World>| world.carry_out(&[hop(moved)], new, Put::COPY).is_some());
        let won = run_two(&world, false, writer, other_writer);
        let [first, second] = seen.one_winner(["first", "second"], won, "there was one hole");
        world.assert_holds(&[(one, first), (other, second), (moved, 1)], 9);
    });
}

/// Two keys of one class: a copy by a path, under the locks of its last hop alone, and a unique one that finds room in the
/// other bucket. The bucket of both is the upper one of each pair of locks.
#[test]
fn copy_by_path_against_unique_counts_right() {
    in_both_orders([9, 9], &["admitted", "present"], |seen, swapped| {
        let world = World::new(16, 4, 0);
        let (moved, class) = (key(7, 3, 1), key(9, 3, 2));
        world.put(moved);
        world.fill(3, 3, 20);
        let (admitted, ()) = run_two(
            &world,
            swapped,
            move |unique| unique.insert_unique(class).expect("there is room"),
            move |writer| assert_eq!(writer.carry_out(&[hop(moved)], class, Put::COPY), Some(true)),
        );
        seen.note(if admitted { "admitted" } else { "present" });
        world.assert_holds(&[(class, 1 + usize::from(admitted)), (moved, 1)], 3);
    });
}

/// Two paths end in the last empty slot of one bucket: one key moves there, and the other sees that there is no room.
#[test]
fn paths_that_meet_in_one_hole_move_one_key() {
    Model { executions: 9, preemptions: None, outcomes: &["first", "second"] }.explore(|seen| {
        let world = World::new(16, 3, 0);
        let (one, other) = (key(7, 0, 2), key(8, 1, 2));
        world.put(one);
        world.put(other);
        world.fill(2, 3, 20);
        let moved = run_two(
            &world,
            false,
            move |writer| writer.hop(hop(one)),
            move |other_writer| other_writer.hop(hop(other)),
        );
        seen.one_winner(["first", "second"], moved, "there was one hole");
        world.assert_holds(&[(one, 1), (other, 1)], 3);
    });
}
