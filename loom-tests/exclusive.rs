//! H1, H2, H3, H4, H9: a task of a bulk operation, which changes a shard many times under all its locks, against
//! lookups and single writers. The search for a path runs inside: under all locks it reads as a writer does, which does not blind
//! loom.

use super::equal_fingerprint::removal_of_a_copy_is_never_missed;
use super::harness::*;
use crate::error::InsertError;
use crate::layout::Class;
use crate::layout::{Search, SearchBudget};
use crate::raw::{Fixed, Put};
use std::sync::Arc;

const BUCKETS: u32 = 4;

/// A world in which the two buckets of each key are those of a geometry, so that a search finds its way.
#[derive(Clone)]
pub(super) struct Scene {
    pub(super) world: Arc<World>,
}

/// One change of a task's.
#[derive(Clone, Copy)]
pub(super) enum Change {
    Insert(Class),
    InsertUnique(Class),
    Remove(Class),
}
use Change::{Insert, InsertUnique, Remove};

impl Scene {
    fn new(width: u32, stripe_shift: u32) -> Self {
        Scene::from_world(World::new(width, BUCKETS, stripe_shift))
    }

    pub(super) fn from_world(world: Arc<World>) -> Self {
        Scene { world }
    }

    /// Key number `number` of those that lie in these buckets: 0 and 1, 2 and 3, 0 and 3, or 1 and 2.
    pub(super) fn key(&self, number: usize, first: u32, second: u32) -> Class {
        key_in(self.world.plan(), number, first, second)
    }

    /// Puts keys of these buckets, from number `from` on, into the first of them.
    fn fill(&self, first: u32, second: u32, slots: usize, from: usize) {
        for number in from..from + slots {
            let key = self.key(number, first, second);
            assert!(self.world.insert(Class { second: key.first, ..key }));
        }
    }

    /// A full pair: `from` and its neighbour. One of its keys, which has `below` slots below it, may move to
    /// `3 - from`, where as many are filled. Keys of the pair from number 7 on are not there yet.
    pub(super) fn full_pair(width: u32, stripe_shift: u32, from: u32, below: usize) -> (Self, Class) {
        let scene = Scene::new(width, stripe_shift);
        let (neighbour, to) = (from ^ 1, 3 - from);
        let moved = scene.key(0, from, to);
        scene.fill(to, from, below, 1);
        scene.fill(from, neighbour, below, 0);
        scene.world.put(moved);
        scene.fill(from, neighbour, 3 - below, below);
        scene.fill(neighbour, from, 4, 3);
        (scene, moved)
    }

    /// Makes the changes under one lock, as a task of a bulk operation does. Returns what each did; `None` is "full".
    pub(super) fn task(&self, changes: &[Change]) -> Vec<Option<bool>> {
        let (mut search, mut budget) = (Search::new(), SearchBudget::full());
        let exclusive = self.world.shard().exclusive();
        let mut insert = |key, put| {
            let Ok(result) = exclusive.insert(Fixed, &mut search, &mut budget, key, put);
            match result {
                Ok(had) => Some(had == 0),
                Err(InsertError::Full) => None,
                Err(error) => panic!("there are few copies of {key:?}: {error}"),
            }
        };
        let change = |&change: &Change| match change {
            Insert(key) => insert(key, Put::COPY),
            InsertUnique(key) => insert(key, Put::UNIQUE),
            Remove(key) => Some(exclusive.remove(key, None) != 0),
        };
        changes.iter().map(change).collect()
    }
}

/// The task inserts into a full pair, so that a key must move; if `twice`, it then takes the slot for another key.
fn exclusive_moves_are_never_missed(width: u32, stripe_shift: u32, below: usize, twice: bool, executions: [usize; 8]) {
    let mut executions = executions.into_iter();
    for (swapped, from) in [(false, 0), (false, 3), (true, 0), (true, 3)] {
        for away in [false, true] {
            let executions = executions.next().expect("8 numbers");
            // As in `outcomes`: a lookup that reads the source first never repeats.
            let outcomes: &[&str] = if away { &["found"] } else { &["found", "repeated"] };
            Model { executions, preemptions: None, outcomes }.explore(move |seen| {
                let (scene, moved) = Scene::full_pair(width, stripe_shift, from, below);
                let [new, other] = [7, 8].map(|number| scene.key(number, from, from ^ 1));
                let seen = seen.clone();
                run_two(
                    &scene,
                    swapped,
                    move |scene| {
                        let looked_up = if away { moved } else { moved.turned() };
                        assert!(scene.world.contains(looked_up), "a key that a task only moved was missed");
                        seen.note("found");
                    },
                    move |writer| {
                        let changes = [Insert(new), Remove(new), Insert(other)];
                        let done = writer.task(if twice { &changes } else { &changes[..1] });
                        assert!(done.iter().all(|&done| done == Some(true)), "the task finds its way");
                    },
                );
                let stored = if twice { other } else { new };
                scene.world.assert_holds(&[(moved, 1), (stored, 1)], 7 + below as u64);
            });
        }
    }
}

