//! Random operations on one thread, compared with a multiset of deadlines per class.

use super::assembly::Assembly;
use super::filter::RawFilter;
use super::owner::Fixed;
use super::pair::{IfPresent, Put};
use super::shard::Shard;
use super::slots::Tagging;
use crate::error::InsertError;
use crate::layout::{Class, Mixed, Plan, Tags};
use crate::sys::memory::HugePages;
use crate::sys::steps::{Step, number_of, with_hook};
use fastrand::Rng;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::rc::Rc;

/// The expected content: the sorted deadlines of each class. A deadline is an epoch times 2^c, plus a count less one.
#[derive(Default)]
struct Oracle {
    epoch: u64,
    most: u64,
    /// c.
    count_bits: u32,
    classes: BTreeMap<(u32, u32), Vec<u64>>,
}

fn name(class: Class) -> (u32, u32) {
    (class.fingerprint.get(), class.lower_first().first.get())
}

impl Oracle {
    fn put(&mut self, class: Class, value: u32, if_present: IfPresent) -> u32 {
        let (epoch, counts) = (self.epoch << self.count_bits, (1 << self.count_bits) - 1);
        let copies = self.classes.entry(name(class)).or_default();
        let had = copies.first().map_or(0, |first| first - epoch);
        match (had, if_present) {
            (0, _) | (_, IfPresent::Another) => copies.push(epoch + u64::from(value)),
            (_, IfPresent::Keep) => {}
            (had, IfPresent::Raise) => copies[0] = epoch + had.max(value.into()),
            (had, IfPresent::AddUpTo { most, .. }) if counts > 0 && had & counts >= u64::from(most) => {}
            (had, IfPresent::AddUpTo { most, .. }) if counts == 0 && had > u64::from(most) => {}
            (had, IfPresent::Add { .. } | IfPresent::AddUpTo { .. }) if counts == 0 => {
                copies[0] = epoch + (had + u64::from(value)).min(self.most);
            }
            (had, IfPresent::Add { renews } | IfPresent::AddUpTo { renews, .. }) => {
                let count = ((had & counts) + 1 + (u64::from(value) & counts)).min(counts);
                let time = if renews { had.max(value.into()) } else { had };
                copies[0] = epoch + (time & !counts) + count;
            }
        }
        copies.sort_unstable();
        if if_present == IfPresent::Another { 0 } else { had as u32 }
    }

    fn values(&self, class: Class) -> Vec<u32> {
        self.classes.get(&name(class)).into_iter().flatten().map(|deadline| self.left(*deadline)).collect()
    }

    fn left(&self, deadline: u64) -> u32 {
        (deadline - (self.epoch << self.count_bits)) as u32
    }

    fn remove(&mut self, class: Class) -> u32 {
        let copies = self.classes.entry(name(class)).or_default();
        if copies.is_empty() {
            return 0;
        }
        let first = copies.remove(0);
        self.left(first)
    }

    fn set_epoch(&mut self, epoch: u64) {
        self.epoch = epoch;
        let count_bits = self.count_bits;
        self.classes.values_mut().for_each(|copies| copies.retain(|&deadline| deadline >> count_bits > epoch));
    }

    fn live(&self) -> usize {
        self.classes.values().map(Vec::len).sum()
    }
}

pub(super) fn formats() -> impl Iterator<Item = (u32, u32)> {
    (6..=32u32).flat_map(|width| (1..=Tags::most_bits(width).min(width - 5).min(8)).map(move |bits| (width, bits)))
}

pub(super) fn filter(width: u32, tag_bits: u32, buckets: u32) -> RawFilter<Tagging> {
    RawFilter::new(&Plan::one_shard(width, buckets, 4).with_tags(tag_bits), HugePages::Unadvised).unwrap()
}

