//! What every model has: a tiny filter, keys by their place, and the runner that counts.

use crate::batch::lookup_batch;
use crate::layout::{Bucket, Class, Fingerprint, Geometry, Hop, Mixed, Plan};
use crate::raw::{Fixed, Observed, Put, RawFilter, Shard};
use crate::sys::memory::HugePages;
use crate::sys::steps::{Step, with_hook};
use loom::thread::{Builder, JoinHandle};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A filter of one shard. `std`'s `Arc` shares it: three times fewer states than loom's.
pub(super) struct World {
    pub(super) raw: RawFilter,
}

/// A table of this many buckets, rounded up to an even number. A stripe is `1 << stripe_shift` buckets, which must be
/// whole words.
pub(super) fn plan(width: u32, buckets: u32, stripe_shift: u32) -> Plan {
    assert_eq!(((4 * width) << stripe_shift) % 64, 0, "a stripe must begin at a word");
    Plan::one_shard(width, buckets.next_multiple_of(2), stripe_shift)
}

impl World {
    pub(super) fn new(width: u32, buckets: u32, stripe_shift: u32) -> Arc<Self> {
        Arc::new(World::from_plan(&plan(width, buckets, stripe_shift)))
    }

    fn from_plan(plan: &Plan) -> Self {
        World { raw: RawFilter::new(plan, HugePages::Unadvised).expect("memory") }
    }

    /// With these words, in which `count` fingerprints are stored, as when a snapshot is loaded.
    pub(super) fn loaded(plan: &Plan, words: impl Iterator<Item = u64>, count: u64) -> Self {
        let world = World::from_plan(plan);
        world.shard().fill_with(words, count);
        world
    }

    pub(super) fn shard(&self) -> Shard<'_> {
        self.raw.flat().at(0)
    }

    pub(super) fn plan(&self) -> &Plan {
        self.raw.plan()
    }

    fn mixed(&self, key: Class) -> Mixed {
        self.raw.geometry().leading_to(key).unwrap_or_else(|| panic!("no hash leads to {key:?}"))
    }

    pub(super) fn contains(&self, key: Class) -> bool {
        self.raw.contains(self.mixed(key))
    }

    /// As a process that may only read the memory.
    pub(super) fn contains_by_fences(&self, key: Class) -> bool {
        Observed::of(&self.raw.flat().shards).contains(self.mixed(key))
    }

    /// Looks the keys up in a batch.
    pub(super) fn contains_each<const KEYS: usize>(&self, keys: [Class; KEYS]) -> [bool; KEYS] {
        let (keys, mut found) = (keys.map(|key| self.mixed(key)), [false; KEYS]);
        lookup_batch(&self.raw, &keys, |&mixed| mixed, &mut found);
        found
    }

    /// Inserts under the locks of the pair if there is room; returns whether there was.
    pub(super) fn insert(&self, key: Class) -> bool {
        let Ok(result) = self.shard().insert_into_pair(Fixed, key, Put::COPY);
        match result {
            Some(Ok(0)) => true,
            None => false,
            Some(other) => panic!("a copy was refused: {other:?}"),
        }
    }

    /// Inserts into the first bucket of the key under the lock of its stripe, as insertions do that have seen room there;
    /// returns whether there was.
    pub(super) fn insert_into_first(&self, key: Class) -> bool {
        let Ok(stored) = self.shard().insert_into(Fixed, key.first, key, 1);
        stored
    }

    /// `None` if the pair is full.
    pub(super) fn insert_unique(&self, key: Class) -> Option<bool> {
        let Ok(result) = self.shard().insert_into_pair(Fixed, key, Put::UNIQUE);
        result.map(|result| result.expect("no refusal") == 0)
    }

    /// Carries a path out for the key; `None` if it was spoiled.
    pub(super) fn carry_out(&self, path: &[Hop], key: Class, put: Put) -> Option<bool> {
        let Ok(result) = self.shard().carry_out(Fixed, path.iter().copied(), key, put);
        result.map(|result| result.expect("no refusal") == 0)
    }

    pub(super) fn hop(&self, hop: Hop) -> bool {
        self.shard().hop(hop)
    }

    pub(super) fn remove(&self, key: Class) -> bool {
        let Ok(removed) = self.shard().remove(Fixed, key, None);
        removed != 0
    }

    pub(super) fn remove_all(&self, key: Class) -> usize {
        let Ok(copies) = self.shard().remove_all(Fixed, key);
        copies
    }

    pub(super) fn count(&self, key: Class) -> usize {
        let Ok(copies) = self.shard().count(Fixed, key);
        copies
    }

    /// Puts the key into its first bucket.
    pub(super) fn put(&self, key: Class) {
        assert!(self.insert_into_first(key));
    }

    /// Puts keys that have no other bucket into the lowest empty slots of this one, with fingerprints from `from` on.
    pub(super) fn fill(&self, bucket: u32, slots: u32, from: u32) {
        for fingerprint in from..from + slots {
            assert!(self.insert(key(fingerprint, bucket, bucket)));
        }
    }

    /// Checks what must hold once all threads have ended: the copies of each class, their sum, and where they are counted.
    pub(super) fn assert_holds(&self, classes: &[(Class, usize)], others: u64) {
        self.assert_sum_holds(classes, others);
        self.shard().assert_counted_where_they_belong();
    }

    /// The same for a shard that was loaded or cleared: of its counts, only the sum means anything.
    pub(super) fn assert_sum_holds(&self, classes: &[(Class, usize)], others: u64) {
        for &(class, copies) in classes {
            assert_eq!(self.count(class), copies, "copies of {class:?}");
            // Some models are of classes that no key has.
            if self.raw.geometry().leading_to(class).is_some() {
                assert_eq!(self.contains(class), copies > 0, "the lookup of {class:?} agrees with its count");
            }
        }
        let sum: usize = classes.iter().map(|&(_, copies)| copies).sum();
        assert_eq!(self.shard().len(), sum as u64 + others, "the count is the number of stored copies");
    }
}

