//! Time in the slots of tables that split: ticks beside splits, on slots of 16 bits with tags of 2 (4 epochs come round).
//!
//! A thread that splits has not read the cell before: that would blind the models.

use super::harness::{Model, in_both_orders, run_three, run_two};
use crate::batch::lookup_batch;
use crate::layout::{Mixed, Plan};
use crate::raw::{Growing, IfPresent, Put, RawFilter, Tagging};
use crate::sys::memory::HugePages;
use std::sync::Arc;

/// The longest life of tags of 2 bits.
const MOST: u32 = 3;

/// A filter of one table of two buckets, which splits once, with a key that goes to the new table.
struct World {
    raw: RawFilter<Tagging>,
}

impl World {
    /// Of the key so many ticks are left.
    fn holding(value: u32) -> (Arc<Self>, Mixed) {
        World::of(2, 0, value)
    }

    /// The same with tags of this many bits, some of them a count.
    fn of(tag_bits: u32, count_bits: u32, value: u32) -> (Arc<Self>, Mixed) {
        let plan = Plan { reserve_bits: 1, count_bits, ..Plan::one_shard(16, 2, 4).with_tags(tag_bits) };
        World::of_plan(&plan, value)
    }

    /// Of a table that is refilled into one of four buckets, and then splits.
    fn refilling(value: u32) -> (Arc<Self>, Mixed) {
        let plan = Plan { reserve_bits: 2, extension_bits: 1, ..Plan::one_shard(16, 4, 4).with_tags(2) };
        World::of_plan(&plan, value)
    }

    fn of_plan(plan: &Plan, value: u32) -> (Arc<Self>, Mixed) {
        let world = World { raw: RawFilter::new(plan, HugePages::Unadvised).expect("memory") };
        let mut keys = (0..1000).map(Mixed::of);
        let goes = keys.find(|&mixed| {
            let aim = world.growing().aim(mixed);
            aim.cell == 1 && aim.class.first.get() == plan.extension_bits
        });
        let key = goes.expect("a key");
        assert_eq!(world.put(key, value, IfPresent::Another), 0);
        (Arc::new(world), key)
    }

    fn growing(&self) -> &Growing<Tagging> {
        self.raw.growing().expect("it grows")
    }

    /// Returns what the class had.
    fn put(&self, key: Mixed, value: u32, if_present: IfPresent) -> u32 {
        self.growing().insert_into_pair(key, Put { value, if_present }).expect("there is room")
    }

    /// The same class, looked for from the other bucket.
    fn turned(&self, key: Mixed) -> Mixed {
        let class = self.growing().aim(key).class;
        let mut keys = (0..1 << 24).map(Mixed::of);
        keys.find(|&mixed| self.growing().aim(mixed).class == class.turned()).expect("a key")
    }

    /// As a batch of one key.
    fn contains_in_batch(&self, key: Mixed) -> bool {
        let mut found = [false];
        lookup_batch(&self.raw, &[key], |&mixed| mixed, &mut found);
        found[0]
    }

    fn contains(&self, key: Mixed) -> bool {
        self.raw.contains(key)
    }

    fn split(&self) {
        self.growing().split_table(0, 0);
    }

    fn tick(&self) {
        self.raw.advance();
    }

    /// Once all threads have ended.
    fn assert_holds(&self, key: Mixed, values: &[u32], tables: usize) {
        assert_eq!(self.raw.values(key).as_slice(), values, "each copy has its time");
        assert_eq!(self.raw.contains(key), !values.is_empty(), "a lookup agrees with the values");
        assert_eq!((self.raw.len(), self.growing().tables()), (values.len(), tables));
    }
}

/// A lookup by each of its candidates first, beside a split and what another thread does; the class is never absent.
fn never_missed(
    executions: [usize; 2],
    look: fn(&World, Mixed) -> bool,
    value: u32,
    work: fn(&World, Mixed),
    left: u32,
) {
    never_missed_in(World::holding, 2, executions, look, value, work, left);
}

