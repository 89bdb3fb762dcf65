//! The changes between two snapshots, applied to a filter that was loaded from the first.

use crate::support::{Stable as Filter, bytes_of, hasher, stable, stable_builder, stable_growing, stable_of};
use concurrent_cuckoo_filter::{SnapshotError, SnapshotPlace, SnapshotReader, StableHashBuilder};
use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use testkit::format::{crc32c, crc32c_append, seal};
use testkit::{watchdog, written};

fn read(bytes: &[u8]) -> Filter {
    Filter::read_from(bytes, hasher()).unwrap()
}

fn delta(old: &[u8], new: &[u8]) -> Result<Vec<u8>, SnapshotError> {
    let mut bytes = Vec::new();
    SnapshotReader::new(new)?.write_delta_since(SnapshotReader::new(old)?, &mut bytes)?;
    Ok(bytes)
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Insert(u64),
    Remove(usize),
}

/// The operations of several days on a filter of this capacity, which may grow by this factor. With few bits, many keys share a
/// class.
fn days() -> impl Strategy<Value = (usize, Option<usize>, u32, Vec<Vec<Operation>>)> {
    let operation = prop_oneof![
        3 => (0..400_u64).prop_map(Operation::Insert),
        2 => any::<usize>().prop_map(Operation::Remove),
    ];
    let day = prop::collection::vec(operation, 0..300);
    let fixed = (1..400_usize, Just(None), prop_oneof![4..=8_u32, 4..=32_u32]);
    let growing = (1..100_usize, (1..20_usize).prop_map(Some), 6..=20_u32);
    (prop_oneof![fixed, growing], prop::collection::vec(day, 2..5))
        .prop_map(|((capacity, times, bits), days)| (capacity, times, bits, days))
}

proptest! {
    #[test]
    fn a_replica_that_follows_deltas_holds_what_the_filter_holds((capacity, times, bits, days) in days()) {
        let filter = match times {
            None => stable(capacity, bits),
            Some(times) => stable_growing(capacity, capacity * times, bits),
        };
        let mut stored = Vec::new();
        let mut old = bytes_of(&filter, b"");
        let replica = read(&old);
        for (number, day) in days.into_iter().enumerate() {
            for operation in day {
                match operation {
                    Operation::Insert(key) if filter.insert(&key).is_ok() => stored.push(key),
                    Operation::Remove(index) if !stored.is_empty() => {
                        let key = stored.swap_remove(index % stored.len());
                        prop_assert!(filter.remove(&key));
                    }
                    _ => {}
                }
            }
            let new = bytes_of(&filter, &[number as u8]);
            let delta = delta(&old, &new).unwrap();
            let (before, loaded) = (replica.len(), read(&new));
            let report = match replica.apply_delta(&delta[..]) {
                // In a nearly full filter, one of two arrangements has room where the other has none.
                Err(SnapshotError::DeltaRefused { .. }) if filter.load_factor() > 0.8 => return Ok(()),
                report => report.unwrap(),
            };
            prop_assert_eq!(before + report.inserted - report.removed, replica.len());
            prop_assert_eq!(report.metadata, [number as u8]);
            prop_assert_eq!(replica.digest(), filter.digest());
            prop_assert_eq!(replica.digest(), loaded.digest());
            prop_assert_eq!(replica.len(), filter.len());
            for key in 0..600 {
                prop_assert_eq!(replica.count(&key), filter.count(&key), "{}", key);
                prop_assert_eq!(replica.contains(&key), filter.contains(&key));
            }
            old = new;
        }
    }
}

/// The same changes, spread over a filter of 40 shards: 64 bytes per changed shard, and the classes.
#[test]
fn a_thousand_changes_are_some_kilobytes() {
    let filter = stable(1_000_000, 13);
    let keys: Vec<u64> = (0..1_000_000).collect();
    assert_eq!(filter.insert_batch(&keys[..999_500]).refused, []);
    let old = bytes_of(&filter, b"");
    assert!(filter.remove_batch(&keys[..500]).missing.is_empty());
    assert_eq!(filter.insert_batch(&keys[999_500..]).refused, []);
    let new = bytes_of(&filter, b"");
    let delta = delta(&old, &new).unwrap();
    assert!(delta.len() < 1000 * 6 + 64 + 256 + 5 * (64 + 63) + 64, "{} bytes", delta.len());
    let replica = read(&old);
    let report = replica.apply_delta(&delta[..]).unwrap();
    assert_eq!((report.removed, report.inserted), (500, 500));
    assert_eq!(replica.digest(), filter.digest());
    let mut found = vec![false; keys.len()];
    replica.contains_batch(&keys, &mut found);
    assert!(found[500..].iter().all(|&found| found));
}

