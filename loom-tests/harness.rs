//! The parts of every model: a tiny filter, keys with chosen places, steps, and the race that explores them.

use crate::error::InsertError;
use crate::filter::hashing;
use crate::layout::{Alternates, Bucket, Class, Fingerprint, Hop, Mixed, Plan};
use crate::raw::{Bare, Fixed, Observed, Put, RawFilter, Shard, SlotKind};
use crate::sys::memory::HugePages;
use crate::sys::steps::{Step, with_hook};
use crate::sys::sync::with_watched_locks;
use loom::thread::{Builder, JoinHandle};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A filter of one shard. It is shared by the `Arc` of `std`, which gives a third of the states of loom's.
pub(super) struct World<K: SlotKind = Bare> {
    pub(super) raw: RawFilter<K>,
}

/// A table of this many buckets, rounded up to an even number. A stripe covers `1 << stripe_shift` buckets, which must fill whole
/// words.
pub(super) fn plan(width: u32, buckets: u32, stripe_shift: u32) -> Plan {
    assert_eq!(((4 * width) << stripe_shift) % 64, 0, "a stripe must begin at a word");
    Plan::one_shard(width, buckets.next_multiple_of(2), stripe_shift)
}

impl<K: SlotKind> World<K> {
    pub(super) fn of(plan: &Plan) -> Arc<Self> {
        Arc::new(World { raw: RawFilter::new(plan, HugePages::Unadvised).expect("memory") })
    }

    pub(super) fn shard(&self) -> Shard<'_, K::Slots<'_>> {
        self.raw.flat().at(0)
    }

    pub(super) fn plan(&self) -> &Plan {
        self.raw.plan()
    }

    pub(super) fn mixed(&self, key: Class) -> Mixed {
        self.raw.geometry().leading_to(key).unwrap_or_else(|| panic!("no hash leads to {key:?}"))
    }

    pub(super) fn contains(&self, key: Class) -> bool {
        self.raw.contains(self.mixed(key))
    }

    pub(super) fn contains_each<const KEYS: usize>(&self, keys: [Class; KEYS]) -> [bool; KEYS] {
        contains_each(&self.raw, keys.map(|key| self.mixed(key)))
    }

    /// Inserts under the locks of the pair, and returns the previous value of the class; `None` if the pair is full.
    pub(super) fn place(&self, key: Class, put: Put) -> Option<u32> {
        let Ok(result) = self.shard().insert_into_pair(Fixed, key, put);
        result.map(|result| result.expect("no refusal"))
    }
}

pub(super) fn contains_each<K: SlotKind, const KEYS: usize>(raw: &RawFilter<K>, keys: [Mixed; KEYS]) -> [bool; KEYS] {
    let mut found = [false; KEYS];
    raw.contains_each(&mut hashing(&keys, |&mixed| mixed), &mut found);
    found
}

impl World {
    pub(super) fn new(width: u32, buckets: u32, stripe_shift: u32) -> Arc<Self> {
        World::of(&plan(width, buckets, stripe_shift))
    }

    /// A filter with these words, which hold `count` fingerprints, as loaded from a snapshot.
    pub(super) fn loaded(plan: &Plan, words: impl Iterator<Item = u64>, count: u64) -> Arc<Self> {
        let world = World::of(plan);
        world.shard().fill_with(words, count);
        world
    }

    /// Looks up the key as a process that may only read the memory.
    pub(super) fn contains_by_fences(&self, key: Class) -> bool {
        Observed::of(&self.raw.flat().shards).contains(self.mixed(key))
    }

    /// Inserts under the locks of the pair, and returns whether the key was stored; `None` if the pair is full.
    pub(super) fn put(&self, key: Class, put: Put) -> Option<bool> {
        self.place(key, put).map(|had| had == 0)
    }

    /// Inserts into the first bucket of the key under the lock of its stripe, as an insertion does after it has seen room there.
    /// Returns whether there was room.
    pub(super) fn insert_into_first(&self, key: Class) -> bool {
        let Ok(stored) = self.shard().insert_into(Fixed, key.first, key, 1);
        stored
    }

