//! The list over HTTP: the rules for every request, routes, metrics, and a page.
//!
//! A lookup that the front answers with "no" is answered on the executor's thread. Everything that may block has
//! threads of its own, since an executor's thread that waits for a disk delays all requests of its connections: reads of
//! the store and long parsing go to `spawn_blocking`, and changes to the list's writer.

mod access;
mod answer;
mod counters;
mod keys;
mod state;
mod upload;

use crate::config::{Config, Hosts, Token};
use crate::list::List;
use answer::Failure;
use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Method, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use counters::Counters;
use parking_lot::Mutex;
use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use tokio_util::task::TaskTracker;
use tower::ServiceExt;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::csrf::{CsrfLayer, ProtectionError};

const READS: &[Method] = &[Method::GET, Method::HEAD];

/// The name of each route in metrics, its methods, and its path; one that ends in '/' is a prefix, but for the page's.
const ROUTES: [(&str, &[Method], &str); 11] = [
    ("check", READS, "/v1/check/"),
    ("check_batch", &[Method::POST], "/v1/check"),
    ("put", &[Method::PUT], "/v1/keys/"),
    ("delete", &[Method::DELETE], "/v1/keys/"),
    ("upload", &[Method::POST], "/v1/keys"),
    ("cancel", &[Method::DELETE], "/v1/replacement"),
    ("stats", READS, "/v1/stats"),
    ("page", READS, "/"),
    ("metrics", READS, "/metrics"),
    ("healthz", READS, "/healthz"),
    ("readyz", READS, "/readyz"),
];

/// From this route on, requests are answered beyond the limit too: a busy server must not be mistaken for a dead one.
const UNLIMITED: usize = 8;

/// No route, or not with this method.
const OTHER: usize = ROUTES.len();

fn route(method: &Method, path: &str) -> usize {
    let is_route = |&(_, methods, route): &(&str, &[Method], &str)| {
        methods.contains(method)
            && (path == route || route.len() > 1 && route.ends_with('/') && path.starts_with(route))
    };
    ROUTES.iter().position(is_route).unwrap_or(OTHER)
}

/// What a lookup asks first, in memory. "No" must be certain; "maybe" is confirmed by the store. Usually it is the list's
/// filter.
pub trait Front: Send + Sync {
    /// Whether the key may be on the list. Must not block.
    fn may_be_listed(&self, key: &str) -> bool;

    /// Answers for each of the keys; there are as many answers.
    fn may_be_listed_batch(&self, keys: &[&str], answers: &mut [bool]) {
        keys.iter().zip(answers).for_each(|(key, answer)| *answer = self.may_be_listed(key));
    }

    /// This key is about to be put on the list.
    fn before_put(&self, _key: &str) {}

    /// This key was deleted from the list.
    fn after_delete(&self, _key: &str) {}
}

impl Front for List {
    fn may_be_listed(&self, key: &str) -> bool {
        List::may_be_listed(self, key)
    }

    fn may_be_listed_batch(&self, keys: &[&str], answers: &mut [bool]) {
        List::may_be_listed_batch(self, keys, answers);
    }
}

/// What all requests share.
pub(crate) struct App {
    pub(crate) config: Config,
    /// What a writing request must show.
    token: Option<Token>,
    serving: OnceLock<Serving>,
    loaded_keys: AtomicUsize,
    stopping: AtomicBool,
    started: Instant,
    counters: Counters,
    /// For requests in progress.
    places: Semaphore,
    /// The open connections.
    pub(crate) connections: TaskTracker,
    /// Cancels the replacement whose keys come in; the sender is used once that is done.
    cancel: Mutex<Option<oneshot::Sender<oneshot::Sender<()>>>>,
}

/// The list, once it is open.
struct Serving {
    list: List,
    front: Arc<dyn Front>,
}

impl App {
    /// Its list is still being loaded.
    pub(crate) fn new(config: Config, token: Option<Token>) -> Self {
        App {
            token,
            serving: OnceLock::new(),
            loaded_keys: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            started: Instant::now(),
            counters: Counters::default(),
            places: Semaphore::new(config.max_requests),
            connections: TaskTracker::new(),
            cancel: Mutex::new(None),
            config,
        }
    }

    /// Reports the number of keys loaded so far.
    pub(crate) fn loading(&self, keys: usize) {
        self.loaded_keys.store(keys, Ordering::Relaxed);
    }

    /// Answers from this list from now on.
    pub(crate) fn serve(&self, list: List, front: Arc<dyn Front>) {
        let _ = self.serving.set(Serving { list, front });
    }