/// Snapshots whose sizes differ from that of the filter that takes the delta: of few tables and of many, either of which may be
/// the newer one.
#[test]
fn a_growing_filter_may_have_doubled_between_the_two() {
    for (capacity, max_capacity) in [(1_000, 250_000), (20_000, 250_000), (300_000, 2_400_000)] {
        let filter: Filter = stable_growing(capacity, max_capacity, 12);
        let stay = capacity as u64 * 4 / 5;
        (0..stay + 100).for_each(|key| filter.insert(&key).unwrap());
        let small = bytes_of(&filter, b"");
        let tables = filter.stats().tables;
        (stay..stay + 100).for_each(|key| assert!(filter.remove(&key)));
        (1_000_000..1_000_000 + 4 * stay).for_each(|key| filter.insert(&key).unwrap());
        let large = bytes_of(&filter, b"");
        let doublings = filter.stats().doublings;
        assert!(doublings > 0 && (filter.stats().tables > tables || capacity == 1_000));
        let changed = 100 + 4 * stay as usize;
        for (old, new) in [(&small, &large), (&large, &small)] {
            let (replica, whole) = (read(old), read(new));
            let delta = delta(old, new).unwrap();
            // Not each table of the larger one is named.
            let most = 64 + 256 + 6 * changed + tables * 128 + 64;
            assert!(delta.len() <= most, "{} bytes, {most} at the most", delta.len());
            let report = replica.apply_delta(&delta[..]).unwrap();
            assert_eq!(report.inserted + report.removed, changed);
            assert_eq!((replica.digest(), replica.len()), (whole.digest(), whole.len()));
            assert!((0..stay).all(|key| replica.contains(&key)));
            assert!((0..2_000_000).step_by(97).all(|key| replica.count(&key) == whole.count(&key)));
            // Both can return to the earlier state.
            let back = self::delta(&bytes_of(&replica, b""), old).unwrap();
            let _ = replica.apply_delta(&back[..]).unwrap();
            assert_eq!(replica.digest(), read(old).digest());
        }
        // Split, with the same contents.
        let split = read(&small);
        split.reserve(max_capacity - split.len()).unwrap();
        let none = delta(&small, &bytes_of(&split, b"")).unwrap();
        assert_eq!(none.len(), 64 + 256 + 64);
        let _ = read(&small).apply_delta(&none[..]).unwrap();
    }
}

#[test]
fn keys_that_stay_are_found_while_a_delta_is_applied() {
    keys_that_stay_are_found(stable(20_000, 8));
}

/// While tables are refilled and split.
#[test]
fn keys_that_stay_are_found_while_a_delta_is_applied_to_a_growing_filter() {
    keys_that_stay_are_found(stable_growing(18_500, 300_000, 8));
}

