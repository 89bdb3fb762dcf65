//! The command: which cases are run, and how much of them.

use crate::cases::{Plan, Section};
use crate::contestants::Version;
use crate::record::{Record, machine};
use clap::{Parser, ValueEnum, value_parser};
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

/// Rounds of a run in full.
const ROUNDS: u16 = 40;

/// Compares concurrent-cuckoo-filter with what one might use instead, and writes a dated record of it.
///
/// All cases run in turn in one process, in short slices, and the 10th percentile of each one's slices counts. A record is
/// only written by a run of every section in full, which takes about 10 minutes on 2 cores; let the machine be idle
/// meanwhile. benches/against/run.sh COMMIT adds an earlier commit of the crate to some sections, and writes no record.
#[derive(Parser)]
#[command(name = "compare", bin_name = "cargo run --release -p compare --")]
struct Options {
    /// The sections to run [default: all of them]
    #[arg(value_enum, value_name = "SECTION")]
    sections: Vec<Section>,

    /// Tiny sizes and two rounds, to see that everything works; the figures mean nothing
    #[arg(long, conflicts_with_all = ["rounds", "large"])]
    quick: bool,

    /// Slices of each case; with fewer than the default there is no record
    #[arg(long, value_name = "N", default_value_t = ROUNDS, value_parser = value_parser!(u16).range(2..=1000))]
    rounds: u16,

    /// Slots of the largest tables of this crate, as a power of two; 27 takes 8 GiB and some minutes more
    #[arg(long, value_name = "LOG2", default_value_t = 24, value_parser = value_parser!(u32).range(21..=30))]
    large: u32,

    /// Prints only
    #[arg(long)]
    no_record: bool,

    /// The folder of the records
    #[arg(long, value_name = "DIR", default_value = "docs/benchmarks")]
    out: PathBuf,
}

impl Options {
    fn wants(&self, section: Section) -> bool {
        self.sections.is_empty() || self.sections.contains(&section)
    }

    /// Why a run like this is not worth a record, if it is not.
    fn unfit(&self, earlier: bool) -> Option<&'static str> {
        if cfg!(debug_assertions) {
            Some("it takes --release")
        } else if earlier {
            Some("it takes a run without an earlier commit")
        } else if self.quick {
            Some("it takes a run without --quick")
        } else if !Section::value_variants().iter().all(|&section| self.wants(section)) {
            Some("it takes every section")
        } else if self.rounds < ROUNDS {
            Some("it takes more rounds")
        } else {
            None
        }
    }
}

/// Runs what the command line asks for, with an earlier commit of the crate as one more contestant if there is one.
pub fn main(earlier: Option<Version>) -> ExitCode {
    let done = match Options::try_parse() {
        Err(error) if error.use_stderr() => Err(one_line(&error.to_string()).into()),
        Err(help) => help.exit(),
        Ok(options) => run(&options, earlier),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// What is wrong and what would be right, without the paragraphs around it.
fn one_line(error: &str) -> String {
    let lines = error.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("Usage"));
    let lines: Vec<&str> = lines.filter(|line| !line.starts_with("For more information")).collect();
    lines.join("; ").trim_start_matches("error: ").into()
}

fn run(options: &Options, earlier: Option<Version>) -> Result<(), Box<dyn Error>> {
    let unfit = options.unfit(earlier.is_some());
    let records = !options.no_record && unfit.is_none();
    if records {
        std::fs::create_dir_all(&options.out)
            .map_err(|error| format!("--out {}: no folder for the record: {error}", options.out.display()))?;
    } else if let (false, Some(why)) = (options.no_record, unfit) {
        eprintln!("no record will be written: {why}");
    }

    let rounds = if options.quick { 2 } else { options.rounds.into() };
    let plan = Plan::new(options.quick, rounds, options.large, earlier);
    let mut record = Record::new(&machine::today());
    machine::describe(&mut record, plan.rounds);
    record.text(
        "All cases run in turn in one process, in short slices; the 10th percentile of each one's slices counts. Speeds are \
         millions of operations a second, and what a number in brackets compares is said where it stands. This crate has \
         13 bits a fingerprint, as by default, unless a row says otherwise; peers have 13, 16 or 8, the first of these that \
         they can do.",
    );
    for &section in Section::value_variants() {
        if options.wants(section) {
            plan.step(&format!("{section:?}"));
            section.run(&plan, &mut record);
        }
    }
    plan.step("done");
    record.text(&format!("All of this took {} minutes and {} seconds.", plan.seconds() / 60, plan.seconds() % 60));
    if records {
        let path = record
            .save(&options.out)
            .map_err(|error| format!("--out {}: the record cannot be written: {error}", options.out.display()))?;
        eprintln!("the record is {}", path.display());
    }
    Ok(())
}
