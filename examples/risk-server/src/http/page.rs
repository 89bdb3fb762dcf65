//! The page at `/`.

use super::answer::with_type;
use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;

const PAGE: &str = include_str!("page.html");

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

/// The page is one file, so its script and its style are inline. It loads nothing, asks nobody but this server, and
/// nobody may put it into a frame.
const RULES: [(HeaderName, HeaderValue); 4] = [
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; \
             connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
    ),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    // So that a newer server is not shown by an older page.
    (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
];

/// Shows the page.
pub(crate) async fn get() -> Response {
    let mut response = with_type(StatusCode::OK, HTML, Body::from(Bytes::from_static(PAGE.as_bytes())));
    response.headers_mut().extend(RULES);
    response
}