    pub(crate) fn begin_shutdown(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// The list, if it is loaded.
    pub(crate) fn list(&self) -> Option<&List> {
        self.serving.get().map(|serving| &serving.list)
    }

    fn serving(&self) -> Result<&Serving, Failure> {
        self.serving.get().ok_or_else(|| Failure::unavailable("the list is being loaded"))
    }

    fn is_ready(&self) -> bool {
        self.list().is_some_and(List::is_open) && !self.stopping.load(Ordering::Relaxed)
    }
}

/// Answers requests: the rules for all of them, and then the routes.
#[derive(Clone)]
pub(crate) struct Service {
    app: Arc<App>,
    hosts: Hosts,
    routes: Router,
}

impl Service {
    /// All routes. What follows a key's prefix is read by the handler, so that a '/' in a key needs no escape.
    pub(crate) fn new(app: Arc<App>, hosts: Hosts) -> Self {
        let routes = Self::monitoring_routes()
            .route("/", get(state::page))
            .route("/v1/stats", get(state::stats))
            .route("/v1/check", post(keys::check_batch))
            .route("/v1/check/", get(keys::check))
            .route("/v1/check/{*key}", get(keys::check))
            .route("/v1/keys", upload::route())
            .route("/v1/replacement", delete(upload::cancel))
            .route("/v1/keys/", put(keys::put).delete(keys::delete))
            .route("/v1/keys/{*key}", put(keys::put).delete(keys::delete));
        Self::with(routes, app, hosts)
    }

    /// Health and metrics only.
    pub(crate) fn admin(app: Arc<App>, hosts: Hosts) -> Self {
        Self::with(Self::monitoring_routes(), app, hosts)
    }

    fn monitoring_routes() -> Router<Arc<App>> {
        Router::new()
            .route("/healthz", get(state::healthz))
            .route("/readyz", get(state::readyz))
            .route("/metrics", get(state::metrics))
    }

    /// The routes must be complete: those that are added later do not refuse a method.
    fn with(routes: Router<Arc<App>>, app: Arc<App>, hosts: Hosts) -> Self {
        let refuse = |_: ProtectionError| {
            let error = "a page of another origin asks for this; only GET is answered to those";
            Failure::new(StatusCode::FORBIDDEN, error).into_response()
        };
        // A panic ends one request, not its connection with all that wait behind it.
        let panicked = |_| Failure::internal("this request made the server panic; its log says where").into_response();
        let routes = routes
            .fallback(async || Failure::new(StatusCode::NOT_FOUND, "there is nothing at this path"))
            .method_not_allowed_fallback(async || {
                Failure::new(StatusCode::METHOD_NOT_ALLOWED, "this path has no such method; see the Allow header")
            })
            .with_state(Arc::clone(&app))
            .layer(CatchPanicLayer::custom(panicked))
            // Browsers send requests of any page to any server, this one on 127.0.0.1 included.
            .layer(CsrfLayer::new().with_rejection_response(refuse));
        Service { routes, hosts, app }
    }

    /// Answers a request. Whatever is wrong with it is said in the answer.
    pub(crate) async fn answer<B>(&self, request: Request<B>) -> Response
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let start = Instant::now();
        let route = route(request.method(), request.uri().path());
        let logged = tracing::enabled!(tracing::Level::DEBUG)
            .then(|| (request.method().clone(), request.uri().path().to_owned()));

        let response = match self.admit(&request, route) {
            Ok(_place) => {
                let Ok(response) = self.routes.clone().oneshot(request.map(Body::new)).await;
                response
            }
            Err(refused) => refused.into_response(),
        };

        let took = start.elapsed();
        let name = ROUTES.get(route).map_or("other", |&(name, ..)| name);
        self.app.counters.answered(name, response.status(), took);
        if let Some((method, path)) = logged {
            tracing::debug!(%method, path, status = response.status().as_u16(), ?took, "answered");
        }
        response
    }

    /// Lets a request in, with a place among those in progress if it needs one.
    fn admit<B>(&self, request: &Request<B>, route: usize) -> Result<Option<SemaphorePermit<'_>>, Failure> {
        self.hosts.check(request.version(), request.uri(), request.headers())?;
        if (UNLIMITED..OTHER).contains(&route) {
            return Ok(None);
        }
        let limit = self.app.config.max_requests;
        let place = self.app.places.try_acquire();
        place.map(Some).map_err(|_| Failure::unavailable(format!("{limit} requests are in progress already")))
    }
}
