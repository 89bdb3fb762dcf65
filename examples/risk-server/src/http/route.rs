//! The kinds of requests, as metrics tell them apart.

use axum::http::Method;

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Check,
    CheckBatch,
    Put,
    Delete,
    Upload,
    Cancel,
    Stats,
    Metrics,
    Health,
    Ready,
    Page,
    /// No route, or not with this method.
    Other,
}

impl Route {
    pub(crate) const ALL: [Route; 12] = [
        Route::Check,
        Route::CheckBatch,
        Route::Put,
        Route::Delete,
        Route::Upload,
        Route::Cancel,
        Route::Stats,
        Route::Metrics,
        Route::Health,
        Route::Ready,
        Route::Page,
        Route::Other,
    ];

    pub(crate) fn of(method: &Method, path: &str) -> Self {
        let reads = *method == Method::GET || *method == Method::HEAD;
        match path {
            _ if path.starts_with("/v1/check/") && reads => Route::Check,
            "/v1/check" if *method == Method::POST => Route::CheckBatch,
            _ if path.starts_with("/v1/keys/") && *method == Method::PUT => Route::Put,
            _ if path.starts_with("/v1/keys/") && *method == Method::DELETE => Route::Delete,
            "/v1/keys" if *method == Method::POST => Route::Upload,
            "/v1/replacement" if *method == Method::DELETE => Route::Cancel,
            "/v1/stats" if reads => Route::Stats,
            "/metrics" if reads => Route::Metrics,
            "/healthz" if reads => Route::Health,
            "/readyz" if reads => Route::Ready,
            "/" if reads => Route::Page,
            _ => Route::Other,
        }
    }

    /// Its name in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Route::Check => "check",
            Route::CheckBatch => "check_batch",
            Route::Put => "put",
            Route::Delete => "delete",
            Route::Upload => "upload",
            Route::Cancel => "cancel",
            Route::Stats => "stats",
            Route::Metrics => "metrics",
            Route::Health => "healthz",
            Route::Ready => "readyz",
            Route::Page => "page",
            Route::Other => "other",
        }
    }

    /// Whether it is answered beyond the limit of requests too: whoever watches this server must not take a busy one
    /// for a dead one.
    pub(crate) fn needs_no_place(self) -> bool {
        matches!(self, Route::Metrics | Route::Health | Route::Ready)
    }
}
