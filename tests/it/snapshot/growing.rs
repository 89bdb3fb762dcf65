//! Growing filters: saved while they grow, and loaded.

use crate::support::{Stable as Filter, bytes_of, check_equal, hasher, stable_growing, with_keys};
use concurrent_cuckoo_filter::{CountingFilter, FilterView, SnapshotError, SnapshotPlace, SnapshotReader};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use testkit::format::{Layout, Sealed, records};
use testkit::{assert_matches, written};

const HEAD: usize = 64;

fn filled(capacity: usize, max_capacity: usize, bits: u32, keys: u64) -> Filter {
    with_keys(stable_growing(capacity, max_capacity, bits), keys)
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

/// Keys that stay are in every snapshot once, and every snapshot is consistent: its counts are those of its words.
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
    check_equal(&joined, &filter, 200_000);
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
    const HEADER: &str = "the header";
    let field = |at: usize, value: u64, len: usize| (at, value.to_le_bytes()[..len].to_vec());
    for (place, expected, (at, value)) in [
        (HEADER, "bits of the reserve is 0", field(160, 0, 1)),
        (HEADER, "bits of the reserve is 9", field(160, 9, 1)),
        (HEADER, "bits of a fingerprint is 31", field(44, 31, 4)),
        (HEADER, "largest capacity is 9", field(168, 9, 8)),
        (HEADER, "largest capacity is 18446744073709551615", field(168, u64::MAX, 8)),
        // One half twice; all cells, and a half.
        ("table 1", "prefix of the shard is 0", field(second + 16, 0, 4)),
        ("the trailer", "", field(first + 20, 0, 1)),
        ("table 0", "prefix of the shard is 1", field(first + 16, 1, 4)),
        ("table 1", "depth of the shard is 0", field(second + 20, 0, 1)),
        ("table 1", "depth of the shard is 2", field(second + 20, 2, 1)),
        ("table 0", "depth of the shard is 255", field(first + 20, 255, 1)),
        ("table 0", "prefix of the shard is 4294967295", field(first + 16, u64::MAX, 4)),
        ("table 1", "number of the shard is 1", field(second + 8, 1, 8)),
        ("table 1", "bits of a fingerprint is 11", field(second + 22, 11, 1)),
        ("table 1", "bits of a fingerprint is 255", field(second + 22, 255, 1)),
        ("table 1", "bits of a slot is 13", field(second + 21, 13, 1)),
        ("table 1", "epoch is 1", field(second + 32, 1, 8)),
        ("table 1", "number of words is 18446744073709551615", field(second + 48, u64::MAX, 8)),
        ("the trailer", "", field(bytes.len() - HEAD + 8, 3, 8)),
    ] {
        let what = if expected.is_empty() { "damaged".into() } else { format!("not valid: {expected}") };
        let expected = format!("{place} of the snapshot is {what}");
        let sealed = Sealed::new(bytes.clone()).with(at, value);
        let view = FilterView::<Filter>::from_bytes(&sealed.bytes);
        assert!(view.is_err(), "{expected}");
        let error = read(&sealed.bytes).unwrap_err().to_string();
        assert!(error.contains(&expected), "{error}, not {expected}");
        assert!(SnapshotReader::new(&sealed.bytes[..]).and_then(SnapshotReader::check).is_err(), "{expected}");
    }
}

/// A later split would move the keys of other cells to the wrong table, and lose keys without a core.
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
        assert_matches!(
            with(stranger),
            Err(SnapshotError::Invalid { place: SnapshotPlace::Table { number: 0, .. }, field: "fingerprint", .. }),
            "{stranger:x}"
        );
    }
}

/// The widest slots have unused bits above the fingerprint where the tag would else lie in two words. A split would take them for
/// bits of the fingerprint.
#[test]
fn unused_bits_of_a_slot_are_0() {
    let mut widths = 0;
    for bits in 8..16 {
        let builder = CountingFilter::<u64>::builder().capacity(10).max_capacity(40).counter_bits(3);
        let filter = builder.fingerprint_bits(bits).hasher(hasher()).build().unwrap();
        (0..5).for_each(|key| _ = filter.add(&key).unwrap());
        let bytes = written(|to| filter.write_to(to));
        let whole = Layout::of(&bytes).unwrap();
        let (layout, record) = records(&bytes, &whole).next().unwrap();
        assert_eq!(u64::from(record[21]), layout.width);
        let (slot, _) = layout.taken(&record[HEAD..HEAD + layout.words]).last().unwrap();
        let unused = layout.fingerprint + layout.beside..layout.width;
        widths += usize::from(!unused.is_empty());
        for bit in unused.map(|bit| slot * layout.width + bit) {
            let at = whole.header + HEAD + bit as usize / 8;
            let sealed = Sealed::new(bytes.clone()).with(at, [bytes[at] ^ 1 << (bit % 8)]);
            let error = CountingFilter::<u64, _>::read_from(&sealed.bytes[..], hasher()).unwrap_err().to_string();
            assert!(error.contains("table 0 of the snapshot is not valid: fingerprint"), "{bits} bits: {error}");
        }
    }
    assert!((2..8).contains(&widths), "{widths} widths");
}

/// The counters of the narrower slots would lie in two words.
#[test]
fn a_table_has_only_widths_with_counters_in_one_word() {
    let builder = CountingFilter::<u64>::builder().capacity(10).max_capacity(640).counter_bits(3);
    let filter = builder.fingerprint_bits(13).hasher(hasher()).build().unwrap();
    (0..100).for_each(|key| _ = filter.add(&key).unwrap());
    let bytes = written(|to| filter.write_to(to));
    let first = Layout::of(&bytes).unwrap().header;
    // The depth, and the bits of a slot and of a fingerprint.
    assert_eq!(bytes[first + 20..first + 23], [1, 20, 16]);
    let sealed = Sealed::new(bytes).with(first + 21, [18, 15]);
    let error = CountingFilter::<u64, _>::read_from(&sealed.bytes[..], hasher()).unwrap_err().to_string();
    assert!(error.contains("table 0 of the snapshot is not valid: bits of a fingerprint is 15"), "{error}");
}
