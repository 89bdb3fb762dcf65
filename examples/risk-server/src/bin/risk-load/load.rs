//! Load from one thread: look-ups without pause, and changes at the pace of the clock.
//!
//! The load shares its processors with the server, so it is as cheap as it can be: what is asked was written down
//! before, and one thread waits for all connections at once.

use crate::churn::{Change, Churn};
use crate::connection::Connection;
use crate::pace::Pace;
use crate::questions::Questions;
use crate::times::Times;
use mio::{Events, Poll, Token};
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// An answer that has not come by then never will.
const PATIENCE: Duration = Duration::from_secs(20);

/// Connections for changes: more than are ever busy, unless the server cannot keep up.
const WRITERS: usize = 32;

/// What is asked of a server, and for how long.
pub(crate) struct Load<'l> {
    pub(crate) address: SocketAddr,
    pub(crate) questions: &'l Questions,
    /// Whether the answers must be right; their form must be in any case.
    pub(crate) judged: bool,
    /// Each asks again as soon as it has its answer.
    pub(crate) connections: usize,
    /// Changes, and how many a second.
    pub(crate) changes: Option<(&'l mut Churn, f64)>,
    /// This much earlier it begins.
    pub(crate) warm_up: Duration,
    pub(crate) time: Duration,
}

/// What came of it, without the warm-up.
pub(crate) struct Outcome {
    /// From each question to its answer.
    pub(crate) checks: Times,
    /// Keys that answers called listed.
    pub(crate) listed: u64,
    /// From the moment at which each change was due to its answer.
    pub(crate) changes: Option<Times>,
    pub(crate) took: Duration,
    /// What the server used of the processors, if that is known.
    pub(crate) processor: Option<Duration>,
}

impl Outcome {
    /// Adds what came of as much again.
    pub(crate) fn add(&mut self, more: &Outcome) {
        self.checks.merge(&more.checks);
        self.listed += more.listed;
        if let (Some(changes), Some(more)) = (&mut self.changes, &more.changes) {
            changes.merge(more);
        }
        self.took += more.took;
        self.processor = self.processor.zip(more.processor).map(|(one, other)| one + other);
    }

    pub(crate) fn checks_per_second(&self) -> f64 {
        self.checks.count() as f64 / self.took.as_secs_f64()
    }

    pub(crate) fn changes_per_second(&self) -> Option<f64> {
        self.changes.as_ref().map(|changes| changes.count() as f64 / self.took.as_secs_f64())
    }
}

/// Runs it. The first wrong answer ends it; `processor` tells what the server has used so far.
pub(crate) fn run(load: Load<'_>, processor: impl Fn() -> Option<Duration>) -> Result<Outcome, String> {
    let begun = Instant::now();
    let (from, until) = (begun + load.warm_up, begun + load.warm_up + load.time);
    let mut running = Running::new(load).map_err(|error| format!("no connection to the server: {error}"))?;
    running.go(begun, from)?;
    running.forget_times();
    let (start, used) = (Instant::now(), processor());
    running.go(start, until)?;
    let (took, used) = (start.elapsed(), processor().zip(used).map(|(after, before)| after.saturating_sub(before)));
    let (checks, listed) = (running.checks.clone(), running.listed);
    let changes = running.churn.as_ref().map(|_| running.changes.clone());
    running.end_changes()?;
    Ok(Outcome { checks, listed, changes, took, processor: used })
}

struct Running<'l> {
    poll: Poll,
    /// First those that check, then those that change.
    connections: Vec<Connection>,
    questions: &'l Questions,
    judged: bool,
    /// What each checking connection asked last, and when.
    asked: Vec<(usize, Instant)>,
    next: usize,
    churn: Option<&'l mut Churn>,
    pace: Pace,
    /// What each changing connection is about, and when it was due.
    changing: Vec<Option<(Change, Instant)>>,
    idle: Vec<usize>,
    checks: Times,
    listed: u64,
    changes: Times,
}

