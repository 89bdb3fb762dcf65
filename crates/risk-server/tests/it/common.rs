//! A server per test, a client, a raw connection, and keys.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};
use tempfile::{NamedTempFile, TempDir};
use ureq::http::{HeaderMap, Request};
use ureq::{Agent, AsSendBody};

/// The time after which a test fails instead of waiting longer.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    let (mut patience, mut last) = (PATIENCE, Instant::now());
    while !so() {
        // In small pieces, of which a machine that stands still takes one.
        patience = patience.saturating_sub(last.elapsed().min(Duration::from_millis(100)));
        last = Instant::now();
        assert!(!patience.is_zero(), "waited in vain for {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The real list as a file, one key per line: 121,570 domains.
pub(crate) static DOMAINS: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/disposable-email-domains.txt"));

pub(crate) fn made(name: &str, number: usize) -> Vec<String> {
    (0..number).map(|i| format!("{name}-{i}")).collect()
}

pub(crate) fn lines<K: AsRef<str>>(keys: &[K]) -> String {
    keys.iter().flat_map(|key| [key.as_ref(), "\n"]).collect()
}

/// Returns the program, without variables of the environment that configure it.
pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_risk-server"));
    for (name, _) in env::vars_os() {
        if name == "RUST_LOG" || name.to_string_lossy().starts_with("RISK_SERVER_") {
            command.env_remove(name);
        }
    }
    command
}

/// Returns the program with a folder and any free port.
pub(crate) fn program_on(folder: &Path) -> Command {
    let mut command = program();
    command.env("RISK_SERVER_LISTEN", "127.0.0.1:0").env("RISK_SERVER_DATA", folder);
    command
}

/// Runs a program that must fail to start, and returns its errors.
pub(crate) fn refused(command: &mut Command) -> String {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    // Ends a program that starts nevertheless, so that the test fails and does not hang.
    let _ = child.kill();
    assert_eq!(first, "", "this was to be refused");
    String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap()
}

/// A process that is killed by SIGKILL on drop, as by a power cut. Its log is printed if the test fails.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    _stdout: BufReader<ChildStdout>,
    log: NamedTempFile,
}

/// A folder, a server on it, and its client.
pub(crate) fn start(args: &[&str]) -> (TempDir, Server, Client) {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(program_on(folder.path()).args(args));
    let client = server.client();
    (folder, server, client)
}

impl Server {
    pub(crate) fn on(folder: &TempDir) -> Self {
        Self::start(&mut program_on(folder.path()))
    }

    /// Starts a server, and waits until it listens.
    pub(crate) fn start(command: &mut Command) -> Self {
        let log = NamedTempFile::new().unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(log.reopen().unwrap()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        // A child that printed something else is ended, and its log is printed.
        let mut server = Server { child, address: SocketAddr::from(([127, 0, 0, 1], 0)), _stdout: stdout, log };
        let address = line.trim_end().strip_prefix("listening on http://");
        server.address = address.unwrap_or_else(|| panic!("the server said {line:?}")).parse().unwrap();
        server
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn client(&self) -> Client {
        let config = Agent::config_builder().http_status_as_error(false).max_redirects(0).proxy(None);
        let agent = config.timeout_global(Some(PATIENCE)).build().into();
        Client { agent, base: format!("http://{}", self.address) }
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.log.path()).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Sends SIGTERM, and waits for the end, which must be a success.
    pub(crate) fn stop(self) {
        self.signal(Signal::TERM);
        let (status, log) = self.wait();
        assert!(status.success(), "{status}: {log}");
    }

    /// Waits for the end, and returns the status and the log.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        let mut status = None;
        wait_until("the server to end", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        (status.unwrap(), self.log())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("the log of the server at {}:\n{}", self.address, self.log());
        }
    }
}

pub(crate) struct Client {
    agent: Agent,
    base: String,
}

/// A response of the server.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: HeaderMap,
    pub(crate) body: String,
}

