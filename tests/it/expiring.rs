//! Filters that forget: against exact times, at full load, with concurrent readers.

use concurrent_cuckoo_filter::kind::Expiring;
use concurrent_cuckoo_filter::{BuildError, ExpiringFilter, InsertError};
use concurrent_cuckoo_filter::{Builder, DefaultHashBuilder};
use fastrand::Rng;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn builder(capacity: usize) -> Builder<u64, DefaultHashBuilder, Expiring> {
    ExpiringFilter::builder().capacity(capacity).time_to_live(60 * SECOND)
}

#[test]
fn what_cannot_be_built_is_said() {
    let error = |builder: Builder<u64, DefaultHashBuilder, Expiring>| builder.build().unwrap_err();
    let empty = || ExpiringFilter::<u64>::builder();
    assert_eq!(error(empty().time_to_live(SECOND)), BuildError::NoCapacity);
    assert_eq!(error(empty().capacity(10)), BuildError::NoTimeToLive);
    assert_eq!(error(empty().capacity(10).time_to_live(Duration::ZERO)), BuildError::NoTimeToLive);
    assert_eq!(error(builder(10).stripes(0)), BuildError::NoStripes);
    for (steps, said) in [(0, "0 steps of the time to live were requested; 1 to 254"), (255, "255 steps")] {
        assert!(error(builder(10).steps(steps)).to_string().starts_with(said));
    }
    assert!(matches!(error(builder(10).false_positive_rate(2.0)), BuildError::RateOutOfRange { .. }));
    assert!(matches!(error(builder(usize::MAX)), BuildError::TooLarge { .. }));
    // 28 bits are the widest beside 4, and 24 beside 8; the rate that is named can be had.
    for (steps, widest) in [(2, 30), (14, 28), (254, 24)] {
        let refused = error(builder(1_000_000).steps(steps).false_positive_rate(1e-11));
        let said = refused.to_string();
        let BuildError::RateTooLow { lowest, .. } = refused else { panic!("{refused:?}") };
        assert!(said.contains(&format!("of {widest} bits")), "{said}");
        let named: f64 = said.rsplit(' ').next().unwrap().parse().unwrap();
        assert!(named >= lowest);
        assert_eq!(
            builder(1_000_000).steps(steps).false_positive_rate(named).build().unwrap().config().fingerprint_bits,
            widest
        );
    }
}

#[test]
fn steps_and_rates_choose_the_narrowest_slot() {
    // Steps and rate requested; steps and fingerprint that come of it.
    for (steps, rate, made, bits) in [
        (1, 0.001, 2, 14),
        (2, 0.01, 2, 10),
        (3, 0.001, 6, 13),
        (6, 0.001, 6, 13),
        (7, 0.01, 14, 12),
        (14, 0.001, 14, 16),
        (62, 0.01, 62, 10),
        (63, 0.01, 126, 17),
        (254, 0.001, 254, 16),
    ] {
        let filter = builder(100_000).steps(steps).false_positive_rate(rate).build().unwrap();
        // Rounded up, to the nanosecond.
        let tick = (filter.config().tick.unwrap().as_nanos(), filter.config().time_to_live.unwrap().as_nanos());
        assert_eq!((tick.0, filter.config().fingerprint_bits), (tick.1.div_ceil(made), bits), "{steps}");
    }
}

#[test]
fn any_time_to_live_has_ticks() {
    for time in [Duration::from_nanos(1), Duration::from_nanos(5), SECOND, Duration::from_nanos(u64::MAX)] {
        let filter = ExpiringFilter::<u64>::builder().capacity(10).time_to_live(time).build().unwrap();
        assert!(
            filter.config().tick.unwrap() > Duration::ZERO && filter.config().tick.unwrap().saturating_mul(6) >= time
        );
        filter.insert(&1).unwrap();
        filter.insert_for(&2, time).unwrap();
        filter.insert_for(&3, Duration::ZERO).unwrap();
        filter.advance();
        assert!(filter.contains(&1) && filter.contains(&2) && !filter.contains(&3));
        filter.advance_to(Duration::MAX);
        let ticks = Duration::MAX.as_nanos() / filter.config().tick.unwrap().as_nanos();
        assert_eq!(u128::from(filter.stats().epoch), ticks.min(1 << 63));
        (0..3).for_each(|_| _ = filter.advance());
        assert!(!filter.contains(&1));
        filter.insert(&4).unwrap();
        filter.advance();
        assert!(filter.contains(&4));
    }
}

