//! A sign-up service: worker threads look up the domain of each new account in a list of throw-away domains, while another
//! thread changes the list.
//!
//! ```text
//! cargo run --release -p examples
//! cargo run --release -p examples -- --help
//! ```
//!
//! `service` uses the filter; `list` prepares the keys of the lookups.

mod list;
mod service;

use clap::{Parser, value_parser};
use concurrent_cuckoo_filter::{CuckooFilter, InsertError};
use indicatif::HumanCount;
use list::{Kind, List};
use service::Outcome;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// Checks sign-ups against a list of throw-away e-mail domains, kept in a concurrent cuckoo filter.
///
/// For some seconds, worker threads look up prepared domains, a quarter of them listed, while another thread repeatedly
/// removes and inserts a tenth of the list. The report has speed, errors and memory. The exit code is 1 if a lookup
/// missed a domain that stayed on the list.
#[derive(Parser)]
#[command(name = "risk_control")]
struct Arguments {
    /// The list: a UTF-8 file with one key per line [default: the 121,570 domains in examples/data]
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,

    /// Use this many generated IP addresses as the list: half of them IPv4 in /24 networks of 64 listed addresses each,
    /// half IPv6. Absent addresses belong to the same networks
    #[arg(long, value_name = "COUNT", conflicts_with = "list", value_parser = value_parser!(u32).range(1..=1 << 29))]
    ips: Option<u32>,

    /// Begin with a growing filter of capacity 1,000, and insert this many keys one by one during the run
    #[arg(long, value_name = "COUNT", num_args = 0..=1, default_missing_value = "1000000", conflicts_with = "snapshot")]
    grow: Option<u32>,

    /// False-positive rate
    #[arg(long, default_value_t = 0.001)]
    rate: f64,

    /// Snapshot of the filter: loaded if it exists, and saved at the end
    #[arg(long, value_name = "FILE")]
    snapshot: Option<PathBuf>,

    /// Threads for lookups [default: one per core]
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Duration of the run in seconds
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("risk_control: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let ours = concat!(env!("CARGO_MANIFEST_DIR"), "/data/disposable-email-domains.txt");
    let list = match arguments.ips {
        Some(count) => List::addresses(count),
        None => List::read(arguments.list.as_deref().unwrap_or(ours.as_ref()))?,
    };
    let seconds = Duration::try_from_secs_f64(arguments.seconds).map_err(|error| format!("--seconds: {error}"))?;
    let added = arguments.grow.unwrap_or(0);
    let keys = list.keys.len() + added as usize;
    let builder = CuckooFilter::<String>::builder().false_positive_rate(arguments.rate);
    let builder = match arguments.grow {
        Some(_) => builder.capacity(1_000).max_capacity(keys),
        None => builder.capacity(keys),
    };

    let start = Instant::now();
    let snapshot = arguments.snapshot.as_ref();
    let filter = match snapshot.filter(|path| path.exists()) {
        // Every byte is checked. A file for other machines needs a `StableHashBuilder`.
        Some(path) => CuckooFilter::load(path).map_err(|error| format!("cannot load {}: {error}", path.display()))?,
        None => {
            let filter = builder.build().map_err(|error| error.to_string())?;
            // Every key gets a copy of its own, since keys will be removed: `insert`, and not `insert_unique`.
            filter.par_insert(&list.keys).refused.first().map_or(Ok(()), |refused| Err(refused.error.to_string()))?;
            filter
        }
    };
    if filter.len() != list.keys.len() {
        return Err(format!("the snapshot has {} keys, the list has {}", filter.len(), list.keys.len()));
    }
    println!("list             {} keys, in the filter within {:.0?}", HumanCount(filter.len() as u64), start.elapsed());

    let threads = arguments.threads.map_or_else(|| available_parallelism().map_or(1, usize::from), usize::from);
    let outcome = service::run(&filter, &list, added, threads, seconds);
    report(&outcome, &filter, threads, arguments.rate);
    check(&outcome, &filter, &list, added).map_err(|error| format!("after the run: {error}"))?;
    if let Some(path) = snapshot {
        let start = Instant::now();
        filter.save(path).map_err(|error| format!("cannot save {}: {error}", path.display()))?;
        println!("snapshot         saved within {:.1?}", start.elapsed());
    }
    Ok(())
}

fn report(outcome: &Outcome, filter: &CuckooFilter<String>, threads: usize, rate: f64) {
    let [stays, _, absent] = outcome.tallies;
    let lookups: u64 = outcome.tallies.iter().map(|tally| tally.asked).sum();
    let millions = |count: u64| count as f64 / outcome.length.as_secs_f64() / 1e6;
    let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|quantile| outcome.times.value_at_quantile(quantile));
    println!("lookups          {:.1} M/s on {threads} threads; {} done", millions(lookups), HumanCount(lookups));
    println!("one lookup       p50 {p50} ns, p99 {p99} ns, p99.9 {p999} ns, two readings of the clock included");
    println!("missed           {} of {} lookups of listed keys", stays.asked - stays.found, HumanCount(stays.asked));
    println!(
        "false positives  {:.4} % of {} lookups; at most {:.4} % requested, {:.4} % expected at this load",
        100.0 * absent.found as f64 / absent.asked.max(1) as f64,
        HumanCount(absent.asked),
        100.0 * rate,
        100.0 * filter.stats().expected_false_positive_rate
    );
    let (changes, refused) = (millions(outcome.changes), outcome.refused);
    println!("writer           {changes:.1} M removals and insertions/s, {refused} refused");
    if outcome.added > 0 {
        let stats = filter.stats();
        println!("growth           {} keys inserted, {} splits", HumanCount(outcome.added), stats.splits);
    }
    let bytes = filter.memory_usage();
    let bits = 8.0 * bytes as f64 / filter.len() as f64;
    println!("memory           {} bytes, {bits:.1} bits per key", HumanCount(bytes as u64));
}

/// Returns an error if a lookup missed a key or if a key is absent at the end.
fn check(outcome: &Outcome, filter: &CuckooFilter<String>, list: &List, added: u32) -> Result<(), String> {
    let missed = outcome.tallies[Kind::Stays as usize];
    let expected = list.keys.len() + outcome.added as usize;
    let added = (0..added).map(list::added);
    let found = list.keys.iter().cloned().chain(added).filter(|key| filter.contains(key)).count();
    match () {
        () if outcome.refused > 0 => Err(InsertError::Full.to_string()),
        () if missed.asked > missed.found => Err(format!("{} keys were missed", missed.asked - missed.found)),
        () if (found, filter.len()) != (expected, expected) => Err(format!("{found} of {expected} keys are found")),
        () => Ok(()),
    }
}