    pub(super) fn count(&self, key: Class) -> usize {
        let Ok(copies) = self.shard().count(Fixed, key);
        copies
    }

    pub(super) fn in_first(&self, key: Class) -> usize {
        self.count(Class { second: key.first, ..key })
    }

    pub(super) fn with(self: Arc<Self>, key: Class) -> Arc<Self> {
        assert!(self.insert_into_first(key));
        self
    }

    pub(super) fn with_copies(self: Arc<Self>, copies: usize, key: Class) -> Arc<Self> {
        (0..copies).for_each(|_| assert_eq!(self.put(key, Put::COPY), Some(true)));
        self
    }

    pub(super) fn without(self: Arc<Self>, key: Class) -> Arc<Self> {
        let Ok(removed) = self.shard().remove(Fixed, key, None);
        assert_ne!(removed, 0);
        self
    }

    /// Fills the lowest empty slots of this bucket with keys that have no other bucket, with fingerprints from `from` on.
    pub(super) fn full(self: Arc<Self>, bucket: u32, slots: u32, from: u32) -> Arc<Self> {
        (from..from + slots).fold(self, |world, fingerprint| world.with_copies(1, key(fingerprint, bucket, bucket)))
    }

    /// Checks what must hold once all threads have ended, and returns the number of copies of each class.
    pub(super) fn left(&self, classes: &[Class], others: usize) -> Vec<usize> {
        let left = self.sums(classes, others);
        self.shard().assert_counted_where_they_belong();
        left
    }

    /// The same for a shard that was loaded or cleared, where only the sum of the counts has a meaning.
    pub(super) fn sums(&self, classes: &[Class], others: usize) -> Vec<usize> {
        let copies: Vec<usize> = classes.iter().map(|&class| self.count(class)).collect();
        for (&class, &copies) in classes.iter().zip(&copies) {
            // Some models have classes that no key has.
            if self.raw.geometry().leading_to(class).is_some() {
                assert_eq!(self.contains(class), copies > 0, "the lookup of {class:?} agrees with its count");
            }
        }
        let sum = copies.iter().sum::<usize>() + others;
        assert_eq!(self.shard().len(), sum as u64, "the count is the number of stored copies");
        copies
    }
}

/// A step of a thread, and its result as a number: 0 for `false` and 1 for `true`.
pub(super) type Op<W> = Arc<dyn Fn(&W) -> usize + Send + Sync>;

pub(super) fn op<W, T: Told>(act: impl Fn(&W) -> T + Send + Sync + 'static) -> Op<W> {
    Arc::new(move |world| act(world).told())
}

pub(super) trait Told {
    fn told(self) -> usize;
}

impl Told for () {
    fn told(self) -> usize {
        0
    }
}

impl Told for usize {
    fn told(self) -> usize {
        self
    }
}

impl Told for bool {
    fn told(self) -> usize {
        self.into()
    }
}

/// `None`, for full or spoiled, differs from both.
impl Told for Option<bool> {
    fn told(self) -> usize {
        self.map_or(2, usize::from)
    }
}

pub(super) fn finds<K: SlotKind>(key: Class) -> Op<World<K>> {
    op(move |world: &World<K>| world.contains(key))
}

/// Whether the key is found; 2 if a second lookup finds it after the first missed it.
pub(super) fn finds_no_more(key: Class) -> Op<World> {
    op(move |world: &World| if world.contains(key) { 1 } else { 2 * usize::from(world.contains(key)) })
}

pub(super) fn insert(key: Class) -> Op<World> {
    op(move |world: &World| world.put(key, Put::COPY))
}

pub(super) fn insert_into_first(key: Class) -> Op<World> {
    op(move |world: &World| world.insert_into_first(key))
}

pub(super) fn insert_unique(key: Class) -> Op<World> {
    op(move |world: &World| world.put(key, Put::UNIQUE))
}

