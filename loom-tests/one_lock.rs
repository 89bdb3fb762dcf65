//! H2, H3, H4, H9: insertions under the lock of one bucket, against lookups and every other writer. Which bucket that is,
//! an insertion decides by a look without locks, which would blind loom: here it is the first of the class. Only the
//! models of whole insertions look for themselves.

use super::equal_fingerprint::removal_of_a_copy_is_never_missed;
use super::exclusive::Change::{Insert, Remove};
use super::exclusive::Scene;
use super::harness::*;
use crate::error::InsertError;
use crate::layout::Class;
use crate::raw::{Fixed, Put};
use loom::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::sync::atomic::Ordering;

#[test]
fn one_lock_insertions_for_the_last_slot_have_one_winner() {
    Model { executions: 9, preemptions: None, outcomes: &["first", "second"] }.explore(|seen| {
        let world = World::new(16, 4, 0);
        world.fill(1, 3, 20);
        // Of different pairs.
        let (one, other) = (key(7, 1, 0), key(8, 1, 2));
        let won = run_two(
            &world,
            false,
            move |writer| writer.insert_into_first(one),
            move |other_writer| other_writer.insert_into_first(other),
        );
        let [first, second] = seen.one_winner(["first", "second"], won, "there was one slot");
        world.assert_holds(&[(one, first), (other, second)], 3);
    });
}

/// The other insertion takes the locks of its pair, of which the bucket is the upper one or the lower one.
#[test]
fn one_lock_and_pair_insertion_for_the_last_slot_have_one_winner() {
    for (swapped, second, executions) in [(false, 0, 9), (false, 2, 9), (true, 0, 9), (true, 2, 9)] {
        Model { executions, preemptions: None, outcomes: &["one", "pair"] }.explore(move |seen| {
            let world = World::new(16, 4, 0);
            world.fill(1, 3, 20);
            world.fill(second, 4, 30);
            let (one, other) = (key(7, 1, second), key(8, second, 1));
            let won = run_two(
                &world,
                swapped,
                move |writer| writer.insert_into_first(one),
                move |other_writer| other_writer.insert(other),
            );
            let [first, second] = seen.one_winner(["one", "pair"], won, "there was one slot");
            world.assert_holds(&[(one, first), (other, second)], 7);
        });
    }
}

/// The key is inserted where another one moves to, and there is one slot.
#[test]
fn one_lock_insertion_and_a_move_for_the_last_slot_have_one_winner() {
    in_both_orders([9, 9], &["inserted", "moved"], |seen, swapped| {
        let world = World::new(16, 4, 0);
        let (moved, new) = (key(7, 0, 1), key(8, 1, 2));
        world.put(moved);
        world.fill(1, 3, 20);
        let won =
            run_two(&world, swapped, move |writer| writer.insert_into_first(new), move |mover| mover.hop(hop(moved)));
        let [inserted, _] = seen.one_winner(["inserted", "moved"], won, "there was one slot");
        world.assert_holds(&[(moved, 1), (new, inserted)], 3);
    });
}

/// The key is inserted where another one moves from. There is room once that is gone, and it is found all the time.
#[test]
fn one_lock_insertion_where_a_key_leaves_misses_neither() {
    let plan = plan(16, 4, 0);
    let (moved, new) = (key_in(&plan, 0, 1, 0), key_in(&plan, 0, 1, 2));
    for (looked_up, executions) in [(moved.turned(), 6642), (moved, 5131)] {
        let outcomes: &[&str] = &["inserted", "full", "found", "repeated"];
        let outcomes = if looked_up == moved { &outcomes[..3] } else { outcomes };
        Model { executions, preemptions: Some(3), outcomes }.explore(move |seen| {
            let world = World::new(16, 4, 0);
            world.put(moved);
            world.fill(1, 3, 20);
            let (found, (), inserted) = run_three(
                &world,
                move |reader| reader.contains(looked_up),
                move |mover| assert!(mover.hop(hop(moved))),
                move |writer| writer.insert_into_first(new),
            );
            assert!(found, "a key that only moved was missed");
            seen.note("found");
            seen.note(if inserted { "inserted" } else { "full" });
            world.assert_holds(&[(moved, 1), (new, usize::from(inserted))], 3);
        });
    }
}

