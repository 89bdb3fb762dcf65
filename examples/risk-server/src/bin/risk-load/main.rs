//! Load for the example server: how many requests a second it answers beside what one might use instead, and whether
//! it keeps its word when it is killed.
//!
//! ```text
//! compare   soak   check              what a person asks for
//! contest/  soak/  serve, fronts      turns and tables; a world of keys and a server that is killed; the variants
//! load, questions, churn, pace        requests without pause, and changes by the clock
//! child, client, connection           a server as a process; a blocking and an event-driven connection
//! http, keys, times, table, system    leaves
//! ```

mod args;
mod check;
mod child;
mod churn;
mod client;
mod connection;
mod contest;
mod fronts;
mod http;
mod keys;
mod load;
mod pace;
mod questions;
mod serve;
mod soak;
mod system;
mod table;
mod text;
mod times;

use clap::{Parser, Subcommand};
use std::io::{self, Write};
use std::process::ExitCode;

/// Load for risk-server, on this machine only.
#[derive(Parser)]
#[command(name = "risk-load", version)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Compare(contest::Options),
    Soak(soak::Options),
    Check(check::Options),
    #[command(hide = true)]
    Serve(serve::Options),
}

fn main() -> ExitCode {
    let done = match Options::parse().command {
        Command::Compare(options) => contest::run(&options),
        Command::Soak(options) => soak::run(&options),
        Command::Check(options) => check::run(&options),
        Command::Serve(options) => serve::run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Unlike `eprintln!`, this does not panic when nobody can hear it.
            let _ = writeln!(io::stderr(), "risk-load: {error}");
            ExitCode::FAILURE
        }
    }
}