impl<'l> Running<'l> {
    fn new(load: Load<'l>) -> io::Result<Self> {
        let poll = Poll::new()?;
        let writers = if load.changes.is_some() { WRITERS } else { 0 };
        let open = |index| Connection::open(load.address, poll.registry(), Token(index));
        let connections = (0..load.connections + writers).map(open).collect::<io::Result<_>>()?;
        let (churn, per_second) = load.changes.unzip();
        let mut running = Running {
            poll,
            connections,
            questions: load.questions,
            judged: load.judged,
            asked: vec![(0, Instant::now()); load.connections],
            next: 0,
            churn,
            pace: Pace::new(Instant::now(), per_second.unwrap_or(1.0)),
            changing: (0..writers).map(|_| None).collect(),
            idle: (0..writers).collect(),
            checks: Times::new(),
            listed: 0,
            changes: Times::new(),
        };
        for index in 0..load.connections {
            running.ask(index)?;
        }
        Ok(running)
    }

    fn forget_times(&mut self) {
        (self.checks, self.listed, self.changes) = (Times::new(), 0, Times::new());
    }

    fn ask(&mut self, index: usize) -> io::Result<()> {
        let question = self.next;
        self.next = (question + 1) % self.questions.len();
        self.asked[index] = (question, Instant::now());
        self.connections[index].send(self.questions.request(question))
    }

    fn go(&mut self, mut now: Instant, until: Instant) -> Result<(), String> {
        let mut events = Events::with_capacity(1024);
        let mut last_answer = now;
        while now < until {
            self.begin_due_changes(now).map_err(|error| format!("a change was not sent: {error}"))?;
            let mut wait = until - now;
            if self.churn.is_some() && !self.idle.is_empty() {
                wait = wait.min(self.pace.due().saturating_duration_since(now));
            }
            if self.answers(&mut events, wait, true)? > 0 {
                last_answer = now;
            } else if now.duration_since(last_answer) > PATIENCE {
                return Err(format!("there was no answer for {PATIENCE:?}"));
            }
            now = Instant::now();
        }
        Ok(())
    }

    fn begin_due_changes(&mut self, now: Instant) -> io::Result<()> {
        let Some(churn) = &mut self.churn else { return Ok(()) };
        while let Some(&writer) = self.idle.last() {
            let Some(due) = self.pace.take(now) else { break };
            self.idle.pop();
            let change = churn.begin();
            self.connections[self.asked.len() + writer].send(&change.request())?;
            self.changing[writer] = Some((change, due));
        }
        Ok(())
    }

    /// Waits for answers that long at the most, and says how many came; asks again, or not.
    fn answers(&mut self, events: &mut Events, wait: Duration, again: bool) -> Result<usize, String> {
        match self.poll.poll(events, Some(wait.min(PATIENCE))) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(0),
            done => done.map_err(|error| format!("the system does not tell of answers: {error}"))?,
        }
        let broken = |error: io::Error| format!("a connection broke: {error}");
        let mut answers = 0;
        for event in events.iter() {
            let index = event.token().0;
            let connection = &mut self.connections[index];
            let Some(answer) = connection.go_on().map_err(broken)? else { continue };
            let (now, status, body) = (Instant::now(), answer.status, connection.body(&answer));
            answers += 1;
            if let Some(&(question, asked)) = self.asked.get(index) {
                self.listed += self.questions.judge(question, status, body, self.judged)? as u64;
                self.checks.add(now - asked);
                if again {
                    self.ask(index).map_err(broken)?;
                }
            } else {
                let writer = index - self.asked.len();
                let (change, due) = self.changing[writer].take().ok_or("an answer came that nobody asked for")?;
                self.churn.as_mut().ok_or("an answer came that nobody asked for")?.end(change, status, body)?;
                self.changes.add(now - due);
                self.idle.push(writer);
            }
        }
        Ok(answers)
    }

    /// Waits for the changes that are under way, so that it is known what is listed.
    fn end_changes(&mut self) -> Result<(), String> {
        let (begun, mut events) = (Instant::now(), Events::with_capacity(1024));
        while self.idle.len() < self.changing.len() {
            self.answers(&mut events, Duration::from_millis(100), false)?;
            if begun.elapsed() > PATIENCE {
                return Err(format!("a change was not answered for {PATIENCE:?}"));
            }
        }
        Ok(())
    }
}
