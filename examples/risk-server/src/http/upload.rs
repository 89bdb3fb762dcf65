//! Many keys at once: `POST /v1/keys`, one a line.

use super::answer::{Failure, json};
use super::app::{App, Limits};
use super::body::in_time;
use super::lines::Lines;
use super::token::MayWrite;
use crate::list::{Change, List, Replacement};
use axum::body::{BodyDataStream, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::map_request;
use axum::response::Response;
use axum::routing::{self, MethodRouter};
use futures_util::StreamExt;
use serde::Serialize;
use std::borrow::Cow;
use std::time::{Duration, Instant};
use tokio::time::timeout;
use tower_http::decompression::RequestDecompressionLayer;

/// Keys that are sent to the list together: enough that a commit for each such group is a small part of the work.
pub(super) const GROUP: usize = 4096;

/// In each idle time, so many bytes of a new list must come: it keeps others from being made.
const LEAST_PROGRESS: usize = 1024;

/// The body came in gzip, or in what is refused.
#[derive(Clone)]
struct Encoded;

/// Bodies in gzip are decoded, and may be longer than they were sent.
pub(crate) fn route() -> MethodRouter<App> {
    let note = async |mut request: Request| {
        if request.headers().get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
            request.extensions_mut().insert(Encoded);
        }
        request
    };
    // Each layer stands around the one before.
    routing::post(post).layer(RequestDecompressionLayer::new().pass_through_unaccepted(true)).layer(map_request(note))
}

