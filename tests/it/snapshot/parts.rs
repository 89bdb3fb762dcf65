//! One filter, built in parts and joined.

use crate::support::{Folder, Stable as Filter, bytes_of, hasher, stable_growing};
use concurrent_cuckoo_filter::{
    Builder, CountingFilter, CuckooFilter, SnapshotError, SnapshotPlace, SnapshotReader, StableHashBuilder,
};
use std::fs::File;
use std::hash::Hash;
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, io};
use testkit::{Shape, Width, assert_matches, watchdog, written};

const PROCESSES: usize = 4;

/// The variables with the number of a process, and the folder for its part.
const NUMBER: &str = "CUCKOO_FILTER_TEST_NUMBER";
const FOLDER: &str = "CUCKOO_FILTER_TEST_FOLDER";

/// The filter that all processes agree on: 5 shards, and keys for 95 % of its slots.
fn empty() -> Filter {
    Filter::with_capacity_and_hasher(1_000_000, hasher())
}

const KEYS: Range<u64> = 0..1_000_000;

fn quarter(number: usize, shards: usize) -> Range<usize> {
    number * shards / PROCESSES..(number + 1) * shards / PROCESSES
}

fn part_path(folder: &Path, number: usize) -> std::path::PathBuf {
    folder.join(format!("part-{number}"))
}

#[test]
fn four_processes_build_one_filter() {
    if let (Ok(number), Some(folder)) = (env::var(NUMBER), env::var_os(FOLDER)) {
        return build_part(number.parse().unwrap(), Path::new(&folder));
    }
    let _alive = watchdog();
    let folder = Folder::new("parts");
    let start = |number: usize| {
        Command::new(env::current_exe().unwrap())
            .args(["--exact", "snapshot::parts::four_processes_build_one_filter"])
            .env(NUMBER, number.to_string())
            .env(FOLDER, &folder.0)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    };
    let processes: Vec<io::Result<Child>> = (0..PROCESSES).map(start).collect();
    for process in processes {
        let output = process.unwrap().wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }

    // In any order of arrival.
    let parts = [2, 0, 3, 1].map(|number| File::open(part_path(&folder.0, number)).unwrap());
    let joined = Filter::join(parts, hasher()).unwrap();
    assert_eq!(joined.len(), KEYS.count());
    assert_eq!(KEYS.filter(|key| !joined.contains(key)).count(), 0);

    let whole = empty();
    KEYS.for_each(|key| whole.insert(&key).unwrap());
    let bytes_of_whole = written(|to| whole.write_to(to));
    assert!(written(|to| joined.write_to(to)) == bytes_of_whole);

    let path = folder.0.join("joined");
    let parts = [3, 1, 0, 2].map(|number| File::open(part_path(&folder.0, number)).unwrap());
    let header = SnapshotReader::join_to_file(parts, &path).unwrap();
    assert_eq!((header.stored, header.part), (KEYS.end, 0..whole.config().shards));
    assert!(std::fs::read(path).unwrap() == bytes_of_whole);
}

/// The work of each process. Two have the memory of a part, and two that of the whole filter.
fn build_part(number: usize, folder: &Path) {
    let filter = empty();
    let mine = quarter(number, filter.config().shards);
    let keys = KEYS.filter(|key| mine.contains(&filter.shard_of(key)));
    if number < 2 {
        let builder = || CuckooFilter::<u64>::builder().capacity(1_000_000).hasher(hasher());
        let layout = builder().layout().unwrap();
        let part = builder().build_shards(layout.part(number, PROCESSES)).unwrap();
        let hashes: Vec<u64> = keys.map(|key| layout.hash(&key)).collect();
        assert_eq!(part.insert_batch(&hashes).unwrap().inserted, hashes.len());
        part.snapshot().save(part_path(folder, number)).unwrap();
    } else {
        keys.for_each(|key| filter.insert(&key).unwrap());
        filter.snapshot().shards(mine).save(part_path(folder, number)).unwrap();
    }
}

/// Small shards of a large filter: 4 bits, and almost no keys.
const USUAL: Shape = Shape { capacity: 300_000, width: Width::Bits(4), stripes: None, seed: 2 };

fn filter<K: ?Sized>(shape: &Shape) -> CuckooFilter<K, StableHashBuilder> {
    shape.builder().hasher(StableHashBuilder::with_seeds(1, shape.seed)).build().unwrap()
}

fn part<K: ?Sized + Hash + 'static>(shape: &Shape, key: &K, shards: Range<usize>) -> Vec<u8> {
    let filter = filter::<K>(shape);
    filter.insert(key).unwrap();
    written(|to| filter.snapshot().shards(shards).write_to(to))
}

#[track_caller]
fn refusal_in_memory(parts: &[Vec<u8>]) -> SnapshotError {
    Filter::join(parts.iter().map(|part| &part[..]), hasher()).map(|_| ()).unwrap_err()
}

