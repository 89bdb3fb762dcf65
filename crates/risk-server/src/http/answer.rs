//! Answers: JSON, and every error as `{"error": "..."}`. Bodies and blocking work, each within its time.

use crate::list::{ChangeError, StoreError};
use axum::Json;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Serialize;
use std::borrow::Cow;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

/// An answer in JSON.
pub(crate) fn json(status: StatusCode, answer: &impl Serialize) -> Response {
    (status, Json(answer)).into_response()
}

/// Why a request fails, in one sentence for its sender.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    pub(crate) error: Cow<'static, str>,
    /// The header that goes with the status.
    header: Option<(HeaderName, HeaderValue)>,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, error: impl Into<Cow<'static, str>>) -> Self {
        Failure { status, error: error.into(), header: None }
    }

    pub(crate) fn bad_request(error: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    /// Worth trying again.
    pub(crate) fn unavailable(error: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error).retry_after("1")
    }

    fn retry_after(self, seconds: &'static str) -> Self {
        Failure { header: Some((RETRY_AFTER, HeaderValue::from_static(seconds))), ..self }
    }

    /// A fault of this program.
    pub(crate) fn internal(error: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, error)
    }

    pub(crate) fn unauthorized(error: &'static str, challenge: &'static str) -> Self {
        let header = Some((WWW_AUTHENTICATE, HeaderValue::from_static(challenge)));
        Failure { header, ..Self::new(StatusCode::UNAUTHORIZED, error) }
    }

    /// The answer, with a body that has more than the error.
    pub(crate) fn with(&self, body: &impl Serialize) -> Response {
        if self.status == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!(error = %self.error, "a request failed");
        }
        let mut response = json(self.status, body);
        response.headers_mut().extend(self.header.clone());
        response
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        self.with(&serde_json::json!({ "error": self.error }))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::unavailable(error.to_string())
    }
}

impl From<ChangeError> for Failure {
    fn from(error: ChangeError) -> Self {
        if let ChangeError::InProgress = error {
            let error = format!("{error}: wait for its end, or cancel it with DELETE /v1/replacement");
            return Self::new(StatusCode::CONFLICT, error).retry_after("10");
        }
        Self::unavailable(error.to_string())
    }
}

/// Reads a body of at most `limit` bytes.
pub(crate) async fn read(body: Body, limit: usize, time: Duration) -> Result<Bytes, Failure> {
    let too_long = || Failure::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body has more than {limit} bytes"));
    if body.size_hint().lower() > limit as u64 {
        return Err(too_long());
    }
    let read = timeout(time, Limited::new(body, limit).collect()).await.map_err(|_| {
        let error = format!("the body took longer than {} s to arrive", time.as_secs_f64());
        Failure::new(StatusCode::REQUEST_TIMEOUT, error)
    })?;
    match read {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_long()),
        Err(error) => Err(Failure::bad_request(format!("the body broke off: {error}"))),
    }
}

/// Does work that may block, on a thread where it keeps no other request waiting.
pub(crate) async fn blocking<T: Send + 'static>(
    time: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    // Work that is no longer waited for is not started, so that none piles up behind a disk that stalls.
    let work = AbortOnDropHandle::new(spawn_blocking(work));
    in_time("the lookup", time, work)
        .await?
        .map_err(|error| Failure::internal(format!("a lookup did not complete: {error}")))
}

/// Waits for what this server does itself.
pub(crate) async fn in_time<T>(what: &str, time: Duration, work: impl Future<Output = T>) -> Result<T, Failure> {
    timeout(time, work)
        .await
        .map_err(|_| Failure::unavailable(format!("{what} took longer than {} s", time.as_secs_f64())))
}
