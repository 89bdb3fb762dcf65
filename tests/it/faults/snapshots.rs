//! A writer, a reader, or the hash function that a snapshot probes, panics at each of its calls: the panic reaches the caller,
//! nothing stays locked, and no key is lost.

use crate::support::{BURNT, Fuse, hasher, is_usable, pool, silence_panics};
use concurrent_cuckoo_filter::{CuckooFilter, SavedHasher, SnapshotReader, StableHashBuilder, StableHasher};
use std::hash::BuildHasher;
use std::io::{self, Read, Write};
use std::iter;
use testkit::{thousands, watchdog, written};

type Filter = CuckooFilter<u64, Fused>;

/// A hash function on a fuse.
#[derive(Clone)]
struct Fused(StableHashBuilder, Fuse);

impl BuildHasher for Fused {
    type Hasher = StableHasher;

    fn build_hasher(&self) -> StableHasher {
        self.1.burn();
        self.0.build_hasher()
    }
}

impl SavedHasher for Fused {
    const NAME: &'static str = "fused";

    fn seeds(&self) -> Option<[u64; 4]> {
        self.1.burn();
        self.0.seeds()
    }

    fn from_seeds(keys: [u64; 4]) -> Option<Self> {
        Some(Fused(StableHashBuilder::from_seeds(keys)?, Fuse::long()))
    }
}

/// Reads and writes little at a time.
struct Line<T>(T, Fuse);

impl<R: Read> Read for Line<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1.burn();
        let some = buffer.len().min(777);
        self.0.read(&mut buffer[..some])
    }
}

impl<W: Write> Write for Line<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1.burn();
        self.0.write(&bytes[..bytes.len().min(777)])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.1.burn();
        self.0.flush()
    }
}

fn filled() -> (Filter, Vec<u64>) {
    let hasher = Fused(hasher(), Fuse::long());
    // One stripe, so that a lock that stays blocks everything.
    let builder = CuckooFilter::builder().capacity(6000).fingerprint_bits(32).stripes(1);
    let (filter, keys) = (builder.hasher(hasher).build().unwrap(), (0..500).collect::<Vec<u64>>());
    assert_eq!(filter.insert_batch(&keys).inserted, keys.len());
    (filter, keys)
}

#[test]
fn each_call_of_a_writer_a_reader_or_a_hasher() {
    let _watchdog = watchdog();
    silence_panics(&[BURNT]);
    let (filter, keys) = filled();
    let bytes = written(|to| filter.write_to(to));
    let (fuse, hasher) = (Fuse::long(), || filter.hasher().clone());
    let after = || is_usable(&filter, &keys);
    let check = |read: Filter| assert!(keys.iter().all(|key| read.contains(key)));

    let mut calls = fuse.burn_at_each_call(|| filter.write_to(Line(io::sink(), fuse.clone())).unwrap(), after);
    let line = || Line(&bytes[..], fuse.clone());
    calls += fuse.burn_at_each_call(|| check(Filter::read_from(line(), hasher()).unwrap()), after);
    calls += fuse.burn_at_each_call(|| check(Filter::join(iter::once(line()), hasher()).unwrap()), after);
    for pool in [1, 2].map(pool) {
        let par_read = || SnapshotReader::new(line()).unwrap().in_parallel().into_filter_with_hasher(hasher()).unwrap();
        calls += fuse.burn_at_each_call(|| check(pool.install(par_read)), after);
    }

    let other = filled().0;
    let fuse = &filter.hasher().1;
    let write = || filter.write_to(io::sink()).unwrap();
    calls += fuse.burn_at_each_call(write, after);
    calls += fuse.burn_at_each_call(|| drop(Filter::read_from(&bytes[..], hasher()).unwrap()), after);
    // A merge that panics has stored nothing, because hash functions are compared first.
    let merge = || {
        let merged = filter.merge_from(&other).unwrap();
        assert_eq!(merged.inserted, keys.len());
        assert!(
            filter
                .hashed()
                .remove_batch(&keys.iter().map(|key| other.hash(key)).collect::<Vec<_>>())
                .missing
                .is_empty()
        );
    };
    calls += fuse.burn_at_each_call(merge, after);
    assert_eq!(filter.len(), keys.len());
    println!(
        "\nfigure 5.6: a reader, a writer or a hasher panicked at each of its {} calls by snapshots, joining, \
        parallel reading and merging, with the same end",
        thousands(calls)
    );
}
