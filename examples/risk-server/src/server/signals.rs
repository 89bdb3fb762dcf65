//! The signals that end the server.

use std::io;

#[cfg(unix)]
mod system {
    use super::io;
    use std::time::{Duration, Instant};
    use tokio::signal::unix::{Signal, SignalKind, signal};

    /// A signal so soon after another one is its echo: a terminal and a supervisor may pass on the same request.
    const ECHO: Duration = Duration::from_secs(1);

    /// SIGTERM and SIGINT. SIGHUP, which a terminal sends when it is closed, is ignored.
    pub(crate) struct Signals {
        terminate: Signal,
        interrupt: Signal,
        last: Option<Instant>,
    }

    impl Signals {
        /// Signals that come from now on are kept until they are asked for.
        pub(crate) fn new() -> io::Result<Self> {
            // Its handler stays for as long as the process lives.
            drop(signal(SignalKind::hangup())?);
            let [terminate, interrupt] = [SignalKind::terminate(), SignalKind::interrupt()].map(signal);
            Ok(Signals { terminate: terminate?, interrupt: interrupt?, last: None })
        }

        /// The name of the next one that is no echo.
        pub(crate) async fn next(&mut self) -> &'static str {
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
}

#[cfg(not(unix))]
mod system {
    use super::io;

    /// Ctrl-C.
    pub(crate) struct Signals(());

    impl Signals {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Signals(()))
        }

        /// The name of the next one.
        pub(crate) async fn next(&mut self) -> &'static str {
            match tokio::signal::ctrl_c().await {
                Ok(()) => "Ctrl-C",
                Err(_) => std::future::pending().await,
            }
        }
    }
}

pub(crate) use system::Signals;