/// The same in such a filter, of so many tables afterwards.
fn never_missed_in(
    world: fn(u32) -> (Arc<World>, Mixed),
    tables: usize,
    executions: [usize; 2],
    look: fn(&World, Mixed) -> bool,
    value: u32,
    work: fn(&World, Mixed),
    left: u32,
) {
    for (turned, executions) in [false, true].into_iter().zip(executions) {
        Model { executions, preemptions: Some(2), outcomes: &["found", "repeated"] }.explore(move |seen| {
            let (world, key) = world(value);
            let asked = if turned { world.turned(key) } else { key };
            let seen = seen.clone();
            run_three(
                &world,
                move |looks| {
                    assert!(look(looks, asked), "a key that lives was missed during a split");
                    seen.note("found");
                },
                |splits| splits.split(),
                move |ticks| work(ticks, key),
            );
            world.assert_holds(key, &[left], tables);
        });
    }
}

/// Slots of the new table are as wide as those of the old one, for a tag lies in one word: it stores what the buckets say, too.
#[test]
fn renewed_during_a_refill_and_a_tick_is_never_missed() {
    let renew_and_tick = |world: &World, key: Mixed| {
        world.put(key, MOST, IfPresent::Raise);
        world.tick();
    };
    never_missed_in(World::refilling, 1, [2870, 2870], World::contains, 1, renew_and_tick, MOST - 1);
    never_missed_in(World::refilling, 1, [28_596, 28_596], World::contains_in_batch, 1, renew_and_tick, MOST - 1);
}

/// The copy that is swept may be the one in the new table or the one in the old table.
#[test]
fn lookup_during_a_split_and_a_tick_finds_its_key() {
    never_missed([1496, 1496], World::contains, 2, |world, _| world.tick(), 1);
}

/// After a tick a copy that is renewed for the longest time has the tag that was dead before it, in whichever table it is. A split
/// that had read the epoch before its locks would drop it.
fn renewed_during_a_split_and_a_tick(executions: [usize; 2], look: fn(&World, Mixed) -> bool) {
    let renew = |world: &World, key: Mixed| {
        world.tick();
        assert_eq!(world.raw.update(key, None, |had| had.max(MOST)), 1);
    };
    never_missed(executions, look, 2, renew, MOST);
}

#[test]
fn renewed_during_a_split_and_a_tick_is_never_missed() {
    renewed_during_a_split_and_a_tick([3265, 3265], World::contains);
}

#[test]
fn renewed_during_a_split_and_a_tick_is_never_missed_by_a_batch() {
    renewed_during_a_split_and_a_tick([12_217, 12_217], World::contains_in_batch);
}

/// One copy dies and is swept in either table; another of the class was stored before that, where the lookup may have read already.
#[test]
fn stored_again_during_a_split_is_never_missed() {
    let store_and_die = |world: &World, key| {
        assert_eq!(world.put(key, MOST, IfPresent::Another), 0);
        world.tick();
        // Here it is swept.
        world.tick();
    };
    never_missed([12_668, 18_123], World::contains, 1, store_and_die, MOST - 2);
}

/// A key that expires is swept from the new table as well: a sweep follows the list of tables until it finds no next one.
fn nothing_dead_is_left(world: fn(u32) -> (Arc<World>, Mixed), executions: [usize; 2]) {
    in_both_orders(executions, &["0", "1", "2"], move |seen, swapped| {
        let (world, key) = world(1);
        let split = |world: &Arc<World>| {
            world.split();
            world.raw.epoch()
        };
        let (epoch, ()) = run_two(&world, swapped, split, |ticks| (0..2).for_each(|_| ticks.tick()));
        seen.note(epoch.to_string());
        for _ in 0..4 {
            assert!(!world.raw.contains(key), "a dead key lives again");
            world.tick();
        }
        assert_eq!(world.raw.len(), 0);
    });
}

#[test]
fn tick_during_a_split_leaves_nothing_dead() {
    nothing_dead_is_left(World::holding, [339, 963]);
}

