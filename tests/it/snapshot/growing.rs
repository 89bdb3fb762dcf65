//! Filters that grow: saved while they do, and loaded as they were.

use crate::support::{Stable as Filter, bytes_of, hasher, stable_growing};
use concurrent_cuckoo_filter::{FilterView, SnapshotError, SnapshotPlace, SnapshotReader};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use testkit::format::{Layout, Sealed, fingerprints, records};
use testkit::written;

const HEAD: usize = 64;

fn filled(capacity: usize, max_capacity: usize, bits: u32, keys: u64) -> Filter {
    let filter = stable_growing(capacity, max_capacity, bits);
    (0..keys).for_each(|key| filter.insert(&key).unwrap());
    filter
}

fn read(bytes: &[u8]) -> Result<Filter, SnapshotError> {
    Filter::read_from(bytes, hasher())
}

/// Some hundred bytes: two tables, of 13 and of 12 bits.
fn small() -> Vec<u8> {
    let filter = filled(10, 10, 13, 23);
    assert_eq!(filter.stats().tables, 2);
    bytes_of(&filter, b"")
}

#[track_caller]
fn check_equal(loaded: &Filter, saved: &Filter, keys: u64) {
    assert_eq!((loaded.len(), loaded.capacity()), (saved.len(), saved.capacity()));
    assert_eq!(
        (loaded.config().max_capacity, loaded.config().fingerprint_bits),
        (saved.config().max_capacity, saved.config().fingerprint_bits)
    );
    // Without the tables that were refilled.
    assert!(loaded.memory_usage() <= saved.memory_usage());
    assert_eq!(loaded.stats().expected_false_positive_rate, saved.stats().expected_false_positive_rate);
    assert_eq!((loaded.load_factor(), loaded.digest()), (saved.load_factor(), saved.digest()));
    let (loaded_stats, stats) = (loaded.stats(), saved.stats());
    assert_eq!((loaded_stats.tables, loaded_stats.doublings), (stats.tables, stats.doublings));
    assert_eq!(loaded_stats.splits, 0, "since it was loaded");
    for key in 0..2 * keys {
        assert_eq!(loaded.contains(&key), saved.contains(&key), "{key}");
        assert!(key % 100 != 0 || loaded.count(&key) == saved.count(&key), "{key}");
    }
}

#[test]
fn what_was_saved_is_what_is_loaded_and_it_goes_on_growing() {
    for (capacity, max_capacity, bits, keys) in [
        (1_000, 240_000, 13, 0),
        (1_000, 240_000, 13, 20_000),
        (1_000, 240_000, 8, 100_000),
        (1_000, 60_000, 17, 40_000),
        (1_000, 240_000, 28, 130_000),
        (300_000, 1_200_000, 13, 700_000),
        (10, 10, 6, 12),
    ] {
        let filter = filled(capacity, max_capacity, bits, keys);
        let bytes = bytes_of(&filter, b"");
        let reader = SnapshotReader::new(&bytes[..]).unwrap();
        assert_eq!(reader.header().config.max_capacity, max_capacity);
        assert_eq!((reader.header().stored, reader.header().config.fingerprint_bits), (keys, bits));
        assert_eq!(fingerprints(&bytes).unwrap().count() as u64, keys);
        SnapshotReader::new(&bytes[..]).unwrap().check().unwrap();
        let loaded = reader.into_filter_with_hasher(hasher()).unwrap();
        check_equal(&loaded, &filter, keys);
        check_equal(
            &SnapshotReader::new(&bytes[..]).unwrap().in_parallel().into_filter_with_hasher(hasher()).unwrap(),
            &loaded,
            keys,
        );
        check_equal(&filter.clone(), &loaded, keys);
        assert_eq!(bytes_of(&loaded, b""), bytes);
        // It splits, is removed from and cleared.
        for key in keys..max_capacity as u64 {
            loaded.insert(&key).unwrap();
        }
        assert!((0..max_capacity as u64).all(|key| loaded.contains(&key)));
        assert_eq!(loaded.len() as u64, keys.max(max_capacity as u64));
        (0..keys).for_each(|key| assert!(loaded.remove(&key), "{key}"));
        let again = read(&bytes_of(&loaded, b"")).unwrap();
        assert_eq!((again.len(), again.digest()), (loaded.len(), loaded.digest()));
        loaded.clear();
        assert!(loaded.is_empty() && read(&bytes_of(&loaded, b"")).unwrap().is_empty());
    }
}

