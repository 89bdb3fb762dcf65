//! Many keys at once: `POST /v1/keys`, one a line.

use super::App;
use super::access::MayWrite;
use super::answer::{Failure, in_time, json};
use crate::config::Config;
use crate::list::{Change, List, MAX_KEY_BYTES, Replacement, check_key};
use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::map_request;
use axum::response::Response;
use axum::routing::{self, MethodRouter};
use bytes::BytesMut;
use futures_util::StreamExt;
use http_body_util::{LengthLimitError, Limited};
use serde::Serialize;
use serde_json::json;
use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::codec::{Decoder, LinesCodec, LinesCodecError};
use tower_http::decompression::RequestDecompressionLayer;

/// Keys that are sent to the list together: enough that the commit is a small part of the work.
const GROUP: usize = 4096;

/// In each idle time, this many bytes of a new list must arrive: it keeps others from being made.
const MIN_PROGRESS: usize = 1024;

/// Some editors begin a file with a byte order mark.
const MARK: char = '\u{feff}';

/// A longer line is not a key, whatever it holds: this leaves room for a mark and a carriage return.
const MAX_LINE_BYTES: usize = MAX_KEY_BYTES + MARK.len_utf8() + 1;

/// The body came in gzip, or in an encoding that is refused.
#[derive(Clone)]
struct Encoded;

/// Bodies in gzip are decoded.
pub(crate) fn route() -> MethodRouter<Arc<App>> {
    let note = async |mut request: Request| {
        if request.headers().get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
            request.extensions_mut().insert(Encoded);
        }
        request
    };
    // Each layer wraps the previous one.
    routing::post(post).layer(RequestDecompressionLayer::new().pass_through_unaccepted(true)).layer(map_request(note))
}

/// Puts the keys of the body on the list or, with `?replace=true`, in its place.
async fn post(_: MayWrite, State(app): State<Arc<App>>, request: Request) -> Result<Response, Failure> {
    let list = &app.serving()?.list;
    let replaces = check_type(request.headers()).and_then(|()| replaces(request.uri().query()));
    let mut upload = Upload::new(request, &app.config);
    let answered = match replaces {
        Ok(true) => {
            upload.min_progress = MIN_PROGRESS;
            replace(&app, list, &mut upload).await
        }
        Ok(false) => Ok(add(list, &mut upload, app.config.request_seconds).await),
        Err(failure) => Err(failure),
    };
    // Many clients read no answer before they have sent everything, and lose it if the connection is closed then.
    let rest = async { while let Ok(Some(_)) = upload.piece().await {} };
    let _ = timeout(app.config.request_seconds, rest).await;
    answered
}

/// Forms, multipart bodies and JSON would be taken for lines.
fn check_type(headers: &HeaderMap) -> Result<(), Failure> {
    let unsupported = |error: &'static str| Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, error));
    let content_type = headers.get(CONTENT_TYPE).map_or(&b"text/plain"[..], HeaderValue::as_bytes).to_ascii_lowercase();
    if !(content_type.starts_with(b"text/") || content_type.starts_with(b"application/octet-stream")) {
        return unsupported(
            "the body is not a text of keys, one a line; send 'Content-Type: text/plain', such as: \
             curl -H 'Content-Type: text/plain' --data-binary @FILE",
        );
    }
    // A body that could be decoded has lost this header.
    match headers.get(CONTENT_ENCODING) {
        Some(encoding) if encoding != "identity" => {
            unsupported("the body has an encoding that is not known here; send it as it is, or with gzip")
        }
        _ => Ok(()),
    }
}

fn replaces(query: Option<&str>) -> Result<bool, Failure> {
    match query {
        None | Some("" | "replace=false") => Ok(false),
        Some("replace=true") => Ok(true),
        Some(_) => Err(Failure::bad_request("the only query is replace=true or replace=false")),
    }
}

