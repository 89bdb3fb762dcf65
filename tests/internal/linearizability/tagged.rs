//! Histories of filters with tags: renewals, ticks, additions and subtractions. A class is a multiset of what its copies have left; a
//! tick takes one from each.

use super::check::Says;
use super::full_or;
use super::history::{Event, History};
use super::threads::{Pause, on_threads};
use crate::InsertError;
use crate::layout::{Class, Geometry, Mixed, Plan, Tags};
use crate::raw::{IfPresent, Put, RawFilter, Tagging};
use crate::sys::memory::HugePages;
use core::convert::Infallible;
use std::collections::BTreeMap;

/// What each copy has left, and one epoch more, in order: one with a single epoch has died at the last tick, and 0 is no copy.
pub(super) type Left = [u32; 8];

#[derive(Clone, Copy, Debug)]
pub(super) enum Said {
    Put {
        value: u32,
        if_present: IfPresent,
        had: Result<u32, InsertError>,
    },
    Raised {
        value: u32,
        had: u32,
    },
    Removed(u32),
    /// One of a count, which had this value.
    Subtracted(u32),
    Found(bool),
    /// The largest value of a class that has one copy at the most.
    Largest(u32),
    /// In a copy of the shard.
    Copied([u32; 8]),
    Ticked,
    Cleared,
}

/// What an operation said of one class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    said: Said,
    tags: Tags,
    /// A tick came while it ran. A thread that has read the epoch before it may judge by that: for it everything has one tick more left.
    beside_a_tick: bool,
    /// A lookup that said yes may have read half of a slot.
    half_read: bool,
}

impl Says for Answer {
    type State = Left;

    fn states_after(self, left: Left) -> impl Iterator<Item = Left> {
        let late = if self.beside_a_tick && self.said.goes_by_the_epoch() { 1 } else { 0 };
        let told = (self.half_read && matches!(self.said, Said::Found(true))).then_some(left);
        told.into_iter().chain((0..=late).filter_map(move |late| self.said.after(left, self.tags, late)))
    }

    fn only_tells(self) -> bool {
        matches!(self.said, Said::Found(_) | Said::Largest(_) | Said::Copied(_))
    }
}

impl Said {
    /// Whether an older epoch than that of the moment may explain it. A lookup that says no has looked at the epoch twice.
    fn goes_by_the_epoch(self) -> bool {
        !matches!(self, Said::Found(false) | Said::Largest(_) | Said::Ticked | Said::Cleared)
    }

    fn after(self, mut left: Left, tags: Tags, late: u32) -> Option<Left> {
        let epoch = tags.value_for(1);
        let value = |copy: u32| if copy + late * epoch < 2 * epoch { 0 } else { copy + late * epoch - epoch };
        let copy_of = |value: u32| if value == 0 { 0 } else { value + epoch - late * epoch };
        let first = (0..8).filter(|&copy| value(left[copy]) > 0).min_by_key(|&copy| left[copy]);
        let (had, live) =
            (first.map_or(0, |first| value(left[first])), left.iter().filter(|&&copy| value(copy) > 0).count());
        let right = match self {
            Said::Put { if_present: IfPresent::Another, had: Ok(told), .. } if told != 0 => false,
            Said::Put { value: asked, if_present, had: Ok(told) } => {
                if let (Some(first), false) = (first, if_present == IfPresent::Another) {
                    left[first] = copy_of(match if_present {
                        IfPresent::Raise => had.max(asked),
                        IfPresent::AddUpTo { most, .. } if tags.count(had) > most.into() => had,
                        IfPresent::Add { renews } | IfPresent::AddUpTo { renews, .. } => tags.sum(had, asked, renews),
                        IfPresent::Another | IfPresent::Keep => had,
                    });
                    told == had
                } else {
                    let room = (0..8).find(|&copy| value(left[copy]) == 0)?;
                    left[room] = copy_of(asked);
                    told == 0
                }
            }
            Said::Put { had: Err(InsertError::TooManyCopies), .. } => live == 8,
            Said::Put { if_present, had: Err(_), .. } => had == 0 || if_present == IfPresent::Another && live < 8,
            Said::Raised { value, had: told } => {
                if let Some(first) = first {
                    left[first] = copy_of(had.max(value));
                }
                told == had
            }
            Said::Removed(told) => {
                if let Some(first) = first {
                    left[first] = 0;
                }
                told == had
            }
            Said::Subtracted(told) => {
                if let Some(first) = first {
                    left[first] = copy_of(tags.less_one(had));
                }
                told == had
            }
            Said::Found(found) => found == (live > 0),
            Said::Largest(told) => told == left.iter().map(|&copy| value(copy)).max()?,
            Said::Copied(copied) => copied == sorted(left.iter().map(|&copy| value(copy))),
            Said::Ticked => {
                left = left.map(|copy| if copy < 2 * epoch { 0 } else { copy - epoch });
                true
            }
            Said::Cleared => {
                left = Left::default();
                true
            }
        };
        left.sort_unstable();
        right.then_some(left)
    }
}