/// The last hop of a path frees a slot in a full bucket and fills it: no other insertion gets it.
#[test]
fn one_lock_insertion_never_gets_the_hole_of_a_last_hop() {
    in_both_orders([9, 9], &["full"], |seen, swapped| {
        let world = World::new(16, 4, 0);
        let (moved, by_path, new) = (key(7, 1, 3), key(8, 1, 0), key(9, 1, 2));
        world.put(moved);
        world.fill(1, 3, 20);
        world.fill(0, 4, 30);
        let (inserted, stored) = run_two(
            &world,
            swapped,
            move |writer| writer.insert_into_first(new),
            move |carrier| carrier.carry_out(&[hop(moved)], by_path, Put::COPY),
        );
        assert_eq!((inserted, stored), (false, Some(true)), "the hole of a path went to another key");
        seen.note("full");
        world.assert_holds(&[(moved, 1), (by_path, 1), (new, 0)], 7);
    });
}

/// A hole that is on its way along a path may be filled: the path is then spoiled, and nothing is lost.
#[test]
fn one_lock_insertion_spoils_a_path_or_finds_no_room() {
    in_both_orders([12, 30], &["inserted", "path"], |seen, swapped| {
        let world = World::new(16, 4, 0);
        let (near, far) = (key(7, 0, 1), key(8, 1, 2));
        let (by_path, new) = (key(9, 0, 3), key(10, 1, 0));
        world.put(near);
        world.put(far);
        world.fill(0, 3, 20);
        world.fill(1, 3, 30);
        world.fill(3, 4, 40);
        let won = run_two(
            &world,
            swapped,
            move |writer| writer.insert_into_first(new),
            move |carrier| carrier.carry_out(&[hop(far), hop(near)], by_path, Put::COPY) == Some(true),
        );
        let [inserted, stored] = seen.one_winner(["inserted", "path"], won, "there was one hole");
        world.assert_holds(&[(near, 1), (far, 1), (by_path, stored), (new, inserted)], 10);
    });
}

/// Two keys of one class, one of them unique. If the other insertion has returned, the unique one sees its copy.
#[test]
fn one_lock_against_unique_counts_right() {
    let configurations = [(false, 0, 1), (false, 1, 0), (true, 0, 1), (true, 1, 0)];
    for ((swapped, here, there), executions) in configurations.into_iter().zip([24, 24, 30, 30]) {
        let outcomes: &[&str] = &["admitted", "present", "returned before"];
        Model { executions, preemptions: None, outcomes }.explore(move |seen| {
            let world = World::new(16, 4, 0);
            let class = key(7, here, there);
            let returned = Arc::new(AtomicBool::new(false));
            let has_returned = Arc::clone(&returned);
            let ((before, admitted), ()) = run_two(
                &world,
                swapped,
                // Relaxed, both: the flag orders nothing, so what is seen is seen by way of the locks.
                move |unique| {
                    (has_returned.load(Ordering::Relaxed), unique.insert_unique(class.turned()).expect("there is room"))
                },
                move |writer| {
                    assert!(writer.insert_into_first(class));
                    returned.store(true, Ordering::Relaxed);
                },
            );
            assert!(!(before && admitted), "admitted after another insertion of the class had returned");
            seen.note(if admitted { "admitted" } else { "present" });
            if before {
                seen.note("returned before");
            }
            world.assert_holds(&[(class, 1 + usize::from(admitted))], 0);
        });
    }
}

fn insert_and_remove(world: &Arc<World>, stays: Class) {
    assert!(world.insert_into_first(stays.turned()));
    assert!(world.remove(stays));
}

/// As the models of equal_fingerprint.
#[test]
fn one_lock_removal_of_a_copy_is_never_missed_at_16_bits() {
    removal_of_a_copy_is_never_missed(16, 0, [165, 165, 225, 225], insert_and_remove);
}

