//! Counts that stay and counts that die: against an exact model of classes, windows and counts, and what is promised to a
//! limiter.

use crate::support::hasher;
use concurrent_cuckoo_filter::kind::Counting;
use concurrent_cuckoo_filter::{
    BuildError, Builder, CountingFilter, FilterView, InsertError, MergeError, SnapshotReader, StableHashBuilder,
};
use fastrand::Rng;
use proptest::prelude::*;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use testkit::written;

type Filter = CountingFilter<u64, StableHashBuilder>;

/// Whether counts die, and by which deadline.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Counts {
    Stay,
    Live,
    Idle,
}

use Counts::{Idle, Live, Stay};

impl Counts {
    fn of(
        self,
        builder: Builder<u64, StableHashBuilder, Counting>,
        time: Duration,
    ) -> Builder<u64, StableHashBuilder, Counting> {
        match self {
            Stay => builder,
            Live => builder.time_to_live(time),
            Idle => builder.time_to_idle(time),
        }
    }
}

const SECOND: Duration = Duration::from_secs(1);

fn builder(capacity: usize) -> Builder<u64, StableHashBuilder, Counting> {
    CountingFilter::builder().capacity(capacity).hasher(hasher())
}

#[test]
fn what_cannot_be_built_is_said() {
    let error = |builder: Builder<u64, _, Counting>| builder.build().unwrap_err();
    let minute = || builder(10).time_to_live(60 * SECOND);
    assert_eq!(error(builder(10).time_to_live(Duration::ZERO)), BuildError::NoTimeToLive);
    assert!(matches!(error(builder(10).time_to_idle(Duration::MAX)), BuildError::TimeToLiveTooLong { .. }));
    assert!(matches!(error(minute().steps(255)), BuildError::OutOfRange { requested: 255, .. }));
    assert!(matches!(error(minute().counter_bits(17)), BuildError::OutOfRange { requested: 17, .. }));
    assert!(matches!(error(minute().counter_bits(16).steps(254)), BuildError::RateTooLow { widest: 8, .. }));
    // The last that is asked for replaces the other.
    let filter = minute().time_to_idle(SECOND).build().unwrap();
    assert_eq!((filter.config().time_to_live, filter.config().time_to_idle), (None, Some(SECOND)));
    let made = |bits, steps| {
        let filter = minute().counter_bits(bits).steps(steps).false_positive_rate(0.01).build().unwrap();
        (filter.config().max_count, filter.config().fingerprint_bits, filter.config().tick.unwrap())
    };
    let steps = |number: u128| Duration::from_nanos((60 * SECOND).as_nanos().div_ceil(number) as u64);
    let kept = |bits| {
        let filter = builder(1000).counter_bits(bits).false_positive_rate(0.01).build().unwrap();
        (filter.config().max_count, filter.config().fingerprint_bits)
    };
    assert_eq!([1, 2, 3, 4, 8, 16].map(kept), [(1, 10), (3, 10), (7, 13), (15, 12), (255, 16), (65_535, 16)]);
    for bits in [0, 17] {
        let error = error(builder(1000).counter_bits(bits)).to_string();
        assert_eq!(error, format!("{bits} bits per counter were requested; 1 to 16 are possible"));
    }
    let too_low = error(builder(1000).counter_bits(16).false_positive_rate(1e-5));
    assert!(matches!(too_low, BuildError::RateTooLow { widest: 16, .. }), "{too_low:?}");
    assert_eq!(made(1, 2), (2, 9, steps(2))); // slots of 12 bits
    assert_eq!(made(4, 6), (16, 9, steps(6))); // of 16
    assert_eq!(made(8, 6), (256, 21, steps(6))); // of 32
}

/// Where counts do not die, time changes nothing.
#[test]
fn without_a_time_to_live_time_stands_still() {
    let filter = builder(100).build().unwrap();
    filter.add(&1).unwrap();
    assert_eq!(
        (filter.advance(), filter.advance_to(Duration::MAX), filter.sweep(1), filter.stats().epoch),
        (0, 0, false, 0)
    );
    assert_eq!(
        (filter.count(&1), filter.config().tick, filter.config().time_to_live, filter.config().time_to_idle),
        (1, None, None, None)
    );
}

