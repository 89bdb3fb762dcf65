//! H2: for the keys of one class, the removal of a copy is a move.

use super::harness::*;
use crate::layout::Class;

/// One copy is in the first bucket of `stays`, which the lookup reads last. `exchange` inserts another key of the class into the
/// bucket that the lookup reads first, and removes that key again, which takes the old copy. The class is present throughout.
pub(super) fn removal_of_a_copy_is_never_missed(
    width: u32,
    stripe_shift: u32,
    executions: [usize; 4],
    exchange: fn(Class) -> Vec<Op<World>>,
) {
    let plan = plan(width, 2.max(1 << stripe_shift), stripe_shift);
    for (number, stays) in [key_in(&plan, 0, 0, 1), key_in(&plan, 0, 1, 0)].into_iter().enumerate() {
        let world = move || World::new(width, plan.buckets, stripe_shift).with(stays);
        race("a class that was never absent was missed", world, &[stays], 0)
            .thread([finds(stays.turned())])
            .thread(exchange(stays))
            .seen(&["repeated"])
            .explore([executions[number], executions[number + 2]]);
    }
}

fn one_by_one(stays: Class) -> Vec<Op<World>> {
    vec![insert(stays.turned()), remove(stays)]
}

models! {
    equal_fingerprint_removal_at_16_bits => removal_of_a_copy_is_never_missed(16, 0, [165, 165, 225, 225], one_by_one);
    equal_fingerprint_removal_at_12_bits => removal_of_a_copy_is_never_missed(12, 2, [303, 303, 471, 471], one_by_one);
    equal_fingerprint_removal_at_13_bits =>
        removal_of_a_copy_is_never_missed(13, 4, [1092, 4683, 1440, 5991], one_by_one);
    equal_fingerprint_removal_at_24_bits => removal_of_a_copy_is_never_missed(24, 1, [249, 339, 291, 447], one_by_one);
}

/// The copies are in the two words of bucket 1: slot 0 in one word, slot 2 in the other.
#[test]
fn equal_fingerprint_removal_in_one_bucket() {
    let (stays, other) = (key_in(&plan(12, 4, 2), 0, 1, 0), key(8, 1, 1));
    // Bucket 0 is full, so the copies go to bucket 1, which is both candidates of `other`.
    let world = move || World::new(12, 4, 2).full(0, 4, 20).with_copies(2, other).with(stays).without(other);
    race("a class that was never absent was missed", world, &[stays, other], 4)
        .thread([finds(stays)])
        .thread([insert(stays), count(other), remove(stays)])
        .explore([303]);
}

/// The lookup has not read the only copy of the class. `more` copies are inserted, the first of them into the bucket that the
/// lookup has read, and `take` removes all. A reader that has missed the class must not find it again.
pub(super) fn removal_is_one_event(class: Class, more: usize, take: Op<World>, executions: usize) {
    let left = move |world: &World| world.sums(&[class], 0);
    Race::new("a class that was gone was found again", move || World::new(16, 2, 0).with(class), left)
        .thread([finds_no_more(class.turned())])
        .thread((0..more).map(|_| insert(class.turned())).chain([take]))
        .seen(&["repeated"])
        .explore([executions]);
}

/// The removal of all copies is one event.
#[test]
fn equal_fingerprint_removal_of_all_copies_is_one_event() {
    let class = key(7, 0, 1);
    removal_is_one_event(class, 1, remove_all(class), 498);
}

/// The same with two copies in one bucket and one in the other, where either bucket is emptied first.
#[test]
fn equal_fingerprint_removal_of_three_copies_is_one_event() {
    let class = key(7, 0, 1);
    removal_is_one_event(class, 2, remove_all(class), 7701);
    removal_is_one_event(class, 2, remove_all(class.turned()), 1668);
}
