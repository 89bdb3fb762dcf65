//! A table with something in it, and a program for each thread, all drawn from one number.

use super::shape::{Shape, Words};
use crate::layout::{Bucket, Class, Fingerprint, Geometry};
use std::collections::BTreeMap;

/// What a thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Insert,
    InsertUnique,
    LookUp,
    LookUpBatch,
    Count,
    Remove,
    RemoveAll,
    Clear,
    /// A copy of the shard, as a snapshot takes it.
    Copy,
    Len,
    /// With all stripes locked, as a bulk operation.
    Task,
    /// Of the table that the class is in, where tables are split.
    Split,
}

/// An action, and a class by its number. The first candidate is the lower bucket or, if it is turned, the other one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) action: Action,
    pub(super) class: usize,
    pub(super) turned: bool,
}

/// Insertions and removals of a task.
pub(super) const TASK_STEPS: usize = 3;

#[derive(Debug)]
pub(super) struct Scenario {
    pub(super) shape: Shape,
    pub(super) words: Words,
    /// With the copies of each that the words hold.
    pub(super) classes: Vec<(Class, u8)>,
    pub(super) programs: Vec<Vec<Step>>,
}

impl Scenario {
    pub(super) fn new(seed: u64, threads: usize, steps: usize) -> Self {
        Self::of(Shape::any, seed, threads, steps)
    }

    /// The same in a filter that grows.
    pub(super) fn growing(seed: u64, threads: usize, steps: usize) -> Self {
        Self::of(Shape::growing, seed, threads, steps)
    }

    fn of(shape: fn(&mut fastrand::Rng) -> Shape, seed: u64, threads: usize, steps: usize) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut draft = Draft::new(shape(&mut rng), &mut rng);
        let hot = draft.fill(&mut rng);
        let scenario = draft.finish();
        let programs = (0..threads).map(|_| scenario.program(&hot, steps, &mut rng)).collect();
        Scenario { programs, ..scenario }
    }

    /// A program that writes the hot classes and asks for all of them.
    fn program(&self, hot: &[usize], steps: usize, rng: &mut fastrand::Rng) -> Vec<Step> {
        let actions = Actions::any(self.shape, rng);
        let mut tasks = 0;
        let steps = (0..steps).map(|_| {
            let mut action = actions.next(rng);
            tasks += usize::from(action == Action::Task);
            // So that no class has more events than the check takes.
            if tasks > 1 && action == Action::Task {
                action = Action::LookUp;
            }
            let any = matches!(action, Action::LookUp | Action::LookUpBatch | Action::Count)
                && rng.u32(..4) < actions.strange;
            let class = if any { rng.usize(..self.classes.len()) } else { rng.choice(hot).copied().expect("some") };
            Step { action, class, turned: rng.bool() }
        });
        steps.collect()
    }
}

/// How often each action comes, of a scenario.
struct Actions {
    insertion: Action,
    /// With all of a table locked.
    task: Action,
    clears: bool,
    /// Of four lookups and counts, how many are of any class; the others are of those that are written.
    strange: u32,
    /// Of a hundred.
    writes: u32,
}

impl Actions {
    fn any(shape: Shape, rng: &mut fastrand::Rng) -> Self {
        let task = if shape.plan.grows() && rng.bool() { Action::Split } else { Action::Task };
        // Only distinct keys are promised a place.
        let insertion = if shape.promised > 0 { Action::InsertUnique } else { Action::Insert };
        let writes = *rng.choice(&[0, 40, 90]).expect("some");
        Actions { insertion, task, clears: rng.u32(..4) == 0, strange: rng.u32(..4), writes }
    }

    fn next(&self, rng: &mut fastrand::Rng) -> Action {
        if rng.u32(..100) < self.writes {
            return match rng.u32(..100) {
                0..32 => self.insertion,
                32..50 => Action::InsertUnique,
                50..62 => self.task,
                62..69 => Action::RemoveAll,
                69..75 if self.clears => Action::Clear,
                _ => Action::Remove,
            };
        }
        match rng.u32(..100) {
            0..50 => Action::LookUp,
            50..80 => Action::LookUpBatch,
            80..90 => Action::Count,
            90..95 => Action::Copy,
            _ => Action::Len,
        }
    }
}

