//! Asks a saved filter of texts for the lines of the standard input, and says how many there were and how many are missing.
//!
//! ```text
//! ask FILTER < keys
//! ```

use concurrent_cuckoo_filter::{CuckooFilter, StableHashBuilder};
use std::error::Error;
use std::io::BufRead;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("the name of a file with a filter is missing")?;
    let filter = CuckooFilter::<str, StableHashBuilder>::load(path)?;
    let (mut asked, mut missed) = (0, 0);
    for line in std::io::stdin().lock().lines() {
        asked += 1;
        missed += u64::from(!filter.contains(&line?));
    }
    println!("{asked} asked, {missed} missed, {} stored", filter.len());
    Ok(())
}
