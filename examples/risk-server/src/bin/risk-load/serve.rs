//! A variant of the server: the same list, routes, limits and rules, with another front before the store.

use crate::args::{at_least_one, rate};
use crate::fronts::{Always, Exact, Variant};
use crate::keys::{self, Kind, made};
use clap::{Args, Parser};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request};
use hyper_util::rt::{TokioIo, TokioTimer};
use risk_server::config::Config;
use risk_server::http::{App, Front, Service};
use risk_server::list::List;
use std::convert::Infallible;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};

/// Serves a list until its standard input ends. For compare.
#[derive(Args, Clone)]
pub(crate) struct Options {
    /// What stands before the store
    #[arg(long)]
    pub(crate) front: Variant,
    /// The folder of the list
    #[arg(long)]
    pub(crate) data: PathBuf,
    /// Keys that the filter is to hold
    #[arg(long, value_parser = at_least_one)]
    pub(crate) capacity: usize,
    /// Its rate of wrong answers
    #[arg(long, value_parser = rate)]
    pub(crate) false_positive_rate: f64,
    /// The file of the keys on the list
    #[arg(long)]
    pub(crate) list: PathBuf,
    /// Made-up keys on the list
    #[arg(long)]
    pub(crate) keys: u64,
}

impl Options {
    /// Of the command line.
    pub(crate) fn to_args(&self) -> Vec<OsString> {
        let mut args = vec!["serve".into()];
        let mut add = |name: &str, value: OsString| args.extend([name.into(), value]);
        add("--front", self.front.name().into());
        add("--data", self.data.clone().into());
        add("--capacity", self.capacity.to_string().into());
        add("--false-positive-rate", self.false_positive_rate.to_string().into());
        add("--list", self.list.clone().into());
        add("--keys", self.keys.to_string().into());
        args
    }
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    // Whoever started this may end without a word; it does not live on alone.
    std::thread::spawn(|| {
        let _ = io::copy(&mut io::stdin().take(u64::MAX), &mut io::sink());
        std::process::exit(0);
    });
    let config = config(options)?;
    let access = config.access().map_err(|error| error.to_string())?;
    let list = List::open(config.list(), |_| {}).map_err(|error| error.to_string())?.list;
    let exact = match options.front {
        Variant::Dashset => Some(Arc::new(all_keys(options)?)),
        _ => None,
    };
    let front: Arc<dyn Front> = match (options.front, &exact) {
        (Variant::Store, _) => Arc::new(Always(true)),
        (Variant::Nothing, _) => Arc::new(Always(false)),
        (_, Some(exact)) => exact.clone(),
        (_, None) => Arc::new(list.clone()),
    };
    let app = App::new(config.limits(), access);
    app.serve(list, front);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().max_blocking_threads(64).build();
    let runtime = runtime.map_err(|error| format!("no threads for the server: {error}"))?;
    let failed = runtime.block_on(serve(&config, &Service::new(app), exact.as_ref()));
    Err(format!("cannot listen: {failed}"))
}

/// The server's own, but for the folder, the filter, and a port that is free.
fn config(options: &Options) -> Result<Config, String> {
    let (capacity, rate) = (options.capacity.to_string(), options.false_positive_rate.to_string());
    let own =
        ["risk-server", "--listen", "127.0.0.1:0", "--capacity", &capacity, "--false-positive-rate", &rate, "--data"];
    let args = own.map(OsString::from).into_iter().chain([options.data.clone().into()]);
    Config::try_parse_from(args).map_err(|error| error.to_string())
}

fn all_keys(options: &Options) -> Result<Exact, String> {
    let exact = Exact::default();
    for key in keys::read(&options.list)? {
        exact.insert(key);
    }
    for number in 0..options.keys {
        exact.insert(made(Kind::Listed, number));
    }
    Ok(exact)
}

/// Serves connections as the server does. The accepting is written here once more because a front other than the
/// list's own has to be told of changes, around the service.
async fn serve(config: &Config, service: &Service, exact: Option<&Arc<Exact>>) -> io::Error {
    let listener = match TcpListener::bind(config.listen).await {
        Ok(listener) => listener,
        Err(error) => return error,
    };
    match listener.local_addr().and_then(|address| {
        let mut stdout = io::stdout();
        writeln!(stdout, "listening on http://{address}")?;
        stdout.flush()
    }) {
        Ok(()) => {}
        Err(error) => return error,
    }
    let mut protocol = http1::Builder::new();
    protocol.timer(TokioTimer::new()).header_read_timeout(config.idle_seconds).max_buf_size(1 << 16);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => connection(stream, &protocol, service.clone(), exact.cloned()),
            Err(error) => return error,
        }
    }
}

fn connection(stream: TcpStream, protocol: &http1::Builder, service: Service, exact: Option<Arc<Exact>>) {
    let _ = stream.set_nodelay(true);
    let answer = service_fn(move |request: Request<Incoming>| {
        let (service, exact) = (service.clone(), exact.clone());
        async move {
            Ok::<_, Infallible>(match exact {
                Some(exact) => answer_and_tell(&service, &exact, request).await,
                None => service.answer(request).await,
            })
        }
    });
    let connection = protocol.serve_connection(TokioIo::new(stream), answer);
    tokio::spawn(async move {
        // Who asks may hang up at any time.
        let _ = connection.await;
    });
}

/// Keeps the set in step with changes of single keys, in the order of the list: what is put is in the set before it is
/// in the store, what is deleted leaves the store first. This is enough for clients that do not change one key twice at
/// a time, and write keys without escapes.
async fn answer_and_tell(
    service: &Service,
    exact: &Exact,
    request: Request<Incoming>,
) -> hyper::Response<axum::body::Body> {
    let key = request.uri().path().strip_prefix("/v1/keys/").map(str::to_owned);
    match (request.method(), key) {
        (&Method::PUT, Some(key)) => {
            exact.insert(key);
            service.answer(request).await
        }
        (&Method::DELETE, Some(key)) => {
            let response = service.answer(request).await;
            if response.status().is_success() {
                exact.remove(&key);
            }
            response
        }
        _ => service.answer(request).await,
    }
}
