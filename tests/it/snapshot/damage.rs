//! Snapshots that arrive incomplete or are made up: an error or a filter that works, never a panic. (`kinds` tests damage to each
//! byte.)

use crate::support::{Stable as Filter, bytes_of, hasher, stable, with_keys};
use concurrent_cuckoo_filter::{SnapshotError, SnapshotReader};
use proptest::prelude::*;
use std::io::{self, ErrorKind, Read};
use testkit::assert_matches;
use testkit::format::Sealed;

/// The bytes of the header: its fields, the names of the hash function and of the key type, the metadata, zeros, the checksum.
const HEADER: usize = 256;

const TRAILER: usize = 64;

fn snapshot(capacity: usize, bits: u32, keys: u64) -> Vec<u8> {
    bytes_of(&with_keys(stable(capacity, bits), keys), b"offset 17")
}

fn small() -> Vec<u8> {
    snapshot(10, 13, 10)
}

#[test]
fn shards_in_another_order_are_refused() {
    let bytes = snapshot(300_000, 4, 1000);
    let shard = (bytes.len() - HEADER - TRAILER) / 2;
    let (rest, trailer) = bytes.split_at(bytes.len() - TRAILER);
    let (rest, second) = rest.split_at(rest.len() - shard);
    let (header, first) = rest.split_at(rest.len() - shard);
    let in_another_order = Filter::read_from(&[header, second, first, trailer].concat()[..], hasher());
    assert_matches!(
        in_another_order,
        Err(SnapshotError::Invalid { field: "number of the shard", found, .. }) if found == "1"
    );
}

/// Returns one byte per read, and is interrupted before each.
struct Halting<'a> {
    bytes: &'a [u8],
    interrupted: bool,
}

impl Read for Halting<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.interrupted = !self.interrupted;
        if self.interrupted {
            return Err(ErrorKind::Interrupted.into());
        }
        let len = buffer.len().min(1);
        self.bytes.read(&mut buffer[..len])
    }
}

#[test]
fn reads_that_are_short_or_interrupted_are_repeated() {
    let bytes = small();
    let filter = Filter::read_from(Halting { bytes: &bytes, interrupted: false }, hasher()).unwrap();
    assert_eq!(filter.len(), 10);
}

#[test]
fn an_error_of_the_writer_is_returned() {
    let filter = Filter::read_from(&small()[..], hasher()).unwrap();
    for length in 0..small().len() {
        let mut room = vec![0; length];
        let result = filter.snapshot().metadata(b"offset 17").write_to(&mut room[..]);
        assert_matches!(result, Err(SnapshotError::Io(error)) if error.kind() == ErrorKind::WriteZero, "{length}");
    }
}

/// Runs every operation on a loaded filter; its answers are as wrong as its contents.
fn use_it(filter: &Filter) {
    let before = filter.len();
    for key in 0..50 {
        let stored = usize::from(filter.insert(&key).is_ok());
        assert_eq!(filter.len(), before + stored);
        assert!(stored == 0 || filter.contains(&key) && filter.count(&key) > 0 && filter.remove(&key));
    }
    assert_eq!(filter.len(), before);
    let bytes = bytes_of(filter, b"");
    assert_eq!(Filter::read_from(&bytes[..], hasher()).unwrap().len(), before);
    let copy = Filter::read_from(&bytes[..], hasher()).unwrap();
    let report = copy.merge_from(filter).unwrap();
    assert_eq!(report.inserted + report.refused, before);
    filter.clear();
    assert!(filter.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn bytes_of_nothing(bytes in prop::collection::vec(any::<u8>(), 0..400), begins_well: bool) {
        let beginning = if begins_well { &small()[..16] } else { &[] };
        let bytes = [beginning, &bytes].concat();
        prop_assert!(Filter::read_from(&bytes[..], hasher()).is_err());
    }

    #[test]
    fn bytes_left_out_or_doubled(ends: [prop::sample::Index; 2], double: bool) {
        let good = small();
        let [a, b] = ends.map(|end| end.index(good.len()));
        let (from, to) = (a.min(b), a.max(b));
        let rest = if double { from } else { to };
        let bytes = [&good[..if double { to } else { from }], &good[rest..]].concat();
        // A reader may have more than the snapshot, and a doubled part may equal what follows.
        prop_assert_eq!(Filter::read_from(&bytes[..], hasher()).is_ok(), bytes.starts_with(&good));
    }

    /// With matching checksums, so that each field is checked. A filter that loads works.
    #[test]
    fn fields_made_up(
        header in prop::collection::vec((4..48_usize, any::<u64>(), 0..5_usize), 0..3),
        shard in prop::collection::vec((0..18_usize, any::<u64>(), 0..5_usize), 0..3),
    ) {
        let value = |kind, random: u64| [random, random % 40, 0, u64::MAX, random % (1 << 20)][kind];
        let mut sealed = Sealed::new(small());
        for (field, random, kind) in header {
            sealed = sealed.with(4 * field, (value(kind, random) as u32).to_le_bytes());
        }
        for (field, random, kind) in shard {
            sealed = sealed.with(HEADER + 8 * field, value(kind, random).to_le_bytes());
        }
        if let Ok(filter) = Filter::read_from(&sealed.bytes[..], hasher()) {
            use_it(&filter);
        }
        if let Ok(reader) = SnapshotReader::new(&sealed.bytes[..])
            && let Ok(filter) = reader.into_filter() {
                use_it(&filter);
            }
    }

    /// Any contents, with the right count.
    #[test]
    fn fingerprints_made_up(words in prop::collection::vec(any::<u64>(), 9), gaps: u64) {
        let mut sealed = Sealed::new(snapshot(10, 13, 0));
        for (number, word) in words.iter().enumerate() {
            // Some slots are left empty. 10 buckets of 52 bits end after 8 bits of the ninth word.
            let mask = if gaps >> number & 1 == 1 { !gaps } else { u64::MAX };
            let behind = if number == 8 { 0xff } else { u64::MAX };
            sealed = sealed.with(HEADER + 64 + 8 * number, (word & mask & behind).to_le_bytes());
        }
        let count = match Filter::read_from(&sealed.bytes[..], hasher()) {
            Ok(filter) => filter.len() as u64,
            Err(SnapshotError::Invalid { field: "number of fingerprints", found, .. }) => found.parse().unwrap(),
            Err(error) => panic!("{error:?}"),
        };
        let (in_shard, in_all) = (HEADER + 40, sealed.bytes.len() - TRAILER + 16);
        let counted = sealed.with(in_shard, count.to_le_bytes()).with(in_all, count.to_le_bytes());
        let filter = Filter::read_from(&counted.bytes[..], hasher()).unwrap();
        prop_assert_eq!(filter.len() as u64, count);
        use_it(&filter);
    }
}
