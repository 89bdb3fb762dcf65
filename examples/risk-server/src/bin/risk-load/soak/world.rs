//! What all threads of a soak share.

use super::book::Book;
use super::counts::Counts;
use super::names;
use crate::client::Client;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// A request that has no answer by then never gets one.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Keys that many change at a time.
const CONTENDED: usize = 8;

/// What all threads share.
pub(super) struct World {
    /// Keys that are never removed, once they are put.
    pub(super) stable: Vec<String>,
    /// The names of the keys of the book.
    pub(super) names: Vec<String>,
    pub(super) book: Book,
    pub(super) contended: Vec<Contended>,
    /// Every change holds this, from its claim to what is known of it, shared; whoever wants none under way has it
    /// alone.
    pub(super) changes: RwLock<Window>,
    pub(super) counts: Counts,
    pub(super) begun: Instant,
    /// How long a wave of the number of keys takes.
    pub(super) wave: Duration,
    /// Keys of which all are as a replacement that was cut off wanted them, or none is.
    pub(super) all_or_none: Mutex<Vec<(usize, bool)>>,
    /// The number of the server's process.
    pub(super) process: AtomicU32,
    server: Mutex<Option<Visit>>,
    came: Condvar,
    stopping: AtomicBool,
    fault: Mutex<Option<String>>,
}

/// Whether a replacement is under way beside changes: a change that is acknowledged meanwhile may vanish with the old
/// list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Window {
    Closed,
    Open,
}

/// A server that is up, from one start to the next end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Visit {
    pub(super) address: SocketAddr,
    /// The number of its start.
    pub(super) start: usize,
}

/// A key that many change at a time: nobody knows what it is, but the answers must add up.
pub(super) struct Contended {
    pub(super) name: String,
    /// Puts that changed the list without the deletes that did, since the key was asked for.
    pub(super) balance: AtomicI64,
    /// Whether one of them may have been missed.
    pub(super) unsure: AtomicBool,
    /// What it was when it was asked for.
    pub(super) listed: AtomicBool,
}

/// The connection is gone, and the server with it; or the soak is over.
pub(super) struct Gone;

impl World {
    pub(super) fn new(stable: usize, changing: usize, wave: Duration) -> Self {
        let contended = |number| Contended {
            name: names::contended(number),
            balance: AtomicI64::new(0),
            unsure: AtomicBool::new(false),
            listed: AtomicBool::new(false),
        };
        World {
            stable: (0..stable).map(names::stable).collect(),
            names: (0..changing).map(names::changing).collect(),
            book: Book::new(changing),
            contended: (0..CONTENDED).map(contended).collect(),
            changes: RwLock::new(Window::Closed),
            counts: Counts::default(),
            begun: Instant::now(),
            wave,
            all_or_none: Mutex::default(),
            process: AtomicU32::new(0),
            server: Mutex::default(),
            came: Condvar::new(),
            stopping: AtomicBool::new(false),
            fault: Mutex::default(),
        }
    }

    /// The server is up.
    pub(super) fn open(&self, visit: Visit) {
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = Some(visit);
        self.came.notify_all();
    }

    /// The server is about to be ended; from now on nobody wonders at what becomes of a request.
    pub(super) fn close(&self) {
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Everybody is to end.
    pub(super) fn stop(&self) {
        self.stopping.store(true, SeqCst);
        self.came.notify_all();
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(SeqCst)
    }

    /// Waits for a server; none comes any more when the soak is over.
    pub(super) fn server(&self) -> Option<Visit> {
        let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if self.is_stopping() {
                return None;
            }
            if let Some(visit) = *server {
                return Some(visit);
            }
            let waited = self.came.wait_timeout(server, Duration::from_millis(100));
            server = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(super) fn is_up(&self, visit: Visit) -> bool {
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) == Some(visit)
    }

    /// Does something again and again, while there is a server.
    pub(super) fn keep_on(&self, mut work: impl FnMut(&mut Client, Visit) -> Result<(), Gone>) {
        while let Some(visit) = self.server() {
            let mut client = Client::new(visit.address, PATIENCE);
            while !self.is_stopping() && self.is_up(visit) {
                if work(&mut client, visit).is_err() {
                    break;
                }
            }
        }
    }

    /// A request broke off: that is no wonder if the server is being ended.
    pub(super) fn broke(&self, visit: Visit, what: &str, error: &io::Error) -> Gone {
        if self.is_up(visit) {
            self.fail(format!("{what}: the connection broke while the server was up: {error}"));
        }
        Gone
    }

    /// The server answered what it must not. That is no wonder if it is being ended and says that it does not serve.
    pub(super) fn refused(&self, visit: Visit, what: &str, status: u16, body: &str) -> Gone {
        if status != 503 || self.is_up(visit) {
            self.fail(format!("{what} was answered {status}: {body}"));
        }
        Gone
    }

    /// The server broke its word. The first time is kept, and ends the soak.
    pub(super) fn fail(&self, what: String) {
        self.counts.violations.add(1);
        let at = self.begun.elapsed().as_secs_f64();
        let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        fault.get_or_insert_with(|| format!("after {at:.3} s: {what}"));
        drop(fault);
        self.stop();
    }

    pub(super) fn fault(&self) -> Option<String> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many of 100 keys are to be listed now: it goes up and down.
    pub(super) fn tide(&self) -> f64 {
        let turn = self.begun.elapsed().as_secs_f64() / self.wave.as_secs_f64() * std::f64::consts::TAU;
        0.5 - 0.4 * turn.cos()
    }

    /// Waits that long, or until the soak is over.
    pub(super) fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        while !self.is_stopping() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10).min(time));
        }
    }
}
