//! Lookups whose key moves while they run, from the bucket that they have not read yet to the one that they have read. The key is
//! present throughout, so every kind of lookup must find it, with the move at each of its steps.
//!
//! All of this runs on one thread: the hook of [`Step::BucketRead`], which a lookup reaches after each of its two buckets, makes
//! the move by operations of the public API. The order in which a batch reads its keys does not matter.

use crate::internal::panic_safety::{self, hooked_pool};
use crate::internal::stalled_writer::GROWING_WIDTHS;
use crate::layout::{Bucket, Mixed, Plan};
use crate::raw::RawFilter;
use crate::sys::memory::HugePages;
use crate::sys::prefetch::{CacheLevel, choose_level};
use crate::sys::steps::{Step, with_hook};
use crate::sys::sync::RelaxedCounter;
use crate::{CuckooFilter, Prehashed};
use std::collections::HashMap;
use std::iter::repeat_n;
use std::sync::Arc;

/// Part of a word, a run in one or two words, a word, two runs.
const WIDTHS: [u32; 6] = [4, 8, 13, 16, 20, 32];

/// The capacity of one shard of some 60 buckets.
const SMALL: usize = 190;

/// The longest batch: several blocks and windows, and a remainder.
const LONGEST: usize = 100;

type Filter = CuckooFilter<u64, Prehashed>;

type Ask = fn(&Filter, &[u64], &mut [bool]);

const CONTAINS: Ask =
    |filter, keys, found| keys.iter().zip(found).for_each(|(key, found)| *found = filter.contains(key));
const CONTAINS_HASHED: Ask = |filter, keys, found| {
    keys.iter().zip(found).for_each(|(key, found)| *found = filter.hashed().contains(key));
};
const CONTAINS_BATCH: Ask = |filter, keys, found| filter.contains_batch(keys, found);
const CONTAINS_BATCH_HASHED: Ask = |filter, keys, found| filter.hashed().contains_batch(keys, found);
const PAR_CONTAINS: Ask = |filter, keys, found| filter.par_contains(keys, found);
const PAR_CONTAINS_HASHED: Ask = |filter, keys, found| filter.hashed().par_contains(keys, found);

/// The shard and the fingerprint of a hash, and its buckets in the order in which a lookup reads them.
fn place(filter: &Filter, hash: u64) -> (usize, u32, Bucket, Bucket) {
    let (shard, key) = panic_safety::place(filter, hash);
    (shard, key.fingerprint.get(), key.first, key.second)
}

type Empty = fn(u32, usize) -> Filter;

fn one_shard(width: u32, capacity: usize) -> Filter {
    CuckooFilter::builder().capacity(capacity).fingerprint_bits(width).hasher(Prehashed).build().expect("memory")
}

/// A filter of shards of 64 buckets in four stripes, which may double this many times.
fn small(width: u32, shards: usize, reserve_bits: u32) -> Filter {
    let plan = Plan { shards, reserve_bits, ..Plan::one_shard(width, 64, 4) };
    Filter::from_raw([SMALL; 2], None, RawFilter::new(&plan, HugePages::Unadvised).expect("memory"), (), Prehashed)
}

/// Each of these kinds has its own compiled lookups.
const KINDS: [(Empty, &[u32]); 4] = [
    (|width, _| small(width, 1, 0), &WIDTHS),
    (|width, _| small(width, 3, 0), &WIDTHS),
    (|width, _| small(width, 1, 2), &GROWING_WIDTHS),
    (|width, _| small(width, 3, 2), &GROWING_WIDTHS),
];

#[derive(Clone, Copy, Debug)]
enum Move {
    /// The insertion of this key, which relocates it.
    Relocation(u64),
    /// The insertion of another copy into the other bucket, and a removal that takes the old copy (H2), by this key of the same
    /// class, whose lookups read its buckets in the other order.
    Trade(u64),
    Split,
}