/// Eight values, those that are not there as 0.
fn sorted(values: impl IntoIterator<Item = u32>) -> [u32; 8] {
    let mut sorted = [0; 8];
    values.into_iter().zip(&mut sorted).for_each(|(value, place)| *place = value);
    sorted.sort_unstable();
    sorted
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Put(IfPresent, u32),
    Raise(u32),
    Remove,
    Subtract,
    LookUp,
    Largest,
    Copy,
    Tick,
    Sweep,
    Clear,
    Split,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    action: Action,
    class: usize,
    turned: bool,
}

/// Bits of a slot and of its tag, buckets, buckets of a stripe as a power of two, and doublings. Slots of 12, 20 and 24 bits
/// straddle words. Tables of slots of 20 bits with 4 of a tag are made 16 bits wide from the fourth doubling on, those of 18
/// bits with 2 at the second.
const TABLES: [(u32, u32, u32, u32, u32); 14] = [
    (16, 2, 2, 0, 0),
    (16, 2, 2, 1, 0),
    (16, 3, 4, 0, 0),
    (16, 4, 8, 1, 0),
    (8, 2, 2, 1, 0),
    (8, 4, 4, 1, 0),
    (32, 2, 4, 0, 0),
    (12, 4, 4, 2, 0),
    (24, 8, 4, 1, 0),
    (16, 2, 2, 4, 2),
    (18, 2, 4, 4, 3),
    (20, 4, 2, 4, 5),
    (24, 8, 4, 4, 2),
    (12, 4, 34, 4, 2),
];

/// A table with something in it, and a program for each thread, all drawn from one number.
pub(super) struct Scenario {
    plan: Plan,
    /// What is put into it beforehand.
    before: Vec<(usize, u32)>,
    counts: bool,
    classes: Vec<Class>,
    programs: Vec<Vec<Step>>,
}