/// Keys that stay are in every snapshot, once, and every snapshot is one: its counts are those of its words.
#[test]
fn snapshots_of_a_filter_that_splits_meanwhile_have_every_key() {
    const STABLE: u64 = 10_000;
    let filter = filled(1_000, 480_000, 16, STABLE);
    let writing = AtomicBool::new(true);
    thread::scope(|scope| {
        let saver = scope.spawn(|| {
            let mut saved = 0;
            while writing.load(Ordering::Relaxed) || saved < 2 {
                for loaded in [read(&bytes_of(&filter, b"")).unwrap(), filter.clone()] {
                    assert!((0..STABLE).all(|key| loaded.contains(&key)), "a key that stays is not in a copy");
                    for key in (0..STABLE).step_by(50) {
                        assert!(loaded.count(&key) < 3, "a key is in a copy more often than it was stored");
                    }
                }
                saved += 1;
            }
        });
        let writers = [1_u64, 2].map(|thread| {
            let filter = &filter;
            scope.spawn(move || {
                for number in 0..200_000 {
                    let key = thread << 40 | number;
                    filter.insert(&key).unwrap();
                    assert!(number % 3 != 0 || filter.remove(&key));
                }
            })
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        writing.store(false, Ordering::Relaxed);
        saver.join().unwrap();
    });
    assert!(filter.stats().splits > 8);
}

#[test]
fn shards_of_a_filter_that_grows_are_written_apart_and_joined() {
    let filter = filled(600_000, 2_400_000, 13, 1_500_000);
    let shards = filter.config().shards;
    assert!(shards > 2 && filter.stats().tables > shards);
    let parts = [1..shards, 0..1].map(|part| written(|to| filter.snapshot().shards(part).write_to(to)));
    let stored = parts.each_ref().map(|part| SnapshotReader::new(&part[..]).unwrap().header().stored);
    assert_eq!(stored.iter().sum::<u64>(), filter.len() as u64);
    let joined = Filter::join(parts.iter().map(|part| &part[..]), hasher()).unwrap();
    check_equal(&joined, &filter, 100_000);
    assert_eq!(bytes_of(&joined, b""), bytes_of(&filter, b""));
    let mut whole = Vec::new();
    SnapshotReader::join_to(parts.iter().map(|part| &part[..]), &mut whole).unwrap();
    assert_eq!(whole, bytes_of(&filter, b""));
    assert!(matches!(read(&parts[0]), Err(SnapshotError::PartAlone { .. })));
    assert!(matches!(Filter::join([&parts[0][..]], hasher()), Err(SnapshotError::ShardMissing { number: 0, .. })));
    let deeper = written(|to| stable_growing::<u64>(600_000, 4_800_000, 13).snapshot().shards(0..1).write_to(to));
    let other = Filter::join([&parts[0][..], &deeper], hasher());
    assert!(matches!(other, Err(SnapshotError::PartsDiffer { part: 1, .. })), "{other:?}");
}

#[test]
fn cut_off_or_with_one_bit_flipped_anywhere() {
    let mut bytes = small();
    let (header, trailer) = (256, bytes.len() - HEAD);
    assert!(read(&bytes).is_ok());
    for length in 0..bytes.len() {
        let place = match read(&bytes[..length]) {
            Err(SnapshotError::Truncated { place, .. }) => place,
            other => panic!("the first {length} bytes: {other:?}"),
        };
        match place {
            SnapshotPlace::Header => assert!(length < header),
            SnapshotPlace::Table { number, .. } => {
                let first = records(&bytes, &Layout::of(&bytes).unwrap()).next().unwrap().1.len();
                assert_eq!(number, usize::from(length >= header + first), "{length} bytes");
            }
            place => assert!(place == SnapshotPlace::Trailer && length >= trailer, "{length} bytes: {place:?}"),
        }
    }
    for bit in 0..bytes.len() * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(read(&bytes).is_err(), "bit {bit} is not missed");
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}

/// All checksums match here.
#[test]
fn numbers_that_no_writer_puts_there_are_named() {
    let bytes = small();
    let whole = Layout::of(&bytes).unwrap();
    let lengths: Vec<usize> = records(&bytes, &whole).map(|(_, record)| record.len()).collect();
    let (first, second) = (whole.header, whole.header + lengths[0]);
    assert_eq!(
        [bytes[second + 16], bytes[second + 20], bytes[second + 21], bytes[second + 22]],
        [1, 1, 13 - 1, 13 - 1]
    );
    let field = |at: usize, value: u64, len: usize| (at, value.to_le_bytes()[..len].to_vec());
    for (expected, changes) in [
        ("the header of the snapshot is not valid: bits of the reserve is 0", vec![field(160, 0, 1)]),
        ("the header of the snapshot is not valid: bits of the reserve is 9", vec![field(160, 9, 1)]),
        ("the header of the snapshot is not valid: bits of the reserve is 1", vec![field(44, 31, 4)]),
        ("the header of the snapshot is not valid: largest capacity is 9", vec![field(168, 9, 8)]),
        (
            "the header of the snapshot is not valid: largest capacity is 18446744073709551615",
            vec![field(168, u64::MAX, 8)],
        ),
        // One half twice; all, and a half.
        ("table 1 of the snapshot is not valid: prefix of the shard is 0", vec![field(second + 16, 0, 4)]),
        ("trailer of the snapshot is damaged", vec![field(first + 20, 0, 1)]),
        ("table 0 of the snapshot is not valid: prefix of the shard is 1", vec![field(first + 16, 1, 4)]),
        ("table 1 of the snapshot is not valid: depth of the shard is 0", vec![field(second + 20, 0, 1)]),
        ("table 1 of the snapshot is not valid: depth of the shard is 2", vec![field(second + 20, 2, 1)]),
        ("table 0 of the snapshot is not valid: depth of the shard is 255", vec![field(first + 20, 255, 1)]),
        (
            "table 0 of the snapshot is not valid: prefix of the shard is 4294967295",
            vec![field(first + 16, u64::MAX, 4)],
        ),
        ("table 1 of the snapshot is not valid: number of the shard is 1", vec![field(second + 8, 1, 8)]),
        ("table 1 of the snapshot is not valid: bits of a fingerprint is 11", vec![field(second + 22, 11, 1)]),
        ("table 1 of the snapshot is not valid: bits of a fingerprint is 255", vec![field(second + 22, 255, 1)]),
        ("table 1 of the snapshot is not valid: bits of a slot is 13", vec![field(second + 21, 13, 1)]),
        ("table 1 of the snapshot is not valid: epoch is 1", vec![field(second + 32, 1, 8)]),
        (
            "table 1 of the snapshot is not valid: number of words is 18446744073709551615",
            vec![field(second + 48, u64::MAX, 8)],
        ),
        ("trailer of the snapshot is damaged", vec![field(bytes.len() - HEAD + 8, 3, 8)]),
    ] {
        let sealed = changes.iter().fold(Sealed::new(bytes.clone()), |sealed, (at, value)| sealed.with(*at, value));
        let view = FilterView::<Filter>::from_bytes(&sealed.bytes);
        assert!(view.is_err(), "{expected}");
        let error = read(&sealed.bytes).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}, not {expected}");
        assert!(SnapshotReader::new(&sealed.bytes[..]).and_then(SnapshotReader::check).is_err(), "{expected}");
    }
}

/// A later split would take what is not of a table into another one, and lose what has no core.
#[test]
fn fingerprints_that_a_table_cannot_hold_are_refused() {
    for (bytes, stranger) in [(small(), 1 << 12 | 1), (bytes_of(&filled(10, 10, 13, 5), b""), 1 << 12)] {
        let whole = Layout::of(&bytes).unwrap();
        let (layout, record) = records(&bytes, &whole).next().unwrap();
        let in_one_word = |slot: u64| slot * 13 % 64 + 13 <= 64;
        let mut taken = layout.taken(&record[HEAD..HEAD + layout.words]);
        let (slot, value) = taken.find(|&(slot, _)| in_one_word(slot)).unwrap();
        let (place, shift) = (HEAD + slot as usize * 13 / 64 * 8, slot * 13 % 64);
        let word = u64::from_le_bytes(record[place..place + 8].try_into().unwrap());
        let with = |other: u64| {
            let word = word & !(0x1fff << shift) | other << shift;
            read(&Sealed::new(bytes.clone()).with(whole.header + place, word.to_le_bytes()).bytes).map(drop)
        };
        with(value ^ 32 | 1).unwrap();
        match with(stranger) {
            Err(SnapshotError::Invalid {
                place: SnapshotPlace::Table { number: 0, .. }, field: "fingerprint", ..
            }) => {}
            other => panic!("{stranger:x}: {other:?}"),
        }
    }
}
