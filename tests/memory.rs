//! The memory of operations: a wrong length costs an error and no memory, since a reader takes a small multiple of what has
//! arrived; and a bulk load takes the documented memory. The memory of the whole program is counted, so its tests run one after
//! the other.

use concurrent_cuckoo_filter::{CuckooFilter, SnapshotError, SnapshotReader, StableHashBuilder};
use peak_alloc::PeakAlloc;
use std::sync::{Mutex, PoisonError};
use testkit::format::Sealed;
use testkit::{hasher, written};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

type Filter = CuckooFilter<u64, StableHashBuilder>;

fn snapshot(capacity: usize, bits: u32, stripes: usize, metadata: &[u8]) -> Vec<u8> {
    let builder = CuckooFilter::builder().capacity(capacity).fingerprint_bits(bits).stripes(stripes);
    let filter: Filter = builder.hasher(hasher()).build().unwrap();
    (0..capacity as u64 / 2).for_each(|key| filter.insert(&key).unwrap());
    written(|to| filter.snapshot().metadata(metadata).write_to(to))
}

/// Returns the result of the work, and its peak memory, the result included.
fn taken<R>(work: impl FnOnce() -> R) -> (R, usize) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let result = work();
    (result, MEMORY.peak_usage() - before)
}

#[track_caller]
fn read(name: &str, bytes: &[u8]) -> Result<Filter, SnapshotError> {
    // Words, their stripes, which are at most four times as large, and the bytes of a shard. In addition, the memory allocated
    // before anything has arrived: a buffer of 64 KiB, and as much each for words and for stripes that are not mapped. With
    // several threads, the bytes of as many shards, and those of the tasks.
    let allowed = 6 * bytes.len() + (194 << 10);
    let par_allowed = allowed + bytes.len() + (4 << 10);
    let read_from = || Filter::read_from(bytes, hasher());
    let par_read = || SnapshotReader::new(bytes)?.in_parallel().into_filter_with_hasher(hasher());
    let [result, _] = [(&read_from as &dyn Fn() -> _, allowed), (&par_read, par_allowed)].map(|(read, allowed)| {
        let (result, taken) = taken(read);
        println!("{name}: {} bytes took {taken}", bytes.len());
        assert!(taken <= allowed, "{name}: {} bytes took {taken}, more than {allowed}", bytes.len());
        result
    });
    result
}

/// The bytes of a header without metadata, and of the head of a shard.
const HEADER: usize = 256;
const HEAD: usize = 64;

/// The header of a large filter, and a shard that begins correctly.
fn large_header(shards: u64, here: u64, reserve: u8) -> Vec<u8> {
    let (width, grows) = if reserve > 0 { (30_u8, 1_u8) } else { (32, 0) };
    let sealed = Sealed::new(snapshot(10, 8, 1, b""))
        .with(16, shards.to_le_bytes())
        .with(32, here.to_le_bytes())
        .with(40, (1_u32 << 16).to_le_bytes())
        .with(44, [width])
        .with(52, [grows])
        .with(160, [reserve])
        .with(168, [10 * grows])
        .with(HEADER + 21, [width; 2])
        .with(HEADER + 48, ((1_u64 << 16) * 4 * u64::from(width) / 64).to_le_bytes());
    sealed.bytes[..HEADER + HEAD].to_vec()
}

/// 13 bytes per key of a block, at most 3 more for its runs, and 1 MiB per thread.
#[test]
fn a_bulk_load_takes_what_it_says() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let filter: Filter = CuckooFilter::builder().capacity(10_000_000).hasher(hasher()).build().unwrap();
    let keys: Vec<u64> = (0..2_000_000).collect();
    let block = filter.config().shards << 15;
    assert!(block < keys.len());
    // The memory of the pool itself is allocated once.
    pool.install(|| rayon::join(|| (), || ()));
    let load = || assert_eq!(filter.par_insert(&keys).refused, []);
    let stream = || assert_eq!(filter.bulk().insert_iter(&keys).refused, []);
    for work in [&load as &(dyn Fn() + Sync), &stream] {
        let ((), taken) = taken(|| pool.install(work));
        println!("{taken} bytes for blocks of {block} keys");
        assert!((13 * block..16 * block + (2 << 20)).contains(&taken), "{taken} bytes for blocks of {block} keys");
    }
}

#[test]
fn a_length_that_lies_costs_no_memory() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // The memory of the pool itself is allocated once.
    rayon::join(|| (), || ());
    let cut_off = |result| matches!(result, Err(SnapshotError::Truncated { .. }));

    for (bits, stripes) in [(4, 1 << 20), (4, 1), (16, 1 << 20), (32, 1 << 20), (32, 1)] {
        for capacity in [10, 1000, 100_000, 600_000] {
            let bytes = snapshot(capacity, bits, stripes, &[7; 1000]);
            assert_eq!(read("a snapshot", &bytes).unwrap().capacity(), capacity);
            for part in 1..4 {
                assert!(cut_off(read("the beginning of one", &bytes[..bytes.len() * part / 4])));
            }
        }
    }

    for (shards, here, reserve) in
        [(1 << 40, 1 << 40, 0), (1 << 40, 1, 0), (1, 1, 0), (1 << 40, 1 << 40, 15), (1, 1, 15)]
    {
        let header = large_header(shards, here, reserve);
        let refused = |name, bytes: &[u8]| match read(name, bytes) {
            Err(SnapshotError::PartAlone { .. }) => here < shards,
            result => here == shards && cut_off(result),
        };
        assert!(refused("a header of a terabyte", &header[..header.len() - HEAD]));
        assert!(refused("a shard of nothing", &header));
        for length in [1, 1000, 100_000, 500_000] {
            let bytes = [header.clone(), vec![0; length]].concat();
            assert!(refused("a shard that ends soon", &bytes));
            let (joined, taken) = taken(|| Filter::join([&bytes[..]], hasher()));
            assert!(cut_off(joined) && taken <= 6 * bytes.len() + (66 << 10), "{length} bytes took {taken}");
        }
    }

    // Two shards of 24.
    let many = Sealed::new(snapshot(300_000, 4, 1, b"")).with(16, 24_u64.to_le_bytes()).with(32, 24_u64.to_le_bytes());
    assert!(cut_off(read("the first of many shards", &many.bytes[..many.bytes.len() - 64])));

    let promised = Sealed::new(snapshot(10, 8, 1, b""))
        .with(12, (HEADER as u32 + (64 << 10)).to_le_bytes())
        .with(144, (64_u32 << 10).to_le_bytes());
    assert!(cut_off(read("metadata that never comes", &promised.bytes)));
    assert!(cut_off(read("nothing but a length", &promised.bytes[..16])));
}

/// Of a size that comes from the allocator, since mappings of the system are not counted here.
#[test]
fn a_filter_that_is_dropped_gives_its_memory_back() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let build = || -> Filter { CuckooFilter::builder().capacity(10_000).hasher(hasher()).build().unwrap() };
    let bytes = build().memory_usage();
    let before = MEMORY.current_usage();
    (0..100).for_each(|_| drop(build()));
    let kept = MEMORY.current_usage().saturating_sub(before);
    assert!(kept < bytes, "{kept} bytes are left of 100 filters of {bytes} bytes each");
}
