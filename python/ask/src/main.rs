//! Asks a saved filter of texts, one that counts or one that does not, for the lines of the standard input, and says how many there were and how many are missing.
//!
//! ```text
//! ask FILTER < keys
//! ```

use concurrent_cuckoo_filter::{CountingFilter, CuckooFilter, SnapshotError, StableHashBuilder};
use std::error::Error;
use std::io::BufRead;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("the name of a file with a filter is missing")?;
    match CuckooFilter::<str, StableHashBuilder>::load(&path) {
        Ok(filter) => ask(|key| filter.contains(key), filter.len()),
        Err(SnapshotError::KindMismatch { .. }) => {
            let filter = CountingFilter::<str, StableHashBuilder>::load(&path)?;
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
