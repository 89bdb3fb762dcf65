//! Answers: JSON, and every error as `{"error": "..."}`. Bodies and blocking work, each within its time.

use crate::list::{ChangeError, ReplaceError, StoreError};
use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Serialize;
use std::borrow::Cow;
use std::time::Duration;
use tokio::task::{AbortHandle, spawn_blocking};
use tokio::time::timeout;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// An answer in JSON.
pub(crate) fn json(status: StatusCode, answer: &impl Serialize) -> Response {
    match serde_json::to_vec(answer) {
        Ok(bytes) => with_type(status, JSON, bytes.into()),
        Err(error) => Failure::internal(format!("the answer cannot be written as JSON: {error}")).into_response(),
    }
}

/// An answer of any type.
pub(crate) fn with_type(status: StatusCode, content_type: HeaderValue, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
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
        #[derive(Serialize)]
        struct Body<'e> {
            error: &'e str,
        }
        self.with(&Body { error: &self.error })
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::unavailable(error.to_string())
    }
}

impl From<ChangeError> for Failure {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Key { .. } => Self::bad_request(error.to_string()),
            _ => Self::unavailable(error.to_string()),
        }
    }
}

impl From<ReplaceError> for Failure {
    fn from(error: ReplaceError) -> Self {
        match error {
            ReplaceError::InProgress => Self::new(
                StatusCode::CONFLICT,
                format!("{error}: wait for its end, or cancel it with DELETE /v1/replacement"),
            )
            .retry_after("10"),
            ReplaceError::Key { .. } => Self::bad_request(error.to_string()),
            _ => Self::unavailable(error.to_string()),
        }
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
    let work = spawn_blocking(work);
    let _abort = AbortOnDrop(work.abort_handle());
    in_time("the lookup", time, work)
        .await?
        .map_err(|error| Failure::internal(format!("a lookup did not complete: {error}")))
}

/// Work that is no longer waited for is not started, so that none piles up behind a disk that stalls.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Waits for what this server does itself.
pub(crate) async fn in_time<T>(what: &str, time: Duration, work: impl Future<Output = T>) -> Result<T, Failure> {
    timeout(time, work)
        .await
        .map_err(|_| Failure::unavailable(format!("{what} took longer than {} s", time.as_secs_f64())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_is_no_longer_waited_for_is_not_started() {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().max_blocking_threads(1).build().unwrap();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let (say, said) = std::sync::mpsc::channel();
        runtime.block_on(async {
            // Takes the only thread.
            let taken = spawn_blocking(move || wait.recv());
            let late = blocking(Duration::from_millis(10), move || say.send(())).await.unwrap_err();
            assert_eq!(
                (late.status, &*late.error),
                (StatusCode::SERVICE_UNAVAILABLE, "the lookup took longer than 0.01 s")
            );
            go.send(()).unwrap();
            taken.await.unwrap().unwrap();
            spawn_blocking(|| ()).await.unwrap();
        });
        assert!(said.recv().is_err(), "it was started");
    }
}
