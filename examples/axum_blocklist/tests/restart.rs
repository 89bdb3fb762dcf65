//! The example is started, queried, stopped by SIGTERM, and started again from the snapshot.

#![cfg(unix)]

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use ureq::Agent;
use ureq::http::Request;

/// A process that is killed on drop.
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
        Self::spawn(program().arg("127.0.0.1:0").arg(folder.join("list")).arg(folder.join("snapshot")))
    }

    fn spawn(command: &mut Command) -> Self {
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

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn stop(mut self) {
        self.signal(Signal::TERM);
        assert_eq!(self.line(), "saved");
        assert!(self.child.wait().unwrap().success());
    }
}

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_axum_blocklist"))
}

/// Publishes these keys, and returns the output.
fn publish(folder: &Path, keys: &str) -> String {
    std::fs::write(folder.join("list"), keys).unwrap();
    let output = program().arg("publish").arg(folder.join("list")).arg(folder).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_server_follows_a_list_that_is_published() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert_eq!(publish(folder, "a.com\nb.com\n"), "2 keys\n");
    let mut server = Server::spawn(program().args(["follow", "127.0.0.1:0"]).arg(folder));
    let asked = r#"["a.com","b.com","c.com"]"#;
    assert_eq!(server.listed(asked), r#"{"listed":[true,true,false]}"#);
    publish(folder, "a.com\nc.com\n");
    let modes = folder.read_dir().unwrap().map(|file| file.unwrap().metadata().unwrap().permissions());
    assert!(modes.collect::<Vec<_>>().windows(2).all(|two| two[0] == two[1]), "all files are for the same readers");
    assert_eq!(server.line(), "1 keys inserted, 1 removed");
    assert_eq!(server.listed(asked), r#"{"listed":[true,false,true]}"#);
    publish(folder, "a.com\nc.com\n");
    publish(folder, "a.com\nb.com\n");
    assert_eq!(server.line(), "1 keys inserted, 1 removed");
    publish(folder, "a.com\nc.com\n");
    assert_eq!(server.line(), "1 keys inserted, 1 removed", "and no more: nothing goes round in a ring");
    assert_eq!(server.listed(asked), r#"{"listed":[true,false,true]}"#);
    assert_eq!(server.ask("PUT", "/keys/d.com", "").0, 404, "only who publishes changes the list");

    // Two missed changes are applied one after the other.
    server.signal(Signal::STOP);
    publish(folder, "a.com\n");
    publish(folder, "a.com\nb.com\n");
    server.signal(Signal::CONT);
    assert_eq!([server.line(), server.line()], ["0 keys inserted, 1 removed", "1 keys inserted, 0 removed"]);
    assert_eq!(server.listed(asked), r#"{"listed":[true,true,false]}"#);

    // The next publisher begins with the older list if the last one was killed before it replaced that list.
    std::fs::copy(folder.join("list.filter"), folder.join("kept")).unwrap();
    publish(folder, "c.com\n");
    assert_eq!(server.line(), "1 keys inserted, 2 removed");
    std::fs::rename(folder.join("kept"), folder.join("list.filter")).unwrap();
    publish(folder, "b.com\n");
    let follows = |_| {
        sleep(Duration::from_millis(100));
        server.listed(asked) == r#"{"listed":[false,true,false]}"#
    };
    assert!((0..100).any(follows), "{}", server.listed(asked));
}

#[test]
fn a_list_is_loaded_asked_changed_saved_and_loaded_again() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("list"), "a.com\nb.com\na.com\n").unwrap();
    let server = Server::start(folder.path());
    assert_eq!(server.ask("GET", "/check/a.com", ""), (200, r#"{"listed":true}"#.to_owned()));
    assert_eq!(server.listed(r#"["a.com","c.com"]"#), r#"{"listed":[true,false]}"#);
    assert_eq!([0; 8].map(|_| server.ask("PUT", "/keys/c.com", "").0), [201; 8]);
    assert_eq!(server.ask("PUT", "/keys/c.com", "").0, 409);
    assert_eq!([0; 7].map(|_| server.ask("DELETE", "/keys/c.com", "").0), [204; 7], "all but one of eight copies");
    assert_eq!(server.ask("DELETE", "/keys/b.com", "").0, 204);
    assert_eq!(server.ask("DELETE", "/keys/b.com", "").0, 404);
    server.stop();

    // The filter comes from the snapshot, not from the list.
    std::fs::remove_file(folder.path().join("list")).unwrap();
    let server = Server::start(folder.path());
    assert_eq!(server.listed(r#"["a.com","b.com","c.com"]"#), r#"{"listed":[true,false,true]}"#);
    assert!(server.ask("GET", "/stats", "").1.contains("\"keys\":2"));
}