/// The error of both ways to join. The one into a file returns it before it writes anything.
#[track_caller]
fn refusal(parts: &[Vec<u8>]) -> SnapshotError {
    let mut written = Vec::new();
    let streamed = SnapshotReader::join_to(parts.iter().map(|part| &part[..]), &mut written).unwrap_err();
    assert!(written.is_empty());
    assert_eq!(streamed.to_string(), refusal_in_memory(parts).to_string());
    streamed
}

#[test]
fn what_surrounds_the_shards_of_a_part_is_ignored() {
    let whole = filter::<u64>(&USUAL);
    (0..1000).for_each(|key| whole.insert(&key).unwrap());
    let part = |shards, metadata: &[u8], with_keys: bool| {
        let snapshot = whole.snapshot().shards(shards).metadata(metadata);
        let snapshot = if with_keys { snapshot } else { snapshot.without_seeds() };
        [written(|to| snapshot.write_to(to)), b"what follows a part".into()].concat()
    };
    let parts = [part(0..1, b"of one machine", true), part(1..2, b"of another", false)];
    let mut readers = parts.each_ref().map(|part| &part[..]);
    let joined = Filter::join(readers.iter_mut(), hasher()).unwrap();
    assert_eq!(readers, [b"what follows a part"; 2]);
    let bytes_of_whole = written(|to| whole.write_to(to));
    assert!(written(|to| joined.write_to(to)) == bytes_of_whole, "no metadata, and all shards");
}

#[test]
fn parts_that_are_no_whole() {
    let shape = Shape { capacity: 700_000, ..USUAL };
    for (parts, said) in [
        (&[][..], "no parts were passed; at least one is needed"),
        (&[(0, 1), (0, 1)], "shard 0 is in two of the parts, 0 and 1, counted from 0"),
        (&[(0, 1), (0, 2)], "shard 0 is in two of the parts, 0 and 1, counted from 0"),
        (&[(0, 3), (1, 2)], "shard 1 is in two of the parts, 0 and 1, counted from 0"),
        (&[(1, 2), (0, 1), (1, 3)], "shard 1 is in two of the parts, 0 and 2, counted from 0"),
        (&[(1, 3)], "shard 0 of 3 is in none of the parts"),
        (&[(2, 3), (0, 1)], "shard 1 of 3 is in none of the parts"),
        (&[(0, 2)], "shard 2 of 3 is in none of the parts"),
        (&[(0, 1)], "shard 1 of 3 is in none of the parts"),
    ] {
        let parts: Vec<Vec<u8>> = parts.iter().map(|&(start, end)| part(&shape, &1_u64, start..end)).collect();
        assert_eq!(refusal(&parts).to_string(), said);
    }
}

/// Any number of parts of any length may follow: the second part is refused by its header.
#[test]
fn a_part_that_comes_again_is_refused_before_it_is_read() {
    let (first, second) = (part(&USUAL, &1_u64, 0..1), part(&USUAL, &1_u64, 1..2));
    let header = 256;
    for parts in [[&first, &first, &second], [&first, &second, &first]] {
        let mut unread = Vec::new();
        let mut readers = parts.map(|part| &part[..]);
        let error = Filter::join(readers.iter_mut(), hasher()).map(drop).unwrap_err();
        assert!(matches!(error, SnapshotError::ShardTwice { number: 0, .. }), "{error:?}");
        unread.extend(readers.iter().map(|rest| rest.len()));
        let again = if parts[1] == parts[0] { 1 } else { 2 };
        assert_eq!(unread[again], first.len() - header);
        assert!(unread[again + 1..].iter().zip(&parts[again + 1..]).all(|(&rest, part)| rest == part.len()));
    }
}

/// Detected by its header, before any of its shards is read.
#[test]
fn a_part_that_is_not_joined() {
    let shape = Shape { capacity: 700_000, ..USUAL };
    for (shards, told) in [(0..2, "shards 0..2 of 3"), (1..3, "shards 1..3 of 3"), (1..2, "shards 1..2 of 3")] {
        let part = part(&shape, &1_u64, shards.clone());
        let mut rest = &part[..];
        let error = Filter::read_from(&mut rest, hasher()).unwrap_err();
        assert_matches!(&error, SnapshotError::PartAlone { part, shards: 3, .. } if *part == shards);
        assert!(error.to_string().contains(told) && error.to_string().contains("`CuckooFilter::join`"), "{error}");
        assert_eq!(part.len() - rest.len(), 256);
    }
}

