//! Sequences of operations on filters with a number beside each fingerprint, where each answer is compared with an exact model:
//! for every class, such a filter holds a multiset of deadlines or tags, or one count. The filter may refuse a copy that the model
//! takes only for lack of room.

use super::setup::width;
use crate::input::Input;
use crate::written;
use concurrent_cuckoo_filter::kind::{Kind, Timed};
use concurrent_cuckoo_filter::{
    BuildError, Builder, BulkReport, CountingFilter, ExpiringFilter, Filter, FilterView, InsertError, SnapshotReader,
    StableHashBuilder, TaggedFilter,
};
use std::collections::HashMap;
use std::time::Duration;

const CAPACITIES: [usize; 6] = [0, 3, 17, 50, 80, 200];
const KEYS: u64 = 64;
const TICK: Duration = Duration::from_secs(10);

/// From this tick on, the clock does not advance by the longest time again: epochs end at 2^63.
const LATE: u64 = 1 << 62;

type Of<T> = Filter<u64, StableHashBuilder, T>;

/// Draws a filter of one of the three kinds and a sequence of operations from the bytes. Returns whether there is such a filter:
/// otherwise its slots would be too wide.
///
/// # Panics
///
/// If an answer is wrong.
pub fn run(bytes: &[u8]) -> bool {
    let mut input = Input::new(bytes);
    let ran = match input.byte() % 3 {
        0 => expiring(&mut input),
        1 => counting(&mut input),
        _ => tagged(&mut input),
    };
    ran.is_some()
}

struct Subject<T: Kind> {
    filter: Of<T>,
    classes: Vec<usize>,
    /// The present tick, and the tick at which the filter was built or read.
    now: u64,
    begun: u64,
}

impl<T: Kind> Subject<T> {
    /// Returns `None` if no slot is wide enough.
    fn new<S>(builder: Builder<u64, S, T>, input: &mut Input) -> Option<Self> {
        let (capacity, bits) = (input.pick(&CAPACITIES), width(input));
        let hasher = StableHashBuilder::with_seeds(5, 6);
        let builder = builder.capacity(capacity).fingerprint_bits(bits).hasher(hasher);
        let builder = if input.byte().is_multiple_of(2) { builder } else { builder.max_capacity(capacity + 1000) };
        let filter = match builder.build() {
            Err(BuildError::OutOfRange { .. }) => return None,
            built => built.expect("every shape is possible"),
        };
        let mut numbers = HashMap::new();
        let class = |key| {
            let next = numbers.len();
            *numbers.entry(filter.class_of(&key)).or_insert(next)
        };
        Some(Subject { classes: (0..KEYS).map(class).collect(), filter, now: 0, begun: 0 })
    }

    fn class(&self, key: u64) -> usize {
        self.classes[key as usize]
    }

