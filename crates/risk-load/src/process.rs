//! A server as a process.

use crate::client::{Client, PATIENCE};
use hyper::Method;
use std::io;
use std::net::SocketAddr;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::NamedTempFile;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

/// A server that listens. It is killed when this is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    log: NamedTempFile,
}

impl Server {
    /// Starts a program that says on its first line where it listens.
    pub(crate) async fn start(command: &mut Command) -> Result<Self, String> {
        for (name, _) in std::env::vars_os() {
            if name == "RUST_LOG" || name.to_string_lossy().starts_with("RISK_SERVER_") {
                command.env_remove(name);
            }
        }
        let name = format!("{:?}", command.as_std().get_program());
        let log = NamedTempFile::new().and_then(|log| Ok((log.reopen()?, log)));
        let (file, log) = log.map_err(|error| format!("no file for a log: {error}"))?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| format!("{name} cannot be started: {error}"))?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            let _ = timeout(PATIENCE, BufReader::new(stdout).read_line(&mut line)).await;
        }
        let address = line.trim_end().strip_prefix("listening on http://").and_then(|address| address.parse().ok());
        let address = address.ok_or_else(|| format!("{name} did not say where it listens, but {line:?}"))?;
        Ok(Server { child, address, log })
    }

    /// Waits until lookups are answered. `meanwhile` is called now and then.
    pub(crate) async fn wait_until_ready(
        &mut self,
        mut meanwhile: impl AsyncFnMut(&mut Client) -> Result<(), String>,
    ) -> Result<(), String> {
        let (begun, mut client) = (Instant::now(), Client::new(self.address));
        loop {
            if let Some(status) = self.ended() {
                return Err(format!("the server ended before it was ready: {status}\n{}", self.last_lines()));
            }
            if client.ask(Method::GET, "/readyz", "").await.is_ok_and(|answer| answer.status == 200) {
                return Ok(());
            }
            meanwhile(&mut client).await?;
            if begun.elapsed() > PATIENCE {
                return Err(format!("the server was not ready after {PATIENCE:?}\n{}", self.last_lines()));
            }
            sleep(Duration::from_millis(2)).await;
        }
    }

    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Ends it as a power cut would, from its own view.
    pub(crate) async fn kill(&mut self) {
        // It may have ended before.
        let _ = self.child.kill().await;
    }

    /// Asks it to end, where there is SIGTERM, and waits.
    pub(crate) async fn terminate(&mut self) -> io::Result<ExitStatus> {
        #[cfg(unix)]
        if let Some(process) = self.child.id().and_then(|id| rustix::process::Pid::from_raw(id as i32)) {
            rustix::process::kill_process(process, rustix::process::Signal::TERM)?;
        }
        #[cfg(not(unix))]
        self.child.start_kill()?;
        timeout(PATIENCE, self.child.wait()).await?
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap_or_default()
    }

    /// The first error in its log, which is in JSON; the last words of a server that failed are not.
    pub(crate) fn error(&self) -> Option<String> {
        let is_error = |line: &&str| line.contains("\"level\":\"ERROR\"") || !line.starts_with('{');
        self.log().lines().find(is_error).map(str::to_owned)
    }

    pub(crate) fn last_lines(&self) -> String {
        let log = self.log();
        let from = log.lines().count().saturating_sub(30);
        log.lines().skip(from).map(|line| format!("  {line}\n")).collect()
    }

    /// The processor time that it has used, and its resident memory in bytes, where the system says so.
    pub(crate) fn usage(&self) -> (Option<Duration>, Option<u64>) {
        #[cfg(target_os = "linux")]
        {
            let stat = self.child.id().and_then(|id| procfs::process::Process::new(id as i32).ok()?.stat().ok());
            let time =
                |stat: &procfs::process::Stat| (stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64;
            let processor = stat.as_ref().map(|stat| Duration::from_secs_f64(time(stat)));
            (processor, stat.map(|stat| stat.rss * procfs::page_size()))
        }
        #[cfg(not(target_os = "linux"))]
        (None, None)
    }
}