impl Scenario {
    pub(super) fn new(seed: u64, threads: usize, steps: usize) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (width, bits, buckets, stripe_shift, reserve_bits) = rng.choice(TABLES).expect("some");
        // A quarter counts, and a quarter within windows.
        let (counts, count_bits) = match rng.u32(..4) {
            0 => (true, 0),
            1 if bits > 2 => (true, rng.u32(1..=bits - 2)),
            _ => (false, 0),
        };
        let plan = Plan { reserve_bits, count_bits, ..Plan::one_shard(width, buckets, stripe_shift).with_tags(bits) };
        let (least, most) = (1 << count_bits, u32::MAX >> (32 - bits));
        let mut names = BTreeMap::new();
        let mut classes = Vec::new();
        let geometry = Geometry::new(&plan);
        let mut class = |rng: &mut fastrand::Rng| {
            let class = loop {
                let mixed = Mixed::of(rng.u64(..1 << 20));
                let class = if plan.grows() { geometry.cell_place(mixed).class } else { geometry.locate(mixed).1 };
                if !class.coincides() {
                    break class;
                }
            };
            *names.entry(name(class)).or_insert_with(|| {
                classes.push(class);
                classes.len() - 1
            })
        };
        let hot: Vec<usize> = (0..*rng.choice(&[1, 1, 2, 3]).expect("some")).map(|_| class(&mut rng)).collect();
        let slots = 4 * buckets as usize;
        // Half of the tables are so full that a key moves others.
        let load = if rng.bool() { rng.usize(..slots) } else { rng.usize(slots * 3 / 4..=slots) };
        let before = (0..load).map(|_| {
            let class = if rng.u32(..6) == 0 { hot[0] } else { class(&mut rng) };
            (class, rng.u32(least..=most.min(6 * least)))
        });
        let before = before.collect();
        let often = *rng.choice(&[5, 15, 30]).expect("some");
        let mut step = |_| {
            let value = if rng.bool() { most } else { rng.u32(least..=most) };
            let action = match rng.u32(..100) {
                kind if (!counts || count_bits > 0) && kind < often => Action::Tick,
                ..35 if counts && count_bits == 0 => Action::Put(IfPresent::Add { renews: false }, rng.u32(1..=2)),
                // The count of 1 with any time.
                ..35 if counts => Action::Put(IfPresent::Add { renews: rng.bool() }, value / least * least),
                35..45 if counts => {
                    let if_present = IfPresent::AddUpTo { renews: rng.bool(), most: rng.u16(..5) };
                    Action::Put(if_present, if count_bits == 0 { 1 } else { value / least * least })
                }
                45..50 if counts => Action::Remove,
                50..60 if counts => Action::Subtract,
                60..75 if counts => Action::Largest,
                ..35 => Action::Put(IfPresent::Another, value),
                35..42 => Action::Put(IfPresent::Keep, value),
                42..52 => Action::Put(IfPresent::Raise, value),
                52..60 => Action::Raise(value),
                60..72 => Action::Remove,
                72..75 => Action::Sweep,
                75..94 => Action::LookUp,
                94..96 => Action::Copy,
                96..98 if plan.grows() => Action::Split,
                _ => Action::Clear,
            };
            Step { action, class: *rng.choice(&hot).expect("some"), turned: rng.bool() }
        };
        let programs = (0..threads).map(|_| (0..steps).map(&mut step).collect()).collect();
        Scenario { plan, before, counts, classes, programs }
    }
}

/// The filter that the programs of a scenario run on.
pub(super) struct World {
    pub(super) scenario: Scenario,
    filter: RawFilter<Tagging>,
    /// What each class has before they run.
    start: Vec<Left>,
}

/// What one thread has seen, each with the number of its class, or of all.
pub(super) type Seen = Vec<(Option<usize>, Event<Said>)>;

impl World {
    pub(super) fn new(scenario: Scenario) -> Self {
        let filter = RawFilter::<Tagging>::new(&scenario.plan, HugePages::Unadvised).expect("memory");
        let mut start = vec![Left::default(); scenario.classes.len()];
        for &(class, value) in &scenario.before {
            let if_present = if scenario.counts { IfPresent::Add { renews: false } } else { IfPresent::Another };
            let mixed = filter.geometry().leading_to(scenario.classes[class]).expect("classes are drawn from hashes");
            let said = Said::Put { value, if_present, had: filter.put(mixed, Put { value, if_present }) };
            start[class] = said.after(start[class], filter.tags(), 0).expect("one thread is explained");
        }
        World { scenario, filter, start }
    }

