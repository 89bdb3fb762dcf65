//! H7: clear beside look-ups and insertions.

use super::harness::*;
use std::sync::Arc;

/// A class with a copy that the look-up has passed by and one that it has not read: cleared, it is gone for good.
#[test]
fn clear_is_one_event_for_each_class() {
    let name = "clear_is_one_event_for_each_class";
    for (class, executions) in [(key(7, 0, 1), 657), (key(7, 1, 0), 453)] {
        let outcomes: &[&str] = &["found", "missed", "repeated"];
        Model { name, executions, preemptions: None, outcomes }
            .explore(move |seen| removal_is_one_event(seen, class, |world| world.shard.clear()));
    }
}

/// An insertion comes before the clear or after it, and the count says which.
#[test]
fn clear_against_insert_keeps_the_count_exact() {
    let name = "clear_against_insert_keeps_the_count_exact";
    for (swapped, executions) in [(false, 15), (true, 18)] {
        Model { name, executions, preemptions: None, outcomes: &["stays", "goes"] }.explore(move |seen| {
            let world = World::new(16, 2, 0);
            let (old, new) = (key(7, 1, 0), key(8, 0, 1));
            world.put(old);
            let (clearer, writer) = (Arc::clone(&world), Arc::clone(&world));
            run_two(swapped, move || clearer.shard.clear(), move || assert!(writer.insert(new)));
            let stays = world.count(new);
            seen.note(if stays == 1 { "stays" } else { "goes" });
            world.holds(&[(old, 0), (new, stays)], 0);
        });
    }
}
