//! Runs a fuzz target on saved inputs, without the fuzzer: `cargo run --example replay TARGET FILE...`, in the folder `fuzz`. For
//! a single file of the target `operations`, prints each operation. The fuzzer saves the inputs that fail in `fuzz/artifacts`.

use concurrent_cuckoo_filter_fuzz::{operations, snapshot};
use std::{env, error::Error, fs};
use testkit::sequence;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [target, files @ ..] = &words[..] else {
        return Err("name a target, operations or snapshot, and its files".into());
    };
    let run: fn(&[u8]) = match (&target[..], files) {
        (_, []) => return Err("name at least one file".into()),
        ("operations", [_]) => |bytes| {
            sequence::tell(bytes);
            sequence::tagged::run(bytes);
        },
        ("operations", _) => operations,
        ("snapshot", _) => snapshot::run,
        _ => return Err(format!("there is no target {target}, only operations and snapshot").into()),
    };
    for file in files {
        run(&fs::read(file).map_err(|error| format!("{file}: {error}"))?);
    }
    println!("{} inputs ran", files.len());
    Ok(())
}
