//! Ticks while keys are stored, shards are copied and slots are swept. (`testkit::sequence` compares every answer with a model.)

use super::assembly::Assembly;
use super::filter::RawFilter;
use super::owner::Fixed;
use super::pair::{IfPresent, Put};
use super::shard::Shard;
use super::slots::Tagging;
use crate::error::InsertError;
use crate::layout::{Mixed, Plan, Tags};
use crate::sys::memory::HugePages;
use crate::sys::steps::{Step, number_of, with_hook};
use std::cell::Cell;
use std::convert::Infallible;
use std::rc::Rc;

fn copy_shard(filter: &RawFilter<Tagging>, shard: usize, copy: &Assembly<Tagging>) {
    let mut words = vec![0; filter.plan().words as usize];
    let Ok(()) = filter.copy_each(shard..shard + 1, &mut words, |table, words| {
        let fill = |shard: Shard<'_>| {
            shard.fill_with(words.iter().copied(), table.count);
            Ok::<_, Infallible>(())
        };
        assert!(copy.add(&table.extent, table.epoch, fill).is_ok());
        Ok::<_, Infallible>(())
    });
}

/// Operations of filters give a key that is seen the longest life, so they never try to shorten one.
#[test]
fn a_shorter_life_does_not_replace_a_longer_one() {
    let plan = Plan::one_shard(16, 64, 4).with_tags(3);
    let filter = RawFilter::<Tagging>::new(&plan, HugePages::Unadvised).unwrap();
    let put = |value| filter.put(Mixed::of(1), Put { value, if_present: IfPresent::Raise });
    assert_eq!([5, 2, 6, 1].map(put), [Ok(0), Ok(5), Ok(5), Ok(6)]);
}

/// With tags of every number of bits, in slots of every width.
#[test]
fn a_table_refuses_keys_when_it_is_nearly_full_and_counts_the_slots_in_use() {
    const SLOTS: usize = 4 * 34;
    for (width, bits) in
        (6..=32).flat_map(|width| (1..=Tags::most_bits(width).min(width - 5).min(8)).map(move |bits| (width, bits)))
    {
        let plan = Plan::one_shard(width, 34, 4).with_tags(bits);
        let filter = RawFilter::<Tagging>::new(&plan, HugePages::Unadvised).unwrap();
        let most = filter.tags().most;
        let mut hashes = (0..).map(Mixed::of);
        let add = [IfPresent::Add { renews: true }, IfPresent::AddUpTo { renews: false, most: 9 }];
        let ways = [IfPresent::Another, IfPresent::Keep, IfPresent::Raise].into_iter().chain(add);
        for (life, if_present) in (1..=most).cycle().zip(ways) {
            let put = |mixed| filter.put(mixed, Put { value: life, if_present });
            assert_eq!(hashes.find_map(|mixed| put(mixed).err()), Some(InsertError::Full));
            assert!(filter.len() > SLOTS * 8 / 10 || width - bits < 6, "{if_present:?}, {width}, {bits}");
            filter.sweep(3);
            for _ in 0..=most {
                filter.advance();
                assert_eq!(filter.flat().at(0).occupied(), Some(filter.len() as u64));
            }
            assert_eq!(filter.len(), 0);
        }
    }
}

/// Over so many ticks that everything dies: a slot stored after the clear of its shard has its time from then on.
#[test]
fn what_is_stored_during_a_long_advance_lives_and_dies_by_its_tag() {
    let plan = Plan { shards: 2, ..Plan::one_shard(16, 64, 4) }.with_tags(3);
    for (value, ticks) in (1..=7).flat_map(|value| (8..16).map(move |ticks| (value, ticks))) {
        let filter = Rc::new(RawFilter::<Tagging>::new(&plan, HugePages::Unadvised).unwrap());
        let cycle = filter.tags().cycle();
        let key = (0..).map(Mixed::of).find(|&mixed| filter.geometry().shard(mixed) == 0).unwrap();
        let put = move |filter: &RawFilter<Tagging>| filter.put(key, Put { value, if_present: IfPresent::Keep });
        put(&filter).unwrap();
        let (shared, counted) = (Rc::clone(&filter), Cell::new(0));
        let copy = Assembly::<Tagging>::new(&plan, HugePages::Unadvised).unwrap();
        copy_shard(&filter, 0, &copy);
        let hook = move |step| {
            counted.set(counted.get() + usize::from(step == Step::Counted));
            if step == Step::Counted && counted.get() == 2 {
                assert_eq!(put(&shared), Ok(0), "the shard was cleared");
            }
        };
        with_hook(hook, || assert_eq!(filter.advance_to(ticks), ticks));
        assert_eq!(filter.contains(key), ticks - cycle < u64::from(value), "{value} after {ticks} ticks");
        assert_eq!(filter.epoch(), ticks);
        // A copy of which one shard is copied before the epochs are skipped, and the other one after it.
        copy_shard(&filter, 1, &copy);
        let copy = copy.finish().unwrap();
        assert_eq!((copy.contains(key), copy.epoch()), (false, ticks), "{value} after {ticks} ticks, copied before");
        // A clone is as old as the filter, so it does not advance again.
        let clone = filter.try_clone(&mut vec![0; plan.words as usize]).unwrap();
        assert_eq!((clone.epoch(), clone.advance_to(ticks)), (ticks, 0));
        assert_eq!(clone.contains(key), filter.contains(key));
    }
}