/// An exact filter of classes: the end of each window, in ticks, and its count.
struct Exact {
    most: u32,
    ticks: u64,
    renews: bool,
    now: u64,
    windows: HashMap<u64, (u64, u32)>,
}

impl Exact {
    fn count(&self, class: u64) -> u32 {
        self.windows.get(&class).filter(|(end, _)| *end > self.now).map_or(0, |&(_, count)| count)
    }

    fn add(&mut self, class: u64) -> u32 {
        let (count, end) = (self.count(class), self.now + self.ticks);
        let before = self.windows.get(&class).map_or(0, |&(end, _)| end);
        let end = if count == 0 || self.renews { end } else { before };
        self.windows.insert(class, (end, (count + 1).min(self.most)));
        (count + 1).min(self.most)
    }

    fn try_add(&mut self, class: u64, limit: u32) -> Option<u32> {
        (self.count(class) < limit.min(self.most)).then(|| self.add(class))
    }

    fn subtract(&mut self, class: u64) -> Option<u32> {
        match self.count(class) {
            0 => return None,
            1 => _ = self.windows.remove(&class),
            count if count == self.most => {}
            _ => self.windows.get_mut(&class).expect("it counts").1 -= 1,
        }
        Some(self.count(class))
    }
}

#[derive(Clone, Debug)]
enum Change {
    Add(u64),
    TryAdd(u64, u32),
    Subtract(u64),
    Remove(u64),
    Batch(Vec<u64>),
    TryBatch(Vec<u64>, u32),
    Tick,
    Later(u64),
    Sweep(usize),
    Reload,
    Clone,
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let (key, keys) = (0..400_u64, || prop::collection::vec(0..400_u64, 0..50));
    let change = prop_oneof![
        12 => (0..40_u64).prop_map(Change::Add),
        6 => key.clone().prop_map(Change::Add),
        6 => (0..40_u64, 0..12_u32).prop_map(|(key, limit)| Change::TryAdd(key, limit)),
        4 => (0..40_u64).prop_map(Change::Subtract),
        2 => key.prop_map(Change::Remove),
        1 => keys().prop_map(Change::Batch),
        1 => (keys(), 0..5_u32).prop_map(|(keys, limit)| Change::TryBatch(keys, limit)),
        4 => Just(Change::Tick),
        1 => (0..40_u64).prop_map(Change::Later),
        1 => (0..100_usize).prop_map(Change::Sweep),
        1 => Just(Change::Reload),
        1 => Just(Change::Clone),
    ];
    prop::collection::vec(change, 0..250)
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(7), ..ProptestConfig::default() })]

    /// With fingerprints so wide that the keys of a case are classes of their own, every answer is exact.
    #[test]
    fn every_answer_is_that_of_an_exact_model(
        (bits, steps) in prop::sample::select(vec![(1_u32, 2_u32), (4, 6), (5, 6), (8, 6), (3, 30), (2, 14)]),
        counts in prop::sample::select(vec![Stay, Live, Idle]),
        grows: bool,
        changes in changes(),
    ) {
        // Where counts stay, a count of 1 at its maximum could not be subtracted from.
        let bits = if counts == Stay { bits.max(2) } else { bits };
        let asked = builder(2_000).counter_bits(bits).false_positive_rate(1e-5);
        let asked = if counts == Stay { asked } else { counts.of(asked.steps(steps), steps * SECOND) };
        let asked = if grows { asked.max_capacity(100_000) } else { asked };
        let mut filter = asked.build().unwrap();
        // Where counts stay, 0 is no count.
        let (most, ticks) = if counts == Stay { ((1 << bits) - 1, 1 << 60) } else { (1 << bits, u64::from(steps) + 1) };
        let mut exact = Exact { most, ticks, renews: counts == Idle, now: 0, windows: HashMap::new() };
        let mut begun = 0;
        for change in changes {
            match change {
                Change::Add(key) => prop_assert_eq!(filter.add(&key).unwrap(), exact.add(key)),
                Change::TryAdd(key, limit) => {
                    prop_assert_eq!(filter.try_add(&key, limit).unwrap(), exact.try_add(key, limit));
                }
                Change::Subtract(key) => prop_assert_eq!(filter.subtract(&key), exact.subtract(key)),
                Change::Remove(key) => {
                    prop_assert_eq!(filter.remove(&key), exact.count(key) > 0);
                    exact.windows.remove(&key);
                }
                Change::Batch(keys) => {
                    let mut counts = vec![9; keys.len()];
                    assert_eq!(filter.add_batch(&keys, &mut counts).refused, []);
                    prop_assert_eq!(counts, keys.iter().map(|&key| exact.add(key)).collect::<Vec<_>>());
                }
                Change::TryBatch(keys, limit) => {
                    let mut counts = vec![9; keys.len()];
                    let report = filter.try_add_batch(&keys, limit, &mut counts);
                    prop_assert_eq!(report.inserted + report.present, keys.len());
                    let expected = keys.iter().map(|&key| exact.try_add(key, limit).unwrap_or(0));
                    prop_assert_eq!(counts, expected.collect::<Vec<_>>());
                }
                Change::Tick | Change::Later(_) if counts == Stay => {
                    prop_assert_eq!((filter.advance(), filter.advance_to(Duration::MAX), filter.stats().epoch), (0, 0, 0));
                }
                Change::Tick => {
                    filter.advance();
                    exact.now += 1;
                }
                Change::Later(ticks) => {
                    exact.now += ticks;
                    prop_assert_eq!(filter.advance_to((exact.now - begun) as u32 * SECOND), ticks);
                }
                Change::Sweep(buckets) => _ = filter.sweep(buckets),
                Change::Reload => {
                    let bytes = written(|bytes| filter.write_to(bytes));
                    SnapshotReader::new(&bytes[..]).unwrap().check().unwrap();
                    let view = FilterView::<Filter>::from_bytes(&bytes).unwrap();
                    for key in 0..40 {
                        prop_assert_eq!(view.count(&key), exact.count(key));
                        let later = Exact { now: exact.now + 3, windows: exact.windows.clone(), ..exact };
                        let ahead = FilterView::<Filter>::from_bytes(&bytes).unwrap();
                        ahead.advance_to(3 * SECOND);
                        prop_assert_eq!((ahead.count(&key), ahead.contains(&key)), (later.count(key), later.count(key) > 0));
                    }
                    filter = Filter::read_from(&bytes[..], hasher()).unwrap();
                    prop_assert_eq!([filter.config().time_to_live, filter.config().time_to_idle].map(|time| time.is_some()), [counts == Live, counts == Idle]);
                    begun = exact.now;
                }
                Change::Clone => filter = filter.clone(),
            }
        }
        let keys: Vec<u64> = (0..400).collect();
        let (mut told, mut found) = (vec![0; 400], vec![false; 400]);
        filter.count_batch(&keys, &mut told);
        filter.contains_batch(&keys, &mut found);
        for key in keys {
            let count = exact.count(key);
            prop_assert_eq!((filter.count(&key), filter.contains(&key)), (count, count > 0));
            prop_assert_eq!((told[key as usize], found[key as usize]), (count, count > 0));
        }
        (0..=ticks.min(300)).for_each(|_| _ = filter.advance());
        prop_assert!(filter.is_empty() || counts == Stay);
    }
}

