//! The list over HTTP: rules for every request, routes, metrics, and a page.
//!
//! If the filter answers "no", the lookup completes on a thread of the executor. Reads of the store run on blocking threads, and
//! changes on the writer of the list, because a thread of the executor that waits for a disk delays all of its connections.

use crate::Config;
use crate::list::{Front, GROUP_BYTES, List, MAX_KEY_BYTES, NewList, Refusal, check_key};
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequestParts, MatchedPath, Path, RawQuery, Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, EXPECT, HOST,
    REFERRER_POLICY, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Extension, Json, Router};
use flate2::write::MultiGzDecoder;
use http_body_util::BodyExt;
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer as _, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt;
use std::io::Write;
use std::mem::take;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::task::{block_in_place, spawn_blocking, yield_now};
use tokio::time::{timeout, timeout_at};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::csrf::{CsrfLayer, ProtectionError};

/// The number of concurrent reads of the store. It is small, because waking a thread costs more than a read.
const READS: usize = 4;

/// The maximum number of keys per batch, and the memory per key, beside its text, during the read of the store.
const MAX_BATCH: usize = 10_000;
const HIT_BYTES: usize = 64;

/// The number of bytes from which parsing a body of keys takes too long for a thread of the executor.
const LONG_BODY: usize = 1 << 16;

/// The memory that an upload is charged for: keys that are sent to the list, and a piece of the body, encoded and decoded.
const UPLOAD_BYTES: usize = 2 << 20;

/// The number of bytes of an upload that are processed at once. In gzip they may decode to a thousand times as many.
const PIECE: usize = 1 << 16;
const ENCODED_PIECE: usize = 1 << 9;

/// The maximum ratio of decoded to encoded bytes in gzip, after the first bytes. Texts of keys have a ratio of 3 to 10, and with a much
/// larger one an upload would cost the server more than its sender.
const MAX_RATIO: usize = 100;
const FREELY_DECODED: usize = 1 << 20;

/// The number of bytes of an upload that must arrive per idle time, since an upload occupies memory.
const MIN_PROGRESS: usize = 1024;

/// The byte order mark, with which some editors begin a file.
const MARK: &str = "\u{feff}";

/// The paths of all routes, for metrics.
const ROUTES: [&str; 7] =
    ["/v1/check/{*key}", "/v1/check", "/v1/keys/{*key}", "/v1/keys", "/v1/stats", "/metrics", "/healthz"];

/// The upper bounds of the buckets of times in seconds, except the last one.
const BOUNDS: [f64; 10] = [0.000_02, 0.000_05, 0.000_1, 0.000_2, 0.000_5, 0.001, 0.01, 0.1, 1.0, 10.0];

type Labels<const N: usize> = [(&'static str, &'static str); N];

/// The state that all requests share.
pub(crate) struct App {
    pub(crate) config: Arc<Config>,
    pub(crate) list: Arc<List>,
    /// The token that writing requests must carry.
    token: Option<String>,
    started: Instant,
    /// The number of connections that may still be opened, and of bytes that bodies may still take.
    pub(crate) connections: Arc<Semaphore>,
    bodies: Arc<Semaphore>,
    reads: Arc<Semaphore>,
    /// The numbers of keys that were looked up, that the filter may contain, and that the store confirmed.
    lookups: Counter,
    filter_hits: Counter,
    confirmed_hits: Counter,
    requests: Family<Labels<2>, Counter>,
    durations: Family<Labels<1>, Histogram, fn() -> Histogram>,
}

