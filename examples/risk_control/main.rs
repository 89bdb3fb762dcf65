//! A sign-up service: worker threads ask for each new account whether the domain of its address is on a list of
//! throw-away domains, while the list changes under them.
//!
//! ```text
//! cargo run --release --example risk_control
//! cargo run --release --example risk_control -- --help
//! ```
//!
//! `list` reads the file, `sign_ups` prepares what is asked, `run` is the service and the place to see how the filter
//! is used, `report` prints what came of it.

mod arguments;
mod list;
mod report;
mod run;
mod sign_ups;

use arguments::Arguments;
use clap::Parser;
use concurrent_cuckoo_filter::CuckooFilter;
use list::List;
use report::Report;
use sign_ups::SignUps;
use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    match serve(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Unlike `eprintln!`, this does not panic when nobody can hear it.
            let _ = writeln!(std::io::stderr(), "risk_control: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Does it all. An error is one line for the user.
fn serve(arguments: &Arguments) -> Result<(), String> {
    arguments.check()?;

    let start = Instant::now();
    let text = list::read(&arguments.list())?;
    let list = List::new(&text);
    let read_in = start.elapsed();

    let start = Instant::now();
    let filter = CuckooFilter::<str>::builder()
        .capacity(list.keys.len())
        .false_positive_rate(arguments.rate)
        .build()
        .map_err(|error| error.to_string())?;
    list.store_in(&filter)?;
    let filled_in = start.elapsed();

    let sign_ups = SignUps::prepare(&list);
    let outcome = run::run(&filter, &sign_ups, arguments.threads(), arguments.duration()?)?;

    let report = Report {
        asked_rate: arguments.rate,
        text: &text,
        list: &list,
        read_in,
        filled_in,
        filter: &filter,
        sign_ups: &sign_ups,
        outcome: &outcome,
    };
    report.print().map_err(|error| format!("cannot write the report: {error}"))?;
    outcome.check(&filter, &list)
}
