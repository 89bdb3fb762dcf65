//! Lookups, `/v1/check`, and changes of one key, `/v1/keys/{key}`.

use super::access::MayWrite;
use super::answer::{Failure, blocking, in_time, json, read};
use super::{App, Front, Serving};
use crate::list::{Change, check_key};
use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::borrow::Cow;
use std::sync::Arc;

/// A longer body takes too long to parse for a thread of the executor. In bytes.
const LONG_BODY: usize = 1 << 16;

/// `GET /v1/check/{key}`
pub(crate) async fn check(State(app): State<Arc<App>>, request: Request) -> Result<Response, Failure> {
    #[derive(Serialize)]
    struct Checked<'k> {
        key: &'k str,
        listed: bool,
    }
    let serving = app.serving()?;
    let key = key_of_path(request.uri(), "/v1/check/")?;
    let maybe = serving.front.may_be_listed(&key);
    app.counters.lookups.inc();
    app.counters.filter_hits.inc_by(maybe.into());
    let listed = maybe && confirm(&app, vec![(*key).into()]).await? == [true];
    Ok(json(StatusCode::OK, &Checked { key: &key, listed }))
}

/// `POST /v1/check`
pub(crate) async fn check_batch(State(app): State<Arc<App>>, request: Request) -> Result<Response, Failure> {
    #[derive(Serialize)]
    struct Checked {
        listed: Vec<bool>,
    }
    let front = Arc::clone(&app.serving()?.front);
    let (time, limit) = (app.config.request_seconds, app.config.max_batch);
    let body = read(request.into_body(), app.config.max_body_bytes, time).await?;
    let is_long = body.len() > LONG_BODY;
    let ask = move || ask_batch(&*front, &body, limit);
    let asked = if is_long { blocking(time, ask).await? } else { ask() };
    let (mut listed, hits) = asked.map_err(Failure::bad_request)?;
    app.counters.lookups.inc_by(listed.len() as u64);
    app.counters.filter_hits.inc_by(hits.len() as u64);
    if !hits.is_empty() {
        let confirmed = confirm(&app, hits).await?;
        listed.iter_mut().filter(|maybe| **maybe).zip(confirmed).for_each(|(maybe, listed)| *maybe = listed);
    }
    Ok(json(StatusCode::OK, &Checked { listed }))
}

/// Which of the keys are on the list.
async fn confirm(app: &App, keys: Vec<Box<str>>) -> Result<Vec<bool>, Failure> {
    let list = app.serving()?.list.clone();
    let confirm = move || list.confirm(&keys.iter().map(|key| &**key).collect::<Vec<_>>());
    let listed = blocking(app.config.request_seconds, confirm).await??;
    app.counters.confirmed_hits.inc_by(listed.iter().map(|&listed| u64::from(listed)).sum());
    Ok(listed)
}

/// Asks the front for the keys of a JSON array. Returns for each whether it may be listed, and those that may. An error
/// says what is wrong with the array.
fn ask_batch(front: &dyn Front, json: &[u8], limit: usize) -> Result<(Vec<bool>, Vec<Box<str>>), String> {
    let keys: Vec<Key> =
        serde_json::from_slice(json).map_err(|error| format!("the body is not a JSON array of keys: {error}"))?;
    if keys.len() > limit {
        return Err(format!("more than {limit} keys in one batch"));
    }
    let keys: Vec<&str> = keys.iter().map(|Key(key)| &**key).collect();
    for (index, key) in keys.iter().enumerate() {
        check_key(key).map_err(|error| format!("index {index}: {error}"))?;
    }
    let mut answers = vec![false; keys.len()];
    front.may_be_listed_batch(&keys, &mut answers);
    let hits = keys.iter().zip(&answers).filter(|&(_, &maybe)| maybe).map(|(&key, _)| key.into()).collect();
    Ok((answers, hits))
}

/// A key of an array, borrowed from it where it is written without escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// `PUT /v1/keys/{key}`
pub(crate) async fn put(_: MayWrite, State(app): State<Arc<App>>, request: Request) -> Result<Response, Failure> {
    let serving = app.serving()?;
    let key = key_of_path(request.uri(), "/v1/keys/")?;
    serving.front.before_put(&key);
    let added = change(&app, serving, &key, true).await?;
    let status = if added { StatusCode::CREATED } else { StatusCode::OK };
    Ok(json(status, &json!({ "key": key, "added": added })))
}

/// `DELETE /v1/keys/{key}`
pub(crate) async fn delete(_: MayWrite, State(app): State<Arc<App>>, request: Request) -> Result<Response, Failure> {
    let serving = app.serving()?;
    let key = key_of_path(request.uri(), "/v1/keys/")?;
    let removed = change(&app, serving, &key, false).await?;
    serving.front.after_delete(&key);
    Ok(json(StatusCode::OK, &json!({ "key": key, "removed": removed })))
}

async fn change(app: &App, serving: &Serving, key: &str, put: bool) -> Result<bool, Failure> {
    let change = serving.list.change(vec![Change { key: key.into(), put }]);
    let changed = in_time("the change may still be made, but it", app.config.request_seconds, change).await??;
    Ok(changed == [true])
}

/// The key behind `prefix` in the path.
fn key_of_path<'u>(uri: &'u Uri, prefix: &str) -> Result<Cow<'u, str>, Failure> {
    if uri.query().is_some() {
        return Err(Failure::bad_request("the path ends in a query; write %3F for a '?' in a key"));
    }
    let key = decode(uri.path().strip_prefix(prefix).unwrap_or_default())?;
    check_key(&key).map_err(Failure::bad_request)?;
    Ok(key)
}

/// Decodes percent escapes. Half an escape is an error, unlike in browsers: it is hardly ever meant.
fn decode(raw: &str) -> Result<Cow<'_, str>, Failure> {
    if !raw.contains('%') {
        return Ok(Cow::Borrowed(raw));
    }
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.bytes().enumerate();
    while let Some((at, byte)) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|(_, digit)| char::from(digit).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else {
            let error = "the key has a '%' without two hexadecimal digits";
            return Err(Failure::bad_request(format!("{error} at byte {at}; write %25 for a '%'")));
        };
        bytes.push((high * 16 + low) as u8);
    }
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| Failure::bad_request("the key is not UTF-8"))
}
