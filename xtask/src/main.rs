//! Checks that need a loop, a table or a pool. Those that are commands are in `checks.sh`, and single commands in `.ci/run`.

mod full;
mod loom;
mod mutants;
mod run;
mod schedules;
mod teeth;
mod tree;
mod trees;

use anyhow::{Context, Result, ensure};
use std::process::ExitCode;

/// Each entry begins with the name and the options of a check.
const HELP: &str = "\
cargo xtask CHECK; times are of 2 cores. What a check makes is in target/; where a toolchain or a tool cannot be had,
a line \"skipped: ...\" says what was not checked.

loom [--models | --sixteenth | --teeth NAME...]
    Models of the protocol, and teeth: faults in a copy of src/ that the models they name must catch; --sixteenth: a sixteenth
    of the teeth, the next one with each commit
    7 minutes; --models: 3; --sixteenth: 4; needs git
schedules [--full | --teeth NAME...]
    Histories of threads that shuttle switches, each checked for an order that explains it. CUCKOO_SCENARIO=N repeats one
    10 seconds; --full: 15 minutes; needs git
mutants [FILE...]
    Mutants of the library, each of which some test must catch; .cargo/mutants.toml names the exceptions
    hours; needs cargo-mutants, git
coverage
    Lines of src/ that tests run, 95 % at least
    10 minutes; needs cargo-tarpaulin
asan
    Tests with two sanitizers
    15 minutes; needs nightly Rust for Linux on x86-64
miri
    Lookups beside a writer, with many seeds
    5 minutes; needs nightly Rust with Miri
machines
    Tests on i386 and on s390x
    30 minutes; needs gcc and qemu
fuzz [--full | SECONDS]
    Operations against a model, and snapshots with defects. `cargo run --example replay TARGET FILE` in fuzz repeats one
    2 minutes; --full: 20 minutes; needs nightly Rust, cargo-fuzz
lint [--full | --write]
    Sets of features, targets, the package, the public API; --full: licences, unused dependencies; --write: lists the API
    2 minutes; needs nightly Rust
full [--list] [PIECE...]
    Long forms of all checks; their lines \"figure ROW: TEXT\" go into docs/reliability.md
    hours; needs what they need
until-failure COMMAND...
    Runs a test binary up to its first failure, for mutants
list-api FILE
    Prints the public API that rustdoc describes in this file, for lint
";

/// The arguments after the name of a check.
pub(crate) struct Args(Vec<String>);

impl Args {
    pub(crate) fn has(&self, option: &str) -> bool {
        self.0.iter().any(|word| word == option)
    }

    /// Returns the arguments that are not options.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.iter().filter(|word| !word.starts_with("--")).cloned().collect()
    }
}

fn main() -> ExitCode {
    match check() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Without blanket and automatic implementations: hundreds of lines that no reviewer reads.
fn list_api(args: &Args) -> Result<()> {
    let file = args.names().pop().context("usage: cargo xtask list-api FILE")?;
    let described = public_api::Builder::from_rustdoc_json(file);
    let api = described.omit_blanket_impls(true).omit_auto_trait_impls(true).build()?;
    api.items().for_each(|item| println!("{item}"));
    Ok(())
}

fn check() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let name = words.next().unwrap_or_else(|| "help".into());
    let args = Args(words.collect());
    if name == "until-failure" {
        return mutants::until_failure(&args);
    }
    if name.trim_start_matches("--") == "help" {
        print!("{HELP}");
        return Ok(());
    }
    let mut usages = HELP.lines().filter(|line| line.split(' ').next() == Some(&name));
    let usage = usages.next().context("no such check: cargo xtask help")?;
    let unknown = args.0.iter().find(|word| word.starts_with("--") && !usage.contains(word.as_str()));
    ensure!(unknown.is_none() && (args.0.is_empty() || usage != name), "usage: cargo xtask {usage}");
    std::env::set_current_dir(tree::root())?;
    match &*name {
        "loom" => loom::check(&args),
        "schedules" => schedules::check(&args),
        "mutants" => mutants::check(&args),
        "full" => full::check(&args),
        "list-api" => list_api(&args),
        _ => {
            let status = run::command("xtask/checks.sh", [&name].into_iter().chain(&args.0)).status()?;
            ensure!(status.success(), "{name} failed");
            Ok(())
        }
    }
}
