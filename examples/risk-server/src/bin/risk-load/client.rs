//! A client that waits for each answer.

use crate::http::{self, receive};
use serde_json::Value;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// A connection that is opened when it is needed.
pub(crate) struct Client {
    address: SocketAddr,
    /// For one request.
    patience: Duration,
    stream: Option<TcpStream>,
}

/// What a server said.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The body as text, for messages.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; null if it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

impl Client {
    pub(crate) fn new(address: SocketAddr, patience: Duration) -> Self {
        Client { address, patience, stream: None }
    }

    /// Asks once. After an error the request may have been answered, and its answer lost.
    pub(crate) fn ask(&mut self, request: &[u8]) -> io::Result<Answer> {
        self.ask_in_pieces([request], || true)
    }

    /// Asks once, and waits between the pieces of the request as `go_on` does; if that says so, hangs up instead.
    pub(crate) fn ask_in_pieces<'r>(
        &mut self,
        pieces: impl IntoIterator<Item = &'r [u8]>,
        mut go_on: impl FnMut() -> bool,
    ) -> io::Result<Answer> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => open(self.address, self.patience)?,
        };
        for piece in pieces {
            // A server that refuses the request may not read it to its end, and its answer tells more than an error.
            if stream.write_all(piece).is_err() {
                break;
            }
            if !go_on() {
                return Err(ErrorKind::ConnectionAborted.into());
            }
        }
        let (answer, keeps) = read(&mut stream, self.patience)?;
        self.stream = keeps.then_some(stream);
        Ok(answer)
    }

    pub(crate) fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.ask(http::head("GET", path, None).as_bytes())
    }

    /// Asks for many keys; which of them are listed.
    pub(crate) fn which_listed(&mut self, keys: &[&str]) -> io::Result<Vec<bool>> {
        let answer = self.ask(&http::check_batch(keys))?;
        let listed = answer.json()["listed"].take();
        let listed: Option<Vec<bool>> = serde_json::from_value(listed).ok().filter(|_| answer.status == 200);
        let listed = listed.filter(|listed| listed.len() == keys.len());
        listed.ok_or_else(|| {
            io::Error::other(format!(
                "a batch of {} keys was answered {}: {}",
                keys.len(),
                answer.status,
                answer.text()
            ))
        })
    }
}

fn open(address: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    Ok(stream)
}

/// The answer, and whether the connection can be used again.
fn read(stream: &mut TcpStream, patience: Duration) -> io::Result<(Answer, bool)> {
    let begun = Instant::now();
    let (mut buffer, mut filled) = (vec![0; 1 << 12], 0);
    loop {
        if let Some(received) = receive(&buffer[..filled]).map_err(io::Error::other)? {
            let answer = Answer { status: received.status, body: buffer[received.body].to_vec() };
            return Ok((answer, received.keeps));
        }
        if begun.elapsed() > patience {
            return Err(ErrorKind::TimedOut.into());
        }
        if filled == buffer.len() {
            buffer.resize(2 * filled, 0);
        }
        match stream.read(&mut buffer[filled..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
            Err(error) => return Err(error),
        }
    }
}