/// Keys that share a class, found by a fingerprint of few bits: what the documentation says of them.
#[test]
fn keys_of_one_class_share_a_window() {
    let asked = || builder(8).false_positive_rate(0.11).counter_bits(2).steps(2);
    // Both counts are those of one slot.
    let class_mates = |filter: &Filter| {
        filter.add(&0).unwrap();
        let mate = (1..).find(|key| filter.contains(key)).unwrap();
        filter.clear();
        mate
    };
    let window = asked().time_to_live(2 * SECOND).build().unwrap();
    let mate = class_mates(&window);
    window.add(&0).unwrap();
    window.advance();
    window.add(&mate).unwrap();
    assert_eq!(window.count(&mate), 2, "too high");
    window.advance();
    window.advance();
    assert_eq!(window.count(&mate), 0, "the window of the class has ended, and that of the key alone would not have");
    let quiet = asked().time_to_idle(2 * SECOND).build().unwrap();
    quiet.add(&0).unwrap();
    quiet.advance();
    quiet.add(&mate).unwrap();
    quiet.advance();
    quiet.advance();
    assert_eq!(quiet.count(&mate), 2, "never too low");
    quiet.advance();
    assert_eq!(quiet.count(&mate), 0);
}

/// Of any sequence of attempts, in which keys share classes, no key gets more through within its time than was promised.
#[test]
fn a_limiter_lets_no_more_through_than_promised() {
    const STEPS: u64 = 6;
    for (renews, seed) in (0..40).flat_map(|seed| [(false, seed), (true, seed)]) {
        let asked = builder(60).false_positive_rate(0.11).counter_bits(2).steps(STEPS as u32);
        let time = STEPS as u32 * SECOND;
        let filter = if renews { asked.time_to_idle(time) } else { asked.time_to_live(time) }.build().unwrap();
        let mut random = Rng::with_seed(seed);
        let limit = random.u32(1..=4);
        let most = if renews { limit } else { 2 * limit - 1 } as usize;
        let mut through = vec![VecDeque::<u64>::new(); 60];
        let (mut now, mut fullest) = (0, 0);
        for _ in 0..20_000 {
            now += random.u64(..2);
            filter.advance_to(now as u32 * SECOND / 10);
            let key = (0..3).map(|_| random.u64(..60)).min().expect("three");
            if filter.try_add(&key, limit).unwrap().is_some() {
                let mine = &mut through[key as usize];
                mine.push_back(now);
                while mine[0] + STEPS * 10 <= now {
                    mine.pop_front();
                }
                fullest = fullest.max(mine.len());
                assert!(mine.len() <= most, "{} of {limit} within {STEPS} s", mine.len());
            }
        }
        assert!(renews || limit == 1 || fullest > limit as usize, "the bound is not only that of a window: {fullest}");
        assert!(!renews || fullest == limit as usize, "{fullest} of {limit}");
    }
}

