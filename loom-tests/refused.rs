//! H14: refusals without the locks of a whole shard. A search is data here, in vain in a table that was full.

use super::harness::*;
use crate::layout::{Class, Mixed, Plan, Search};
use crate::raw::{Bare, Fixed, Put, RawFilter};
use crate::sys::memory::HugePages;
use std::sync::Arc;

/// Key number `number` of those that lie in these buckets.
fn key(world: &World, number: usize, first: u32, second: u32) -> Class {
    key_in(world.plan(), number, first, second)
}

/// Four full buckets. From the pair of a new key, 0 and 1, ways lead to 3 and, read later, to 2. Also the new key, and the search for room
/// for it.
fn full(stripe_shift: u32) -> (Arc<World>, Class, Box<Search>) {
    let world = World::new(16, 4, stripe_shift);
    for (first, second, keys) in [(0, 3, 1), (0, 1, 3), (1, 2, 1), (1, 0, 3), (2, 3, 4), (3, 2, 4)] {
        (0..keys).for_each(|number| world.put(key(&world, number, first, second)));
    }
    let new = key(&world, 7, 0, 1);
    let search = on_a_large_stack(&world, move |world| world.shard().searched(new));
    (world, new, search)
}

/// A search is larger than the stack of the main thread of a model.
fn on_a_large_stack<W: Clone + Send + 'static, R: Send + 'static>(
    world: &W,
    work: impl FnOnce(&W) -> R + Send + 'static,
) -> R {
    let world = world.clone();
    join(spawn(move || work(&world)))
}

fn is_refused(world: &World, new: Class, search: &Search) -> bool {
    let Ok(refused) = world.shard().was_full(Fixed, search, new, Put::COPY, ());
    refused
}

/// There is a hole in bucket 2, and then in bucket 3: the work fills the one with the copy of a class that is in the other, so that each
/// bucket, when it is full, holds what it held.
fn is_never_refused(executions: [[usize; 2]; 2], work: fn(&World, Class)) {
    for (stripe_shift, executions) in executions.into_iter().enumerate() {
        in_both_orders(executions, &["not refused"], move |seen, swapped| {
            let (world, new, search) = full(stripe_shift as u32);
            // With a copy of it in bucket 3.
            let class = key(&world, 3, 2, 3);
            assert!(world.remove(class));
            let refuse = move |world: &Arc<World>| is_refused(world, new, &search);
            let (refused, ()) = run_two(&world, swapped, refuse, move |writer| work(writer, class.turned()));
            assert!(!refused, "a key was refused while there was room at every moment");
            seen.note("not refused");
        });
    }
}

#[test]
fn refused_beside_a_hole_that_moves() {
    is_never_refused([[2073, 1047], [1035, 525]], |writer, class| assert!(writer.hop(hop(class))));
}

/// In one stripe, the number of slots is then what it was.
#[test]
fn refused_beside_a_removal_and_an_insertion() {
    is_never_refused([[576, 312], [288, 162]], |writer, class| {
        assert!(writer.remove(class));
        assert!(writer.insert_into_first(class.turned()));
    });
}

/// A key is refused if there was no room at one moment, and not after a removal.
#[test]
fn refused_beside_a_removal() {
    in_both_orders([16266, 3030], &["refused", "not refused"], |seen, swapped| {
        let (world, new, search) = full(1);
        let again = on_a_large_stack(&world, move |world| world.shard().searched(new));
        let there = key(&world, 0, 3, 2);
        let refuse = move |world: &Arc<World>| is_refused(world, new, &search);
        let remove = move |writer: &Arc<World>| {
            assert!(writer.remove(there));
            assert!(!is_refused(writer, new, &again), "a key was refused after a removal");
        };
        let (refused, ()) = run_two(&world, swapped, refuse, remove);
        seen.note(if refused { "refused" } else { "not refused" });
    });
}

/// A table that may be split does not refuse, and after its last split there is room.
#[test]
fn refused_during_the_last_split() {
    in_both_orders([3, 9], &["not refused"], |seen, swapped| {
        let plan = Plan { reserve_bits: 1, ..Plan::one_shard(16, 2, 4) };
        let raw = Arc::new(RawFilter::<Bare>::new(&plan, HugePages::Unadvised).expect("memory"));
        let growing = raw.growing().expect("it grows");
        let in_cell = |cell| (0..).map(Mixed::of).filter(move |&key| growing.aim(key).cell == cell);
        let keys: Vec<_> = in_cell(0).take(5).chain(in_cell(1).take(4)).collect();
        let new = keys[0];
        let search = on_a_large_stack(&raw, move |raw| {
            let growing = raw.growing().expect("it grows");
            keys[1..].iter().for_each(|&key| growing.insert_alone(key));
            growing.searched(new)
        });
        let (refused, ()) = run_two(
            &raw,
            swapped,
            move |raw| raw.growing().and_then(|growing| growing.was_full(new, &search)),
            |raw| assert!(raw.growing().is_some_and(|growing| growing.split_table(0, 0))),
        );
        assert_ne!(refused, Some(true), "a key was refused by a table that was split");
        seen.note("not refused");
    });
}
