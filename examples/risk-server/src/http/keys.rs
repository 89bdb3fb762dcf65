//! Changes of one key: `PUT` and `DELETE /v1/keys/{key}`.

use super::answer::{Failure, json};
use super::app::App;
use super::body::in_time;
use super::key;
use super::token::MayWrite;
use crate::list::Change;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;

/// Puts a key on the list.
pub(crate) async fn put(_: MayWrite, State(app): State<App>, request: Request) -> Result<Response, Failure> {
    #[derive(Serialize)]
    struct Put<'k> {
        key: &'k str,
        added: bool,
    }
    app.serving()?;
    let key = key::of_path(request.uri(), "/v1/keys/")?;
    let added = change(&app, Change::Put(key.as_ref().into())).await?;
    Ok(json(if added { StatusCode::CREATED } else { StatusCode::OK }, &Put { key: &key, added }))
}

/// Takes a key off the list.
pub(crate) async fn delete(_: MayWrite, State(app): State<App>, request: Request) -> Result<Response, Failure> {
    #[derive(Serialize)]
    struct Deleted<'k> {
        key: &'k str,
        removed: bool,
    }
    app.serving()?;
    let key = key::of_path(request.uri(), "/v1/keys/")?;
    let removed = change(&app, Change::Delete(key.as_ref().into())).await?;
    Ok(json(StatusCode::OK, &Deleted { key: &key, removed }))
}

/// Whether the list changed.
async fn change(app: &App, change: Change) -> Result<bool, Failure> {
    let change = app.serving()?.list.change(vec![change]);
    let changed = in_time("the change may still be made, but it", app.limits().request, change).await??;
    Ok(changed == [true])
}
