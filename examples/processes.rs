//! One filter for several processes: `cargo run --release -p examples --bin processes`, with `--live` for a filter that one process
//! writes while the others query it (Linux).
//!
//! The first process creates the filter and starts the others, like a server with workers. Each worker reports the time
//! to open the filter, its lookups per second, and its memory: private, and proportional (a page shared by n processes
//! counts as 1/n in each). With `--live` the workers look up keys once while the writer is idle and once while it
//! removes and inserts, and the first process compares a reader with a filter in its own memory.

use clap::Parser;
use concurrent_cuckoo_filter::{Builder, CuckooFilter, MappedFilter, StableHashBuilder};
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;
use std::{env, fs, io};

type Result<T> = std::result::Result<T, Box<dyn Error>>;
type Filter = CuckooFilter<u64, StableHashBuilder>;

/// The number of keys of a batch.
const BATCH: usize = 1024;

#[derive(Parser)]
#[command(about = "One filter for several processes, which share its memory.")]
struct Arguments {
    /// The file of the filter [default: a file in /dev/shm with --live, else in the temporary folder]
    #[arg(long)]
    file: Option<PathBuf>,

    /// Write the filter in this process while the others query it
    #[arg(long)]
    live: bool,

    /// Size of the filter in MiB
    #[arg(long, default_value_t = 1024)]
    mebibytes: usize,

    /// Use pages of 4 KiB
    #[arg(long)]
    small_pages: bool,

    #[arg(long, default_value_t = 4)]
    processes: usize,

    /// Lookups per process
    #[arg(long, default_value_t = 20_000_000)]
    lookups: usize,

    /// Run as one of the worker processes
    #[arg(long, hide = true)]
    worker: bool,
}

impl Arguments {
    fn file(&self) -> PathBuf {
        let folder = if self.live { "/dev/shm".into() } else { env::temp_dir() };
        self.file.clone().unwrap_or_else(|| folder.join("processes.filter"))
    }

    /// Returns the capacity: 13 bits per key at the rate of 0.1 %, with 4 % of free slots.
    fn capacity(&self) -> usize {
        (self.mebibytes << 20) * 8 / 14
    }

    fn builder(&self) -> Builder<u64, StableHashBuilder> {
        CuckooFilter::builder()
            .capacity(self.capacity())
            .huge_pages(!self.small_pages)
            .hasher(StableHashBuilder::default())
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    match (arguments.worker, arguments.live) {
        (true, false) => {
            let open = |path: &Path| Ok(MappedFilter::<Filter>::open(path)?);
            work(&arguments, open, |mapped, keys, found| mapped.contains_batch(keys, found))
        }
        (true, true) => live::work(&arguments),
        (false, true) => live::write(&arguments),
        (false, false) => {
            let path = arguments.file();
            if !path.exists() {
                let filter = arguments.builder().build()?;
                fill(&filter, &arguments);
                filter.save(&path)?;
            }
            let mut workers = Workers::start(&arguments)?;
            workers.look_up("lookups")?;
            workers.finish()
        }
    }
}

fn fill(filter: &Filter, arguments: &Arguments) {
    let report = filter.bulk().insert_iter(0..arguments.capacity() as u64);
    assert!(report.refused.is_empty());
}

/// Returns the keys of one batch, spread over the filter.
fn batch(number: usize, capacity: usize) -> [u64; BATCH] {
    std::array::from_fn(|at| ((number * BATCH + at) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) % capacity as u64)
}

/// Opens the filter, and looks up keys once per line of standard input.
fn work<F>(
    arguments: &Arguments,
    open: impl Fn(&Path) -> Result<F>,
    contains: impl Fn(&F, &[u64], &mut [bool]),
) -> Result<()> {
    let begun = Instant::now();
    let filter = open(&arguments.file())?;
    println!("opened in {:?}", begun.elapsed());
    let (capacity, mut found) = (arguments.capacity(), [false; BATCH]);
    for line in io::stdin().lines() {
        line?;
        let begun = Instant::now();
        for number in 0..arguments.lookups / BATCH {
            contains(&filter, &batch(number, capacity), &mut found);
            assert!(found.iter().all(|&found| found), "a key is missing");
        }
        println!("{:.1} M/s", arguments.lookups as f64 / begun.elapsed().as_secs_f64() / 1e6);
        io::stdout().flush()?;
    }
    Ok(())
}

struct Workers(Vec<(Child, BufReader<ChildStdout>)>);

impl Workers {
    /// Starts the workers, which open the filter.
    fn start(arguments: &Arguments) -> Result<Self> {
        let mut workers = Vec::new();
        for _ in 0..arguments.processes {
            let mut command = Command::new(env::current_exe()?);
            command.arg("--worker").arg("--file").arg(arguments.file()).args(arguments.live.then_some("--live"));
            command.args(["--lookups", &arguments.lookups.to_string()]);
            command.args(["--mebibytes", &arguments.mebibytes.to_string()]);
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
            let output = child.stdout.take().expect("it is piped");
            workers.push((child, BufReader::new(output)));
        }
        let mut workers = Workers(workers);
        workers.report("")?;
        Ok(workers)
    }

    /// Starts the lookups of all workers at the same time.
    fn look_up(&mut self, name: &str) -> Result<()> {
        for (child, _) in &mut self.0 {
            writeln!(child.stdin.as_ref().expect("it is piped"))?;
        }
        self.report(name)
    }

