//! The server: opens the list while connections are accepted, saves snapshots, and ends in order.

use crate::config::{Config, Token};
use crate::connections::Connections;
use crate::http::{App, Front, Service};
use crate::list::List;
use std::convert::Infallible;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::runtime::{self, Runtime};
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::task::TaskTracker;

/// Threads for reads of the store, and for what takes long: a snapshot, a replacement's filter. Few, because waking a
/// thread for its next read costs more than the read: with 64 of them and 16 connections, a lookup of a listed key took
/// 42 to 52 us of processor time; with 4, 24 to 33.
const BLOCKING_THREADS: usize = 4;

/// Connections to the address for health and metrics. Few programs ask there.
const ADMIN_CONNECTIONS: usize = 100;

/// The executor of the server.
///
/// # Errors
/// If the system gives no threads.
pub fn runtime() -> io::Result<Runtime> {
    runtime::Builder::new_multi_thread().enable_all().max_blocking_threads(BLOCKING_THREADS).build()
}

/// Serves until a signal comes, the list cannot be opened, or the list accepts no more changes. `front` is given the
/// list's own front, and returns the one that lookups ask.
///
/// # Errors
/// In one sentence, why it could not serve, or what was wrong at the end.
pub async fn run(
    config: Config,
    token: Option<Token>,
    front: impl FnOnce(Arc<dyn Front>) -> Arc<dyn Front>,
) -> Result<(), String> {
    // From here on a signal is not missed.
    let mut signals = Signals::new().map_err(|error| format!("cannot wait for signals: {error}"))?;
    let app = Arc::new(App::new(config, token));
    let config = &app.config;
    let connections =
        |service, tasks, max| Connections::new(service, tasks, max, config.first_byte_seconds, config.idle_seconds);
    let (listener, address) = listen(config.listen).await?;
    if let Some(admin) = config.admin {
        let (listener, address) = listen(admin).await?;
        tracing::info!(%address, "health and metrics are answered here too");
        let service = Service::admin(Arc::clone(&app), config.hosts(admin));
        let connections = connections(service, TaskTracker::new(), ADMIN_CONNECTIONS);
        // To the very end: a server that shuts down is monitored, too.
        tokio::spawn(async move { connections.accept(&listener).await });
    }
    announce(address);

    let service = Service::new(Arc::clone(&app), config.hosts(config.listen));
    let connections = connections(service, app.connections.clone(), config.max_connections);
    let (ended, drain) = tokio::select! {
        never = connections.accept(&listener) => match never {},
        ended = keep(&app, front) => (ended, Duration::ZERO),
        signal = signals.next() => {
            // SIGINT comes from a person who waits; SIGTERM from a supervisor, which has to tell others first.
            let drain = if signal == "SIGTERM" { config.drain_seconds } else { Duration::ZERO };
            tracing::info!(signal, ?drain, "shutting down");
            (Ok(()), drain)
        }
    };

    app.begin_shutdown();
    tokio::select! {
        never = connections.accept(&listener) => match never {},
        () = sleep(drain) => {}
        signal = signals.next() => return Err(interrupted(signal)),
    }
    drop(listener);
    tokio::select! {
        closed = close(connections, &app) => ended.and(closed),
        signal = signals.next() => Err(interrupted(signal)),
    }
}

fn interrupted(signal: &str) -> String {
    format!("{signal} came a second time: ended at once, without a snapshot")
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), String> {
    let bound = TcpListener::bind(address).await;
    let bound = bound.and_then(|listener| listener.local_addr().map(|address| (listener, address)));
    bound.map_err(|error| format!("cannot listen on {address}: {error}"))
}

/// The one line on stdout: a program that started this one reads the address from it.
fn announce(address: SocketAddr) {
    let mut stdout = io::stdout();
    // It may be closed.
    let _ = writeln!(stdout, "listening on http://{address}").and_then(|()| stdout.flush());
}

/// Opens the list, then saves snapshots. Ends if the list cannot be opened, or accepts no more changes: closing it tells
/// why.
async fn keep(app: &Arc<App>, front: impl FnOnce(Arc<dyn Front>) -> Arc<dyn Front>) -> Result<(), String> {
    let (options, progress) = (app.config.list(), Arc::clone(app));
    let begun = Instant::now();
    tracing::info!(folder = %options.folder.display(), "opening the list");
    let opened = spawn_blocking(move || List::open(options, |keys| progress.loading(keys)));
    let opened = opened.await.map_err(|error| format!("the list was not opened: {error}"))?;
    let opened = opened.map_err(|error| error.to_string())?;
    tracing::info!(keys = opened.keys, from = ?opened.how, took = ?begun.elapsed(), "the list is open");
    app.loading(usize::try_from(opened.keys).unwrap_or(usize::MAX));
    let list = opened.list;
    app.serve(list.clone(), front(Arc::new(list.clone())));
    tokio::select! {
        () = list.ended() => Ok(()),
        never = save_snapshots(&list, app.config.snapshot_minutes) => match never {},
    }
}

async fn save_snapshots(list: &List, period: Duration) -> Infallible {
    if period.is_zero() {
        return std::future::pending().await;
    }
    let mut times = interval(period);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    times.tick().await; // the first one comes at once
    loop {
        times.tick().await;
        // It logs its own errors.
        let _ = list.save_snapshot().await;
    }
}

/// Lets requests complete, then closes the list.
async fn close(connections: Connections, app: &App) -> Result<(), String> {
    let (start, time) = (Instant::now(), app.config.shutdown_seconds);
    let cut_off = connections.finish(time).await;
    if cut_off > 0 {
        tracing::warn!(connections = cut_off, ?time, "cut off connections whose requests did not end in time");
    }
    if let Some(list) = app.list() {
        list.clone().close().await.map_err(|error| format!("at the end: {error}"))?;
        tracing::info!(took = ?start.elapsed(), "the list is closed");
    }
    Ok(())
}

/// A signal so soon after another one is its echo: a terminal and a supervisor may pass on the same request.
#[cfg(unix)]
const ECHO: Duration = Duration::from_secs(1);

/// SIGTERM and SIGINT. SIGHUP, which a terminal sends when it is closed, is ignored.
#[cfg(unix)]
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    last: Option<Instant>,
}

#[cfg(unix)]
impl Signals {
    /// Signals that come from now on are kept until they are asked for.
    fn new() -> io::Result<Self> {
        // Its handler stays for as long as the process lives.
        drop(signal(SignalKind::hangup())?);
        let [terminate, interrupt] = [SignalKind::terminate(), SignalKind::interrupt()].map(signal);
        Ok(Signals { terminate: terminate?, interrupt: interrupt?, last: None })
    }

    /// The name of the next one that is not an echo.
    async fn next(&mut self) -> &'static str {
        loop {
            let name = tokio::select! {
                _ = self.terminate.recv() => "SIGTERM",
                _ = self.interrupt.recv() => "SIGINT",
            };
            if self.last.is_none_or(|last| last.elapsed() > ECHO) {
                self.last = Some(Instant::now());
                return name;
            }
        }
    }
}

/// Ctrl-C.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Signals)
    }

    async fn next(&mut self) -> &'static str {
        match tokio::signal::ctrl_c().await {
            Ok(()) => "Ctrl-C",
            Err(_) => std::future::pending().await,
        }
    }
}