/// A filter with a key in the bucket that a lookup of it reads last, and with the other bucket empty.
#[derive(Clone, Debug)]
struct Race {
    empty: Empty,
    width: u32,
    capacity: usize,
    key: u64,
    /// Keeps the key out of the bucket that is read first, until it is removed.
    blocker: u64,
    moves: Move,
}

impl Race {
    fn by_relocation(empty: Empty, width: u32, capacity: usize) -> Self {
        let filter = empty(width, capacity);
        let key = key_behind_the_first_stripe(&filter);
        // Fills the bucket of the key and the other bucket of `crowd`, from which nothing but the key can move.
        let crowd = stranger(&filter, key, false);
        let (blocker, moves) = (stranger(&filter, key, true), Move::Relocation(crowd));
        Race { empty, width, capacity, key, blocker, moves }
    }

    fn by_trade(width: u32) -> Self {
        let (empty, filter) = (one_shard as Empty, one_shard(width, SMALL));
        let mut known = HashMap::new();
        let pair = (0..).find_map(|hash| {
            let (shard, fingerprint, first, second) = place(&filter, hash);
            known.insert((shard, fingerprint, first.get(), second.get()), hash);
            Some((hash, *known.get(&(shard, fingerprint, second.get(), first.get()))?))
        });
        let (key, turned) = pair.expect("hashes do not end");
        let (blocker, moves) = (stranger(&filter, key, true), Move::Trade(turned));
        Race { empty, width, capacity: SMALL, key, blocker, moves }
    }

    fn by_split(empty: Empty, width: u32) -> Self {
        Race { moves: Move::Split, ..Race::by_relocation(empty, width, SMALL) }
    }

    fn filter(&self) -> Filter {
        let filter = (self.empty)(self.width, self.capacity);
        repeat_n(self.blocker, 8).for_each(|hash| filter.hashed().insert(&hash).expect("room"));
        filter.hashed().insert(&self.key).expect("room in its second bucket");
        assert_eq!(filter.hashed().remove_all(&self.blocker), 8);
        if let Move::Relocation(crowd) = self.moves {
            repeat_n(crowd, 7).for_each(|hash| filter.hashed().insert(&hash).expect("room"));
        }
        filter
    }

    /// Moves the key out of the bucket that its lookups read last or, with `back`, out of the other one.
    fn make(&self, filter: &Filter, back: bool) {
        if let (Move::Split, Some(growing)) = (self.moves, filter.raw.growing()) {
            return growing.split_owner(Mixed::of(self.key));
        }
        filter
            .hashed()
            .insert(&(if let Move::Relocation(crowd) = self.moves { crowd } else { self.key }))
            .expect("room");
        if let Move::Trade(turned) = self.moves {
            assert!(filter.hashed().remove(&(if back { self.key } else { turned })));
        }
    }

    /// Looks up these keys in one call, with `moves` moves of the key from read number `at` on. Returns the number of lookups that
    /// repeated.
    fn run(&self, ask: Ask, pooled: bool, asked: &[(u64, bool)], at: usize, moves: usize) -> usize {
        let filter = Arc::new(self.filter());
        let others = asked.iter().filter(|&&(key, is_there)| is_there && key != self.key);
        others.for_each(|(key, _)| filter.hashed().insert(key).expect("room"));
        let counters = Arc::new([RelaxedCounter::default(), RelaxedCounter::default()]);
        let (race, shared, noted) = (self.clone(), Arc::clone(&filter), Arc::clone(&counters));
        let hook = move |step| {
            let [reads, repeats] = &*noted;
            match step {
                Step::BucketRead => {
                    reads.change(|reads| reads + 1);
                    let read = reads.get() as usize;
                    if (at..at + moves).contains(&read) {
                        race.make(&shared, (read - at) % 2 == 1);
                    }
                }
                Step::Repeated => repeats.change(|repeats| repeats + 1),
                _ => {}
            }
        };
        let (keys, expected): (Vec<u64>, Vec<bool>) = asked.iter().copied().unzip();
        let mut found: Vec<bool> = expected.iter().map(|is_there| !is_there).collect();
        if pooled {
            hooked_pool(1, hook).install(|| ask(&filter, &keys, &mut found));
        } else {
            with_hook(hook, || ask(&filter, &keys, &mut found));
        }
        let wrong = (0..keys.len()).find(|&number| found[number] != expected[number]);
        assert_eq!(wrong, None, "{self:?}, moved after read {at}: the number of a wrong answer of {}", keys.len());
        assert_eq!(filter.hashed().count(&self.key), 1);
        counters[1].get() as usize
    }