/// A class by its place. `first` is where it is put and looked for first.
pub(super) fn key(fingerprint: u32, first: u32, second: u32) -> Class {
    let fingerprint = Fingerprint::from_slot(fingerprint).expect("not 0");
    Class { fingerprint, first: Bucket::new(first), second: Bucket::new(second) }
}

/// Key number `number` of those that lie in these buckets of a table.
pub(super) fn key_in(plan: &Plan, number: usize, first: u32, second: u32) -> Class {
    let (geometry, fingerprints) = (Geometry::new(plan), u32::MAX >> (32 - plan.fingerprint_bits));
    let leads_there = |&fingerprint: &u32| {
        let fingerprint = Fingerprint::from_slot(fingerprint).expect("not 0");
        geometry.alternate(fingerprint, Bucket::new(first)).get() == second
    };
    // With bits at both ends, so that both parts of a slot that straddles hold some.
    let from = 0xa5ca_5ca5 >> (32 - plan.fingerprint_bits);
    let both_ends = (from..=fingerprints).filter(|fingerprint| fingerprint & 0xf != 0);
    let fingerprint = both_ends.chain(1..from).filter(leads_there).nth(number);
    key(fingerprint.expect("some fingerprints lead there"), first, second)
}

/// The move of a key from its first candidate to its second.
pub(super) fn hop(key: Class) -> Hop {
    Hop { fingerprint: key.fingerprint, from: key.first, to: key.second }
}

/// A lookup that reads the source of the move first never has to repeat: if it saw the slot cleared, it sees the copy.
pub(super) fn outcomes(looked_up: Class, moved: Class) -> &'static [&'static str] {
    if looked_up.first == moved.second { &["found", "repeated"] } else { &["found"] }
}

/// What was seen, over all executions of a model.
#[derive(Clone, Default)]
pub(super) struct Seen(Arc<Mutex<BTreeMap<String, usize>>>);

impl Seen {
    pub(super) fn note(&self, outcome: impl Into<String>) {
        *self.map().entry(outcome.into()).or_default() += 1;
    }

    /// Notes by name which of two threads won, and counts the wins of each. Fails with the `rule` unless exactly one won.
    pub(super) fn one_winner(&self, names: [&str; 2], won: (bool, bool), rule: &str) -> [usize; 2] {
        let wins = [won.0, won.1].map(usize::from);
        assert_eq!(wins.iter().sum::<usize>(), 1, "{rule}");
        self.note(names[wins[1]]);
        wins
    }

