//! The whole comparison in one process, turn by turn, and its record.

mod record;
mod sections;

use clap::{Parser, ValueEnum, value_parser};
use record::{Record, machine};
use sections::{Plan, Section};
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

/// Turns of a run in full.
const TURNS: u16 = 5;

/// Compares concurrent-cuckoo-filter with what one might use instead, and writes a dated record of it.
///
/// Every contestant takes its turn in the same process; tables show medians of the turns, and their ratios with the
/// spread. A record is only written by a run of every section in full, which takes less than 10 minutes on 2 cores;
/// let the machine be idle meanwhile.
#[derive(Parser)]
#[command(name = "compare", bin_name = "cargo run --release -p compare --")]
struct Options {
    /// The sections to run [default: all of them]
    #[arg(value_enum, value_name = "SECTION")]
    sections: Vec<Section>,

    /// Tiny sizes and one turn, to see that everything works; the figures mean nothing
    #[arg(long, conflicts_with = "turns")]
    quick: bool,

    /// Turns of each contestant; with fewer than the default there is no record
    #[arg(long, value_name = "N", default_value_t = TURNS, value_parser = value_parser!(u16).range(1..=1000))]
    turns: u16,

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
    fn unfit(&self) -> Option<&'static str> {
        if cfg!(debug_assertions) {
            Some("it takes --release")
        } else if self.quick {
            Some("it takes a run without --quick")
        } else if !Section::value_variants().iter().all(|&section| self.wants(section)) {
            Some("it takes every section")
        } else if self.turns < TURNS {
            Some("it takes more turns")
        } else {
            None
        }
    }
}

fn main() -> ExitCode {
    let done = match Options::try_parse() {
        Err(error) if error.use_stderr() => Err(one_line(&error.to_string()).into()),
        Err(help) => help.exit(),
        Ok(options) => run(&options),
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

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let records = !options.no_record && options.unfit().is_none();
    if records {
        std::fs::create_dir_all(&options.out)
            .map_err(|error| format!("--out {}: no folder for the record: {error}", options.out.display()))?;
    } else if let (false, Some(why)) = (options.no_record, options.unfit()) {
        eprintln!("no record will be written: {why}");
    }

    let plan = Plan::new(options.quick, if options.quick { 1 } else { options.turns.into() });
    let mut record = Record::new(&machine::today());
    machine::describe(&mut record, plan.turns);
    record.text(
        "Contestants take turns in one process, there and back. Speeds are the medians of the turns. A *ratio* is how many \
         times as fast this crate was as that contestant in the same turn, the median and in brackets the least and the most.",
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
