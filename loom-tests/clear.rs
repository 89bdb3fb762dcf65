//! H7: `clear`, concurrent with lookups and insertions.

use super::equal_fingerprint::removal_is_one_event;
use super::harness::*;
use crate::layout::Class;

/// The lookup has passed one copy of the class and not yet read the other. Once it has missed the cleared class, it must not find
/// it.
#[test]
fn clear_is_one_event_for_each_class() {
    removal_is_one_event(key(7, 1, 0), 1, clear(), 498);
    removal_is_one_event(key(7, 0, 1), 1, clear(), 453);
}

/// An insertion into either stripe takes effect before the clear or after it, and the count agrees.
fn insertion_stays_or_goes(insert: fn(Class) -> Op<World>, executions: [[usize; 2]; 2]) {
    for (bucket, executions) in [0, 1].into_iter().zip(executions) {
        let (old, new) = (key(7, 1 - bucket, bucket), key(8, bucket, 1 - bucket));
        let left = move |world: &World| world.sums(&[old, new], 0);
        Race::new("an insertion stays or goes", move || World::new(16, 2, 0).with(old), left)
            .threads(clear(), insert(new))
            .explore(executions);
    }
}

models! {
    clear_against_insert_keeps_the_count_exact => insertion_stays_or_goes(insert, [[15, 18], [12, 15]]);
    one_lock_insertion_against_clear_keeps_the_count_exact =>
        insertion_stays_or_goes(insert_into_first, [[12, 15], [9, 12]]);
}

/// H9: the count of the first stripe of a loaded shard includes all keys that were loaded, so a removal in another stripe makes
/// that stripe's count negative. A reader that adds up the counts during a clear must not see one of the two reset and the other
/// not.
#[test]
fn clear_of_a_loaded_shard_is_counted_at_once() {
    let world = || {
        let loaded = World::loaded(&plan(16, 2, 0), [7 << 16 | 8, 9].into_iter(), 3);
        loaded.without(key(9, 1, 1)).without(key(7, 0, 0))
    };
    Race::new("one key or none is counted", world, |world: &World| world.sums(&[], 0))
        .threads(clear(), len())
        .explore([15, 12]);
}