    /// Runs the program of one thread. `now` is the time.
    pub(super) fn run(&self, thread: usize, now: impl Fn() -> u64) -> Seen {
        let mut seen = Seen::new();
        for &Step { action, class: number, turned } in &self.scenario.programs[thread] {
            let class = self.scenario.classes[number];
            let class = if turned { class.turned() } else { class };
            let (mixed, begin) = (self.mixed(class), now());
            let said = match action {
                Action::Put(if_present, value) => {
                    Said::Put { value, if_present, had: self.filter.put(mixed, Put { value, if_present }) }
                }
                Action::Raise(value) => {
                    Said::Raised { value, had: self.filter.update(mixed, None, |had| had.max(value)) }
                }
                Action::Remove => Said::Removed(self.filter.remove_value(mixed, None)),
                Action::Subtract => {
                    let tags = self.filter.tags();
                    Said::Subtracted(self.filter.update(mixed, None, |had| tags.less_one(had)))
                }
                Action::LookUp => Said::Found(self.filter.contains(mixed)),
                Action::Largest => Said::Largest(self.values(class)[7]),
                Action::Copy => {
                    let copied = self.copy();
                    let end = now();
                    let of = |(class, copied)| (Some(class), Event { answer: Said::Copied(copied), begin, end });
                    seen.extend(copied.into_iter().enumerate().map(of));
                    continue;
                }
                Action::Tick => {
                    self.filter.advance();
                    Said::Ticked
                }
                Action::Sweep => {
                    self.filter.sweep(1);
                    continue;
                }
                Action::Split => {
                    self.filter.growing().expect("it grows").split_owner(mixed);
                    continue;
                }
                Action::Clear => {
                    self.filter.clear();
                    Said::Cleared
                }
            };
            let of_all = matches!(said, Said::Ticked | Said::Cleared);
            seen.push(((!of_all).then_some(number), Event { answer: said, begin, end: now() }));
        }
        seen
    }

    fn mixed(&self, class: Class) -> Mixed {
        self.filter.geometry().leading_to(class).expect("classes are drawn from hashes")
    }

    fn values(&self, class: Class) -> [u32; 8] {
        sorted(self.filter.values(self.mixed(class)))
    }

    /// What each class has in a copy of its table, at the epoch of that.
    fn copy(&self) -> Vec<[u32; 8]> {
        let (mut live, mut words) = (Vec::new(), vec![0; self.scenario.plan.words]);
        let Ok(()) = self.filter.copy_each(0..1, &mut words, |copy, words| {
            live.extend(self.filter.contents(copy, words).map(|(place, value)| (name(place.class), value)));
            Ok::<_, Infallible>(())
        });
        let of =
            |class: &Class| sorted(live.iter().filter(|(other, _)| *other == name(*class)).map(|&(_, value)| value));
        self.scenario.classes.iter().map(of).collect()
    }

    /// Checks all that was seen, and what is there now that every thread has ended. An error says what is wrong.
    pub(super) fn check(&self, seen: &[Seen]) -> Result<usize, String> {
        let all: Vec<_> = seen.iter().flatten().copied().collect();
        let at_rest = |answer| Event { answer, begin: u64::MAX, end: u64::MAX };
        for (number, &class) in self.scenario.classes.iter().enumerate() {
            let of = all.iter().filter(|(of, _)| of.is_none_or(|of| of == number)).map(|&(_, event)| event);
            let found = [class, class.turned()].map(|class| Said::Found(self.filter.contains(self.mixed(class))));
            let last = found.into_iter().chain([Said::Copied(self.values(class))]).map(at_rest);
            let events = of.chain(last).map(|event| Event {
                answer: self.answer(event, &all),
                begin: event.begin,
                end: event.end,
            });
            let mut history = History { copies: self.start[number], events: events.collect() };
            if !history.is_linearizable() {
                history.events.sort_by_key(|event| event.begin);
                return Err(format!(
                    "{:?}: no order explains what was said of {class:?}: {history:#?}",
                    self.scenario.plan
                ));
            }
        }
        let occupied = self.filter.with_tables(|tables| tables.map(|table| table.occupied()).sum::<Option<u64>>());
        if Some(self.filter.len() as u64) != occupied {
            return Err("slots in use are not counted".into());
        }
        Ok(self.scenario.classes.len())
    }

