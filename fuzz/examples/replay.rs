//! Runs one input again without the fuzzer and tells what it does: `cargo run --example replay TARGET FILE`, in the folder
//! `fuzz`. What the fuzzer found is in `fuzz/artifacts`.

use concurrent_cuckoo_filter_fuzz::snapshot;
use std::{env, error::Error, fs};
use testkit::sequence;

fn main() -> Result<(), Box<dyn Error>> {
    let [target, file] =
        env::args().skip(1).collect::<Vec<_>>().try_into().map_err(|_| "which target, and which file?")?;
    let bytes = fs::read(file)?;
    match &target[..] {
        "operations" => sequence::tell(&bytes),
        "snapshot" => snapshot::run(&bytes),
        _ => return Err("there are the targets operations and snapshot".into()),
    }
    Ok(())
}