/// The result of an upload that adds keys.
#[derive(Default, Serialize)]
struct Added {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Cow<'static, str>>,
    /// Lines with a key that were accepted.
    lines: u64,
    added: u64,
    /// Those that were on the list before.
    already: u64,
}

async fn add(list: &List, upload: &mut Upload, time: Duration) -> Response {
    let mut sum = Added::default();
    match add_all(list, upload, time, &mut sum).await {
        Ok(()) => json(StatusCode::OK, &sum),
        Err(failure) => {
            sum.error = Some(failure.error.clone());
            failure.with(&sum)
        }
    }
}

async fn add_all(list: &List, upload: &mut Upload, time: Duration, sum: &mut Added) -> Result<(), Failure> {
    loop {
        let (group, more) = upload.group().await;
        if !group.is_empty() {
            // Also those before an invalid line, so that the answer says where to go on.
            let change = list.change(group.into_iter().map(|key| Change { key, put: true }).collect());
            let changed = in_time("a group of changes", time, change).await??;
            let added = changed.iter().filter(|&&changed| changed).count();
            sum.lines += changed.len() as u64;
            sum.added += added as u64;
            sum.already += (changed.len() - added) as u64;
        }
        if !more? {
            return Ok(());
        }
    }
}

async fn replace(app: &App, list: &List, upload: &mut Upload) -> Result<Response, Failure> {
    let start = Instant::now();
    let mut replacement = list.begin_replacement().await?;
    let (cancel, cancelled) = oneshot::channel::<oneshot::Sender<()>>();
    *app.cancel.lock() = Some(cancel);
    tokio::select! {
        // An error drops the replacement, which changes nothing then.
        filled = fill(&mut replacement, upload) => filled?,
        Ok(done) = cancelled => {
            drop(replacement);
            let _ = done.send(());
            return Err(Failure::new(StatusCode::CONFLICT, "the replacement was cancelled; the list is as it was"));
        }
    }
    let keys = replacement.commit().await?;
    Ok(json(StatusCode::OK, &json!({ "keys": keys, "took_ms": start.elapsed().as_millis() as u64 })))
}

async fn fill(replacement: &mut Replacement, upload: &mut Upload) -> Result<(), Failure> {
    let mut is_empty = true;
    loop {
        let (group, more) = upload.group().await;
        let more = more?;
        if !group.is_empty() {
            is_empty = false;
            replacement.add(group).await?;
        }
        if !more {
            break;
        }
    }
    if is_empty {
        // More likely an export that failed than a wish to let everything pass.
        return Err(Failure::bad_request(
            "the body has no key, and a list is not replaced by nothing; delete its keys",
        ));
    }
    Ok(())
}

/// Cancels the replacement whose keys come in. One that is complete is made all the same.
pub(crate) async fn cancel(_: MayWrite, State(app): State<Arc<App>>) -> Result<Response, Failure> {
    app.serving()?;
    let (done, told) = oneshot::channel();
    let sent = app.cancel.lock().take().is_some_and(|cancel| cancel.send(done).is_ok());
    Ok(json(StatusCode::OK, &json!({ "cancelled": sent && told.await.is_ok() })))
}

/// The keys of a body.
struct Upload {
    /// `None` once nothing more of it comes.
    body: Option<BodyDataStream>,
    unread: BytesMut,
    lines: LinesCodec,
    /// The number of lines read.
    line: u64,
    is_encoded: bool,
    /// Bytes that must come in the time for which the connection may be idle.
    min_progress: usize,
    idle: Duration,
    /// Those that have come, and the rest of that time. Only waiting counts: the store may take its own time.
    progress: usize,
    patience: Duration,
}

