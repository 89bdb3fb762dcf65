//! A sign-up service: worker threads ask for each new account whether the domain of its address is on a list of
//! throw-away domains, while the list changes under them.
//!
//! ```text
//! cargo run --release -p examples
//! cargo run --release -p examples -- --help
//! ```
//!
//! `list` reads the file, `addresses` makes IP addresses in its place, `made` keys besides it, `sign_ups` prepares what is asked. `load` and `run`, the service,
//! are the places to see how the filter is used, `snapshot` how it is saved. `memory` and `report` tell what it takes
//! and what came of it.

mod addresses;
mod arguments;
mod list;
mod load;
mod made;
mod memory;
mod progress;
mod report;
mod run;
mod sign_ups;
mod snapshot;

use arguments::Arguments;
use clap::Parser;
use list::{List, Text};
use memory::Announced;
use report::{Filled, Report};
use sign_ups::SignUps;
use snapshot::Snapshot;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    match serve(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Unlike `eprintln!`, this does not panic when stderr is closed.
            let _ = writeln!(io::stderr(), "risk_control: {error}");
            ExitCode::FAILURE
        }
    }
}

fn cannot_write(error: io::Error) -> String {
    format!("cannot write the report: {error}")
}

/// Does it all. An error is one line for the user.
fn serve(arguments: &Arguments) -> Result<(), String> {
    arguments.check()?;

    let start = Instant::now();
    let text = match arguments.ips {
        Some(count) => Text { keys: addresses::list(count), blank_lines: 0 },
        None => list::read(&arguments.list())?,
    };
    let list = List::new(&text);
    let read_in = start.elapsed();

    let snapshot = Snapshot::asked_for(arguments, &text, &list);
    let found = snapshot.as_ref().map(Snapshot::is_there).transpose()?.unwrap_or(false);

    // Before the memory is announced, so that it counts as taken.
    // Keys that are made are there before the run, or are added during it.
    let (made, added) = if arguments.grow { (0, arguments.made()) } else { (arguments.made(), 0) };
    let sign_ups = SignUps::prepare(&list, arguments.ips.is_some(), made);

    let keys = list.keys.len().saturating_add(made + added);
    let builder = arguments.builder(keys);
    let announced = Announced::new(&builder, keys, arguments.threads() + 1).map_err(|error| error.to_string())?;
    announced.check()?;
    report::announce(&announced).map_err(cannot_write)?;

    let (filter, filled) = match &snapshot {
        Some(snapshot) if found => {
            let (filter, loaded) = snapshot.load()?;
            (filter, Filled::FromSnapshot(loaded))
        }
        _ => {
            let start = Instant::now();
            let filter = builder.build().map_err(|error| error.to_string())?;
            load::listed(&filter, &list)?;
            let listed_in = start.elapsed();
            let start = Instant::now();
            load::made(&filter, made)?;
            (filter, Filled::FromKeys { listed_in, made_in: start.elapsed() })
        }
    };

    let outcome = run::run(&filter, &sign_ups, added, arguments.threads(), arguments.duration()?)?;

    let report = Report {
        asked_rate: arguments.rate,
        text: &text,
        list: &list,
        made,
        added,
        read_in,
        filled: &filled,
        announced: &announced,
        filter: &filter,
        sign_ups: &sign_ups,
        outcome: &outcome,
    };
    report.print().map_err(cannot_write)?;
    outcome.check(&filter, &list, made + added)?;

    if let Some(snapshot) = &snapshot {
        report::saved(&snapshot.save(&filter)?).map_err(cannot_write)?;
    }
    Ok(())
}
