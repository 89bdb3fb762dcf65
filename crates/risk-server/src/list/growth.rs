//! A larger filter for a list that has outgrown its own: loaded from the store on a thread of its own while the list
//! changes, and installed between two transactions. This room, with the overflow of a [`Side`], goes once the filter
//! grows in place.

use super::error::LoadError;
use super::front::Side;
use super::key::Change;
use super::snapshot;
use super::writer::{Command, Writer};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::WeakSender;

/// After a build that failed, the next one waits this long: what it lacked may be there again.
const PAUSE: Duration = Duration::from_secs(5);

/// A build in progress.
pub(super) struct Build {
    id: u64,
    cancel: Arc<AtomicBool>,
    thread: JoinHandle<Result<Side, LoadError>>,
    /// What has been committed since the moment of the store that it loads.
    since: Vec<Change>,
}

impl Build {
    pub(super) fn note(&mut self, changes: impl Iterator<Item = Change>) {
        self.since.extend(changes);
    }
}

/// Wakes the writer when a build is over, after a panic too.
struct Over(WeakSender<Command>, u64);

impl Drop for Over {
    fn drop(&mut self) {
        if let Some(sender) = self.0.upgrade() {
            // A writer that is too busy to be told finds out by itself, and one that waits for this thread must not be
            // waited for.
            let _ = sender.try_send(Command::Built(self.1));
        }
    }
}

impl Writer {
    /// Starts to build a larger filter if one is due.
    pub(super) fn grow(&mut self) {
        if self.build.as_ref().is_some_and(|build| build.thread.is_finished()) {
            self.finish_build();
        }
        let side = self.shared.front.current();
        let may_build = self.build.is_none()
            && self.health.is_known()
            && self.replacing.allows_build()
            && !self.shared.is_closing()
            && self.build_after.is_none_or(|after| Instant::now() >= after);
        if !may_build || !(self.faulty || side.is_full()) {
            return;
        }
        let keys = self.shared.totals.lock().keys;
        let capacity = self.shared.options.grown(keys, side.filter.capacity(), side.overflow.len() > 0);
        match self.start_build(capacity) {
            Ok(build) => {
                tracing::info!(keys, capacity, "a larger filter is being built");
                self.build = Some(build);
            }
            Err(error) => self.put_off_build(&error),
        }
    }

    fn start_build(&mut self, capacity: usize) -> Result<Build, String> {
        let transaction = self.shared.store.read().map_err(|error| error.to_string())?;
        self.builds += 1;
        let (id, cancel) = (self.builds, Arc::new(AtomicBool::new(false)));
        let (shared, cancelled, table) = (Arc::clone(&self.shared), Arc::clone(&cancel), self.meta.current);
        let over = Over(self.sender.clone(), id);
        let thread = Builder::new().name("list-grow".into()).spawn(move || {
            let _over = over;
            let side = Side::new(shared.options.filter_of(capacity)?);
            let is_cancelled = || cancelled.load(Ordering::Relaxed) || shared.is_closing();
            side.load(&transaction, table, is_cancelled, |_| {})?;
            Ok(side)
        });
        let thread = thread.map_err(|error| format!("the system gave no thread: {error}"))?;
        Ok(Build { id, cancel, thread, since: Vec::new() })
    }

    /// Makes the build in progress void. Returns its thread.
    pub(super) fn cancel_build(&mut self) -> Option<JoinHandle<impl Sized + use<>>> {
        let build = self.build.take()?;
        build.cancel.store(true, Ordering::Relaxed);
        Some(build.thread)
    }

    fn put_off_build(&mut self, error: &str) {
        tracing::error!(error, "no larger filter was built");
        self.shared.totals.lock().rebuild_failures += 1;
        self.build_after = Some(Instant::now() + PAUSE);
    }

    /// Waits for the build in progress, if any, and installs its filter.
    pub(super) fn finish_build(&mut self) {
        if let Some(build) = &self.build {
            self.built(build.id);
        }
    }

    /// A build is over. One that was cancelled is unknown by now.
    pub(super) fn built(&mut self, id: u64) {
        let Some(build) = self.build.take_if(|build| build.id == id) else { return };
        let installed = match build.thread.join().unwrap_or(Err(LoadError::Panicked)) {
            Ok(side) => self.install(side, &build.since),
            // The list is being closed.
            Err(LoadError::Cancelled) => return,
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = installed {
            self.put_off_build(&error);
            // The store may be the reason.
            self.look();
        }
    }

    /// No change can come in between: this is the thread that makes them.
    fn install(&mut self, side: Side, since: &[Change]) -> Result<(), String> {
        if !self.health.is_known() {
            return Err("it is not known what the store holds".to_owned());
        }
        let mut faults = 0;
        for change in since {
            match change {
                Change::Put(key) => side.insert(key),
                Change::Delete(key) => faults += u32::from(!side.remove(key)),
            }
        }
        let (len, keys) = (side.len(), self.shared.totals.lock().keys);
        if faults > 0 || len != keys {
            return Err(format!("the new filter has {len} keys, with {faults} faults; the list has {keys}"));
        }
        tracing::info!(keys, capacity = side.filter.capacity(), "a larger filter is in place");
        self.put_in_place(Arc::new(side));
        self.shared.totals.lock().rebuilds += 1;
        // Without it, the next start would begin with the small filter.
        if let Some(sender) = self.sender.upgrade() {
            snapshot::save_later(&self.shared, sender);
        }
        Ok(())
    }
}
