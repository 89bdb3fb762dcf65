//! The server with its filter, and with what one might use instead: the table of the README.

use crate::client::{Client, full, path};
use crate::keys::{Kind, REAL, made};
use crate::process::Server;
use crate::{human, seconds};
use clap::{Args, Parser, ValueEnum};
use dashmap::DashSet;
use futures_util::future::try_join_all;
use hdrhistogram::Histogram;
use hyper::body::Bytes;
use hyper::{Method, Uri};
use risk_server::{Config, Front};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::process::Command;
use tokio::time::{sleep, sleep_until};

/// Compares the server with the same server without its filter, with one that looks nothing up, and with a set of
/// strings in the filter's place.
///
/// Each variant is a process with a list of its own, and all lists are the same. All variants are measured in turn, in
/// slices of half a second. Each connection sends the next check as soon as it has its answer. Changes come by the
/// clock, and their times count from the moment at which they were due. Every answer is checked.
#[derive(Args)]
pub(crate) struct Options {
    /// Seconds of each figure
    #[arg(long, value_name = "SECONDS", default_value = "8", value_parser = seconds)]
    seconds: Duration,

    /// Connections that check at the same time
    #[arg(long, value_name = "COUNT", default_value_t = 32)]
    connections: usize,

    /// Made-up keys on the list, in addition to the real ones
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000)]
    keys: u64,

    /// A second with few keys, to see that everything works
    #[arg(long)]
    quick: bool,
}

/// What stands before the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Variant {
    /// The server as it is.
    Filter,
    /// No lookup: each check is answered "no".
    NoLookup,
    /// Each check reads the store.
    Nothing,
    /// An exact set of all keys in memory.
    DashSet,
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Variant::Filter => "**the filter**",
            Variant::NoLookup => "no lookup, always \"no\"",
            Variant::Nothing => "nothing: each check reads the store",
            Variant::DashSet => "a `DashSet<String>`",
        })
    }
}

/// A variant of the server, as a process of its own.
#[derive(Args)]
pub(crate) struct ServeOptions {
    #[arg(long)]
    front: Variant,
    #[arg(long)]
    keys: u64,
    /// Options of risk-server
    #[arg(last = true)]
    server: Vec<String>,
}

pub(crate) fn serve(options: &ServeOptions) -> Result<(), String> {
    let args = ["risk-server".to_owned()].into_iter().chain(options.server.clone());
    let config = Config::try_parse_from(args).map_err(|error| error.to_string())?;
    let replacement: Option<Arc<dyn Front>> = match options.front {
        Variant::Filter => None,
        Variant::NoLookup => Some(Arc::new(Always(false))),
        Variant::Nothing => Some(Arc::new(Always(true))),
        Variant::DashSet => Some(Arc::new(Exact(listed(options.keys).collect()))),
    };
    let runtime = risk_server::runtime().map_err(|error| error.to_string())?;
    let served = runtime.block_on(risk_server::run(config, None, |own| replacement.unwrap_or(own)));
    served.map_err(|error| error.to_string())
}

struct Always(bool);

impl Front for Always {
    fn may_be_listed(&self, _: &str) -> bool {
        self.0
    }
}

struct Exact(DashSet<String>);

impl Front for Exact {
    fn may_be_listed(&self, key: &str) -> bool {
        self.0.contains(key)
    }

    fn before_put(&self, key: &str) {
        self.0.insert(key.to_owned());
    }

    fn after_delete(&self, key: &str) {
        self.0.remove(key);
    }
}

fn listed(made_up: u64) -> impl Iterator<Item = String> {
    REAL.lines().map(str::to_owned).chain((0..made_up).map(|number| made(Kind::Listed, number)))
}

/// The share of keys that are listed, where not all are absent.
const LISTED: f64 = 0.05;

/// Changes a second, and the connections for them.
const CHANGES: u32 = 1000;
const WRITERS: u32 = 32;

/// Keys in a batch.
const BATCH: usize = 100;

const SLICE: Duration = Duration::from_millis(500);

/// What is asked.
struct Case {
    name: &'static str,
    /// Requests, and the answer to each.
    questions: Vec<(Uri, Bytes, Bytes)>,
    changes: bool,
}

impl Case {
    fn new(name: &'static str, keys: usize, batch: usize, share: f64, made_up: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(6);
        let keys: Vec<(String, bool)> = (0..keys as u64)
            .map(|number| match random.f64() < share {
                true => (made(Kind::Listed, random.u64(..made_up)), true),
                false => (made(Kind::Absent, number), false),
            })
            .collect();
        let question = |keys: &[(String, bool)]| {
            let (names, listed): (Vec<&str>, Vec<bool>) =
                keys.iter().map(|(key, listed)| (key.as_str(), listed)).unzip();
            let (path, body, answer) = match batch {
                1 => (
                    path("/v1/check/", names[0]),
                    String::new(),
                    format!("{{\"key\":\"{}\",\"listed\":{}}}", names[0], listed[0]),
                ),
                _ => {
                    ("/v1/check".to_owned(), serde_json::json!(names).to_string(), format!("{{\"listed\":{listed:?}}}"))
                }
            };
            (path.parse().expect("a made-up key is valid in a path"), body.into(), answer.replace(' ', "").into())
        };
        Case { name, questions: keys.chunks_exact(batch).map(question).collect(), changes: share > 0.0 }
    }
}

