//! The program: options, logs, threads, and then the server.

use clap::Parser;
use risk_server::{Config, LogFormat};
use std::backtrace::Backtrace;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;
use tracing_subscriber::EnvFilter;

/// Lines that wait for a slow reader of stderr. Further ones are dropped: a log must not stop the server.
const WAITING_LINES: usize = 1 << 12;

/// How long the last lines have to be written.
const FLUSH: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let config = Config::parse();
    let (mut stderr, flushed) = Stderr::new();
    let ended = run(config, stderr.clone());
    if let Err(error) = &ended {
        let _ = stderr.write(format!("risk-server: {error}\n").as_bytes());
    }
    let _ = stderr.write(b"");
    let _ = flushed.recv_timeout(FLUSH);
    if ended.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Lines on their way to stderr. A thread of its own writes them, and drops what cannot be written: writing to a full
/// pipe blocks until it is read, and without a reader is an error. (tracing-appender does the same, but prints to stdout
/// when its queue is full at the end, and so may never end.)
#[derive(Clone)]
struct Stderr(SyncSender<Vec<u8>>);

impl Stderr {
    /// The receiver is told once everything before an empty line is written.
    fn new() -> (Self, Receiver<()>) {
        let (sender, lines) = sync_channel::<Vec<u8>>(WAITING_LINES);
        let (told, flushed) = sync_channel(1);
        thread::spawn(move || {
            for line in lines {
                let _ = if line.is_empty() { told.send(()).is_ok() } else { io::stderr().write_all(&line).is_ok() };
            }
        });
        (Stderr(sender), flushed)
    }
}

impl Write for Stderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let _ = self.0.try_send(line.to_vec());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn run(config: Config, stderr: Stderr) -> Result<(), String> {
    let token = config.token()?;
    start_logs(&config, stderr)?;
    let runtime = risk_server::runtime().map_err(|error| format!("no threads for the server: {error}"))?;
    let outcome = runtime.block_on(risk_server::run(config, token, |front| front));
    // A list that is still being loaded has nothing to save.
    runtime.shutdown_background();
    outcome
}

fn start_logs(config: &Config, stderr: Stderr) -> Result<(), String> {
    let asked = config.log.clone().or_else(|| std::env::var(EnvFilter::DEFAULT_ENV).ok());
    let asked = asked.filter(|filter| !filter.is_empty()).unwrap_or_else(|| "info".to_owned());
    let filter = EnvFilter::try_new(&asked)
        .map_err(|error| format!("{asked:?} is not a filter for logs, such as info or risk_server=debug: {error}"))?;
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(move || stderr.clone());
    match config.log_format {
        LogFormat::Text => logs.with_ansi(io::stderr().is_terminal()).init(),
        LogFormat::Json => logs.json().init(),
    }
    // The default hook writes to stderr itself, and waits for its reader.
    std::panic::set_hook(Box::new(|panic| {
        let (thread, backtrace) = (thread::current(), Backtrace::capture());
        tracing::error!(thread = thread.name(), %backtrace, "{panic}");
    }));
    Ok(())
}
