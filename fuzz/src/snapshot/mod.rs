//! Bytes read as a snapshot: if they are one by docs/format.md, they are read as a filter that works and is written as it was read.
//! Anything else is refused.
//!
//! The checksums detect nearly every change of a snapshot. So bytes that begin like one are read twice: unchanged, and with corrected
//! checksums, so that numbers and lengths must be refused. Other bytes describe a snapshot to be made, and its defects.

mod made;
mod spec;

use crate::Filter;
use concurrent_cuckoo_filter::kind::Plain;
use concurrent_cuckoo_filter::{
    CountingFilter, CuckooFilter, ExpiringFilter, FilterView, MappedFilter, SnapshotHeader, SnapshotReader,
    TaggedFilter,
};
use std::sync::LazyLock;
use std::time::Duration;
use testkit::format::{Layout, fingerprints, header_length, records, seal_all};
use testkit::{Input, hasher, is_one_of};

/// The first byte of every snapshot.
const FIRST: u8 = 0xc0;

/// One of this number of inputs is also read in other ways.
const SELDOM: u32 = 256;

/// The slots of longer snapshots are not counted, which would take long.
const COUNTED: usize = 1 << 14;

/// The snapshot of an empty filter.
static EMPTY: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let filter = CuckooFilter::<u64>::builder().capacity(0).hasher(hasher()).build().expect("it is small");
    testkit::written(|to| filter.write_to(to))
});

/// Runs the target `snapshot`.
pub fn run(bytes: &[u8]) {
    let seldom = is_one_of(SELDOM, bytes);
    if bytes.first() != Some(&FIRST) {
        return read(&made::snapshot(Input::new(bytes)), seldom);
    }
    read(bytes, seldom);
    if let (Some(header), Some(layout)) = (header_length(bytes), Layout::of(bytes)) {
        let lengths: Vec<usize> = records(bytes, &layout).map(|(_, record)| record.len()).collect();
        let mut bytes = bytes.to_vec();
        seal_all(&mut bytes, header, &lengths);
        read(&bytes, seldom);
    }
}

/// Reads a snapshot, and checks all results.
fn read(bytes: &[u8], in_other_ways: bool) {
    let reader = SnapshotReader::new(bytes);
    assert_eq!(reader.is_ok(), spec::is_header(bytes), "the header: {:?}", reader.err());
    let Ok(reader) = reader else { return };
    let header = reader.header().clone();
    let filter = reader.into_filter_with_hasher::<u64, _, Plain>(hasher());
    assert_eq!(filter.is_ok(), spec::is_filter(bytes), "the filter: {:?}", filter.err());
    view(bytes, filter.as_ref().ok());
    if in_other_ways {
        map(bytes);
        check_other_ways(bytes, filter.as_ref().ok(), &header);
    }
    let Ok(filter) = filter else { return };
    assert_eq!(header.part, 0..filter.config().shards);
    assert_eq!(header.config, filter.config());

    let again = written(&filter, &header);
    // Key type and seeds may be missing or of another hasher. If the header is equal, everything is.
    let length = header_length(&again).expect("written whole");
    if again[..length] == bytes[..length] {
        assert!(bytes.starts_with(&again));
    }
    if again.len() < COUNTED {
        assert_eq!(fingerprints(&again).map(Iterator::count), Some(filter.len()));
    }
    let reread = Filter::read_from(&again[..], hasher()).expect("it was just written");
    assert_eq!(reread.len(), filter.len());
    assert_eq!(written(&reread, &header), again);
    work(&filter);
}

/// A view gives the answers of the filter, and exists only if the filter does. Only views refuse bytes behind a snapshot.
fn view(bytes: &[u8], filter: Option<&Filter>) {
    let Ok(view) = FilterView::<Filter>::from_bytes_with_hasher(bytes, hasher()) else { return };
    let filter = filter.expect("what is viewed can be loaded");
    let keys: Vec<u64> = (0..100).collect();
    let mut found = [false; 100];
    view.contains_batch(&keys, &mut found);
    for (key, found) in keys.iter().zip(found) {
        assert_eq!([view.contains(key), found], [filter.contains(key); 2]);
    }
    assert_eq!(view.header().stored, filter.len() as u64);
}

/// A mapped file is queried before all of it is checked: whatever its content, a lookup ends, and reads only the file.
fn map(bytes: &[u8]) {
    let path = std::env::temp_dir().join(format!("concurrent-cuckoo-filter.fuzz-{}", std::process::id()));
    std::fs::write(&path, bytes).expect("a folder that can be written to");
    if let Ok(mapped) = MappedFilter::<Filter>::open_with_hasher(&path, hasher()) {
        (0..100).for_each(|key| _ = mapped.contains(&key));
    }
    if let Ok(mapped) = MappedFilter::<ExpiringFilter<u64, _>>::open_with_hasher(&path, hasher()) {
        (0..100).for_each(|key| {
            mapped.advance_to(Duration::from_nanos(key << 32));
            _ = mapped.contains(&key);
        });
    }
    if let Ok(mapped) = MappedFilter::<CountingFilter<u64, _>>::open_with_hasher(&path, hasher()) {
        (0..100).for_each(|key| {
            mapped.advance_to(Duration::from_nanos(key << 32));
            assert!(mapped.count(&key) <= 1 << 16);
        });
    }
    if let Ok(mapped) = MappedFilter::<TaggedFilter<u64, _>>::open_with_hasher(&path, hasher()) {
        (0..100).for_each(|key| assert!(mapped.tags(&key).all(|tag| tag < (1 << 16) - 1)));
    }
    std::fs::remove_file(&path).expect("the file is ours");
}

/// Reading on several threads, or as one of several parts, has the same result.
fn check_other_ways(bytes: &[u8], filter: Option<&Filter>, header: &SnapshotHeader) {
    let parallel = SnapshotReader::new(bytes).expect("it was read before").in_parallel();
    let parallel = parallel.into_filter_with_hasher::<u64, _, Plain>(hasher()).ok();
    let joined = Filter::join([bytes], hasher()).ok();
    let expected = filter.map(|filter| written(filter, header));
    for other in [parallel, joined] {
        assert_eq!(other.map(|other| written(&other, header)), expected);
    }
}

fn written(filter: &Filter, header: &SnapshotHeader) -> Vec<u8> {
    let snapshot = filter.snapshot().metadata(&header.metadata);
    let snapshot = if header.has_seeds { snapshot } else { snapshot.without_seeds() };
    testkit::written(|to| snapshot.write_to(to))
}

/// Whatever the content of the words, the filter keeps its promises.
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
