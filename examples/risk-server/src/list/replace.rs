//! A whole new list in place of the present one.

use super::change::first_bad_key;
use super::error::ReplaceError;
use super::load::{LoadError, load};
use super::shared::Shared;
use super::snapshot;
use super::store::count;
use super::writer::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;

/// Keys that are gathered for one transaction, and their bytes, about. Where a list is large and its keys come in no
/// order, each key of a small transaction costs a page of the table; in a large one, sorted, many share a page.
const GATHERED_KEYS: usize = 1 << 17;
const GATHERED_BYTES: usize = 1 << 23;

/// A whole new list on its way, made by [`List::begin_replacement`](super::List::begin_replacement). It is one change,
/// made by [`commit`](Replacement::commit): until then the present list is asked and changed as ever, and what was
/// changed meanwhile is gone with it. Dropped without a commit, a replacement changes nothing.
#[derive(Debug)]
pub struct Replacement {
    shared: Arc<Shared>,
    sender: Sender<Command>,
    id: u64,
    /// Keys that the writer does not have yet, and their bytes.
    gathered: Vec<Box<str>>,
    bytes: usize,
    token: Token,
}

/// While it is there, the replacement is under way.
#[derive(Debug)]
struct Token {
    /// An option, so that it is gone when the writer is told to look.
    held: Option<Arc<()>>,
    sender: Sender<Command>,
}

impl Drop for Token {
    fn drop(&mut self) {
        self.held = None;
        // If the writer has so much to do that this does not fit, it looks all the same.
        let _ = self.sender.try_send(Command::Look);
    }
}

/// A list that took the place of another one.
#[derive(Clone, Copy, Debug)]
pub struct Replaced {
    /// Keys on the new list.
    pub keys: u64,
    /// How long the commit took.
    pub took: Duration,
}

impl Replacement {
    pub(super) async fn begin(shared: Arc<Shared>, sender: Sender<Command>) -> Result<Self, ReplaceError> {
        let held = Arc::new(());
        let (weak, (reply, answer)) = (Arc::downgrade(&held), oneshot::channel());
        let token = Token { held: Some(held), sender: sender.clone() };
        sender.send(Command::Begin(weak, reply)).await.map_err(|_| ReplaceError::Closed)?;
        let id = answer.await.map_err(|_| ReplaceError::Closed)??;
        Ok(Replacement { shared, sender, id, gathered: Vec::new(), bytes: 0, token })
    }

    /// Adds keys to the new list, some thousands at a time. A key that is added twice counts once.
    ///
    /// # Errors
    /// [`ReplaceError::Key`] if one of them is no key; then none was added, and others may be. After any other error
    /// the replacement cannot be committed any more.
    pub async fn add(&mut self, keys: Vec<Box<str>>) -> Result<(), ReplaceError> {
        if let Some((index, error)) = first_bad_key(keys.iter().map(|key| &**key)) {
            return Err(ReplaceError::Key { index, error });
        }
        self.bytes += keys.iter().map(|key| key.len()).sum::<usize>();
        self.gathered.extend(keys);
        if self.gathered.len() < GATHERED_KEYS && self.bytes < GATHERED_BYTES {
            return Ok(());
        }
        let (reply, answer) = oneshot::channel();
        // First the place, then the keys: if this future is dropped while it waits, they are still here.
        let place = self.sender.clone().reserve_owned().await.map_err(|_| ReplaceError::Closed)?;
        place.send(Command::Add(self.id, self.take_gathered(), reply));
        answer.await.map_err(|_| ReplaceError::Closed)?
    }

    fn take_gathered(&mut self) -> Vec<Box<str>> {
        self.bytes = 0;
        std::mem::take(&mut self.gathered)
    }

    /// Lets the new list take the place of the present one: at no moment is a key on both answered "no". It goes on if
    /// its future is dropped.
    ///
    /// # Errors
    /// See [`ReplaceError`]. But for [`ReplaceError::InDoubt`], the list is as it was.
    pub async fn commit(self) -> Result<Replaced, ReplaceError> {
        // A thread that may block: a filter is built, and changes go on meanwhile.
        tokio::task::spawn_blocking(move || self.commit_blocking()).await.map_err(|_| ReplaceError::Closed)?
    }

    fn commit_blocking(mut self) -> Result<Replaced, ReplaceError> {
        let begun = Instant::now();
        let rest = self.take_gathered();
        if !rest.is_empty() {
            self.ask(|reply| Command::Add(self.id, rest, reply))?;
        }
        let meta = self.ask(|reply| Command::Reserve(self.id, reply))?;
        let side = {
            let transaction = self.shared.store.read().map_err(ReplaceError::Store)?;
            let keys = count(&transaction, meta.spare()).map_err(ReplaceError::Store)?;
            let side = self.shared.side(self.shared.options.filter_for(keys)?);
            load(&transaction, meta.spare(), &side, &self.shared.closing, |_| {})?;
            side
        };
        let keys = self.ask(|reply| Command::Switch(self.id, side, reply))?;
        let took = begun.elapsed();
        tracing::info!(keys, ?took, "the list was replaced");
        let Replacement { shared, sender, token, .. } = self;
        drop(token);
        // Until it is saved, a start loads the filter from the store.
        snapshot::save_later(shared, sender);
        Ok(Replaced { keys, took })
    }

    fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, ReplaceError>>) -> Command,
    ) -> Result<T, ReplaceError> {
        let (reply, answer) = oneshot::channel();
        self.sender.blocking_send(command(reply)).map_err(|_| ReplaceError::Closed)?;
        answer.blocking_recv().map_err(|_| ReplaceError::Closed)?
    }
}

impl From<LoadError> for ReplaceError {
    fn from(error: LoadError) -> Self {
        match error {
            // Only a list that is being closed sets the flag.
            LoadError::Cancelled => ReplaceError::Closed,
            LoadError::Store(error) => ReplaceError::Store(error),
            LoadError::Thread(error) => ReplaceError::Thread(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::open::{Begun, open};
    use super::super::options::Options;
    use super::super::store::Store;
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn keys_stay_when_adding_them_is_given_up_while_the_writer_is_busy() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::of_test(folder.path(), 10);
        let opener = Store::of_file(&options.store(), options.cache_bytes);
        let Begun { shared, .. } = open(options, opener, |_| {}).unwrap();
        let (sender, mut commands) = tokio::sync::mpsc::channel(1);
        sender.try_send(Command::Look).unwrap();
        let token = Token { held: None, sender: sender.clone() };
        let gathered: Vec<Box<str>> = (1..GATHERED_KEYS).map(|number| number.to_string().into()).collect();
        let mut replacement = Replacement { shared: Arc::new(shared), sender, id: 1, gathered, bytes: 0, token };

        assert!(replacement.add(vec!["last".into()]).now_or_never().is_none(), "it waits");
        assert_eq!(replacement.gathered.len(), GATHERED_KEYS);
        commands.try_recv().unwrap();
        assert!(replacement.add(vec!["more".into()]).now_or_never().is_none(), "it waits for the answer");
        let Ok(Command::Add(1, keys, _)) = commands.try_recv() else { panic!("nothing was sent") };
        assert_eq!(keys.len(), GATHERED_KEYS + 1);
    }
}
