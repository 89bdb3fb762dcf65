//! Which handler answers what.

use super::answer::Failure;
use super::app::App;
use super::{check, health, keys, metrics, page, stats, upload};
use axum::Router;
use axum::http::StatusCode;
use axum::routing::{delete, get, post, put};

/// All routes. What is behind a key's prefix is read by the handler, so that a '/' in a key needs no escape.
pub(crate) fn routes(app: App) -> Router {
    let routes = watched()
        .route("/", get(page::get))
        .route("/v1/stats", get(stats::get))
        .route("/v1/check", post(check::many))
        .route("/v1/check/", get(check::one))
        .route("/v1/check/{*key}", get(check::one))
        .route("/v1/keys", upload::route())
        .route("/v1/replacement", delete(upload::cancel))
        .route("/v1/keys/", put(keys::put).delete(keys::delete))
        .route("/v1/keys/{*key}", put(keys::put).delete(keys::delete));
    with_refusals(routes).with_state(app)
}

/// The routes for whoever watches the server, and no others.
pub(crate) fn admin(app: App) -> Router {
    with_refusals(watched()).with_state(app)
}

fn watched() -> Router<App> {
    Router::new()
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(metrics::get))
}

/// Of routes that are complete: those that are added later have no refusal of a method.
fn with_refusals(routes: Router<App>) -> Router<App> {
    routes
        .fallback(async || Failure::new(StatusCode::NOT_FOUND, "there is nothing at this path"))
        .method_not_allowed_fallback(async || {
            Failure::new(StatusCode::METHOD_NOT_ALLOWED, "this path has no such method; see the Allow header")
        })
}
