//! A soak: the real server under changes and lookups, killed and started again, checked against an exact book.

use crate::client::{Answer, Body, Client, PATIENCE, path};
use crate::keys::{Kind, made, spiced};
use crate::process::Server;
use crate::{human, seconds};
use clap::Args;
use fastrand::Rng;
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Bytes, Frame};
use hyper::{Method, Uri};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::process::Command;
use tokio::sync::RwLock;
use tokio::time::{sleep, timeout};

/// Changes a real server and asks it all the time, kills it now and then, and checks that it keeps its promises.
///
/// Writers put and delete single keys, upload many, and replace the whole list; checkers ask for keys of which it is
/// known whether they are listed. The server is ended by SIGKILL at random moments, some of them while it starts, and by
/// SIGTERM; its snapshot is damaged or lost now and then. After each start, and every few seconds, every key is asked
/// for. In the last two fifths of the time it is left alive, so that its memory can be watched. The first wrong answer
/// ends the soak, with exit code 1.
#[derive(Args)]
pub(crate) struct Options {
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
    seconds: Duration,

    /// Seconds from one kill to the next, about
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = seconds)]
    kill_every: Duration,

    /// The server [default: risk-server next to this program]
    #[arg(long, value_name = "PATH")]
    server: Option<PathBuf>,

    /// The seed of what is left to chance [default: random]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,

    /// Ten seconds with few keys and many kills
    #[arg(long, conflicts_with_all = ["seconds", "kill_every"])]
    quick: bool,
}

const CHECKERS: usize = 2;
const WRITERS: usize = 6;

/// The most keys in a batch, of a check and of an audit.
const CHECK_BATCH: usize = 200;
const AUDIT_BATCH: usize = 2000;

/// Growth of memory that is no leak: this share of what was in use before, and this many bytes.
const ALLOWED_SHARE: f64 = 0.25;
const ALLOWED_BYTES: u64 = 32 << 20;

/// What is known of every key that comes and goes: a number that goes up with each step, and the state.
///
/// A writer claims a key first, so that one change of it is in progress at a time, and the answer tells the state from then
/// on. A change that was cut off leaves the key in doubt until it is asked for while nothing changes. A checker that reads
/// the same before and after a lookup knows that the key did not change meanwhile, and what the answer must be.
struct Book(Vec<Cell<(u64, State)>>);

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Listed or not.
    Known(bool),
    Changing,
    InDoubt,
}

impl Book {
    /// Whether the key is listed, if that is known.
    fn listed(&self, key: usize) -> Option<bool> {
        match self.0[key].get().1 {
            State::Known(listed) => Some(listed),
            _ => None,
        }
    }

    fn set(&self, key: usize, state: State) {
        self.0[key].set((self.0[key].get().0 + 1, state));
    }

    /// Claims a key whose state is known, and returns whether it is listed.
    fn claim(&self, key: usize) -> Option<bool> {
        self.listed(key).inspect(|_| self.set(key, State::Changing))
    }

    /// Ends a claim or a doubt; without an answer the key is in doubt.
    fn settle(&self, key: usize, listed: Option<bool>) {
        self.set(key, listed.map_or(State::InDoubt, State::Known));
    }
}

/// What all tasks share.
struct World {
    /// Keys that are never removed once they are put.
    stable: Vec<String>,
    /// The keys of the book.
    names: Vec<String>,
    book: Book,
    /// A change holds this shared, from its claim to what is known of it; a replacement and an audit are alone.
    changes: RwLock<()>,
    /// Keys of which all are as a replacement that was cut off wanted them, or none is.
    all_or_none: RefCell<Vec<(usize, bool)>>,
    /// The server that is up, and the number of its start.
    visit: Cell<Option<(SocketAddr, usize)>>,
    is_over: Cell<bool>,
    fault: RefCell<Option<String>>,
    begun: Instant,
    /// The period in which the number of keys goes up and down.
    wave: Duration,
    /// What was done.
    counts: RefCell<BTreeMap<&'static str, usize>>,
}

/// A request failed. That is expected if the server is being ended and did not answer, or that it does not serve.
struct Trouble {
    what: String,
    is_expected_at_the_end: bool,
}

impl Trouble {
    fn new(what: impl Display, result: io::Result<Answer>) -> Self {
        let is_expected_at_the_end = result.as_ref().map_or(true, |answer| answer.status == 503);
        let answer = result.map_or_else(|error| error.to_string(), |answer| answer.text());
        Trouble { what: format!("{what} was answered {answer}"), is_expected_at_the_end }
    }
}