#[test]
fn tick_during_a_refill_leaves_nothing_dead() {
    nothing_dead_is_left(World::refilling, [339, 963]);
}

/// A change of the tag, told by what it finds: in the table where the class is when its locks are held.
fn changed_during_a_split(executions: [usize; 2], change: fn(&World, Mixed) -> u32, left: &'static [u32]) {
    in_both_orders(executions, &["1"], move |seen, swapped| {
        let (world, key) = World::holding(1);
        let (had, ()) = run_two(&world, swapped, move |changes| change(changes, key), |splits| splits.split());
        seen.note(had.to_string());
        world.assert_holds(key, left, 2);
    });
}

#[test]
fn renewal_during_a_split_is_kept() {
    changed_during_a_split([30, 30], |world, key| world.raw.update(key, None, |had| had.max(MOST)), &[MOST]);
}

#[test]
fn addition_during_a_split_is_kept() {
    changed_during_a_split([30, 30], |world, key| world.put(key, 1, IfPresent::Add { renews: false }), &[2]);
}

#[test]
fn replacement_during_a_split_is_kept() {
    changed_during_a_split([30, 30], |world, key| world.raw.update(key, Some(1), |_| 2), &[2]);
}

#[test]
fn removal_of_a_value_during_a_split_removes() {
    changed_during_a_split([60, 60], |world, key| world.raw.remove_value(key, Some(1)), &[]);
}

/// The value that an addition found, beside a split and a tick.
fn added_during_a_split_and_a_tick(world: &Arc<World>, key: Mixed) -> u32 {
    let (had, (), ()) = run_three(
        world,
        move |adds| adds.put(key, MOST << 2, IfPresent::Add { renews: false }),
        |splits| splits.split(),
        |ticks| ticks.tick(),
    );
    had
}

/// The window that has 2 ticks left when a table is split and a tick is made: it ends with the next one, and has counted all.
#[test]
fn addition_within_a_window_during_a_split_and_a_tick_is_kept() {
    Model { executions: 1088, preemptions: Some(2), outcomes: &["1000", "100"] }.explore(|seen| {
        let (world, key) = World::of(4, 2, 2 << 2);
        let had = added_during_a_split_and_a_tick(&world, key);
        seen.note(format!("{had:b}"));
        world.assert_holds(key, &[1 << 2 | 1], 2);
    });
}

/// The window ends with the tick: the addition is counted there, or begins the next one, in the table where the class is.
#[test]
fn addition_beside_the_end_of_its_window_during_a_split() {
    Model { executions: 1083, preemptions: Some(2), outcomes: &["101", "0"] }.explore(|seen| {
        let (world, key) = World::of(4, 2, 1 << 2 | 1);
        let had = added_during_a_split_and_a_tick(&world, key);
        seen.note(format!("{had:b}"));
        let left = world.raw.values(key);
        let expected: &[u32] = if had == 0 { &[MOST << 2] } else { &[] };
        assert_eq!(left.as_slice(), expected, "an addition counts in the window that ends or begins the next");
    });
}

/// Beside a split and additions.
#[test]
fn successive_counts_never_fall_during_a_split() {
    Model { executions: 4110, preemptions: Some(2), outcomes: &["1 then 1", "1 then 2", "2 then 2", "repeated"] }
        .explore(|seen| {
            let (world, key) = World::of(4, 2, 2 << 2);
            let seen = seen.clone();
            run_three(
                &world,
                move |looks| {
                    let count = || looks.raw.values(key).iter().map(|value| (value & 3) + 1).max().unwrap_or(0);
                    let counts = [count(), count()];
                    assert!(counts[0] > 0 && counts[0] <= counts[1], "a count fell: {counts:?}");
                    seen.note(format!("{} then {}", counts[0], counts[1]));
                },
                |splits| splits.split(),
                move |adds| _ = adds.put(key, MOST << 2, IfPresent::Add { renews: false }),
            );
            world.assert_holds(key, &[2 << 2 | 1], 2);
        });
}
