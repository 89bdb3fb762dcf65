//! The program: options, logs, threads, and then the server.

use clap::Parser;
use risk_server::config::{Config, LogFormat};
use risk_server::server;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let config = Config::parse();
    match run(&config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Unlike `eprintln!`, this does not panic when nobody can hear it.
            let _ = writeln!(io::stderr(), "risk-server: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(config: &Config) -> Result<(), String> {
    let access = config.access().map_err(|error| error.to_string())?;
    start_logs(config)?;
    let runtime = server::runtime().map_err(|error| format!("no threads for the server: {error}"))?;
    let outcome = runtime.block_on(server::run(config, access));
    // A list that is still being loaded has nothing to save, and is not waited for.
    runtime.shutdown_background();
    outcome.map_err(|error| error.to_string())
}

fn start_logs(config: &Config) -> Result<(), String> {
    let asked = config.log.clone().or_else(|| std::env::var(EnvFilter::DEFAULT_ENV).ok());
    let asked = asked.filter(|filter| !filter.is_empty()).unwrap_or_else(|| "info".to_owned());
    let filter = EnvFilter::try_new(&asked)
        .map_err(|error| format!("{asked:?} is no filter for logs, such as info or risk_server=debug: {error}"))?;
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    match config.log_format {
        LogFormat::Text => logs.with_ansi(io::stderr().is_terminal()).init(),
        LogFormat::Json => logs.json().init(),
    }
    Ok(())
}
