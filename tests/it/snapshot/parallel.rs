//! Snapshots that are checked on several threads while they are read: the same filters, and the same errors.

use crate::support::{Stable as Filter, bytes_of, hasher, pool, stable, with_keys};
use concurrent_cuckoo_filter::kind::Plain;
use concurrent_cuckoo_filter::{SnapshotError, SnapshotReader};
use std::io::{self, Read};

fn snapshot(bits: u32, keys: u64) -> Vec<u8> {
    let filter = with_keys(stable(900_000, bits), keys);
    assert!(filter.config().shards > 3);
    bytes_of(&filter, b"offset 17")
}

/// Reads with one thread and with pools of 1, 2 and 5, from within and from outside, and checks that all results agree.
#[track_caller]
fn read<R: Read + Send>(name: &str, reader: impl Fn() -> R + Sync) -> Result<Filter, SnapshotError> {
    let result = Filter::read_from(reader(), hasher());
    let par_read = || SnapshotReader::new(reader())?.in_parallel().into_filter_with_hasher::<u64, _, Plain>(hasher());
    let in_pool = |threads| pool(threads).install(par_read);
    for other in [par_read(), in_pool(1), in_pool(2), in_pool(5)] {
        match (&result, other) {
            (Ok(filter), Ok(other)) => {
                assert!(bytes_of(filter, b"") == bytes_of(&other, b""), "{name}: the filters differ");
                assert_eq!(filter.len(), other.len(), "{name}");
            }
            (Err(error), Err(other)) => assert_eq!(error.to_string(), other.to_string(), "{name}"),
            (one, other) => panic!("{name}: {one:?} and {other:?}"),
        }
    }
    result
}

/// The error is the one that one thread would find first, whichever shard is checked first.
#[test]
fn of_several_errors_the_first_is_told() {
    let bytes = snapshot(8, 1000);
    let damaged = |places: &[usize]| {
        let mut bytes = bytes.clone();
        places.iter().for_each(|&place| bytes[place] ^= 1);
        bytes
    };
    let mut found = Vec::new();
    for first in (0..bytes.len()).step_by(bytes.len() / 40) {
        let later = first + (bytes.len() - first) / 2;
        for bytes in [damaged(&[first]), damaged(&[first, later]), damaged(&[first, later, bytes.len() - 1])] {
            found.push(read(&format!("byte {first}"), || &bytes[..]).unwrap_err().to_string());
            read(&format!("byte {first}, {later} in all"), || &bytes[..later]).unwrap_err();
        }
        read(&format!("{first} in all"), || &bytes[..first]).unwrap_err();
    }
    found.dedup();
    assert!(found.len() > 4, "not every shard was named: {found:?}");
}

struct Failing<'a>(&'a [u8]);

impl Read for Failing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() { Err(io::Error::other("the line is dead")) } else { self.0.read(buffer) }
    }
}

#[test]
fn an_error_of_the_reader_is_returned() {
    let bytes = snapshot(8, 1000);
    for len in [0, 100, bytes.len() / 2, bytes.len() - 1] {
        let error = read(&format!("after {len} bytes"), || Failing(&bytes[..len])).unwrap_err();
        assert_eq!(error.to_string(), "the line is dead");
    }
}
