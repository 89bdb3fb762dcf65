//! When a larger filter is built, and how it takes the place of a full one.

use super::super::error::StoreError;
use super::super::grow;
use super::{Build, Built, Writer};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// After a build that failed, the next one waits for so long: what it lacked may be there again.
const PAUSE: Duration = Duration::from_secs(5);

impl Writer {
    /// Begins to build a filter if one is due. It is built on a thread of its own, while changes go on: those that it
    /// needs stay in the log.
    pub(super) fn grow(&mut self) {
        if self.build.as_ref().is_some_and(|build| build.thread.is_finished()) {
            // Its thread panicked: it ends only after its answer was dealt with.
            self.put_off_build();
        }
        let may =
            self.build.is_none() && self.health.is_known() && self.replacing.lets_build() && !self.shared.is_closing();
        let side = self.shared.front.current();
        let later = self.build_after.is_some_and(|after| Instant::now() < after);
        if !may || later || !(self.faulty || side.is_full()) {
            return;
        }
        let keys = self.shared.counters.keys.load(Ordering::Relaxed);
        let capacity = self.shared.options.grown(keys, side.filter.capacity(), !side.overflow.is_empty());
        self.builds += 1;
        let (id, hold, cancel) = (self.builds, self.meta.sequence, Arc::new(AtomicBool::new(false)));
        let job = grow::Job { id, capacity, cancel: Arc::clone(&cancel) };
        match grow::start(Arc::clone(&self.shared), self.sender.clone(), job) {
            Ok(thread) => {
                tracing::info!(keys, capacity, "a larger filter is being built");
                self.build = Some(Build { id, hold, cancel, thread });
            }
            Err(error) => {
                tracing::error!(%error, "the system gave no thread for a larger filter");
                self.put_off_build();
            }
        }
    }

    /// Makes the build that is under way void.
    pub(super) fn cancel_build(&mut self) {
        if let Some(build) = self.build.take() {
            build.cancel.store(true, Ordering::Relaxed);
        }
    }

    fn put_off_build(&mut self) {
        self.build = None;
        self.add_to(|counters| &counters.rebuild_failures, 1);
        self.build_after = Some(Instant::now() + PAUSE);
    }

    /// A filter was built, or was not; says whether it took the place of the present one.
    pub(super) fn rebuilt(&mut self, id: u64, built: Option<Built>) -> bool {
        if self.build.as_ref().is_none_or(|build| build.id != id) {
            return false;
        }
        let done = built.is_some_and(|built| {
            self.install(built).unwrap_or_else(|error| {
                self.sicken(&error);
                false
            })
        });
        if done {
            self.build = None;
        } else {
            self.put_off_build();
            self.look();
        }
        done
    }

    /// No change comes between its last ones and its installation: this is the thread that makes them.
    fn install(&mut self, built: Built) -> Result<bool, StoreError> {
        if !self.health.is_known() {
            return Ok(false);
        }
        let Built { side, sequence } = built;
        let replayed = super::super::changes::replay(&self.shared.store.read()?, sequence, &side)?;
        let keys = self.shared.counters.keys.load(Ordering::Relaxed);
        if replayed.faults > 0 || replayed.sequence != self.meta.sequence || side.len() != keys {
            tracing::error!(?replayed, has = side.len(), keys, "the new filter is not that of the list");
            return Ok(false);
        }
        tracing::info!(keys, capacity = side.filter.capacity(), "a larger filter is in place");
        self.put_in_place(Arc::new(side));
        self.add_to(|counters| &counters.rebuilds, 1);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::open::{Begun, open};
    use crate::list::options::Options;
    use crate::list::store::Store;
    use tokio::sync::{mpsc, oneshot};

    /// A writer that does nothing by itself, and a build that never ends, but for its flag.
    fn building(folder: &tempfile::TempDir) -> (Writer, Arc<AtomicBool>) {
        let options = Options { false_positive_rate: 0.01, overflow_limit: 1, ..Options::of_test(folder.path(), 100) };
        let opener = Store::of_file(&options.store(), options.cache_bytes);
        let Begun { shared, meta, .. } = open(options, opener, |_| {}).unwrap();
        let (sender, commands) = mpsc::channel(1);
        let mut writer = Writer::new(Arc::new(shared), commands, sender.downgrade(), meta, None, false);
        let cancel = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&cancel);
        let thread = std::thread::spawn(move || {
            while !flag.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        writer.build = Some(Build { id: 7, hold: 0, cancel: Arc::clone(&cancel), thread });
        (writer, cancel)
    }

    /// What the build would have made.
    fn built(writer: &Writer) -> Option<Built> {
        let side = writer.shared.side(writer.shared.options.filter_of(200).unwrap());
        Some(Built { side, sequence: 0 })
    }

    #[test]
    fn a_build_takes_the_place_of_the_present_filter() {
        let folder = tempfile::tempdir().unwrap();
        let (mut writer, cancel) = building(&folder);
        let other = built(&writer);
        assert!(!writer.rebuilt(6, other), "another build");
        let built = built(&writer);
        assert!(writer.rebuilt(7, built));
        assert_eq!(writer.shared.front.current().filter.capacity(), 200);
        cancel.store(true, Ordering::Relaxed);
    }

    #[test]
    fn a_build_that_is_not_of_the_list_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (mut writer, cancel) = building(&folder);
        let built = built(&writer).unwrap();
        built.side.insert("a stranger");
        assert!(!writer.rebuilt(7, Some(built)));
        assert_eq!(writer.shared.front.current().filter.capacity(), 100);
        assert_eq!(writer.shared.counters.rebuild_failures.load(Ordering::Relaxed), 1);
        cancel.store(true, Ordering::Relaxed);
    }

    #[test]
    fn a_build_is_void_when_the_store_was_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let (mut writer, cancel) = building(&folder);
        writer.sicken(&redb::Error::PreviousIo.into());
        writer.heal().unwrap();
        assert!(cancel.load(Ordering::Relaxed));
        let built = built(&writer);
        assert!(!writer.rebuilt(7, built));
    }

    #[test]
    fn a_build_is_void_when_the_list_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (mut writer, cancel) = building(&folder);
        let (token, (reply, mut answer)) = (Arc::new(()), oneshot::channel());
        writer.begin(Arc::downgrade(&token), reply);
        writer.begin_waiting_replacement();
        let id = answer.try_recv().unwrap().unwrap();
        writer.reserve(id).unwrap();
        assert!(cancel.load(Ordering::Relaxed));
        let built = built(&writer);
        assert!(!writer.rebuilt(7, built));
        // And none is begun before the replacement is over.
        writer.faulty = true;
        writer.grow();
        assert!(writer.build.is_none());
        drop(token);
        writer.do_chores();
        writer.grow();
        assert!(writer.build.is_some());
        writer.end();
    }
}
