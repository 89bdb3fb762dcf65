//! The filter that programs run on, and the checks after they have ended.

use super::check::History;
use super::said::{Event, Said, Values, sorted};
use super::scenario::{Action, Scenario, Step, TASK_STEPS};
use super::shape::tags_of;
use crate::InsertError;
use crate::filter::hashing;
use crate::layout::{Class, Mixed, Search, SearchBudget, Tags};
use crate::raw::{Bare, Fixed, IfPresent, Put, RawFilter, SlotKind, Tagging};
use crate::sys::memory::HugePages;
use core::array;
use core::convert::Infallible;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A moment after all that threads do.
const AT_REST: u64 = u64::MAX;

/// The number of lookups in a batch: two full blocks, and one that is not full.
const BATCH: usize = 5;

pub(super) trait Kind: SlotKind + Sized {
    /// The filter as one with tags, for operations that only those have.
    fn tagged(raw: &RawFilter<Self>) -> Option<&RawFilter<Tagging>>;
}

impl Kind for Bare {
    fn tagged(_: &RawFilter) -> Option<&RawFilter<Tagging>> {
        None
    }
}

impl Kind for Tagging {
    fn tagged(raw: &RawFilter<Tagging>) -> Option<&RawFilter<Tagging>> {
        Some(raw)
    }
}

/// A filter of one shard, or a growing one of a single table, with the words of a scenario.
pub(super) struct World<K: SlotKind = Bare> {
    pub(super) scenario: Arc<Scenario>,
    raw: RawFilter<K>,
    tags: Tags,
}

#[derive(Default)]
pub(super) struct Seen {
    /// Each with the number of its class, or `None` for all classes.
    events: Vec<(Option<usize>, Event)>,
    lens: Vec<Len>,
    splits: Vec<(u64, u64)>,
}

/// A number of keys, returned between two moments.
struct Len {
    len: i64,
    begin: u64,
    end: u64,
    /// The number of relocations counted between the two.
    moves: i64,
}

impl<K: Kind> World<K> {
    pub(super) fn new(scenario: Arc<Scenario>) -> Self {
        let plan = &scenario.shape.plan;
        let copies = scenario.classes.iter().flat_map(|(_, values)| values).filter(|&&value| value > 0);
        let (words, stored) = (scenario.words.words.iter().copied(), copies.count() as u64);
        let raw = RawFilter::<K>::new(plan, HugePages::Unadvised).expect("memory");
        raw.with_tables(|tables| tables.next().expect("a table").fill_with(words, stored));
        World { tags: tags_of(plan), raw, scenario }
    }

    /// The values of each class in a copy of all tables, each at its epoch.
    fn copy(&self) -> Vec<Values> {
        let mut found = vec![Vec::new(); self.scenario.classes.len()];
        let mut words = vec![0; self.scenario.shape.plan.words as usize];
        let Ok(()) = self.raw.copy_each(0..1, &mut words, |copy, words| {
            let live: Vec<(usize, u32)> = if K::TIMED || self.raw.growing().is_some() {
                let live = self.raw.contents(copy, words);
                live.map(|(place, value)| (self.scenario.number(place.class), value)).collect()
            } else {
                self.scenario.numbers_in(words).map(|number| (number, 1)).collect()
            };
            assert!(K::TIMED || live.len() as u64 == copy.count, "a copy of a table counts what is in it");
            live.into_iter().for_each(|(number, value)| found[number].push(value));
            Ok::<_, Infallible>(())
        });
        found.into_iter().map(sorted).collect()
    }

    fn mixed(&self, key: Class) -> Mixed {
        self.raw.geometry().leading_to(key).expect("classes are drawn from the geometry")
    }

