//! Any bytes read as a snapshot: an error, or a filter that works and is written as it was read.
//!
//! ```text
//! cargo +nightly fuzz run snapshot -- -max_total_time=120
//! ```
//!
//! Hardly any change of a snapshot gets past its checksums, so each input is read three times: as it is; with its
//! checksums made right, which leaves numbers and lengths to be refused; and with all made right that stands around its
//! header and its words.

#![no_main]

mod mend;

use concurrent_cuckoo_filter::{CuckooFilter, SnapshotHeader, SnapshotReader, StableHashBuilder};
use libfuzzer_sys::fuzz_target;

type Filter = CuckooFilter<u64, StableHashBuilder>;

/// In a longer snapshot the slots are not counted: that takes long.
const COUNTED: usize = 1 << 14;

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    if let Some(bytes) = mend::checksums(bytes) {
        read(&bytes);
    }
    if let Some(bytes) = mend::all(bytes) {
        read(&bytes);
    }
});

/// As the files of the corpus were written.
fn hasher() -> StableHashBuilder {
    StableHashBuilder::with_keys(1, 2)
}

fn read(bytes: &[u8]) {
    let Ok(reader) = SnapshotReader::new(bytes) else { return };
    let header = reader.header().clone();
    let Ok(filter) = reader.into_filter::<u64, _>(hasher()) else { return };
    assert_eq!(header.part(), 0..filter.shards());

    let again = written(&filter, &header);
    // The type and the keys may have been left out, or belong to another hasher; of an equal header all is equal.
    let length = mend::header_length(&again).expect("written whole");
    if again[..length] == bytes[..length] {
        assert_eq!(again, bytes[..again.len()]);
    }
    if again.len() < COUNTED {
        assert_eq!(mend::taken(&again), Some(filter.len() as u64));
    }
    let reread = Filter::read_from(&again[..], hasher()).expect("it was just written");
    assert_eq!(reread.len(), filter.len());
    assert_eq!(written(&reread, &header), again);
    work(&filter);
}

fn written(filter: &Filter, header: &SnapshotHeader) -> Vec<u8> {
    let snapshot = filter.snapshot().metadata(header.metadata());
    let snapshot = if header.has_keys() { snapshot } else { snapshot.without_keys() };
    let mut bytes = Vec::new();
    snapshot.write_to(&mut bytes).expect("what was read can be written");
    bytes
}

/// Whatever stands in the words, nothing that is promised breaks.
fn work(filter: &Filter) {
    let before = filter.len();
    for key in 0..8 {
        if filter.insert(&key).is_ok() {
            assert!(filter.contains(&key));
            assert!(filter.count(&key) > 0);
            assert!(filter.remove(&key));
        }
    }
    assert_eq!(filter.len(), before);
}
