//! A table with contents, and a program for each thread, all drawn from one number.

use super::said::{Values, sorted};
use super::shape::{Shape, Words};
use crate::layout::{Bucket, Class, Fingerprint, Geometry};
use crate::raw::{IfPresent, Put};
use fastrand::Rng;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    Put(Put),
    LookUp,
    /// A batch of this class and the next one in turn.
    LookUpBatch,
    Count,
    Remove,
    RemoveAll,
    Clear,
    Copy,
    Len,
    /// Several changes with all stripes locked, as by a bulk operation.
    Task,
    Split,
    /// A relocation from the first candidate to the other, as by the path of an insertion; in growing filters.
    #[cfg_attr(not(cuckoo_shuttle), expect(dead_code, reason = "paths of programs relocate"))]
    Relocate,
    Raise(u32),
    Subtract,
    Largest,
    Tick,
    Sweep,
}

/// An action, and the number of a class. The first candidate is the lower bucket or, if `turned`, the other one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) action: Action,
    pub(super) class: usize,
    pub(super) turned: bool,
}

pub(super) const TASK_STEPS: usize = 3;

#[derive(Debug)]
pub(super) struct Scenario {
    pub(super) shape: Shape,
    pub(super) words: Words,
    /// With the values of the copies in the words.
    pub(super) classes: Vec<(Class, Values)>,
    /// The numbers of the classes, by their names.
    pub(super) numbers: BTreeMap<(u32, u32), usize>,
    pub(super) programs: Vec<Vec<Step>>,
}