impl App {
    pub(crate) fn new(config: Arc<Config>, token: Option<String>, list: Arc<List>) -> Self {
        App {
            connections: Arc::new(Semaphore::new(config.max_connections)),
            bodies: Arc::new(Semaphore::new(config.max_bodies_mib << 20)),
            reads: Arc::new(Semaphore::new(READS)),
            list,
            token,
            config,
            started: Instant::now(),
            lookups: Counter::default(),
            filter_hits: Counter::default(),
            confirmed_hits: Counter::default(),
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BOUNDS)),
        }
    }

    /// Reserves memory for a body.
    fn hold(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Failure> {
        let hold = |bytes| Arc::clone(&self.bodies).try_acquire_many_owned(bytes).ok();
        let held = u32::try_from(bytes).ok().and_then(hold);
        held.ok_or_else(|| Failure::unavailable("the bodies of all requests would take more than --max-bodies-mib"))
    }

    /// Returns for each key whether the store has it.
    async fn confirm(&self, front: Arc<Front>, keys: Vec<Box<str>>) -> Result<Vec<bool>, Failure> {
        let (reads, list) = (Arc::clone(&self.reads), Arc::clone(&self.list));
        let confirm = async {
            // A read is not started once its request is gone, so that reads do not accumulate when a disk stalls.
            let place = reads.acquire_owned().await;
            spawn_blocking(move || {
                let _place = place;
                list.confirm(&front, &keys)
            })
            .await
        };
        let confirmed = self.in_time("the lookup", confirm).await?;
        confirmed.map_err(|_| Failure::internal())?.map_err(Failure::unavailable)
    }

    /// Counts completed lookups. `hits` has the answers of the store for keys that the filter may contain.
    fn count(&self, lookups: usize, hits: &[bool]) {
        self.confirmed_hits.inc_by(hits.iter().map(|&listed| u64::from(listed)).sum());
        self.filter_hits.inc_by(hits.len() as u64);
        self.lookups.inc_by(lookups as u64);
    }

    async fn change(&self, put: bool, keys: String) -> Result<u64, Failure> {
        let change = self.list.change(put, keys);
        Ok(self.in_time("the change may still be made, but it", change).await??)
    }

    /// Waits for work of this server, up to the time limit.
    async fn in_time<T>(&self, what: &str, work: impl Future<Output = T>) -> Result<T, Failure> {
        let time = self.config.request_seconds;
        let late = |_| Failure::unavailable(format!("{what} took longer than {} s", time.as_secs_f64()));
        timeout(time, work).await.map_err(late)
    }

    /// Without a token, refuses a request whose host name is another one. Otherwise a web page whose own name resolves to 127.0.0.1 could
    /// change the list, in a browser on the machine of the server. Browsers always send a host name.
    fn check_host(&self, headers: &HeaderMap) -> Result<(), Failure> {
        let (None, Some(host)) = (&self.token, headers.get(HOST)) else { return Ok(()) };
        let host = Authority::try_from(host.as_bytes()).ok();
        let is_here = |name: &str| {
            name.eq_ignore_ascii_case("localhost") || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
        };
        if host.is_some_and(|host| is_here(host.host())) {
            return Ok(());
        }
        let error =
            "the Host header is neither an address nor localhost; for other names, start the server with a token";
        Err(Failure::new(StatusCode::MISDIRECTED_REQUEST, error))
    }
}

/// All routes, and the rules for every request.
pub(crate) fn router(app: &Arc<App>) -> Router {
    let refuse = |_: ProtectionError| {
        let error = "a page of another origin asks for this; only GET is answered to those";
        Failure::new(StatusCode::FORBIDDEN, error).into_response()
    };
    Router::new()
        .route("/", get(page))
        .route("/v1/check/{*key}", get(check))
        .route("/v1/check", post(check_batch))
        .route("/v1/keys/{*key}", put(change_key).delete(change_key))
        .route("/v1/keys", post(upload))
        .route("/v1/stats", get(stats))
        .route("/metrics", get(metrics))
        .route("/healthz", get(async || "ok"))
        .fallback(async || Failure::new(StatusCode::NOT_FOUND, "there is nothing at this path"))
        .method_not_allowed_fallback(async || {
            Failure::new(StatusCode::METHOD_NOT_ALLOWED, "this path has no such method; see the Allow header")
        })
        .with_state(Arc::clone(app))
        // A panic ends one request, not its connection with all waiting requests.
        .layer(CatchPanicLayer::custom(|_| Failure::internal().into_response()))
        // Browsers send requests of any page to any server, including this one on 127.0.0.1.
        .layer(CsrfLayer::new().with_rejection_response(refuse))
        .layer(from_fn_with_state(Arc::clone(app), answer))
}