#[test]
fn exclusive_moves_are_never_missed_at_16_bits() {
    exclusive_moves_are_never_missed(16, 0, 0, true, [3090, 591, 3090, 591, 4035, 1326, 4035, 1326]);
}

/// Slot 2 of bucket 3 straddles two words.
#[test]
fn exclusive_moves_are_never_missed_at_13_bits() {
    exclusive_moves_are_never_missed(13, 4, 2, false, [1473, 402, 8490, 1167, 1923, 792, 10104, 2388]);
}

/// Slot 2 of bucket 0 straddles two words.
#[test]
fn exclusive_moves_are_never_missed_at_24_bits() {
    exclusive_moves_are_never_missed(24, 1, 2, false, [8490, 1167, 1473, 402, 10104, 2388, 1923, 792]);
}

/// Both roots are full, and the bucket to which a key of theirs may move is full, too: two hops, the farther one first.
#[test]
fn exclusive_path_of_two_hops_is_never_missed() {
    let cases = [(true, false, 5226), (true, true, 678), (false, false, 2088), (false, true, 498)];
    for (swapped, looks_for_far, executions) in cases {
        Model { executions, preemptions: None, outcomes: &["found", "repeated"] }.explore(move |seen| {
            let scene = Scene::new(16, 0);
            let [near, far, new] = [scene.key(0, 0, 3), scene.key(0, 3, 2), scene.key(7, 0, 1)];
            [near, far].into_iter().for_each(|key| scene.world.put(key));
            scene.fill(0, 1, 3, 0);
            scene.fill(1, 0, 4, 3);
            scene.fill(3, 0, 3, 1);
            let (looked_up, seen) = (if looks_for_far { far } else { near }, seen.clone());
            run_two(
                &scene,
                swapped,
                move |scene| {
                    assert!(scene.world.contains(looked_up.turned()), "a key that a task only moved was missed");
                    seen.note("found");
                },
                move |writer| assert_eq!(writer.task(&[Insert(new)]), [Some(true)], "the task finds its way"),
            );
            scene.world.assert_holds(&[(near, 1), (far, 1), (new, 1)], 10);
        });
    }
}

/// As the models of equal_fingerprint, by a task.
#[test]
fn exclusive_removal_of_a_copy_is_never_missed() {
    removal_of_a_copy_is_never_missed(16, 0, [165, 165, 225, 225], |world, stays| {
        let scene = Scene::from_world(Arc::clone(world));
        assert_eq!(scene.task(&[Insert(stays.turned()), Remove(stays)]), [Some(true); 2]);
    });
}

#[test]
fn exclusive_and_single_insert_for_the_last_slot_have_one_winner() {
    in_both_orders([12, 12], &["single", "task"], |seen, swapped| {
        let scene = Scene::new(16, 0);
        let [one, other] = [scene.key(7, 0, 1), scene.key(8, 1, 0)];
        scene.fill(0, 1, 4, 0);
        scene.fill(1, 0, 3, 4);
        let won = run_two(
            &scene,
            swapped,
            move |scene| scene.world.insert(one),
            move |writer| writer.task(&[Insert(other)]) == [Some(true)],
        );
        let [single, task] = seen.one_winner(["single", "task"], won, "there was one slot");
        scene.world.assert_holds(&[(one, single), (other, task)], 7);
    });
}