/// An error unless it is so, whatever happens to the server.
fn must(so: bool, what: impl FnOnce() -> String) -> Result<(), Trouble> {
    if so { Ok(()) } else { Err(Trouble { what: what(), is_expected_at_the_end: false }) }
}

impl World {
    fn count(&self, what: &'static str, number: usize) {
        *self.counts.borrow_mut().entry(what).or_default() += number;
    }

    /// Ends the soak. The first fault is kept.
    fn fail(&self, what: String) {
        let at = self.begun.elapsed().as_secs_f64();
        self.fault.borrow_mut().get_or_insert_with(|| format!("after {at:.3} s: {what}"));
        self.is_over.set(true);
    }

    /// Works again and again while there is a server.
    async fn repeat(&self, mut work: impl AsyncFnMut(&Self, &mut Client) -> Result<(), Trouble>) {
        while !self.is_over.get() {
            let visit = self.visit.get();
            let Some((address, _)) = visit else {
                sleep(Duration::from_millis(1)).await;
                continue;
            };
            let mut client = Client::new(address);
            while !self.is_over.get() && self.visit.get() == visit {
                if let Err(trouble) = work(self, &mut client).await {
                    self.count("cut off", 1);
                    if !trouble.is_expected_at_the_end || self.visit.get() == visit {
                        self.fail(trouble.what);
                    }
                    break;
                }
            }
        }
    }

    /// The share of keys to be listed now: it goes up and down.
    fn tide(&self) -> f64 {
        let turn = self.begun.elapsed().as_secs_f64() / self.wave.as_secs_f64() * std::f64::consts::TAU;
        0.5 - 0.4 * turn.cos()
    }

    /// A key that is never put; some are close to others that are.
    fn never(&self, random: &mut Rng) -> String {
        let stable = &self.stable[random.usize(..self.stable.len())];
        match random.u8(..4) {
            0 => format!("{stable:.1000}x"),
            1 => stable.to_uppercase(),
            _ => made(Kind::Absent, random.u64(..1 << 40)),
        }
    }

    /// Looks keys up, alone or in a batch: what is known must be what is answered.
    async fn check(&self, client: &mut Client, random: &mut Rng) -> Result<(), Trouble> {
        let size = if random.bool() { 1 } else { random.usize(2..CHECK_BATCH) };
        // Of a key of the book, its number and what was known of it before; of others, whether they are listed.
        let asked: Vec<(String, Result<_, bool>)> = (0..size)
            .map(|_| match random.u8(..10) {
                0..3 => (self.stable[random.usize(..self.stable.len())].clone(), Err(true)),
                3..5 => (self.never(random), Err(false)),
                _ => {
                    let key = random.usize(..self.names.len());
                    (self.names[key].clone(), Ok((key, self.book.0[key].get())))
                }
            })
            .collect();
        let listed = if let [(name, _)] = &asked[..] {
            let answer = client.ask(Method::GET, &path("/v1/check/", name), "").await;
            match &answer {
                Ok(ok) if ok.status == 200 && ok.json()["key"] == **name => vec![ok.json()["listed"] == true],
                _ => return Err(Trouble::new("a check", answer)),
            }
        } else {
            let names: Vec<&str> = asked.iter().map(|(name, _)| name.as_str()).collect();
            client.which_listed(&names).await.map_err(|error| Trouble::new("a batch", Err(error)))?
        };
        for ((name, known), listed) in asked.iter().zip(listed) {
            let right = match *known {
                Err(right) => Some(right),
                Ok((key, before)) if self.book.0[key].get() == before => self.book.listed(key),
                Ok(_) => None,
            };
            must(right.is_none_or(|right| right == listed), || format!("a check of {name:?} said listed: {listed}"))?;
            self.count("judged", usize::from(right.is_some()));
        }
        Ok(())
    }

