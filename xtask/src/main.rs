//! Checks that need a loop, a table or a pool. What is a single command is a line of `.ci/run`.

mod asan;
mod coverage;
mod full;
mod fuzz;
mod lint;
mod loom;
mod machines;
mod miri;
mod mutants;
mod run;
mod schedules;
mod teeth;
mod tools;
mod tree;
mod trees;

use anyhow::{Context, Result};
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;

/// Checks that need a loop, a table or a pool; times are of 2 cores
///
/// What a check makes is in target/NAME, tools are installed into target/tools, and nothing else is changed unless its help
/// says so. Where a toolchain, a tool or a package cannot be had, a line "skipped: ..." says what was not checked. Long
/// forms print figures, which `cargo xtask full` writes into docs/reliability.md.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Cli {
    /// Models of the protocol and their teeth, all of them (4 minutes). Needs git
    ///
    /// A model explores the interleavings of a few threads with loom, prints how many there were, and asserts 90 % of
    /// the committed number. A tooth, an entry of a table in loom-tests/teeth, breaks a copy of src/, and each model that it
    /// names must then fail, with the text that it gives. Each model must be named by some tooth.
    Loom {
        /// Runs the models only (1 minute)
        #[arg(long, conflicts_with = "teeth")]
        models: bool,
        /// Runs the teeth of these names only, and not the models
        #[arg(long, num_args = 1.., value_name = "NAME")]
        teeth: Vec<String>,
    },
    /// Histories of threads that shuttle switches, each checked for an order that explains it (10 seconds). Needs git
    ///
    /// Runs 30,000 schedules and 100,000 drills of three threads that are after one key. The same ones come each time. A
    /// failure names its scenario, and CUCKOO_SCENARIO=N begins there. This or the full form must also find each tooth
    /// of the models, unless the tooth says why they cannot: `not-for-schedules`.
    Schedules {
        /// Runs 375,000 schedules, 2,000,000 drills and all teeth (a quarter of an hour)
        #[arg(long, conflicts_with = "teeth")]
        full: bool,
        /// Runs the teeth of these names only
        #[arg(long, num_args = 1.., value_name = "NAME")]
        teeth: Vec<String>,
    },
    /// Mutants of the library, each of which some test must catch (hours). Needs cargo-mutants, git
    ///
    /// Four stages, each for what the one before it missed: unit tests, most tests of the public API, all tests, the
    /// models of loom. A run that was stopped goes on where it was, unless code or tests have changed. What
    /// is left out, and why, is in .cargo/mutants.toml.
    Mutants {
        /// Tries a few at the heart of the library, chosen by name (1 minute)
        #[arg(long, conflicts_with = "files")]
        quick: bool,
        /// Tries those of these files only, such as src/raw/table.rs
        files: Vec<PathBuf>,
    },
    /// Lines of src/ that tests run, 95 % at least (10 minutes). Needs cargo-tarpaulin
    Coverage,
    /// Tests with AddressSanitizer and LeakSanitizer (a quarter of an hour). Needs nightly Rust for Linux on x86-64
    ///
    /// Reads in inline assembly (src/sys/unaligned.rs) are not instrumented; debug builds check where they lie.
    Asan,
    /// Lookups beside a writer under Miri, with many seeds (5 minutes). Needs nightly Rust with Miri and rust-src
    Miri,
    /// Fuzzing: operations against a model, snapshots with defects (2 minutes). Needs nightly Rust, cargo-fuzz
    ///
    /// The first run builds for two minutes more. Findings are in fuzz/artifacts; in the folder fuzz,
    /// `cargo run --example replay TARGET FILE` repeats one.
    Fuzz {
        /// For how long, half of it for each target
        #[arg(long, default_value_t = 120, conflicts_with = "full", value_parser = clap::value_parser!(u64).range(1..))]
        seconds: u64,
        /// Runs each target 20,000,000 times on all cores without a sanitizer, then for 2 minutes with AddressSanitizer
        /// (20 minutes)
        #[arg(long)]
        full: bool,
    },
    /// Feature sets, public API, oldest Rust (2 minutes). Needs nightly Rust, cargo-hack, cargo-public-api
    ///
    /// Advisories are not checked: their database is no registry.
    Lint {
        /// Checks licences and unused dependencies, too. Needs cargo-deny, cargo-machete
        #[arg(long, conflicts_with = "write")]
        full: bool,
        /// Lists the public API anew in docs/public-api.txt, and checks nothing
        #[arg(long)]
        write: bool,
    },
    /// Tests on i386 and s390x, where sizes and the order of bytes differ (half an hour). Needs rustup, gcc, qemu
    ///
    /// Adds the two targets to the active toolchain. Where a cross compiler or qemu is missing, it names the packages of
    /// Debian that have them.
    Machines,
    /// Long forms of all checks; writes their figures into docs/reliability.md (hours). Needs what they need
    ///
    /// A check prints "figure ROW: TEXT", and that row gets the text, the date and the trees of src and of the check. A figure without a row is an error,
    /// and so is a row of a piece that got no figure, unless something was skipped. A piece that fails does not keep
    /// others from running. What a piece printed is in target/full/PIECE.log.
    Full {
        /// Names the pieces, their rows and the command of each, and the figures that were measured on an earlier state
        #[arg(long)]
        list: bool,
        /// Runs these pieces only
        pieces: Vec<String>,
    },
    /// Runs a test binary up to its first failure: for mutants
    #[command(hide = true)]
    UntilFailure {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
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
    let cli = Cli::parse();
    if !matches!(cli, Cli::UntilFailure { .. }) {
        let root = tree::root();
        std::env::set_current_dir(&root).with_context(|| format!("no folder {}", root.display()))?;
    }
    match cli {
        Cli::Loom { models, teeth } => loom::check(models, &teeth),
        Cli::Schedules { full, teeth } => schedules::check(full, &teeth),
        Cli::Mutants { quick: true, .. } => mutants::quick(),
        Cli::Mutants { files, .. } => mutants::all(&files),
        Cli::Coverage => coverage::check(),
        Cli::Asan => asan::check(),
        Cli::Miri => miri::check(),
        Cli::Fuzz { seconds, full } => fuzz::check(seconds, full),
        Cli::Lint { write: true, .. } => lint::write_public_api(),
        Cli::Lint { full, .. } => lint::check(full),
        Cli::Machines => machines::check(),
        Cli::Full { list, pieces } => full::check(list, &pieces),
        Cli::UntilFailure { command } => mutants::until_failure(&command),
    }
}
