//! Filters with a number beside each key: in files, in batches and merged.

use crate::support::hasher;
use concurrent_cuckoo_filter::Builder;
use concurrent_cuckoo_filter::kind::Expiring;
use concurrent_cuckoo_filter::{
    BuildError, CountingFilter, CuckooFilter, ExpiringFilter, MergeError, SnapshotError, SnapshotReader,
    StableHashBuilder,
};
use std::thread;
use std::time::Duration;
use testkit::format::Sealed;
use testkit::written;

const SECOND: Duration = Duration::from_secs(1);

fn builder(capacity: usize) -> Builder<u64, StableHashBuilder, Expiring> {
    ExpiringFilter::builder().capacity(capacity).time_to_live(60 * SECOND).hasher(hasher())
}

fn bytes_of(filter: &ExpiringFilter<u64, StableHashBuilder>) -> Vec<u8> {
    written(|to| filter.write_to(to))
}

fn read(bytes: &[u8], passed: Duration) -> Result<ExpiringFilter<u64, StableHashBuilder>, SnapshotError> {
    let filter = ExpiringFilter::read_from(bytes, hasher())?;
    filter.advance_to(passed);
    Ok(filter)
}

/// A service that is restarted more often than its filter ticks: time goes on all the same.
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
            // A file has parts of 2^32 of a tick, rounded down.
            assert!(
                filter.stats().epoch == u64::from(seconds) / 10 || seconds % 10 == 0,
                "{seconds} s, {up} and {down}"
            );
            assert!(filter.contains(&1) || seconds >= 60, "gone after {seconds} s");
            assert!(!filter.contains(&1) || seconds <= 70, "there after {seconds} s");
        }
    }
}

/// After any pause everything is dead, and time goes on.
#[test]
fn a_pause_of_any_length_uses_no_epochs_up() {
    // The shortest tick there is, and an ordinary one.
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
    let filter = ExpiringFilter::<u64, _>::builder().capacity(100).time_to_live(Duration::from_nanos(300)).steps(254);
    let filter = filter.hasher(hasher()).build().unwrap();
    filter.insert(&1).unwrap();
    filter.advance_to(Duration::from_nanos(299));
    assert!(filter.contains(&1));
    filter.advance_to(Duration::from_nanos(300) + filter.config().tick.unwrap());
    assert!(!filter.contains(&1));
}

#[test]
fn what_is_read_goes_on_as_what_was_written() {
    for (capacity, steps) in [(1_000, 2), (1_000, 6), (300_000, 6), (1_000, 254)] {
        let filter = builder(capacity).steps(steps).build().unwrap();
        filter.advance_to(100 * SECOND);
        let lives: Vec<Duration> = (0..500).map(|key| key * 60 * SECOND / 500).collect();
        for (key, &life) in lives.iter().enumerate() {
            filter.insert_for(&(key as u64), life).unwrap();
        }
        let bytes = bytes_of(&filter);
        let epoch = filter.stats().epoch;
        for passed in [0, 1, 9, 10, 31, 59, 60, 90, 1_000_000] {
            let loaded = read(&bytes, passed * SECOND).unwrap();
            assert_eq!(
                (loaded.capacity(), loaded.config().time_to_live.unwrap(), loaded.config().tick.unwrap()),
                (capacity, 60 * SECOND, filter.config().tick.unwrap())
            );
            // Part of a tick had passed, of which a file has parts of 2^32, rounded down. What is all dead is as old as need be.
            let tick = filter.config().tick.unwrap().as_nanos();
            let due = ((100 * SECOND).as_nanos() % tick + (passed * SECOND).as_nanos()) / tick;
            let made = u128::from(loaded.stats().epoch - epoch);
            assert!(made == due || made + 1 == due || made > 60 * SECOND.as_nanos() / tick, "{made} of {due} ticks");
            for (key, &life) in lives.iter().enumerate() {
                let (found, passed) = (loaded.contains(&(key as u64)), passed * SECOND);
                assert!(found || life < passed, "{key} is gone before its time, after {passed:?}");
                if passed > 60 * SECOND + filter.config().tick.unwrap() {
                    assert!(!found && loaded.is_empty());
                }
            }
            // Time is counted from the loading.
            let passed = passed * SECOND;
            assert_eq!(loaded.advance_to(passed + filter.config().tick.unwrap()), 1);
            loaded.insert(&7_000).unwrap();
            loaded.advance_to(passed + filter.config().tick.unwrap() + 59 * SECOND);
            assert!(loaded.contains(&7_000));
        }
        // Time goes on alike in both.
        let loaded = read(&bytes, Duration::ZERO).unwrap();
        for _ in 0..steps + 3 {
            filter.advance();
            loaded.advance();
            (0..500).for_each(|key| assert_eq!(loaded.contains(&key), filter.contains(&key)));
        }
    }
}

/// Shards are copied at different epochs: each is written with its own, and the reader brings all to the latest.
#[test]
fn a_snapshot_beside_ticks_loses_nothing_that_lives() {
    let filter = builder(400_000).steps(2).build().unwrap();
    let keys: Vec<u64> = (0..50_000).collect();
    let mut ticks_seen = 0;
    for _ in 0..8 {
        assert!(filter.insert_batch(&keys).refused.is_empty());
        // Three ticks are left to each key. Two of them may be made before the shard of a key is copied, and not more.
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
        // What dies there dies here, and no tag of another epoch is left.
        while loaded.stats().epoch < before + 4 {
            loaded.advance();
        }
        assert!(loaded.is_empty());
        filter.clear();
    }
    assert!(ticks_seen <= 16);
}

