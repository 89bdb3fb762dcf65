//! What the tests of the whole list share.

use risk_server::list::{Change, List, OpenError, Opened, Options};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

pub(crate) fn options(folder: &Path, capacity: usize) -> Options {
    Options {
        folder: folder.to_owned(),
        capacity,
        false_positive_rate: 0.001,
        overflow_limit: 100_000,
        cache_bytes: 1 << 22,
    }
}

pub(crate) fn key(number: u64) -> String {
    format!("{number:x}.example")
}

pub(crate) fn boxed(number: u64) -> Box<str> {
    key(number).into()
}

pub(crate) fn put(number: u64) -> Change {
    Change::Put(boxed(number))
}

pub(crate) fn delete(number: u64) -> Change {
    Change::Delete(boxed(number))
}

/// Opens a list; one that was dropped just before may still be letting go of its file.
pub(crate) fn open(options: &Options) -> Opened {
    loop {
        match List::open(options.clone(), |_| {}) {
            Ok(opened) => return opened,
            Err(OpenError::InUse { .. }) => thread::sleep(Duration::from_millis(1)),
            Err(error) => panic!("{error}"),
        }
    }
}

/// The store and the front are those of the model, whose keys are below `most`.
pub(crate) fn check(list: &List, model: &BTreeSet<u64>, most: u64) {
    let stats = list.stats();
    assert_eq!(stats.keys, model.len() as u64, "the count of keys");
    assert_eq!(stats.filter.len + stats.overflow_keys, stats.keys, "each key is in the front once: {stats:?}");
    assert_eq!(stats.filter_faults, 0, "{stats:?}");
    let keys: Vec<String> = (0..most).map(key).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let mut may = vec![false; keys.len()];
    list.may_be_listed_batch(&keys, &mut may);
    let listed = list.confirm(&keys).unwrap();
    for (number, (may, listed)) in (0..).zip(may.into_iter().zip(listed)) {
        assert_eq!(listed, model.contains(&number), "{number} in the store");
        assert!(may || !listed, "{number} is on the list, and the front says no");
        assert!(!listed || list.may_be_listed(&key(number)), "{number} is on the list, and the front says no");
    }
}

/// Runs `work` while threads look keys up that are on the list all the time: none is ever answered "no".
pub(crate) fn while_asked<T>(list: &List, stable: &[u64], work: impl FnOnce() -> T) -> T {
    let stable: Vec<String> = stable.iter().copied().map(key).collect();
    let stable: Vec<&str> = stable.iter().map(String::as_str).collect();
    let (end, rounds) = (AtomicBool::new(false), [const { AtomicU64::new(0) }; 3]);
    let ask_front = || {
        for key in &stable {
            assert!(list.may_be_listed(key), "{key}");
        }
    };
    let ask_batch = || {
        let mut answers = vec![false; stable.len()];
        list.may_be_listed_batch(&stable, &mut answers);
        assert!(answers.into_iter().all(|answer| answer));
    };
    let ask_store = || assert!(list.confirm(&stable).unwrap().into_iter().all(|answer| answer));
    thread::scope(|scope| {
        let asking: [&(dyn Fn() + Sync); 3] = [&ask_front, &ask_batch, &ask_store];
        for (ask, round) in asking.into_iter().zip(&rounds) {
            let end = &end;
            scope.spawn(move || {
                // Nobody waits for the rounds of a thread that panicked.
                let _counts = Rounds(round);
                while !end.load(Ordering::Acquire) {
                    ask();
                    round.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let _ends = Ends(&end);
        let result = work();
        until(|| rounds.iter().all(|round| round.load(Ordering::Relaxed) >= 10));
        result
    })
}

/// Makes the rounds many when it goes, by a panic or at the end.
struct Rounds<'a>(&'a AtomicU64);

impl Drop for Rounds<'_> {
    fn drop(&mut self) {
        self.0.store(u64::MAX, Ordering::Relaxed);
    }
}

/// Lets threads end when it goes, even by a panic.
pub(crate) struct Ends<'a>(pub(crate) &'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Waits for what goes on in the background.
pub(crate) fn until(mut done: impl FnMut() -> bool) {
    while !done() {
        thread::sleep(Duration::from_millis(1));
    }
}
