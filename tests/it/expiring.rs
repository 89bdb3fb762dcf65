//! Expiring filters: at times between ticks, at full load, with concurrent readers, in files and merged. (`model` checks every
//! answer at ticks.)

use crate::support::hasher;
use concurrent_cuckoo_filter::kind::Expiring;
use concurrent_cuckoo_filter::{
    BuildError, Builder, ExpiringFilter, FilterView, InsertError, MergeError, SnapshotError, SnapshotReader,
    StableHashBuilder,
};
use fastrand::Rng;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use testkit::format::Sealed;
use testkit::{assert_matches, written};

const SECOND: Duration = Duration::from_secs(1);

type Seen = ExpiringFilter<u64, StableHashBuilder>;
type Asked = Builder<u64, StableHashBuilder, Expiring>;

fn builder(capacity: usize) -> Asked {
    ExpiringFilter::builder().capacity(capacity).time_to_live(60 * SECOND).hasher(hasher())
}

fn bytes_of(filter: &Seen) -> Vec<u8> {
    written(|to| filter.write_to(to))
}

fn read(bytes: &[u8], passed: Duration) -> Result<Seen, SnapshotError> {
    let filter = ExpiringFilter::read_from(bytes, hasher())?;
    filter.advance_to(passed);
    Ok(filter)
}

