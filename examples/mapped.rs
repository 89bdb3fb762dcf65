//! One file of a filter, asked by several processes that share its memory: `cargo run --release -p examples --bin mapped`.
//!
//! Makes a filter of the size that is asked for, if the file is not there yet, and starts processes that map it and look keys up
//! without end. Then tells how long it took each to open the file, and what memory they take: each of them its own (`private`),
//! and all together (`proportional`: a page that n processes share counts as 1/n in each). The memory is told by Linux only.

use clap::Parser;
use concurrent_cuckoo_filter::{CuckooFilter, MappedFilter, StableHashBuilder};
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use std::{env, fs};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[derive(Parser)]
#[command(about = "One file of a filter, asked by several processes that share its memory.")]
struct Arguments {
    /// Where the file is, or is to be.
    #[arg(long, default_value_os_t = env::temp_dir().join("mapped.filter"))]
    file: PathBuf,

    /// Mebibytes of the filter that is made.
    #[arg(long, default_value_t = 1024)]
    mebibytes: usize,

    #[arg(long, default_value_t = 4)]
    processes: usize,

    /// Keys that each process looks up.
    #[arg(long, default_value_t = 20_000_000)]
    lookups: u64,

    /// This is one of the processes.
    #[arg(long, hide = true)]
    child: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if arguments.child {
        return look_up(&arguments);
    }
    if !arguments.file.exists() {
        make(&arguments)?;
    }
    let bytes = fs::metadata(&arguments.file)?.len();
    println!("{}: {} MiB", arguments.file.display(), bytes >> 20);
    let start = || {
        Command::new(env::current_exe()?)
            .args(["--child", "--lookups", &arguments.lookups.to_string(), "--file"])
            .arg(&arguments.file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
    };
    let mut children: Vec<Child> = (0..arguments.processes).map(|_| start()).collect::<std::io::Result<_>>()?;
    // Each says what it has found when it is done, and waits until all are.
    for child in &mut children {
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("it is piped")).read_line(&mut line)?;
        println!("process {}: {}", child.id(), line.trim());
    }
    let mut all = 0;
    for child in &children {
        let Some([private, proportional]) = memory(child.id()) else { continue };
        println!("process {}: {} MiB private, {} MiB proportional", child.id(), private >> 10, proportional >> 10);
        all += proportional;
    }
    println!("all together: {} MiB, of a file of {} MiB", all >> 10, bytes >> 20);
    for mut child in children {
        drop(child.stdin.take());
        if !child.wait()?.success() {
            return Err("a process failed".into());
        }
    }
    Ok(())
}

/// 13 bits a key at the rate of 0.1 %, and 4 % of room.
fn make(arguments: &Arguments) -> Result<()> {
    let capacity = (arguments.mebibytes << 20) * 8 / 14;
    let filter: CuckooFilter<u64, _> = CuckooFilter::with_capacity_and_hasher(capacity, StableHashBuilder::new());
    let report = filter.par_insert_iter(0..capacity as u64);
    assert!(report.rejected.is_empty());
    Ok(filter.save(&arguments.file)?)
}

fn look_up(arguments: &Arguments) -> Result<()> {
    let begun = Instant::now();
    let mapped = MappedFilter::<CuckooFilter<u64, StableHashBuilder>>::open(&arguments.file)?;
    let opened = begun.elapsed();
    let keys = mapped.header().capacity() as u64;
    let begun = Instant::now();
    let mut found = [false; 1024];
    for from in (0..arguments.lookups).step_by(found.len()) {
        // All over the file.
        let asked: Vec<u64> =
            (from..from + found.len() as u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % keys).collect();
        mapped.contains_batch(&asked, &mut found);
        assert!(found.iter().all(|&found| found));
    }
    let rate = arguments.lookups as f64 / begun.elapsed().as_secs_f64() / 1e6;
    println!("opened in {opened:?}, {} lookups at {rate:.1} M/s", arguments.lookups);
    std::io::stdout().flush()?;
    // Until all have been looked at.
    std::io::stdin().lines().for_each(drop);
    Ok(())
}

/// What is the process's own, and its share of all, in KiB.
fn memory(process: u32) -> Option<[u64; 2]> {
    let told = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
    let field = |name: &str| -> u64 {
        let lines = told.lines().filter_map(|line| line.strip_prefix(name));
        lines.filter_map(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).sum()
    };
    Some([field("Private_Clean:") + field("Private_Dirty:"), field("Pss:")])
}
