//! A larger filter, built on a thread of its own from the store and the log, while the list changes.

use super::changes::replay;
use super::load::{LoadError, load};
use super::shared::Shared;
use super::snapshot;
use super::store::Meta;
use super::writer::{Built, Command};
use concurrent_cuckoo_filter::BuildError;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use tokio::sync::mpsc::WeakSender;
use tokio::sync::oneshot;

/// With so few changes left, the writer makes the rest.
const FEW_CHANGES: u64 = 1000;

/// What is to be built.
pub(super) struct Job {
    pub(super) id: u64,
    pub(super) capacity: usize,
    pub(super) cancel: Arc<AtomicBool>,
}

/// Why nothing was built.
enum GrowError {
    Load(LoadError),
    Filter(BuildError),
    Faults,
}

impl<E: Into<LoadError>> From<E> for GrowError {
    fn from(error: E) -> Self {
        GrowError::Load(error.into())
    }
}

pub(super) fn start(shared: Arc<Shared>, sender: WeakSender<Command>, job: Job) -> io::Result<JoinHandle<()>> {
    Builder::new().name("list-grow".into()).spawn(move || {
        let built = match build(&shared, &job) {
            Ok(built) => Some(built),
            Err(error) => {
                match error {
                    GrowError::Load(LoadError::Cancelled) => tracing::debug!("a larger filter is not needed any more"),
                    GrowError::Load(error) => tracing::error!(%error, "no larger filter was built"),
                    GrowError::Filter(error) => tracing::error!(%error, "no larger filter was built"),
                    GrowError::Faults => tracing::error!("no larger filter was built: the log is not that of the list"),
                }
                None
            }
        };
        let Some(sender) = sender.upgrade() else { return };
        let (reply, answer) = oneshot::channel();
        let sent = sender.blocking_send(Command::Rebuilt(job.id, built, reply));
        if sent.is_ok() && answer.blocking_recv() == Ok(true) {
            // Without it, the next start begins with the small filter. It says itself what goes wrong.
            let _ = snapshot::save(&shared, &sender);
        }
    })
}

fn build(shared: &Shared, job: &Job) -> Result<Built, GrowError> {
    let side = shared.side(shared.options.filter_of(job.capacity).map_err(GrowError::Filter)?);
    let mut sequence = {
        let transaction = shared.store.read()?;
        let meta = Meta::read(&transaction)?;
        load(&transaction, meta.current, &side, &job.cancel, |_| {})?;
        meta.sequence
    };
    loop {
        let replayed = replay(&shared.store.read()?, sequence, &side)?;
        sequence = replayed.sequence;
        if job.cancel.load(Ordering::Relaxed) {
            return Err(GrowError::Load(LoadError::Cancelled));
        }
        if replayed.faults > 0 {
            return Err(GrowError::Faults);
        }
        if replayed.changes < FEW_CHANGES {
            return Ok(Built { side, sequence });
        }
    }
}