/// Serves a request, and counts it.
async fn answer(State(app): State<Arc<App>>, path: Option<MatchedPath>, request: Request, next: Next) -> Response {
    let start = Instant::now();
    let route = path.and_then(|path| ROUTES.into_iter().find(|route| *route == path.as_str())).unwrap_or("other");
    let response = match app.check_host(request.headers()) {
        Ok(()) => answer_all(&app, request, next).await,
        Err(refused) => refused.into_response(),
    };
    let class = ["1xx", "2xx", "3xx", "4xx", "5xx"][usize::from(response.status().as_u16() / 100 - 1).min(4)];
    app.requests.get_or_create(&[("route", route), ("status", class)]).inc();
    app.durations.get_or_create(&[("route", route)]).observe(start.elapsed().as_secs_f64());
    response
}

/// Reads the rest of a refused body: many clients read no response before they have sent everything, and lose it if the connection is
/// closed first. A client that expects a 100 sends nothing.
async fn answer_all(app: &App, request: Request, next: Next) -> Response {
    let waits = request.headers().contains_key(EXPECT);
    let (mut parts, body) = request.into_parts();
    let body = Arc::new(Mutex::new(body));
    parts.extensions.insert(Arc::clone(&body));
    let response = next.run(Request::from_parts(parts, Body::empty())).await;
    if !response.status().is_success() && response.status() != StatusCode::REQUEST_TIMEOUT && !waits {
        let rest = async { while let Some(Ok(_)) = body.lock().await.frame().await {} };
        let _ = timeout(app.config.request_seconds, rest).await;
    }
    response
}

/// The body of a request as an extension, so that a handler need not read it to its end.
type Lent = Extension<Arc<Mutex<Body>>>;

/// The reason of a failure, one sentence for the client: the body is `{"error": "..."}`.
#[derive(Debug)]
struct Failure {
    status: StatusCode,
    error: Cow<'static, str>,
    /// More fields of the body.
    more: Value,
}

impl Failure {
    fn new(status: StatusCode, error: impl Into<Cow<'static, str>>) -> Self {
        Failure { status, error: error.into(), more: json!({}) }
    }

    fn bad_request(error: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    /// A failure after which the client may try again.
    fn unavailable(error: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error)
    }

    fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "this request made the server panic; its log says where")
    }
}

impl From<Refusal> for Failure {
    fn from(Refusal { error, is_full }: Refusal) -> Self {
        if is_full { Self::new(StatusCode::INSUFFICIENT_STORAGE, error) } else { Self::unavailable(error) }
    }
}

impl IntoResponse for Failure {
    fn into_response(mut self) -> Response {
        self.more["error"] = self.error.into();
        let mut response = (self.status, Json(self.more)).into_response();
        let header = match self.status {
            StatusCode::SERVICE_UNAVAILABLE => (RETRY_AFTER, HeaderValue::from_static("1")),
            StatusCode::UNAUTHORIZED => (WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")),
            _ => return response,
        };
        response.headers_mut().extend([header]);
        response
    }
}

/// An argument of each writing handler. It exists only for requests that may write.
struct MayWrite(());

impl FromRequestParts<Arc<App>> for MayWrite {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Failure> {
        let Some(token) = &app.token else { return Ok(MayWrite(())) };
        let refuse = |error| Err(Failure::new(StatusCode::UNAUTHORIZED, error));
        let shown =
            parts.headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().split_at_checked("bearer ".len()));
        match shown {
            Some((scheme, shown)) if scheme.eq_ignore_ascii_case(b"bearer ") => {
                if bool::from(token.as_bytes().ct_eq(shown)) { Ok(MayWrite(())) } else { refuse("the token is wrong") }
            }
            _ => refuse("a token is needed: send 'Authorization: Bearer TOKEN'"),
        }
    }
}

/// The key in a path.
struct Key(String);

impl FromRequestParts<Arc<App>> for Key {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Failure> {
        if parts.uri.query().is_some() {
            return Err(Failure::bad_request("the path ends in a query; write %3F for a '?' in a key"));
        }
        let Path(key) = Path::<String>::from_request_parts(parts, app)
            .await
            .map_err(|error| Failure::bad_request(format!("the key is not UTF-8: {error}")))?;
        check_key(&key).map_err(Failure::bad_request)?;
        Ok(Key(key))
    }
}

