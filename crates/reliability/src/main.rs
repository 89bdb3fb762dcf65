//! Checks at length what the README promises, and prints the figures of `docs/reliability.md`.

mod adversary;
mod figure;
mod growth;
mod large;
mod run;
mod scale;
mod stress;
mod times;

use clap::{Parser, ValueEnum, value_parser};
use run::Run;
use std::sync::Mutex;
use std::time::Duration;
use std::{panic, process};

/// Checks at length what the README of concurrent-cuckoo-filter promises.
///
/// Every figure for the record is a line `figure ID: TEXT`. The first promise that is found broken ends the run with one
/// message, which names the promise, the key, the filter and the seed, and with exit code 1. A run of all sections in
/// full takes about a quarter of an hour on 2 cores.
#[derive(Parser)]
#[command(name = "reliability", bin_name = "cargo run --release -p reliability --")]
struct Options {
    /// What to check
    #[arg(value_enum)]
    section: Section,

    /// The same with smaller numbers, some seconds for each section
    #[arg(long)]
    quick: bool,

    /// Repeats the draws of a run; what threads do concurrently differs each time [default: a random one]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// How long the exact stress takes [default: 600, with --quick 4]
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(1..=1_000_000))]
    stress_seconds: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Section {
    /// Each of the others
    All,
    /// Threads that do everything at once, each answer checked; tiny tables of equal fingerprints
    Stress,
    /// 10^9 lookups of present keys and 10^9 of absent ones, over filters of all widths
    Scale,
    /// One filter of 10^9 keys of 64 bytes, each looked up; 2 GiB
    Large,
    /// A filter that grows from 10^4 keys to 10^8 while everything goes on
    Growth,
    /// Chosen keys, floods of one key, full filters, removals of what was never inserted
    Adversary,
}

fn main() {
    let options = Options::parse();
    let seed = options.seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    let seconds = options.stress_seconds.unwrap_or(if options.quick { 4 } else { 600 });
    let run = Run { quick: options.quick, seed, stress: Duration::from_secs(seconds) };
    for (section, work) in [
        (Section::Stress, stress::run as fn(&Run)),
        (Section::Scale, scale::run),
        (Section::Large, large::run),
        (Section::Growth, growth::run),
        (Section::Adversary, adversary::run),
    ] {
        if [section, Section::All].contains(&options.section) {
            let name = section.to_possible_value().expect("no section is hidden").get_name().to_owned();
            println!("== {name}, seed {seed}{}", if run.quick { ", quick" } else { "" });
            exit_on_panic(format!("{name} --seed {seed}{}", if run.quick { " --quick" } else { "" }));
            work(&run);
        }
    }
}

/// Ends the process at the first panic of any thread, with its message and the arguments that repeat the section.
fn exit_on_panic(arguments: String) {
    // Held by the thread that ends the process: of several messages only the first is printed.
    let last_words = Mutex::new(());
    panic::set_hook(Box::new(move |panic| {
        let _last_words = last_words.lock();
        let broken = panic.payload_as_str().filter(|message| message.starts_with("broken promise"));
        let message = broken.map_or_else(|| format!("broken promise: no panic: {panic}"), str::to_owned);
        eprintln!("\n{message}; to repeat it: cargo run --release -p reliability -- {arguments}");
        process::exit(1)
    }));
}