impl Client {
    pub(crate) fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl AsSendBody,
    ) -> Result<Answer, ureq::Error> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, body) = self.agent.run(request.body(body).unwrap())?.into_parts();
        let body = body.into_with_config().limit(u64::MAX).read_to_string()?;
        Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body })
    }

    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: impl AsSendBody) -> Answer {
        self.try_send(method, path, headers, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], ())
    }

    pub(crate) fn batch(&self, body: &str) -> Answer {
        self.send("POST", "/v1/check", &[("content-type", "application/json")], body)
    }

    /// Uploads keys, one per line. `query` is empty or, for example, `?replace=true`.
    pub(crate) fn post(&self, query: &str, body: impl AsSendBody) -> Answer {
        self.send("POST", &format!("/v1/keys{query}"), &[("content-type", "text/plain")], body)
    }

    pub(crate) fn listed(&self, key: &str) -> bool {
        self.get(&format!("/v1/check/{}", encoded(key))).json(200)["listed"].as_bool().unwrap()
    }

    /// Returns which of the keys are on the list, from batches.
    pub(crate) fn which_listed<K: AsRef<str>>(&self, keys: &[K]) -> Vec<bool> {
        let mut all = Vec::with_capacity(keys.len());
        for keys in keys.chunks(10_000) {
            let keys: Vec<&str> = keys.iter().map(AsRef::as_ref).collect();
            let answer = self.batch(&json!(keys).to_string()).json(200);
            all.extend(answer["listed"].as_array().unwrap().iter().map(|listed| listed.as_bool().unwrap()));
        }
        assert_eq!(all.len(), keys.len(), "as many answers as keys");
        all
    }

    pub(crate) fn count_listed<K: AsRef<str>>(&self, keys: &[K]) -> usize {
        self.which_listed(keys).into_iter().filter(|&listed| listed).count()
    }

    /// Puts a key on the list, and returns whether it was absent.
    pub(crate) fn add(&self, key: &str) -> bool {
        let answer = self.send("PUT", &format!("/v1/keys/{}", encoded(key)), &[], "");
        assert_eq!(answer.json(answer.status), json!({ "key": key, "added": answer.status == 201 }));
        answer.status == 201
    }

    /// Deletes a key from the list, and returns whether it was present.
    pub(crate) fn remove(&self, key: &str) -> bool {
        let answer = self.send("DELETE", &format!("/v1/keys/{}", encoded(key)), &[], ()).json(200);
        answer["removed"].as_bool().unwrap()
    }

    /// Puts many keys on the list, and returns the number of absent ones.
    pub(crate) fn add_all<K: AsRef<str>>(&self, keys: &[K]) -> u64 {
        let answer = self.post("", &lines(keys)).json(200);
        assert_eq!(answer["lines"], keys.len());
        answer["added"].as_u64().unwrap()
    }

    pub(crate) fn stats(&self) -> Value {
        self.get("/v1/stats").json(200)
    }

    /// Returns the number of keys in the filter, which equals that of the list.
    pub(crate) fn len(&self) -> u64 {
        self.stats()["filter"]["len"].as_u64().unwrap()
    }
}

impl Answer {
    /// Returns the body of a response, which must have this status.
    pub(crate) fn json(&self, status: u16) -> Value {
        assert_eq!((self.status, self.header("content-type")), (status, "application/json"), "{}", self.body);
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }

    /// Returns the error in a response, which must have this status.
    pub(crate) fn error(&self, status: u16) -> String {
        let body = self.json(status);
        let error = body["error"].as_str().unwrap_or_else(|| panic!("an error gives its reason: {body}"));
        assert!(!error.is_empty() && !error.ends_with('.'), "{error:?}");
        error.into()
    }

    /// Returns the header, or "" if it is absent.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// Encodes a key as one segment of a path. Dots are encoded, too, so that a key of dots is not a step.
pub(crate) fn encoded(key: &str) -> String {
    utf8_percent_encode(key, NON_ALPHANUMERIC).to_string()
}

/// A connection on which a test sends exactly what it wants, when it wants.
pub(crate) struct Raw(pub(crate) TcpStream);

impl Raw {
    pub(crate) fn open(server: &Server) -> Self {
        let stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Raw(stream)
    }

    /// Sends the request line and the headers, with the Host that the server expects.
    pub(crate) fn head(&mut self, request: &str, headers: &[&str]) {
        let headers: String = headers.iter().flat_map(|header| [header, "\r\n"]).collect();
        self.send(format!("{request} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n"));
    }

    /// Begins an upload.
    pub(crate) fn upload(server: &Server, query: &str) -> Self {
        let mut raw = Raw::open(server);
        raw.head(&format!("POST /v1/keys{query}"), &["transfer-encoding: chunked", "connection: close"]);
        raw
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).unwrap();
    }

    /// Sends a piece of a body of `transfer-encoding: chunked`. An empty one ends it.
    pub(crate) fn chunk(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.send([format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat());
    }

    /// Reads the head of the next response, and returns its status.
    pub(crate) fn status(&mut self) -> String {
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            // Not `read`: with a timeout, it fails where the process is stopped and continued.
            let read = self.0.read_exact(&mut byte);
            assert!(read.is_ok(), "{read:?} after {:?}", String::from_utf8_lossy(&head));
            head.push(byte[0]);
        }
        String::from_utf8(head).unwrap().split(' ').nth(1).unwrap().to_owned()
    }

    /// Returns everything up to the end of the connection, or until it is reset.
    pub(crate) fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        match self.0.read_to_end(&mut rest) {
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => {
                panic!("the connection does not end: {error}")
            }
            _ => String::from_utf8(rest).unwrap(),
        }
    }
}

/// The files of a list.
pub(crate) fn store(folder: &TempDir) -> PathBuf {
    folder.path().join("list.redb")
}

pub(crate) fn snapshot(folder: &TempDir) -> PathBuf {
    folder.path().join("filter.snapshot")
}