    /// Puts a key or deletes it, whatever it is: a repeat must be harmless. Sometimes it is one that was never put: its
    /// deletion must not take another key with it, as it would from a filter alone.
    async fn change(&self, client: &mut Client, random: &mut Rng) -> Result<(), Trouble> {
        let _shared = self.changes.read().await;
        let stranger = (random.u8(..10) == 0).then(|| self.never(random));
        let key = random.usize(..self.names.len());
        let put = stranger.is_none() && random.f64() < self.tide();
        let listed = if stranger.is_some() { Some(false) } else { self.book.claim(key) };
        let Some(listed) = listed else { return Ok(()) };
        let name = stranger.as_ref().unwrap_or(&self.names[key]);
        let (method, right) = if put { (Method::PUT, "added") } else { (Method::DELETE, "removed") };
        let answer = client.ask(method.clone(), &path("/v1/keys/", name), "").await;
        let changed =
            answer.as_ref().ok().filter(|answer| answer.status < 300).and_then(|answer| answer.json()[right].as_bool());
        if stranger.is_none() {
            self.book.settle(key, changed.map(|_| put));
        }
        let Some(changed) = changed else { return Err(Trouble::new(format_args!("{method} of {name:?}"), answer)) };
        self.count("changes", 1);
        must(changed == (listed != put), || format!("{method} of {name:?}, listed: {listed}, changed it: {changed}"))
    }

    /// Puts many keys, of which some are listed already.
    async fn upload(&self, client: &mut Client, random: &mut Rng) -> Result<(), Trouble> {
        sleep(self.wave.mul_f64(random.f64() / 10.0)).await;
        let _shared = self.changes.read().await;
        let (first, number) = (random.usize(..self.names.len()), random.usize(1..=self.names.len() / 4));
        let keys = (first..first + number).map(|key| key % self.names.len());
        let claimed: Vec<(usize, bool)> = keys.filter_map(|key| Some((key, self.book.claim(key)?))).collect();
        let body: String = claimed.iter().map(|&(key, _)| self.names[key].clone() + "\r\n").collect();
        let answer = client.ask(Method::POST, "/v1/keys", body + &self.stable[0]).await;
        let is_made = answer.as_ref().is_ok_and(|answer| answer.status == 200);
        claimed.iter().for_each(|&(key, _)| self.book.settle(key, is_made.then_some(true)));
        let Some(answer) = answer.as_ref().ok().filter(|_| is_made) else {
            return Err(Trouble::new("an upload", answer));
        };
        self.count("uploaded", claimed.len());
        let (lines, already) = (claimed.len() + 1, claimed.iter().filter(|(_, listed)| *listed).count() + 1);
        let right = serde_json::json!({ "lines": lines, "added": lines - already, "already": already });
        must(answer.json() == right, || format!("an upload was answered {}, not {right}", answer.text()))
    }

