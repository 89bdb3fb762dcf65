//! The service: threads for lookups, and a thread that changes the list. They share a reference to the filter, without
//! a lock or a handle per thread.

use crate::list::{self, Kind, List};
use concurrent_cuckoo_filter::CuckooFilter;
use hdrhistogram::Histogram;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The number of lookups per timed lookup.
const TIMED_ONE_IN: usize = 64;

/// The number of keys that are removed at the same time.
const REMOVED_AT_ONCE: usize = 64;

/// The lookups of keys of one kind.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) asked: u64,
    pub(crate) found: u64,
}

pub(crate) struct Outcome {
    pub(crate) length: Duration,
    /// Indexed by [`Kind`].
    pub(crate) tallies: [Tally; 3],
    /// The durations of the timed lookups, in nanoseconds.
    pub(crate) times: Histogram<u64>,
    /// The number of removals and insertions by the writer.
    pub(crate) changes: u64,
    /// The number of inserted keys beyond the list.
    pub(crate) added: u64,
    pub(crate) refused: u64,
}

/// Runs the service for this duration, and until all keys are added.
pub(crate) fn run(filter: &CuckooFilter<String>, list: &List, added: u32, threads: usize, length: Duration) -> Outcome {
    let (lookups, changing, stop) = (&list.lookups(), list.changing(), &AtomicBool::new(false));
    let start = Instant::now();
    thread::scope(|scope| {
        let readers = (0..threads).map(|number| {
            scope.spawn(move || look_up(filter, &lookups[number * lookups.len() / threads..], lookups, stop))
        });
        let readers: Vec<_> = readers.collect();
        let writer = scope.spawn(move || change(filter, changing, stop));
        let adder = scope.spawn(move || {
            // The filter grows while the other threads use it.
            (0..added).fold([0, 0], |[stored, refused], number| match filter.insert(&list::added(number)) {
                Ok(()) => [stored + 1, refused],
                Err(_) => [stored, refused + 1],
            })
        });
        thread::sleep(length);
        stop.store(true, Ordering::Relaxed);
        let length = start.elapsed();
        let no_panic = "a thread that does not panic";
        let ([changes, refused], [added, not_added]) = (writer.join().expect(no_panic), adder.join().expect(no_panic));
        let (mut tallies, mut times) = ([Tally::default(); 3], histogram());
        for (own, of_thread) in readers.into_iter().map(|reader| reader.join().expect(no_panic)) {
            for (all, one) in tallies.iter_mut().zip(own) {
                *all = Tally { asked: all.asked + one.asked, found: all.found + one.found };
            }
            times.add(of_thread).expect("equal bounds");
        }
        Outcome { length, tallies, times, changes, added, refused: refused + not_added }
    })
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 2).expect("bounds in order")
}

fn look_up(
    filter: &CuckooFilter<String>,
    first: &[(Box<str>, Kind)],
    all: &[(Box<str>, Kind)],
    stop: &AtomicBool,
) -> ([Tally; 3], Histogram<u64>) {
    let (mut tallies, mut times) = ([Tally::default(); 3], histogram());
    let mut note = |kind: Kind, found: bool| {
        let tally = &mut tallies[kind as usize];
        *tally = Tally { asked: tally.asked + 1, found: tally.found + u64::from(found) };
    };
    for round in first.chunks(TIMED_ONE_IN).chain(all.chunks(TIMED_ONE_IN).cycle()) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let ((key, kind), others) = round.split_first().expect("chunks are not empty");
        let clock = Instant::now();
        let found = black_box(filter.contains(&**key));
        times.saturating_record(clock.elapsed().as_nanos() as u64);
        note(*kind, found);
        others.iter().for_each(|(key, kind)| note(*kind, filter.contains(&**key)));
    }
    (tallies, times)
}

/// Removes keys and inserts them again. Returns the number of changes and the number of refused keys.
fn change(filter: &CuckooFilter<String>, keys: &[String], stop: &AtomicBool) -> [u64; 2] {
    let (mut changes, mut refused) = (0, 0);
    for keys in keys.chunks(REMOVED_AT_ONCE).cycle().take_while(|_| !stop.load(Ordering::Relaxed)) {
        keys.iter().for_each(|key| assert!(filter.remove(key), "{key} is listed"));
        refused += keys.iter().filter(|key| filter.insert(key.as_str()).is_err()).count() as u64;
        changes += 2 * keys.len() as u64;
    }
    [changes, refused]
}
