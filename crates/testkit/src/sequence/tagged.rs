//! Sequences of operations on filters that keep a number beside each fingerprint, each answer compared with an exact model: for
//! every class, such a filter holds a multiset of deadlines or tags, or one count. Only where there is no room may a copy be
//! refused that the model takes.

use crate::input::Input;
use crate::written;
use concurrent_cuckoo_filter::kind::{Counting, Expiring, Kind, Tagged};
use concurrent_cuckoo_filter::{
    BuildError, Builder, BulkReport, CountingFilter, ExpiringFilter, Filter, FilterView, InsertError, SnapshotReader,
    StableHashBuilder, TaggedFilter,
};
use std::collections::HashMap;
use std::time::Duration;

const CAPACITIES: [usize; 6] = [0, 3, 17, 50, 80, 200];
const RATES: [f64; 4] = [0.3, 0.05, 0.001, 1e-5];
const KEYS: u64 = 64;
const TICK: Duration = Duration::from_secs(10);

type Of<T> = Filter<u64, StableHashBuilder, T>;

/// Draws a filter of one of the three kinds and a sequence of operations from the bytes.
///
/// # Panics
///
/// If an answer is wrong.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    match input.byte() % 3 {
        0 => expiring(&mut input),
        1 => counting(&mut input),
        _ => tagged(&mut input),
    };
}

fn hasher() -> StableHashBuilder {
    StableHashBuilder::with_seeds(5, 6)
}

/// The filter, fixed in size or growing, and the number of the class of each key; `None` if no slot is wide enough.
fn built<T: Kind, S>(builder: Builder<u64, S, T>, input: &mut Input) -> Option<(Of<T>, Vec<usize>)> {
    let (capacity, rate) = (input.pick(&CAPACITIES), input.pick(&RATES));
    let builder = builder.capacity(capacity).false_positive_rate(rate).hasher(hasher());
    let builder = if input.byte().is_multiple_of(2) { builder } else { builder.max_capacity(capacity + 1000) };
    match builder.build() {
        Ok(filter) => {
            let mut numbers = HashMap::new();
            let class = |key| {
                let next = numbers.len();
                *numbers.entry(filter.class_of(&key)).or_insert(next)
            };
            let classes = (0..KEYS).map(class).collect();
            Some((filter, classes))
        }
        Err(BuildError::RateTooLow { .. }) => None,
        Err(error) => panic!("every shape is possible: {error}"),
    }
}

/// The bytes of a snapshot, which are valid, and the filter that is read from them.
fn reread<T: Kind>(filter: &Of<T>) -> (Vec<u8>, Of<T>) {
    let bytes = written(|to| filter.write_to(to));
    SnapshotReader::new(&bytes[..]).expect("it was just written").check().expect("it was just written");
    let read = Filter::read_from(&bytes[..], hasher()).expect("it was just written");
    (bytes, read)
}

/// Whether a copy was stored beside this many of its class.
fn is_stored(result: Result<(), InsertError>, copies: usize) -> bool {
    assert_eq!(result == Err(InsertError::TooManyCopies), copies == 8, "{result:?} beside {copies} copies");
    result.is_ok()
}

/// Checks the result of an operation that stores a class only if the class is absent. Returns `None` if the operation was refused as
/// full, which a present class never is.
fn unless_full<R>(result: Result<R, InsertError>, is_absent: bool) -> Option<R> {
    result.map_err(|error| assert_eq!((error, is_absent), (InsertError::Full, true), "it has a slot")).ok()
}

/// Of each key of a batch, whether it was refused.
fn refused(report: &BulkReport, keys: usize) -> Vec<bool> {
    assert_eq!(report.inserted + report.present + report.refused.len(), keys);
    (0..keys).map(|index| report.refused.iter().any(|refused| refused.index == index)).collect()
}

/// The keys of a batch, which may repeat.
fn batch(input: &mut Input) -> Vec<u64> {
    let length = input.byte() % 40;
    input.take(length.into()).iter().map(|&key| u64::from(key) % KEYS).collect()
}