/// No addition is lost and none is too much, on threads beside ticks, splits and lookups: each window of each key lets exactly
/// the limit through.
#[test]
fn threads_are_let_through_up_to_the_limit() {
    const KEYS: u64 = 3_000;
    const LIMIT: u32 = 5;
    for (counts, grows) in [(Live, false), (Live, true), (Idle, false), (Idle, true)] {
        let asked = builder(KEYS as usize / if grows { 100 } else { 1 }).false_positive_rate(1e-5).counter_bits(4);
        let asked = if grows { asked.max_capacity(300_000) } else { asked };
        let filter = counts.of(asked, 6 * SECOND).build().unwrap();
        let passed: Vec<AtomicU32> = (0..KEYS).map(|_| AtomicU32::new(0)).collect();
        for window in 1..=6_u64 {
            let seeds = AtomicU64::new(window * 100);
            thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        let mut random = Rng::with_seed(seeds.fetch_add(1, Ordering::Relaxed));
                        let mut keys: Vec<u64> = (0..KEYS).flat_map(|key| [key; 3]).collect();
                        random.shuffle(&mut keys);
                        for key in keys {
                            // What was added before this lookup began counts, and a count never falls within a window.
                            let before = passed[key as usize].load(Ordering::Acquire);
                            assert!(filter.count(&key) >= before, "{key}");
                            if filter.try_add(&key, LIMIT).unwrap().is_some() {
                                passed[key as usize].fetch_add(1, Ordering::Release);
                            }
                        }
                    });
                }
                scope.spawn(|| {
                    // Windows do not end by these: they begin when none is left of the one before.
                    (0..3).for_each(|_| _ = filter.advance());
                    if grows {
                        filter.reserve(KEYS as usize * 10 * window as usize).unwrap();
                    }
                });
            });
            let wrong = passed.iter().filter(|passed| passed.load(Ordering::Relaxed) != LIMIT).count();
            // Keys that share a class: 3,000 keys at 1e-5 and less.
            assert!(wrong <= 2, "{wrong} keys were not let through {LIMIT} times");
            passed.iter().for_each(|passed| passed.store(0, Ordering::Relaxed));
            (0..8).for_each(|_| _ = filter.advance());
            assert!(filter.is_empty());
        }
        assert_eq!(filter.stats().tables > 4, grows);
    }
}

