//! The signals that end the server.

use std::io;

#[cfg(unix)]
mod system {
    use super::io;
    use tokio::signal::unix::{Signal, SignalKind, signal};

    /// SIGTERM and SIGINT.
    pub(crate) struct Signals {
        terminate: Signal,
        interrupt: Signal,
    }

    impl Signals {
        /// Signals that come from now on are kept until they are asked for.
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Signals { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
        }

        /// The name of the next one.
        pub(crate) async fn next(&mut self) -> &'static str {
            tokio::select! {
                _ = self.terminate.recv() => "SIGTERM",
                _ = self.interrupt.recv() => "SIGINT",
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