/// The time of a filter in ticks, and when it was built or read.
#[derive(Default)]
struct Clock {
    now: u64,
    begun: u64,
}

impl Clock {
    /// The time since the filter was built or read, when this many ticks more have passed.
    fn later(&mut self, ticks: u64) -> Duration {
        self.now += ticks;
        (self.now - self.begun) as u32 * TICK
    }
}

fn expiring(input: &mut Input) -> Option<()> {
    let steps = input.pick(&[2, 6, 14, 30]);
    let (mut filter, classes) = built(ExpiringFilter::builder().time_to_live(steps * TICK).steps(steps), input)?;
    let (most, mut clock) = (u64::from(steps) + 1, Clock::default());
    // The ticks at which the copies of each class die, in order.
    let mut deadlines = vec![Vec::<u64>::new(); classes.len()];
    while let (Some(what), Some(number)) = (input.next_byte(), input.next_byte()) {
        let key = u64::from(number) % KEYS;
        let mine = &mut deadlines[classes[key as usize]];
        let (longest, copies) = (clock.now + most, mine.len());
        let see = |mine: &mut Vec<u64>| {
            mine.drain(..mine.len().min(1));
            mine.push(longest);
        };
        match what % 16 {
            0..3 => {
                let life = u64::from(what >> 4) % most;
                let stored = is_stored(filter.insert_for(&key, life as u32 * TICK), copies);
                mine.extend(stored.then_some(clock.now + life + 1));
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
                    let mine = &mut deadlines[classes[key as usize]];
                    assert_eq!(seen, !mine.is_empty(), "{key}");
                    if is_refused {
                        assert!(mine.is_empty(), "{key} has a slot");
                    } else {
                        see(mine);
                    }
                }
            }
            10 => _ = filter.sweep(number.into()),
            11 => {
                filter.advance();
                clock.now += 1;
            }
            12 => {
                let ticks = u64::from(number % 40);
                assert_eq!(filter.advance_to(clock.later(ticks)), ticks);
            }
            13 => {
                let bytes;
                (bytes, filter) = reread(&filter);
                clock.begun = clock.now;
                let view = FilterView::<Of<Expiring>>::from_bytes(&bytes).expect("it was just written");
                for ticks in [0, u64::from(what >> 4)] {
                    view.advance_to(ticks as u32 * TICK);
                    let lives =
                        |key: &u64| deadlines[classes[*key as usize]].iter().any(|end| *end > clock.now + ticks);
                    assert!((0..KEYS).all(|key| view.contains(&key) == lives(&key)), "after {ticks} ticks");
                }
            }
            14 => filter = filter.clone(),
            _ => assert_eq!(filter.contains(&key), copies > 0, "{key}"),
        }
        for mine in &mut deadlines {
            mine.retain(|&deadline| deadline > clock.now);
            mine.sort_unstable();
        }
    }
    let (keys, mut found) = (Vec::from_iter(0..KEYS), [false; KEYS as usize]);
    filter.contains_batch(&keys, &mut found);
    assert!(keys.iter().all(|&key| found[key as usize] != deadlines[classes[key as usize]].is_empty()), "{found:?}");
    (0..=most).for_each(|_| _ = filter.advance());
    assert!(filter.is_empty(), "everything dies");
    Some(())
}

/// Counts by class: the end of each window, in ticks, and its count.
struct Counts {
    /// At which a count stays, as it may stand for a larger one.
    most: u32,
    /// Of a window.
    ticks: u64,
    renews: bool,
    windows: Vec<(u64, u32)>,
}

impl Counts {
    fn count(&self, class: usize, now: u64) -> u32 {
        let (end, count) = self.windows[class];
        if end > now { count } else { 0 }
    }

    fn add(&mut self, class: usize, now: u64) -> u32 {
        let count = self.count(class, now);
        let end = if count == 0 || self.renews { now + self.ticks } else { self.windows[class].0 };
        self.windows[class] = (end, (count + 1).min(self.most));
        self.windows[class].1
    }