impl Scenario {
    pub(super) fn new(shape: fn(&mut Rng) -> Shape, seed: u64, threads: usize, steps: usize) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut draft = Draft::new(shape(&mut rng), &mut rng);
        let hot = draft.fill(&mut rng);
        let scenario = draft.finish();
        let programs = (0..threads).map(|_| scenario.program(&hot, steps, &mut rng)).collect();
        Scenario { programs, ..scenario }
    }

    pub(super) fn number(&self, class: Class) -> usize {
        *self.numbers.get(&name(class)).expect("all that is stored was inserted")
    }

    /// Returns the number of the class of each copy in these words of bare slots of a fixed table.
    pub(super) fn numbers_in(&self, words: &[u64]) -> impl Iterator<Item = usize> {
        self.words.in_use(words, self.shape.plan.buckets).map(|(bucket, fingerprint)| {
            let is_of = |&(class, _): &(Class, Values)| {
                let pair = [class.first, class.second].map(Bucket::index);
                class.fingerprint.get() == fingerprint && pair.contains(&bucket)
            };
            self.classes.iter().position(is_of).expect("all that is stored was inserted")
        })
    }

    pub(super) fn key_of(&self, step: Step) -> Class {
        let class = self.classes[step.class].0;
        if step.turned { class.turned() } else { class }
    }

    /// Draws a program that writes the hot classes and reads any class.
    fn program(&self, hot: &[usize], steps: usize, rng: &mut Rng) -> Vec<Step> {
        let tagged = self.shape.plan.tag_bits > 0;
        let actions = if tagged { Actions::tagged(self.shape, rng) } else { Actions::bare(self.shape, rng) };
        let mut tasks = 0;
        let steps = (0..steps).map(|_| {
            let mut action = (actions.next)(rng);
            tasks += usize::from(matches!(action, Action::Task));
            // With more tasks, a class could have more events than the check takes.
            if tasks > 1 && matches!(action, Action::Task) {
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

struct Actions {
    next: Box<dyn Fn(&mut Rng) -> Action>,
    /// Out of four lookups and counts, the number that may be of any class; the others are of hot classes.
    strange: u32,
}

impl Actions {
    fn bare(shape: Shape, rng: &mut Rng) -> Self {
        let task = if shape.plan.grows() && rng.bool() { Action::Split } else { Action::Task };
        // Only distinct keys are promised a place.
        let insertion = if shape.promised > 0 { Put::UNIQUE } else { Put::COPY };
        // In percent.
        let writes = *rng.choice(&[0, 40, 90]).expect("some");
        let (clears, strange) = (rng.u32(..4) == 0, rng.u32(..4));
        let next = move |rng: &mut Rng| {
            if rng.u32(..100) < writes {
                return match rng.u32(..100) {
                    0..32 => Action::Put(insertion),
                    32..50 => Action::Put(Put::UNIQUE),
                    50..62 => task,
                    62..69 => Action::RemoveAll,
                    69..75 if clears => Action::Clear,
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
        };
        Actions { next: Box::new(next), strange }
    }

    fn tagged(shape: Shape, rng: &mut Rng) -> Self {
        let Shape { plan, counts, .. } = shape;
        let (least, most) = shape.values();
        let (in_windows, ticks) = (plan.count_bits > 0, *rng.choice(&[5, 15, 30]).expect("some"));
        let next = move |rng: &mut Rng| {
            let value = if rng.bool() { most } else { rng.u32(least..=most) };
            let put = |value, if_present| Action::Put(Put { value, if_present });
            // A count of 1 with any time.
            let one = if in_windows { value / least * least } else { 1 };
            match rng.u32(..100) {
                kind if (!counts || in_windows) && kind < ticks => Action::Tick,
                ..35 if counts && !in_windows => put(rng.u32(1..=2), IfPresent::Add { renews: false }),
                ..35 if counts => put(one, IfPresent::Add { renews: rng.bool() }),
                35..45 if counts => put(one, IfPresent::AddUpTo { renews: rng.bool(), most: rng.u16(..5) }),
                45..50 if counts => Action::Remove,
                50..60 if counts => Action::Subtract,
                60..75 if counts => Action::Largest,
                ..35 => put(value, IfPresent::Another),
                35..42 => put(value, IfPresent::Keep),
                42..52 => put(value, IfPresent::Raise),
                52..60 => Action::Raise(value),
                60..72 => Action::Remove,
                72..75 => Action::Sweep,
                75..86 => Action::LookUp,
                86..94 => Action::LookUpBatch,
                94..96 => Action::Copy,
                96..98 if plan.grows() => Action::Split,
                _ => Action::Clear,
            }
        };
        Actions { next: Box::new(next), strange: 0 }
    }
}

pub(super) struct Draft {
    shape: Shape,
    geometry: Geometry,
    buckets: Vec<Bucket>,
    words: Words,
    /// The fingerprints in use. With few of them, equal ones are frequent.
    alphabet: Vec<Fingerprint>,
    classes: Vec<(Class, Values)>,
    numbers: BTreeMap<(u32, u32), usize>,
}

impl Draft {
    pub(super) fn new(shape: Shape, rng: &mut Rng) -> Self {
        let most = u32::MAX >> (32 - shape.plan.fingerprint_bits);
        let letters = if shape.promised > 0 { 4096 } else { *rng.choice(&[2, 4, 16, 64]).expect("some") };
        let (geometry, core) = (Geometry::new(&shape.plan), u32::MAX >> (32 - shape.plan.core_bits()));
        // The core, from which buckets are computed, is never 0.
        let letter = |drawn: u32| Fingerprint::from_slot(drawn | u32::from(drawn & core == 0));
        Draft {
            geometry,
            buckets: shape.plan.all_buckets().collect(),
            words: Words::new(&shape.plan),
            alphabet: (0..letters).filter_map(|_| letter(rng.u32(1..=most))).collect(),
            classes: Vec::new(),
            numbers: BTreeMap::new(),
            shape,
        }
    }

    /// Draws a class, and returns its number. It may have copies or none.
    pub(super) fn class(&mut self, rng: &mut Rng) -> usize {
        let fingerprint = *rng.choice(&self.alphabet).expect("some");
        let bucket = *rng.choice(&self.buckets).expect("some");
        let second = self.geometry.alternates().alternate(fingerprint, bucket);
        let class = Class { fingerprint, first: bucket, second }.lower_first();
        *self.numbers.entry(name(class)).or_insert_with(|| {
            self.classes.push((class, Values::default()));
            self.classes.len() - 1
        })
    }

    /// Stores copies of random classes in random slots, and chooses the classes that programs write.
    fn fill(&mut self, rng: &mut Rng) -> Vec<usize> {
        // With one class, all threads meet in its every step.
        let count = *rng.choice(&[1, 1, 2, 3, 5]).expect("some");
        let hot: Vec<usize> = (0..count).map(|_| self.class(rng)).collect();
        let slots = 4 * self.buckets.len();
        let promised = self.shape.promised > 0;
        // Half of the tables are so full that insertions move other keys.
        let load = if rng.bool() { rng.usize(40..=90) } else { rng.usize(90..=100) };
        let copies = if promised { self.shape.promised - count } else { slots * load / 100 };
        let mut stored = 0;
        for _ in 0..8 * slots {
            if stored == copies {
                break;
            }
            let class = self.class(rng);
            let distinct = self.classes[class].1 == Values::default() && !(promised && hot.contains(&class));
            if (distinct || !promised && !self.shape.counts) && self.put(class, rng) {
                stored += 1;
            }
        }
        hot
    }

    pub(super) fn put(&mut self, class: usize, rng: &mut Rng) -> bool {
        let (key, values) = &mut self.classes[class];
        let pair = [key.first, key.second];
        let places = pair.into_iter().flat_map(|bucket| (0..4).map(move |slot| (bucket.index(), slot)));
        let empty: Vec<_> = places.filter(|&(bucket, slot)| self.words.is_empty(bucket, slot)).collect();
        let Some(&(bucket, slot)) = rng.choice(&empty) else { return false };
        let tag_bits = self.shape.plan.tag_bits;
        let (least, most) = self.shape.values();
        let value = if tag_bits == 0 { 1 } else { rng.u32(least..=most.min(6 * least)) };
        // At the first epoch a tag is equal to its value.
        let tag = if tag_bits == 0 { 0 } else { value };
        self.words.fill(bucket, slot, key.fingerprint.get() << tag_bits | tag);
        *values = sorted(values.iter().copied().filter(|&value| value > 0).chain([value]));
        true
    }

    pub(super) fn finish(self) -> Scenario {
        let Draft { shape, words, classes, numbers, .. } = self;
        Scenario { shape, words, classes, numbers, programs: Vec::new() }
    }
}

/// The name of a class, the same in either order of its buckets.
fn name(class: Class) -> (u32, u32) {
    (class.fingerprint.get(), class.lower_first().first.get())
}
