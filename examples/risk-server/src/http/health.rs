//! For whoever watches this server: `GET /healthz` and `GET /readyz`.

use super::answer::json;
use super::app::App;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;

/// Answers as long as this program runs.
pub(crate) async fn healthz() -> &'static str {
    "ok"
}

/// Says whether the list is served: not before it is loaded, not once it takes no changes, and not once a shutdown has
/// begun.
pub(crate) async fn readyz(State(app): State<App>) -> Response {
    #[derive(Serialize)]
    struct Ready {
        ready: bool,
        /// While the list is being loaded, those so far.
        loaded_keys: u64,
    }
    let ready = app.is_ready();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    json(status, &Ready { ready, loaded_keys: app.loaded_keys() })
}
