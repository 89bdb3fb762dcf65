//! Counts within a window: additions, subtractions and lookups of counts beside ticks, relocations and each other, on slots of 16
//! bits with 2 of a time (4 epochs come round) and 2 of a count.

use super::harness::{Model, hop, in_both_orders, plan, run_three, run_two};
use super::tagged::World;
use crate::layout::{Class, Plan};
use crate::raw::{Fixed, IfPresent};
use std::sync::Arc;

/// The longest life.
const MOST: u32 = 3;

const ADD: IfPresent = IfPresent::Add { renews: false };

/// The value of a count with so many epochs left.
fn value(epochs: u32, count: u32) -> u32 {
    epochs << 2 | (count - 1)
}

/// Of a class with this value, in bucket 0: there the lower empty slot decides.
fn holding(value: u32) -> (Arc<World>, Class) {
    let world = World::new(&Plan { count_bits: 2, ..plan(16, 2, 0).with_tags(4) });
    let class = world.key(0, 0, 1);
    world.store(class, value);
    (world, class)
}

fn add(world: &World, class: Class) -> u32 {
    world.put(class, value(MOST, 1), ADD).expect("there is room")
}

/// The counts that a reader sees, of which there is this one at the most.
fn counts(world: &World, class: Class, only: u32, otherwise: &str) -> String {
    let counts: Vec<u32> = world.values(class).iter().map(|value| (value & 3) + 1).collect();
    assert!(counts.is_empty() || counts == [only], "{otherwise}: {counts:?}");
    format!("{counts:?}")
}

/// Counts in the window that ends, or in the next one; by an epoch of before its locks, it would take the next window for dead.
#[test]
fn added_beside_the_tick_that_ends_the_window() {
    in_both_orders([63, 144], &["before", "first", "second"], |seen, swapped| {
        let (world, class) = holding(value(1, 2));
        let (had, next) = run_two(
            &world,
            swapped,
            move |one| add(one, class),
            move |other| {
                other.advance();
                add(other, class)
            },
        );
        let (outcome, count) = match (had, next) {
            (had, 0) if had == value(1, 2) => ("before", 1),
            (0, had) if had == value(MOST, 1) => ("first", 2),
            (had, 0) if had == value(MOST, 1) => ("second", 2),
            _ => panic!("an addition is lost: {had:b} and {next:b} were there"),
        };
        seen.note(outcome);
        assert_eq!(world.values(class), [value(MOST, count)], "an addition is lost");
    });
}

/// The window that ends leaves no room below the limit, and the next one leaves room for one of two.
#[test]
fn a_limit_holds_beside_the_tick_that_ends_the_window() {
    in_both_orders([54, 126], &["first", "second"], |seen, swapped| {
        let (world, class) = holding(value(1, 1));
        let try_add = move |world: &World, class| {
            let had = world.put(class, value(MOST, 1), IfPresent::AddUpTo { renews: true, most: 0 });
            had == Some(0)
        };
        let (one, other) = run_two(
            &world,
            swapped,
            move |one| try_add(one, class),
            move |other| {
                other.advance();
                try_add(other, class)
            },
        );
        seen.one_winner(["first", "second"], (one, other), "one addition is within the limit of the next window");
        assert_eq!(world.values(class), [value(MOST, 1)], "the limit of a window is 1");
    });
}

/// No addition is lost during a relocation, whichever copy it finds, and a subtraction takes one.
#[test]
fn added_and_subtracted_beside_a_relocation() {
    Model { executions: 1714, preemptions: Some(3), outcomes: &["1", "2"] }.explore(|seen| {
        let (world, class) = holding(value(2, 2));
        let (had, left, ()) = run_three(
            &world,
            move |adds| adds.put(class, value(MOST, 1), IfPresent::Add { renews: true }),
            move |subtracts| {
                let tags = subtracts.raw.tags();
                let Ok(had) = subtracts.shard().update(Fixed, class.turned(), None, |had| tags.less_one(had));
                tags.count(tags.less_one(had))
            },
            move |moves| assert!(moves.shard().hop(hop(class))),
        );
        assert!([Some(value(2, 2)), Some(value(2, 1))].contains(&had), "what was there was added to");
        seen.note(left.to_string());
        assert_eq!(world.values(class), [value(MOST, 2)], "each addition and each subtraction counts");
    });
}

/// Beside additions and a relocation.
#[test]
fn successive_counts_never_fall() {
    in_both_orders([33_792, 23_790], &["1 then 1", "1 then 2", "2 then 2", "repeated"], |seen, swapped| {
        let (world, class) = holding(value(2, 1));
        let seen = seen.clone();
        run_two(
            &world,
            swapped,
            move |looks| {
                let count = || looks.values(class.turned()).iter().map(|value| (value & 3) + 1).max().unwrap_or(0);
                let counts = [count(), count()];
                assert!(counts[0] > 0 && counts[0] <= counts[1], "a count fell: {counts:?}");
                seen.note(format!("{} then {}", counts[0], counts[1]));
            },
            move |writes| {
                assert_eq!(add(writes, class), value(2, 1));
                assert!(writes.shard().hop(hop(class)));
            },
        );
    });
}

/// A slot changes hands between two loads of it: time and count are of one load.
#[test]
fn a_count_is_of_the_key_that_was_alive() {
    in_both_orders([21, 42], &["[]", "[2]"], |seen, swapped| {
        let (world, class) = holding(value(2, 2));
        let other = world.key(1, 0, 1);
        let seen = seen.clone();
        run_two(
            &world,
            swapped,
            move |looks| seen.note(counts(looks, class, 2, "the count of another key")),
            move |writes| {
                assert_eq!(writes.shard().remove(Fixed, class, None), Ok(value(2, 2)));
                writes.store(other, value(MOST, 4));
            },
        );
    });
}

/// The next window of a key begins in the slot of the last one: by one store, so that no reader sees the old count within it.
#[test]
fn a_window_that_begins_anew_begins_at_one() {
    in_both_orders([12, 15], &["[]", "[1]"], |seen, swapped| {
        let (world, class) = holding(value(1, 3));
        world.advance();
        let seen = seen.clone();
        run_two(
            &world,
            swapped,
            move |looks| seen.note(counts(looks, class, 1, "the count of a window that has ended")),
            move |writes| assert_eq!(add(writes, class), 0),
        );
    });
}