    /// Replaces the list: by all stable keys, most of what is listed, and some of what is not. Keys on both lists are
    /// checked all the time. Some replacements are abandoned.
    async fn replace(&self, client: &mut Client, random: &mut Rng) -> Result<(), Trouble> {
        sleep(self.wave.mul_f64(random.f64() / 3.0)).await;
        let _alone = self.changes.write().await;
        let mut body: Vec<&str> = self.stable.iter().map(String::as_str).collect();
        let mut switched = Vec::new();
        for (key, name) in self.names.iter().enumerate() {
            let now = self.book.listed(key);
            let then = if random.u8(..6) == 0 { random.bool() } else { now.unwrap_or(false) };
            if now.is_some_and(|now| now != then) && self.book.claim(key).is_some() {
                switched.push((key, then));
            }
            if then {
                body.push(name);
            }
        }
        let keys = body.len();
        random.shuffle(&mut body);
        // Twice on the list is once.
        body.push(&self.stable[0]);
        let body = Bytes::from(body.join("\n"));
        // In pieces, so that snapshots and kills come in between.
        let pause = self.wave.mul_f64(random.f64() / 800.0);
        let pieces = stream::unfold(0, move |at| {
            let body = body.clone();
            async move {
                sleep(pause).await;
                let end = body.len().min(at + body.len().div_ceil(16));
                (at < end).then(|| (Ok::<_, io::Error>(Frame::data(body.slice(at..end))), end))
            }
        });
        let body: Body = StreamBody::new(pieces).boxed_unsync();
        let uri = Uri::from_static("/v1/keys?replace=true");
        // A client of its own: the connection may have been silent for too long, and it may hang up.
        let mut client = Client::new(self.visit.get().map_or(client.address(), |(address, _)| address));
        let patience = if random.u8(..4) == 0 { pause * random.u32(1..16) } else { PATIENCE };
        let answer = timeout(patience, client.send(&Method::POST, &uri, body)).await;
        drop(client);

        let settle = |made: bool| switched.iter().for_each(|&(key, then)| self.book.settle(key, Some(then == made)));
        match answer {
            Ok(Ok(answer)) if answer.status == 200 => {
                settle(true);
                self.count("replacements", 1);
                must(answer.json()["keys"] == keys, || format!("{keys} keys of a new list: {}", answer.text()))
            }
            // An earlier one that was abandoned is still being given up.
            Ok(Ok(answer)) if answer.status == 409 => {
                settle(false);
                Ok(())
            }
            Err(_) if patience < PATIENCE => {
                settle(false);
                self.count("abandoned", 1);
                Ok(())
            }
            other => {
                switched.iter().for_each(|&(key, _)| self.book.settle(key, None));
                self.all_or_none.borrow_mut().extend(switched);
                Err(Trouble::new("a replacement", other.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))))
            }
        }
    }

    /// Asks for every key while nothing changes: what was acknowledged must be there, what is in doubt is known from then
    /// on, and the server's own counts must be those of the keys.
    async fn audit(&self, client: &mut Client, random: &mut Rng) -> Result<(), String> {
        let waited = timeout(PATIENCE, self.changes.write()).await;
        let _alone = waited.map_err(|_| "a change did not come to its end")?;
        let never: Vec<String> = (0..AUDIT_BATCH).map(|_| self.never(random)).collect();
        let mut sum = 0;
        for (names, known) in [(&self.stable, Some(true)), (&never, Some(false)), (&self.names, None)] {
            for (chunk, first) in names.chunks(AUDIT_BATCH).zip((0..).step_by(AUDIT_BATCH)) {
                let chunk: Vec<&str> = chunk.iter().map(String::as_str).collect();
                let listed = client.which_listed(&chunk).await.map_err(|error| format!("an audit: {error}"))?;
                for (key, (name, listed)) in (first..).zip(chunk.iter().zip(listed)) {
                    match known.or_else(|| self.book.listed(key)) {
                        Some(right) if right != listed => {
                            return Err(format!(
                                "an audit says listed: {listed} of {name:?}, but it is known otherwise"
                            ));
                        }
                        Some(_) => self.count("judged", 1),
                        None => {
                            self.book.settle(key, Some(listed));
                            self.count("settled", 1);
                        }
                    }
                    sum += u64::from(listed);
                }
            }
        }
        let cut_off = self.all_or_none.take();
        let made = cut_off.iter().filter(|&&(key, then)| self.book.listed(key) == Some(then)).count();
        if made != 0 && made != cut_off.len() {
            return Err(format!("of the {} keys that a replacement was to change, it changed {made}", cut_off.len()));
        }
        let stats = client.ask(Method::GET, "/v1/stats", "").await.map_err(|error| format!("the stats: {error}"))?;
        let json = stats.json();
        if json["filter_faults"] != 0 || json["keys"] != sum || json["filter"]["len"] != sum {
            return Err(format!("{sum} keys are listed, but the stats are {}", stats.text()));
        }
        self.count("audits", 1);
        Ok(())
    }
}

pub(crate) async fn run(options: &Options) -> Result<(), String> {
    let program = match &options.server {
        Some(path) => path.clone(),
        None => std::env::current_exe().map_err(|error| error.to_string())?.with_file_name("risk-server"),
    };
    if !program.is_file() {
        return Err(format!("{} is not there: build risk-server, or give its path with --server", program.display()));
    }
    let (time, kill_every, keys, wave) = match options.quick {
        true => (Duration::from_secs(10), Duration::from_millis(600), 1000, Duration::from_secs(4)),
        // More than a filter begins with room for.
        false => (options.seconds, options.kill_every, 20_000, Duration::from_secs(20)),
    };
    let seed = options.seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    let mut random = Rng::with_seed(seed);
    let folder = tempfile::Builder::new().prefix("risk-load.").tempdir().map_err(|error| error.to_string())?;
    eprintln!("seed {seed}; {} for {}; data in {}", program.display(), human(time), folder.path().display());
    let world = Rc::new(World {
        stable: (0..keys).map(|key| spiced(Kind::Listed, key)).collect(),
        names: (0..2 * keys).map(|key| spiced(Kind::Changing, key)).collect(),
        book: Book((0..2 * keys).map(|_| Cell::new((0, State::Known(false)))).collect()),
        changes: RwLock::new(()),
        all_or_none: RefCell::default(),
        visit: Cell::default(),
        is_over: Cell::new(false),
        fault: RefCell::default(),
        begun: Instant::now(),
        wave,
        counts: RefCell::default(),
    });
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..CHECKERS + WRITERS + 2 {
        let (world, mut random) = (Rc::clone(&world), random.fork());
        tasks.spawn_local(async move {
            match number {
                0 => world.repeat(async |world, client| world.upload(client, &mut random).await).await,
                1 => world.repeat(async |world, client| world.replace(client, &mut random).await).await,
                _ if number < 2 + CHECKERS => {
                    world.repeat(async |world, client| world.check(client, &mut random).await).await;
                }
                _ => world.repeat(async |world, client| world.change(client, &mut random).await).await,
            }
        });
    }
    let mut life = Life {
        world: &world,
        program,
        data: folder.path().join("data"),
        time,
        kill_every,
        random,
        starts: 0,
        longest_start: Duration::ZERO,
        memory: Vec::new(),
        last_lines: String::new(),
    };
    if let Err(fault) = life.run().await {
        world.fail(fault);
    }
    world.is_over.set(true);
    // Some may wait for an answer that does not come any more.
    let _ = timeout(PATIENCE, async { while tasks.join_next().await.is_some() {} }).await;
    println!("{:#?}\nlongest start {}", world.counts.borrow(), human(life.longest_start));
    if let Err(leak) = life.judge_memory() {
        world.fail(leak);
    }
    let fault = world.fault.take();
    let Some(fault) = fault else { return Ok(()) };
    let lines = std::mem::take(&mut life.last_lines);
    Err(format!(
        "the server broke its word {fault}\nthe end of its log:\n{lines}seed {seed}; its data are in {}",
        folder.keep().display()
    ))
}

