//! A server as a process of its own.

use crate::client::Client;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(2);

/// A server that listens. It is killed when this is dropped.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts a program that says on its first line where it listens, and waits for that.
    pub(crate) fn start(command: &mut Command, patience: Duration) -> Result<Self, String> {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{name} cannot be started: {error}"))?;
        let stdout = child.stdout.take();
        let mut server = Server { child, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        let (sender, line) = mpsc::channel();
        // It ends with the line, or with the child.
        thread::spawn(move || {
            let mut line = String::new();
            let read = stdout.map(|stdout| BufReader::new(stdout).read_line(&mut line));
            let _ = sender.send(read.map(|_| line));
        });
        let line = line.recv_timeout(patience).ok().flatten().unwrap_or_default();
        let address = line.trim_end().strip_prefix("listening on http://").and_then(|address| address.parse().ok());
        server.address = address.ok_or_else(|| match server.wait(Duration::from_secs(1)) {
            Ok(status) => format!("{name} ended at once: {status}"),
            Err(_) => format!("{name} did not say where it listens, but {line:?}"),
        })?;
        Ok(server)
    }

    /// Waits until look-ups are answered; `meanwhile` is called now and then, and may give up.
    pub(crate) fn wait_until_ready(
        &mut self,
        patience: Duration,
        mut meanwhile: impl FnMut(&mut Client) -> Result<(), String>,
    ) -> Result<(), String> {
        let begun = Instant::now();
        let mut client = Client::new(self.address, patience);
        loop {
            if let Some(status) = self.ended() {
                return Err(format!("the server ended before it was ready: {status}"));
            }
            if client.get("/readyz").is_ok_and(|answer| answer.status == 200) {
                return Ok(());
            }
            meanwhile(&mut client)?;
            if begun.elapsed() > patience {
                return Err(format!("the server was not ready after {patience:?}"));
            }
            thread::sleep(PAUSE);
        }
    }

    /// How it ended, if it did.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self, patience: Duration) -> io::Result<ExitStatus> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if begun.elapsed() > patience {
                return Err(io::ErrorKind::TimedOut.into());
            }
            thread::sleep(PAUSE);
        }
    }

    /// Ends it as a power cut would, from its own view.
    pub(crate) fn kill(&mut self) {
        // It may have ended before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