    fn map(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// A model: how much of it there is to explore, and what must come up.
pub(super) struct Model {
    /// Executions of the committed code. At least 90 % must be explored.
    pub(super) executions: usize,
    /// How many preemptions an execution may have, where all of them would take too long; the model says so as it ends.
    pub(super) preemptions: Option<usize>,
    /// Outcomes that must have been noted at least once; "repeated" is a lookup that began again.
    pub(super) outcomes: &'static [&'static str],
}

impl Model {
    pub(super) fn explore(self, body: impl Fn(&Seen) + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = self.preemptions;
        builder.max_branches = 10_000;
        let (seen, repeated, each) = (Seen::default(), Seen::default(), Seen::default());
        let (inside, count) = (seen.clone(), each.clone());
        // In the execution that runs.
        let again = Arc::new(AtomicUsize::new(0));
        let hook = {
            let (repeated, again) = (repeated.clone(), Arc::clone(&again));
            move |step| {
                if step == Step::Repeated {
                    let times = again.fetch_add(1, Ordering::Relaxed) + 1;
                    repeated.note(if times == 1 { "repeated" } else { "repeated twice" });
                }
            }
        };
        with_hook(hook, || {
            builder.check(move || {
                again.store(0, Ordering::Relaxed);
                count.note("execution");
                body(&inside);
            });
        });
        // The runner of tests names the thread of each.
        let thread = std::thread::current();
        let name = thread.name().and_then(|path| path.rsplit("::").next()).expect("the thread of a test");
        let executions = each.map().get("execution").copied().unwrap_or_default();
        let mut outcomes = seen.map().clone();
        outcomes.append(&mut repeated.map());
        let bound = self.preemptions.map(|most| format!(", at most {most} preemptions")).unwrap_or_default();
        println!("model {name:<60} {executions:>8} executions (committed {}{bound})  {outcomes:?}", self.executions);
        for &outcome in self.outcomes {
            assert!(outcomes.contains_key(outcome), "{name}: never seen: {outcome}");
        }
        assert!(
            executions * 10 >= self.executions * 9,
            "{name}: {executions} executions explored, {} committed",
            self.executions
        );
    }
}

/// A model in which two threads are spawned in one order, and in the other, with the executions of each.
pub(super) fn in_both_orders(
    executions: [usize; 2],
    outcomes: &'static [&'static str],
    body: impl Fn(&Seen, bool) + Copy + Send + Sync + 'static,
) {
    for (swapped, executions) in [false, true].into_iter().zip(executions) {
        Model { executions, preemptions: None, outcomes }.explore(move |seen| body(seen, swapped));
    }
}

/// Runs two threads on a world, spawned in this order or `swapped`: loom's reduction depends on who is first. Returns what
/// each returned. A thread that only joins afterwards sees all that they did.
pub(super) fn run_two<W: Clone + Send + 'static, A: Send + 'static, B: Send + 'static>(
    world: &W,
    swapped: bool,
    one: impl FnOnce(&W) -> A + Send + 'static,
    other: impl FnOnce(&W) -> B + Send + 'static,
) -> (A, B) {
    let (here, there) = (world.clone(), world.clone());
    let (one, other) = (move || one(&here), move || other(&there));
    if swapped {
        let (other, one) = (spawn(other), spawn(one));
        let other = join(other);
        (join(one), other)
    } else {
        let (one, other) = (spawn(one), spawn(other));
        (join(one), join(other))
    }
}

/// Runs three threads on a world, spawned in this order.
pub(super) fn run_three<W: Clone + Send + 'static, A: Send + 'static, B: Send + 'static, C: Send + 'static>(
    world: &W,
    first: impl FnOnce(&W) -> A + Send + 'static,
    second: impl FnOnce(&W) -> B + Send + 'static,
    third: impl FnOnce(&W) -> C + Send + 'static,
) -> (A, B, C) {
    let [one, two, three] = [(); 3].map(|()| world.clone());
    let (first, second) = (spawn(move || first(&one)), spawn(move || second(&two)));
    let third = spawn(move || third(&three));
    (join(first), join(second), join(third))
}

pub(super) fn spawn<R: Send + 'static>(thread: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    // In words. A search in a build without optimisation, as that of a tooth is, takes more than loom gives.
    Builder::new().stack_size(1 << 17).spawn(thread).expect("a thread")
}

pub(super) fn join<R>(thread: JoinHandle<R>) -> R {
    thread.join().expect("no thread panics")
}

/// The body of a model: a copy of the class that the lookup has not read yet, and then `more` of them, the first of them
/// where it has read already; `remove` takes all. A reader that missed the class does not find it again.
pub(super) fn removal_is_one_event(
    seen: &Seen,
    class: Class,
    more: usize,
    remove: impl FnOnce(&World) + Send + 'static,
) {
    let world = World::new(16, 2, 0);
    world.put(class);
    let seen = seen.clone();
    run_two(
        &world,
        false,
        move |reader| {
            if reader.contains(class.turned()) {
                seen.note("found");
            } else {
                seen.note("missed");
                assert!(!reader.contains(class.turned()), "a class that was gone was found again");
            }
        },
        move |writer| {
            (0..more).for_each(|_| assert!(writer.insert(class.turned())));
            remove(writer);
        },
    );
    world.assert_sum_holds(&[(class, 0)], 0);
}
