//! H1, H2, H3, H4, H9: a bulk task, which changes a shard several times under all of its locks, concurrent with lookups and single
//! writers. The task searches for its paths under the locks, where it reads as a writer does, which hides no interleavings from
//! loom.

use super::equal_fingerprint::removal_of_a_copy_is_never_missed;
use super::harness::*;
use crate::error::InsertError;
use crate::layout::{Class, Plan, Search, SearchBudget};
use crate::raw::{Fixed, Put};
use std::sync::Arc;

const BUCKETS: u32 = 4;

#[derive(Clone, Copy)]
pub(super) enum Change {
    Insert(Class),
    InsertUnique(Class),
    Remove(Class),
}
use Change::{Insert, InsertUnique, Remove};

/// Changes under all locks, as by a bulk task. The results are the digits of a number in base 3.
pub(super) fn task<const CHANGES: usize>(changes: [Change; CHANGES]) -> Op<World> {
    op(move |world: &World| {
        let (mut search, mut budget) = (Search::new(), SearchBudget::full());
        let exclusive = world.shard().exclusive();
        let mut insert = |key, put| {
            let Ok(result) = exclusive.insert(Fixed, &mut search, &mut budget, key, put);
            match result {
                Ok(had) => Some(had == 0),
                Err(InsertError::Full) => None,
                Err(error) => panic!("there are few copies of {key:?}: {error}"),
            }
        };
        let told = changes.map(|change| match change {
            Insert(key) => insert(key, Put::COPY),
            InsertUnique(key) => insert(key, Put::UNIQUE),
            Remove(key) => Some(exclusive.remove(key, None) != 0),
        });
        told.into_iter().fold(0, |digits, told| 3 * digits + told.told())
    })
}

/// Keys of buckets 0 and 1, 2 and 3, 0 and 3, or 1 and 2, so that a search finds a path.
fn keys(count: usize, first: u32, second: u32) -> Vec<Class> {
    (0..count).map(|number| key_in(&plan(16, BUCKETS, 0), number, first, second)).collect()
}

/// Stores keys of these buckets, from number `from` on, in the first bucket.
fn filled(world: Arc<World>, first: u32, second: u32, slots: usize, from: usize) -> Arc<World> {
    (from..from + slots).fold(world, |world, number| {
        let key = key_in(world.plan(), number, first, second);
        world.with_copies(1, Class { second: key.first, ..key })
    })
}

/// A full pair of buckets, `from` and its neighbour. One of its keys, with `below` slots below it in use, can move to bucket `3 -
/// from`, where as many slots are in use. Keys of the pair from number 7 on are not stored.
#[derive(Clone, Copy)]
pub(super) struct FullPair {
    plan: Plan,
    from: u32,
    below: usize,
}

impl FullPair {
    pub(super) fn new(width: u32, stripe_shift: u32, from: u32, below: usize) -> Self {
        FullPair { plan: plan(width, BUCKETS, stripe_shift), from, below }
    }

    pub(super) fn key(&self, number: usize, first: u32, second: u32) -> Class {
        key_in(&self.plan, number, first, second)
    }

    pub(super) fn absent(&self) -> [Class; 2] {
        [7, 8].map(|number| self.key(number, self.from, self.from ^ 1))
    }

    pub(super) fn moved(&self) -> Class {
        self.key(0, self.from, 3 - self.from)
    }

    pub(super) fn world(&self) -> Arc<World> {
        let &FullPair { from, below, .. } = self;
        let (neighbour, to) = (from ^ 1, 3 - from);
        let world = World::new(self.plan.slot_bits, BUCKETS, self.plan.stripe_shift);
        let world = filled(filled(world, to, from, below, 1), from, neighbour, below, 0).with(self.moved());
        filled(filled(world, from, neighbour, 3 - below, below), neighbour, from, 4, 3)
    }
}

/// The task inserts into a full pair, so that a key must move. With `twice`, it then removes the new key and stores another one.
fn exclusive_moves_are_never_missed(width: u32, stripe_shift: u32, below: usize, twice: bool, executions: [usize; 8]) {
    let pairs = [0, 3].map(|from| FullPair::new(width, stripe_shift, from, below));
    let cases = pairs.into_iter().flat_map(|pair| [(pair, pair.moved().turned()), (pair, pair.moved())]);
    for (number, (pair, looked_up)) in cases.enumerate() {
        let [new, other] = pair.absent();
        let task = if twice { task([Insert(new), Remove(new), Insert(other)]) } else { task([Insert(new)]) };
        let stored = if twice { other } else { new };
        race("a key that a task only moved was missed", move || pair.world(), &[pair.moved(), stored], 7 + below)
            .threads(finds(looked_up), task)
            .seen(outcomes(looked_up, pair.moved()))
            .explore([executions[number], executions[number + 4]]);
    }
}

models! {
    exclusive_moves_are_never_missed_at_16_bits =>
        exclusive_moves_are_never_missed(16, 0, 0, true, [3090, 591, 3090, 591, 4035, 1326, 4035, 1326]);
    /// Slot 2 of bucket 3 straddles two words.
    exclusive_moves_are_never_missed_at_13_bits =>
        exclusive_moves_are_never_missed(13, 4, 2, false, [1473, 402, 8490, 1167, 1923, 792, 10104, 2388]);
    /// Slot 2 of bucket 0 straddles two words.
    exclusive_moves_are_never_missed_at_24_bits =>
        exclusive_moves_are_never_missed(24, 1, 2, false, [8490, 1167, 1473, 402, 10104, 2388, 1923, 792]);
}

