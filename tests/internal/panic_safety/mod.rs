//! A thread that dies in a critical section, by a panic, leaves the filter usable: nothing stays locked, no other key is lost, and
//! all further operations work. Threads are killed at each of their steps, by a panic in `sys::steps::reached`; the crate has no
//! other reason to panic there.
//!
//! Each operation runs first to its end, and its steps are recorded. Then it runs again on a filter built in the same way, killed
//! at its first step, again at its second, and so on. For operations on thousands of keys, some steps are chosen.

mod operations;

use crate::CuckooFilter;
use crate::internal::stalled_writer::{ABSENT, Filter, PATIENCE};
use crate::layout::{self, Mixed};
use crate::raw::Growing;
use crate::sys::steps::{Step, with_hook};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::BTreeMap;
use std::env;
use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;

/// The payload of the panic. Not by `panic!`, which would print each of them.
struct Killed;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Effect {
    Nothing,
    Adds,
    Removes,
}

#[derive(Clone, Copy, Debug)]
enum By {
    Thread,
    Pool(usize),
}

/// An operation on a filter that holds these hashes.
#[derive(Clone)]
struct Scenario {
    name: &'static str,
    width: u32,
    build: fn(u32, &[u64]) -> Filter,
    stored: Vec<u64>,
    /// The hashes that the operation inserts or removes.
    own: Vec<u64>,
    effect: Effect,
    by: By,
    work: fn(&Filter, &[u64]),
}

/// The shard, the fingerprint and the two buckets.
pub(super) type Class = (usize, u32, u32, u32);

pub(super) fn class<S>(filter: &CuckooFilter<u64, S>, hash: u64) -> Class {
    let (shard, key) = place(filter, hash);
    let layout::Class { fingerprint, first, second } = key.lower_first();
    (shard, fingerprint.get(), first.get(), second.get())
}

/// The shard of a hash, or its cell in a growing filter, and its class there.
pub(super) fn place<S>(filter: &CuckooFilter<u64, S>, hash: u64) -> (usize, layout::Class) {
    let mixed = Mixed::of(hash);
    let in_growing = |growing: &Growing| (growing.cell_place(mixed).cell, growing.cell_place(mixed).class);
    filter.raw.growing().map_or_else(|| filter.raw.geometry().locate(mixed), in_growing)
}

fn copies<'a>(filter: &Filter, hashes: impl IntoIterator<Item = &'a u64>) -> BTreeMap<Class, usize> {
    hashes.into_iter().map(|&hash| (class(filter, hash), filter.hashed().count(&hash) as usize)).collect()
}

impl Scenario {
    /// Runs the operation with `hook` called at each step of any of its threads, and returns whether it was killed.
    fn run(&self, filter: &Arc<Filter>, hook: impl Fn(Step) + Clone + Send + 'static) -> bool {
        let (work, own, filter) = (self.work, self.own.clone(), Arc::clone(filter));
        let result = match self.by {
            By::Thread => thread::spawn(move || with_hook(hook, || work(&filter, &own))).join(),
            By::Pool(threads) => {
                let pool = hooked_pool(threads, hook);
                thread::spawn(move || pool.install(|| work(&filter, &own))).join()
            }
        };
        match result {
            Ok(()) => false,
            Err(panic) if panic.is::<Killed>() => true,
            Err(panic) => resume_unwind(panic),
        }
    }

    fn new_filter(&self) -> Arc<Filter> {
        Arc::new((self.build)(self.width, &self.stored))
    }

    /// Kills the operation at each step, or at some of many, and returns the steps at which it was killed.
    fn kill_everywhere(&self) -> Vec<Step> {
        let noted = Arc::new(Mutex::new(Vec::new()));
        let note = Arc::clone(&noted);
        assert!(!self.run(&self.new_filter(), move |step| note.lock().unwrap().push(step)));
        let steps = std::mem::take(&mut *noted.lock().unwrap());
        let chosen = chosen(&steps);
        for &at in &chosen {
            self.within_patience(at);
        }
        chosen.into_iter().map(|at| steps[at]).collect()
    }

