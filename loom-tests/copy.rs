//! H7: a copy of a shard, as a snapshot takes it, while others change the shard. Each copy is made a shard
//! again, as when a snapshot is loaded.

use super::exclusive::Change::{Insert, Remove};
use super::exclusive::Scene;
use super::harness::*;
use crate::layout::Class;

use std::sync::Arc;

/// The words of a copy, and the number of fingerprints that it gives for them.
type Copy = (Vec<u64>, u64);

fn copy(world: &World) -> Copy {
    let mut words = vec![0; world.plan().words];
    let (count, _) = world.shard().copy_to(&mut words);
    (words, count)
}

/// The shard of a copy. This class was in the shard all the time.
fn loaded(world: &World, (words, count): Copy, stays: Class) -> World {
    let loaded = World::loaded(world.plan(), words.into_iter(), count);
    assert!(loaded.contains(stays), "a key that was there throughout is not in the copy");
    let taken = loaded.shard().occupied();
    assert_eq!(taken, Some(count), "the count of a copy is the number of slots taken in it");
    loaded
}

/// Copies of the class in the first of its buckets.
fn in_first(world: &World, key: Class) -> usize {
    world.count(Class { second: key.first, ..key })
}

/// A key moves between the first and the last bucket, which are in different stripes. There it has `below` slots below
/// it.
fn copy_during_a_move_has_the_key((width, buckets, stripe_shift): (u32, u32, u32), below: u32, executions: [usize; 4]) {
    let last = buckets - 1;
    let up = key_in(&plan(width, buckets, stripe_shift), 0, 0, last);
    let down = up.turned();
    // Copied from the first bucket on, the key that moves down could be lost, and the one that moves up be there twice.
    let configurations = [(false, down), (false, up), (true, down), (true, up)];
    for ((swapped, moved), executions) in configurations.into_iter().zip(executions) {
        let outcomes: &[&str] = &["copied before", "copied after"];
        Model { executions, preemptions: None, outcomes }.explore(move |seen| {
            let world = World::new(width, buckets, stripe_shift);
            world.fill(0, below, 20);
            world.fill(last, below, 30);
            world.put(moved);
            let (copied, ()) =
                run_two(&world, swapped, move |copier| copy(copier), move |mover| assert!(mover.hop(hop(moved))));
            let copied = loaded(&world, copied, moved);
            copied.assert_sum_holds(&[(moved, 1)], u64::from(2 * below));
            seen.note(if in_first(&copied, moved) == 1 { "copied before" } else { "copied after" });
        });
    }
}

#[test]
fn copy_during_a_move_has_the_key_at_16_bits() {
    copy_during_a_move_has_the_key((16, 2, 0), 0, [18, 15, 18, 15]);
}

/// Slot 2 of bucket 0 straddles two words.
#[test]
fn copy_during_a_move_has_the_key_at_24_bits() {
    copy_during_a_move_has_the_key((24, 4, 1), 2, [18, 15, 18, 15]);
}

/// A lookup does not wait for a copy.
#[test]
fn copy_and_lookup_during_a_move_both_find_the_key() {
    for (moved, executions) in [(key(7, 1, 0), 7753), (key(7, 0, 1), 6553)] {
        let outcomes: &[&str] = &["copied before", "copied after", "found", "repeated"];
        Model { executions, preemptions: Some(3), outcomes }.explore(move |seen| {
            let world = World::new(16, 2, 0);
            world.put(moved);
            let (copied, (), found) = run_three(
                &world,
                move |copier| copy(copier),
                move |mover| assert!(mover.hop(hop(moved))),
                move |reader| reader.contains(moved.turned()),
            );
            assert!(found, "a key that only moved was missed");
            seen.note("found");
            let copied = loaded(&world, copied, moved);
            copied.assert_sum_holds(&[(moved, 1)], 0);
            seen.note(if in_first(&copied, moved) == 1 { "copied before" } else { "copied after" });
        });
    }
}

