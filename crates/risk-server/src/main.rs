//! An exact list of keys behind HTTP, with a concurrent cuckoo filter in front of its store.
//! This file has the options, the log, connections, and signals.

mod http;
mod list;

use clap::Parser;
use http::App;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use list::List;
use rustix::fs::Mode;
use std::convert::Infallible;
use std::future::pending;
use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::block_in_place;
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;
use tracing_subscriber::EnvFilter;

/// The variable with the token. It is not an option, because every user of a machine can read the options of a process.
const TOKEN: &str = "RISK_SERVER_TOKEN";

/// The maximum number of bytes of the head of a request, and of a body that are read ahead.
const BUFFER: usize = 1 << 16;

/// The pause after an error that concerns all connections, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// An exact list of keys behind HTTP, with a concurrent cuckoo filter in front of its store.
///
/// Prints its address on stdout once it listens, and logs to stderr. On SIGTERM or Ctrl-C it completes the requests in progress,
/// saves a snapshot and exits; a second signal ends it at once.
#[derive(Debug, Parser)]
#[command(name = "risk-server", version, after_help = AFTER_HELP)]
struct Config {
    /// The address to listen on; port 0 selects a free one. An address that other machines can reach requires a token
    #[arg(long, env = "RISK_SERVER_LISTEN", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,

    /// The folder of the store and the snapshot; created if absent
    #[arg(long, env = "RISK_SERVER_DATA", default_value = "risk-server-data")]
    data: PathBuf,

    /// The number of keys that the filter holds before it grows
    #[arg(long, env = "RISK_SERVER_CAPACITY", default_value_t = 1_000_000, value_parser = count)]
    capacity: usize,

    /// The maximum number of keys of the list, or the capacity if that is larger; puts beyond it are refused. The larger the ratio to
    /// the capacity, the more memory the filter takes per key
    #[arg(long, env = "RISK_SERVER_MAX_CAPACITY", default_value_t = 16_000_000, value_parser = count)]
    max_capacity: usize,

    /// The fraction of unlisted keys that may cost a read of the store: above 0, below 1
    #[arg(long, env = "RISK_SERVER_FALSE_POSITIVE_RATE", default_value_t = 0.001, value_parser = rate)]
    false_positive_rate: f64,

    /// The interval between snapshots in seconds
    #[arg(long, env = "RISK_SERVER_SNAPSHOT_SECONDS", default_value = "300", value_parser = seconds)]
    snapshot_seconds: Duration,

    /// The memory for pages of the store in MiB
    #[arg(long, env = "RISK_SERVER_CACHE_MIB", default_value_t = 64, value_parser = |text: &str| number(text, 1, 1 << 20))]
    cache_mib: usize,

    /// The memory for the bodies of all requests in MiB; above it, a request gets status 503
    #[arg(long, env = "RISK_SERVER_MAX_BODIES_MIB", default_value_t = 64, value_parser = |text: &str| number(text, 32, 1 << 20))]
    max_bodies_mib: usize,

    /// The maximum length of a JSON body in bytes; a body of lines may have any length
    #[arg(long, env = "RISK_SERVER_MAX_BODY_BYTES", default_value_t = 1 << 20, value_parser = count)]
    max_body_bytes: usize,

    /// The maximum number of open connections; others wait
    #[arg(long, env = "RISK_SERVER_MAX_CONNECTIONS", default_value_t = 1000, value_parser = count)]
    max_connections: usize,

    /// The time limit in seconds of a JSON body, of a read of the store, of a change, and of requests in progress at the end
    #[arg(long, env = "RISK_SERVER_REQUEST_SECONDS", default_value = "10", value_parser = seconds)]
    request_seconds: Duration,

    /// The time in seconds that a client may send nothing, before or within a request, or not read its response
    #[arg(long, env = "RISK_SERVER_IDLE_SECONDS", default_value = "30", value_parser = seconds)]
    idle_seconds: Duration,
}

const AFTER_HELP: &str = "\
RISK_SERVER_TOKEN may hold a token; PUT, DELETE and POST /v1/keys then need the header 'Authorization: Bearer TOKEN'.
RUST_LOG selects what is logged [default: info].";

fn count(text: &str) -> Result<usize, String> {
    number(text, 1, 10_000_000_000)
}

fn number(text: &str, least: usize, most: usize) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("a whole number from {least} to {most} is needed"))
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|&rate| 0.0 < rate && rate < 1.0);
    rate.ok_or_else(|| "a number above 0 and below 1 is needed".to_owned())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let duration = text.parse().ok().and_then(|number| Duration::try_from_secs_f64(number).ok());
    let duration =
        duration.filter(|duration| (Duration::from_millis(1)..=Duration::from_secs(604_800)).contains(duration));
    duration.ok_or_else(|| "a number from 0.001 to 604800 is needed".to_owned())
}