    /// Absent keys that share no bucket with the keys here.
    fn bystanders(&self) -> impl Iterator<Item = u64> + use<> {
        let filter = (self.empty)(self.width, self.capacity);
        let buckets = move |hash| {
            let (_, _, first, second) = place(&filter, hash);
            [first, second]
        };
        let crowd = if let Move::Relocation(crowd) = self.moves { crowd } else { self.key };
        let touched = [self.key, self.blocker, crowd].map(&buckets).concat();
        (1 << 40..).filter(move |&hash| !buckets(hash).iter().any(|bucket| touched.contains(bucket)))
    }

    /// The key this many times. An absent key follows several, to detect an answer in another key's place.
    fn copies(&self, copies: usize) -> Vec<(u64, bool)> {
        let absent = (copies > 1).then(|| self.bystanders().next().expect("hashes do not end"));
        repeat_n((self.key, true), copies).chain(absent.map(|key| (key, false))).collect()
    }

    /// The number of repetitions, with the move after each read in turn.
    fn run_each(&self, ask: Ask, pooled: bool, asked: &[(u64, bool)], reads: usize) -> usize {
        (1..=reads).filter(|&at| self.run(ask, pooled, asked, at, 1) > 0).count()
    }

    /// Between its two reads each lookup misses the key, and must repeat.
    fn run_all(&self, ask: Ask, pooled: bool, copies: usize) {
        let raced = self.run_each(ask, pooled, &self.copies(copies), 2 * copies);
        assert!(raced >= copies, "{self:?}: {raced} of {copies} lookups missed the key at first");
    }
}

/// A key whose buckets do not belong to the first version. In a growing filter, the first split moves it to another table; with
/// several shards, it is not in the first.
fn key_behind_the_first_stripe(filter: &Filter) -> u64 {
    let plan = filter.plan();
    let fits = |&hash: &u64| {
        let (cell, _, first, second) = place(filter, hash);
        let in_stripes = |bucket: Bucket| plan.stripes == 1 || bucket.get() >> plan.stripe_shift > 0;
        let (shard, reserve) = (cell >> plan.reserve_bits, cell & ((1 << plan.reserve_bits) - 1));
        let goes = plan.reserve_bits == 0 || reserve >> (plan.reserve_bits - 1) == 1;
        in_stripes(first) && in_stripes(second) && goes && shard == plan.shards - 1
    };
    (1..).find(fits).expect("hashes do not end")
}

/// A key that shares one bucket with this one: the bucket that lookups of it read first or, without `in_first`, last.
fn stranger(filter: &Filter, key: u64, in_first: bool) -> u64 {
    let (shard, _, first, second) = place(filter, key);
    let [shared, other] = if in_first { [first, second] } else { [second, first] };
    let shares = |&hash: &u64| {
        let (its_shard, _, one, two) = place(filter, hash);
        its_shard == shard && [one, two].contains(&shared) && ![one, two].contains(&other)
    };
    (1 << 20..).find(shares).expect("hashes do not end")
}

fn races() -> impl Iterator<Item = Race> {
    WIDTHS.into_iter().flat_map(|width| [Race::by_relocation(one_shard, width, SMALL), Race::by_trade(width)])
}

