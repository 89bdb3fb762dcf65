//! H1, H6: a lookup, concurrent with the relocation of its key or of a neighbour.

use super::harness::*;
use crate::layout::Class;
use crate::raw::Put;

/// A lookup by `look` of a key that moves once, in either direction, within one stripe or between two. In bucket 1, `below` slots
/// below it are in use. One more stripe follows those of the key.
pub(super) fn relocation_is_never_missed(
    width: u32,
    stripe_shift: u32,
    below: u32,
    look: fn(&World, Class) -> bool,
    executions: [usize; 8],
) {
    let plan = plan(width, 2 * 2.max(1 << stripe_shift), stripe_shift);
    let up = key_in(&plan, 0, 0, 1);
    // Fingerprints other than that of the key.
    let fillers = if up.fingerprint.get() > below { 1 } else { up.fingerprint.get() + 1 };
    // The case in which a miss is possible comes first, so that a fault fails by a missed key and not by the number of executions.
    let cases = [up, up.turned()].into_iter().flat_map(|moved| [(moved, moved.turned()), (moved, moved)]);
    for (number, (moved, looked_up)) in cases.enumerate() {
        let world = move || World::new(width, plan.buckets, stripe_shift).full(1, below, fillers).with(moved);
        race("a key that only moved was missed", world, &[moved], below as usize)
            .threads(op(move |world: &World| look(world, looked_up)), moves(moved))
            .seen(outcomes(looked_up, moved))
            .explore([executions[number], executions[number + 4]]);
    }
}

models! {
    relocation_is_never_missed_in_one_stripe =>
        relocation_is_never_missed(16, 1, 0, World::contains, [165, 120, 165, 120, 225, 183, 225, 183]);
    relocation_is_never_missed_across_stripes =>
        relocation_is_never_missed(16, 0, 0, World::contains, [165, 120, 165, 120, 225, 183, 225, 183]);
    /// The reader is another process, which may only read the memory.
    relocation_is_never_missed_by_fences =>
        relocation_is_never_missed(16, 0, 0, World::contains_by_fences, [165, 135, 165, 135, 225, 210, 225, 210]);
    /// Bucket 1 of 12-bit slots begins at bit 48: its slot 1 straddles two words.
    relocation_is_never_missed_in_straddling_slots =>
        relocation_is_never_missed(12, 2, 1, World::contains, [1092, 1092, 4683, 2175, 1440, 1440, 5991, 3192]);
    /// Slot 3 of bucket 1 shares a word with all buckets.
    relocation_is_never_missed_at_4_bits =>
        relocation_is_never_missed(4, 2, 3, World::contains, [720, 720, 720, 720, 840, 840, 840, 840]);
    relocation_is_never_missed_at_8_bits =>
        relocation_is_never_missed(8, 1, 1, World::contains, [303, 303, 303, 303, 471, 471, 471, 471]);
    /// Bucket 1 of 28-bit slots is in three words, and its slot 3 in the third of them.
    relocation_is_never_missed_in_a_bucket_of_three_words =>
        relocation_is_never_missed(28, 2, 3, World::contains, [165, 120, 165, 120, 225, 183, 225, 183]);
}

/// A lookup of a key that moves to its other bucket and back, `HOPS` times in all.
fn moves_there_and_back<const HOPS: usize>(
    stripe_shift: u32,
    looked_up: Class,
    executions: usize,
    outcomes: &'static [&'static str],
) {
    let moved = key(7, 0, 1);
    let there_and_back = [moved, moved.turned()].into_iter().cycle().take(HOPS);
    let world = move || World::new(16, 2, stripe_shift).with(moved);
    race("a key that moved there and back was missed", world, &[moved], 0)
        .thread([finds(looked_up)])
        .thread(there_and_back.map(moves))
        .at_most(3)
        .seen(outcomes)
        .explore([executions]);
}

/// The version of the first move must differ from that of the second.
#[test]
fn two_relocations_there_and_back_are_never_missed() {
    moves_there_and_back::<2>(0, key(7, 0, 1), 858, &["repeated"]);
    moves_there_and_back::<2>(0, key(7, 1, 0), 1597, &["repeated"]);
}

/// A lookup that has missed its key twice tries a third time.
#[test]
fn three_relocations_are_never_missed() {
    moves_there_and_back::<3>(1, key(7, 1, 0), 7908, &["repeated", "repeated twice"]);
}

/// The last hop moves a key out of a full pair and stores the new key in its slot: neither key is missed.
#[test]
fn last_hop_is_never_missed() {
    let plan = plan(16, 4, 0);
    let (moved, new) = (key_in(&plan, 0, 0, 1), key_in(&plan, 0, 0, 3));
    for (looked_up, executions) in [(moved.turned(), 498), (moved, 219)] {
        let world = move || World::new(16, 4, 0).with(moved).full(0, 3, 20).full(3, 4, 30);
        race("the key that made room was missed", world, &[moved, new], 7)
            .thread([finds(looked_up)])
            .thread([path([moved], new, Put::COPY), finds(new)])
            .seen(outcomes(looked_up, moved))
            .explore([executions]);
    }
}

/// H6: a slot that shares a word with its neighbour, and straddles into the next, is written while the neighbour stays.
#[test]
fn neighbours_in_the_same_words_stay_found() {
    // Slot 1 of bucket 1 straddles two words, and both of its parts have bits set.
    let plan = plan(12, 4, 2);
    let [before, between, after] = [1, 0, 2].map(|number| key_in(&plan, number, 1, 0));
    for looked_up in [before, after] {
        // Bucket 0 is full, so that all keys go to bucket 1.
        let world = move || World::new(12, 4, 2).full(0, 4, 20).with(before).with(between).with(after).without(between);
        race("a neighbour that stayed where it is was missed", world, &[before, between, after], 4)
            .thread([finds(looked_up)])
            .thread([insert(between), remove(between)])
            .explore([1767]);
    }
}
