//! Filters queried in place: the answers of the saved filter, and its errors.

use crate::support::{self, Folder, Stable as Filter, hasher, written_while};
use concurrent_cuckoo_filter::{
    Builder, CuckooFilter, ExpiringFilter, FilterView, MappedFilter, SnapshotError, SnapshotPlace, StableHashBuilder,
};
use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::time::Duration;
use testkit::assert_matches;
use testkit::format::Sealed;

type Mapped = MappedFilter<Filter>;
type View<'a> = FilterView<'a, Filter>;

/// With keys from 0 on; with few bits, some classes may be full.
fn filled(builder: Builder<u64>, keys: u64) -> Filter {
    let filter: Filter = builder.hasher(hasher()).build().unwrap();
    (0..keys).for_each(|key| _ = filter.insert(&key));
    filter
}

fn filter(capacity: usize, bits: u32, keys: u64) -> Filter {
    filled(CuckooFilter::builder().capacity(capacity).fingerprint_bits(bits), keys)
}

fn growing(bits: u32, keys: u64) -> Filter {
    filled(CuckooFilter::builder().capacity(1000).max_capacity(1_000_000).fingerprint_bits(bits), keys)
}

fn bytes_of(filter: &Filter) -> Vec<u8> {
    support::bytes_of(filter, b"today")
}

/// Present keys and others, one by one and in batches of all lengths.
macro_rules! check_answers {
    ($view:expr, $filter:expr, $asked:expr) => {{
        let (view, filter) = (&$view, $filter);
        let keys: Vec<u64> = (0..$asked).collect();
        let expected: Vec<bool> = keys.iter().map(|key| filter.contains(key)).collect();
        for (key, &expected) in keys.iter().zip(&expected) {
            assert_eq!(view.contains(key), expected, "{key}");
        }
        for length in (0..100.min(keys.len())).chain([keys.len()]) {
            let mut found = vec![!expected[0]; length];
            view.contains_batch(&keys[..length], &mut found);
            assert_eq!(found, expected[..length], "{length} keys");
        }
        let hashes: Vec<u64> = keys.iter().map(|key| filter.hash(key)).collect();
        let mut found = vec![false; keys.len()];
        view.hashed().contains_batch(&hashes, &mut found);
        assert_eq!(found, expected);
        assert_eq!(hashes.iter().map(|&hash| view.hashed().contains(&hash)).collect::<Vec<_>>(), expected);
        assert_eq!(view.header().stored, filter.len() as u64);
        assert_eq!(view.header().metadata, b"today");
    }};
}

/// In memory at any address, and in a file.
fn answers_as_the_filter(filter: &Filter, asked: u64, offset: usize) {
    let moved = [vec![0xff; offset], bytes_of(filter)].concat();
    check_answers!(View::from_bytes(&moved[offset..]).unwrap(), filter, asked);
    let file = Folder::file_of(&moved[offset..]);
    let mapped = Mapped::open(file.path()).unwrap();
    mapped.check().unwrap();
    check_answers!(mapped, filter, asked);
}

#[test]
fn views_and_mapped_files_answer_as_the_filter_at_every_width_and_address() {
    for bits in 4..=32 {
        for (capacity, keys) in [(0, 0), (1, 1), (50, 40), (1000, 1000)] {
            answers_as_the_filter(&filter(capacity, bits, keys), 3 * keys + 100, bits as usize % 9);
        }
    }
    // Two shards or more, and sizes on both sides of those from which lines are prefetched.
    for (capacity, bits) in [(300_000, 4), (300_000, 13), (600_000, 17), (2_500_000, 32)] {
        answers_as_the_filter(&filter(capacity, bits, capacity as u64), 2000, 0);
    }
}

/// Before and between splits, with tables of several widths: one run, two runs, and both.
#[test]
fn views_and_mapped_files_answer_as_a_filter_that_grows() {
    for (bits, keys) in [(6, 0), (6, 40_000), (8, 100_000), (12, 70_000), (13, 250_000), (16, 33_000), (25, 140_000)] {
        let filter = growing(bits, keys);
        assert_eq!(filter.stats().splits > 0, keys > 0);
        answers_as_the_filter(&filter, keys.max(3000), bits as usize % 9);
    }
    let shards = CuckooFilter::builder().capacity(600_000).max_capacity(4_000_000).fingerprint_bits(13);
    answers_as_the_filter(&filled(shards, 1_300_000), 1_310_000, 0);
}