impl Config {
    /// The token that writing requests must carry.
    fn token(&self) -> Result<Option<String>, String> {
        match std::env::var(TOKEN) {
            Ok(token) if !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(Some(token)),
            Err(std::env::VarError::NotPresent) if self.listen.ip().to_canonical().is_loopback() => Ok(None),
            Err(std::env::VarError::NotPresent) => {
                Err(format!("{} can be reached from other machines, so a token is needed: set {TOKEN}", self.listen))
            }
            _ => Err(format!("{TOKEN} is not a token; give visible ASCII characters")),
        }
    }
}

fn main() -> ExitCode {
    let ended = run(Config::parse());
    if let Err(error) = &ended {
        let _ = writeln!(io::stderr(), "risk-server: {error}");
    }
    if ended.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(config: Config) -> Result<(), String> {
    // Only the owner can read the files.
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    let token = config.token()?;
    let filter = EnvFilter::builder().with_default_directive(tracing::Level::INFO.into());
    let filter = filter.from_env().map_err(|error| format!("RUST_LOG is not a filter for logs: {error}"))?;
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    // A line that cannot be written is lost: an error message on stderr would panic.
    logs.log_internal_errors(false).with_ansi(io::stderr().is_terminal()).init();
    let runtime = Runtime::new().map_err(|error| format!("no threads for the server: {error}"))?;
    let outcome = runtime.block_on(serve(config, token));
    // Closes connections that have not ended in time.
    runtime.shutdown_background();
    outcome
}

/// Serves until a signal arrives, or the list accepts no more changes.
async fn serve(config: Config, token: Option<String>) -> Result<(), String> {
    let cannot = |error| format!("cannot listen on {}: {error}", config.listen);
    // Connections wait in the listener until the list is open.
    let listener = TcpListener::bind(config.listen).await.map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let config = Arc::new(config);
    // Blocking is allowed here, since nothing else runs yet.
    let (list, ended) = block_in_place(|| List::open(Arc::clone(&config)))?;
    let app = Arc::new(App::new(config, token, list));
    let signal = signalled()?;
    // The only line on stdout, which may be closed. A parent process reads the address from it.
    let _ = writeln!(io::stdout(), "listening on http://{address}");

    let graceful = GracefulShutdown::new();
    let ended = tokio::select! {
        never = accept(&app, &listener, &graceful) => match never {},
        never = save_snapshots(&app) => match never {},
        _ = ended => Err("the thread that changes the list panicked; the log says where".to_owned()),
        signal = signal => {
            tracing::info!(signal, "shutting down");
            Ok(())
        }
    };
    let again = signalled()?;
    drop(listener);
    tokio::select! {
        closed = close(&app, graceful) => ended.and(closed),
        signal = again => Err(format!("{signal} came a second time: ended at once, without a snapshot")),
    }
}

/// Accepts connections forever. May be dropped at any time.
async fn accept(app: &Arc<App>, listener: &TcpListener, graceful: &GracefulShutdown) -> Infallible {
    let idle = app.config.idle_seconds;
    let mut protocol = http1::Builder::new();
    protocol.timer(TokioTimer::new()).header_read_timeout(idle).max_buf_size(BUFFER);
    let service = TowerToHyperService::new(http::router(app));
    loop {
        let Ok(place) = Arc::clone(&app.connections).acquire_owned().await else { return pending().await };
        match listener.accept().await {
            Ok((stream, _)) => {
                // Responses are short and complete, so waiting for more data would gain nothing.
                let _ = stream.set_nodelay(true);
                // Closes the connection of a client that does not read. The protocol and the bodies have time limits for clients that
                // send nothing.
                let mut stream = TimeoutStream::new(stream);
                stream.set_write_timeout(Some(idle));
                let connection = protocol.serve_connection(TokioIo::new(Box::pin(stream)), service.clone());
                let connection = graceful.watch(connection);
                tokio::spawn(async move {
                    let _place = place;
                    if let Err(error) = connection.await {
                        tracing::debug!(%error, "a connection broke off");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn save_snapshots(app: &App) -> Infallible {
    loop {
        sleep(app.config.snapshot_seconds).await;
        // The function logs its own errors.
        let _ = app.list.save_snapshot().await;
    }
}

/// Waits for requests in progress, then closes the list.
async fn close(app: &App, graceful: GracefulShutdown) -> Result<(), String> {
    let time = app.config.request_seconds;
    if timeout(time, graceful.shutdown()).await.is_err() {
        tracing::warn!(?time, "cut off connections whose requests did not end in time");
    }
    app.list.close().await.map_err(|error| format!("at the end: {error}"))?;
    tracing::info!("the list is closed");
    Ok(())
}

/// Waits for the next signal that requests an end, and returns its name.
fn signalled() -> Result<impl Future<Output = &'static str>, String> {
    let signal = |kind| signal(kind).map_err(|error| format!("cannot wait for signals: {error}"));
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        }
    })
}
