//! What every test needs: a server of its own, a client, a raw connection, and keys.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fs};
use tempfile::{NamedTempFile, TempDir};
use ureq::http::{HeaderMap, Request};
use ureq::{Agent, AsSendBody, SendBody};

/// What has not come by then never will.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Asks again and again until there is a value.
pub(crate) fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(value) = ask() {
            return value;
        }
        assert!(began.elapsed() < PATIENCE, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Asks again and again until it is so.
pub(crate) fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    wait_for(what, || so().then_some(()));
}

/// A folder of its own, removed with all that is in it when it is dropped.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Folder(tempfile::Builder::new().prefix("risk-server.").tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn snapshot(&self) -> PathBuf {
        self.path().join("filter.snapshot")
    }

    /// A pipe in place of the snapshot: a server that reads it goes on loading until the pipe is written to.
    pub(crate) fn block_loading(&self) {
        // What is there from before is not needed.
        let _ = fs::remove_file(self.snapshot());
        assert!(Command::new("mkfifo").arg(self.snapshot()).status().unwrap().success());
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path().join("list.redb")
    }

    /// A file in it with these contents.
    pub(crate) fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, contents).unwrap();
        path
    }
}

static DOMAINS: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/disposable-email-domains.txt"));

/// The real list as a file: one key a line.
pub(crate) fn domains_text() -> &'static str {
    DOMAINS
}

/// The real list: 121,570 domains.
pub(crate) fn domains() -> &'static [&'static str] {
    static LINES: LazyLock<Vec<&str>> = LazyLock::new(|| DOMAINS.lines().collect());
    &LINES
}

/// `name-0` to `name-(number - 1)`.
pub(crate) fn made(name: &str, number: usize) -> Vec<String> {
    (0..number).map(|i| format!("{name}-{i}")).collect()
}

/// Keys as the body of a request: one a line.
pub(crate) fn lines<K: AsRef<str>>(keys: &[K]) -> String {
    keys.iter().flat_map(|key| [key.as_ref(), "\n"]).collect()
}

/// Ended by SIGKILL when it is dropped; its log is shown if the test fails.
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
    stdout: BufReader<ChildStdout>,
    log: NamedTempFile,
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
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// The program on a folder and any free port.
pub(crate) fn program_on(folder: &Folder) -> Command {
    let mut command = program();
    command.args(["--listen", "127.0.0.1:0", "--data"]).arg(folder.path());
    command
}

/// Runs a program that is to refuse to start. Returns its status and its errors.
pub(crate) fn refused(command: &mut Command) -> (Option<i32>, String) {
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    // A program that starts all the same ends here, so that the test fails and does not hang.
    let _ = child.kill();
    assert_eq!(first, "", "this was to be refused");
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// A folder, a server that is ready on it, and its client.
pub(crate) fn start(args: &[&str]) -> (Folder, Server, Client) {
    let folder = Folder::new();
    let server = Server::with(&folder, args);
    let client = server.client();
    (folder, server, client)
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

    /// A server that listens, and may still load its list.
    pub(crate) fn loading(command: &mut Command) -> Self {
        let log = NamedTempFile::new().unwrap();
        Server::logging(command, log.reopen().unwrap(), log)
    }

    /// As [`Server::loading`], but its log goes elsewhere.
    pub(crate) fn logging(command: &mut Command, to: impl Into<Stdio>, log: NamedTempFile) -> Self {
        let mut child = command.stderr(to).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening on http://").and_then(|address| address.trim_end().parse().ok());
        let Some(mut address): Option<SocketAddr> = address else {
            let _ = child.kill();
            child.wait().unwrap();
            panic!("the server said {line:?}; its log:\n{}", fs::read_to_string(log.path()).unwrap());
        };
        if address.ip().is_unspecified() {
            address.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        Server { child, address, stdout, log }
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
        fs::read_to_string(self.log.path()).unwrap()
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

    pub(crate) fn wait(mut self) -> Ended {
        let status = wait_for("the server to end", || self.child.try_wait().unwrap());
        let mut output = String::new();
        self.stdout.read_to_string(&mut output).unwrap();
        Ended { status, log: self.log(), output }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("the log of the server at {}:\n{}", self.address, self.log());
        }
    }
}

/// Keeps its connections; threads may share it.
pub(crate) struct Client {
    agent: Agent,
    base: String,
    token: Option<String>,
}

/// What the server said.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Client {
    /// `base` is such as `http://127.0.0.1:8080`.
    pub(crate) fn new(base: &str) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_global(Some(PATIENCE))
            .build();
        Client { agent: config.into(), base: base.into(), token: None }
    }

    pub(crate) fn with_token(mut self, token: &str) -> Self {
        self.token = Some(token.into());
        self
    }

    pub(crate) fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl AsSendBody,
    ) -> Result<Answer, ureq::Error> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.agent.run(request.body(body).unwrap())?;
        let (parts, body) = response.into_parts();
        let body = body.into_with_config().limit(u64::MAX).read_to_string()?;
        Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body })
    }

    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: impl AsSendBody) -> Answer {
        self.try_send(method, path, headers, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], ())
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, &[], ())
    }

    pub(crate) fn put(&self, path: &str) -> Answer {
        self.send("PUT", path, &[], "")
    }

    pub(crate) fn post_batch(&self, body: &str) -> Answer {
        self.send("POST", "/v1/check", &[("content-type", "application/json")], body)
    }

    /// Keys, one a line; `query` is such as `?replace=true`.
    pub(crate) fn post_keys(&self, query: &str, body: impl AsSendBody) -> Answer {
        self.send("POST", &format!("/v1/keys{query}"), &[("content-type", "text/plain")], body)
    }

    /// Keys of a length that is not said beforehand.
    pub(crate) fn post_chunked(&self, query: &str, mut body: impl Read) -> Answer {
        self.post_keys(query, SendBody::from_reader(&mut body))
    }

    pub(crate) fn listed(&self, key: &str) -> bool {
        let answer = self.get(&check_path(key)).json(200);
        assert_eq!(answer["key"], key);
        answer["listed"].as_bool().expect("\"listed\" is true or false")
    }

    /// Which of the keys are on the list, by batches.
    pub(crate) fn which_listed<K: AsRef<str>>(&self, keys: &[K]) -> Vec<bool> {
        let mut all = Vec::with_capacity(keys.len());
        for keys in keys.chunks(10_000) {
            let keys: Vec<&str> = keys.iter().map(AsRef::as_ref).collect();
            let answer = self.post_batch(&json!(keys).to_string()).json(200);
            all.extend(answer["listed"].as_array().unwrap().iter().map(|listed| listed.as_bool().unwrap()));
        }
        assert_eq!(all.len(), keys.len(), "as many answers as keys");
        all
    }

    /// How many of the keys are on the list.
    pub(crate) fn count_listed<K: AsRef<str>>(&self, keys: &[K]) -> usize {
        self.which_listed(keys).into_iter().filter(|&listed| listed).count()
    }

    /// Puts a key on the list; says whether it was not there.
    pub(crate) fn add(&self, key: &str) -> bool {
        let answer = self.put(&key_path(key));
        let added = answer.status == 201;
        let answer = answer.json(if added { 201 } else { 200 });
        assert_eq!(answer, json!({ "key": key, "added": added }));
        added
    }

    /// Takes a key from the list; says whether it was there.
    pub(crate) fn remove(&self, key: &str) -> bool {
        let answer = self.delete(&key_path(key)).json(200);
        assert_eq!(answer["key"], key);
        answer["removed"].as_bool().expect("\"removed\" is true or false")
    }

    /// Puts many keys on the list; says how many were not there.
    pub(crate) fn add_all<K: AsRef<str>>(&self, keys: &[K]) -> u64 {
        let answer = self.post_keys("", &lines(keys)).json(200);
        assert_eq!(answer["lines"], keys.len());
        let (added, already) = (answer["added"].as_u64().unwrap(), answer["already"].as_u64().unwrap());
        assert_eq!(added + already, keys.len() as u64);
        added
    }

    pub(crate) fn stats(&self) -> Value {
        self.get("/v1/stats").json(200)
    }

    /// The samples of `/metrics` by name and labels.
    pub(crate) fn metrics(&self) -> BTreeMap<String, f64> {
        let answer = self.get("/metrics");
        assert_eq!(answer.status, 200);
        let samples = answer.body.lines().filter(|line| !line.starts_with('#'));
        let split = |line: &str| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name.to_owned(), value.parse().unwrap())
        };
        samples.map(split).collect()
    }
}

