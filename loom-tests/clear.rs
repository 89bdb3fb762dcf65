//! H7: clear against lookups and insertions.

use super::harness::*;

use std::sync::Arc;

/// A class with a copy that the lookup has passed by and one that it has not read: cleared, it is gone for good.
#[test]
fn clear_is_one_event_for_each_class() {
    for (class, executions) in [(key(7, 0, 1), 498), (key(7, 1, 0), 453)] {
        let outcomes: &[&str] = &["found", "missed", "repeated"];
        Model { executions, preemptions: None, outcomes }
            .explore(move |seen| removal_is_one_event(seen, class, 1, |world| world.raw.clear()));
    }
}

/// An insertion comes before the clear or after it, and the count tells which.
#[test]
fn clear_against_insert_keeps_the_count_exact() {
    in_both_orders([15, 18], &["stays", "goes"], |seen, swapped| {
        let world = World::new(16, 2, 0);
        let (old, new) = (key(7, 1, 0), key(8, 0, 1));
        world.put(old);
        run_two(&world, swapped, move |clearer| clearer.shard().clear(), move |writer| assert!(writer.insert(new)));
        let stays = world.count(new);
        seen.note(if stays == 1 { "stays" } else { "goes" });
        world.assert_sum_holds(&[(old, 0), (new, stays)], 0);
    });
}

/// H9: a loaded shard has what it began with in the count of its first stripe, and a removal in another one stands below
/// zero there. A reader that adds up the counts during a clear must not find one of them gone and the other not yet.
#[test]
fn clear_of_a_loaded_shard_is_counted_at_once() {
    in_both_orders([15, 12], &["0", "1"], |seen, swapped| {
        let plan = plan(16, 2, 0);
        let world = Arc::new(World::loaded(&plan, [7 << 16 | 8, 9].into_iter(), 3));
        assert!(world.remove(key(9, 1, 1)));
        assert!(world.remove(key(7, 0, 0)));
        let ((), len) =
            run_two(&world, swapped, move |clearer| clearer.shard().clear(), move |reader| reader.shard().len());
        assert!(len <= 1, "there was one key, and {len} are counted");
        seen.note(len.to_string());
        assert_eq!(world.shard().len(), 0);
    });
}
