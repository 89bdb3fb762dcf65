//! H4: of several threads that insert one key uniquely, at most one is told that it was new.

use super::harness::*;
use crate::shard::Admission;
use std::sync::Arc;

#[test]
fn unique_twice_admits_one() {
    let name = "unique_twice_admits_one";
    Model { name, executions: 12, preemptions: None, outcomes: &["first", "second"] }.explore(|seen| {
        let world = World::new(16, 2, 0);
        let class = key(7, 0, 1);
        let admitted: Notes<&str> = Arc::default();
        let [one, other] = [(class, "first"), (turned(class), "second")].map(|(class, name)| {
            let (world, admitted) = (Arc::clone(&world), Arc::clone(&admitted));
            move || {
                if world.insert_unique(class).expect("there is room") {
                    admitted.lock().unwrap().push(name);
                }
            }
        });
        run_two(false, one, other);
        let admitted = admitted.lock().unwrap().clone();
        assert_eq!(admitted.len(), 1, "exactly one is admitted");
        seen.note(admitted[0]);
        world.holds(&[(class, 1)], 0);
    });
}

#[test]
fn unique_against_insert_counts_right() {
    let name = "unique_against_insert_counts_right";
    for (swapped, executions) in [(false, 15), (true, 12)] {
        let outcomes: &[&str] = &["admitted", "present"];
        Model { name, executions, preemptions: None, outcomes }.explore(move |seen| {
            let world = World::new(16, 2, 0);
            let class = key(7, 0, 1);
            let copies: Notes<usize> = Arc::default();
            let (unique, writer, seen, note) =
                (Arc::clone(&world), Arc::clone(&world), seen.clone(), Arc::clone(&copies));
            run_two(
                swapped,
                move || {
                    let admitted = unique.insert_unique(class).expect("there is room");
                    seen.note(if admitted { "admitted" } else { "present" });
                    note.lock().unwrap().push(1 + usize::from(admitted));
                },
                move || assert!(writer.insert(turned(class))),
            );
            let copies = copies.lock().unwrap()[0];
            world.holds(&[(class, copies)], 0);
        });
    }
}

/// Both have found the pair full and searched; one frees a slot for itself. The other must look for the key again, not
/// only for room.
#[test]
fn unique_by_path_twice_admits_one() {
    let name = "unique_by_path_twice_admits_one";
    Model { name, executions: 12, preemptions: None, outcomes: &["first", "second", "present"] }.explore(|seen| {
        let world = World::new(16, 4, 0);
        let class = key(7, 0, 1);
        let (here, there) = (key(8, 0, 2), key(9, 1, 3));
        world.put(here);
        world.put(there);
        world.fill(0, 3, 20);
        world.fill(1, 3, 30);
        let admitted: Notes<&str> = Arc::default();
        let [one, other] = [(here, "first"), (there, "second")].map(|(moved, name)| {
            let (world, admitted, seen) = (Arc::clone(&world), Arc::clone(&admitted), seen.clone());
            move || match world.carry_out(&[hop(moved)], class, Admission::Unique) {
                Some(true) => admitted.lock().unwrap().push(name),
                Some(false) => seen.note("present"),
                None => panic!("nobody spoils the path"),
            }
        });
        run_two(false, one, other);
        let admitted = admitted.lock().unwrap().clone();
        assert_eq!(admitted.len(), 1, "exactly one is admitted");
        seen.note(admitted[0]);
        world.holds(&[(class, 1), (here, 1), (there, 1)], 6);
    });
}