#[test]
fn parts_of_filters_that_were_built_differently() {
    let first = part(&USUAL, &1_u64, 0..1);
    let of_strings = part(&USUAL, "key", 1..2);
    // A rate that needs as many bits as were given: nothing else differs.
    let rate = Shape { width: Width::Rate(0.2), ..USUAL };
    let bits = Shape { width: Width::Bits(filter::<u64>(&rate).config().fingerprint_bits), ..USUAL };
    let second = |shape| part(&shape, &1_u64, 1..2);
    for (parts, difference) in [
        ([first.clone(), second(Shape { capacity: 310_000, ..USUAL })], "size"),
        ([first.clone(), second(Shape { capacity: 300_001, ..USUAL })], "size"),
        ([first.clone(), second(Shape { width: Width::Bits(5), ..USUAL })], "size"),
        ([part(&rate, &1_u64, 0..1), second(bits)], "false-positive rate"),
        ([first.clone(), second(Shape { seed: 3, ..USUAL })], "hasher or its seeds"),
        ([first, of_strings], "type of the keys"),
    ] {
        let error = refusal(&parts);
        assert!(error.to_string().contains(difference), "{error}");
        assert_matches!(error, SnapshotError::PartsDiffer { what, part: 1, .. } if what == difference, "{difference}");
    }
}

/// Numbers that follow from the option, such as the bits of a tag, are not named.
#[test]
fn parts_of_filters_that_differ_in_one_option() {
    let day = Duration::from_secs(24 * 3600);
    let counting = || CountingFilter::<u64>::builder().capacity(100).hasher(hasher());
    let counted = |builder: Builder<_, _, _>| written(|to| builder.build().unwrap().write_to(to));
    let first = counted(counting().time_to_live(day));
    let grows = |most| bytes_of(&stable_growing::<u64>(100, most, 13), b"");
    for (parts, difference) in [
        ([first.clone(), counted(counting().time_to_idle(day))], "kind"),
        ([first.clone(), counted(counting().time_to_live(2 * day))], "time to live"),
        ([first, counted(counting().time_to_live(day).steps(14))], "tick"),
        ([grows(1000), grows(1001)], "largest capacity"),
    ] {
        let error = SnapshotReader::join_to(parts.iter().map(|part| &part[..]), Vec::new()).unwrap_err();
        assert_matches!(error, SnapshotError::PartsDiffer { what, part: 1, .. } if what == difference, "{difference}");
    }
}

#[test]
fn parts_of_a_filter_of_another_hasher() {
    let other = Shape { seed: 3, ..USUAL };
    let error = refusal_in_memory(&[part(&other, &1_u64, 0..1), part(&other, &1_u64, 1..2)]);
    assert!(matches!(error, SnapshotError::HasherMismatch { .. }), "{error:?}");
    let error = refusal_in_memory(&[part(&USUAL, "key", 0..1), part(&USUAL, "key", 1..2)]);
    assert!(matches!(error, SnapshotError::KeyTypeMismatch { .. }), "{error:?}");
}

/// Each byte of a header, of a head, of words, of the zeros behind them and of the trailer.
#[test]
fn a_damaged_part_is_not_joined_to_a_file() {
    let (first, second) = (part(&USUAL, &1_u64, 0..1), part(&USUAL, &1_u64, 1..2));
    let join = |second: &[u8]| SnapshotReader::join_to([&first[..], second], Vec::new());
    assert_eq!(join(&second).unwrap().stored, 1);
    for at in (0..second.len()).step_by(1009).chain(second.len() - 70..second.len()) {
        let mut damaged = second.clone();
        damaged[at] ^= 1;
        assert!(join(&damaged).is_err(), "byte {at}");
        assert!(join(&second[..at]).is_err(), "cut off at {at}");
    }
    let mut damaged = second.clone();
    damaged[1000] ^= 1;
    let error = join(&damaged).unwrap_err();
    assert!(matches!(error, SnapshotError::Damaged { place: SnapshotPlace::Shard { number: 1, .. }, .. }), "{error:?}");
}

#[test]
fn a_joined_file_has_the_keys_of_the_hasher_if_all_parts_have_them() {
    let filter = filter::<str>(&USUAL);
    filter.insert("key").unwrap();
    let part = |shards, with_keys: bool| {
        let mut bytes = Vec::new();
        let snapshot = filter.snapshot().shards(shards).metadata(b"of a part");
        let snapshot = if with_keys { snapshot } else { snapshot.without_seeds() };
        snapshot.write_to(&mut bytes).unwrap();
        bytes
    };
    for (first, second) in [(true, true), (false, true), (true, false), (false, false)] {
        let parts = [part(1..2, first), part(0..1, second)];
        let mut bytes = Vec::new();
        let header = SnapshotReader::join_to(parts.iter().map(|part| &part[..]), &mut bytes).unwrap();
        assert_eq!(header.has_seeds, first && second);
        let mut whole = Vec::new();
        let snapshot = filter.snapshot();
        let snapshot = if header.has_seeds { snapshot } else { snapshot.without_seeds() };
        snapshot.write_to(&mut whole).unwrap();
        assert!(bytes == whole);
    }
}