/// `GET /v1/check/{key}`
async fn check(State(app): State<Arc<App>>, Key(key): Key) -> Result<Json<Value>, Failure> {
    let hits = match app.list.query(&key) {
        None => Vec::new(),
        Some(front) => app.confirm(front, vec![key.as_str().into()]).await?,
    };
    app.count(1, &hits);
    let listed = hits == [true];
    Ok(Json(json!({ "key": key, "listed": listed })))
}

/// `POST /v1/check`
async fn check_batch(State(app): State<Arc<App>>, Extension(body): Lent) -> Result<impl IntoResponse, Failure> {
    #[derive(Serialize)]
    struct Checked {
        listed: Vec<bool>,
    }
    let (body, mut held) = read(&app, &mut *body.lock().await).await?;
    let mut listed = Vec::new();
    let mut query = || query_batch(&app, &body, &mut listed);
    let (front, hits) = if body.len() > LONG_BODY { block_in_place(query) } else { query() }?;
    // Its charge is now that of the copies in `hits`.
    drop(body);
    let mut confirmed = Vec::new();
    if !hits.is_empty() {
        held.merge(app.hold(hits.len() * HIT_BYTES)?);
        confirmed = app.confirm(front, hits).await?;
    }
    app.count(listed.len(), &confirmed);
    listed.iter_mut().filter(|maybe| **maybe).zip(confirmed).for_each(|(maybe, listed)| *maybe = listed);
    Ok(Json(Checked { listed }))
}

/// Reads a JSON body, and reserves its memory.
async fn read(app: &App, body: &mut Body) -> Result<(Vec<u8>, OwnedSemaphorePermit), Failure> {
    let limit = app.config.max_body_bytes.min(app.config.max_bodies_mib << 20);
    let time = app.config.request_seconds;
    let too_long = || Failure::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body has more than {limit} bytes"));
    if body.size_hint().lower() > limit as u64 {
        return Err(too_long());
    }
    let (mut held, mut bytes) = (app.hold(0)?, Vec::new());
    let end = tokio::time::Instant::now() + time;
    loop {
        let frame = timeout_at(end, body.frame()).await.map_err(|_| {
            let error = format!("the body took longer than {} s to arrive", time.as_secs_f64());
            Failure::new(StatusCode::REQUEST_TIMEOUT, error)
        })?;
        let Some(frame) = frame else { return Ok((bytes, held)) };
        let frame = frame.map_err(|error| Failure::bad_request(format!("the body broke off: {error}")))?;
        let data = frame.into_data().unwrap_or_default();
        if bytes.len() + data.len() > limit {
            return Err(too_long());
        }
        held.merge(app.hold(data.len())?);
        bytes.extend_from_slice(&data);
    }
}

/// Queries the filter for the keys of a JSON array, and returns those that may be listed.
fn query_batch(app: &App, body: &[u8], answers: &mut Vec<bool>) -> Result<(Arc<Front>, Vec<Box<str>>), Failure> {
    /// Borrowed from the array if it contains no escapes.
    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

    /// Refuses a key more than a batch may have before it is kept: a short key takes more memory than its JSON text.
    struct Keys;

    impl<'de> Visitor<'de> for Keys {
        type Value = Vec<Text<'de>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array of keys")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
            let mut keys = Vec::new();
            while let Some(key) = array.next_element()? {
                if keys.len() == MAX_BATCH {
                    return Err(A::Error::custom(format_args!("more than {MAX_BATCH} keys in one batch")));
                }
                keys.push(key);
            }
            Ok(keys)
        }
    }

    let mut array = serde_json::Deserializer::from_slice(body);
    let keys = array.deserialize_seq(Keys).and_then(|keys| array.end().map(|()| keys));
    let keys =
        keys.map_err(|error| Failure::bad_request(format!("the body is not a JSON array for a batch: {error}")))?;
    let keys: Vec<&str> = keys.iter().map(|Text(key)| &**key).collect();
    for (index, key) in keys.iter().enumerate() {
        check_key(key).map_err(|error| Failure::bad_request(format!("index {index}: {error}")))?;
    }
    answers.resize(keys.len(), false);
    let front = app.list.query_batch(&keys, answers);
    let hits = keys.iter().zip(&*answers).filter(|&(_, &maybe)| maybe).map(|(&key, _)| key.into()).collect();
    Ok((front, hits))
}

