//! Counts within a window: additions, subtractions and reads of counts, concurrent with ticks, relocations and each other, on
//! 16-bit slots with 2 bits for the time (a cycle of 4 epochs) and 2 bits for the count.

use super::harness::{Op, key_in, moves, op, plan};
use super::tagged::{MOST, World, adds, race, tick};
use crate::layout::{Class, Plan};
use crate::raw::{Fixed, IfPresent};
use std::sync::Arc;

/// The value of a count with this number of epochs left.
const fn value(epochs: u32, count: u32) -> u32 {
    epochs << 2 | (count - 1)
}

fn in_windows() -> Plan {
    Plan { count_bits: 2, ..plan(16, 2, 0).with_tags(4) }
}

fn class() -> Class {
    key_in(&in_windows(), 0, 0, 1)
}

/// A world with one copy of the class, in bucket 0, since an insertion takes the lower empty slot.
fn holding(value: u32) -> Arc<World> {
    World::of(&in_windows()).with(class(), value)
}

fn add() -> Op<World> {
    adds(class(), value(MOST, 1), false)
}

/// The count that a reader sees: 0 without a copy, 9 with more than one.
fn counts() -> Op<World> {
    op(|world: &World| match world.values(class())[..] {
        [] => 0,
        [value] => (value & 3) as usize + 1,
        _ => 9,
    })
}

fn count_of_any(class: Class) -> Op<World> {
    op(move |world: &World| world.values(class).iter().map(|value| (value & 3) as usize + 1).max().unwrap_or(0))
}

/// Each addition counts in the window that ends or in the next one. By the epoch from before it took its locks, a writer would
/// take the next window for dead.
#[test]
fn added_beside_the_tick_that_ends_the_window() {
    race("an addition is lost", || holding(value(1, 2)), &[class()])
        .thread([add()])
        .thread([tick(), add()])
        .explore([63, 144]);
}

/// The window that ends is at its limit, and the next one has room for one of two additions.
#[test]
fn a_limit_holds_beside_the_tick_that_ends_the_window() {
    let try_add = || {
        let if_present = IfPresent::AddUpTo { renews: true, most: 0 };
        op(move |world: &World| world.put(class(), value(MOST, 1), if_present) == Some(0))
    };
    race("one addition is within the limit of the next window", || holding(value(1, 1)), &[class()])
        .thread([try_add()])
        .thread([tick(), try_add()])
        .explore([54, 126]);
}

/// During a relocation, no addition is lost, whichever copy it finds, and the subtraction takes one.
#[test]
fn added_and_subtracted_beside_a_relocation() {
    let subtract = |world: &World| {
        let tags = world.raw.tags();
        let Ok(had) = world.shard().update(Fixed, class().turned(), None, |had| tags.less_one(had));
        tags.count(tags.less_one(had)) as usize
    };
    race("each addition and each subtraction counts", || holding(value(2, 2)), &[class()])
        .threads(adds(class(), value(MOST, 1), true), op(subtract))
        .thread([moves(class())])
        .at_most(3)
        .explore([1714]);
}

/// Two reads of a count, concurrent with an addition and a relocation.
#[test]
fn successive_counts_never_fall() {
    race("a count fell", || holding(value(2, 1)), &[class()])
        .thread([count_of_any(class().turned()), count_of_any(class().turned())])
        .thread([add(), moves(class())])
        .seen(&["repeated"])
        .explore([33_792, 23_790]);
}

/// A slot is reused between two loads: the time and the count must come from one load.
#[test]
fn a_count_is_of_the_key_that_was_alive() {
    let other = key_in(&in_windows(), 1, 0, 1);
    let leaves = |world: &World| world.shard().remove(Fixed, class(), None) == Ok(value(2, 2));
    race("the count of another key", || holding(value(2, 2)), &[class(), other])
        .thread([counts()])
        .thread([op(leaves), op(move |world: &World| world.store(other, value(MOST, 4)))])
        .explore([21, 42]);
}

/// The next window of a key begins in the slot of the last one, by one store, so that no reader sees the old count in the new
/// window.
#[test]
fn a_window_that_begins_anew_begins_at_one() {
    race("the count of a window that has ended", || holding(value(1, 3)).later(1), &[class()])
        .threads(counts(), add())
        .explore([12, 15]);
}