    fn answer(&self, event: Event<Said>, all: &[(Option<usize>, Event<Said>)]) -> Answer {
        let beside = |is: fn(&Said) -> bool| {
            all.iter().any(|(_, other)| is(&other.answer) && other.begin <= event.end && event.begin <= other.end)
        };
        let straddles = 64 % self.scenario.plan.slot_bits != 0;
        Answer {
            said: event.answer,
            tags: self.filter.tags(),
            beside_a_tick: beside(|said| matches!(said, Said::Ticked)),
            half_read: straddles && beside(|said| !matches!(said, Said::Found(_) | Said::Largest(_) | Said::Copied(_))),
        }
    }
}

fn name(class: Class) -> (u32, u32) {
    (class.fingerprint.get(), class.first.min(class.second).get())
}

/// Histories of threads of the system, in pairs and in fours, which wait for each other before each program.
#[test]
fn what_threads_say_beside_ticks_can_be_explained() {
    let mut classes = 0;
    for (threads, steps, pause) in [(2, 24, Pause::None), (2, 24, Pause::Spin), (4, 8, Pause::Sleep)] {
        let worlds = (0..full_or(50_000, 1_500)).map(|seed| World::new(Scenario::new(seed, threads, steps)));
        let worlds: Vec<World> = worlds.collect();
        let seen = on_threads(threads, pause, 0, &worlds, |world, thread, now| world.run(thread, now));
        for (number, (world, seen)) in worlds.iter().zip(seen).enumerate() {
            classes += world.check(&seen).unwrap_or_else(|wrong| panic!("scenario {number}: {wrong}"));
        }
    }
    println!("\n{classes} classes of filters with tags, every history explained");
}

/// Answers with one fault each, which no order explains.
#[test]
fn wrong_answers_beside_ticks_are_refused() {
    let tags = Tags::new(&Plan::one_shard(16, 2, 4).with_tags(2));
    let answer = |said, begin, end, beside_a_tick| Event {
        answer: Answer { said, tags, beside_a_tick, half_read: false },
        begin,
        end,
    };
    let explained =
        |events: &[Event<Answer>]| History { copies: Left::default(), events: events.to_vec() }.is_linearizable();
    let put = |value, had| Said::Put { value, if_present: IfPresent::Raise, had: Ok(had) };
    let with = |told| answer(told, 6, 7, false);
    let ticked = [answer(put(2, 0), 0, 1, false), answer(Said::Ticked, 2, 3, false)];
    let once = |told| explained(&[ticked[0], ticked[1], with(told)]);
    assert!(once(put(3, 1)) && !once(put(3, 0)) && !once(put(3, 2)));
    assert!(once(Said::Found(true)) && !once(Said::Found(false)));
    assert!(once(Said::Removed(1)) && !once(Said::Removed(2)) && !once(Said::Removed(0)));
    assert!(once(Said::Raised { value: 3, had: 1 }) && !once(Said::Raised { value: 3, had: 2 }));
    assert!(once(Said::Copied(sorted([1]))) && !once(Said::Copied(sorted([2]))) && !once(Said::Copied(sorted([]))));
    assert!(!once(Said::Put { value: 1, if_present: IfPresent::Another, had: Err(InsertError::TooManyCopies) }));
    let twice = |told| explained(&[ticked[0], ticked[1], answer(Said::Ticked, 4, 5, false), with(told)]);
    assert!(twice(Said::Found(false)) && !twice(Said::Found(true)));
    // Whatever ran concurrently with the second tick may have judged by the epoch before it, but one that saw nothing has looked twice.
    let beside = |told| {
        let events = [ticked[0], ticked[1], answer(Said::Ticked, 4, 8, true), answer(told, 5, 6, true)];
        explained(&events) && explained(&[events[0], events[1], answer(Said::Ticked, 4, 4, true), events[3]])
    };
    assert!(beside(put(3, 1)) && beside(put(3, 0)) && beside(Said::Found(true)) && !beside(put(3, 2)));
}
