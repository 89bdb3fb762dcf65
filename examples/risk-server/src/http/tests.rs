//! The routes as a client sees them, without a network.

mod check;
mod keys;
mod rules;
mod state;
mod upload;

use super::{Access, App, Front, Hosts, Limits, Service, Token};
use crate::list::{Change, List, Options};
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{HeaderMap, Method, Request, header};
use futures_util::{Stream, StreamExt, stream};
use serde_json::Value;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::mpsc;

/// Far more than anything here takes.
const LONG: Duration = Duration::from_secs(3600);

/// A server with an empty list of its own.
struct Server {
    service: Service,
    app: App,
    list: List,
    _folder: TempDir,
}

/// How a server is set up.
struct Setup {
    limits: Limits,
    access: Access,
}

impl Default for Setup {
    fn default() -> Self {
        Setup {
            limits: Limits {
                body_bytes: 1 << 20,
                batch_keys: 1000,
                requests: 100,
                request: LONG,
                idle: LONG,
                decoded_bytes: 1 << 20,
            },
            access: Access { token: None, hosts: Hosts::Any },
        }
    }
}

impl Setup {
    fn token(token: &str) -> Self {
        let mut setup = Self::default();
        setup.access.token = Some(Token::new(token).unwrap());
        setup
    }

    /// Before its list is open.
    fn loading(self) -> (App, Service) {
        let app = App::new(self.limits, self.access);
        (app.clone(), Service::new(app))
    }

    async fn start(self) -> Server {
        self.start_with(|list| Arc::new(list)).await
    }

    /// With another front before the list.
    async fn start_with(self, front: impl FnOnce(List) -> Arc<dyn Front>) -> Server {
        let (app, service) = self.loading();
        let folder = tempfile::tempdir().unwrap();
        let options = Options::of_test(folder.path(), 10_000);
        let opened = tokio::task::spawn_blocking(move || List::open(options, |_| {})).await.unwrap().unwrap();
        app.serve(opened.list.clone(), front(opened.list.clone()));
        Server { service, app, list: opened.list, _folder: folder }
    }
}

async fn start() -> Server {
    Setup::default().start().await
}

impl Server {
    async fn ask(&self, method: &str, path: &str, body: impl Into<Body>) -> Answer {
        ask(&self.service, request(method, path, body)).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, Body::empty()).await
    }

    async fn put(&self, keys: &[&str]) {
        let changes = keys.iter().map(|&key| Change::Put(key.into())).collect();
        assert!(self.list.change(changes).await.unwrap().iter().all(|&added| added));
    }

    /// Which of the keys are on the list, as the routes tell it.
    async fn listed(&self, keys: &[&str]) -> Vec<bool> {
        let answer = self.ask("POST", "/v1/check", serde_json::to_vec(keys).unwrap()).await;
        serde_json::from_value(answer.json()["listed"].clone()).unwrap()
    }
}

struct Answer {
    status: u16,
    headers: HeaderMap,
    text: String,
}

impl Answer {
    #[track_caller]
    fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{}", self.text);
        serde_json::from_str(&self.text).unwrap()
    }

    /// What the error says, of an answer with this status.
    #[track_caller]
    fn error(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.text);
        self.json()["error"].as_str().unwrap().to_owned()
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

fn request(method: &str, path: &str, body: impl Into<Body>) -> Request<Body> {
    let method: Method = method.parse().unwrap();
    Request::builder().method(method).uri(path).header(header::HOST, "localhost").body(body.into()).unwrap()
}

async fn ask(service: &Service, request: Request<Body>) -> Answer {
    let (head, body) = service.answer(request).await.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.unwrap();
    Answer { status: head.status.as_u16(), headers: head.headers, text: String::from_utf8(bytes.to_vec()).unwrap() }
}

fn pieces<'p>(pieces: impl IntoIterator<Item = &'p [u8]>) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let pieces: Vec<_> = pieces.into_iter().map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    stream::iter(pieces)
}

/// A body that comes in these pieces.
fn in_pieces<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> Body {
    Body::from_stream(pieces(parts))
}

/// A body whose connection is lost after this.
fn broken_after(text: &str) -> Body {
    let lost = io::Error::new(io::ErrorKind::ConnectionReset, "connection lost");
    Body::from_stream(pieces([text.as_bytes()]).chain(stream::iter([Err(lost)])))
}

/// A body of which nothing more comes after this.
fn stalled_after(text: &str) -> Body {
    Body::from_stream(pieces([text.as_bytes()]).chain(stream::pending()))
}

/// A body that comes as it is sent; one piece at a time waits to be read.
fn channel() -> (mpsc::Sender<&'static str>, Body) {
    let (sender, receiver) = mpsc::channel(1);
    let pieces = stream::unfold(receiver, async |mut receiver: mpsc::Receiver<&'static str>| {
        let piece = receiver.recv().await?;
        Some((Ok::<_, io::Error>(Bytes::from(piece)), receiver))
    });
    (sender, Body::from_stream(pieces))
}