/// The measurements of a variant in a case.
struct Outcome {
    checks: Histogram<u64>,
    changes: Histogram<u64>,
    took: Duration,
    processor: Option<Duration>,
}

impl Outcome {
    fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, 120_000_000_000, 3).expect("the bounds are in order");
        Outcome { checks: histogram.clone(), changes: histogram, took: Duration::ZERO, processor: Some(Duration::ZERO) }
    }

    fn rate(&self) -> f64 {
        self.checks.len() as f64 / self.took.as_secs_f64()
    }
}

struct Contestant {
    variant: Variant,
    server: Server,
    /// Of each connection for changes, the keys that it has put, and a number for the next one.
    changed: Vec<(VecDeque<String>, u64)>,
    /// Memory in use when it was ready, in bytes.
    memory: Option<u64>,
}

pub(crate) async fn run(options: &Options) -> Result<(), String> {
    let (time, keys, singles, batches) = match options.quick {
        true => (Duration::from_millis(100), 20_000, 10_000, 200 * BATCH),
        false => (options.seconds, options.keys, 100_000, 2000 * BATCH),
    };
    let cases = [
        Case::new("single checks, all absent", singles, 1, 0.0, keys),
        Case::new("single checks, 5 % listed, 1000 changes a second", singles, 1, LISTED, keys),
        Case::new("batches of 100, all absent", batches, BATCH, 0.0, keys),
        Case::new("batches of 100, 5 % listed, 1000 changes a second", batches, BATCH, LISTED, keys),
    ];
    let folder = tempfile::Builder::new().prefix("risk-load.").tempdir().map_err(|error| error.to_string())?;
    let list: Bytes = listed(keys).flat_map(|key| [key, "\n".to_owned()]).collect::<String>().into();
    let mut contestants = Vec::new();
    for &variant in Variant::value_variants() {
        contestants.push(start(variant, &folder.path().join(format!("{variant:?}")), keys, &list).await?);
        eprintln!("{variant} is ready");
    }

    println!("| | before the store | requests/s | filter / it | p50 | p99 | server's processor time |");
    println!("|---|---|---:|---:|---:|---:|---:|");
    let slices = time.div_duration_f64(SLICE).ceil().max(1.0) as usize;
    for case in &cases {
        // Without a lookup, the answers about listed keys are wrong.
        let takes_part = |variant| variant != Variant::NoLookup || !case.changes;
        let mut outcomes: Vec<Outcome> = contestants.iter().map(|_| Outcome::new()).collect();
        for slice in 0..slices * contestants.len() {
            // All in turn, and another one first each time.
            let index = (slice / contestants.len() + slice) % contestants.len();
            let contestant = &mut contestants[index];
            if takes_part(contestant.variant) {
                let outcome = &mut outcomes[index];
                let measured = measure(contestant, case, options.connections, time / slices as u32, outcome);
                measured.await.map_err(|error| format!("{}, {}: {error}", contestant.variant, case.name))?;
            }
        }
        let mut name = case.name;
        for (contestant, it) in contestants.iter().zip(&outcomes).filter(|(one, _)| takes_part(one.variant)) {
            let ratio = format!("{:.2}", outcomes[0].rate() / it.rate());
            let ratio = if contestant.variant == Variant::Filter { "" } else { &ratio };
            let quantile = |of: &Histogram<u64>, part| human(Duration::from_nanos(of.value_at_quantile(part)));
            let processor = it.processor.map_or("-".to_owned(), |used| human(used.div_f64(it.checks.len() as f64)));
            let (p50, p99) = (quantile(&it.checks, 0.5), quantile(&it.checks, 0.99));
            println!("| {name} | {} | {:.0} | {ratio} | {p50} | {p99} | {processor} |", contestant.variant, it.rate());
            if case.changes {
                let (p50, p99) = (quantile(&it.changes, 0.5), quantile(&it.changes, 0.99));
                eprintln!("changes with {}: p50 {p50}, p99 {p99}", contestant.variant);
            }
            name = "";
        }
    }
    for contestant in &contestants {
        let memory = contestant.memory.map_or("-".to_owned(), |bytes| format!("{:.1} MiB", bytes as f64 / 1_048_576.0));
        println!("\nmemory with {}, when it was ready: {memory}", contestant.variant);
    }
    if options.quick || cfg!(debug_assertions) {
        println!("\nThese figures mean nothing: this was a quick run, or not built with --release.");
    }
    Ok(())
}

