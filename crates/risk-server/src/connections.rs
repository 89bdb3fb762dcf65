//! The connections: accepted, served, and brought to an end.

use crate::http::Service;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The longest head of a request, and what is read ahead of a body, in bytes.
const BUFFER: usize = 1 << 16;

/// After an error that is not of one connection, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves connections, each on a task of its own.
#[derive(Clone)]
pub(crate) struct Connections {
    service: Service,
    protocol: http1::Builder,
    places: Arc<Semaphore>,
    max: usize,
    first_byte: Duration,
    tasks: TaskTracker,
    /// Idle connections are closed, others after their request.
    ending: CancellationToken,
    /// All connections are closed.
    cut_off: CancellationToken,
}

impl Connections {
    /// Serves at most `max` connections, as `tasks`; further ones wait until another one is over. A connection that sends
    /// nothing for `first_byte` is closed, and so is one that is silent for `idle` before the end of a request's head.
    pub(crate) fn new(service: Service, tasks: TaskTracker, max: usize, first_byte: Duration, idle: Duration) -> Self {
        let mut protocol = http1::Builder::new();
        protocol.timer(TokioTimer::new()).header_read_timeout(idle).max_buf_size(BUFFER);
        Connections {
            service,
            protocol,
            places: Arc::new(Semaphore::new(max)),
            max,
            first_byte: first_byte.min(idle),
            tasks,
            ending: CancellationToken::new(),
            cut_off: CancellationToken::new(),
        }
    }

    /// Accepts connections for ever. May be dropped at any time.
    pub(crate) async fn accept(&self, listener: &TcpListener) -> Infallible {
        // The limit was reached, and since then there was never much room.
        let mut is_crowded = false;
        loop {
            let free = self.places.available_permits();
            if free == 0 && !is_crowded {
                let connections = self.max;
                tracing::warn!(connections, "the limit of connections is reached; new ones wait, health checks too");
            }
            // A limit that is touched again and again is logged once.
            is_crowded = free == 0 || is_crowded && free < self.max / 10;
            let Ok(place) = Arc::clone(&self.places).acquire_owned().await else { return std::future::pending().await };
            match listener.accept().await {
                Ok((stream, _)) => drop(self.tasks.spawn(self.clone().serve(stream, place))),
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(PAUSE).await;
                }
            }
        }
    }

    async fn serve(self, stream: TcpStream, _place: OwnedSemaphorePermit) {
        // Nothing is taken from the stream.
        let mut first = [0];
        let heard = tokio::select! {
            heard = timeout(self.first_byte, stream.peek(&mut first)) => heard,
            () = self.ending.cancelled() => return,
        };
        if !matches!(heard, Ok(Ok(_))) {
            return;
        }
        // Answers are short and complete: nothing is gained by waiting for more to send.
        let _ = stream.set_nodelay(true);
        let service = &self.service;
        let answer = service_fn(move |request| async move { Ok::<_, Infallible>(service.answer(request).await) });
        let mut connection = pin!(self.protocol.serve_connection(TokioIo::new(stream), answer));
        let served = tokio::select! {
            served = &mut connection => served,
            () = self.ending.cancelled() => {
                connection.as_mut().graceful_shutdown();
                tokio::select! {
                    served = connection => served,
                    () = self.cut_off.cancelled() => return,
                }
            }
        };
        if let Err(error) = served {
            tracing::debug!(%error, "a connection broke off");
        }
    }

    /// Closes idle connections, lets requests in progress complete within `time`, and returns how many did not.
    pub(crate) async fn finish(self, time: Duration) -> usize {
        self.ending.cancel();
        self.tasks.close();
        if timeout(time, self.tasks.wait()).await.is_ok() {
            return 0;
        }
        let open = self.tasks.len();
        self.cut_off.cancel();
        self.tasks.wait().await;
        open
    }
}

/// The client is gone already.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
