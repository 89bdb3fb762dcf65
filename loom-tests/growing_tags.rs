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
        let plan = Plan { reserve_bits: 1, ..Plan::one_shard(16, 2, 4).with_tags(2) };
        let world = World { raw: RawFilter::new(&plan, HugePages::Unadvised).expect("memory") };
        let mut keys = (0..1000).map(Mixed::of);
        let goes = keys.find(|&mixed| {
            let aim = world.growing().aim(mixed);
            aim.cell == 1 && aim.class.first.get() == 0
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
    for (turned, executions) in [false, true].into_iter().zip(executions) {
        Model { executions, preemptions: Some(2), outcomes: &["found", "repeated"] }.explore(move |seen| {
            let (world, key) = World::holding(value);
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
            world.assert_holds(key, &[left], 2);
        });
    }
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
        assert_eq!(world.raw.raise(key, MOST), 1);
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

/// What dies in the table that is split dies in the new one: a pass reads the list to an end that is there when it comes to it.
#[test]
fn tick_during_a_split_leaves_nothing_dead() {
    in_both_orders([339, 963], &["0", "1", "2"], |seen, swapped| {
        let (world, key) = World::holding(1);
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
    changed_during_a_split([30, 30], |world, key| world.raw.raise(key, MOST), &[MOST]);
}

#[test]
fn addition_during_a_split_is_kept() {
    changed_during_a_split([30, 30], |world, key| world.put(key, 1, IfPresent::Add), &[2]);
}

#[test]
fn replacement_during_a_split_is_kept() {
    changed_during_a_split([30, 30], |world, key| u32::from(world.raw.replace(key, 1, 2)), &[2]);
}

#[test]
fn removal_of_a_value_during_a_split_removes() {
    changed_during_a_split([60, 60], |world, key| world.raw.remove_value(key, Some(1)), &[]);
}