/// Puts the keys of the body on the list or, with `?replace=true`, in its place.
async fn post(_: MayWrite, State(app): State<App>, request: Request) -> Result<Response, Failure> {
    let list = &app.serving()?.list;
    let replaces = check_type(request.headers()).and_then(|()| replaces(request.uri().query()));
    let mut keys = Upload::new(request, app.limits());
    let answered = match replaces {
        Ok(true) => {
            keys.least = LEAST_PROGRESS;
            replace(&app, list, &mut keys).await
        }
        Ok(false) => Ok(add(list, &mut keys, app.limits().request).await),
        Err(failure) => Err(failure),
    };
    // Many clients read no answer before they have sent everything, and lose it if the connection is closed then.
    keys.skip(app.limits().request).await;
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
    // What could be decoded has lost this header.
    match headers.get(CONTENT_ENCODING) {
        Some(encoding) if encoding != "identity" => {
            unsupported("the body is encoded in a way that is not known here; send it as it is, or with gzip")
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

/// What came of an upload that adds keys.
#[derive(Default, Serialize)]
struct Added {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Cow<'static, str>>,
    /// Lines with a key that were taken.
    lines: u64,
    added: u64,
    /// Those that were on the list before.
    already: u64,
}

async fn add(list: &List, keys: &mut Upload, time: Duration) -> Response {
    let mut sum = Added::default();
    match add_all(list, keys, time, &mut sum).await {
        Ok(()) => json(StatusCode::OK, &sum),
        Err(failure) => {
            sum.error = Some(failure.error.clone());
            failure.with(&sum)
        }
    }
}

async fn add_all(list: &List, keys: &mut Upload, time: Duration, sum: &mut Added) -> Result<(), Failure> {
    loop {
        let mut group = Vec::new();
        let more = keys.read(|key| group.push(Change::Put(key.into()))).await;
        if !group.is_empty() {
            // Also those before a line that is none, so that the answer says where to go on.
            let changed = in_time("a group of changes", time, list.change(group)).await??;
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

async fn replace(app: &App, list: &List, keys: &mut Upload) -> Result<Response, Failure> {
    #[derive(Serialize)]
    struct Replaced {
        keys: u64,
        took_ms: u128,
    }
    let start = Instant::now();
    let mut replacement = list.begin_replacement().await?;
    let cancelled = app.cancelled();
    tokio::select! {
        // An error drops the replacement, which changes nothing then.
        filled = fill(&mut replacement, keys) => filled?,
        Ok(done) = cancelled => {
            drop(replacement);
            let _ = done.send(());
            return Err(Failure::new(StatusCode::CONFLICT, "the replacement was cancelled; the list is as it was"));
        }
    }
    let replaced = replacement.commit().await?;
    Ok(json(StatusCode::OK, &Replaced { keys: replaced.keys, took_ms: start.elapsed().as_millis() }))
}

async fn fill(replacement: &mut Replacement, keys: &mut Upload) -> Result<(), Failure> {
    let mut empty = true;
    loop {
        let mut group = Vec::new();
        let more = keys.read(|key| group.push(key.into())).await?;
        if !group.is_empty() {
            empty = false;
            replacement.add(group).await?;
        }
        if !more {
            break;
        }
    }
    if empty {
        // Some export that failed, more likely than a wish to let everybody pass.
        return Err(Failure::bad_request(
            "the body has no key, and no list is replaced by nothing; delete its keys instead",
        ));
    }
    Ok(())
}

/// Cancels the replacement whose keys come in. One that is complete is made all the same.
pub(crate) async fn cancel(_: MayWrite, State(app): State<App>) -> Result<Response, Failure> {
    #[derive(Serialize)]
    struct Cancelled {
        cancelled: bool,
    }
    app.serving()?;
    Ok(json(StatusCode::OK, &Cancelled { cancelled: app.cancel().await }))
}

/// The keys of a body.
struct Upload {
    /// None once nothing more of it comes.
    pieces: Option<BodyDataStream>,
    lines: Lines,
    is_encoded: bool,
    /// Bytes that may come yet.
    room: u64,
    /// So many bytes must come in the time for which the connection may be idle.
    least: usize,
    idle: Duration,
    /// Those that have come, and the rest of that time. Only waiting counts: the store may take its own time.
    come: usize,
    patience: Duration,
}

impl Upload {
    fn new(request: Request, limits: &Limits) -> Self {
        let is_encoded = request.extensions().get::<Encoded>().is_some();
        Upload {
            pieces: Some(request.into_body().into_data_stream()),
            lines: Lines::default(),
            is_encoded,
            room: if is_encoded { limits.decoded_bytes } else { u64::MAX },
            least: 1,
            idle: limits.idle,
            come: 0,
            patience: limits.idle,
        }
    }

    /// Hands over some [`GROUP`] keys, and says whether there may be more. Those before an error are handed over too.
    async fn read(&mut self, mut key: impl FnMut(&str)) -> Result<bool, Failure> {
        let mut keys = 0;
        loop {
            let piece = self.piece().await?;
            let handed = |text: &str| {
                keys += 1;
                key(text);
            };
            let taken = match &piece {
                Some(piece) => self.lines.push(piece, handed),
                None => self.lines.end(handed),
            };
            taken.map_err(|bad| Failure::bad_request(bad.to_string()))?;
            if piece.is_none() || keys >= GROUP {
                return Ok(piece.is_some());
            }
        }
    }

    /// The next piece of the body, which may be cut anywhere; none at its end.
    async fn piece(&mut self) -> Result<Option<Bytes>, Failure> {
        let Some(pieces) = &mut self.pieces else { return Ok(None) };
        let begun = Instant::now();
        let error = match timeout(self.patience, pieces.next()).await {
            Ok(Some(Ok(piece))) if piece.len() as u64 <= self.room => {
                self.note(piece.len(), begun.elapsed());
                return Ok(Some(piece));
            }
            Ok(Some(Ok(_))) => {
                let error = "the body is longer than --max-decoded-bytes allows when it is decoded; send it in parts";
                Some(Failure::new(StatusCode::PAYLOAD_TOO_LARGE, error))
            }
            Ok(None) => None,
            Ok(Some(Err(error))) => {
                let or = if self.is_encoded { ", or is not in gzip" } else { "" };
                Some(Failure::bad_request(format!("the body broke off{or}: {error}")))
            }
            Err(_) => {
                let idle = self.idle.as_secs_f64();
                let error = match self.least {
                    1 => format!("nothing more of the body came for {idle} s"),
                    least => format!("fewer than {least} bytes of the body came in {idle} s"),
                };
                Some(Failure::new(StatusCode::REQUEST_TIMEOUT, error))
            }
        };
        self.pieces = None;
        error.map_or(Ok(None), Err)
    }

    fn note(&mut self, bytes: usize, waited: Duration) {
        self.come += bytes;
        self.room -= bytes as u64;
        if self.come >= self.least {
            (self.come, self.patience) = (0, self.idle);
        } else {
            self.patience = self.patience.saturating_sub(waited);
        }
    }

    /// Reads on to the end of the body, for nothing and within this time.
    async fn skip(&mut self, time: Duration) {
        let rest = async { while let Ok(Some(_)) = self.piece().await {} };
        let _ = timeout(time, rest).await;
    }
}
