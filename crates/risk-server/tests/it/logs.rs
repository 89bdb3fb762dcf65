//! A log that cannot be written stops nothing.

use crate::common::{Folder, Server, program_on};
use std::io::{PipeReader, pipe};

/// A server that logs every request into a pipe, and the end of it that is not read from.
fn start(folder: &Folder) -> (Server, PipeReader) {
    let (reader, writer) = pipe().unwrap();
    let mut command = program_on(folder);
    command.args(["--snapshot-minutes", "0.001", "--log", "debug"]);
    let server = Server::logging(&mut command, writer, tempfile::NamedTempFile::new().unwrap());
    // Or the pipe would stay open in this process.
    drop(command);
    server.wait_until_ready();
    (server, reader)
}

/// All that a server does, with more lines than a pipe holds.
fn use_it(server: &Server, name: &str) {
    let client = server.client();
    let path = format!("/{}", "x".repeat(8000));
    for number in 0..50 {
        client.get(&path).error(404);
        assert!(client.add(&format!("{name}-{number}")));
    }
    assert_eq!(client.post_keys("", &format!("{name}-0\n{name}-uploaded\n")).json(200)["added"], 1);
    assert_eq!(client.get("/readyz").status, 200);
}

#[test]
fn a_log_without_a_reader_or_one_that_does_not_read_stops_nothing() {
    for reads in [false, true] {
        let folder = Folder::new();
        let (server, reader) = start(&folder);
        let reader = reads.then_some(reader);
        use_it(&server, "key");
        server.stop();
        drop(reader);
        assert_eq!(Server::start(&folder).client().stats()["keys"], 51);
    }
}