fn check_all(filter: &RawFilter<Tagging>, oracle: &Oracle, hashes: &[Mixed]) {
    for &mixed in hashes {
        let mut values = filter.values(mixed).to_vec();
        values.sort_unstable();
        assert_eq!(values, oracle.values(filter.flat().locate(mixed).1), "the live copies of {mixed:?}");
        assert_eq!(filter.contains(mixed), !values.is_empty());
    }
}

#[test]
fn a_filter_agrees_with_a_multiset_of_deadlines_at_every_width() {
    for (width, bits) in formats() {
        let mut random = Rng::with_seed(u64::from(width * 10 + bits));
        let count_bits = if random.bool() { random.u32(..bits) } else { 0 };
        let plan = Plan { count_bits, ..Plan::one_shard(width, 34, 4).with_tags(bits) };
        let filter = RawFilter::<Tagging>::new(&plan, HugePages::Unadvised).unwrap();
        let most = filter.tags().most;
        let mut oracle = Oracle { most: most.into(), count_bits, ..Oracle::default() };
        let hashes: Vec<Mixed> = (0..200).map(Mixed::of).collect();
        let mut refused = 0;
        for step in 0..3000 {
            let (mixed, value) = (hashes[random.usize(..hashes.len())], random.u32(1 << count_bits..=most));
            let (shard, class) = filter.flat().locate(mixed);
            match random.u32(..200) {
                kind @ ..150 => {
                    let if_present = match kind {
                        ..20 => IfPresent::Another,
                        20..50 => IfPresent::Keep,
                        50..120 => IfPresent::Raise,
                        120..140 => IfPresent::Add { renews: random.bool() },
                        _ => IfPresent::AddUpTo { renews: random.bool(), most: random.u16(..20) },
                    };
                    match shard.insert(Fixed, class, Put { value, if_present }).unwrap() {
                        Ok(had) => assert_eq!(had, oracle.put(class, value, if_present), "{if_present:?}"),
                        Err(InsertError::TooManyCopies) => assert_eq!(oracle.values(class).len(), 8),
                        Err(error) => {
                            assert_eq!(error, InsertError::Full);
                            // The first refusal comes near a full table, including slots that have died.
                            refused += 1;
                            assert!(oracle.live() > 34 * 4 * 8 / 10 || width - bits < 6, "{} live", oracle.live());
                        }
                    }
                }
                150..165 => assert_eq!(shard.remove(Fixed, class, None), Ok(oracle.remove(class))),
                165..180 => {
                    let had = oracle.values(class).first().copied().unwrap_or(0);
                    assert_eq!(shard.update(Fixed, class, None, |had| had.max(value)), Ok(had));
                    if had > 0 {
                        oracle.put(class, value, IfPresent::Raise);
                    }
                }
                180..192 => _ = filter.sweep(random.usize(..40)),
                192 => {
                    let ticks = random.u64(0..=2 * u64::from(most) + 5);
                    assert_eq!(filter.advance_to(oracle.epoch + ticks), ticks);
                    oracle.set_epoch(oracle.epoch + ticks);
                }
                193 => {
                    // To a past epoch.
                    assert_eq!(filter.advance_to(oracle.epoch / 2), 0);
                }
                _ => {
                    let in_use = filter.len();
                    let cleared = filter.advance();
                    oracle.set_epoch(oracle.epoch + 1);
                    assert_eq!(filter.len(), in_use - cleared);
                }
            }
            assert_eq!(filter.epoch(), oracle.epoch);
            assert!(filter.len() >= oracle.live());
            assert_eq!(Some(filter.len() as u64), filter.flat().at(0).occupied(), "slots in use are counted");
            if step % 50 == 0 {
                check_all(&filter, &oracle, &hashes);
            }
        }
        check_all(&filter, &oracle, &hashes);
        assert!(refused < 1500, "{width} {bits}: {refused} refused");
        // The next tick sweeps slots that a tick made dead.
        for _ in 0..=most {
            filter.advance();
        }
        assert_eq!(filter.len(), 0);
    }
}

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
        let filter = filter(width, bits, 64);
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