/// `PUT /v1/keys/{key}` and `DELETE /v1/keys/{key}`
async fn change_key(
    _: MayWrite,
    State(app): State<Arc<App>>,
    method: Method,
    Key(key): Key,
) -> Result<impl IntoResponse, Failure> {
    let put = method == Method::PUT;
    let changed = app.change(put, key.clone()).await? > 0;
    let status = if put && changed { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(json!({ "key": key, if put { "added" } else { "removed" }: changed }))))
}

/// `POST /v1/keys`: adds the keys of the body to the list or, with `?replace=true`, replaces the list by them.
async fn upload(
    _: MayWrite,
    State(app): State<Arc<App>>,
    Extension(body): Lent,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Json<Value>, Failure> {
    let replaces = match query.as_deref() {
        None | Some("" | "replace=false") => false,
        Some("replace=true") => true,
        Some(_) => return Err(Failure::bad_request("the only query is replace=true or replace=false")),
    };
    let is_gzip = check_type(&headers)?;
    let held = app.hold(if replaces { UPLOAD_BYTES + NewList::CACHE_BYTES } else { UPLOAD_BYTES })?;
    let mut upload = Upload::new(is_gzip, app.config.idle_seconds);
    if replaces {
        // A task of its own: if the client disconnects, blocking work continues, and holds its memory until it ends.
        let replaced = tokio::spawn(replace(app, held, body, upload)).await;
        return replaced.map_err(|_| Failure::internal())?;
    }
    let body = &mut *body.lock().await;
    let (mut lines, mut added) = (0, 0);
    let outcome = loop {
        match upload.group(body).await {
            Ok(None) => break Ok(()),
            Ok(Some((keys, count))) => match app.change(true, keys).await {
                Ok(new) => (lines, added) = (lines + count, added + new),
                Err(failure) => break Err(failure),
            },
            Err(failure) => break Err(failure),
        }
    };
    // Also after an error, so that the client knows where to continue.
    let sum = json!({ "lines": lines, "added": added, "already": lines - added });
    outcome.map(|()| Json(sum.clone())).map_err(|failure| Failure { more: sum, ..failure })
}

async fn replace(
    app: Arc<App>,
    _held: OwnedSemaphorePermit,
    body: Arc<Mutex<Body>>,
    mut upload: Upload,
) -> Result<Json<Value>, Failure> {
    let body = &mut *body.lock().await;
    let mut new: Option<NewList> = None;
    while let Some((keys, _)) = upload.group(body).await? {
        let added: Result<_, Refusal> = block_in_place(|| {
            let mut new = new.take().map_or_else(|| NewList::begin(&app.config), Ok)?;
            new.add(&app.config, &keys).map(|()| new)
        });
        new = Some(added?);
    }
    // More likely a failed export than the intention to allow everything.
    let error = "the body has no key, and a list is not replaced by nothing; delete its keys";
    let new = new.ok_or_else(|| Failure::bad_request(error))?;
    Ok(Json(json!({ "keys": app.list.replace(new).await.map_err(Failure::unavailable)? })))
}

/// Returns whether the body is in gzip. Refuses forms, multipart bodies and JSON, which would be read as lines.
fn check_type(headers: &HeaderMap) -> Result<bool, Failure> {
    let unsupported = |error: &'static str| Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, error));
    let content_type = headers.get(CONTENT_TYPE).map_or(&b"text/plain"[..], HeaderValue::as_bytes).to_ascii_lowercase();
    if !(content_type.starts_with(b"text/") || content_type.starts_with(b"application/octet-stream")) {
        return unsupported(
            "the body is not a text of keys, one per line; send 'Content-Type: text/plain', such as: \
             curl -H 'Content-Type: text/plain' --data-binary @FILE",
        );
    }
    match headers.get(CONTENT_ENCODING).map(|encoding| encoding.as_bytes().to_ascii_lowercase()).as_deref() {
        None | Some(b"identity") => Ok(false),
        Some(b"gzip") => Ok(true),
        _ => unsupported("the body has an encoding that is not known here; send it as it is, or with gzip"),
    }
}

/// The keys of a body.
#[derive(Default)]
struct Upload {
    gzip: Option<MultiGzDecoder<Vec<u8>>>,
    /// Received bytes that have not been decoded, and decoded bytes that are not complete lines.
    frame: Bytes,
    text: Vec<u8>,
    /// Keys for the list, one per line, and their number.
    keys: String,
    count: u64,
    /// The number of lines read.
    line: u64,
    has_ended: bool,
    failure: Option<Failure>,
    /// The number of bytes that may still be decoded from gzip.
    decodable: usize,
    idle: Duration,
    /// The number of bytes received in the current idle time, and the rest of that time. Only time spent waiting for the client counts.
    progress: usize,
    patience: Duration,
}

impl Upload {
    fn new(is_gzip: bool, idle: Duration) -> Self {
        let gzip = is_gzip.then(|| MultiGzDecoder::new(Vec::new()));
        Upload { gzip, idle, patience: idle, decodable: FREELY_DECODED, ..Upload::default() }
    }

    /// Returns the next keys and their number, or `None` at the end. Keys before an error are returned first.
    async fn group(&mut self, body: &mut Body) -> Result<Option<(String, u64)>, Failure> {
        while self.keys.len() < GROUP_BYTES && !self.has_ended && self.failure.is_none() {
            if let Err(failure) = self.step(body).await {
                self.failure = Some(failure);
            }
        }
        match self.failure.take_if(|_| self.keys.is_empty()) {
            Some(failure) => Err(failure),
            None if self.keys.is_empty() => Ok(None),
            None => Ok(Some((take(&mut self.keys), take(&mut self.count)))),
        }
    }

    /// Waits for a frame, or processes a piece of it. The work is bounded, and other tasks run after it.
    async fn step(&mut self, body: &mut Body) -> Result<(), Failure> {
        let broken = |error| Failure::bad_request(format!("the body is not in gzip to its end: {error}"));
        if self.frame.is_empty() {
            let Some(frame) = self.frame(body).await? else {
                self.has_ended = true;
                if let Some(gzip) = &mut self.gzip {
                    gzip.try_finish().map_err(broken)?;
                }
                return self.decoded(true);
            };
            self.frame = frame;
            return Ok(());
        }
        let piece = self.frame.split_to(self.frame.len().min(if self.gzip.is_some() { ENCODED_PIECE } else { PIECE }));
        match &mut self.gzip {
            Some(gzip) => {
                gzip.write_all(&piece).map_err(broken)?;
                self.decodable += MAX_RATIO * piece.len();
            }
            None => self.text.extend_from_slice(&piece),
        }
        self.decoded(false)?;
        yield_now().await;
        Ok(())
    }

    /// Returns the next bytes of the body, or `None` at its end.
    async fn frame(&mut self, body: &mut Body) -> Result<Option<Bytes>, Failure> {
        let begun = Instant::now();
        let Ok(frame) = timeout(self.patience, body.frame()).await else {
            let error = format!("fewer than {MIN_PROGRESS} bytes of the body came in {} s", self.idle.as_secs_f64());
            return Err(Failure::new(StatusCode::REQUEST_TIMEOUT, error));
        };
        let Some(frame) = frame else { return Ok(None) };
        let frame = frame.map_err(|error| Failure::bad_request(format!("the body broke off: {error}")))?;
        let bytes = frame.into_data().unwrap_or_default();
        self.progress += bytes.len();
        if self.progress >= MIN_PROGRESS {
            (self.progress, self.patience) = (0, self.idle);
        } else {
            self.patience = self.patience.saturating_sub(begun.elapsed());
        }
        Ok(Some(bytes))
    }

    /// Takes the keys of all complete lines.
    fn decoded(&mut self, is_last: bool) -> Result<(), Failure> {
        if let Some(gzip) = &mut self.gzip {
            let bytes = gzip.get_mut();
            let rest = self.decodable.checked_sub(bytes.len());
            let error = || format!("the body is decoded to more than {MAX_RATIO} times its length; send it as it is");
            self.decodable = rest.ok_or_else(|| Failure::new(StatusCode::PAYLOAD_TOO_LARGE, error()))?;
            self.text.append(bytes);
        }
        let text = take(&mut self.text);
        let end =
            if is_last { text.len() } else { text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1) };
        for line in text[..end].split_inclusive(|&byte| byte == b'\n') {
            self.line += 1;
            self.take_line(line).map_err(|error| Failure::bad_request(format!("line {}: {error}", self.line)))?;
        }
        self.text.extend_from_slice(&text[end..]);
        // With a byte order mark and a carriage return.
        if self.text.len() > MAX_KEY_BYTES + MARK.len() + 1 {
            let error =
                format!("line {}: the line is longer than a key, which has 1 to {MAX_KEY_BYTES} bytes", self.line + 1);
            return Err(Failure::bad_request(error));
        }
        Ok(())
    }

    fn take_line(&mut self, line: &[u8]) -> Result<(), String> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line)).map_err(|_| "the line is not UTF-8")?;
        let key = if self.line == 1 { line.strip_prefix(MARK).unwrap_or(line) } else { line };
        if !key.bytes().all(|byte| byte == b' ' || byte == b'\t') {
            check_key(key)?;
            self.keys.extend([key, "\n"]);
            self.count += 1;
        }
        Ok(())
    }
}

