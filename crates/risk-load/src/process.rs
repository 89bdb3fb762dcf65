//! A server as a process.

use crate::client::{Client, PATIENCE};
use hyper::Method;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

/// Lines of the log that are kept.
const LINES: usize = 30;

/// A server that listens. It is killed when this is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    log: Arc<Mutex<Log>>,
}

/// What is known of a log in JSON.
#[derive(Default)]
struct Log {
    last: VecDeque<String>,
    /// The first error.
    error: Option<String>,
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
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| format!("{name} cannot be started: {error}"))?;
        let log = Arc::<Mutex<Log>>::default();
        if let Some(stderr) = child.stderr.take() {
            let log = Arc::clone(&log);
            tokio::spawn(async move {
                let mut lines = BufReader::new(stderr).lines();
                while let Ok(Some(line)) = lines.next_line().await {
                    log.lock().unwrap().line(line);
                }
            });
        }
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

    /// The first error in its log.
    pub(crate) fn error(&self) -> Option<String> {
        self.log.lock().unwrap().error.clone()
    }

    pub(crate) fn last_lines(&self) -> String {
        self.log.lock().unwrap().last.iter().map(|line| format!("  {line}\n")).collect()
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

impl Log {
    fn line(&mut self, line: String) {
        let json: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
        // The last words of a server that failed are not JSON.
        if json["level"] == "ERROR" || json.is_null() {
            self.error.get_or_insert_with(|| line.clone());
        }
        if self.last.len() == LINES {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }
}