/// Both buckets are full, and so is the bucket to which one of their keys can move: a path of two hops, the farther one first.
#[test]
fn exclusive_path_of_two_hops_is_never_missed() {
    let pair = FullPair::new(16, 0, 0, 0);
    let [near, far, new] = [pair.key(0, 0, 3), pair.key(0, 3, 2), pair.key(7, 0, 1)];
    let world = move || {
        let world = filled(World::new(16, BUCKETS, 0).with(near).with(far), 0, 1, 3, 0);
        filled(filled(world, 1, 0, 4, 3), 3, 0, 3, 1)
    };
    for (looked_up, executions) in [(near, [2088, 5226]), (far, [498, 678])] {
        race("a key that a task only moved was missed", world, &[near, far, new], 10)
            .threads(finds(looked_up.turned()), task([Insert(new)]))
            .seen(&["repeated"])
            .explore(executions);
    }
}

/// As in the models of equal_fingerprint, by a task.
#[test]
fn exclusive_removal_of_a_copy_is_never_missed() {
    removal_of_a_copy_is_never_missed(16, 0, [165, 165, 225, 225], |stays| {
        vec![task([Insert(stays.turned()), Remove(stays)])]
    });
}

/// The slot is in the upper bucket, which the single insertion names first: no deadlock.
fn insertion_and_a_task_for_the_last_slot(insert: fn(Class) -> Op<World>, executions: usize) {
    let [one, other] = [keys(9, 1, 0)[7], keys(9, 0, 1)[8]];
    let world = || filled(filled(World::new(16, BUCKETS, 0), 0, 1, 4, 0), 1, 0, 3, 4);
    race("there was one slot", world, &[one, other], 7)
        .threads(insert(one), task([Insert(other)]))
        .explore([executions; 2]);
}

/// Insertions and removals in the same stripes add up. The single insertion names its upper bucket first: no deadlock.
fn changes_of_a_task_and_an_insertion_add_up(insert: fn(Class) -> Op<World>, executions: [usize; 2]) {
    let [old, one, two, other] = keys(4, 3, 2)[..] else { unreachable!("four") };
    race("changes add up", move || World::new(16, BUCKETS, 0).with(old), &[old, one, two, other], 0)
        .threads(insert(other), task([Insert(one), Remove(old), Insert(two)]))
        .explore(executions);
}

models! {
    exclusive_and_single_insert_for_the_last_slot_have_one_winner =>
        insertion_and_a_task_for_the_last_slot(insert, 12);
    one_lock_insertion_and_a_task_for_the_last_slot_have_one_winner =>
        insertion_and_a_task_for_the_last_slot(insert_into_first, 9);
    exclusive_and_single_changes_add_up => changes_of_a_task_and_an_insertion_add_up(insert, [12, 18]);
    one_lock_insertion_and_a_task_add_up => changes_of_a_task_and_an_insertion_add_up(insert_into_first, [15, 15]);
}

/// A single insertion and the task have found the same path to the only hole: either the path is spoiled, or the task is told that
/// the shard is full.
#[test]
fn exclusive_and_a_path_for_one_hole_have_one_winner() {
    let pair = FullPair::new(16, 0, 0, 3);
    let [one, other] = [pair.key(7, 1, 0), pair.key(8, 0, 1)];
    race("there was one hole", move || pair.world(), &[pair.moved(), one, other], 10)
        .threads(path([pair.moved()], one, Put::COPY), task([Insert(other)]))
        .explore([12, 12]);
}

/// A present key is removed, whether the task has moved it yet or not. If it has, there is room for one new key, otherwise for
/// two.
#[test]
fn exclusive_move_against_removal_always_removes() {
    let pair = FullPair::new(16, 0, 0, 3);
    let [new, beyond] = [pair.key(7, 0, 1), pair.key(4, 3, 0)];
    race("a present key was not removed", move || pair.world(), &[pair.moved(), new, beyond], 10)
        .threads(remove(pair.moved().turned()), task([Insert(new), Insert(beyond)]))
        .explore([18, 18]);
}

/// The task inserts the key that another thread inserts uniquely.
#[test]
fn exclusive_against_unique_counts_right() {
    let [class, other] = keys(2, 0, 1)[..] else { unreachable!("two") };
    race("it is there or admitted", || World::new(16, BUCKETS, 0), &[class, other], 0)
        .threads(insert_unique(class), task([Insert(other), Insert(class.turned())]))
        .explore([12, 12]);
}

/// `insert_unique` under all locks, its last resort, concurrent with a unique insertion by a path: the second one sees the key.
#[test]
fn exclusive_unique_against_a_path_admits_one() {
    let pair = FullPair::new(16, 0, 0, 0);
    // Two keys can move, so that there would be room for a second copy.
    let (class, also, instead_of) = (pair.key(7, 0, 1), pair.key(0, 1, 2), pair.key(6, 1, 0));
    let instead_of = Class { second: instead_of.first, ..instead_of };
    let world = move || pair.world().without(instead_of).with(also);
    race("exactly one is admitted", world, &[class, pair.moved(), also], 6)
        .threads(path([pair.moved()], class.turned(), Put::UNIQUE), task([InsertUnique(class)]))
        .never(|told, _| told.iter().all(|told| *told == [1]))
        .explore([15, 15]);
}
