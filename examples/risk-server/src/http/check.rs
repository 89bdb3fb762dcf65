//! Look-ups: `GET /v1/check/{key}` and `POST /v1/check`.

mod batch;

use super::answer::{Failure, json};
use super::app::App;
use super::body::{blocking, read};
use super::key;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use batch::Batch;
use serde::Serialize;

/// A longer body takes too long to parse for an executor's thread. In bytes.
const LONG_BODY: usize = 1 << 16;

/// Answers for one key.
pub(crate) async fn one(State(app): State<App>, request: Request) -> Result<Response, Failure> {
    #[derive(Serialize)]
    struct Checked<'k> {
        key: &'k str,
        listed: bool,
    }
    let serving = app.serving()?;
    let key = key::of_path(request.uri(), "/v1/check/")?;
    let maybe = serving.front.may_be_listed(&key);
    app.counters().asked(1, usize::from(maybe));
    let listed = maybe && confirm(&app, &key).await?;
    Ok(json(StatusCode::OK, &Checked { key: &key, listed }))
}

async fn confirm(app: &App, key: &str) -> Result<bool, Failure> {
    let list = app.serving()?.list.clone();
    let key = Box::<str>::from(key);
    let answers = blocking(app.limits().request, move || list.confirm(&[&key])).await??;
    let listed = answers == [true];
    app.counters().confirmed(usize::from(listed));
    Ok(listed)
}

/// Answers for an array of keys, in its order.
pub(crate) async fn many(State(app): State<App>, request: Request) -> Result<Response, Failure> {
    #[derive(Serialize)]
    struct Checked {
        listed: Vec<bool>,
    }
    let serving = app.serving()?;
    let limits = *app.limits();
    let body = read(request.into_body(), limits.body_bytes, limits.request).await?;

    let is_long = body.len() > LONG_BODY;
    let front = serving.front.clone();
    let ask = move || Batch::ask(&*front, &body, limits.batch_keys);
    let asked = if is_long { blocking(limits.request, ask).await? } else { ask() };
    let mut batch = asked.map_err(Failure::bad_request)?;
    app.counters().asked(batch.answers.len(), batch.hits());

    if batch.hits() > 0 {
        let list = serving.list.clone();
        batch = blocking(limits.request, move || batch.confirm(&list)).await??;
        app.counters().confirmed(batch.answers.iter().filter(|&&listed| listed).count());
    }
    Ok(json(StatusCode::OK, &Checked { listed: batch.answers }))
}
