//! The command: which cases are run, and how much of them.

use crate::cases::{Plan, SECTIONS};
use crate::contestants::Contestant;
use crate::record::{Record, machine};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Parser, value_parser};
use std::path::PathBuf;
use std::process::ExitCode;

/// Slices of each case in full.
const ROUNDS: u16 = 40;

/// Compares concurrent-cuckoo-filter with what one might use instead, and writes the page docs/benchmarks/README.md.
///
/// All cases of a table run in turn in one process, in short slices, and the 10th percentile of each one's slices counts. Only a
/// run of every section in full writes the page: about 10 minutes on 2 cores; let the machine be idle meanwhile.
/// benches/against/run.sh COMMIT compares with an earlier commit of the crate in the place of the peers.
#[derive(Parser)]
#[command(name = "compare", bin_name = "cargo run --release -p compare --")]
struct Options {
    /// The sections to run [default: all of them]
    #[arg(value_name = "SECTION", value_parser = names())]
    sections: Vec<String>,

    /// Tiny sizes and two rounds, to see that everything works; the figures mean nothing
    #[arg(long)]
    quick: bool,

    /// Slices of each case; with fewer than the default no page is written
    #[arg(long, value_name = "N", default_value_t = ROUNDS, value_parser = value_parser!(u16).range(2..=1000))]
    rounds: u16,

    /// Prints only
    #[arg(long)]
    no_record: bool,

    /// The folder of the page
    #[arg(long, value_name = "DIR", default_value = "docs/benchmarks")]
    out: PathBuf,
}

fn names() -> PossibleValuesParser {
    SECTIONS.map(|(name, help, _)| PossibleValue::new(name).help(help)).into()
}

/// Runs what the command line asks for. An earlier commit of the crate takes the place of the peers.
pub fn main(earlier: Vec<Contestant>) -> ExitCode {
    run(Options::parse(), earlier)
}

fn run(options: Options, earlier: Vec<Contestant>) -> ExitCode {
    let wanted = |name: &str| options.sections.is_empty() || options.sections.iter().any(|section| section == name);
    let sections: Vec<_> = SECTIONS.into_iter().filter(|section| wanted(section.0)).collect();
    let whole = sections.len() == SECTIONS.len() && options.rounds >= ROUNDS && !options.quick;
    let records = whole && !options.no_record && earlier.is_empty() && !cfg!(debug_assertions);

    let rounds = if options.quick { 2 } else { options.rounds.into() };
    let (plan, mut record) = (Plan::new(options.quick, rounds, earlier), Record::default());
    record.text(
        "# Benchmarks\n\nFrom one run of `cargo run --release -p compare`, which rewrites this page in about 10 minutes \
         on 2 cores. Absolute speeds vary between machines and hours, so compare the ratios. All cases of a table run in \
         turn in one process, in short slices, each after two untimed ones. Each figure is the 10th percentile of the \
         slices, because other work makes slices longer, never shorter. Speeds are millions of operations per second, of \
         u64 keys. [limits.md](limits.md) has the limits of each operation, and the attempts to make it faster; \
         `benches/against/run.sh COMMIT` compares with an earlier commit. Earlier records are in git.",
    );
    machine::describe(&mut record);
    for (name, _, run) in sections {
        plan.step(name);
        // Those of docs/claims.md, which has their tables.
        record.aside = matches!(name, "occupancy" | "turnover");
        run(&plan, &mut record);
    }
    record.aside = false;
    record.text(&format!("All sections took {} min {} s.", plan.seconds() / 60, plan.seconds() % 60));
    if !records {
        eprintln!("no page is written: it takes a run of every section in full, with --release");
        return ExitCode::SUCCESS;
    }
    match record.save(&options.out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: the page cannot be written to {}: {error}", options.out.display());
            ExitCode::FAILURE
        }
    }
}

/// With tiny sizes: each case works, whatever it measures.
#[test]
fn every_section_runs() {
    assert_eq!(run(Options::parse_from(["compare", "--quick", "--no-record"]), Vec::new()), ExitCode::SUCCESS);
}
