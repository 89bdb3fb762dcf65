//! H14: refusals without the locks of a whole shard. A search is given as data, and was made in vain while the table was full.

use super::exclusive::Change::{Insert, Remove};
use super::exclusive::task;
use super::harness::*;
use crate::layout::{Class, Mixed, Plan, Search};
use crate::raw::{Bare, Fixed, Put, RawFilter};
use crate::sys::memory::HugePages;
use std::sync::Arc;

/// A table of four buckets, and the results of searches in it while it was full.
struct Searched {
    world: Arc<World>,
    searches: Vec<Box<Search>>,
}

/// Key number `number` among those with these two buckets.
fn key(number: usize, first: u32, second: u32) -> Class {
    key_in(&plan(16, 4, 0), number, first, second)
}

/// Its pair is buckets 0 and 1, from which paths lead to bucket 3 and, read later, bucket 2.
fn new() -> Class {
    key(7, 0, 1)
}

/// Four full buckets, in which this number of threads have searched for room for the new key.
fn full(stripe_shift: u32, searches: usize) -> Searched {
    let keys = [(0, 3, 1), (0, 1, 3), (1, 2, 1), (1, 0, 3), (2, 3, 4), (3, 2, 4)];
    let keys = keys.into_iter().flat_map(|(first, second, keys)| (0..keys).map(move |at| key(at, first, second)));
    let world = keys.fold(World::new(16, 4, stripe_shift), |world, key| world.with(key));
    let searches = (0..searches).map(|_| on_a_large_stack(&world, |world| world.shard().searched(new()))).collect();
    Searched { world, searches }
}

/// A search is larger than the stack of the main thread of a model.
fn on_a_large_stack<W: Clone + Send + 'static, R: Send + 'static>(
    world: &W,
    work: impl FnOnce(&W) -> R + Send + 'static,
) -> R {
    let world = world.clone();
    join(spawn(move || work(&world)))
}

fn refuses(search: usize) -> Op<Searched> {
    op(move |Searched { world, searches }: &Searched| {
        let Ok(refused) = world.shard().was_full(Fixed, &searches[search], new(), Put::COPY, ());
        refused == Some(true)
    })
}

fn of(step: Op<World>) -> Op<Searched> {
    op(move |Searched { world, .. }: &Searched| step(world))
}

/// There is a hole in bucket 2, and then in bucket 3: the steps fill one with the copy of a class that was in the other, so that
/// each bucket has its former content whenever it is full.
fn race_for_room<const STEPS: usize>(
    stripe_shift: u32,
    prepare: fn(&World),
    steps: fn(Class) -> [Op<World>; STEPS],
) -> Race<Searched> {
    // One copy of it is in bucket 3.
    let class = key(3, 2, 3);
    let world = move || {
        let full = full(stripe_shift, 1);
        let world = full.world.without(class);
        prepare(&world);
        Arc::new(Searched { world, ..full })
    };
    Race::new("a key was refused while there was room at every moment", world, |_| Vec::new())
        .thread([refuses(0)])
        .thread(steps(class.turned()).map(of))
        .never(|told, _| told[0] == [1])
}

/// The race in one stripe, and in a stripe per bucket.
fn is_never_refused<const STEPS: usize>(
    in_stripes: usize,
    (in_one, bound): ([usize; 2], Option<usize>),
    steps: fn(Class) -> [Op<World>; STEPS],
) {
    // In one stripe first, where the counts do not show the change, so that a fault fails by its rule and not by the number of
    // executions.
    race_for_room(1, |_| {}, steps).at_most(bound).explore_with_watched_locks(in_one);
    race_for_room(0, |_| {}, steps).at_most(3).explore_with_watched_locks([in_stripes]);
}

models! {
    refused_beside_a_hole_that_moves => is_never_refused(16_733, ([25_890, 27_540], None), |class| [moves(class)]);
    /// In one stripe, the number of slots in use is the same afterwards.
    refused_beside_a_removal_and_an_insertion => is_never_refused(9886, ([19_620, 46_434], None), |class| {
        [remove(class), insert_into_first(class.turned())]
    });
    /// Both in one critical section: only the Release of the count orders the removal before a read of the new count.
    refused_beside_both_under_all_locks => is_never_refused(34_681, ([6737; 2], Some(3)), |class| {
        [task([Remove(class), Insert(class.turned())])]
    });
}

/// The correction of the counts after a panic does not restore a former count.
#[test]
fn refused_beside_counts_that_are_mended() {
    const MEND: fn(&World) = |world| world.shard().mend();
    race_for_room(2, MEND, |class| [remove(class), insert_into_first(class.turned()), op(MEND)])
        .at_most(3)
        .explore_with_watched_locks([14_424]);
}

/// A key is refused if there was no room at one moment, but not after a removal.
#[test]
fn refused_beside_a_removal() {
    Race::new("a key was refused after a removal", || Arc::new(full(1, 2)), |_| Vec::new())
        .thread([refuses(0)])
        .thread([of(remove(key(0, 3, 2))), refuses(1)])
        .never(|told, _| told[1] == [1, 1])
        .at_most(3)
        .explore_with_watched_locks([13_141]);
}

/// A table that may still split does not refuse, and after its last split there is room.
#[test]
fn refused_during_the_last_split() {
    type Growing = (Arc<RawFilter<Bare>>, Mixed, Box<Search>);
    let world = || {
        let plan = Plan { reserve_bits: 1, ..Plan::one_shard(16, 2, 4) };
        let raw = Arc::new(RawFilter::<Bare>::new(&plan, HugePages::Unadvised).expect("memory"));
        let growing = raw.growing().expect("it grows");
        let in_cell = |cell| (0..).map(Mixed::of).filter(move |&key| growing.cell_place(key).cell == cell);
        let keys: Vec<_> = in_cell(0).take(5).chain(in_cell(1).take(4)).collect();
        let new = keys[0];
        let search = on_a_large_stack(&raw, move |raw| {
            let growing = raw.growing().expect("it grows");
            keys[1..].iter().for_each(|&key| growing.insert_alone(key));
            growing.searched(new)
        });
        Arc::new((raw, new, search))
    };
    let refuses =
        |(raw, new, search): &Growing| raw.growing().and_then(|growing| growing.was_full(*new, search)) == Some(true);
    let split = |(raw, ..): &Growing| raw.growing().is_some_and(|growing| growing.split_table(0, 0));
    Race::new("a key was refused by a table that was split", world, |_| Vec::new())
        .threads(op(split), op(refuses))
        .never(|told, _| told[1] == [1])
        .explore_with_watched_locks([12, 12]);
}
