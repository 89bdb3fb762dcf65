//! A connection on which a test says exactly what it wants, when it wants.

use super::server::Server;
use super::wait::PATIENCE;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};

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

    /// Says that nothing more is coming.
    pub(crate) fn end(&mut self) {
        self.0.shutdown(Shutdown::Write).unwrap();
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