    /// Continues with the filter that is read from a snapshot, checks the bytes, and compares all keys with a view of them.
    fn reread(&mut self, check: impl Fn(&FilterView<'_, Of<T>>, &Self)) {
        let bytes = written(|to| self.filter.write_to(to));
        SnapshotReader::new(&bytes[..]).expect("it was just written").check().expect("it was just written");
        self.filter = Filter::read_from(&bytes[..], self.filter.hasher().clone()).expect("it was just written");
        self.begun = self.now;
        check(&FilterView::from_bytes(&bytes).expect("it was just written"), self);
    }

    fn check_all(&self, is_present: impl Fn(usize) -> bool) {
        let (keys, mut found) = (Vec::from_iter(0..KEYS), [false; KEYS as usize]);
        self.filter.contains_batch(&keys, &mut found);
        for (key, found) in keys.into_iter().zip(found) {
            assert_eq!([found, self.filter.contains(&key)], [is_present(self.class(key)); 2], "{key}");
        }
    }
}

impl<T: Timed> Subject<T> {
    /// Advances the time of the filter, or continues with a copy. `check` compares a view with the model at a tick.
    fn other(&mut self, what: u8, number: u8, check: impl Fn(&FilterView<'_, Of<T>>, &Self, u64)) {
        match what % 16 {
            11 => {
                self.filter.sweep(number.into());
                let (in_use, cleared) = (self.filter.len(), self.filter.advance());
                assert_eq!(self.filter.len(), in_use - cleared);
                self.now += 1;
            }
            12 => {
                let (later, dies) =
                    (self.now - self.begun + u64::from(number % 40), self.filter.config().tick.is_some());
                let is_last = number >= 250 && self.now < LATE;
                let passed =
                    if is_last { Duration::MAX } else { Duration::from_secs(later.saturating_mul(TICK.as_secs())) };
                let due = (self.begun + passed.as_secs() / TICK.as_secs()).saturating_sub(self.now);
                let ticks = if dies { due } else { 0 };
                self.now += ticks;
                assert_eq!(self.filter.advance_to(passed), ticks);
                assert_eq!(self.filter.advance_to(passed / 2), 0, "to a time that is past");
                assert!(!self.filter.sweep(usize::from(what >> 4)) || dies, "counts that stay are not swept");
            }
            13 => self.reread(|view, this| {
                for ticks in [0, u64::from(what >> 4)] {
                    view.advance_to(ticks as u32 * TICK);
                    check(view, this, this.now + ticks);
                }
            }),
            _ => self.filter = self.filter.clone(),
        }
    }
}

/// Returns whether a copy was stored beside this number of copies of its class.
fn is_stored(result: Result<(), InsertError>, copies: usize) -> bool {
    assert_eq!(result == Err(InsertError::TooManyCopies), copies == 8, "{result:?} beside {copies} copies");
    result.is_ok()
}

/// Checks the result of an operation that stores a class only if the class is absent. Returns `None` if the operation was refused
/// as full, which never happens to a present class.
fn unless_full<R>(result: Result<R, InsertError>, is_absent: bool) -> Option<R> {
    result.map_err(|error| assert_eq!((error, is_absent), (InsertError::Full, true), "it has a slot")).ok()
}

fn refused(report: &BulkReport, keys: usize) -> Vec<bool> {
    assert_eq!(report.inserted + report.present + report.refused.len(), keys);
    (0..keys).map(|index| report.refused.iter().any(|refused| refused.index == index)).collect()
}

/// Reads the keys of a batch, which may repeat.
fn batch(input: &mut Input) -> Vec<u64> {
    let length = input.byte() % 40;
    input.take(length.into()).iter().map(|&key| u64::from(key) % KEYS).collect()
}

fn expiring(input: &mut Input) -> Option<()> {
    let steps = input.pick(&[2, 6, 14, 30, 62, 126, 254]);
    let mut subject = Subject::new(ExpiringFilter::builder().time_to_live(steps * TICK).steps(steps), input)?;
    let most = u64::from(steps) + 1;
    // The ticks at which the copies of each class die, in order.
    let mut deadlines = vec![Vec::<u64>::new(); KEYS as usize];
    while let (Some(what), Some(number)) = (input.next_byte(), input.next_byte()) {
        let (filter, now, key) = (&subject.filter, subject.now, u64::from(number) % KEYS);
        let mine = &mut deadlines[subject.class(key)];
        let (longest, copies) = (now + most, mine.len());
        let see = |mine: &mut Vec<u64>| {
            mine.drain(..mine.len().min(1));
            mine.push(longest);
        };
        match what % 16 {
            0..3 => {
                let life = u64::from(what >> 4) % most;
                let stored = is_stored(filter.insert_for(&key, life as u32 * TICK), copies);
                mine.extend(stored.then_some(now + life + 1));
            }
            3 => mine.extend(is_stored(filter.insert(&key), copies).then_some(longest)),
            4..6 => {
                assert_eq!(filter.remove(&key), copies > 0, "{key}");
                mine.drain(..copies.min(1));
            }
            6 => {
                if let Some(seen) = unless_full(filter.see(&key), copies == 0) {
                    assert_eq!(seen, copies > 0, "{key}");
                    see(mine);
                }
            }
            7 => {
                if let Some(stored) = unless_full(filter.insert_unique(&key), copies == 0) {
                    assert_eq!(stored, copies == 0, "{key}");
                    mine.extend(stored.then_some(longest));
                }
            }
            8 => {
                assert_eq!(filter.renew(&key), copies > 0, "{key}");
                if copies > 0 {
                    see(mine);
                }
            }
            9 => {
                let keys = batch(input);
                let mut seen = vec![false; keys.len()];
                let report = filter.see_batch(&keys, &mut seen);
                for ((&key, &seen), is_refused) in keys.iter().zip(&seen).zip(refused(&report, keys.len())) {
                    let mine = &mut deadlines[subject.class(key)];
                    assert_eq!(seen, !mine.is_empty(), "{key}");
                    if is_refused {
                        assert!(mine.is_empty(), "{key} has a slot");
                    } else {
                        see(mine);
                    }
                }
            }
            10 | 15 => assert_eq!(filter.contains(&key), copies > 0, "{key}"),
            _ => subject.other(what, number, |view, subject, now| {
                let lives = |key: &u64| deadlines[subject.class(*key)].iter().any(|end| *end > now);
                assert!((0..KEYS).all(|key| view.contains(&key) == lives(&key)), "at {now}");
            }),
        }
        for mine in &mut deadlines {
            mine.retain(|&deadline| deadline > subject.now);
            mine.sort_unstable();
        }
        assert!(subject.filter.len() >= deadlines.iter().map(Vec::len).sum());
    }
    subject.check_all(|class| !deadlines[class].is_empty());
    (0..=most).for_each(|_| _ = subject.filter.advance());
    assert!(subject.filter.is_empty(), "everything dies");
    Some(())
}

/// The counts of all classes: the tick at which each window ends, and its count.
struct Counts {
    /// The largest count, at which a counter stays, since it may stand for a larger one.
    most: u32,
    /// The length of a window.
    ticks: u64,
    renews: bool,
    windows: Vec<(u64, u32)>,
}

impl Counts {
    fn count(&self, class: usize, now: u64) -> u32 {
        let (end, count) = self.windows[class];
        if end > now { count } else { 0 }
    }

