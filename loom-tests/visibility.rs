//! Store buffering: a write is visible to every thread when it returns, so of two threads that each write one key and then
//! look up the other's, at least one sees what the other has done. No model of a single class shows it.

use super::exclusive::Change::Insert;
use super::exclusive::Scene;
use super::harness::*;
use crate::layout::Class;
use crate::raw::Put;
use std::sync::Arc;

/// Each thread makes the change in a world of its own and then asks the other world for it, so that the threads have no
/// lock in common. `change` gets the key and, if it is there `before`, takes it away.
fn changes_are_visible_when_they_return(
    executions: usize,
    scene: fn() -> (Arc<World>, Class),
    before: bool,
    change: fn(&Arc<World>, Class),
) {
    let outcomes: &[&str] = &["both", "first", "second"];
    Model { executions, preemptions: None, outcomes }.explore(move |seen| {
        let ((world, key), (other_world, other_key)) = (scene(), scene());
        let act = move |own: &Arc<World>, key, other: &Arc<World>, other_key| {
            change(own, key);
            other.contains(other_key) != before
        };
        let (first, second) = run_two(
            &(world, other_world),
            false,
            move |(world, other_world)| act(world, key, other_world, other_key),
            move |(world, other_world)| act(other_world, other_key, world, key),
        );
        assert!(first || second, "neither of two writes that had returned was seen");
        seen.note(if !second {
            "first"
        } else if !first {
            "second"
        } else {
            "both"
        });
    });
}

fn pair(copies: usize) -> (Arc<World>, Class) {
    let (world, key) = (World::new(16, 2, 0), key(7, 0, 1));
    (0..copies).for_each(|_| assert!(world.insert(key)));
    (world, key)
}

#[test]
fn insertions_are_visible_when_they_return() {
    changes_are_visible_when_they_return(30, || pair(0), false, |world, key| assert!(world.insert(key)));
}

#[test]
fn one_lock_insertions_are_visible_when_they_return() {
    changes_are_visible_when_they_return(30, || pair(0), false, |world, key| assert!(world.insert_into_first(key)));
}

#[test]
fn unique_insertions_are_visible_when_they_return() {
    changes_are_visible_when_they_return(
        30,
        || pair(0),
        false,
        |world, key| {
            assert_eq!(world.insert_unique(key), Some(true));
        },
    );
}

/// The key comes into the slot that a last hop has freed.
#[test]
fn insertions_by_a_path_are_visible_when_they_return() {
    let scene = || {
        let (scene, _) = Scene::full_pair(16, 0, 0, 0);
        let new = scene.key(7, 0, 1);
        (scene.world, new)
    };
    changes_are_visible_when_they_return(3825, scene, false, |world, new| {
        let moved = Scene::from_world(Arc::clone(world)).key(0, 0, 3);
        assert_eq!(world.carry_out(&[hop(moved)], new, Put::COPY), Some(true));
    });
}

#[test]
fn removals_are_visible_when_they_return() {
    changes_are_visible_when_they_return(30, || pair(1), true, |world, key| assert!(world.remove(key)));
}

#[test]
fn removals_of_all_copies_are_visible_when_they_return() {
    changes_are_visible_when_they_return(
        2604,
        || pair(2),
        true,
        |world, key| {
            assert_eq!(world.remove_all(key), 2);
        },
    );
}

#[test]
fn clears_are_visible_when_they_return() {
    changes_are_visible_when_they_return(288, || pair(1), true, |world, _| world.raw.clear());
}

#[test]
fn tasks_are_visible_when_they_return() {
    changes_are_visible_when_they_return(
        30,
        || pair(0),
        false,
        |world, key| {
            assert_eq!(Scene::from_world(Arc::clone(world)).task(&[Insert(key)]), [Some(true)]);
        },
    );
}
