//! The real server, on a folder that stays from one start to the next.

use super::world::PATIENCE;
use crate::child::Server;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Keys that the filter is to hold in the beginning: few, so that it has to grow.
const CAPACITY: &str = "1000";

/// Between snapshots: short, so that a kill comes before, in and after one.
const SNAPSHOT_MINUTES: &str = "0.05";

/// Little, so that it is full soon and what grows after that is seen.
const CACHE_MIB: &str = "16";

/// Lines of the log that are kept for whoever wonders.
const LINES: usize = 30;

/// How it is started, and where its list is.
pub(super) struct Program {
    path: PathBuf,
    pub(super) folder: PathBuf,
}

/// A server that runs.
pub(super) struct Running {
    pub(super) server: Server,
    log: Arc<Mutex<Log>>,
}

/// What is known of a log.
#[derive(Default)]
struct Log {
    last: VecDeque<String>,
    /// Where the filter came from.
    from: Option<String>,
    /// The first line that must not be there.
    bad: Option<String>,
}

impl Program {
    pub(super) fn new(path: &Path, folder: &Path) -> Self {
        Program { path: path.to_owned(), folder: folder.to_owned() }
    }

    pub(super) fn snapshot(&self) -> PathBuf {
        self.folder.join("filter.snapshot")
    }

    pub(super) fn start(&self) -> Result<Running, String> {
        let mut command = Command::new(&self.path);
        for (name, _) in std::env::vars_os() {
            if name == "RUST_LOG" || name.to_string_lossy().starts_with("RISK_SERVER_") {
                command.env_remove(name);
            }
        }
        command.args(["--listen", "127.0.0.1:0", "--log-format", "json", "--capacity", CAPACITY]);
        command.args(["--snapshot-minutes", SNAPSHOT_MINUTES, "--cache-mib", CACHE_MIB]);
        command.args(["--drain-seconds", "0", "--data"]).arg(&self.folder);
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        // Ctrl-C is for this program, which ends the server as it should.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut server = Server::start(&mut command, PATIENCE)?;
        let log = Arc::new(Mutex::new(Log::default()));
        if let Some(stderr) = server.child.stderr.take() {
            let log = Arc::clone(&log);
            thread::spawn(move || read(stderr, &log));
        }
        Ok(Running { server, log })
    }
}

impl Running {
    /// Where its filter came from, once it is ready. The log says it a moment later than the server itself.
    pub(super) fn from(&self) -> Option<String> {
        self.log().from.clone()
    }

    /// What was logged and must not have been.
    pub(super) fn bad(&self) -> Option<String> {
        self.log().bad.clone()
    }

    /// The end of the log.
    pub(super) fn last_lines(&self) -> String {
        self.log().last.iter().map(|line| format!("  {line}\n")).collect()
    }

    fn log(&self) -> std::sync::MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(stderr: impl Read, log: &Mutex<Log>) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        log.lock().unwrap_or_else(PoisonError::into_inner).line(line);
    }
}

impl Log {
    fn line(&mut self, line: String) {
        let json: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
        if let Some(from) = json["fields"]["from"].as_str() {
            self.from = Some(from.to_owned());
        }
        // The last words of a server that failed are no JSON.
        if json["level"] == "ERROR" || json.is_null() {
            self.bad.get_or_insert_with(|| line.clone());
        }
        if self.last.len() == LINES {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_panics_are_found_in_a_log_and_where_the_filter_came_from() {
        let log = Mutex::new(Log::default());
        let mut lines =
            String::from("{\"level\":\"INFO\",\"fields\":{\"message\":\"x\",\"from\":\"Snapshot { changes: 3 }\"}}\n");
        read(lines.as_bytes(), &log);
        let bad = |log: &Mutex<Log>| log.lock().unwrap().bad.clone();
        assert_eq!(log.lock().unwrap().from.as_deref(), Some("Snapshot { changes: 3 }"));
        assert_eq!(bad(&log), None);
        lines += "{\"level\":\"ERROR\",\"fields\":{}}\n";
        read(lines.as_bytes(), &log);
        assert_eq!(bad(&log).as_deref(), Some("{\"level\":\"ERROR\",\"fields\":{}}"));
        let log = Mutex::new(Log::default());
        read("{}\n".repeat(100).as_bytes(), &log);
        assert_eq!(bad(&log), None);
        assert_eq!(log.lock().unwrap().last.len(), LINES);
        read(&b"thread 'list-writer' panicked at src/x.rs:1:1:\n"[..], &log);
        assert!(bad(&log).unwrap().contains("panicked"));
    }
}
