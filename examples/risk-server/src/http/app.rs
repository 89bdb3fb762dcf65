//! What all requests share.

use super::answer::Failure;
use super::counters::Counters;
use super::front::Front;
use super::host::Hosts;
use super::token::Token;
use crate::list::List;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// What a request may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a JSON body.
    pub body_bytes: usize,
    /// Keys of one batch.
    pub batch_keys: usize,
    /// Requests that are answered at the same time; one more is told to come again.
    pub requests: usize,
    /// For a JSON body to arrive, for the store to answer, and for a change to be made.
    pub request: Duration,
    /// Between two pieces of a streamed body.
    pub idle: Duration,
    /// Bytes of a streamed body that came with gzip, when it is decoded.
    pub decoded_bytes: u64,
}

/// Who may ask what.
#[derive(Clone, Debug)]
pub struct Access {
    /// What a writing request must show.
    pub token: Option<Token>,
    /// Which names are answered to.
    pub hosts: Hosts,
}

/// What all requests share. Clones are the same.
#[derive(Clone)]
pub struct App(Arc<Shared>);

struct Shared {
    limits: Limits,
    access: Access,
    serving: OnceLock<Serving>,
    loaded_keys: AtomicU64,
    stopping: AtomicBool,
    started: Instant,
    counters: Counters,
    /// Cancels the replacement whose keys come in, and is told when that is done.
    cancel: Mutex<Option<oneshot::Sender<oneshot::Sender<()>>>>,
}

/// The list, once it is open.
pub(crate) struct Serving {
    pub(crate) list: List,
    pub(crate) front: Arc<dyn Front>,
}

impl App {
    /// One whose list is still being loaded.
    #[must_use]
    pub fn new(limits: Limits, access: Access) -> Self {
        App(Arc::new(Shared {
            limits,
            access,
            serving: OnceLock::new(),
            loaded_keys: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            started: Instant::now(),
            counters: Counters::default(),
            cancel: Mutex::new(None),
        }))
    }

    /// Tells how many keys are loaded so far.
    pub fn loading(&self, keys: u64) {
        self.0.loaded_keys.store(keys, Ordering::Relaxed);
    }

    /// Answers from this list from now on. What `front` takes for possible is confirmed by the list's store; the usual
    /// front is the list itself. Only the first call counts.
    pub fn serve(&self, list: List, front: Arc<dyn Front>) {
        let _ = self.0.serving.set(Serving { list, front });
    }

    /// Is not ready any more.
    pub fn begin_shutdown(&self) {
        self.0.stopping.store(true, Ordering::Relaxed);
    }

    /// The list, if it is loaded.
    #[must_use]
    pub fn list(&self) -> Option<&List> {
        self.0.serving.get().map(|serving| &serving.list)
    }

    pub(crate) fn serving(&self) -> Result<&Serving, Failure> {
        self.0.serving.get().ok_or_else(|| Failure::unavailable("the list is being loaded"))
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.list().is_some_and(List::is_open) && !self.0.stopping.load(Ordering::Relaxed)
    }

    pub(crate) fn loaded_keys(&self) -> u64 {
        self.0.loaded_keys.load(Ordering::Relaxed)
    }

    /// Resolves when the replacement that has begun is cancelled.
    pub(crate) fn cancelled(&self) -> oneshot::Receiver<oneshot::Sender<()>> {
        let (cancel, cancelled) = oneshot::channel();
        *self.0.cancel.lock() = Some(cancel);
        cancelled
    }

    /// Cancels the replacement whose keys come in, if there is one.
    pub(crate) async fn cancel(&self) -> bool {
        let Some(cancel) = self.0.cancel.lock().take() else { return false };
        let (told, done) = oneshot::channel();
        cancel.send(told).is_ok() && done.await.is_ok()
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.0.started.elapsed()
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    pub(crate) fn access(&self) -> &Access {
        &self.0.access
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.0.counters
    }
}
