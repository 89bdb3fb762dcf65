//! What a connection talks to: the rules for every request, and the routes behind them.

use super::answer::Failure;
use super::app::App;
use super::counters::Place;
use super::host::Hosts;
use super::route::Route;
use super::routes;
use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use std::error::Error;
use std::panic::AssertUnwindSafe;
use std::time::Instant;
use tower::{Layer, Service as _};
use tower_http::csrf::{Csrf, CsrfLayer, ProtectionError};

/// Answers requests. One function around the routes, and not a layer for each rule: each layer of a router is a box and
/// a clone more for every request.
#[derive(Clone)]
pub struct Service {
    app: App,
    hosts: Hosts,
    is_admin: bool,
    routes: Csrf<Router, fn(ProtectionError) -> Response>,
}

impl Service {
    /// Answers from what the app has.
    #[must_use]
    pub fn new(app: App) -> Self {
        Self::with(routes::routes(app.clone()), app.access().hosts.clone(), app, false)
    }

    /// Answers whoever watches the app, and nothing else.
    #[must_use]
    pub fn admin(app: App, hosts: Hosts) -> Self {
        Self::with(routes::admin(app.clone()), hosts, app, true)
    }

    fn with(routes: Router, hosts: Hosts, app: App, is_admin: bool) -> Self {
        let refuse: fn(ProtectionError) -> Response = |_| {
            let error = "a page of another origin asks for this; only GET is answered to those";
            Failure::new(StatusCode::FORBIDDEN, error).into_response()
        };
        // Browsers send requests of any page to any server, this one on 127.0.0.1 included.
        let same_origin = CsrfLayer::new().with_rejection_response(refuse);
        Service { routes: same_origin.layer(routes), hosts, is_admin, app }
    }

    /// Tells how many connections are open, of at most so many.
    pub(crate) fn note_connections(&self, open: usize, most: usize) {
        if !self.is_admin {
            self.app.counters().note_connections(open, most);
        }
    }

    /// Answers a request. Whatever is wrong with it is told in the answer.
    pub async fn answer<B>(&self, request: Request<B>) -> Response
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let start = Instant::now();
        let route = Route::of(request.method(), request.uri().path());
        let asked = tracing::enabled!(tracing::Level::DEBUG)
            .then(|| (request.method().clone(), request.uri().path().to_owned()));

        let response = match self.admit(&request, route) {
            Ok(_place) => self.route(request.map(Body::new)).await,
            Err(refused) => refused.into_response(),
        };

        let took = start.elapsed();
        self.app.counters().answered(route, response.status(), took);
        if let Some((method, path)) = asked {
            tracing::debug!(%method, path, status = response.status().as_u16(), ?took, "answered");
        }
        response
    }

    /// Lets a request in, with a place among those in progress if it needs one.
    fn admit<B>(&self, request: &Request<B>, route: Route) -> Result<Option<Place<'_>>, Failure> {
        self.hosts.check(request.version(), request.uri(), request.headers())?;
        if route.needs_no_place() {
            return Ok(None);
        }
        let limit = self.app.limits().requests;
        let place = self.app.counters().place(limit);
        place.map(Some).ok_or_else(|| Failure::unavailable(format!("{limit} requests are in progress already")))
    }

    async fn route(&self, request: Request<Body>) -> Response {
        let mut routes = self.routes.clone();
        // The last net: a panic ends one request, not its connection with all that wait behind it.
        let answered = AssertUnwindSafe(async move { routes.call(request).await }).catch_unwind().await;
        match answered {
            Ok(Ok(response)) => response,
            Err(_) => Failure::internal("this request made the server panic; its log says where").into_response(),
        }
    }
}