/// The body of a model: a key is inserted, upper bucket first, and the count tells whether it is in the copy.
fn insertion_is_in_the_copy_or_not(seen: &Seen, swapped: bool, insert: fn(&World, Class) -> bool) {
    let world = World::new(16, 2, 0);
    let (old, new) = (key(7, 0, 1), key(8, 1, 0));
    world.put(old);
    let (copied, ()) = run_two(&world, swapped, move |copier| copy(copier), move |writer| assert!(insert(writer, new)));
    let copied = loaded(&world, copied, old);
    let with = copied.count(new);
    seen.note(if with == 1 { "with" } else { "without" });
    copied.assert_sum_holds(&[(old, 1), (new, with)], 0);
}

/// No deadlock.
#[test]
fn copy_during_an_insertion_counts_right() {
    for (swapped, executions) in [(false, 15), (true, 15)] {
        Model { executions, preemptions: None, outcomes: &["with", "without"] }
            .explore(move |seen| insertion_is_in_the_copy_or_not(seen, swapped, World::insert));
    }
}

/// The same under the lock of its upper bucket alone.
#[test]
fn copy_during_a_one_lock_insertion_counts_right() {
    for (swapped, executions) in [(false, 12), (true, 12)] {
        Model { executions, preemptions: None, outcomes: &["with", "without"] }
            .explore(move |seen| insertion_is_in_the_copy_or_not(seen, swapped, World::insert_into_first));
    }
}

/// As the models of equal_fingerprint: another key of the class is inserted into the other bucket, and its removal takes
/// the old copy.
#[test]
fn copy_during_the_removal_of_a_copy_has_the_class() {
    let (up, down) = (key(7, 0, 1), key(7, 1, 0));
    let configurations = [(false, down), (false, up), (true, down), (true, up)];
    for ((swapped, stays), executions) in configurations.into_iter().zip([21, 18, 36, 36]) {
        let outcomes: &[&str] = &["the old one", "both", "the new one"];
        Model { executions, preemptions: None, outcomes }.explore(move |seen| {
            let world = World::new(16, 2, 0);
            world.put(stays);
            let (copied, ()) = run_two(
                &world,
                swapped,
                move |copier| copy(copier),
                move |writer| {
                    assert!(writer.insert(stays.turned()));
                    assert!(writer.remove(stays));
                },
            );
            let copied = loaded(&world, copied, stays);
            let [old, new] = [stays, stays.turned()].map(|class| in_first(&copied, class));
            seen.note(match (old, new) {
                (1, 0) => "the old one",
                (1, 1) => "both",
                (0, 1) => "the new one",
                _ => panic!("{old} and {new} copies were never there"),
            });
            copied.assert_sum_holds(&[(stays, old + new)], 0);
        });
    }
}

/// A task of a bulk operation is in the copy as a whole or not at all: it has the locks until it ends.
#[test]
fn copy_during_a_task_has_all_of_it_or_nothing() {
    let configurations = [(false, 3), (false, 0), (true, 3), (true, 0)];
    for ((swapped, from), executions) in configurations.into_iter().zip([24, 21, 24, 21]) {
        let outcomes: &[&str] = &["all", "nothing"];
        Model { executions, preemptions: None, outcomes }.explore(move |seen| {
            let (scene, moved) = Scene::full_pair(16, 0, from, 0);
            let [new, other] = [7, 8].map(|number| scene.key(number, from, from ^ 1));
            let (copied, ()) = run_two(
                &scene,
                swapped,
                move |scene| copy(&scene.world),
                move |writer| assert_eq!(writer.task(&[Insert(new), Remove(new), Insert(other)]), [Some(true); 3]),
            );
            let copied = loaded(&scene.world, copied, moved);
            let done = copied.count(other);
            seen.note(if done == 1 { "all" } else { "nothing" });
            assert_eq!(in_first(&copied, moved), 1 - done, "the move is a part of the task");
            copied.assert_sum_holds(&[(moved, 1), (new, 0), (other, done)], 7);
        });
    }
}