    /// Kills the operation at this step, in a thread that must end.
    fn within_patience(&self, at: usize) {
        let (done, ended) = channel();
        let scenario = self.clone();
        let watched = thread::spawn(move || {
            scenario.kill_at(at);
            done.send(()).unwrap();
        });
        let ended = ended.recv_timeout(PATIENCE);
        let named = || format!("{} at {} bits by {:?}, killed at step {at}", self.name, self.width, self.by);
        assert_ne!(ended, Err(RecvTimeoutError::Timeout), "{} hangs", named());
        if let Err(panic) = watched.join() {
            eprintln!("{}:", named());
            resume_unwind(panic);
        }
    }

    fn kill_at(&self, at: usize) {
        let filter = self.new_filter();
        let hashes: Vec<u64> = self.stored.iter().chain(&self.own).copied().collect();
        let before = copies(&filter, &hashes);
        let found_before: Vec<bool> = ABSENT.map(|hash| filter.hashed().contains(&hash)).collect();
        let passed = Arc::new(Mutex::new(Vec::new()));
        let note = Arc::clone(&passed);
        let kill = move |step| {
            let number = {
                let mut passed = note.lock().unwrap();
                passed.push(step);
                passed.len() - 1
            };
            if number == at {
                resume_unwind(Box::new(Killed));
            }
        };
        assert!(self.run(&filter, kill), "the panic reaches the caller");
        // Other threads continue with their shards.
        let passed = passed.lock().unwrap()[..=at].to_vec();

        // Where slots straddle words, a slot that is half written may look like any fingerprint.
        let grows = filter.raw.growing().is_some();
        let torn = passed[at] == Step::WordWritten && (grows || !matches!(self.width, 4 | 8 | 16 | 32));
        let after = self.check_copies(&filter, &hashes, &before, &passed);
        for (hash, found) in ABSENT.zip(found_before) {
            let may_be_found = torn || self.own.iter().any(|&own| class(&filter, own) == class(&filter, hash));
            assert!(may_be_found || filter.hashed().contains(&hash) == found, "absent hash {hash}");
        }
        if grows && !torn {
            grows_on(&filter, &hashes);
        }
        works(&filter, &hashes, &after);
        check_emptied(&filter, &self.stored);
    }

    /// Every copy of every other key is present, and no copy of the operation's keys is gone that it did not remove.
    fn check_copies(
        &self,
        filter: &Filter,
        hashes: &[u64],
        before: &BTreeMap<Class, usize>,
        passed: &[Step],
    ) -> BTreeMap<Class, usize> {
        let mut own = BTreeMap::new();
        for &hash in &self.own {
            *own.entry(class(filter, hash)).or_insert(0) += 1;
        }
        let after = copies(filter, hashes);
        let mut surplus = 0;
        for (class, &copies) in before {
            let own = own.get(class).copied().unwrap_or(0);
            let expected = match self.effect {
                Effect::Nothing => copies..=copies,
                Effect::Adds => copies..=copies + own,
                Effect::Removes => copies.saturating_sub(own)..=copies,
            };
            let now = after[class];
            assert!(*expected.start() <= now, "{now} copies of {class:?}, not {expected:?}");
            surplus += now.saturating_sub(*expected.end());
        }
        // Both copies of an interrupted relocation stay.
        let amid_a_move = matches!(passed.last(), Some(Step::WordWritten | Step::Copied | Step::Bumped));
        assert!(surplus <= usize::from(amid_a_move), "{surplus} copies that no thread stored");
        if let ([own], Effect::Adds | Effect::Removes) = (&self.own[..], self.effect) {
            let own = class(filter, *own);
            let changed = before[&own] != after[&own];
            assert!(changed || !passed.contains(&Step::Counted), "what was counted was done");
            let written = passed.contains(&Step::WordWritten);
            assert!(!changed || written, "what was not written was not done");
        }
        after
    }
}

/// A pool whose threads call the hook at each step.
pub(super) fn hooked_pool(threads: usize, hook: impl Fn(Step) + Clone + Send + 'static) -> ThreadPool {
    let spawn = |thread: rayon::ThreadBuilder| {
        let hook = hook.clone();
        thread::Builder::new().spawn(move || with_hook(hook, || thread.run())).map(drop)
    };
    ThreadPoolBuilder::new().num_threads(threads).spawn_handler(spawn).build().unwrap()
}

/// Whether more steps of operations on thousands of keys are tested: with `CUCKOO_FULL=1`.
fn is_full() -> bool {
    env::var_os("CUCKOO_FULL").is_some()
}