async fn start(variant: Variant, data: &std::path::Path, keys: u64, list: &Bytes) -> Result<Contestant, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    let front = variant.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned());
    let capacity = (REAL.lines().count() as u64 + keys) / 8 * 9;
    command.args(["serve", "--front", &front, "--keys", &keys.to_string(), "--", "--listen", "127.0.0.1:0"]);
    command.args(["--capacity", &capacity.to_string(), "--data"]).arg(data);
    let mut server = Server::start(&mut command).await?;
    server.wait_until_ready(async |_| Ok(())).await?;
    let mut client = Client::new(server.address);
    let error = |error| format!("{variant}: {error}");
    let replaced = client.ask(Method::POST, "/v1/keys?replace=true", list.clone()).await.map_err(error)?;
    if replaced.status != 200 {
        return Err(format!("the list was answered {}", replaced.text()));
    }
    // It is saved in the background.
    while client.ask(Method::GET, "/v1/stats", "").await.map_err(error)?.json()["snapshot"].is_null() {
        sleep(Duration::from_millis(10)).await;
    }
    let changed = (0..u64::from(WRITERS)).map(|writer| (VecDeque::new(), writer << 32)).collect();
    Ok(Contestant { variant, memory: server.usage().1, server, changed })
}

/// Measures for this time, after a fifth of it to warm up. The first wrong answer is an error.
async fn measure(
    contestant: &mut Contestant,
    case: &Case,
    connections: usize,
    time: Duration,
    outcome: &mut Outcome,
) -> Result<(), String> {
    let begun = Instant::now();
    let (from, until) = (begun + time / 5, begun + time / 5 + time);
    let (address, server) = (contestant.server.address, &contestant.server);
    let (next, sum) = (Cell::new(0), RefCell::new(outcome));
    let checks = try_join_all((0..connections).map(|_| check(address, case, &next, &sum, (from, until))));
    let changed = contestant.changed.iter_mut().zip(0..).filter(|_| case.changes);
    let changes = try_join_all(changed.map(|(keys, writer)| change(address, keys, writer, &sum, (from, until))));
    let processor = async {
        sleep_until(from.into()).await;
        let before = server.usage().0;
        sleep_until(until.into()).await;
        Ok(server.usage().0.zip(before).map(|(after, before)| after.saturating_sub(before)))
    };
    let (_, _, processor) = futures_util::try_join!(checks, changes, processor)?;
    let outcome = sum.into_inner();
    outcome.took += time;
    outcome.processor = outcome.processor.zip(processor).map(|(one, other)| one + other);
    Ok(())
}

/// Checks without pause, on one connection.
async fn check(
    address: SocketAddr,
    case: &Case,
    next: &Cell<usize>,
    outcome: &RefCell<&mut Outcome>,
    (from, until): (Instant, Instant),
) -> Result<(), String> {
    let mut client = Client::new(address);
    loop {
        let (uri, body, right) = &case.questions[next.replace((next.get() + 1) % case.questions.len())];
        let method = if body.is_empty() { &Method::GET } else { &Method::POST };
        let asked = Instant::now();
        let answer = client.send(method, uri, full(body.clone())).await.map_err(|error| error.to_string())?;
        let now = Instant::now();
        if answer.status != 200 || answer.body != right {
            return Err(format!("{method} {uri} was answered {}", answer.text()));
        }
        if now >= until {
            return Ok(());
        }
        if now >= from {
            outcome.borrow_mut().checks.saturating_record((now - asked).as_nanos() as u64);
        }
    }
}

/// Makes its part of the changes, each when it is due.
async fn change(
    address: SocketAddr,
    (keys, number): &mut (VecDeque<String>, u64),
    writer: u32,
    outcome: &RefCell<&mut Outcome>,
    (from, until): (Instant, Instant),
) -> Result<(), String> {
    let (mut client, period) = (Client::new(address), Duration::from_secs(1) * WRITERS / CHANGES);
    let mut due = Instant::now() + period * writer / WRITERS;
    while due < until {
        sleep_until(due.into()).await;
        // Puts and deletes in turn, of the oldest key.
        *number += 1;
        let oldest = if number.is_multiple_of(2) { keys.pop_front() } else { None };
        let (method, key, right) = match oldest {
            Some(key) => (Method::DELETE, key, "removed"),
            None => (Method::PUT, made(Kind::Changing, *number), "added"),
        };
        let answer =
            client.ask(method.clone(), &path("/v1/keys/", &key), "").await.map_err(|error| error.to_string())?;
        if answer.json()[right] != true {
            return Err(format!("{method} of {key} was answered {}", answer.text()));
        }
        if method == Method::PUT {
            keys.push_back(key);
        }
        if due >= from {
            outcome.borrow_mut().changes.saturating_record(due.elapsed().as_nanos() as u64);
        }
        due += period;
    }
    Ok(())
}
