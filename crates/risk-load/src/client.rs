//! A client with one connection, which is kept.

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::HOST;
use hyper::{Method, Request, Uri};
use hyper_util::rt::TokioIo;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A request that has no answer by then will not get one.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) type Body = UnsyncBoxBody<Bytes, io::Error>;

pub(crate) struct Client {
    address: SocketAddr,
    connection: Option<SendRequest<Body>>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
}

impl Answer {
    /// The body as JSON; null if it is not.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The whole answer, for messages.
    pub(crate) fn text(&self) -> String {
        format!("{} {:.500}", self.status, String::from_utf8_lossy(&self.body))
    }
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Client { address, connection: None }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// After an error the request may have been answered, and the answer lost.
    pub(crate) async fn send(&mut self, method: &Method, uri: &Uri, body: Body) -> io::Result<Answer> {
        let request = Request::builder().method(method).uri(uri).header(HOST, "localhost").body(body);
        let request = request.map_err(io::Error::other)?;
        let mut connection = match self.connection.take().filter(|connection| !connection.is_closed()) {
            Some(connection) => connection,
            None => connect(self.address).await?,
        };
        let answered = timeout(PATIENCE, async {
            connection.ready().await?;
            let (head, body) = connection.send_request(request).await?.into_parts();
            let body = body.collect().await?.to_bytes();
            Ok::<_, hyper::Error>(Answer { status: head.status.as_u16(), body })
        });
        let answer = answered.await?.map_err(io::Error::other)?;
        self.connection = Some(connection);
        Ok(answer)
    }

    pub(crate) async fn ask(&mut self, method: Method, path: &str, body: impl Into<Bytes>) -> io::Result<Answer> {
        let uri = path.parse().map_err(io::Error::other)?;
        self.send(&method, &uri, full(body)).await
    }

    /// Which of the keys are listed.
    pub(crate) async fn which_listed(&mut self, keys: &[&str]) -> io::Result<Vec<bool>> {
        let answer = self.ask(Method::POST, "/v1/check", serde_json::json!(keys).to_string()).await?;
        let listed: Option<Vec<bool>> = serde_json::from_value(answer.json()["listed"].take()).ok();
        let listed = listed.filter(|listed| answer.status == 200 && listed.len() == keys.len());
        listed.ok_or_else(|| io::Error::other(format!("{} keys were answered {}", keys.len(), answer.text())))
    }
}

async fn connect(address: SocketAddr) -> io::Result<SendRequest<Body>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // Its errors are those of the request.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

pub(crate) fn full(body: impl Into<Bytes>) -> Body {
    Full::new(body.into()).map_err(|never| match never {}).boxed_unsync()
}

/// What need not be escaped in a path. (A path of dots alone would be a step up; no key here is one.)
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A path that ends in a key.
pub(crate) fn path(prefix: &str, key: &str) -> String {
    format!("{prefix}{}", utf8_percent_encode(key, ESCAPED))
}