impl Answer {
    /// The body, of an answer that must have this status.
    pub(crate) fn json(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        assert_eq!(self.header("content-type"), "application/json");
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }

    /// The reason that is given, of an answer that must have this status.
    pub(crate) fn error(&self, status: u16) -> String {
        let body = self.json(status);
        let error = body["error"].as_str().unwrap_or_else(|| panic!("an error gives its reason: {body}"));
        assert!(!error.is_empty() && !error.ends_with('.'), "{error:?}");
        error.into()
    }

    /// "" if it is not there.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

pub(crate) fn check_path(key: &str) -> String {
    format!("/v1/check/{}", encoded(key))
}

pub(crate) fn key_path(key: &str) -> String {
    format!("/v1/keys/{}", encoded(key))
}

/// As one segment of a path. Dots are encoded, too, so that a key of dots is not a step.
pub(crate) fn encoded(key: &str) -> String {
    utf8_percent_encode(key, NON_ALPHANUMERIC).to_string()
}

/// A connection on which a test sends exactly what it wants, when it wants.
pub(crate) struct Raw(TcpStream);

impl Raw {
    pub(crate) fn open(server: &Server) -> Self {
        let stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Raw(stream)
    }

    /// The request line and the headers, with the Host that the server expects.
    pub(crate) fn head(&mut self, request: &str, headers: &[&str]) {
        let mut head = format!("{request} HTTP/1.1\r\nhost: {}\r\n", self.0.peer_addr().unwrap());
        for header in headers {
            head += header;
            head += "\r\n";
        }
        self.send(head + "\r\n");
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).unwrap();
    }

    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.0.write_all(bytes.as_ref())
    }

    /// One piece of a body of `transfer-encoding: chunked`; an empty one ends it.
    pub(crate) fn chunk(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend(bytes);
        chunk.extend(b"\r\n");
        self.send(chunk);
    }

    /// The head of the answer: the status line and the headers.
    pub(crate) fn answer_head(&mut self) -> String {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            let read = self.0.read(&mut byte).unwrap();
            assert_eq!(read, 1, "the connection ended after {:?}", String::from_utf8_lossy(&head));
            head.push(byte[0]);
        }
        String::from_utf8(head).unwrap().to_lowercase()
    }

    /// So many bytes of a body.
    pub(crate) fn body(&mut self, length: usize) -> String {
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).unwrap();
        String::from_utf8(body).unwrap()
    }

    /// Everything up to the end of the connection. A connection that is reset is at its end.
    pub(crate) fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            match self.0.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => rest.extend(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
                Err(error) => panic!("the connection does not end: {error}"),
            }
        }
        String::from_utf8(rest).unwrap()
    }
}