/// All steps, or some of many, among them the first, the middle and the last one of each kind.
fn chosen(steps: &[Step]) -> Vec<usize> {
    let most = if is_full() { 400 } else { 40 };
    if steps.len() <= most {
        return (0..steps.len()).collect();
    }
    let mut chosen: Vec<usize> = (0..steps.len()).step_by(steps.len() / most).collect();
    use Step::{Bumped, Cleared, Copied, Counted, Locked, Published, WordWritten};
    for kind in [Locked, WordWritten, Copied, Published, Bumped, Cleared, Counted] {
        let places: Vec<usize> = (0..steps.len()).filter(|&at| steps[at] == kind).collect();
        chosen.extend(places.first().into_iter().chain(places.get(places.len() / 2)).chain(places.last()));
    }
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

/// Inserts as many keys again, by splits of tables of which one was interrupted, checks that each is where it belongs, and removes
/// them.
fn grows_on(filter: &Filter, hashes: &[u64]) {
    let tables = filter.stats().tables;
    let more: Vec<u64> = (1 << 50..).take(2 * hashes.len()).collect();
    let mut expected = copies(filter, hashes.iter().chain(&more));
    for &hash in &more {
        assert_eq!(filter.hashed().insert(&hash), Ok(()));
        *expected.get_mut(&class(filter, hash)).unwrap() += 1;
    }
    assert!(filter.stats().tables > tables);
    assert_eq!(copies(filter, hashes.iter().chain(&more)), expected);
    assert!(more.iter().all(|&hash| filter.hashed().remove(&hash)));
}

/// Runs every operation on every key, and so on every stripe, by a thread that was not killed. A removed copy can be inserted
/// again, and the filter can be written and read, with the same contents.
fn works(filter: &Filter, hashes: &[u64], copies: &BTreeMap<Class, usize>) {
    for &hash in hashes {
        let copies = copies[&class(filter, hash)];
        assert_eq!(filter.hashed().contains(&hash), copies > 0, "hash {hash}");
        if copies > 0 {
            assert_eq!(filter.hashed().insert_unique(&hash), Ok(false));
            assert!(filter.hashed().remove(&hash));
            assert_eq!(filter.hashed().count(&hash) as usize, copies - 1);
            assert_eq!(filter.hashed().contains(&hash), copies > 1, "hash {hash}");
            assert_eq!(filter.hashed().insert(&hash), Ok(()));
            assert_eq!(filter.hashed().count(&hash) as usize, copies);
        }
    }
    let read = if filter.raw.growing().is_some() {
        filter.clone()
    } else {
        let mut bytes = Vec::new();
        filter.write_to(&mut bytes).unwrap();
        Filter::read_from(&bytes[..], filter.hasher().clone()).unwrap()
    };
    assert!(hashes.iter().all(|&hash| read.hashed().count(&hash) == filter.hashed().count(&hash)));
    assert_eq!(filter.len(), read.len(), "the count is mended");
}

/// A clear removes everything that a crash has left.
fn check_emptied(filter: &Filter, stored: &[u64]) {
    filter.clear();
    assert!(filter.is_empty() && stored.iter().all(|&hash| !filter.hashed().contains(&hash)));
    assert_eq!(filter.hashed().insert_batch(stored).refused, []);
    assert_eq!(filter.len(), stored.len());
    let copies = copies(filter, stored);
    assert_eq!(copies.values().sum::<usize>(), stored.len());
    assert!(copies.values().all(|&copies| copies > 0));
    assert!(filter.hashed().remove_batch(stored).missing.is_empty());
    assert!(filter.is_empty());
}

fn filter_of_thousands(width: u32, stored: &[u64]) -> Filter {
    let filter = CuckooFilter::builder().capacity(5000).fingerprint_bits(width).stripes(16).build().unwrap();
    assert_eq!((filter.config().shards, filter.hashed().insert_batch(stored).refused), (1, vec![]));
    filter
}

/// A filter in which threads work on several shards at the same time.
fn filter_of_shards(width: u32, stored: &[u64]) -> Filter {
    let filter = CuckooFilter::builder().capacity(500_000).fingerprint_bits(width).build().unwrap();
    assert!(filter.config().shards > 1);
    assert_eq!(filter.hashed().insert_batch(stored).refused, []);
    filter
}
