//! Writes the files from which fuzzing starts: `cargo run --example corpus`, in the folder `fuzz`.

use concurrent_cuckoo_filter::{CuckooFilter, StableHashBuilder};
use std::error::Error;
use std::fs;
use std::path::Path;

type Filter = CuckooFilter<u64, StableHashBuilder>;

/// The first bytes of a snapshot of two shards, which would be long; the target adds the others.
const BEGINNING: usize = 400;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/snapshot");
    for bits in [4, 6, 8, 13, 16, 17, 32] {
        filter(10, bits)?.save(folder.join(format!("{bits}-bits")))?;
    }
    filter(0, 13)?.save(folder.join("empty"))?;
    filter(10, 13)?.snapshot().metadata(b"log offset 17").without_keys().save(folder.join("metadata-without-keys"))?;
    let mut large = Vec::new();
    filter(260_000, 4)?.write_to(&mut large)?;
    fs::write(folder.join("two-shards-cut-off"), &large[..BEGINNING])?;
    Ok(())
}

/// A filter that holds its capacity, as far as that is little.
fn filter(capacity: usize, bits: u32) -> Result<Filter, Box<dyn Error>> {
    let hasher = StableHashBuilder::with_keys(1, 2);
    let filter = CuckooFilter::<u64>::builder().capacity(capacity).fingerprint_bits(bits).hasher(hasher).build()?;
    for key in 0..capacity.min(10) as u64 {
        filter.insert(&key)?;
    }
    Ok(filter)
}
