//! A connection that never waits: whoever has many of them waits for all at once.

use crate::http::{Received, receive};
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;

/// Room for the answers of most requests.
const ROOM: usize = 4096;

/// A connection on which one request is asked at a time.
pub(crate) struct Connection {
    stream: TcpStream,
    /// What of the request the system did not take yet.
    unsent: Vec<u8>,
    buffer: Vec<u8>,
    filled: usize,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr, registry: &Registry, token: Token) -> io::Result<Self> {
        let stream = std::net::TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Connection { stream, unsent: Vec::new(), buffer: vec![0; ROOM], filled: 0 })
    }

    /// Begins a request. The answer to the one before is forgotten.
    pub(crate) fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.filled = 0;
        let sent = send_some(&mut self.stream, request)?;
        self.unsent.extend_from_slice(&request[sent..]);
        Ok(())
    }

    /// Goes on, as far as that is possible without waiting; gives the answer when its end has come.
    pub(crate) fn go_on(&mut self) -> io::Result<Option<Received>> {
        if !self.unsent.is_empty() {
            let sent = send_some(&mut self.stream, &self.unsent)?;
            self.unsent.drain(..sent);
        }
        loop {
            if self.filled == self.buffer.len() {
                self.buffer.resize(2 * self.filled, 0);
            }
            match self.stream.read(&mut self.buffer[self.filled..]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            let received = receive(&self.buffer[..self.filled]).map_err(io::Error::other)?;
            if received.is_some() {
                return Ok(received);
            }
        }
    }

    /// The body of an answer that came last on this connection.
    pub(crate) fn body(&self, answer: &Received) -> &[u8] {
        &self.buffer[answer.body.clone()]
    }
}

/// Sends what the system takes without waiting.
fn send_some(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    let mut sent = 0;
    while sent < bytes.len() {
        match stream.write(&bytes[sent..]) {
            Ok(more) => sent += more,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}