    pub(super) fn run(&self, thread: usize, now: &dyn Fn() -> u64) -> Seen {
        let mut seen = Seen::default();
        let program = &self.scenario.programs[thread];
        for (number, &step) in program.iter().enumerate() {
            let (key, begin) = (self.mixed(self.scenario.key_of(step)), now());
            let tagged = || K::tagged(&self.raw).expect("these are tagged");
            let said = match step.action {
                Action::Put(put) => self.put(key, put),
                Action::LookUp => Said::Found(self.raw.contains(key)),
                Action::LookUpBatch => {
                    let other = (step.class + 1) % self.scenario.classes.len();
                    let pair = [(step.class, key), (other, self.mixed(self.scenario.classes[other].0))];
                    let batch: [_; BATCH] = array::from_fn(|at| pair[at % 2]);
                    let mut found = [false; BATCH];
                    self.raw.contains_each(&mut hashing(&batch, |&(_, mixed)| mixed), &mut found);
                    // Equal answers of one class are one event.
                    let (answers, end) = (batch.map(|(class, _)| class).into_iter().zip(found), now());
                    let of = |(class, found)| (Some(class), Event::new(Said::Found(found), begin, end));
                    seen.events.extend(answers.collect::<BTreeSet<_>>().into_iter().map(of));
                    continue;
                }
                Action::Count => Said::Counted(self.raw.count(key)),
                Action::Remove => Said::Removed(match K::tagged(&self.raw) {
                    Some(raw) => raw.remove_value(key, None),
                    None => self.raw.remove(key).into(),
                }),
                Action::RemoveAll => Said::RemovedAll(self.raw.remove_all(key)),
                Action::Raise(value) => Said::Raised { value, had: tagged().update(key, None, |had| had.max(value)) },
                Action::Subtract => Said::Subtracted(tagged().update(key, None, |had| self.tags.less_one(had))),
                Action::Largest => Said::Largest(sorted(tagged().values(key))[7]),
                Action::Clear => {
                    self.raw.clear();
                    Said::Cleared
                }
                Action::Tick => {
                    tagged().advance();
                    Said::Ticked
                }
                Action::Sweep => {
                    tagged().sweep(1);
                    continue;
                }
                Action::Copy => {
                    let (copied, end) = (self.copy(), now());
                    let of = |(class, values)| (Some(class), Event::new(Said::Copied(values), begin, end));
                    seen.events.extend(copied.into_iter().enumerate().map(of));
                    continue;
                }
                Action::Len => {
                    let moves = self.raw.totals().relocations;
                    let begin = now();
                    let (len, end) = (self.raw.len() as i64, now());
                    let moves = (self.raw.totals().relocations - moves) as i64;
                    seen.lens.push(Len { len, begin, end, moves });
                    continue;
                }
                Action::Task => {
                    let steps: Vec<Step> = program.iter().cycle().skip(number).take(TASK_STEPS).copied().collect();
                    self.task(&steps, &mut seen.events, begin, now);
                    continue;
                }
                Action::Relocate => {
                    self.raw.growing().expect("these grow").hop(key);
                    continue;
                }
                Action::Split => {
                    self.raw.growing().into_iter().for_each(|growing| growing.split_owner(key));
                    seen.splits.push((begin, now()));
                    continue;
                }
            };
            let of_all = matches!(said, Said::Ticked | Said::Cleared);
            seen.events.push(((!of_all).then_some(step.class), Event::new(said, begin, now())));
        }
        seen
    }

    fn put(&self, key: Mixed, put: Put) -> Said {
        Said::put(put, self.raw.put(key, put))
    }

    /// A bulk operation on a shard: these insertions and removals, of which each is visible to others as soon as it is done. In a
    /// growing filter, insertions alone.
    fn task(&self, steps: &[Step], events: &mut Vec<(Option<usize>, Event)>, asked: u64, now: &dyn Fn() -> u64) {
        let mut note = |class, said, begin| events.push((Some(class), Event::new(said, begin, now())));
        if let Some(growing) = self.raw.growing() {
            let keys = steps.iter().map(|&step| self.mixed(self.scenario.key_of(step)));
            let mut classes: Vec<usize> = steps.iter().map(|step| step.class).collect();
            let note = |class: &mut usize, had| note(*class, Said::put(Put::UNIQUE, had), asked);
            let keys: Vec<Mixed> = keys.collect();
            let mut budget = SearchBudget::full();
            growing.insert_task(&mut budget, Put::UNIQUE, note).run(keys.into_iter().zip(&mut classes));
            return;
        }
        let mut search = Search::new();
        let alone = self.raw.flat().at(0).exclusive();
        let mut begin = asked;
        for &step in steps {
            let key = self.scenario.key_of(step);
            let mut insert = |put| {
                let Ok(had) = alone.insert(Fixed, &mut search, &mut SearchBudget::full(), key, put);
                Said::put(put, had)
            };
            let said = match step.action {
                Action::Put(Put { if_present: IfPresent::Another, .. }) => insert(Put::COPY),
                Action::Remove | Action::Task => Said::Removed(alone.remove(key, None)),
                _ => insert(Put::UNIQUE),
            };
            note(step.class, said, begin);
            begin = now();
        }
    }