/// Bucket 1 lies in two words, the first of them with bucket 0.
#[test]
fn one_lock_removal_of_a_copy_is_never_missed_at_13_bits() {
    removal_of_a_copy_is_never_missed(13, 4, [1092, 4683, 1440, 5991], insert_and_remove);
}

/// The same by two threads: one inserts a copy, and the other removes one if there are two.
#[test]
fn one_lock_insertion_and_removal_by_two_threads_are_never_missed() {
    for (stays, executions) in [(key(7, 0, 1), 2072), (key(7, 1, 0), 2072)] {
        let outcomes: &[&str] = &["one", "two", "repeated"];
        Model { executions, preemptions: Some(3), outcomes }.explore(move |seen| {
            let world = World::new(16, 2, 0);
            world.put(stays);
            let (found, (), removed) = run_three(
                &world,
                move |reader| reader.contains(stays.turned()),
                move |writer| assert!(writer.insert_into_first(stays.turned())),
                move |remover| remover.count(stays) == 2 && remover.remove(stays),
            );
            assert!(found, "a class that was never absent was missed");
            seen.note(if removed { "one" } else { "two" });
            world.assert_holds(&[(stays, 2 - usize::from(removed))], 0);
        });
    }
}

/// A full bucket: there is room once the other key is removed.
#[test]
fn one_lock_insertion_against_a_removal_at_a_full_bucket() {
    in_both_orders([9, 15], &["inserted", "full"], |seen, swapped| {
        let world = World::new(16, 4, 0);
        let (old, new) = (key(7, 0, 1), key(8, 1, 2));
        world.put(old.turned());
        world.fill(1, 3, 20);
        let (inserted, ()) = run_two(
            &world,
            swapped,
            move |writer| writer.insert_into_first(new),
            move |remover| assert!(remover.remove(old), "a present key was not removed"),
        );
        seen.note(if inserted { "inserted" } else { "full" });
        world.assert_holds(&[(old, 0), (new, usize::from(inserted))], 3);
    });
}

/// `count` returns 1 or 2, and what it has counted is in the sum of all.
#[test]
fn one_lock_against_count_is_exact() {
    let configurations = [(false, 0, 1), (false, 1, 0), (true, 0, 1), (true, 1, 0)];
    for ((swapped, here, there), executions) in configurations.into_iter().zip([27, 27, 21, 21]) {
        Model { executions, preemptions: None, outcomes: &["1", "2"] }.explore(move |seen| {
            let world = World::new(16, 4, 0);
            let class = key(7, here, there);
            world.put(class.turned());
            let ((count, len), ()) = run_two(
                &world,
                swapped,
                move |counter| (counter.count(class), counter.shard().len() as usize),
                move |writer| assert!(writer.insert_into_first(class)),
            );
            assert!((1..=2).contains(&count) && (count..=2).contains(&len), "{count} copies of {len} keys");
            seen.note(count.to_string());
            world.assert_holds(&[(class, 2)], 0);
        });
    }
}

/// The task has another bucket's lock, too, and the insertion the upper one.
#[test]
fn one_lock_insertion_and_a_task_for_the_last_slot_have_one_winner() {
    in_both_orders([9, 9], &["one", "task"], |seen, swapped| {
        let scene = Scene::from_world(World::new(16, 4, 0));
        let [one, other] = [scene.key(7, 1, 0), scene.key(8, 0, 1)];
        // All buckets, so that no key can make room.
        [0, 2, 3].into_iter().for_each(|bucket| scene.world.fill(bucket, 4, 20));
        scene.world.fill(1, 3, 20);
        let won = run_two(
            &scene,
            swapped,
            move |scene| scene.world.insert_into_first(one),
            move |writer| writer.task(&[Insert(other)]) == [Some(true)],
        );
        let [first, second] = seen.one_winner(["one", "task"], won, "there was one slot");
        scene.world.assert_holds(&[(one, first), (other, second)], 15);
    });
}