#[test]
fn files_of_other_kinds_are_refused() {
    let (expiring, counting) = (builder(100).build().unwrap(), CountingFilter::<u64>::builder().capacity(100));
    let (counting, plain) =
        (counting.hasher(hasher()).build().unwrap(), CuckooFilter::<u64, _>::with_capacity_and_hasher(100, hasher()));
    let files =
        [bytes_of(&expiring), written(|bytes| counting.write_to(bytes)), written(|bytes| plain.write_to(bytes))];
    for (number, bytes) in files.iter().enumerate() {
        let results = [
            read(bytes, SECOND).map(|_| ()),
            CountingFilter::<u64, _>::read_from(&bytes[..], hasher()).map(|_| ()),
            CuckooFilter::<u64, _>::read_from(&bytes[..], hasher()).map(|_| ()),
        ];
        for (asked, result) in results.into_iter().enumerate() {
            assert_eq!(result.is_ok(), asked == number, "{result:?}");
            assert!(asked == number || matches!(result, Err(SnapshotError::KindMismatch { .. })), "{result:?}");
        }
        let other = StableHashBuilder::with_seeds(1, 3);
        assert!(ExpiringFilter::<u64, _>::read_from(&bytes[..], other).is_err());
    }
    let whole = &files[0];
    assert!(matches!(
        ExpiringFilter::<String, _>::read_from(&whole[..], hasher()),
        Err(SnapshotError::KeyTypeMismatch { .. })
    ));
}

/// Under checksums that match.
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
        // A bit more of a fingerprint, and tags would lie in two words.
        (44, u64::from_le_bytes(sealed.bytes[44..52].try_into().unwrap()) + 1, "bits beside a fingerprint"),
    ] {
        match read(&sealed.clone().with(at, value.to_le_bytes()).bytes, SECOND) {
            Err(SnapshotError::Invalid { field, .. }) => assert_eq!(field, named),
            other => panic!("{named}: {other:?}"),
        }
    }
}

#[test]
fn merged_keys_have_the_time_that_was_left_to_them() {
    // What has passed of their ticks when they are merged, and of the other's when its keys were stored.
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
    let seeds = ExpiringFilter::builder().capacity(2_000).time_to_live(60 * SECOND);
    let seeds = seeds.hasher(StableHashBuilder::with_seeds(3, 4)).build().unwrap();
    assert_eq!(one.merge_from(&seeds), Err(MergeError::HashersDiffer));
}

#[test]
fn batches_do_what_loops_do() {
    for count in [0, 1, 15, 16, 17, 1_000, 40_000] {
        let (one, other) = (builder(50_000).build().unwrap(), builder(50_000).build().unwrap());
        // Each key twice, the second time some way behind.
        let keys: Vec<u64> = (0..count).map(|number| number * 2 / 3).collect();
        let mut seen = vec![true; keys.len()];
        let report = one.see_batch(&keys, &mut seen);
        let by_loop: Vec<bool> = keys.iter().map(|key| other.see(key).unwrap()).collect();
        assert_eq!(seen, by_loop);
        assert_eq!(report.inserted, seen.iter().filter(|&&seen| !seen).count());
        assert_eq!(report.inserted + report.present, keys.len());
        let mut found = vec![false; keys.len()];
        one.contains_batch(&keys, &mut found);
        assert!(found.iter().all(|&found| found));
        let absent: Vec<u64> = (1_000_000..1_000_000 + count).collect();
        one.contains_batch(&absent, &mut found);
        assert_eq!(found, absent.iter().map(|key| one.contains(key)).collect::<Vec<_>>());
        assert_eq!(one.len(), other.len());
    }
    // Refused keys are named by their place.
    let full = builder(10_000).build().unwrap();
    let keys: Vec<u64> = (0..40_000).collect();
    let report = full.par_insert(&keys);
    assert_eq!(report.inserted, full.len());
    assert_eq!(report.inserted + report.refused.len(), keys.len());
    assert!(report.inserted > 10_000 && report.refused.is_sorted_by_key(|refusal| refusal.index));
    let refused: Vec<u64> = report.refused.iter().map(|refusal| keys[refusal.index]).collect();
    let stored = keys.iter().filter(|key| refused.binary_search(key).is_err());
    assert!(stored.into_iter().all(|key| full.contains(key)));
    assert!(refused.iter().filter(|key| full.contains(key)).count() < refused.len() / 100);
}

/// The clock of a filter ends where that of its files does.
#[test]
fn what_is_written_at_the_end_of_time_is_read() {
    let second = Duration::from_secs(1);
    let filter = ExpiringFilter::<u64>::builder().capacity(100).time_to_live(6 * second).build().unwrap();
    filter.advance_to(Duration::MAX);
    filter.advance();
    filter.insert(&1).unwrap();
    let mut bytes = Vec::new();
    filter.write_to(&mut bytes).unwrap();
    let read = ExpiringFilter::<u64>::read_from(&bytes[..], filter.hasher().clone()).unwrap();
    assert!(read.contains(&1));
    let longest = Duration::from_nanos(u64::MAX);
    let build = |time| ExpiringFilter::<u64>::builder().capacity(100).time_to_live(time).build();
    assert!(build(longest).is_ok());
    let error = build(longest + second).unwrap_err();
    assert!(matches!(error, BuildError::TimeToLiveTooLong { .. }), "{error}");
}