impl Upload {
    fn new(request: Request, config: &Config) -> Self {
        let is_encoded = request.extensions().get::<Encoded>().is_some();
        let most = if is_encoded { config.max_decoded_bytes } else { u64::MAX };
        let body = Limited::new(request.into_body(), usize::try_from(most).unwrap_or(usize::MAX));
        Upload {
            body: Some(Body::new(body).into_data_stream()),
            unread: BytesMut::new(),
            lines: LinesCodec::new_with_max_length(MAX_LINE_BYTES),
            line: 0,
            is_encoded,
            min_progress: 1,
            idle: config.idle_seconds,
            progress: 0,
            patience: config.idle_seconds,
        }
    }

    /// At most [`GROUP`] keys, and whether there may be more. Those before an error are returned too.
    async fn group(&mut self) -> (Vec<Box<str>>, Result<bool, Failure>) {
        let mut keys = Vec::new();
        while keys.len() < GROUP {
            match self.key().await {
                Ok(Some(key)) => keys.push(key),
                Ok(None) => return (keys, Ok(false)),
                Err(failure) => return (keys, Err(failure)),
            }
        }
        (keys, Ok(true))
    }

    async fn key(&mut self) -> Result<Option<Box<str>>, Failure> {
        loop {
            let line = match &self.body {
                Some(_) => self.lines.decode(&mut self.unread),
                None => self.lines.decode_eof(&mut self.unread),
            };
            match line {
                Ok(Some(line)) => {
                    self.line += 1;
                    let key = if self.line == 1 { line.strip_prefix(MARK).unwrap_or(&line) } else { &line };
                    if !key.bytes().all(|byte| byte == b' ' || byte == b'\t') {
                        check_key(key).map_err(|error| self.bad_line(self.line, error))?;
                        return Ok(Some(key.into()));
                    }
                }
                Ok(None) if self.body.is_none() => return Ok(None),
                Ok(None) => {
                    if let Some(piece) = self.piece().await? {
                        self.unread.extend_from_slice(&piece);
                    }
                }
                Err(LinesCodecError::MaxLineLengthExceeded) => {
                    let error = format!("the line is longer than a key, which has 1 to {MAX_KEY_BYTES} bytes");
                    return Err(self.bad_line(self.line + 1, error));
                }
                Err(LinesCodecError::Io(_)) => return Err(self.bad_line(self.line + 1, "the line is not UTF-8")),
            }
        }
    }

    fn bad_line(&self, number: u64, error: impl std::fmt::Display) -> Failure {
        Failure::bad_request(format!("line {number}: {error}"))
    }

    /// The next piece of the body, which may be cut anywhere; none at its end.
    async fn piece(&mut self) -> Result<Option<Bytes>, Failure> {
        let Some(body) = &mut self.body else { return Ok(None) };
        let begun = Instant::now();
        let error = match timeout(self.patience, body.next()).await {
            Ok(Some(Ok(piece))) => {
                self.note(piece.len(), begun.elapsed());
                return Ok(Some(piece));
            }
            Ok(None) => {
                self.body = None;
                return Ok(None);
            }
            Ok(Some(Err(error))) if error.source().is_some_and(|source| source.is::<LengthLimitError>()) => {
                let error = "the body is longer than --max-decoded-bytes allows when it is decoded; send it in parts";
                Failure::new(StatusCode::PAYLOAD_TOO_LARGE, error)
            }
            Ok(Some(Err(error))) => {
                let or = if self.is_encoded { ", or is not in gzip" } else { "" };
                Failure::bad_request(format!("the body broke off{or}: {error}"))
            }
            Err(_) => {
                let (bytes, idle) = (self.min_progress, self.idle.as_secs_f64());
                let error = format!("fewer than {bytes} bytes of the body came in {idle} s");
                Failure::new(StatusCode::REQUEST_TIMEOUT, error)
            }
        };
        self.body = None;
        // The line that is cut off is not a key.
        self.unread.clear();
        Err(error)
    }

    fn note(&mut self, bytes: usize, waited: Duration) {
        self.progress += bytes;
        if self.progress >= self.min_progress {
            (self.progress, self.patience) = (0, self.idle);
        } else {
            self.patience = self.patience.saturating_sub(waited);
        }
    }
}