#[test]
fn a_snapshot_in_the_program_itself() {
    static LIST: &[u8] = include_bytes!("../golden/format-2/13-bits.snapshot");
    let list = FilterView::<CuckooFilter<String, StableHashBuilder>>::from_bytes(LIST).unwrap();
    assert_eq!(list.header().stored, 100);
    assert!((0..100).all(|number| list.contains(&format!("key {number}"))));
    let given = StableHashBuilder::with_seeds(0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210);
    assert!(FilterView::<CuckooFilter<String, _>>::from_bytes_with_hasher(LIST, given).unwrap().contains("key 7"));
}

/// More than 2^26 buckets, which are drawn from all bits of a hash.
#[test]
fn filters_of_300_million_keys_answer_alike_in_every_way() {
    const KEYS: u64 = 2000;
    let filter = filter(300_000_000, 4, KEYS);
    // A second copy goes to the other bucket, and one of the two stays.
    (0..KEYS).for_each(|key| assert!(filter.insert(&key).is_ok() && filter.remove(&key)));
    let bytes = bytes_of(&filter);
    check_answers!(View::from_bytes(&bytes).unwrap(), &filter, 3 * KEYS);
    let growing = CuckooFilter::builder().capacity(300_000_000).max_capacity(600_000_000).fingerprint_bits(8);
    let growing = filled(growing, KEYS);
    for filter in [filter, growing] {
        let keys: Vec<u64> = (0..3 * KEYS).collect();
        let expected: Vec<bool> = keys.iter().map(|key| filter.contains(key)).collect();
        let (mut in_batch, mut in_parallel) = (vec![false; keys.len()], vec![false; keys.len()]);
        filter.contains_batch(&keys, &mut in_batch);
        filter.par_contains(&keys, &mut in_parallel);
        assert!(in_batch == expected && in_parallel == expected && expected[..KEYS as usize] == [true; KEYS as usize]);
    }
}

/// (`kinds` tests the errors of `open`.)
#[test]
fn open_checks_header_and_length_and_check_the_rest() {
    let (_folder, path) = Folder::with_path("mapped-damaged");
    let good = bytes_of(&filter(300_000, 4, 1000));
    let record = (good.len() - 256 - 64) / 2;
    for (at, place) in [
        (256 + 63, "shard 0"),
        (256 + 64 + record / 2, "shard 0"),
        (256 + record + record / 2, "shard 1"),
        (good.len() - 1, "the trailer"),
    ] {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let mapped = Mapped::open(&path).unwrap();
        let error = mapped.check().unwrap_err();
        assert_matches!(error, SnapshotError::Damaged { place: found, .. } if found.to_string() == place, "{place}");
    }
    // The trailer has the number of stored keys.
    let mut bytes = good.clone();
    let end = bytes.len();
    bytes[end - 64..].fill(0xff);
    fs::write(&path, &bytes).unwrap();
    let mapped = Mapped::open(&path).unwrap();
    assert!(mapped.header().stored <= mapped.header().config.capacity as u64 * 2 + 100);
    fs::write(&path, [&good[..], &[0]].concat()).unwrap();
    assert!(matches!(Mapped::open(&path), Err(SnapshotError::TrailingBytes)));
}

/// A wrong length: the actual one counts.
#[test]
fn a_header_that_announces_more_than_an_address_space() {
    let bytes = Sealed::new(bytes_of(&filter(300_000, 4, 10)))
        .with(16, (1_u64 << 40).to_le_bytes())
        .with(32, (1_u64 << 40).to_le_bytes());
    let error = Mapped::open(Folder::file_of(&bytes.bytes).path()).map(drop).unwrap_err();
    assert_matches!(error, SnapshotError::Truncated { place: SnapshotPlace::Shard { number: 2, .. }, .. });
}

#[test]
fn open_refuses_other_hashers_key_types_parts_and_no_files() {
    let (folder, path) = Folder::with_path("mapped-refused");
    let filter = filter(300_000, 4, 1000);
    filter.save(&path).unwrap();
    assert!(Mapped::open_with_hasher(&path, StableHashBuilder::with_seeds(1, 2)).is_ok());
    let other = Mapped::open_with_hasher(&path, StableHashBuilder::with_seeds(1, 3));
    assert!(matches!(other, Err(SnapshotError::HasherMismatch { .. })));
    assert!(matches!(MappedFilter::<CuckooFilter<u64>>::open(&path), Err(SnapshotError::HasherMismatch { .. })));
    let other = MappedFilter::<CuckooFilter<u32, StableHashBuilder>>::open(&path);
    assert!(matches!(other, Err(SnapshotError::KeyTypeMismatch { .. })));
    filter.snapshot().without_seeds().save(&path).unwrap();
    assert!(matches!(Mapped::open(&path), Err(SnapshotError::NoSeeds { .. })));
    filter.snapshot().shards(0..1).save(&path).unwrap();
    assert!(matches!(Mapped::open(&path), Err(SnapshotError::PartAlone { shards: 2, .. })));
    fs::write(&path, []).unwrap();
    assert!(matches!(Mapped::open(&path), Err(SnapshotError::Truncated { place: SnapshotPlace::Header, .. })));
    fs::remove_file(&path).unwrap();
    for (path, kind) in [(&path, ErrorKind::NotFound), (&folder.0, ErrorKind::InvalidInput)] {
        assert_matches!(
            Mapped::open(path),
            Err(SnapshotError::Io(error)) if error.kind() == kind && error.to_string().contains("mapped-refused"),
            "{kind:?}"
        );
    }
}