/// Returns the figures of `/v1/stats` and `/metrics`.
fn figures(app: &App) -> Value {
    // In the reverse order of counting, so that a concurrent lookup does not look like a wrong one.
    let lookups = app.lookups.get();
    let filter_hits = app.filter_hits.get().min(lookups);
    let confirmed_hits = app.confirmed_hits.get().min(filter_hits);
    let absent = lookups - confirmed_hits;
    let mut figures = app.list.stats();
    figures["version"] = env!("CARGO_PKG_VERSION").into();
    figures["uptime_seconds"] = app.started.elapsed().as_secs_f64().into();
    figures["lookups"] = lookups.into();
    figures["filter_hits"] = filter_hits.into();
    figures["confirmed_hits"] = confirmed_hits.into();
    // The fraction of absent keys for which the filter said "maybe"; `null` before the first one.
    let rate = (absent > 0).then(|| (filter_hits - confirmed_hits) as f64 / absent as f64);
    figures["observed_false_positive_rate"] = rate.into();
    figures["connections_free"] = app.connections.available_permits().into();
    figures["body_bytes_free"] = app.bodies.available_permits().into();
    figures
}

/// `GET /v1/stats`
async fn stats(State(app): State<Arc<App>>) -> impl IntoResponse {
    Json(figures(&app))
}