/// As many ticks that are made between the copies of two shards have aged the first one, whole cycles or not.
#[test]
fn what_died_between_the_copies_of_two_shards_is_dead_in_the_copy() {
    let plan = Plan { shards: 2, ..Plan::one_shard(16, 64, 4) }.with_tags(3);
    for (value, ticks) in (1..=7).flat_map(|value| (0..20).map(move |ticks| (value, ticks))) {
        let filter = RawFilter::<Tagging>::new(&plan, HugePages::Unadvised).unwrap();
        let key = (0..).map(Mixed::of).find(|&mixed| filter.geometry().shard(mixed) == 0).unwrap();
        filter.put(key, Put { value, if_present: IfPresent::Keep }).unwrap();
        let copy = Assembly::new(&plan, HugePages::Unadvised).unwrap();
        copy_shard(&filter, 0, &copy);
        (0..ticks).for_each(|_| _ = filter.advance());
        copy_shard(&filter, 1, &copy);
        assert_eq!(copy.finish().unwrap().contains(key), ticks < u64::from(value), "{value} after {ticks} ticks");
    }
}

/// A dead slot is room, and no path moves it.
#[test]
fn what_has_died_makes_room_before_it_is_swept() {
    for (width, bits) in [(16, 3), (18, 2), (20, 4), (24, 8)] {
        let plan = Plan::one_shard(width, 64, 4).with_tags(bits);
        let filter = RawFilter::<Tagging>::new(&plan, HugePages::Unadvised).unwrap();
        let put = |hash: u64, value| {
            let (shard, class) = filter.flat().locate(Mixed::of(hash));
            shard.insert(Fixed, class, Put { value, if_present: IfPresent::Another }).unwrap()
        };
        let mut full = 0;
        while put(full, 1).is_ok() {
            full += 1;
        }
        assert!(full > 230, "{full} of 256 slots");
        filter.advance();
        // The tick has made all of them dead, and swept none.
        assert_eq!(filter.len() as u64, full);
        assert!((0..full).all(|hash| !filter.contains(Mixed::of(hash))));
        let states = || filter.flat().at(0).stripes().states();
        let before = states();
        assert_eq!(put(999, 1), Ok(0));
        assert_ne!(states(), before, "a dead slot that is stored over is seen by a refusal");
        assert_eq!(filter.remove_value(Mixed::of(999), None), 1);
        let again = (1000..).take_while(|&hash| put(hash, 2).is_ok()).count() as u64;
        assert!(again > 230, "{again} of 256 slots");
        assert!((1000..1000 + again).all(|hash| filter.contains(Mixed::of(hash))));
        filter.advance();
        assert_eq!(filter.len() as u64, again, "the dead are gone");
        assert!((1000..1000 + again).all(|hash| filter.contains(Mixed::of(hash))));
    }
}

/// A tick sweeps only the chunks that were not swept ahead of it.
#[test]
fn a_sweep_ahead_takes_work_from_the_tick() {
    let plan = Plan::new(300_000, 16, None).unwrap().with_tags(3);
    let filter = RawFilter::<Tagging>::new(&plan, HugePages::Unadvised).unwrap();
    let buckets = plan.shards * plan.buckets as usize;
    assert!(plan.shards > 1);
    let locks_of_a_tick = || number_of(Step::Locked, || filter.advance()).0;
    let whole = locks_of_a_tick();
    assert!(whole >= buckets / 512 && whole <= buckets.div_ceil(256) + plan.shards);
    assert!(filter.sweep(buckets / 2));
    let half = locks_of_a_tick();
    assert!(half < whole * 6 / 10 && half > whole * 4 / 10, "{half} of {whole}");
    while filter.sweep(1000) {}
    assert!(!filter.sweep(1000));
    assert_eq!(locks_of_a_tick(), 0);
    assert_eq!(locks_of_a_tick(), whole, "the next epoch begins from the start");
}
