//! H7: clear against lookups and insertions.

use super::equal_fingerprint::removal_is_one_event;
use super::harness::*;

/// A class with a copy that the lookup has passed by and one that it has not read: cleared, it is gone for good.
#[test]
fn clear_is_one_event_for_each_class() {
    removal_is_one_event(key(7, 0, 1), 1, clear(), 498);
    removal_is_one_event(key(7, 1, 0), 1, clear(), 453);
}

/// An insertion comes before the clear or after it, and the count tells which.
#[test]
fn clear_against_insert_keeps_the_count_exact() {
    let (old, new) = (key(7, 1, 0), key(8, 0, 1));
    let left = move |world: &World| world.sums(&[old, new], 0);
    Race::new("an insertion stays or goes", move || World::new(16, 2, 0).with(old), left)
        .threads(clear(), insert(new))
        .explore([15, 18]);
}

/// H9: a loaded shard has what it began with in the count of its first stripe, and a removal in another one stands below
/// zero there. A reader that adds up the counts during a clear must not find one of them gone and the other not yet.
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
