//! The connections: accepted, served, and brought to an end.

use crate::http::Service;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use std::convert::Infallible;
use std::io;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// The most bytes that a connection's head may have, and that are read ahead of a body.
const BUFFER: usize = 1 << 16;

/// After an error that is not of one connection, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves connections, each on a task of its own.
pub struct Connections {
    service: Service,
    protocol: http1::Builder,
    most: usize,
    first_byte: Duration,
    /// Those that have not sent a byte. Such a task ends with its stream when one has come.
    silent: JoinSet<Option<TcpStream>>,
    tasks: JoinSet<()>,
    /// The limit was reached, and since then there was never much room.
    crowded: bool,
    shutdown: GracefulShutdown,
}

impl Connections {
    /// Serves at most `most` connections; one more waits until another one is over. One that sends nothing at all for
    /// `first_byte` is closed, and so is one that keeps silent for `idle` before the end of a request's head.
    #[must_use]
    pub fn new(service: Service, most: usize, first_byte: Duration, idle: Duration) -> Self {
        let mut protocol = http1::Builder::new();
        protocol.timer(TokioTimer::new()).header_read_timeout(idle).max_buf_size(BUFFER);
        Connections {
            service,
            protocol,
            most,
            first_byte: first_byte.min(idle),
            silent: JoinSet::new(),
            tasks: JoinSet::new(),
            crowded: false,
            shutdown: GracefulShutdown::new(),
        }
    }

    /// Accepts connections for ever. May be dropped at any time.
    pub async fn accept(&mut self, listener: &TcpListener) -> Infallible {
        loop {
            let open = self.silent.len() + self.tasks.len();
            self.note(open);
            tokio::select! {
                accepted = listener.accept(), if open < self.most => match accepted {
                    Ok((stream, _)) => drop(self.silent.spawn(first_byte(stream, self.first_byte))),
                    Err(error) if is_of_one_connection(&error) => {}
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        sleep(PAUSE).await;
                    }
                },
                Some(heard) = self.silent.join_next() => if let Ok(Some(stream)) = heard {
                    self.serve(stream);
                },
                Some(_) = self.tasks.join_next() => {}
            }
        }
    }

    fn note(&mut self, open: usize) {
        self.service.note_connections(open, self.most);
        let full = open >= self.most;
        if full && !self.crowded {
            tracing::warn!(connections = open, "the limit of connections is reached; new ones wait, health checks too");
        }
        // A limit that is touched again and again is told once.
        self.crowded = full || self.crowded && open > self.most / 10 * 9;
    }

    fn serve(&mut self, stream: TcpStream) {
        // Answers are short and complete: nothing is gained by waiting for more to send.
        let _ = stream.set_nodelay(true);
        let service = self.service.clone();
        let answer = service_fn(move |request| {
            let service = service.clone();
            async move { Ok::<_, Infallible>(service.answer(request).await) }
        });
        let connection = self.protocol.serve_connection(TokioIo::new(stream), answer);
        let connection = self.shutdown.watch(connection);
        self.tasks.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection broke off");
            }
        });
    }

    /// Closes idle connections, lets requests in progress end within `time`, and says how many did not.
    pub async fn finish(mut self, time: Duration) -> usize {
        self.silent.abort_all();
        if timeout(time, self.shutdown.shutdown()).await.is_ok() {
            return 0;
        }
        let mut cut_off = 0;
        self.tasks.abort_all();
        while let Some(ended) = self.tasks.join_next().await {
            cut_off += usize::from(ended.is_err());
        }
        cut_off
    }
}

/// The stream when something has come, if that was in time. Nothing is taken from it.
async fn first_byte(stream: TcpStream, time: Duration) -> Option<TcpStream> {
    let heard = timeout(time, stream.peek(&mut [0])).await;
    matches!(heard, Ok(Ok(_))).then_some(stream)
}

/// The client is gone already.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

#[cfg(test)]
mod tests;