/// Each operation against the time at which each key was last stored or seen: a key lives as long as was asked, and a step
/// longer at the most, or two if it has a time of its own, but for false positives.
#[test]
fn keys_live_their_time_and_at_most_a_step_longer() {
    for (steps, seed) in [(2, 1), (6, 2), (14, 3), (30, 4), (254, 5)] {
        let filter = builder(20_000).steps(steps).false_positive_rate(1e-4).build().unwrap();
        let (time, tick) = (filter.config().time_to_live.unwrap(), filter.config().tick.unwrap());
        let mut random = Rng::with_seed(seed);
        // When each key dies, at the earliest and at the latest.
        let mut deadlines = HashMap::<u64, [Duration; 2]>::new();
        let (mut now, mut wrong, mut asked) = (Duration::ZERO, 0, 0);
        for _ in 0..100_000 {
            // 1.3 ms each: some 46,000 operations are a window.
            now += Duration::from_micros(random.u64(0..2600));
            if random.u32(..1000) == 0 {
                now += random.u32(..4) * tick / 3;
            }
            filter.advance_to(now);
            let key = random.u64(..20_000);
            let [earliest, latest] = deadlines.get(&key).copied().unwrap_or_default();
            let (lives, dead) = (now < earliest, now >= latest);
            let window = [now + time, now + time + tick];
            let found = match random.u32(..10) {
                0..4 => {
                    let found = filter.see(&key).unwrap();
                    deadlines.insert(key, window);
                    found
                }
                4 => {
                    let found = !filter.insert_unique(&key).unwrap();
                    if !found {
                        deadlines.insert(key, window);
                    }
                    found
                }
                5 if dead && !filter.contains(&key) => {
                    let life = random.u32(..100) * time / 100;
                    filter.insert_for(&key, life).unwrap();
                    deadlines.insert(key, [now + life, now + life + 2 * tick]);
                    false
                }
                6 => {
                    let found = filter.renew(&key);
                    if found {
                        deadlines.insert(key, window);
                    }
                    found
                }
                _ => filter.contains(&key),
            };
            assert!(found || !lives, "{key} is gone before its time");
            asked += u32::from(dead);
            wrong += u32::from(dead && found);
        }
        assert!(asked > 5_000, "{asked}");
        assert!(wrong < asked / 1000, "{wrong} of {asked} dead keys live, at {steps} steps");
    }
}

/// A thousand windows at full load, all keys of a window stored in it and none refused, with concurrent readers of which each answer
/// is checked.
#[test]
fn churn_at_full_load() {
    const CAPACITY: u64 = 1_800;
    const STEPS: u64 = 6;
    const WINDOWS: u64 = if cfg!(miri) { 2 } else { 1_000 };
    let filter = builder(CAPACITY as usize).steps(STEPS as u32).build().unwrap();
    let (stored, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let each_tick = CAPACITY / STEPS;
    let (asked, wrong) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for seed in 0..2 {
            let (filter, stored, done, asked, wrong) = (&filter, &stored, &done, &asked, &wrong);
            scope.spawn(move || {
                let mut random = Rng::with_seed(seed);
                while !done.load(Ordering::Relaxed) {
                    let newest = stored.load(Ordering::Acquire);
                    // Some that live, some that are dead, some between.
                    let key = random.u64(newest.saturating_sub(3 * CAPACITY)..newest.max(1));
                    let begun = filter.stats().epoch;
                    let found = filter.contains(&key);
                    let dies = key / each_tick + STEPS + 1;
                    assert!(found || key >= newest || filter.stats().epoch >= dies, "{key} is gone before its time");
                    if begun >= dies {
                        asked.fetch_add(1, Ordering::Relaxed);
                        wrong.fetch_add(u64::from(found), Ordering::Relaxed);
                    }
                }
            });
        }
        for tick in 0..WINDOWS * STEPS {
            for key in tick * each_tick..(tick + 1) * each_tick {
                // As a way in that asks first and one that does not.
                let result = if key % 2 == 0 { filter.see(&key).map(|_| ()) } else { filter.insert(&key) };
                result.unwrap_or_else(|error| panic!("{key} at {} of {CAPACITY} keys: {error}", filter.len()));
                stored.store(key + 1, Ordering::Release);
            }
            if tick % 3 == 0 {
                filter.sweep(200);
            }
            filter.advance();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(filter.stats().refused_full, 0);
    let (asked, wrong) = (asked.into_inner(), wrong.into_inner());
    // At a load below 1 the rate of 13 bits is 0.00098.
    assert!(wrong as f64 <= 0.00098 * asked as f64 * 1.2 + 30.0, "{wrong} of {asked} dead keys live");
}

/// `see` takes a key for seen that is a false positive, and then its class mate lives longer; nothing else comes of it.
#[test]
fn copies_have_deadlines_of_their_own() {
    let filter = builder(100).build().unwrap();
    for seconds in [10, 30, 50] {
        filter.insert_for(&1, seconds * SECOND).unwrap();
    }
    assert_eq!(filter.len(), 3);
    // Removes the one that dies first, renews the next one.
    assert!(filter.remove(&1) && filter.renew(&1));
    filter.advance_to(65 * SECOND);
    assert!(filter.contains(&1));
    filter.advance_to(70 * SECOND);
    assert!(!filter.contains(&1));
    for _ in 0..8 {
        filter.insert(&2).unwrap();
    }
    assert_eq!(filter.insert(&2), Err(InsertError::TooManyCopies));
    assert_eq!(filter.insert_for(&2, SECOND), Err(InsertError::TooManyCopies));
    assert_eq!(filter.see(&2), Ok(true));
    filter.advance_to(141 * SECOND);
    // Dead copies are room.
    assert_eq!(filter.insert(&2), Ok(()));
    assert_eq!(filter.insert_for(&3, 61 * SECOND), Err(InsertError::BeyondTimeToLive));
}
