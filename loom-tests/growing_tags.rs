//! Expiring keys in tables that split: ticks concurrent with splits, on 16-bit slots with tags of 2 bits (a cycle of 4 epochs).
//!
//! A thread that splits has not read the cell before, which would hide interleavings from loom.

use super::growth::{self, split};
use super::harness::{Op, Race, op};
use super::tagged::MOST;
use crate::layout::Plan;
use crate::raw::{IfPresent, Put, Tagging};
use std::sync::Arc;

/// A filter that begins with one table of two buckets, splits once, and holds a key that moves to the new table.
type World = growth::World<Tagging>;

impl World {
    /// The key has this number of ticks left.
    fn holding(value: u32) -> Self {
        World::with_tags(2, 0, value)
    }

    /// The same with tags of this many bits, some of them a count.
    fn with_tags(tag_bits: u32, count_bits: u32, value: u32) -> Self {
        let plan = Plan { reserve_bits: 1, count_bits, ..Plan::one_shard(16, 2, 4).with_tags(tag_bits) };
        World::of(&plan).key(1, 0).with(value)
    }

    /// A filter whose table is refilled into one of four buckets, which is then split.
    fn refilling(value: u32) -> Self {
        let plan = Plan { reserve_bits: 2, extension_bits: 1, ..Plan::one_shard(16, 4, 4).with_tags(2) };
        World::of(&plan).key(1, 0).with(value)
    }

    fn with(self, value: u32) -> Self {
        assert_eq!(self.put(value, IfPresent::Another), 0);
        self
    }

    /// The same world, in which lookups of the key read its other bucket first.
    fn from_the_other_side(mut self) -> Self {
        self.keys = vec![self.turned(self.keys[0])];
        self
    }

    fn put(&self, value: u32, if_present: IfPresent) -> u32 {
        self.growing().insert_into_pair(self.keys[0], Put { value, if_present }).expect("there is room")
    }

    /// The value of each copy and the number of tables, once all threads have ended.
    fn left(&self) -> Vec<usize> {
        assert_eq!(self.raw.len(), self.raw.values(self.keys[0]).len(), "slots in use are counted");
        self.left_alive()
    }

    /// The same where slots may hold dead copies.
    fn left_alive(&self) -> Vec<usize> {
        let values = self.raw.values(self.keys[0]);
        assert_eq!(FINDS(self), !values.is_empty(), "a lookup agrees with the values");
        values.iter().map(|&value| value as usize).chain([self.growing().tables()]).collect()
    }
}

type Look = fn(&World) -> bool;

const FINDS: Look = |world| world.contains(world.keys[0]);
const FINDS_IN_BATCH: Look = |world| world.contains_in_batch(world.keys[0]);

fn race(rule: &'static str, world: impl Fn() -> World + Send + Sync + 'static) -> Race<World> {
    Race::new(rule, move || Arc::new(world()), World::left)
}

fn tick() -> Op<World> {
    op(|world: &World| _ = world.raw.advance())
}

fn put(value: u32, if_present: IfPresent) -> Op<World> {
    op(move |world: &World| world.put(value, if_present) as usize)
}

fn add(value: u32) -> Op<World> {
    put(value, IfPresent::Add { renews: false })
}

fn renew() -> Op<World> {
    op(|world: &World| world.raw.update(world.keys[0], None, |had| had.max(MOST)) as usize)
}

/// Lookups that read either bucket first, concurrent with a split and the steps of a third thread. The class is present
/// throughout.
fn never_missed(executions: [usize; 2], look: Look, world: fn() -> World, steps: impl Fn() -> Vec<Op<World>>) {
    for (turned, executions) in [false, true].into_iter().zip(executions) {
        let world = move || if turned { world().from_the_other_side() } else { world() };
        race("a key that lives was missed during a split", world)
            .threads(op(look), split(0, 0))
            .thread(steps())
            .at_most(2)
            .seen(&["repeated"])
            .explore([executions]);
    }
}

/// With tags, which must lie in one word, the slots of the new table are as wide as those of the old one, so they also store the
/// bits that the bucket implies.
#[test]
fn renewed_during_a_refill_and_a_tick_is_never_missed() {
    let (world, renew_and_tick) = (|| World::refilling(1), || vec![put(MOST, IfPresent::Raise), tick()]);
    never_missed([2870, 2870], FINDS, world, renew_and_tick);
    never_missed([67_217, 67_217], FINDS_IN_BATCH, world, renew_and_tick);
}

