//! The shard that programs run on, and what must hold when they have ended.

use super::answer::Answer;
use super::history::{Event, History};
use super::scenario::{Action, Scenario, Step, TASK_STEPS};
use super::shape::Words;
use crate::InsertError;
use crate::filter::hashing;
use crate::layout::{Class, Mixed, Search, SearchBudget};
use crate::raw::{Fixed, Growing, Put, RawFilter};
use crate::sys::memory::HugePages;
use core::convert::Infallible;

/// After all that threads do.
const AT_REST: u64 = u64::MAX;

/// Lookups of one key in a batch: two whole blocks, and one that is not full.
const BATCH: usize = 5;

/// A filter of one shard, or one that grows from a single table, with the words of a scenario.
pub(super) struct World {
    raw: RawFilter,
}

/// What one thread has seen: of single classes, and of all at once.
#[derive(Default)]
pub(super) struct Seen {
    /// Each with the number of its class.
    pub(super) events: Vec<(usize, Event)>,
    lens: Vec<Len>,
    /// The moments between which tables were split.
    splits: Vec<(u64, u64)>,
}

/// A number of keys, told between two moments.
struct Len {
    len: i64,
    begin: u64,
    end: u64,
    /// Relocations that were noted between the two.
    moves: i64,
}

impl World {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let plan = &scenario.shape.plan;
        let stored = scenario.classes.iter().map(|&(_, copies)| u64::from(copies)).sum();
        let words = scenario.words.words.iter().copied();
        let raw = RawFilter::new(plan, HugePages::Unadvised).expect("memory");
        raw.growing().map_or_else(|| raw.flat().at(0), Growing::first_table).fill_with(words, stored);
        World { raw }
    }

    /// The copies of each class in a copy of all there is.
    fn copy(&self, scenario: &Scenario) -> Vec<u8> {
        let mut words = Words::new(&scenario.shape.plan);
        if self.raw.growing().is_none() {
            let (stored, _) = self.raw.flat().at(0).copy_to(&mut words.words);
            return counts(&words, scenario, stored);
        }
        let mut counts = vec![0; scenario.classes.len()];
        let Ok(()) = self.raw.copy_each(0..self.raw.plan().shards, &mut words.words, |copy, words| {
            for found in self.raw.contents(copy, words).map(|(place, _)| place.class) {
                let is = |&(class, _): &(Class, u8)| class == found || class == found.turned();
                counts[scenario.classes.iter().position(is).expect("all that is stored was inserted")] += 1;
            }
            Ok::<(), Infallible>(())
        });
        counts
    }

    fn mixed(&self, key: Class) -> Mixed {
        self.raw.geometry().leading_to(key).expect("classes are drawn from the geometry")
    }

    /// Runs the program of one thread. `now` is the time.
    pub(super) fn run(&self, scenario: &Scenario, program: &[Step], now: impl Fn() -> u64) -> Seen {
        let mut seen = Seen::default();
        for (number, &step) in program.iter().enumerate() {
            let key = key_of(scenario, step);
            let mut note = |class, answer, begin| seen.events.push((class, Event { answer, begin, end: now() }));
            let begin = now();
            match step.action {
                Action::Copy => {
                    let counts = self.copy(scenario);
                    let end = now();
                    for (class, counted) in counts.into_iter().enumerate() {
                        seen.events.push((class, Event { answer: Answer::Counted(counted), begin, end }));
                    }
                }
                Action::Clear => {
                    self.raw.clear();
                    let end = now();
                    for class in 0..scenario.classes.len() {
                        seen.events.push((class, Event { answer: Answer::Cleared, begin, end }));
                    }
                }
                Action::Len => {
                    let moves = self.raw.totals().relocations;
                    let begin = now();
                    let len = self.raw.len() as i64;
                    let end = now();
                    let moves = (self.raw.totals().relocations - moves) as i64;
                    seen.lens.push(Len { len, begin, end, moves });
                }
                Action::LookUpBatch => {
                    let (keys, mut found) = ([self.mixed(key); BATCH], [false; BATCH]);
                    self.raw.contains_each(&mut hashing(&keys, |&mixed| mixed), &mut found);
                    // Answers that are the same say the same.
                    for answer in [true, false].into_iter().filter(|answer| found.contains(answer)) {
                        note(step.class, Answer::Found(answer), begin);
                    }
                }
                Action::Task => self.task(scenario, program, number, &mut note, &now),
                Action::Split => {
                    if let Some(growing) = self.raw.growing() {
                        growing.split_owner(self.mixed(key));
                    }
                    seen.splits.push((begin, now()));
                }
                action => note(step.class, self.single(action, self.mixed(key)), begin),
            }
        }
        seen
    }

    fn single(&self, action: Action, key: Mixed) -> Answer {
        match action {
            Action::Insert => stored(self.raw.insert(key).map(|()| true)),
            Action::InsertUnique => admitted(self.raw.insert_unique(key)),
            Action::LookUp => Answer::Found(self.raw.contains(key)),
            Action::Count => Answer::Counted(self.raw.count(key) as u8),
            Action::Remove => Answer::Removed(self.raw.remove(key)),
            Action::RemoveAll => Answer::RemovedAll(self.raw.remove_all(key) as u8),
            Action::LookUpBatch | Action::Clear | Action::Copy | Action::Len | Action::Task | Action::Split => {
                unreachable!("not one answer")
            }
        }
    }

    /// What a bulk operation does to a shard: the insertions and removals that the program has from here on, each seen
    /// by others as soon as it is done. In a filter that grows, insertions alone.
    fn task(
        &self,
        scenario: &Scenario,
        program: &[Step],
        number: usize,
        note: &mut impl FnMut(usize, Answer, u64),
        now: &impl Fn() -> u64,
    ) {
        let asked = now();
        let steps = program.iter().cycle().skip(number).take(TASK_STEPS);
        if let Some(growing) = self.raw.growing() {
            let mut steps: Vec<Step> = steps.copied().collect();
            let keys: Vec<Mixed> = steps.iter().map(|&step| self.mixed(key_of(scenario, step))).collect();
            let note =
                |step: &mut Step, result: Result<u32, _>| note(step.class, admitted(result.map(|had| had == 0)), asked);
            let mut budget = SearchBudget::full();
            growing.insert_task(&mut budget, Put::UNIQUE, note).run(keys.into_iter().zip(&mut steps));
            return;
        }
        let mut search = Search::new();
        let alone = self.raw.flat().at(0).exclusive();
        let mut begin = asked;
        for &step in steps {
            let key = key_of(scenario, step);
            let mut insert = |put| {
                let Ok(result) = alone.insert(Fixed, &mut search, &mut SearchBudget::full(), key, put);
                result.map(|had| had == 0)
            };
            let answer = match step.action {
                Action::Insert => stored(insert(Put::COPY)),
                Action::Remove | Action::Task => Answer::Removed(alone.remove(key, None) != 0),
                _ => admitted(insert(Put::UNIQUE)),
            };
            note(step.class, answer, begin);
            begin = now();
        }
    }

    /// Checks all that was seen, and what is there now that every thread has ended. An error says what is wrong.
    pub(super) fn check(&self, scenario: &Scenario, seen: &[Seen]) -> Result<Vec<History>, String> {
        let left = self.copy(scenario);
        let (sum, len) = (left.iter().copied().map(usize::from).sum::<usize>(), self.raw.len());
        if sum != len {
            return Err(format!("there are {sum}, and {len} were counted"));
        }
        let events: Vec<(usize, Event)> = seen.iter().flat_map(|seen| seen.events.iter().copied()).collect();
        self.check_lens(scenario, seen, &events)?;
        if scenario.shape.promised > 0 && events.iter().any(|(_, event)| event.answer == Answer::NotAdmitted) {
            return Err(format!("a key was refused below {} keys", scenario.shape.promised));
        }
        let splits = seen.iter().flat_map(|seen| seen.splits.iter().copied());
        let mut histories = histories(scenario, &events, splits);
        for (class, (history, &left)) in histories.iter_mut().zip(&left).enumerate() {
            let key = scenario.classes[class].0;
            for turned in [false, true] {
                let key = if turned { Class { first: key.second, second: key.first, ..key } } else { key };
                let found = self.raw.contains(self.mixed(key));
                for answer in [Answer::Counted(left), Answer::Found(found)] {
                    history.events.push(Event { answer, begin: AT_REST, end: AT_REST });
                }
            }
            if !history.is_linearizable() {
                history.events.sort_by_key(|event| event.begin);
                return Err(format!("no order explains what was said of {key:?}: {history:#?}"));
            }
        }
        Ok(histories)
    }

    /// The sum of the counts is at most what was there, and what had begun to be inserted when it was told, without what
    /// had been removed before it was requested; and at least what was there, and what had been inserted before it was
    /// asked for, without what had begun to be removed when it was told. A clear only makes it less. A fingerprint that
    /// moves from stripe to stripe meanwhile may be counted twice or not at all.
    fn check_lens(&self, scenario: &Scenario, seen: &[Seen], events: &[(usize, Event)]) -> Result<(), String> {
        let before: i64 = scenario.classes.iter().map(|&(_, copies)| i64::from(copies)).sum();
        // Of a path, relocations are noted once it is carried out, or each at its end.
        let longest_path = (self.raw.totals().longest_path as i64).max(1);
        for &Len { len, begin, end, moves } in seen.iter().flat_map(|seen| &seen.lens) {
            let changes = events.iter().map(|(_, event)| match event.answer {
                Answer::Stored | Answer::Admitted if event.begin <= end => 1,
                Answer::Removed(true) if event.end < begin => -1,
                Answer::RemovedAll(copies) if event.end < begin => -i64::from(copies),
                _ => 0,
            });
            let under_way = events
                .iter()
                .filter(|(_, event)| event.answer.may_relocate() && event.begin <= end && end <= event.end);
            let moves = moves + under_way.count() as i64 * longest_path;
            let most = before + changes.sum::<i64>() + moves;
            if len > most {
                return Err(format!("there were {most} at the most, and {len} were counted"));
            }
            let changes = events.iter().map(|(_, event)| match event.answer {
                Answer::Stored | Answer::Admitted if event.end < begin => 1,
                Answer::Removed(true) if event.begin <= end => -1,
                Answer::RemovedAll(copies) if event.begin <= end => -i64::from(copies),
                _ => 0,
            });
            let least = before + changes.sum::<i64>() - moves;
            let is_cleared = events.iter().any(|(_, event)| event.answer == Answer::Cleared);
            if len < least && !is_cleared {
                return Err(format!("there were {least} at least, and {len} were counted"));
            }
        }
        Ok(())
    }
}