    fn report(&mut self, name: &str) -> Result<()> {
        for (child, output) in &mut self.0 {
            let mut line = String::new();
            if output.read_line(&mut line)? == 0 {
                return Err(format!("process {} failed", child.id()).into());
            }
            println!("process {}: {name} {}", child.id(), line.trim());
        }
        Ok(())
    }

    /// Reports the memory of the workers, and ends them.
    fn finish(self) -> Result<()> {
        let all: u64 = self.0.iter().filter_map(|(child, _)| memory(child.id())).sum();
        println!("all workers together: {} MiB proportional", all >> 10);
        for (mut child, _) in self.0 {
            drop(child.stdin.take());
            if !child.wait()?.success() {
                return Err("a process failed".into());
            }
        }
        Ok(())
    }
}

/// Prints the private and the proportional memory of a process, on Linux, and returns the latter in KiB.
fn memory(process: u32) -> Option<u64> {
    let smaps = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
    let field = |name: &str| -> u64 {
        let lines = smaps.lines().filter_map(|line| line.strip_prefix(name));
        lines.filter_map(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).sum()
    };
    let (private, proportional) = (field("Private_Clean:") + field("Private_Dirty:"), field("Pss:"));
    println!(
        "process {process}: {} MiB private, {} MiB proportional, {} MiB on huge pages",
        private >> 10,
        proportional >> 10,
        field("ShmemPmdMapped:") >> 10
    );
    Some(proportional)
}

#[cfg(target_os = "linux")]
mod live {
    use super::*;
    use concurrent_cuckoo_filter::{SharedFilter, SharedReader};
    use std::hint::black_box;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// The number of timed slices per case, and of batches per slice.
    const SLICES: usize = 100;
    const BATCHES: usize = 20;

    pub(super) fn work(arguments: &Arguments) -> Result<()> {
        let open = |path: &Path| Ok(SharedReader::<Filter>::open(path)?);
        super::work(arguments, open, |reader, keys, found| reader.contains_batch(keys, found))
    }

    pub(super) fn write(arguments: &Arguments) -> Result<()> {
        let path = arguments.file();
        let begun = Instant::now();
        let shared = SharedFilter::create_or_replace(&path, arguments.builder())?;
        println!("{}: {} MiB, created in {:?}", path.display(), fs::metadata(&path)?.len() >> 20, begun.elapsed());
        let filter = shared.writer()?;
        fill(filter, arguments);
        let reader = SharedReader::<Filter>::open(&path)?;
        compare(&reader, &filter.try_clone()?, arguments.capacity());
        let mut workers = Workers::start(arguments)?;
        workers.look_up("writer idle:")?;
        let done = AtomicBool::new(false);
        let changes = std::thread::scope(|scope| {
            // Other keys than those of the workers, within the free slots.
            let writer = scope.spawn(|| {
                let (begun, mut key) = (Instant::now(), arguments.capacity() as u64);
                while !done.load(Ordering::Relaxed) {
                    filter.insert(&key).expect("there is room");
                    assert!(filter.remove(&key));
                    key += 1;
                }
                2.0 * (key - arguments.capacity() as u64) as f64 / begun.elapsed().as_secs_f64() / 1e6
            });
            let looked_up = workers.look_up("writer busy:");
            done.store(true, Ordering::Relaxed);
            looked_up.map(|()| writer.join().expect("no panic"))
        })?;
        println!("writer: {changes:.1} M changes/s");
        workers.finish()?;
        shared.close()?;
        let begun = Instant::now();
        let _shared = SharedFilter::<Filter>::open(&path)?;
        println!("opened for writing in {:?}", begun.elapsed());
        Ok(fs::remove_file(&path)?)
    }

    /// Compares a reader with a filter in the memory of this process, in turns, by the tenth percentile of the slices.
    fn compare(reader: &SharedReader<Filter>, own: &Filter, capacity: usize) {
        let mut found = [false; BATCH];
        let mut times = [const { Vec::new() }; 4];
        for slice in 0..2 * SLICES {
            let keys: Vec<_> = (0..BATCHES).map(|number| batch(slice * BATCHES + number, capacity)).collect();
            for (case, times) in times.iter_mut().enumerate() {
                let begun = Instant::now();
                keys.iter().for_each(|keys| match case {
                    0 => keys.iter().for_each(|key| _ = black_box(own.contains(key))),
                    1 => keys.iter().for_each(|key| _ = black_box(reader.contains(key))),
                    2 => own.contains_batch(keys, &mut found),
                    _ => reader.contains_batch(keys, &mut found),
                });
                times.push(begun.elapsed().as_secs_f64() * 1e9 / (BATCHES * BATCH) as f64);
            }
        }
        let tenths = times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[SLICES / 5]
        });
        for (name, [own, reader]) in ["single lookups", "batches"].into_iter().zip(tenths.as_chunks().0) {
            println!("{name}: {own:.1} ns in own memory, {reader:.1} ns by a reader ({:.2})", own / reader);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod live {
    use super::*;

    pub(super) fn work(_: &Arguments) -> Result<()> {
        Err("filters shared by processes need Linux".into())
    }

    pub(super) use work as write;
}