#[test]
fn one_lock_insertion_and_a_task_add_up() {
    in_both_orders([15, 15], &["added up"], |seen, swapped| {
        let scene = Scene::from_world(World::new(16, 4, 0));
        let [old, one, two, other] = [0, 1, 2, 3].map(|number| scene.key(number, 3, 2));
        scene.world.put(old);
        run_two(
            &scene,
            swapped,
            move |scene| assert!(scene.world.insert_into_first(other)),
            move |writer| assert_eq!(writer.task(&[Insert(one), Remove(old), Insert(two)]), [Some(true); 3]),
        );
        scene.world.assert_holds(&[(old, 0), (one, 1), (two, 1), (other, 1)], 0);
        seen.note("added up");
    });
}

#[test]
fn one_lock_insertion_against_clear_keeps_the_count_exact() {
    in_both_orders([9, 12], &["stays", "goes"], |seen, swapped| {
        let world = World::new(16, 2, 0);
        let (old, new) = (key(7, 0, 1), key(8, 1, 0));
        world.put(old);
        run_two(
            &world,
            swapped,
            move |clearer| clearer.shard().clear(),
            move |writer| assert!(writer.insert_into_first(new)),
        );
        let stays = world.count(new);
        seen.note(if stays == 1 { "stays" } else { "goes" });
        world.assert_sum_holds(&[(old, 0), (new, stays)], 0);
    });
}

/// A whole insertion: its look, one lock, and the pair's if the bucket is full by then.
fn insert(world: &World, class: Class) -> Result<bool, InsertError> {
    let Ok(result) = world.shard().insert(Fixed, class, Put::COPY);
    result.map(|had| had == 0)
}

/// A bucket has one slot left and its pair has another: both keys get in, whether or not both have chosen the same slot.
#[test]
fn one_lock_whole_insertions_use_both_buckets() {
    Model { executions: 30, preemptions: None, outcomes: &["first above", "second above"] }.explore(|seen| {
        let world = World::new(16, 2, 0);
        world.fill(0, 3, 20);
        world.fill(1, 3, 30);
        let (one, other) = (key(7, 1, 0), key(8, 1, 0));
        let stored =
            run_two(&world, false, move |writer| insert(writer, one), move |other_writer| insert(other_writer, other));
        assert_eq!(stored, (Ok(true), Ok(true)), "there were two slots");
        let above = world.count(Class { second: one.first, ..one }) == 1;
        seen.note(if above { "first above" } else { "second above" });
        world.assert_holds(&[(one, 1), (other, 1)], 6);
    });
}

/// A class has all slots of its pair but one: it is refused for its copies, not for lack of room.
#[test]
fn one_lock_whole_insertions_of_one_class_too_many() {
    Model { executions: 30, preemptions: None, outcomes: &["first", "second"] }.explore(|seen| {
        let world = World::new(16, 2, 0);
        let class = key(7, 0, 1);
        (0..7).for_each(|_| assert!(world.insert(class)));
        let [one, other] = [class, class.turned()].map(|class| {
            move |world: &Arc<World>| match insert(world, class) {
                Ok(stored) => stored,
                Err(error) => {
                    assert_eq!(error, InsertError::TooManyCopies);
                    false
                }
            }
        });
        let won = run_two(&world, false, one, other);
        seen.one_winner(["first", "second"], won, "there was one slot");
        world.assert_holds(&[(class, 8)], 0);
    });
}

/// The same while a copy is removed: refused or not, the count tells which.
#[test]
fn one_lock_whole_insertion_against_a_removal_of_a_saturated_class() {
    in_both_orders([111, 177], &["stored", "refused"], |seen, swapped| {
        let world = World::new(16, 2, 0);
        let class = key(7, 0, 1);
        (0..8).for_each(|_| assert!(world.insert(class)));
        let (result, ()) = run_two(
            &world,
            swapped,
            move |writer| insert(writer, class),
            move |remover| assert!(remover.remove(class.turned()), "a present key was not removed"),
        );
        let stored = result == Ok(true);
        assert!(stored || result == Err(InsertError::TooManyCopies), "{result:?}");
        seen.note(if stored { "stored" } else { "refused" });
        world.assert_holds(&[(class, 7 + usize::from(stored))], 0);
    });
}