    fn add(&mut self, class: usize, now: u64, limit: Option<u32>) -> Option<u32> {
        let count = self.count(class, now);
        if limit.is_some_and(|limit| count >= limit.min(self.most)) {
            return None;
        }
        let end = if count == 0 || self.renews { now + self.ticks } else { self.windows[class].0 };
        self.windows[class] = (end, (count + 1).min(self.most));
        Some(self.windows[class].1)
    }

    fn subtract(&mut self, class: usize, now: u64) -> Option<u32> {
        let count = self.count(class, now);
        self.windows[class].1 = if count == self.most { count } else { count.saturating_sub(1) };
        (count > 0).then_some(self.windows[class].1)
    }
}

/// Counts that stay, or that die by either kind of deadline.
fn counting(input: &mut Input) -> Option<()> {
    let (bits, steps) = input.pick(&[(1_u32, 2_u32), (4, 6), (5, 6), (8, 6), (3, 30), (2, 14)]);
    let (builder, policy) = (CountingFilter::builder().counter_bits(bits), input.byte() % 3);
    let builder = match policy {
        0 => builder,
        1 => builder.steps(steps).time_to_live(steps * TICK),
        _ => builder.steps(steps).time_to_idle(steps * TICK),
    };
    let mut subject = Subject::new(builder, input)?;
    // Where counts stay, 0 is no count.
    let (most, ticks) = if policy == 0 { ((1 << bits) - 1, 1 << 60) } else { (1 << bits, u64::from(steps) + 1) };
    assert_eq!(subject.filter.config().max_count, most);
    let mut exact = Counts { most, ticks, renews: policy == 2, windows: vec![(0, 0); KEYS as usize] };
    while let (Some(what), Some(number)) = (input.next_byte(), input.next_byte()) {
        let (filter, now, key) = (&subject.filter, subject.now, u64::from(number) % KEYS);
        let class = subject.class(key);
        let is_absent = exact.count(class, now) == 0;
        // Every second addition has a limit.
        let limit = (what % 2 == 1).then_some(u32::from(what >> 4) % 6);
        match what % 16 {
            0..6 => {
                let added = limit.map_or_else(|| filter.add(&key).map(Some), |limit| filter.try_add(&key, limit));
                if let Some(count) = unless_full(added, is_absent) {
                    assert_eq!(count, exact.add(class, now, limit), "{key} up to {limit:?}");
                }
            }
            6 => assert_eq!(filter.subtract(&key), exact.subtract(class, now), "{key}"),
            7 => {
                assert_eq!(filter.remove(&key), !is_absent, "{key}");
                exact.windows[class].1 = 0;
            }
            8..10 => {
                let keys = batch(input);
                let mut counts = vec![9; keys.len()];
                let report = match limit {
                    None => filter.add_batch(&keys, &mut counts),
                    Some(limit) => filter.try_add_batch(&keys, limit, &mut counts),
                };
                for ((&key, &count), is_refused) in keys.iter().zip(&counts).zip(refused(&report, keys.len())) {
                    let class = subject.class(key);
                    assert!(!is_refused || exact.count(class, now) == 0, "{key} has a slot");
                    let added = if is_refused { None } else { exact.add(class, now, limit) };
                    assert_eq!(count, added.unwrap_or(0), "{key}");
                }
            }
            10 => {
                let keys = batch(input);
                let mut left = vec![Some(9); keys.len()];
                filter.subtract_batch(&keys, &mut left);
                let expected = keys.iter().map(|&key| exact.subtract(subject.class(key), now));
                assert!(expected.eq(left.iter().copied()), "{left:?}");
            }
            15 => assert_eq!(filter.count(&key), exact.count(class, now), "{key}"),
            _ => subject.other(what, number, |view, subject, now| {
                for key in 0..KEYS {
                    let count = exact.count(subject.class(key), now);
                    assert_eq!((view.count(&key), view.contains(&key)), (count, count > 0), "{key}");
                }
            }),
        }
    }
    let (keys, mut counts) = (Vec::from_iter(0..KEYS), [9; KEYS as usize]);
    subject.filter.count_batch(&keys, &mut counts);
    assert!(keys.iter().all(|&key| counts[key as usize] == exact.count(subject.class(key), subject.now)), "{counts:?}");
    subject.check_all(|class| exact.count(class, subject.now) > 0);
    (0..=ticks.min(300)).for_each(|_| _ = subject.filter.advance());
    assert!(subject.filter.is_empty() || policy == 0, "everything dies");
    assert!(subject.filter.stats().epoch == 0 || policy > 0, "counts that stay have no time");
    Some(())
}

fn tagged(input: &mut Input) -> Option<()> {
    let tags = input.pick(&[1, 3, 15, 200, 65_535]);
    let mut subject = Subject::new(TaggedFilter::builder().tags(tags), input)?;
    // The tags of each class, in order.
    let mut all = vec![Vec::<u32>::new(); KEYS as usize];
    let sorted = |told: &mut dyn Iterator<Item = u32>| {
        let mut told = Vec::from_iter(told);
        told.sort_unstable();
        told
    };
    while let (Some(what), Some(number)) = (input.next_byte(), input.next_byte()) {
        let (key, tag) = (u64::from(number) % KEYS, u32::from(what >> 3) % tags);
        let mine = &mut all[subject.class(key)];
        let (last, place) = (mine.last().copied().unwrap_or(0), mine.iter().position(|&mine| mine == tag));
        match what % 8 {
            0 => {
                assert_eq!(subject.filter.remove(&key, tag), place.is_some(), "{tag} of {key}");
                mine.drain(place.map_or(0..0, |place| place..place + 1));
            }
            1 => {
                assert_eq!(subject.filter.retag(&key, last, tag), Ok(!mine.is_empty()), "{last} of {key}");
                mine.pop().into_iter().for_each(|_| mine.push(tag));
            }
            2 => subject.reread(|view, subject| {
                assert_eq!(view.header().stored, subject.filter.len() as u64);
                (0..KEYS).for_each(|key| assert_eq!(sorted(&mut view.tags(&key)), all[subject.class(key)]));
            }),
            3 => subject.filter = subject.filter.clone(),
            _ => mine.extend(is_stored(subject.filter.insert(&key, tag), mine.len()).then_some(tag)),
        }
        let (filter, mine) = (&subject.filter, &mut all[subject.class(key)]);
        mine.sort_unstable();
        assert_eq!((sorted(&mut filter.tags(&key)), filter.tag(&key)), (mine.clone(), mine.first().copied()), "{key}");
    }
    let (keys, mut told) = (Vec::from_iter(0..KEYS), [None; KEYS as usize]);
    subject.filter.tag_batch(&keys, &mut told);
    assert!(keys.iter().all(|&key| told[key as usize] == all[subject.class(key)].first().copied()), "{told:?}");
    subject.check_all(|class| !all[class].is_empty());
    assert_eq!(subject.filter.len(), all.iter().map(Vec::len).sum::<usize>());
    Some(())
}