#[test]
fn merged_counts_add_up_and_live_as_long_as_the_later() {
    for counts in [Stay, Live, Idle] {
        let asked = |bits| builder(1_000).counter_bits(bits).false_positive_rate(1e-5);
        let build = |bits| counts.of(asked(bits), 60 * SECOND).build().unwrap();
        let [one, other] = [(); 2].map(|()| build(3));
        let most = u64::from(one.config().max_count);
        (0..100_u64).for_each(|key| (0..=key % 10).for_each(|_| _ = one.add(&key).unwrap()));
        one.advance_to(30 * SECOND);
        (50..150_u64).for_each(|key| (0..=key % 3).for_each(|_| _ = other.add(&key).unwrap()));
        assert_eq!(one.merge_from(&other).unwrap().inserted, 100);
        let added = |key: u64| [(key < 100, key % 10 + 1), (key >= 50, key % 3 + 1)];
        for key in 0..150 {
            let sum: u64 = added(key).iter().map(|&(is, count)| if is { count.min(most) } else { 0 }).sum();
            assert_eq!(u64::from(one.count(&key)), sum.min(most), "{key}");
        }
        for (seconds, first) in [(70, 50), (90, 50), (110, 150)] {
            one.advance_to(seconds * SECOND);
            assert!((0..150).all(|key| (one.count(&key) > 0) == (counts == Stay || key >= first)), "{seconds} s");
        }
        // Built otherwise: the counter, the policy.
        let others = [Stay, Live, Idle].into_iter().filter(|&other| other != counts);
        let others = others.map(|other| other.of(asked(3), 60 * SECOND).build().unwrap());
        for different in others.chain([build(4)]) {
            assert_eq!(one.merge_from(&different), Err(MergeError::SizesDiffer));
        }
    }
}

/// A count at its maximum may stand for a larger one.
#[test]
fn a_full_count_stays_until_it_dies_or_is_removed() {
    let filter = builder(10).counter_bits(1).time_to_live(60 * SECOND).build().unwrap();
    assert_eq!([(); 4].map(|()| filter.add(&1).unwrap()), [1, 2, 2, 2]);
    assert_eq!([filter.subtract(&1), filter.subtract(&1)], [Some(2); 2]);
    assert_eq!((filter.try_add(&1, 2), filter.try_add(&1, u32::MAX)), (Ok(None), Ok(None)));
    assert!(filter.remove(&1) && filter.is_empty());
    filter.add(&1).unwrap();
    filter.add(&1).unwrap();
    filter.advance_to(71 * SECOND);
    assert_eq!((filter.subtract(&1), filter.add(&1)), (None, Ok(1)));
    let mut left = [Some(9); 3];
    filter.subtract_batch(&[1, 1, 2], &mut left);
    assert_eq!(left, [Some(0), None, None]);
}

#[test]
fn a_full_filter_refuses_new_keys_and_counts_old_ones() {
    let filter = CountingFilter::<u64>::builder().capacity(100).build().unwrap();
    let new = (0..).find(|key| filter.add(key) == Err(InsertError::Full)).unwrap();
    assert!(new > 100);
    assert!((0..new).all(|key| filter.add(&key).unwrap() >= 2));
    assert_eq!(filter.add(&new), Err(InsertError::Full));
    assert_eq!(filter.stats().refused_full, 2);
}
