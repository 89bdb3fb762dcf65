//! Checks that need a loop, a table or a pool. What is a single command is a line of `.ci/run`.

mod elsewhere;
mod full;
mod fuzz;
mod lint;
mod loom;
mod mutants;
mod run;
mod schedules;
mod teeth;
mod tools;
mod tree;
mod trees;

use anyhow::{Context, Result, ensure};
use std::process::ExitCode;

/// A check: its name, its options, what it needs, how long it takes on 2 cores, what it does, and the function that does it.
type Check = (&'static str, &'static str, &'static str, &'static str, &'static str, fn(&Args) -> Result<()>);
const CHECKS: [Check; 12] = [
    (
        "loom",
        "[--models | --teeth NAME...]",
        "git",
        "4 minutes; --models: 1",
        "Models of the protocol, and teeth: faults in a copy of src/ that the models they name must catch",
        loom::check,
    ),
    (
        "schedules",
        "[--full | --teeth NAME...]",
        "git",
        "10 seconds; --full: 15 minutes",
        "Histories of threads that shuttle switches, each checked for an order that explains it. CUCKOO_SCENARIO=N repeats one",
        schedules::check,
    ),
    (
        "mutants",
        "[--quick | FILE...]",
        "cargo-mutants, git",
        "hours; --quick: 1 minute",
        "Mutants of the library, each of which some test must catch; .cargo/mutants.toml names the exceptions",
        mutants::check,
    ),
    (
        "coverage",
        "",
        "cargo-tarpaulin",
        "10 minutes",
        "Lines of src/ that tests run, 95 % at least",
        elsewhere::coverage,
    ),
    ("asan", "", "nightly Rust for Linux on x86-64", "15 minutes", "Tests with two sanitizers", elsewhere::asan),
    ("miri", "", "nightly Rust with Miri", "5 minutes", "Lookups beside a writer, with many seeds", elsewhere::miri),
    ("machines", "", "gcc and qemu", "30 minutes", "Tests on i386 and on s390x", elsewhere::machines),
    (
        "fuzz",
        "[--full | SECONDS]",
        "nightly Rust, cargo-fuzz",
        "2 minutes; --full: 20 minutes",
        "Operations against a model, and snapshots with defects. `cargo run --example replay TARGET FILE` in fuzz repeats one",
        fuzz::check,
    ),
    (
        "lint",
        "[--full | --write]",
        "nightly Rust, cargo-hack, cargo-public-api",
        "2 minutes",
        "Sets of features, targets, the package, the public API; --full: licences, unused dependencies; --write: lists the API",
        lint::check,
    ),
    (
        "full",
        "[--list] [PIECE...]",
        "what they need",
        "hours",
        "Long forms of all checks; their lines \"figure ROW: TEXT\" go into docs/reliability.md",
        full::check,
    ),
    ("help", "", "", "", "Prints this", help),
    (
        "until-failure",
        "COMMAND...",
        "",
        "",
        "Runs a test binary up to its first failure, for mutants",
        mutants::until_failure,
    ),
];

/// What follows the name of a check.
pub(crate) struct Args(Vec<String>);

impl Args {
    /// Whether this option is given.
    pub(crate) fn has(&self, option: &str) -> bool {
        self.0.iter().any(|word| word == option)
    }

    /// All that is no option.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.iter().filter(|word| !word.starts_with("--")).cloned().collect()
    }
}

fn help(_: &Args) -> Result<()> {
    println!(
        "cargo xtask CHECK; times are of 2 cores. What a check makes is in target/; where a toolchain or a tool cannot be had,"
    );
    println!("a line \"skipped: ...\" says what was not checked.\n");
    for (name, options, needs, time, about, _) in CHECKS {
        println!("{name} {options}\n    {about}");
        println!(
            "    {}",
            [time, needs].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; needs ")
        );
    }
    Ok(())
}

fn main() -> ExitCode {
    match check() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<tools::Skipped>() => {
            println!("skipped: {error}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn check() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let name = words.next().unwrap_or_else(|| "help".into());
    let args = Args(words.collect());
    let name = name.trim_start_matches("--");
    let (_, options, .., check) =
        CHECKS.iter().find(|check| check.0 == name).context("no such check: cargo xtask help")?;
    if name != "until-failure" {
        let unknown = args.0.iter().find(|word| word.starts_with("--") && !options.contains(word.as_str()));
        ensure!(unknown.is_none() && (args.0.is_empty() || !options.is_empty()), "usage: cargo xtask {name} {options}");
        std::env::set_current_dir(tree::root())?;
    }
    check(&args)
}
