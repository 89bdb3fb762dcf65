//! Started, asked, stopped with SIGTERM, and started again from the snapshot.

#![cfg(unix)]

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use ureq::Agent;
use ureq::http::Request;

/// Killed when it is dropped.
struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(folder: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_axum_blocklist"));
        command.arg("127.0.0.1:0").arg(folder.join("list")).arg(folder.join("snapshot"));
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut server = Server { stdout: BufReader::new(child.stdout.take().unwrap()), child, url: String::new() };
        let line = server.line();
        server.url = line.split(' ').next_back().unwrap().to_owned();
        server
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let agent: Agent = Agent::config_builder().http_status_as_error(false).proxy(None).build().into();
        let request = Request::builder().method(method).uri(format!("{}{path}", self.url));
        let request = request.header("content-type", "application/json").body(body.to_owned()).unwrap();
        let mut answer = agent.run(request).unwrap();
        (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
    }

    fn listed(&self, keys: &str) -> String {
        self.ask("POST", "/check", keys).1
    }

    fn stop(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        assert_eq!(self.line(), "saved");
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn a_list_is_loaded_asked_changed_saved_and_loaded_again() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("list"), "a.com\nb.com\na.com\n").unwrap();
    let server = Server::start(folder.path());
    assert_eq!(server.ask("GET", "/check/a.com", ""), (200, r#"{"listed":true}"#.to_owned()));
    assert_eq!(server.listed(r#"["a.com","c.com"]"#), r#"{"listed":[true,false]}"#);
    assert_eq!(server.ask("PUT", "/keys/c.com", "").0, 201);
    assert_eq!(server.ask("PUT", "/keys/c.com", "").0, 200);
    assert_eq!(server.ask("DELETE", "/keys/b.com", "").0, 204);
    assert_eq!(server.ask("DELETE", "/keys/b.com", "").0, 404);
    server.stop();

    // The snapshot counts, not the list.
    std::fs::remove_file(folder.path().join("list")).unwrap();
    let server = Server::start(folder.path());
    assert_eq!(server.listed(r#"["a.com","b.com","c.com"]"#), r#"{"listed":[true,false,true]}"#);
    assert!(server.ask("GET", "/stats", "").1.contains("\"keys\":2"));
}