/// A whole insertion: the look at its buckets, then one lock, and those of the pair if the bucket is full by then. 3 stands for
/// too many copies.
pub(super) fn insert_whole(key: Class) -> Op<World> {
    op(move |world: &World| {
        let Ok(result) = world.shard().insert(Fixed, key, Put::COPY);
        result.map_or_else(|error| if error == InsertError::Full { 2 } else { 3 }, |had| usize::from(had == 0))
    })
}

/// Moves each key from its first candidate to its second, and stores this key in the slot that the last of them left.
pub(super) fn path<const HOPS: usize>(moved: [Class; HOPS], key: Class, put: Put) -> Op<World> {
    op(move |world: &World| {
        let Ok(result) = world.shard().relocate_along(Fixed, moved.map(Hop::of), key, put);
        result.map(|result| result.expect("no refusal") == 0)
    })
}

pub(super) fn moves<K: SlotKind>(key: Class) -> Op<World<K>> {
    op(move |world: &World<K>| world.shard().hop(Hop::of(key)))
}

pub(super) fn remove(key: Class) -> Op<World> {
    op(move |world: &World| world.shard().remove(Fixed, key, None).is_ok_and(|removed| removed != 0))
}

pub(super) fn remove_all(key: Class) -> Op<World> {
    op(move |world: &World| world.shard().remove_all(Fixed, key).unwrap_or_else(|never| match never {}))
}

pub(super) fn count(key: Class) -> Op<World> {
    op(move |world: &World| world.count(key))
}

pub(super) fn len() -> Op<World> {
    op(|world: &World| world.shard().len() as usize)
}

pub(super) fn clear() -> Op<World> {
    op(|world: &World| world.raw.clear())
}

/// The result of each step of each thread, and the final state.
type End = (Vec<Vec<usize>>, Vec<usize>);

/// Whether a result is wrong in every order.
type Never = fn(&[Vec<usize>], &[usize]) -> bool;

/// Threads whose steps run in a world that is built anew for each execution. The result of each execution must be that of some
/// order of the same steps without concurrency, and each such result must occur.
pub(super) struct Race<W> {
    world: Box<dyn Fn() -> Arc<W> + Send + Sync>,
    left: Box<dyn Fn(&W) -> Vec<usize> + Send + Sync>,
    threads: Vec<Vec<Op<W>>>,
    /// The property that a fault breaks.
    rule: &'static str,
    preemptions: Option<usize>,
    outcomes: &'static [&'static str],
    also: Vec<End>,
    never: Never,
}

