//! H4: of several threads that insert one key uniquely, at most one is told that it was new.

use super::harness::*;
use crate::raw::Put;
use std::sync::Arc;

#[test]
fn unique_twice_admits_one() {
    Model { executions: 12, preemptions: None, outcomes: &["first", "second"] }.explore(|seen| {
        let world = World::new(16, 2, 0);
        let class = key(7, 0, 1);
        let [one, other] = [class, class.turned()]
            .map(|class| move |world: &Arc<World>| world.insert_unique(class).expect("there is room"));
        let admitted = run_two(&world, false, one, other);
        seen.one_winner(["first", "second"], admitted, "exactly one is admitted");
        world.assert_holds(&[(class, 1)], 0);
    });
}

#[test]
fn unique_against_insert_counts_right() {
    in_both_orders([12, 12], &["admitted", "present"], |seen, swapped| {
        let world = World::new(16, 2, 0);
        let class = key(7, 0, 1);
        let (admitted, ()) = run_two(
            &world,
            swapped,
            move |unique| unique.insert_unique(class).expect("there is room"),
            move |writer| assert!(writer.insert(class.turned())),
        );
        seen.note(if admitted { "admitted" } else { "present" });
        world.assert_holds(&[(class, 1 + usize::from(admitted))], 0);
    });
}

/// Both have found the pair full and searched; one frees a slot for itself. The other must look for the key again, not
/// only for room.
#[test]
fn unique_by_path_twice_admits_one() {
    Model { executions: 12, preemptions: None, outcomes: &["first", "second", "present"] }.explore(|seen| {
        let world = World::new(16, 4, 0);
        let class = key(7, 0, 1);
        let (here, there) = (key(8, 0, 2), key(9, 1, 3));
        world.put(here);
        world.put(there);
        world.fill(0, 3, 20);
        world.fill(1, 3, 30);
        let [one, other] = [here, there].map(|moved| {
            let seen = seen.clone();
            move |world: &Arc<World>| {
                let result = world.carry_out(&[hop(moved)], class, Put::UNIQUE);
                let admitted = result.expect("nothing spoils the path");
                if !admitted {
                    seen.note("present");
                }
                admitted
            }
        });
        let admitted = run_two(&world, false, one, other);
        seen.one_winner(["first", "second"], admitted, "exactly one is admitted");
        world.assert_holds(&[(class, 1), (here, 1), (there, 1)], 6);
    });
}