    /// Checks all results, and the contents now that every thread has ended. Returns the history of each class, or an error that
    /// states what is wrong.
    pub(super) fn check(&self, seen: &[Seen]) -> Result<Vec<History>, String> {
        let occupied = self.raw.with_tables(|tables| tables.map(|table| table.occupied()).sum::<Option<u64>>());
        if occupied != Some(self.raw.len() as u64) {
            return Err(format!("{occupied:?} slots are in use, and {} were counted", self.raw.len()));
        }
        self.check_lens(seen)?;
        let refused = |(_, event): &(_, Event)| matches!(event.said, Said::Put { had: Err(InsertError::Full), .. });
        let promised = self.scenario.shape.promised;
        if promised > 0 && seen.iter().any(|seen| seen.events.iter().any(refused)) {
            return Err(format!("a key was refused below {promised} keys"));
        }
        let mut histories = self.histories(seen);
        for ((history, &(class, _)), values) in histories.iter_mut().zip(&self.scenario.classes).zip(self.copy()) {
            let read = [class, class.turned()].map(|key| self.mixed(key)).into_iter().flat_map(|key| {
                let values = K::tagged(&self.raw).map(|raw| Said::Copied(sorted(raw.values(key))));
                [Said::Found(self.raw.contains(key))].into_iter().chain(values)
            });
            let last = read.chain([Said::Copied(values)]);
            history.events.extend(last.map(|said| Event::new(said, AT_REST, AT_REST)));
            if !history.is_linearizable() {
                history.events.sort_by_key(|event| event.begin);
                return Err(format!("no order explains what was said of {class:?}: {history:#?}"));
            }
        }
        Ok(histories)
    }

    /// Returns the history of each class, with the events that were concurrent with writes and ticks marked.
    fn histories(&self, seen: &[Seen]) -> Vec<History> {
        let events = || seen.iter().flat_map(|seen| seen.events.iter().copied());
        let times = |is: fn(Said) -> bool| {
            let events = events().filter(move |(_, event)| is(event.said));
            events.map(|(_, event)| (event.begin, event.end)).collect::<Vec<_>>()
        };
        let splits = seen.iter().flat_map(|seen| seen.splits.iter().copied());
        let writes: Vec<_> = times(Said::may_write).into_iter().chain(splits).collect();
        let ticks = times(|said| said == Said::Ticked);
        let empty = self.scenario.classes.iter().map(|&(_, values)| History::new(self.tags, values, Vec::new()));
        let mut histories: Vec<History> = empty.collect();
        for (of, mut event) in events() {
            let is_found = self.scenario.shape.straddles() && event.said == Said::Found(true);
            event.half_read = is_found && writes.iter().any(|times| event.overlaps(times));
            event.beside_a_tick = ticks.iter().any(|times| event.overlaps(times));
            let of = of.map_or(0..histories.len(), |class| class..class + 1);
            histories[of].iter_mut().for_each(|history| history.events.push(event));
        }
        histories
    }

    /// A sum of counts is at most the copies that were there at the beginning, plus those whose insertion had begun when it was
    /// returned, minus those whose removal had ended when it was requested. It is at least the copies at the beginning, plus those
    /// whose insertion had ended when it was requested, minus those whose removal had begun when it was returned. A clear only
    /// reduces it. A fingerprint that moves between stripes meanwhile may be counted twice or not at all.
    fn check_lens(&self, seen: &[Seen]) -> Result<(), String> {
        let copies = self.scenario.classes.iter().flat_map(|(_, values)| values).filter(|&&value| value > 0);
        let before = copies.count() as i64;
        let events = || seen.iter().flat_map(|seen| seen.events.iter().map(|(_, event)| event));
        // The relocations of a path are counted when it is complete, or one by one at their end.
        let longest_path = (self.raw.totals().longest_path as i64).max(1);
        for &Len { len, begin, end, moves } in seen.iter().flat_map(|seen| &seen.lens) {
            let had_begun = |event: &&Event| event.begin <= end;
            let had_ended = |event: &&Event| event.end < begin;
            let sum = |counts: &dyn Fn(&&Event, i64) -> bool| {
                let changes = events().map(|event| (event, i64::from(event.said.difference().unwrap_or(0))));
                changes.filter(|(event, change)| counts(event, *change)).map(|(_, change)| change).sum::<i64>()
            };
            let puts = events().filter(|event| matches!(event.said, Said::Put { .. }));
            let under_way = puts.filter(|event| event.overlaps(&(end, end))).count() as i64;
            let moves = moves + under_way * longest_path;
            let most =
                before + moves + sum(&|event, change| if change > 0 { had_begun(event) } else { had_ended(event) });
            let least =
                before - moves + sum(&|event, change| if change > 0 { had_ended(event) } else { had_begun(event) });
            if len > most {
                return Err(format!("there were {most} at the most, and {len} were counted"));
            }
            if len < least && !events().any(|event| event.said == Said::Cleared) {
                return Err(format!("there were {least} at least, and {len} were counted"));
            }
        }
        Ok(())
    }
}