/// Insertions and removals in the same stripes add up. The single pair is named upper bucket first: no deadlock.
#[test]
fn exclusive_and_single_changes_add_up() {
    in_both_orders([12, 18], &["added up"], |seen, swapped| {
        let scene = Scene::new(16, 0);
        let [old, one, two, other] = [0, 1, 2, 3].map(|number| scene.key(number, 3, 2));
        scene.world.put(old);
        run_two(
            &scene,
            swapped,
            move |scene| assert!(scene.world.insert(other)),
            move |writer| assert_eq!(writer.task(&[Insert(one), Remove(old), Insert(two)]), [Some(true); 3]),
        );
        scene.world.assert_holds(&[(old, 0), (one, 1), (two, 1), (other, 1)], 0);
        seen.note("added up");
    });
}

/// A single insertion has found the path that the task finds too. There is one hole: the path is spoiled, or the task is
/// told that the shard is full.
#[test]
fn exclusive_and_a_path_for_one_hole_have_one_winner() {
    in_both_orders([12, 12], &["path", "task"], |seen, swapped| {
        let (scene, moved) = Scene::full_pair(16, 0, 0, 3);
        let [one, other] = [scene.key(7, 1, 0), scene.key(8, 0, 1)];
        let won = run_two(
            &scene,
            swapped,
            move |scene| scene.world.carry_out(&[hop(moved)], one, Put::COPY) == Some(true),
            move |writer| writer.task(&[Insert(other)]) == [Some(true)],
        );
        let [path, task] = seen.one_winner(["path", "task"], won, "there was one hole");
        scene.world.assert_holds(&[(moved, 1), (one, path), (other, task)], 10);
    });
}

/// A present key is removed, whether the task has moved it yet or not. If it has, there is room for one new key, else
/// for two.
#[test]
fn exclusive_move_against_removal_always_removes() {
    in_both_orders([18, 18], &["moved first", "removed first"], |seen, swapped| {
        let (scene, moved) = Scene::full_pair(16, 0, 0, 3);
        let [new, beyond] = [scene.key(7, 0, 1), scene.key(4, 3, 0)];
        let ((), stored) = run_two(
            &scene,
            swapped,
            move |scene| assert!(scene.world.remove(moved.turned()), "a present key was not removed"),
            move |writer| writer.task(&[Insert(new), Insert(beyond)]),
        );
        assert_eq!(stored[0], Some(true), "the removal made room, or the move did");
        let room = stored[1] == Some(true);
        seen.note(if room { "removed first" } else { "moved first" });
        scene.world.assert_holds(&[(moved, 0), (new, 1), (beyond, usize::from(room))], 10);
    });
}

/// The key that one thread inserts uniquely is inserted by the task, too.
#[test]
fn exclusive_against_unique_counts_right() {
    in_both_orders([12, 12], &["admitted", "present"], |seen, swapped| {
        let scene = Scene::new(16, 0);
        let [class, other] = [scene.key(0, 0, 1), scene.key(1, 0, 1)];
        let (admitted, ()) = run_two(
            &scene,
            swapped,
            move |scene| scene.world.insert_unique(class).expect("there is room"),
            move |writer| assert_eq!(writer.task(&[Insert(other), Insert(class.turned())]), [Some(true); 2]),
        );
        seen.note(if admitted { "admitted" } else { "present" });
        scene.world.assert_holds(&[(class, 1 + usize::from(admitted)), (other, 1)], 0);
    });
}

/// `insert_unique` in its last resort, under all locks, against another by a path: the second one sees the key.
#[test]
fn exclusive_unique_against_a_path_admits_one() {
    in_both_orders([15, 15], &["path", "task"], |seen, swapped| {
        let (scene, moved) = Scene::full_pair(16, 0, 0, 0);
        let class = scene.key(7, 0, 1);
        // Two may move, so that there would be room for a second copy.
        let also = scene.key(0, 1, 2);
        let instead_of = scene.key(6, 1, 0);
        assert!(scene.world.remove(Class { second: instead_of.first, ..instead_of }));
        scene.world.put(also);
        let admitted = run_two(
            &scene,
            swapped,
            move |scene| {
                let admitted = scene.world.carry_out(&[hop(moved)], class.turned(), Put::UNIQUE);
                admitted.expect("the key is looked for before the path")
            },
            move |writer| writer.task(&[InsertUnique(class)])[0].expect("there is room"),
        );
        seen.one_winner(["path", "task"], admitted, "exactly one is admitted");
        scene.world.assert_holds(&[(class, 1), (moved, 1), (also, 1)], 6);
    });
}
