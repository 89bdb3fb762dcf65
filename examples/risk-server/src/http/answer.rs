//! Answers: JSON, and every error as `{"error": "..."}`.

use crate::list::{ChangeError, ReplaceError, StoreError};
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::borrow::Cow;

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

/// Why a request is not answered as it was meant to be, in one sentence for whoever sent it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    pub(crate) error: Cow<'static, str>,
    /// What the status asks for.
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

    /// Nobody but this program is to blame.
    pub(crate) fn internal(error: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, error)
    }

    pub(crate) fn unauthorized(error: &'static str, challenge: &'static str) -> Self {
        let header = Some((WWW_AUTHENTICATE, HeaderValue::from_static(challenge)));
        Failure { header, ..Self::new(StatusCode::UNAUTHORIZED, error) }
    }

    /// The answer, with more in its body than the error.
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
            ReplaceError::UnderWay => Self::new(
                StatusCode::CONFLICT,
                format!("{error}: wait for its end, or cancel it with DELETE /v1/replacement"),
            )
            .retry_after("10"),
            ReplaceError::Key { .. } => Self::bad_request(error.to_string()),
            _ => Self::unavailable(error.to_string()),
        }
    }
}