/// A table that is being filled.
pub(super) struct Draft {
    shape: Shape,
    geometry: Geometry,
    buckets: Vec<Bucket>,
    words: Words,
    /// The fingerprints that are in use: the fewer, the more often they are equal.
    alphabet: Vec<Fingerprint>,
    classes: Vec<(Class, u8)>,
    /// By fingerprint and lower bucket.
    numbers: BTreeMap<(u32, u32), usize>,
}

impl Draft {
    pub(super) fn new(shape: Shape, rng: &mut fastrand::Rng) -> Self {
        let most = u32::MAX >> (32 - shape.plan.slot_bits);
        let letters = if shape.promised > 0 { 4096 } else { *rng.choice(&[2, 4, 16, 64]).expect("some") };
        let (geometry, core) = (Geometry::new(&shape.plan), u32::MAX >> (32 - shape.plan.core_bits()));
        // The bits from which buckets are worked out are never 0.
        let letter = |drawn: u32| Fingerprint::from_slot(drawn | u32::from(drawn & core == 0));
        Draft {
            geometry,
            buckets: geometry.all_buckets().collect(),
            words: Words::new(&shape.plan),
            alphabet: (0..letters).filter_map(|_| letter(rng.u32(1..=most))).collect(),
            classes: Vec::new(),
            numbers: BTreeMap::new(),
            shape,
        }
    }

    /// Some class, by its number, with or without a copy.
    pub(super) fn class(&mut self, rng: &mut fastrand::Rng) -> usize {
        let fingerprint = *rng.choice(&self.alphabet).expect("some");
        let bucket = *rng.choice(&self.buckets).expect("some");
        let other = self.geometry.alternate(fingerprint, bucket);
        let (first, second) = if bucket < other { (bucket, other) } else { (other, bucket) };
        *self.numbers.entry((fingerprint.get(), first.get())).or_insert_with(|| {
            self.classes.push((Class { fingerprint, first, second }, 0));
            self.classes.len() - 1
        })
    }

    /// Puts copies of random classes into random slots, and chooses the classes that programs write.
    fn fill(&mut self, rng: &mut fastrand::Rng) -> Vec<usize> {
        // Where all threads are after one class, they meet in its every step.
        let count = *rng.choice(&[1, 1, 2, 3, 5]).expect("some");
        let hot: Vec<usize> = (0..count).map(|_| self.class(rng)).collect();
        let slots = 4 * self.buckets.len();
        let promised = self.shape.promised > 0;
        // Half of the tables are so full that an insertion moves others.
        let load = if rng.bool() { rng.usize(40..=90) } else { rng.usize(90..=100) };
        let copies = if promised { self.shape.promised - count } else { slots * load / 100 };
        let mut stored = 0;
        for _ in 0..8 * slots {
            if stored == copies {
                break;
            }
            let class = self.class(rng);
            let distinct = self.classes[class].1 == 0 && !hot.contains(&class);
            if (distinct || !promised) && self.put(class, rng) {
                stored += 1;
            }
        }
        hot
    }

    pub(super) fn put(&mut self, class: usize, rng: &mut fastrand::Rng) -> bool {
        let (key, copies) = &mut self.classes[class];
        let pair = [key.first, key.second];
        let places = pair.into_iter().flat_map(|bucket| (0..4).map(move |slot| (bucket.index(), slot)));
        let empty: Vec<_> = places.filter(|&(bucket, slot)| self.words.get(bucket, slot) == 0).collect();
        let Some(&(bucket, slot)) = rng.choice(&empty) else { return false };
        self.words.set(bucket, slot, key.fingerprint.get());
        *copies += 1;
        true
    }

    pub(super) fn finish(self) -> Scenario {
        Scenario { shape: self.shape, words: self.words, classes: self.classes, programs: Vec::new() }
    }
}
