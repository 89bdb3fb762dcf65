//! Many keys at once: `POST /v1/keys`, one a line.

use super::answer::{Failure, json};
use super::app::App;
use super::body::in_time;
use super::lines::Lines;
use super::token::MayWrite;
use crate::list::{Change, List};
use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use futures_util::StreamExt;
use serde::Serialize;
use std::borrow::Cow;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// Keys that are sent to the list together: enough that a commit for each such group is a small part of the work.
pub(super) const GROUP: usize = 4096;

/// Puts the keys of the body on the list or, with `?replace=true`, in its place.
pub(crate) async fn post(_: MayWrite, State(app): State<App>, request: Request) -> Result<Response, Failure> {
    let list = &app.serving()?.list;
    let replaces = replaces(request.uri().query());
    let mut keys = Upload::new(request.into_body(), app.limits().idle);
    let answered = match replaces {
        Ok(true) => replace(list, &mut keys).await,
        Ok(false) => Ok(add(list, &mut keys, app.limits().request).await),
        Err(failure) => Err(failure),
    };
    // Many clients read no answer before they have sent everything, and lose it if the connection is closed then.
    keys.skip(app.limits().request).await;
    answered
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

async fn replace(list: &List, keys: &mut Upload) -> Result<Response, Failure> {
    #[derive(Serialize)]
    struct Replaced {
        keys: u64,
        took_ms: u128,
    }
    let start = Instant::now();
    let mut empty = true;
    let mut replacement = list.begin_replacement().await?;
    loop {
        let mut group = Vec::new();
        // An error drops the replacement, which changes nothing then.
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
    let replaced = replacement.commit().await?;
    Ok(json(StatusCode::OK, &Replaced { keys: replaced.keys, took_ms: start.elapsed().as_millis() }))
}

/// The keys of a body.
struct Upload {
    /// None once nothing more of it comes.
    pieces: Option<BodyDataStream>,
    lines: Lines,
    /// Between two pieces.
    idle: Duration,
}

impl Upload {
    fn new(body: Body, idle: Duration) -> Self {
        Upload { pieces: Some(body.into_data_stream()), lines: Lines::default(), idle }
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
        let error = match timeout(self.idle, pieces.next()).await {
            Ok(Some(Ok(piece))) => return Ok(Some(piece)),
            Ok(None) => None,
            Ok(Some(Err(error))) => Some(Failure::bad_request(format!("the body broke off: {error}"))),
            Err(_) => {
                let error = format!("nothing more of the body came for {} s", self.idle.as_secs_f64());
                Some(Failure::new(StatusCode::REQUEST_TIMEOUT, error))
            }
        };
        self.pieces = None;
        error.map_or(Ok(None), Err)
    }

    /// Reads on to the end of the body, for nothing and within this time.
    async fn skip(&mut self, time: Duration) {
        let rest = async { while let Ok(Some(_)) = self.piece().await {} };
        let _ = timeout(time, rest).await;
    }
}
