//! Runs inputs again without the fuzzer, and tells what a single one does: `cargo run --example replay TARGET FILE...`, in the
//! folder `fuzz`. What the fuzzer found is in `fuzz/artifacts`.

use concurrent_cuckoo_filter_fuzz::snapshot;
use std::{env, error::Error, fs};
use testkit::sequence;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [target, files @ ..] = &words[..] else { return Err("which target, and which files?".into()) };
    let run: fn(&[u8]) = match (&target[..], files) {
        ("operations", [_]) => sequence::tell,
        ("operations", _) => |bytes| {
            sequence::run(bytes);
            sequence::tagged::run(bytes);
        },
        ("snapshot", _) => snapshot::run,
        _ => return Err("there are the targets operations and snapshot".into()),
    };
    for file in files {
        run(&fs::read(file)?);
    }
    println!("{} inputs ran", files.len());
    Ok(())
}