/// Keys that are in both snapshots are found at every moment, also where the table is nearly full and keys move.
fn keys_that_stay_are_found(filter: Filter) {
    let _alive = watchdog();
    (0..19_000).for_each(|key| filter.insert(&key).unwrap());
    let snapshots = [0, 1].map(|day| {
        let bytes = bytes_of(&filter, b"");
        if day == 0 {
            (0..9000).for_each(|key| assert!(filter.remove(&key)));
            (20_000..29_000).for_each(|key| filter.insert(&key).unwrap());
        }
        bytes
    });
    let deltas = [delta(&snapshots[0], &snapshots[1]).unwrap(), delta(&snapshots[1], &snapshots[0]).unwrap()];
    let replica = read(&snapshots[0]);
    let (done, rounds) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let keys: Vec<u64> = (9000..19_000).collect();
                let mut found = vec![false; keys.len()];
                while !done.load(Ordering::Relaxed) {
                    assert!(keys.iter().all(|key| replica.contains(key)));
                    replica.contains_batch(&keys, &mut found);
                    assert!(found.iter().all(|&found| found));
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for day in 0..20 {
            let report = replica.apply_delta(&deltas[day % 2][..]).unwrap();
            assert!(report.removed > 8000 && report.inserted > 8000, "{report:?}");
        }
        while rounds.load(Ordering::Relaxed) < 4 {
            thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(replica.digest(), read(&snapshots[0]).digest());
}

/// Two snapshots of a filter that does not grow, or grows to this capacity.
fn small(capacity: usize, most: Option<usize>) -> [Vec<u8>; 2] {
    let filter = most.map_or_else(|| stable(capacity, 13), |most| stable_growing(capacity, most, 13));
    (0..10).for_each(|key| filter.insert(&key).unwrap());
    let old = bytes_of(&filter, b"old");
    (0..3).for_each(|key| assert!(filter.remove(&key)));
    (10..15).for_each(|key| filter.insert(&key).unwrap());
    [old, bytes_of(&filter, b"new")]
}

#[test]
fn a_delta_that_was_cut_off_or_changed_is_refused_and_changes_nothing() {
    cut_off_or_changed(small(20, None));
    cut_off_or_changed(small(10, Some(10)));
}

fn cut_off_or_changed([old, new]: [Vec<u8>; 2]) {
    let delta = delta(&old, &new).unwrap();
    let replica = read(&old);
    let before = bytes_of(&replica, b"old");
    for length in 0..delta.len() {
        assert!(replica.apply_delta(&delta[..length]).is_err(), "{length} bytes");
    }
    let mut changed = delta.clone();
    for bit in 0..delta.len() * 8 {
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(replica.apply_delta(&changed[..]).is_err(), "bit {bit}");
        changed[bit / 8] ^= 1 << (bit % 8);
    }
    assert!(bytes_of(&replica, b"old") == before);
    for other in [&old[..], &old[..2], b"a text"] {
        assert!(matches!(replica.apply_delta(other), Err(SnapshotError::NotADelta)));
    }
    let cut_early = replica.apply_delta(&delta[..3]);
    assert!(matches!(cut_early, Err(SnapshotError::Truncated { place: SnapshotPlace::Header, .. })));
    // The place that the error names.
    for (at, place) in
        [(40, "the header"), (CHANGE + 8, "change 0"), (CHANGE + 64, "shard 0"), (delta.len() - 1, "the trailer")]
    {
        let cut = replica.apply_delta(&delta[..at]).unwrap_err().to_string();
        changed[at] ^= 1;
        let damaged = replica.apply_delta(&changed[..]).unwrap_err().to_string();
        changed[at] ^= 1;
        assert!(cut.ends_with(place) && damaged.starts_with(place), "{place}: {cut}; {damaged}");
    }
    // A version of more than 32 bits.
    changed[12] ^= 1;
    let error = replica.apply_delta(&changed[..]).unwrap_err();
    assert!(matches!(error, SnapshotError::UnknownVersion { found: u32::MAX, known: 2, .. }), "{error}");
    assert_eq!(replica.apply_delta(&delta[..]).unwrap().metadata, b"new");
    assert_eq!(replica.digest(), read(&new).digest());
}

#[test]
fn a_delta_starts_from_what_it_starts_from() {
    let [old, new] = small(20, None);
    let delta = delta(&old, &new).unwrap();
    let replica = read(&old);
    let _ = replica.apply_delta(&delta[..]).unwrap();
    for _ in 0..2 {
        match replica.apply_delta(&delta[..]) {
            Err(SnapshotError::DeltaMismatch { expected, found, .. }) => {
                assert_eq!((expected, found), (read(&old).digest(), replica.digest()));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(replica.digest(), read(&new).digest());
    let written = read(&old);
    written.insert(&100).unwrap();
    assert!(matches!(written.apply_delta(&delta[..]), Err(SnapshotError::DeltaMismatch { .. })));
    // A delta without changes.
    let none = self::delta(&new, &new).unwrap();
    let report = replica.apply_delta(&none[..]).unwrap();
    assert_eq!((report.removed, report.inserted, none.len()), (0, 0, 64 + 256 + 64));
}

#[test]
fn filters_that_were_built_differently_have_no_delta() {
    let [old, new] = small(20, None);
    let delta = delta(&old, &new).unwrap();
    let size = bytes_of(&stable(30, 13), b"");
    let bits = bytes_of(&stable(20, 14), b"");
    for other in [&size, &bits] {
        let refused = self::delta(other, &new);
        assert!(matches!(refused, Err(SnapshotError::DeltaOfAnother { what: "size", .. })), "{refused:?}");
        let refused = read(other).apply_delta(&delta[..]);
        assert!(matches!(refused, Err(SnapshotError::DeltaOfAnother { what: "size", .. })), "{refused:?}");
    }
    let grows: Filter = stable_growing(20, 200, 13);
    let refused = grows.apply_delta(&delta[..]).unwrap_err();
    assert!(matches!(refused, SnapshotError::DeltaOfAnother { what: "size", .. }), "{refused:?}");
    let other_keys: Filter = stable_builder(20, 13).hasher(StableHashBuilder::with_seeds(1, 3)).build().unwrap();
    assert!(matches!(other_keys.apply_delta(&delta[..]), Err(SnapshotError::HasherMismatch { .. })));
    let refused = self::delta(&bytes_of(&other_keys, b""), &new);
    assert!(matches!(refused, Err(SnapshotError::DeltaOfAnother { what: "hasher or its seeds", .. })), "{refused:?}");
    let of_texts = stable_of::<String>(20, 13);
    assert!(matches!(of_texts.apply_delta(&delta[..]), Err(SnapshotError::KeyTypeMismatch { .. })));
    let two = stable(300_000, 4);
    let part = written(|to| two.snapshot().shards(0..1).write_to(to));
    assert!(matches!(self::delta(&part, &bytes_of(&two, b"")), Err(SnapshotError::PartAlone { .. })));
    assert!(matches!(self::delta(&bytes_of(&two, b""), &part), Err(SnapshotError::PartAlone { .. })));
}

#[test]
fn a_damaged_snapshot_gives_no_delta() {
    let [old, new] = small(20, None);
    for length in [0, 100, 256, 300, old.len() - 1] {
        assert!(delta(&old[..length], &new).is_err() && delta(&old, &new[..length]).is_err(), "{length} bytes");
    }
    for at in [100, 300, 330, old.len() - 1] {
        let [mut first, mut second] = [old.clone(), new.clone()];
        first[at] ^= 1;
        second[at] ^= 1;
        assert!(delta(&first, &new).is_err() && delta(&old, &second).is_err(), "{at}");
    }
}

/// The generator polynomial of the checksum, added to two slots of 32 bits, changes both and not the checksum.
#[test]
fn changed_words_of_an_equal_checksum_are_changes() {
    let filter = stable(20, 32);
    (0..20).for_each(|key| filter.insert(&key).unwrap());
    let old = bytes_of(&filter, b"");
    let mut new = old.clone();
    let (words, _) = new[256 + 64..].as_chunks_mut::<8>();
    let is_full = |word: &&mut [u8; 8]| word[..4] != [0; 4] && word[4..] != [0; 4];
    let word = words.iter_mut().find(is_full).unwrap();
    *word = (u64::from_le_bytes(*word) ^ 0x1_05ec_76f1).to_le_bytes();
    let delta = delta(&old, &new).unwrap();
    let replica = read(&old);
    let report = replica.apply_delta(&delta[..]).unwrap();
    assert_eq!((report.removed, report.inserted), (2, 2));
    assert_eq!(replica.digest(), read(&new).digest());
}

/// Without changes, and with matching checksums.
#[test]
fn a_delta_of_a_part_is_refused() {
    let filter = stable(300_000, 13);
    let bytes = bytes_of(&filter, b"");
    let mut part = delta(&bytes, &bytes).unwrap();
    assert_eq!(filter.apply_delta(&part[..]).unwrap().inserted, 0);
    // The number of shards in it, of two.
    part[64 + 32] = 1;
    let origin = seal(&mut part[64..CHANGE], 0);
    seal(&mut part[CHANGE..], origin);
    assert!(matches!(filter.apply_delta(&part[..]), Err(SnapshotError::PartAlone { .. })));
}

/// With matching checksums: no class that the filter does not have, and no other digest.
#[test]
fn changes_that_no_writer_makes_are_refused() {
    changes_of(small(20, None), &[(CHANGE + 40, 1), (CHANGE + 44, 1)]);
    // It has one table, in a filter of two cells, where a fingerprint has 13 bits and its core 12.
    let of_growing = [
        (CHANGE + 40, 1),
        (CHANGE + 44, 1),
        (CHANGE + 44, 2),
        (CHANGE + 44, 255),
        (CHANGE + 47, 1),
        (CHANGE + 66 + 1, 0x20),
    ];
    changes_of(small(10, Some(10)), &of_growing);
}

/// The offset of the head of the change.
const CHANGE: usize = 64 + 256;

/// With these bytes changed by XOR, too.
fn changes_of([old, new]: [Vec<u8>; 2], flipped: &[(usize, u8)]) {
    let good = delta(&old, &new).unwrap();
    // Head, header, change, 8 classes of 6 bytes, trailer.
    assert_eq!(good.len(), CHANGE + 64 + 64 + 64);
    let made = |at: usize, value: &[u8]| {
        let mut bytes = good.clone();
        bytes[at..at + value.len()].copy_from_slice(value);
        let origin = seal(&mut bytes[64..CHANGE], 0);
        let sum = crc32c(&bytes[CHANGE + 64..CHANGE + 128]);
        bytes[CHANGE + 32..CHANGE + 36].copy_from_slice(&sum.to_le_bytes());
        let head = seal(&mut bytes[CHANGE..CHANGE + 64], origin);
        let checksums = crc32c_append(origin, &head.to_le_bytes());
        seal(&mut bytes[CHANGE + 128..], checksums);
        bytes
    };
    assert_eq!(made(0, &[]), good);
    let replica = read(&old);
    let before = replica.digest();
    for (at, value) in [
        // The number of the shard, and of its changes.
        (CHANGE + 8, &1_u64.to_le_bytes()[..]),
        (CHANGE + 16, &u64::MAX.to_le_bytes()),
        (CHANGE + 16, &2_u64.to_le_bytes()),
        (CHANGE + 24, &6_u64.to_le_bytes()),
        (CHANGE + 24, &u64::MAX.to_le_bytes()),
        // A bucket and a fingerprint that do not exist, no fingerprint, and others than before.
        (CHANGE + 64, &[0xff, 0xff]),
        (CHANGE + 66, &(1_u32 << 13).to_le_bytes()),
        (CHANGE + 66, &[0; 4]),
        (CHANGE + 66, &77_u32.to_le_bytes()),
        // Behind the classes.
        (CHANGE + 64 + 48, &[1]),
        // The numbers of the trailer: changes, digests.
        (CHANGE + 128 + 8, &[2]),
        (CHANGE + 128 + 16, &[0x55; 8]),
        (CHANGE + 128 + 24, &[0x55; 8]),
        (CHANGE + 128 + 32, &[1]),
    ] {
        assert!(replica.apply_delta(&made(at, value)[..]).is_err(), "{value:?} at {at}");
    }
    for &(at, bits) in flipped {
        let refused = replica.apply_delta(&made(at, &[good[at] ^ bits])[..]);
        assert!(matches!(refused, Err(SnapshotError::Invalid { .. })), "{bits:x} at {at}: {refused:?}");
    }
    // A shard twice, with successive numbers.
    let mut twice = made(0, &[]);
    let change = twice[CHANGE..CHANGE + 128].to_vec();
    twice.splice(CHANGE..CHANGE, change);
    let trailer = CHANGE + 256;
    let number = |at: usize| u64::from_le_bytes(twice[trailer + at..trailer + at + 8].try_into().unwrap());
    let to = number(16).wrapping_add(2_u64.wrapping_mul(number(24).wrapping_sub(number(16))));
    twice[trailer + 8] = 2;
    twice[trailer + 24..trailer + 32].copy_from_slice(&to.to_le_bytes());
    let checksums = [CHANGE + 60, CHANGE + 188]
        .iter()
        .fold(seal(&mut twice[64..CHANGE], 0), |sum, &at| crc32c_append(sum, &twice[at..at + 4]));
    seal(&mut twice[trailer..], checksums);
    assert!(matches!(replica.apply_delta(&twice[..]), Err(SnapshotError::Invalid { .. })));
    assert_eq!(replica.digest(), before);
    assert!(replica.apply_delta(&good[..]).is_ok());
}
