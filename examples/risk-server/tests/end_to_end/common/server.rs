//! The server as a process.

use super::client::Client;
use super::folder::Folder;
use super::wait::{wait_for, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::{env, io};

/// Ended by SIGKILL when it is dropped; its log is shown if the test fails.
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
    stdout: BufReader<ChildStdout>,
    log: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

/// A server that has ended by itself.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) log: String,
    /// What it wrote to its standard output after the first line.
    pub(crate) output: String,
}

/// The program, without what the surroundings may have set for it.
pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_risk-server"));
    for (name, _) in env::vars_os() {
        if name == "RUST_LOG" || name.to_string_lossy().starts_with("RISK_SERVER_") {
            command.env_remove(name);
        }
    }
    // No test but that of the drain has anybody to tell.
    command.env("RISK_SERVER_DRAIN_SECONDS", "0");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The program on a folder and any free port.
pub(crate) fn program_on(folder: &Folder) -> Command {
    let mut command = program();
    command.args(["--listen", "127.0.0.1:0", "--data"]).arg(folder.path());
    command
}

/// Runs a program that is to refuse to start.
pub(crate) fn refused(command: &mut Command) -> Output {
    let mut child = command.spawn().unwrap();
    // A program that starts all the same ends here, so that the test fails and does not hang.
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    if !first.is_empty() {
        child.kill().unwrap();
        child.wait().unwrap();
        panic!("this was to be refused, and the program says {first:?}");
    }
    child.wait_with_output().unwrap()
}

impl Server {
    /// A server that is ready, with the options of the tests.
    pub(crate) fn start(folder: &Folder) -> Self {
        Server::with(folder, &[] as &[&str])
    }

    /// A server that is ready.
    pub(crate) fn with(folder: &Folder, args: &[impl AsRef<OsStr>]) -> Self {
        let server = Server::loading(program_on(folder).args(args));
        server.wait_until_ready();
        server
    }

    /// A server that listens, and may still load its list. There is no log if the command sends it elsewhere.
    pub(crate) fn loading(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let reader = child.stderr.take().map(|mut stderr| {
            let log = Arc::clone(&log);
            thread::spawn(move || copy(&mut stderr, &log))
        });
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening on http://").and_then(|address| address.trim_end().parse().ok());
        let Some(address) = address else {
            // Its log ends with it.
            let _ = child.kill();
            child.wait().unwrap();
            if let Some(reader) = reader {
                reader.join().unwrap();
            }
            panic!("the server said {line:?}; its log:\n{}", log.lock().unwrap());
        };
        let mut address: SocketAddr = address;
        if address.ip().is_unspecified() {
            address.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        Server { child, address, stdout, log, reader }
    }

    pub(crate) fn wait_until_ready(&self) {
        let client = self.client();
        wait_until("the server to be ready", || client.get("/readyz").status == 200);
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(&self.url())
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub(crate) fn wait_for_log(&self, text: &str) {
        wait_until(&format!("{text:?} in the log"), || self.log().contains(text));
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Ends it as a power cut would, from its own view.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end, and waits for that. It must end well.
    pub(crate) fn stop(self) -> Ended {
        self.signal(Signal::TERM);
        let ended = self.wait();
        assert!(ended.status.success(), "{}: {}", ended.status, ended.log);
        ended
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> Ended {
        let status = wait_for("the server to end", || self.child.try_wait().unwrap());
        let mut output = String::new();
        self.stdout.read_to_string(&mut output).unwrap();
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        Ended { status, log: self.log(), output }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
            if thread::panicking() {
                eprintln!("the log of the server at {}:\n{}", self.address, self.log());
            }
        }
    }
}

fn copy(from: &mut impl Read, to: &Mutex<String>) {
    let mut buffer = [0; 4096];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(read) => to.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..read])),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => panic!("the log cannot be read: {error}"),
        }
    }
}
