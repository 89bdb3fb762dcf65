//! Counts that stay and counts that die: the promises to a limiter, on one thread and on several. (`model` checks every answer.)

use crate::support::hasher;
use concurrent_cuckoo_filter::kind::Counting;
use concurrent_cuckoo_filter::{BuildError, Builder, CountingFilter, MergeError, StableHashBuilder};
use fastrand::Rng;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

type Asked = Builder<u64, StableHashBuilder, Counting>;

/// Whether counts die, and by which deadline.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Counts {
    Stay,
    Live,
    Idle,
}

use Counts::{Idle, Live, Stay};

impl Counts {
    fn of(self, builder: Asked, time: Duration) -> Asked {
        match self {
            Stay => builder,
            Live => builder.time_to_live(time),
            Idle => builder.time_to_idle(time),
        }
    }
}

const SECOND: Duration = Duration::from_secs(1);

fn builder(capacity: usize) -> Asked {
    CountingFilter::builder().capacity(capacity).hasher(hasher())
}

#[test]
fn build_refuses_impossible_counters_times_and_rates() {
    let error = |builder: Asked| builder.build().unwrap_err();
    let minute = || builder(10).time_to_live(60 * SECOND);
    assert_eq!(error(builder(10).time_to_live(Duration::ZERO)), BuildError::NoTimeToLive);
    assert!(matches!(error(builder(10).time_to_idle(Duration::MAX)), BuildError::TimeToLiveTooLong { .. }));
    assert!(matches!(error(minute().steps(255)), BuildError::OutOfRange { requested: 255, .. }));
    assert!(matches!(error(minute().counter_bits(17)), BuildError::OutOfRange { requested: 17, .. }));
    assert!(matches!(error(minute().counter_bits(16).steps(254)), BuildError::RateTooLow { widest: 8, .. }));
    // The last of the two options replaces the other.
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

/// In any sequence of attempts, with keys that share classes, no key gets more attempts through within its time than promised.
#[test]
fn a_limiter_lets_no_more_through_than_promised() {
    const STEPS: u64 = 6;
    for (renews, seed) in (0..40).flat_map(|seed| [(false, seed), (true, seed)]) {
        let asked = builder(60).false_positive_rate(0.11).counter_bits(2).steps(STEPS as u32);
        let filter = if renews { Idle } else { Live }.of(asked, STEPS as u32 * SECOND).build().unwrap();
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

/// No addition is lost and none counts twice, on threads concurrent with ticks, splits and lookups: each window of each key lets
/// exactly the limit through.
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
                            // Additions before this lookup began count, and a count never falls within a window.
                            let before = passed[key as usize].load(Ordering::Acquire);
                            assert!(filter.count(&key) >= before, "{key}");
                            if filter.try_add(&key, LIMIT).unwrap().is_some() {
                                passed[key as usize].fetch_add(1, Ordering::Release);
                            }
                        }
                    });
                }
                scope.spawn(|| {
                    // These ticks end no window: one begins only when the one before has ended.
                    (0..3).for_each(|_| _ = filter.advance());
                    if grows {
                        filter.reserve(KEYS as usize * 10 * window as usize).unwrap();
                    }
                });
            });
            let wrong = passed.iter().filter(|passed| passed.load(Ordering::Relaxed) != LIMIT).count();
            // Keys that share a class: 3,000 keys at a rate of at most 1e-5.
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
        // Built with other options: the counter, the policy.
        let others = [Stay, Live, Idle].into_iter().filter(|&other| other != counts);
        let others = others.map(|other| other.of(asked(3), 60 * SECOND).build().unwrap());
        for different in others.chain([build(4)]) {
            assert_eq!(one.merge_from(&different), Err(MergeError::SizesDiffer));
        }
    }
}