/// In the other kinds of filters, and with prefetches into either cache level.
#[test]
fn a_key_that_moves_is_found_in_every_kind_of_filter() {
    for (empty, widths) in KINDS {
        for &width in widths {
            let mut races = vec![Race::by_relocation(empty, width, SMALL)];
            if empty(width, SMALL).raw.growing().is_some() {
                races.push(Race::by_split(empty, width));
            }
            for race in races {
                race.run_all(CONTAINS, false, 1);
                for level in [None, Some(CacheLevel::L1), Some(CacheLevel::L2)] {
                    choose_level(level);
                    // Two full blocks, and a part of one.
                    race.run_all(CONTAINS_BATCH_HASHED, false, 70);
                }
            }
        }
    }
}

/// Alone, at each place of a batch, and on other threads.
#[test]
fn a_key_that_moves_is_found_at_each_place_of_a_batch() {
    for race in races() {
        race.run_all(CONTAINS, false, 1);
        race.run_all(CONTAINS_HASHED, false, 3);
        for copies in 1..=LONGEST {
            race.run_all(CONTAINS_BATCH_HASHED, false, copies);
        }
        for copies in [1, 2, 3, 4, 5, 33] {
            race.run_all(CONTAINS_BATCH, false, copies);
            race.run_all(PAR_CONTAINS_HASHED, true, copies);
        }
        race.run_all(PAR_CONTAINS, true, 5);
    }
}

/// In a batch of present and absent keys in turn.
#[test]
fn a_key_that_moves_is_found_among_others() {
    for race in races() {
        let (filter, there) = (race.filter(), Vec::from_iter(race.bystanders().take(LONGEST / 2)));
        there.iter().for_each(|hash| filter.hashed().insert(hash).expect("room"));
        let absent = race.bystanders().filter(|hash| !filter.hashed().contains(hash));
        let pairs = there.iter().zip(absent).flat_map(|(&there, absent)| [(there, true), (absent, false)]);
        let others = Vec::from_iter(pairs);
        for count in (1..others.len()).step_by(7) {
            for position in [0, count / 2, count] {
                let mut asked = others[..count].to_vec();
                asked.insert(position, (race.key, true));
                let raced = race.run_each(CONTAINS_BATCH_HASHED, false, &asked, 2 * asked.len());
                assert!(raced > 0, "{race:?}: no lookup missed the key at first");
            }
        }
    }
}

/// A lookup repeats as long as its key moves, and no longer.
#[test]
fn a_key_is_looked_for_until_it_stays_where_it_is() {
    const TIMES: usize = 50;
    for race in WIDTHS.map(Race::by_trade) {
        let ways: [(Ask, bool); 4] =
            [(CONTAINS, false), (CONTAINS_HASHED, false), (CONTAINS_BATCH_HASHED, false), (PAR_CONTAINS_HASHED, true)];
        for (ask, pooled) in ways {
            // Out of the first bucket before each read of it, and out of the second before each read of that.
            let repeats = race.run(ask, pooled, &race.copies(1), 1, 2 * TIMES);
            assert_eq!(repeats, TIMES, "{race:?}");
            for copies in [2, 4, 5, 40] {
                race.run(ask, pooled, &race.copies(copies), 1, 2 * TIMES);
            }
        }
    }
}

/// Enough keys in a large table that the keys of each shard are looked up together, and a batch in a table beyond the cache.
#[test]
fn a_key_that_moves_is_found_in_a_large_table() {
    for width in WIDTHS {
        // 9 MiB of slots.
        let slots = (9 << 23) / width as usize;
        let race = Race::by_relocation(one_shard, width, slots / 20 * 19);
        let shards = one_shard(width, race.capacity).config().shards;
        assert!(shards > 1);
        // 2^14 keys per shard, and some that do not fill a group.
        let copies = shards * (1 << 14) + 3;
        let asked = race.copies(copies);
        let places = [1, 2, 3, 100, 101, copies, copies + 1, 2 * copies - 1, 2 * copies];
        let raced = places.into_iter().filter(|&at| race.run(PAR_CONTAINS_HASHED, true, &asked, at, 1) > 0).count();
        assert!(raced >= 4, "{race:?}: {raced} times a lookup missed the key at first");
        for copies in [1, 2, 3, 4, 5, 33] {
            race.run_all(CONTAINS_BATCH_HASHED, false, copies);
        }
    }
}