impl<W: Send + Sync + 'static> Race<W> {
    /// `left` returns the final state, and checks what must hold then.
    pub(super) fn new(
        rule: &'static str,
        world: impl Fn() -> Arc<W> + Send + Sync + 'static,
        left: impl Fn(&W) -> Vec<usize> + Send + Sync + 'static,
    ) -> Self {
        let (world, left) = (Box::new(world), Box::new(left));
        Race {
            world,
            left,
            threads: Vec::new(),
            rule,
            preemptions: None,
            outcomes: &[],
            also: Vec::new(),
            never: |_, _| false,
        }
    }

    pub(super) fn thread(mut self, steps: impl IntoIterator<Item = Op<W>>) -> Self {
        self.threads.push(steps.into_iter().collect());
        self
    }

    pub(super) fn threads(self, one: Op<W>, other: Op<W>) -> Self {
        self.thread([one]).thread([other])
    }

    /// Bounds the preemptions per execution, where exploring all of them would take too long. The model prints the bound.
    pub(super) fn at_most(self, preemptions: impl Into<Option<usize>>) -> Self {
        Race { preemptions: preemptions.into(), ..self }
    }

    /// Outcomes of lookups that must occur, such as "repeated".
    pub(super) fn seen(self, outcomes: &'static [&'static str]) -> Self {
        Race { outcomes, ..self }
    }

    /// A result that is wrong even if some order produces it, for faults that every order shows.
    pub(super) fn never(self, never: Never) -> Self {
        Race { never, ..self }
    }

    /// A result that is right, too, and must occur, although no order produces it: of steps that consist of several events.
    pub(super) fn also(mut self, told: &[&[usize]], left: &[usize]) -> Self {
        self.also.push((told.iter().map(|told| told.to_vec()).collect(), left.to_vec()));
        self
    }

    fn ends(self: &Arc<Self>) -> BTreeSet<End> {
        let ends = Arc::new(Mutex::new(self.also.iter().cloned().collect::<BTreeSet<_>>()));
        let mut steps: Vec<usize> = self.threads.iter().map(Vec::len).collect();
        each_order(&mut steps, &mut Vec::new(), &mut |order| {
            let (race, ends, order) = (Arc::clone(self), Arc::clone(&ends), order.to_vec());
            explorer(None).check(move || {
                let (race, ends, order) = (Arc::clone(&race), Arc::clone(&ends), order.clone());
                join(spawn(move || {
                    let world = (race.world)();
                    let mut told = vec![Vec::new(); race.threads.len()];
                    for &thread in &order {
                        let step = &race.threads[thread][told[thread].len()];
                        told[thread].push(step(&world));
                    }
                    let left = (race.left)(&world);
                    assert!(!(race.never)(&told, &left), "{}: {told:?}, {left:?}", race.rule);
                    locked(&ends).insert((told, left));
                }));
            });
        });
        let ends = locked(&ends).clone();
        ends
    }

    /// Explores the threads, spawned in this order and, if two numbers are given, in the reverse order, since loom's reduction
    /// depends on the first thread. Fails if a number of executions differs from the committed one by more than a tenth.
    pub(super) fn explore<const ORDERS: usize>(self, executions: [usize; ORDERS]) {
        let race = Arc::new(self);
        let ends = Arc::new(race.ends());
        for (swapped, committed) in [false, true].into_iter().zip(executions) {
            let seen = Arc::new(Mutex::new(Explored::default()));
            // The repetitions in the present execution.
            let again = Arc::new(AtomicUsize::new(0));
            let repeated = {
                let (seen, again) = (Arc::clone(&seen), Arc::clone(&again));
                move |step| {
                    if step == Step::Repeated {
                        let times = again.fetch_add(1, Ordering::Relaxed) + 1;
                        locked(&seen).repeated.insert(if times == 1 { "repeated" } else { "repeated twice" });
                    }
                }
            };
            let execution = {
                let (race, ends, seen) = (Arc::clone(&race), Arc::clone(&ends), Arc::clone(&seen));
                move || {
                    again.store(0, Ordering::Relaxed);
                    locked(&seen).executions += 1;
                    let end = race.run(swapped);
                    assert!(ends.contains(&end), "{}: {end:?} comes of no order, but {ends:?}", race.rule);
                    locked(&seen).ends.insert(end);
                }
            };
            with_hook(repeated, || explorer(race.preemptions).check(execution));
            race.check(&ends, &locked(&seen), committed);
        }
    }

    /// The same for threads that read whether locks are held.
    pub(super) fn explore_with_watched_locks<const ORDERS: usize>(self, executions: [usize; ORDERS]) {
        with_watched_locks(|| self.explore(executions));
    }

    fn run(&self, swapped: bool) -> End {
        let world = (self.world)();
        let mut threads: Vec<&Vec<Op<W>>> = self.threads.iter().collect();
        if swapped {
            threads.reverse();
        }
        let threads = threads.into_iter().map(|steps| {
            let (steps, world) = (steps.clone(), Arc::clone(&world));
            spawn(move || steps.iter().map(|step| step(&world)).collect::<Vec<_>>())
        });
        let threads: Vec<_> = threads.collect();
        let mut told: Vec<_> = threads.into_iter().map(join).collect();
        if swapped {
            told.reverse();
        }
        (told, (self.left)(&world))
    }

    fn check(&self, ends: &BTreeSet<End>, seen: &Explored, committed: usize) {
        // The test runner names each thread after its test.
        let thread = std::thread::current();
        let name = thread.name().and_then(|path| path.rsplit("::").next()).expect("the thread of a test");
        let bound = self.preemptions.map(|most| format!(", at most {most} preemptions")).unwrap_or_default();
        let (executions, repeated) = (seen.executions, &seen.repeated);
        println!("model {name:<60} {executions:>8} executions (committed {committed}{bound})  {repeated:?}");
        for &outcome in self.outcomes {
            assert!(repeated.contains(outcome), "{name}: never seen: {outcome}");
        }
        let missing: Vec<_> = ends.difference(&seen.ends).collect();
        assert!(missing.is_empty(), "{name}: never seen: {missing:?} of {ends:?}");
        let is_near = executions.abs_diff(committed) * 10 <= committed;
        assert!(is_near, "{name}: {executions} executions explored, {committed} committed");
    }
}