/// The figures that only increase.
#[rustfmt::skip]
const COUNTERS: [&str; 10] = [
    "lookups", "filter_hits", "confirmed_hits", "inserts", "removals", "replacements", "store_failures",
    "snapshot_failures", "filter_relocations", "filter_splits",
];

/// `GET /metrics`, as OpenMetrics.
async fn metrics(State(app): State<Arc<App>>) -> Result<impl IntoResponse, Failure> {
    // A registry per request, which writes the format.
    let mut registry = Registry::with_prefix("risk");
    let figures = figures(&app);
    for (group, figures) in [("", &figures), ("filter_", &figures["filter"]), ("snapshot_", &figures["snapshot"])] {
        for (name, figure) in figures.as_object().into_iter().flatten() {
            let (name, help) = (format!("{group}{name}"), "A figure of /v1/stats");
            match figure.as_f64() {
                Some(count) if COUNTERS.contains(&&*name) => registry.register(name, help, ConstCounter::new(count)),
                Some(number) => registry.register(name, help, ConstGauge::new(number)),
                None => {}
            }
        }
    }
    registry.register("requests", "Requests that were answered", app.requests.clone());
    registry.register("request_seconds", "From a request's head to its answer's", app.durations.clone());
    let mut text = String::new();
    text::encode(&mut text, &registry).map_err(|_| Failure::internal())?;
    Ok(([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text))
}

/// The page is one file with inline script and style. It loads nothing, sends requests only to this server, and may not be framed.
const PAGE_HEADERS: [(HeaderName, &str); 5] = [
    (CONTENT_TYPE, "text/html; charset=utf-8"),
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    // So that a browser does not show the page of an older server.
    (CACHE_CONTROL, "no-cache"),
];

/// `GET /`
async fn page() -> impl IntoResponse {
    (PAGE_HEADERS, include_str!("page.html"))
}
