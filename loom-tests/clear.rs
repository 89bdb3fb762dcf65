//! H7: `clear`, concurrent with lookups and insertions.

use super::equal_fingerprint::removal_is_one_event;
use super::harness::*;

/// The lookup has passed one copy of the class and not yet read the other. Once it has missed the cleared class, it must not find
/// it.
#[test]
fn clear_is_one_event_for_each_class() {
    removal_is_one_event(key(7, 1, 0), 1, clear(), 498);
    removal_is_one_event(key(7, 0, 1), 1, clear(), 453);
}

/// An insertion takes effect before the clear or after it, and the count agrees.
#[test]
fn clear_against_insert_keeps_the_count_exact() {
    let (old, new) = (key(7, 1, 0), key(8, 0, 1));
    let left = move |world: &World| world.sums(&[old, new], 0);
    Race::new("an insertion stays or goes", move || World::new(16, 2, 0).with(old), left)
        .threads(clear(), insert(new))
        .explore([15, 18]);
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