/// The history of each class.
fn histories(scenario: &Scenario, events: &[(usize, Event)], splits: impl Iterator<Item = (u64, u64)>) -> Vec<History> {
    let mut histories: Vec<History> =
        scenario.classes.iter().map(|&(_, copies)| History { copies, events: Vec::new() }).collect();
    // An insertion that found its key there may have split a table before.
    let may_write = |answer: Answer| answer.may_write() || scenario.shape.plan.grows() && answer == Answer::Present;
    let writes = events.iter().filter(|(_, event)| may_write(event.answer)).map(|(_, event)| (event.begin, event.end));
    let writes: Vec<(u64, u64)> = writes.chain(splits).collect();
    for &(class, mut event) in events {
        let overlaps = |&(begin, end): &(u64, u64)| begin <= event.end && event.begin <= end;
        if event.answer == Answer::Found(true) && scenario.shape.straddles() && writes.iter().any(overlaps) {
            event.answer = Answer::FoundDuringWrite;
        }
        histories[class].events.push(event);
    }
    histories
}

/// The copies of each class in the words. All that is stored is of these classes.
fn counts(words: &Words, scenario: &Scenario, stored: u64) -> Vec<u8> {
    let in_bucket = |bucket: usize, fingerprint| (0..4).filter(|&slot| words.get(bucket, slot) == fingerprint).count();
    let counts: Vec<u8> = scenario
        .classes
        .iter()
        .map(|(key, _)| {
            let pair = [key.first, key.second].map(|bucket| in_bucket(bucket.index(), key.fingerprint.get()));
            pair.iter().sum::<usize>() as u8
        })
        .collect();
    let buckets = scenario.shape.plan.buckets as usize;
    let taken = (0..buckets).map(|bucket| 4 - in_bucket(bucket, 0)).sum::<usize>();
    assert_eq!(taken as u64, stored, "a copy of the shard counts what is in it");
    assert_eq!(taken, counts.iter().copied().map(usize::from).sum::<usize>(), "all that is stored was inserted");
    counts
}

fn key_of(scenario: &Scenario, step: Step) -> Class {
    let key = scenario.classes[step.class].0;
    if step.turned { Class { first: key.second, second: key.first, ..key } } else { key }
}

fn stored(result: Result<bool, InsertError>) -> Answer {
    match result {
        Ok(true) => Answer::Stored,
        Ok(false) => panic!("a copy is always stored or refused"),
        Err(InsertError::Full) => Answer::Full,
        Err(InsertError::TooManyCopies) => Answer::TooManyCopies,
        Err(error) => panic!("{error}"),
    }
}

fn admitted(result: Result<bool, InsertError>) -> Answer {
    match result {
        Ok(true) => Answer::Admitted,
        Ok(false) => Answer::Present,
        Err(InsertError::Full) => Answer::NotAdmitted,
        Err(error) => panic!("a unique key has no copies, and there is memory: {error}"),
    }
}