    fn try_add(&mut self, class: usize, now: u64, limit: u32) -> Option<u32> {
        (self.count(class, now) < limit.min(self.most)).then(|| self.add(class, now))
    }

    fn subtract(&mut self, class: usize, now: u64) -> Option<u32> {
        let count = self.count(class, now);
        self.windows[class].1 = if count == self.most { count } else { count.saturating_sub(1) };
        (count > 0).then_some(self.windows[class].1)
    }
}

/// Counts that stay, or die by either deadline.
fn counting(input: &mut Input) -> Option<()> {
    let (bits, steps) = input.pick(&[(1_u32, 2_u32), (4, 6), (5, 6), (8, 6), (3, 30), (2, 14)]);
    let (builder, policy) = (CountingFilter::builder().counter_bits(bits), input.byte() % 3);
    let builder = match policy {
        0 => builder,
        1 => builder.steps(steps).time_to_live(steps * TICK),
        _ => builder.steps(steps).time_to_idle(steps * TICK),
    };
    let (mut filter, classes) = built(builder, input)?;
    // Where counts stay, 0 is no count.
    let (most, ticks) = if policy == 0 { ((1 << bits) - 1, 1 << 60) } else { (1 << bits, u64::from(steps) + 1) };
    assert_eq!(filter.config().max_count, most);
    let mut exact = Counts { most, ticks, renews: policy == 2, windows: vec![(0, 0); classes.len()] };
    let mut clock = Clock::default();
    while let (Some(what), Some(number)) = (input.next_byte(), input.next_byte()) {
        let (key, now) = (u64::from(number) % KEYS, clock.now);
        let (class, limit) = (classes[key as usize], u32::from(what >> 4) % 6);
        let is_absent = exact.count(class, now) == 0;
        match what % 16 {
            0..4 => {
                if let Some(count) = unless_full(filter.add(&key), is_absent) {
                    assert_eq!(count, exact.add(class, now), "{key}");
                }
            }
            4..6 => {
                if let Some(count) = unless_full(filter.try_add(&key, limit), is_absent) {
                    assert_eq!(count, exact.try_add(class, now, limit), "{key} up to {limit}");
                }
            }
            6 => assert_eq!(filter.subtract(&key), exact.subtract(class, now), "{key}"),
            7 => {
                assert_eq!(filter.remove(&key), !is_absent, "{key}");
                exact.windows[class].1 = 0;
            }
            what @ 8..10 => {
                let keys = batch(input);
                let mut counts = vec![9; keys.len()];
                let report = match what {
                    8 => filter.add_batch(&keys, &mut counts),
                    _ => filter.try_add_batch(&keys, limit, &mut counts),
                };
                for ((&key, &count), is_refused) in keys.iter().zip(&counts).zip(refused(&report, keys.len())) {
                    let class = classes[key as usize];
                    assert!(!is_refused || exact.count(class, now) == 0, "{key} has a slot");
                    let added = match what {
                        _ if is_refused => None,
                        8 => Some(exact.add(class, now)),
                        _ => exact.try_add(class, now, limit),
                    };
                    assert_eq!(count, added.unwrap_or(0), "{key}");
                }
            }
            10 => {
                let keys = batch(input);
                let mut left = vec![Some(9); keys.len()];
                filter.subtract_batch(&keys, &mut left);
                let expected = keys.iter().map(|&key| exact.subtract(classes[key as usize], now));
                assert!(expected.eq(left.iter().copied()), "{left:?}");
            }
            11 | 12 if policy == 0 => {
                assert_eq!((filter.advance(), filter.advance_to(Duration::MAX), filter.stats().epoch), (0, 0, 0));
                assert!(!filter.sweep(1));
            }
            11 => {
                filter.advance();
                clock.now += 1;
            }
            12 => {
                let ticks = u64::from(number % 40);
                assert_eq!(filter.advance_to(clock.later(ticks)), ticks);
                filter.sweep(usize::from(what >> 4));
            }
            13 => {
                let bytes;
                (bytes, filter) = reread(&filter);
                clock.begun = now;
                let view = FilterView::<Of<Counting>>::from_bytes(&bytes).expect("it was just written");
                for ticks in [0, u64::from(what >> 4)] {
                    view.advance_to(ticks as u32 * TICK);
                    for key in 0..KEYS {
                        let count = exact.count(classes[key as usize], now + ticks);
                        assert_eq!((view.count(&key), view.contains(&key)), (count, count > 0), "{key}");
                    }
                }
            }
            14 => filter = filter.clone(),
            _ => assert_eq!(filter.count(&key), exact.count(class, now), "{key}"),
        }
    }
    let (keys, mut counts, mut found) = (Vec::from_iter(0..KEYS), [9; KEYS as usize], [false; KEYS as usize]);
    filter.count_batch(&keys, &mut counts);
    filter.contains_batch(&keys, &mut found);
    for key in keys {
        let (at, count) = (key as usize, exact.count(classes[key as usize], clock.now));
        assert_eq!((counts[at], found[at], filter.contains(&key)), (count, count > 0, count > 0), "{key}");
    }
    (0..=ticks.min(300)).for_each(|_| _ = filter.advance());
    assert!(filter.is_empty() || policy == 0, "everything dies");
    Some(())
}

