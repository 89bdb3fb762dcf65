//! Load for risk-server: how many requests it answers compared with what one might use instead of the filter, and
//! whether it keeps its promises when it is killed.

mod client;
mod compare;
mod keys;
mod process;
mod soak;

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use std::time::Duration;
use tokio::task::LocalSet;

/// Load for risk-server, on this machine only.
#[derive(Parser)]
#[command(name = "risk-load", version)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Compare(compare::Options),
    Soak(soak::Options),
    #[command(hide = true)]
    Serve(compare::ServeOptions),
}

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"));
    // One thread: the load shares its processors with the server.
    let tasks = LocalSet::new();
    let done = match Options::parse().command {
        Command::Compare(options) => runtime.and_then(|runtime| tasks.block_on(&runtime, compare::run(&options))),
        Command::Soak(options) => runtime.and_then(|runtime| tasks.block_on(&runtime, soak::run(&options))),
        Command::Serve(options) => compare::serve(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("risk-load: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Seconds of the command line.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.01..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "a number from 0.01 to 86400 is needed".to_owned())
}

/// Three digits and a unit.
fn human(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let (number, unit) = match seconds {
        _ if seconds < 1e-3 => (seconds * 1e6, "us"),
        _ if seconds < 1.0 => (seconds * 1e3, "ms"),
        _ => (seconds, "s"),
    };
    let digits = if number < 10.0 { 2 } else { usize::from(number < 100.0) };
    format!("{number:.digits$} {unit}")
}
