//! Queries a saved filter of texts, counting or plain, for the lines of the standard input, and prints the numbers of lines, of missing
//! ones and of stored keys. With `--share`, inserts the lines into a new filter that other processes query meanwhile.
//!
//! ```text
//! ask FILTER < keys
//! ask --share FILTER < keys
//! ```

use concurrent_cuckoo_filter::{CountingFilter, CuckooFilter, SharedFilter, SnapshotError, StableHashBuilder};
use std::error::Error;
use std::io::BufRead;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next().ok_or("the name of a file with a filter is missing")?;
    if first == "--share" {
        let path = arguments.next().ok_or("the name of the file to share is missing")?;
        let builder = CuckooFilter::<str>::builder().capacity(1000).false_positive_rate(1e-7);
        let shared = SharedFilter::create(path, builder.hasher(StableHashBuilder::with_seeds(1, 2)))?;
        println!("created");
        for line in std::io::stdin().lock().lines() {
            shared.writer()?.insert(&line?)?;
            println!("stored");
        }
        return Ok(shared.close()?);
    }
    match CuckooFilter::<str, StableHashBuilder>::load(&first) {
        Ok(filter) => ask(|key| filter.contains(key), filter.len()),
        Err(SnapshotError::KindMismatch { .. }) => {
            let filter = CountingFilter::<str, StableHashBuilder>::load(&first)?;
            ask(|key| filter.contains(key), filter.len())
        }
        Err(error) => Err(error.into()),
    }
}

fn ask(contains: impl Fn(&str) -> bool, stored: usize) -> Result<(), Box<dyn Error>> {
    let (mut asked, mut missed) = (0, 0);
    for line in std::io::stdin().lock().lines() {
        asked += 1;
        missed += u64::from(!contains(&line?));
    }
    println!("{asked} asked, {missed} missed, {stored} stored");
    Ok(())
}