fn tagged(input: &mut Input) -> Option<()> {
    let tags = input.pick(&[1, 3, 15, 200, 65_535]);
    let (mut filter, classes) = built(TaggedFilter::builder().tags(tags), input)?;
    // The tags of each class, in order.
    let mut all = vec![Vec::<u32>::new(); classes.len()];
    let sorted = |told: &mut dyn Iterator<Item = u32>| {
        let mut told = Vec::from_iter(told);
        told.sort_unstable();
        told
    };
    while let (Some(what), Some(number)) = (input.next_byte(), input.next_byte()) {
        let (key, tag) = (u64::from(number) % KEYS, u32::from(what >> 3) % tags);
        let mine = &mut all[classes[key as usize]];
        let (last, place) = (mine.last().copied().unwrap_or(0), mine.iter().position(|&mine| mine == tag));
        match what % 8 {
            0 => {
                assert_eq!(filter.remove(&key, tag), place.is_some(), "{tag} of {key}");
                mine.drain(place.map_or(0..0, |place| place..place + 1));
            }
            1 => {
                assert_eq!(filter.retag(&key, last, tag), Ok(!mine.is_empty()), "{last} of {key}");
                mine.pop().into_iter().for_each(|_| mine.push(tag));
            }
            2 => {
                let bytes;
                (bytes, filter) = reread(&filter);
                let view = FilterView::<Of<Tagged>>::from_bytes(&bytes).expect("it was just written");
                assert_eq!(view.header().stored, filter.len() as u64);
                for key in 0..KEYS {
                    let mine = &all[classes[key as usize]];
                    assert_eq!(sorted(&mut view.tags(&key)), *mine);
                }
            }
            3 => filter = filter.clone(),
            _ => mine.extend(is_stored(filter.insert(&key, tag), mine.len()).then_some(tag)),
        }
        let mine = &mut all[classes[key as usize]];
        mine.sort_unstable();
        assert_eq!((sorted(&mut filter.tags(&key)), filter.tag(&key)), (mine.clone(), mine.first().copied()), "{key}");
    }
    let (keys, mut found, mut told) = (Vec::from_iter(0..KEYS), [false; KEYS as usize], [None; KEYS as usize]);
    filter.contains_batch(&keys, &mut found);
    filter.tag_batch(&keys, &mut told);
    for key in keys {
        let (at, first) = (key as usize, all[classes[key as usize]].first().copied());
        assert_eq!((told[at], found[at], filter.contains(&key)), (first, first.is_some(), first.is_some()), "{key}");
    }
    assert_eq!(filter.len(), all.iter().map(Vec::len).sum::<usize>());
    Some(())
}