models! {
    /// A tick may sweep the copy in the new table or the one in the old table.
    lookup_during_a_split_and_a_tick_finds_its_key =>
        never_missed([1496, 1496], FINDS, || World::holding(2), || vec![tick()]);
    /// A copy that is renewed for the longest time after a tick has the tag that was dead before the tick, in whichever table it
    /// is. A split that had read the epoch before it locked the table would drop that copy.
    renewed_during_a_split_and_a_tick_is_never_missed =>
        never_missed([3265, 3265], FINDS, || World::holding(2), || vec![tick(), renew()]);
    renewed_during_a_split_and_a_tick_is_never_missed_by_a_batch =>
        never_missed([23_470, 23_470], FINDS_IN_BATCH, || World::holding(2), || vec![tick(), renew()]);
}

/// One copy dies at the second tick, and is swept in either table. Another copy of the class is stored before that, in the bucket
/// that the lookup may already have read.
#[test]
fn stored_again_during_a_split_is_never_missed() {
    let store_and_die = || vec![put(MOST, IfPresent::Another), tick(), tick()];
    never_missed([12_668, 18_123], FINDS, || World::holding(1), store_and_die);
}

/// An expired key is swept from the new table, too: a sweep follows the list of tables to its end.
fn nothing_dead_is_left(world: fn() -> World, executions: [usize; 2]) {
    let left = |world: &World| {
        for _ in 0..4 {
            assert!(!FINDS(world), "a dead key lives again");
            world.raw.advance();
        }
        vec![world.raw.len()]
    };
    Race::new("a dead key lives again", move || Arc::new(world()), left)
        .thread([split(0, 0), op(|world: &World| world.raw.epoch() as usize)])
        .thread([tick(), tick()])
        .explore(executions);
}

models! {
    tick_during_a_split_leaves_nothing_dead => nothing_dead_is_left(|| World::holding(1), [339, 963]);
    tick_during_a_refill_leaves_nothing_dead => nothing_dead_is_left(|| World::refilling(1), [339, 963]);
}

/// A change of the tag happens in the table that holds the class at the moment when its locks are taken.
fn changed_during_a_split(executions: usize, change: Op<World>) {
    race("each copy has its time", || World::holding(1))
        .thread([change])
        .thread([split(0, 0)])
        .explore([executions; 2]);
}

models! {
    renewal_during_a_split_is_kept => changed_during_a_split(30, renew());
    addition_during_a_split_is_kept => changed_during_a_split(30, add(1));
    replacement_during_a_split_is_kept =>
        changed_during_a_split(30, op(|world: &World| world.raw.update(world.keys[0], Some(1), |_| 2) as usize));
    removal_of_a_value_during_a_split_removes =>
        changed_during_a_split(60, op(|world: &World| world.raw.remove_value(world.keys[0], Some(1)) as usize));
}

/// An addition within a window of this value, concurrent with a split and a tick.
fn added_during_a_split_and_a_tick(rule: &'static str, executions: usize, value: u32) {
    Race::new(rule, move || Arc::new(World::with_tags(4, 2, value)), World::left_alive)
        .threads(add(MOST << 2), split(0, 0))
        .thread([tick()])
        .at_most(2)
        .explore([executions]);
}

models! {
    /// The window has 2 ticks left, so it outlives the tick and ends with the next one. The addition counts in it.
    addition_within_a_window_during_a_split_and_a_tick_is_kept =>
        added_during_a_split_and_a_tick("each copy has its time", 1088, 2 << 2);
    /// The window ends with the tick: the addition counts in it, or begins the next window, in the table that holds the class.
    addition_beside_the_end_of_its_window_during_a_split =>
        added_during_a_split_and_a_tick("an addition counts in the window that ends or in the next", 1083, 1 << 2 | 1);
}

/// Two reads of a count, concurrent with a split and an addition.
#[test]
fn successive_counts_never_fall_during_a_split() {
    let count = || {
        let count = |value: &u32| (value & 3) as usize + 1;
        op(move |world: &World| world.raw.values(world.keys[0]).iter().map(count).max().unwrap_or(0))
    };
    race("a count fell", || World::with_tags(4, 2, 2 << 2))
        .thread([count(), count()])
        .thread([split(0, 0)])
        .thread([add(MOST << 2)])
        .at_most(2)
        .seen(&["repeated"])
        .explore([4110]);
}