#[derive(Default)]
struct Explored {
    executions: usize,
    ends: BTreeSet<End>,
    repeated: BTreeSet<&'static str>,
}

/// Calls `each` with every order of threads that have these numbers of steps left.
fn each_order(left: &mut [usize], order: &mut Vec<usize>, each: &mut impl FnMut(&[usize])) {
    if left.iter().all(|&steps| steps == 0) {
        each(order);
    }
    for thread in 0..left.len() {
        if left[thread] > 0 {
            left[thread] -= 1;
            order.push(thread);
            each_order(left, order, each);
            order.pop();
            left[thread] += 1;
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn explorer(preemptions: Option<usize>) -> loom::model::Builder {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 10_000;
    builder
}

pub(super) fn spawn<R: Send + 'static>(thread: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    // In words. A search compiled without optimisation, as for a tooth, needs more than loom's default.
    Builder::new().stack_size(1 << 17).spawn(thread).expect("a thread")
}

pub(super) fn join<R>(thread: JoinHandle<R>) -> R {
    thread.join().expect("no thread panics")
}

/// A race on a plain filter that ends with these classes and this number of other keys.
pub(super) fn race(
    rule: &'static str,
    world: impl Fn() -> Arc<World> + Send + Sync + 'static,
    classes: &[Class],
    others: usize,
) -> Race<World> {
    let classes = classes.to_vec();
    Race::new(rule, world, move |world: &World| world.left(&classes, others))
}

/// A class with a chosen place. `first` is the bucket that a lookup reads first.
pub(super) fn key(fingerprint: u32, first: u32, second: u32) -> Class {
    let fingerprint = Fingerprint::from_slot(fingerprint).expect("not 0");
    Class { fingerprint, first: Bucket::new(first), second: Bucket::new(second) }
}

/// Key number `number` among those with these two buckets.
pub(super) fn key_in(plan: &Plan, number: usize, first: u32, second: u32) -> Class {
    let (alternates, fingerprints) = (Alternates::new(plan), u32::MAX >> (32 - plan.fingerprint_bits));
    let leads_there = |&fingerprint: &u32| {
        let fingerprint = Fingerprint::from_slot(fingerprint).expect("not 0");
        alternates.alternate(fingerprint, Bucket::new(first)).get() == second
    };
    // With bits set at both ends, so that both parts of a slot that straddles words hold some.
    let from = 0xa5ca_5ca5 >> (32 - plan.fingerprint_bits);
    let both_ends = (from..=fingerprints).filter(|fingerprint| fingerprint & 0xf != 0);
    let fingerprint = both_ends.chain(1..from).filter(leads_there).nth(number);
    key(fingerprint.expect("some fingerprints lead there"), first, second)
}

/// A lookup that reads the source of the move first never has to repeat: if it has seen the slot cleared, it sees the copy.
pub(super) fn outcomes(looked_up: Class, moved: Class) -> &'static [&'static str] {
    if looked_up.first == moved.second { &["repeated"] } else { &[] }
}