/// Writes to a mapped file change answers, and nothing else.
#[test]
fn a_file_that_is_changed_under_it_gives_other_answers() {
    use std::os::unix::fs::FileExt;
    let (_folder, path) = Folder::with_path("mapped-changed");
    let filter = filter(10_000, 16, 10_000);
    filter.save(&path).unwrap();
    let mapped = Mapped::open(&path).unwrap();
    assert!((0..10_000).all(|key| mapped.contains(&key)));
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_at(&vec![0; 15_000], 256 + 64).unwrap();
    let missed = (0..10_000).filter(|key| !mapped.contains(key)).count();
    assert!(missed > 1000, "{missed}");
    assert!(mapped.check().is_err());
}

type Seen = ExpiringFilter<u64, StableHashBuilder>;

const HOUR: Duration = Duration::from_secs(3600);

fn seen(capacity: usize, steps: u32) -> Seen {
    let builder = ExpiringFilter::builder().capacity(capacity).time_to_live(24 * HOUR).steps(steps);
    builder.hasher(hasher()).build().unwrap()
}

/// At any time, like a filter that is loaded at that time.
#[test]
fn a_view_of_an_expiring_filter_answers_as_one_that_was_loaded_then() {
    for (capacity, steps, ticks) in [(1000, 2, 1), (1000, 6, 1), (300_000, 6, 1), (300_000, 6, 9), (1000, 254, 1)] {
        let filter = seen(capacity, steps);
        for (step, key) in (0..6 * 150_u64).enumerate() {
            if step % 150 == 0 {
                filter.advance_to(Duration::from_secs(step as u64 * 100));
            }
            filter.insert_for(&key, HOUR * (1 + key % 24) as u32).unwrap();
        }
        // Ticks between two records, so that their epochs differ: after the header and the head of the first.
        let mut pieces = 0;
        let bytes = written_while(&filter, |_| {
            pieces += 1;
            if pieces == 3 {
                (0..ticks).for_each(|_| _ = filter.advance());
            }
        });
        let view = FilterView::<Seen>::from_bytes(&bytes).unwrap();
        let keys: Vec<u64> = (0..2000).collect();
        let mut before = usize::MAX;
        for minutes in [0, 1, 20, 60, 100, 241, 500, 700, 1000, 1441, 1681, 3000, u64::MAX / 60] {
            let passed = Duration::from_secs(60 * minutes);
            let loaded = Seen::read_from(&bytes[..], hasher()).unwrap();
            loaded.advance_to(passed);
            let mut found = vec![false; keys.len()];
            view.advance_to(passed);
            view.contains_batch(&keys, &mut found);
            for (key, &found) in keys.iter().zip(&found) {
                assert_eq!(found, loaded.contains(key), "{key} after {minutes} minutes");
                assert_eq!(found, view.contains(key));
            }
            let alive = found.iter().filter(|&&found| found).count();
            assert!(alive <= before, "{alive} after {minutes} minutes");
            before = alive;
        }
        assert_eq!(before, 0);
    }
}

/// Functions of users, over views of any kind and of some kinds.
#[test]
fn users_write_functions_over_views() {
    use concurrent_cuckoo_filter::Viewed;
    use std::hash::{BuildHasher, Hash};
    fn slots<F: Viewed>(view: &FilterView<'_, F>) -> u64 {
        view.header().stored
    }
    fn any<F: Viewed<Key: Hash + Sized, Hasher: BuildHasher>>(view: &FilterView<'_, F>, keys: &[F::Key]) -> bool {
        keys.iter().any(|key| view.contains(key))
    }
    let bytes = bytes_of(&filter(10, 8, 10));
    let view = View::from_bytes(&bytes).unwrap();
    assert!(any(&view, &[1, 2]) && slots(&view) > 0);
}
