//! H4: of several threads that insert one key uniquely, at most one is told that it was new.

use super::harness::*;
use crate::raw::Admission;
use std::sync::Arc;

#[test]
fn unique_twice_admits_one() {
    Model { executions: 12, preemptions: None, outcomes: &["first", "second"] }.explore(|seen| {
        let world = World::new(16, 2, 0);
        let class = key(7, 0, 1);
        let [one, other] = [class, class.turned()].map(|class| {
            let world = Arc::clone(&world);
            move || world.insert_unique(class).expect("there is room")
        });
        let admitted = run_two(false, one, other);
        seen.one_winner(["first", "second"], admitted, "exactly one is admitted");
        world.assert_holds(&[(class, 1)], 0);
    });
}

#[test]
fn unique_against_insert_counts_right() {
    for (swapped, executions) in [(false, 12), (true, 12)] {
        let outcomes: &[&str] = &["admitted", "present"];
        Model { executions, preemptions: None, outcomes }.explore(move |seen| {
            let world = World::new(16, 2, 0);
            let class = key(7, 0, 1);
            let (unique, writer) = (Arc::clone(&world), Arc::clone(&world));
            let (admitted, ()) = run_two(
                swapped,
                move || unique.insert_unique(class).expect("there is room"),
                move || assert!(writer.insert(class.turned())),
            );
            seen.note(if admitted { "admitted" } else { "present" });
            world.assert_holds(&[(class, 1 + usize::from(admitted))], 0);
        });
    }
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
            let (world, seen) = (Arc::clone(&world), seen.clone());
            move || {
                let result = world.carry_out(&[hop(moved)], class, Admission::Unique);
                let admitted = result.expect("nothing spoils the path");
                if !admitted {
                    seen.note("present");
                }
                admitted
            }
        });
        let admitted = run_two(false, one, other);
        seen.one_winner(["first", "second"], admitted, "exactly one is admitted");
        world.assert_holds(&[(class, 1), (here, 1), (there, 1)], 6);
    });
}