#[test]
fn build_refuses_impossible_times_steps_and_rates() {
    let error = |builder: Asked| builder.build().unwrap_err();
    let empty = || ExpiringFilter::builder().hasher(hasher());
    assert_eq!(error(empty().capacity(10)), BuildError::NoTimeToLive);
    assert_eq!(error(empty().capacity(10).time_to_live(Duration::ZERO)), BuildError::NoTimeToLive);
    for (steps, said) in [(0, "0 steps of the time to live were requested; 1 to 254"), (255, "255 steps")] {
        assert!(error(builder(10).steps(steps)).to_string().starts_with(said));
    }
    assert_matches!(error(builder(usize::MAX)), BuildError::TooLarge { .. });
    assert_matches!(error(builder(10).false_positive_rate(2.0)), BuildError::RateOutOfRange { .. });
    let beyond = builder(10).build().unwrap().insert_for(&3, 61 * SECOND);
    assert_eq!(beyond, Err(InsertError::BeyondTimeToLive));
    // 28 bits are the widest fingerprint beside 4 bits, and 24 beside 8; the rate that the error names is possible.
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
    // Requested steps and rate; resulting steps and fingerprint.
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
        // Rounded up to the nanosecond.
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

/// Each operation against the time at which each key was last stored or seen: a key lives as long as requested, and at most one
/// step longer, or two if it has a time of its own, except for false positives.
#[test]
fn keys_live_their_time_and_at_most_a_step_longer() {
    for (steps, seed) in [(2, 1), (6, 2), (14, 3), (30, 4), (254, 5)] {
        let filter = builder(20_000).steps(steps).false_positive_rate(1e-4).build().unwrap();
        let (time, tick) = (filter.config().time_to_live.unwrap(), filter.config().tick.unwrap());
        let mut random = Rng::with_seed(seed);
        // The earliest and the latest time of death of each key.
        let mut deadlines = HashMap::<u64, [Duration; 2]>::new();
        let (mut now, mut wrong, mut asked) = (Duration::ZERO, 0, 0);
        for _ in 0..100_000 {
            // 1.3 ms each: some 46,000 operations per window.
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

/// A thousand windows at full load, where all keys of a window are stored and none is refused, with concurrent readers whose every
/// answer is checked.
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
                    // Some live keys, some dead ones, and some between.
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
                // By an operation that asks first and by one that does not.
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
    // At a load below 1, the rate of 13 bits is 0.00098.
    assert!(wrong as f64 <= 0.00098 * asked as f64 * 1.2 + 30.0, "{wrong} of {asked} dead keys live");
}

/// A service that is restarted more often than its filter ticks: time continues nevertheless.
#[test]
fn no_part_of_a_tick_is_lost_at_a_restart() {
    for (up, down) in [(9, 0), (0, 9), (3, 4), (10, 7)] {
        let mut filter = builder(1_000).build().unwrap();
        filter.insert(&1).unwrap();
        let mut before = Duration::ZERO;
        for seconds in (up + down..).step_by(up as usize + down as usize).take_while(|&seconds| seconds <= 100) {
            filter.advance_to(before + up * SECOND);
            before = down * SECOND;
            filter = read(&bytes_of(&filter), before).unwrap();
            // A file stores the elapsed part of a tick in units of 2^-32, rounded down.
            assert!(
                filter.stats().epoch == u64::from(seconds) / 10 || seconds % 10 == 0,
                "{seconds} s, {up} and {down}"
            );
            assert!(filter.contains(&1) || seconds >= 60, "gone after {seconds} s");
            assert!(!filter.contains(&1) || seconds <= 70, "there after {seconds} s");
        }
    }
}

/// After any pause everything is dead, and time continues.
#[test]
fn a_pause_of_any_length_uses_no_epochs_up() {
    // The shortest possible tick, and an ordinary one.
    for tick in [Duration::from_nanos(1), 10 * SECOND] {
        let bytes = bytes_of(&builder(1_000).time_to_live(6 * tick).steps(6).build().unwrap());
        for pause in [1_000_000 * SECOND, Duration::from_secs(1 << 32)] {
            let filter = read(&bytes, pause).unwrap();
            filter.insert(&1).unwrap();
            assert_eq!(filter.advance_to(pause + 6 * tick), 6);
            assert!(filter.contains(&1));
            filter.advance_to(pause + 7 * tick);
            assert!(!filter.contains(&1), "time stands still after a pause of {pause:?}");
        }
    }
}

/// Where a step is no whole number of nanoseconds, all ticks together are longer than the time to live.
#[test]
fn a_key_lives_one_tick_longer_at_the_most_however_short_it_is() {
    let filter = builder(100).time_to_live(Duration::from_nanos(300)).steps(254).build().unwrap();
    filter.insert(&1).unwrap();
    filter.advance_to(Duration::from_nanos(299));
    assert!(filter.contains(&1));
    assert!(bytes_of(&filter.clone()) == bytes_of(&filter), "a clone has the part of a tick that has passed");
    filter.advance_to(Duration::from_nanos(300) + filter.config().tick.unwrap());
    assert!(!filter.contains(&1));
}

/// Shards are copied at different epochs. Each is written with its own, and the reader advances all to the latest.
#[test]
fn a_snapshot_beside_ticks_loses_nothing_that_lives() {
    let filter = builder(400_000).steps(2).build().unwrap();
    let keys: Vec<u64> = (0..50_000).collect();
    let mut ticks_seen = 0;
    for _ in 0..8 {
        assert!(filter.insert_batch(&keys).refused.is_empty());
        // Each key has three ticks left. At most two of them may be made before the shard of a key is copied.
        let (before, bytes) = thread::scope(|scope| {
            let before = filter.stats().epoch;
            let ticks = scope.spawn(|| (0..2).for_each(|_| _ = filter.advance()));
            let bytes = bytes_of(&filter);
            ticks.join().unwrap();
            (before, bytes)
        });
        let loaded = read(&bytes, Duration::ZERO).unwrap();
        ticks_seen += loaded.stats().epoch - before;
        assert!(keys.iter().all(|key| loaded.contains(key)), "{} ticks", loaded.stats().epoch - before);
        // Keys that die there die here, and no tag of another epoch is left.
        while loaded.stats().epoch < before + 4 {
            loaded.advance();
        }
        assert!(loaded.is_empty());
        filter.clear();
    }
    assert!(ticks_seen <= 16);
}

/// With matching checksums.
#[test]
fn a_time_that_no_filter_has_is_refused() {
    let filter = builder(100).build().unwrap();
    filter.insert(&1).unwrap();
    let sealed = Sealed::new(bytes_of(&filter));
    assert_eq!(SnapshotReader::new(&sealed.bytes[..]).unwrap().header().stored, 1);
    let (tick, epoch) = (9_999_999_999_u64, (1_u64 << 63) + 1);
    for (at, value, named) in [
        (184, tick, "tick"),
        (256 + 32, epoch, "epoch"),
        // With a fingerprint one bit wider, tags would be in two words.
        (44, u64::from_le_bytes(sealed.bytes[44..52].try_into().unwrap()) + 1, "bits beside a fingerprint"),
    ] {
        let result = read(&sealed.clone().with(at, value.to_le_bytes()).bytes, SECOND);
        assert_matches!(result, Err(SnapshotError::Invalid { field, .. }) if field == named, "{named}");
    }
}

#[test]
fn merged_keys_have_the_time_that_was_left_to_them() {
    // The elapsed parts of their ticks when they are merged, and of the other's when its keys were stored.
    for (mine, theirs, stored) in [(0, 0, 0), (9, 10, 9), (0, 9, 0), (9, 30, 2)] {
        let [one, other] = [(); 2].map(|()| builder(2_000).build().unwrap());
        one.advance_to((1_000 + mine) * SECOND);
        other.advance_to(stored * SECOND);
        for seconds in 0..60_u32 {
            (0..10).for_each(|key| other.insert_for(&u64::from(seconds * 10 + key), seconds * SECOND).unwrap());
        }
        other.advance_to(theirs * SECOND);
        assert_eq!(one.merge_from(&other).unwrap().refused, 0);
        for passed in 0..100_u32 {
            one.advance_to((1_000 + mine + passed) * SECOND);
            let passed = passed + theirs - stored;
            for seconds in 0..60_u32 {
                let alive = (0..10).filter(|key| one.contains(&u64::from(seconds * 10 + key))).count();
                assert!(alive == 10 || seconds <= passed, "{seconds} at {passed}");
                assert!(alive <= 1 || passed < seconds + 30 + theirs - stored, "{seconds} at {passed}: {alive}");
            }
        }
    }
    let one = builder(2_000).build().unwrap();
    let different = builder(2_000).time_to_live(61 * SECOND).build().unwrap();
    assert_eq!(one.merge_from(&different), Err(MergeError::SizesDiffer));
}

/// The clock of a filter ends where that of its files does.
#[test]
fn what_is_written_at_the_end_of_time_is_read() {
    let filter = builder(100).time_to_live(6 * SECOND).build().unwrap();
    filter.advance_to(Duration::MAX);
    filter.advance();
    filter.insert(&1).unwrap();
    assert!(Seen::read_from(&bytes_of(&filter)[..], hasher()).unwrap().contains(&1));
    let longest = Duration::from_nanos(u64::MAX);
    let build = |time| builder(100).time_to_live(time).build();
    assert!(build(longest).is_ok());
    let error = build(longest + SECOND).unwrap_err();
    assert!(matches!(error, BuildError::TimeToLiveTooLong { .. }), "{error}");
}

/// Parts of filters that were built at different moments, and of one filter that was saved at different moments.
#[test]
fn joined_keys_keep_the_time_that_they_had_left() {
    for grows in [false, true] {
        let builder = || if grows { builder(600_000).max_capacity(1_200_000) } else { builder(600_000) };
        let build = || builder().steps(6).build().unwrap();
        let (old, young) = (build(), build());
        let shards = old.config().shards;
        // Six steps and a half: the eight epochs of the tags have nearly completed a cycle.
        old.advance_to(65 * SECOND);
        let life = |key: u64| SECOND * (10 + key % 50) as u32;
        let keys = 0..20_000_u64;
        for (filter, key) in [&old, &young].into_iter().flat_map(|filter| keys.clone().map(move |key| (filter, key))) {
            filter.insert_for(&key, life(key)).unwrap();
        }
        let part = |filter: &Seen, shards| written(|to| filter.snapshot().shards(shards).write_to(to));
        let parts = [part(&old, 0..1), part(&young, 1..shards)];
        let parts = || parts.iter().map(|part| &part[..]);
        let mut whole = Vec::new();
        SnapshotReader::join_to(parts(), &mut whole).unwrap();
        let view = FilterView::<Seen>::from_bytes(&whole).unwrap();
        let (joined, read) = (Seen::join(parts(), hasher()).unwrap(), read(&whole, Duration::ZERO).unwrap());
        for passed in [0, 9, 29, 49, 59, 100].map(|seconds| SECOND * seconds) {
            joined.advance_to(passed);
            read.advance_to(passed);
            view.advance_to(passed);
            for key in keys.clone() {
                let found = [joined.contains(&key), read.contains(&key), view.contains(&key)];
                assert!(found == [true; 3] || passed >= life(key), "{key} after {passed:?}: {found:?}");
                assert!(found[0] == found[1] && found[0] == found[2], "{key} after {passed:?}: {found:?}");
            }
        }
        assert!(keys.clone().all(|key| !joined.contains(&key)), "nothing lives for ever");
    }
}

/// A key may live a step longer than requested, so with two steps half as many slots again are in use.
#[test]
fn room_is_reserved_for_keys_that_live_on_for_a_step() {
    let builder = || builder(20_000).max_capacity(1_000_000).steps(2);
    let filter = builder().build().unwrap();
    filter.reserve(700_000).unwrap();
    let reserved = filter.memory_usage();
    assert!(builder().memory_usage_at(700_000).unwrap().abs_diff(reserved) < reserved / 20);
    (0..1_050_000).for_each(|key| filter.insert(&key).unwrap());
    assert_eq!(filter.memory_usage(), reserved);
    // 700,000 keys are alive, and there is room for 300,000 more.
    assert_eq!((filter.reserve(300_000), filter.reserve(310_000)), (Ok(()), Err(InsertError::Full)));
}
