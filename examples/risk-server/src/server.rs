//! The server: opens the list while connections are accepted, saves snapshots, and ends in order.

mod connections;
mod signals;

pub use connections::Connections;

use crate::config::Config;
use crate::http::{Access, App, Service};
use crate::list::{CloseError, List, OpenError, Options, Saved};
use signals::Signals;
use std::convert::Infallible;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::runtime::{self, Runtime};
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval, sleep};

/// Why the server ended, unless it was told to.
#[derive(Debug, Error)]
pub enum ServerError {
    /// The address is taken, or not one of this machine.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The system would not tell of signals.
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
    /// The list cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The thread that opened the list did not come to an end.
    #[error("the list was not opened: {0}")]
    Opening(tokio::task::JoinError),
    /// A second signal came before the list was closed.
    #[error("{0} came a second time: ended at once, without a snapshot")]
    Interrupted(&'static str),
    /// The list could not be closed as it should.
    #[error("at the end: {0}")]
    Close(#[from] CloseError),
}

/// Threads for reads of the store, and for what takes long: a snapshot, a replacement's filter. Few, because a thread
/// that sleeps must be woken for its next read, which costs more than the read: with 64 of them and 16 connections, a
/// look-up of a listed key took 42 to 52 us of processor time; with 4, 24 to 33.
const BLOCKING_THREADS: usize = 4;

/// Connections to the address for health and metrics. A few programs ask there.
const ADMIN_CONNECTIONS: usize = 100;

/// The executor of the server.
///
/// # Errors
/// If the system gives no threads.
pub fn runtime() -> io::Result<Runtime> {
    runtime::Builder::new_multi_thread().enable_all().max_blocking_threads(BLOCKING_THREADS).build()
}

/// Serves until a signal comes, the list cannot be opened, or nothing changes it any more.
///
/// # Errors
/// See [`ServerError`].
pub async fn run(config: &Config, access: Access) -> Result<(), ServerError> {
    // From here on a signal is not missed.
    let mut signals = Signals::new().map_err(ServerError::Signals)?;
    let app = App::new(config.limits(), access);
    let connections = |service, most| Connections::new(service, most, config.first_byte_seconds, config.idle_seconds);
    let (listener, address) = listen(config.listen).await?;
    if let Some(admin) = config.admin {
        let (listener, address) = listen(admin).await?;
        tracing::info!(%address, "health and metrics are answered here too");
        let mut connections = connections(Service::admin(app.clone(), config.hosts(admin)), ADMIN_CONNECTIONS);
        // To the very end: a server that shuts down is watched, too.
        tokio::spawn(async move { connections.accept(&listener).await });
    }
    announce(address);

    let mut connections = connections(Service::new(app.clone()), config.max_connections);
    let (ended, drain) = tokio::select! {
        never = connections.accept(&listener) => match never {},
        ended = keep(&app, config.list(), config.snapshot_minutes) => (ended, Duration::ZERO),
        signal = signals.next() => {
            // Whoever sends SIGINT looks on; SIGTERM comes from what also has to tell others to send no more.
            let drain = if signal == "SIGTERM" { config.drain_seconds } else { Duration::ZERO };
            tracing::info!(signal, ?drain, "shutting down");
            (Ok(()), drain)
        }
    };

    app.begin_shutdown();
    tokio::select! {
        never = connections.accept(&listener) => match never {},
        () = sleep(drain) => {}
        signal = signals.next() => return Err(ServerError::Interrupted(signal)),
    }
    drop(listener);
    tokio::select! {
        closed = close(connections, &app, config.shutdown_seconds) => ended.and(closed),
        signal = signals.next() => Err(ServerError::Interrupted(signal)),
    }
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ServerError> {
    let bound = TcpListener::bind(address).await;
    let bound = bound.and_then(|listener| listener.local_addr().map(|address| (listener, address)));
    bound.map_err(|source| ServerError::Listen { address, source })
}

/// The one line on stdout; whoever started this program reads from it where to ask.
fn announce(address: SocketAddr) {
    let mut stdout = io::stdout();
    // Nobody may be listening.
    let _ = writeln!(stdout, "listening on http://{address}").and_then(|()| stdout.flush());
}

/// Opens the list, then saves snapshots. Ends if the list cannot be opened, or takes no changes any more: why, is found
/// out when it is closed.
async fn keep(app: &App, options: Options, between_snapshots: Duration) -> Result<(), ServerError> {
    let list = open(app, options).await?;
    tokio::select! {
        () = list.ended() => Ok(()),
        never = save_snapshots(&list, between_snapshots) => match never {},
    }
}

async fn save_snapshots(list: &List, between_snapshots: Duration) -> Infallible {
    if between_snapshots.is_zero() {
        return std::future::pending().await;
    }
    let mut times = interval(between_snapshots);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    times.tick().await; // the first one comes at once
    loop {
        times.tick().await;
        match list.save_snapshot().await {
            Ok(Saved::Written { bytes, copy, took }) => tracing::info!(bytes, ?copy, ?took, "saved a snapshot"),
            Ok(Saved::NothingNew) => tracing::debug!("no snapshot: nothing changed since the last one"),
            Ok(Saved::Overflowing) => tracing::info!("no snapshot: a larger filter is being built"),
            Err(error) => tracing::error!(%error, "no snapshot was saved"),
        }
    }
}

async fn open(app: &App, options: Options) -> Result<List, ServerError> {
    tracing::info!(folder = %options.folder.display(), "opening the list");
    let progress = {
        let app = app.clone();
        move |keys| app.loading(keys)
    };
    let opened = spawn_blocking(move || List::open(options, progress)).await.map_err(ServerError::Opening)??;
    tracing::info!(keys = opened.keys, from = ?opened.how, took = ?opened.took, "the list is open");
    app.loading(opened.keys);
    app.serve(opened.list.clone(), Arc::new(opened.list.clone()));
    Ok(opened.list)
}

/// Lets requests end, then closes the list.
async fn close(connections: Connections, app: &App, time: Duration) -> Result<(), ServerError> {
    let start = Instant::now();
    let cut_off = connections.finish(time).await;
    if cut_off > 0 {
        tracing::warn!(connections = cut_off, ?time, "cut off connections whose requests did not end in time");
    }
    if let Some(list) = app.list() {
        list.clone().close().await?;
        tracing::info!(took = ?start.elapsed(), "the list is closed");
    }
    Ok(())
}