/// The life of the server: started, watched, ended, and started again.
struct Life<'w> {
    world: &'w World,
    program: PathBuf,
    data: PathBuf,
    time: Duration,
    kill_every: Duration,
    random: Rng,
    starts: usize,
    longest_start: Duration,
    /// Resident memory in the last life, in bytes.
    memory: Vec<u64>,
    last_lines: String,
}

impl Life<'_> {
    fn is_over(&self) -> bool {
        self.world.is_over.get() || self.world.begun.elapsed() >= self.time
    }

    /// One life after the other, until the time is over, and a last start.
    async fn run(&mut self) -> Result<(), String> {
        loop {
            let is_last = self.is_over();
            let mut server = self.start().await?;
            let lived = self.live(&mut server, is_last).await;
            self.world.visit.set(None);
            let ended = match lived {
                Ok(()) => self.end(&mut server, is_last).await,
                Err(fault) => Err(fault),
            };
            self.last_lines = server.last_lines();
            ended?;
            if let Some(line) = server.error() {
                return Err(format!("the server logged an error: {line}"));
            }
            if is_last || self.world.is_over.get() {
                return Ok(());
            }
            self.tamper();
        }
    }

    async fn spawn(&self) -> Result<Server, String> {
        let mut command = Command::new(&self.program);
        // A small filter, so that it has to grow; frequent snapshots, so that a kill comes before, in and after one.
        command.args(["--listen", "127.0.0.1:0", "--log-format", "json", "--capacity", "1000", "--cache-mib", "16"]);
        command.args(["--snapshot-minutes", "0.02", "--drain-seconds", "0", "--data"]).arg(&self.data);
        Server::start(&mut command).await
    }

    /// A server that is ready. Some are killed before they are.
    async fn start(&mut self) -> Result<Server, String> {
        while self.starts > 0 && self.random.u8(..4) == 0 {
            let mut server = self.spawn().await?;
            sleep(self.longest_start.mul_f64(self.random.f64() / 2.0)).await;
            server.kill().await;
            self.world.count("early kills", 1);
        }
        let begun = Instant::now();
        let mut server = self.spawn().await?;
        let name = path("/v1/check/", &self.world.stable[0]);
        let must_be_listed = self.starts > 0;
        let waited = server.wait_until_ready(async |client| match client.ask(Method::GET, &name, "").await {
            // While the list is being loaded there is no answer, rather than a wrong one.
            Ok(answer) if must_be_listed && answer.status == 200 && answer.json()["listed"] != true => {
                Err(format!("while it was loading, a stable key was answered {}", answer.text()))
            }
            _ => Ok(()),
        });
        waited.await?;
        self.longest_start = self.longest_start.max(begun.elapsed());
        Ok(server)
    }

    /// From the first audit to the moment at which it is to end.
    async fn live(&mut self, server: &mut Server, is_last: bool) -> Result<(), String> {
        let (begun, world, mut client) = (Instant::now(), self.world, Client::new(server.address));
        if self.starts == 0 {
            let put = client.ask(Method::POST, "/v1/keys", world.stable.join("\n")).await;
            if !put.as_ref().is_ok_and(|answer| answer.json()["added"] == world.stable.len()) {
                return Err(Trouble::new("the first upload", put).what);
            }
        } else {
            world.audit(&mut client, &mut self.random).await?;
        }
        self.starts += 1;
        if is_last {
            return Ok(());
        }
        world.visit.set(Some((server.address, self.starts)));
        let until = self.kill_every.mul_f64(0.25 + 1.5 * self.random.f64());
        let (mut audited, mut told) = (Instant::now(), Instant::now());
        self.memory.clear();
        while !self.is_over() && (begun.elapsed() < until || world.begun.elapsed() > self.time * 3 / 5) {
            sleep(Duration::from_millis(20)).await;
            if let Some(status) = server.ended() {
                return Err(format!("the server ended by itself: {status}"));
            }
            if audited.elapsed() > (self.kill_every / 3).min(Duration::from_secs(7)) {
                world.audit(&mut client, &mut self.random).await?;
                audited = Instant::now();
                self.memory.extend(server.usage().1);
            }
            if told.elapsed() > Duration::from_secs(15) {
                told = Instant::now();
                eprintln!("{:>6.0} s  {:?}", world.begun.elapsed().as_secs_f64(), world.counts.borrow());
            }
        }
        Ok(())
    }

    /// Mostly by SIGKILL; sometimes, and in the end, by SIGTERM.
    async fn end(&mut self, server: &mut Server, is_last: bool) -> Result<(), String> {
        if !is_last && self.random.u8(..4) != 0 {
            server.kill().await;
            self.world.count("kills", 1);
            return Ok(());
        }
        let status =
            server.terminate().await.map_err(|error| format!("the server did not end when asked to: {error}"))?;
        self.world.count("shutdowns", 1);
        if status.success() || cfg!(not(unix)) { Ok(()) } else { Err(format!("the server ended with {status}")) }
    }

    /// What may happen to a snapshot: it must be noticed, and only cost time.
    fn tamper(&mut self) {
        let snapshot = self.data.join("filter.snapshot");
        match self.random.u8(..8) {
            // There may be none.
            0 => drop(std::fs::remove_file(snapshot)),
            1 => {
                if let Ok(mut bytes) = std::fs::read(&snapshot)
                    && !bytes.is_empty()
                {
                    let at = self.random.usize(..bytes.len());
                    bytes[at] ^= 1 << self.random.u8(..8);
                    drop(std::fs::write(snapshot, bytes));
                }
            }
            _ => {}
        }
    }

    /// The peak in the second half of the last long life, in which as many keys come and go, compared with the first.
    fn judge_memory(&self) -> Result<(), String> {
        let (before, after) = self.memory.split_at(self.memory.len() / 2);
        let (Some(before), Some(after)) = (before.iter().max(), after.iter().max()) else { return Ok(()) };
        println!("peak memory in the halves of the last run: {} and {} MiB", before >> 20, after >> 20);
        let allowed = before + (*before as f64 * ALLOWED_SHARE) as u64 + ALLOWED_BYTES;
        if *after <= allowed { Ok(()) } else { Err(format!("memory grows: {before} bytes, later {after}")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_book_knows_what_was_acknowledged_and_tells_changes_apart() {
        let book = Book(vec![Cell::new((0, State::Known(false)))]);
        assert_eq!((book.claim(0), book.claim(0), book.listed(0)), (Some(false), None, None));
        book.settle(0, Some(true));
        assert_eq!((book.listed(0), book.claim(0)), (Some(true), Some(true)));
        book.settle(0, None);
        assert_eq!((book.claim(0), book.listed(0)), (None, None), "in doubt");
        book.settle(0, Some(false));
        assert_eq!(book.0[0].get(), (5, State::Known(false)), "again what it was, but not the same moment");
    }

    #[test]
    fn no_key_has_the_name_of_another_one() {
        let kinds = [Kind::Listed, Kind::Absent, Kind::Changing].into_iter();
        let keys: Vec<String> = kinds.flat_map(|kind| (0..5000).map(move |key| spiced(kind, key))).collect();
        assert!(keys.iter().all(|key| (1..=1024).contains(&key.len())));
        assert_eq!(keys.into_iter().collect::<std::collections::HashSet<_>>().len(), 15_000);
    }
}
