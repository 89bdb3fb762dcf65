//! Writes the initial corpus: `cargo run --example corpus`, in the folder `fuzz`.

use concurrent_cuckoo_filter::{CuckooFilter, StableHashBuilder};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use testkit::hasher;

type Filter = CuckooFilter<u64, StableHashBuilder>;

/// The number of bytes of the snapshot of two shards that are written. A whole one would be long.
const BEGINNING: usize = 400;

fn main() -> Result<(), Box<dyn Error>> {
    operations()?;
    snapshots()
}

fn folder(target: &str) -> Result<PathBuf, Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Writes an input per capacity of `testkit::sequence`, each with another width. `operation` there has the numbers of the operations.
fn operations() -> Result<(), Box<dyn Error>> {
    // Insertions of many keys in each way, removals, single operations, the other filter, copies and merges.
    let steps = [
        &[74, 0, 249, 75, 40, 249, 76, 80, 249][..],
        &[0, 7, 24, 7, 24, 90, 52, 7, 70 + 0x80, 7, 46, 3, 100, 0, 41, 92, 0, 41],
        &[113, 121, 74, 3, 8, 117, 116, 120, 127, 110, 0, 249, 112],
    ];
    for capacity in 0..11_u8 {
        let shape = [capacity, capacity * 3, capacity.wrapping_mul(37)];
        fs::write(folder("operations")?.join(format!("capacity-{capacity}")), [&shape, &steps.concat()[..]].concat())?;
    }
    Ok(())
}

fn snapshots() -> Result<(), Box<dyn Error>> {
    let folder = folder("snapshot")?;
    for bits in [4, 6, 8, 13, 16, 17, 32] {
        filter(10, bits)?.save(folder.join(format!("{bits}-bits")))?;
    }
    filter(0, 13)?.save(folder.join("empty"))?;
    let growing = CuckooFilter::<u64>::builder().capacity(10).max_capacity(60).hasher(hasher()).build()?;
    (0..60).try_for_each(|key| growing.insert(&key))?;
    growing.save(folder.join("growing"))?;
    filter(10, 13)?.snapshot().metadata(b"log offset 17").without_seeds().save(folder.join("metadata-without-keys"))?;
    let mut large = Vec::new();
    filter(260_000, 4)?.write_to(&mut large)?;
    fs::write(folder.join("two-shards-cut-off"), &large[..BEGINNING])?;
    // Inputs for `made`, which makes a snapshot of each, without defects and with three.
    for defects in [0, 3] {
        let made: Vec<u8> = [defects].into_iter().chain((1..=120_u8).map(|number| number.wrapping_mul(7))).collect();
        fs::write(folder.join(format!("made-with-{defects}-defects")), made)?;
    }
    Ok(())
}

/// Returns a filter with as many keys as its capacity, up to a bound.
fn filter(capacity: usize, bits: u32) -> Result<Filter, Box<dyn Error>> {
    let filter = CuckooFilter::<u64>::builder().capacity(capacity).fingerprint_bits(bits).hasher(hasher()).build()?;
    for key in 0..capacity.min(10) as u64 {
        filter.insert(&key)?;
    }
    Ok(filter)
}
