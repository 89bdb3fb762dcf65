//! Batches beside loops of single calls, and beside what the memory can do.

use crate::large::{asked, table};
use crate::turns::Contests;
use compare::Passes;
use compare::clock::{timed, warm_timed};
use compare::field::keys;
use compare::limit::Lines;
use concurrent_cuckoo_filter::CuckooFilter;
use std::cell::{LazyCell, RefCell};
use std::ops::RangeInclusive;

/// The ratios that are asked for at 16 bits, against a loop and against the two-line limit.
fn bars(log2: u32) -> [Option<f64>; 2] {
    match log2 {
        16 => [Some(1.0), None],
        20 => [Some(1.6), Some(0.5)],
        _ => [asked(log2, 1.6), asked(log2, 0.9)],
    }
}

/// A filter at 95 % load, and keys to look up in it.
struct Probes {
    filter: CuckooFilter<u64>,
    hits: Vec<u64>,
    misses: Vec<u64>,
    found: RefCell<Vec<bool>>,
}

impl Probes {
    fn new(log2: u32, bits: u32) -> Self {
        let (filter, load) = table(log2, bits);
        let present = keys(1, load);
        assert_eq!(filter.par_insert(&present).inserted, load);
        let mut random = fastrand::Rng::with_seed(2);
        let probes = (1usize << log2).clamp(1 << 20, 1 << 23);
        Probes {
            filter,
            hits: (0..probes).map(|_| present[random.usize(..load)]).collect(),
            misses: keys(3, probes),
            found: RefCell::new(vec![false; probes]),
        }
    }

    fn batch(&self, keys: &[u64], expected: RangeInclusive<usize>) -> f64 {
        let found = &mut *self.found.borrow_mut();
        let (nanos, ()) = warm_timed(keys.len(), || self.filter.contains_batch(keys, found));
        let count = found.iter().filter(|&&found| found).count();
        assert!(expected.contains(&count), "{count} of {} found", keys.len());
        nanos
    }

    fn single(&self, keys: &[u64], expected: RangeInclusive<usize>) -> f64 {
        let (nanos, count) = warm_timed(keys.len(), || self.filter.contains_all(keys));
        assert!(expected.contains(&count), "{count} of {} found", keys.len());
        nanos
    }

    /// How many hits, all, are found.
    fn all(&self) -> RangeInclusive<usize> {
        self.hits.len()..=self.hits.len()
    }

    /// How many misses, few, are found.
    fn few(&self) -> RangeInclusive<usize> {
        0..=self.misses.len() / 500
    }
}

pub(crate) fn lookups(contests: &Contests, log2: u32) {
    let lines = LazyCell::new(|| Lines::new(log2));
    for bits in [16, 13] {
        let named = |contest: &str| format!("{contest} {bits} bits 2^{log2}");
        let [against_loop, against_limit] = bars(log2).map(|bar| bar.filter(|_| bits == 16));
        let probes = LazyCell::new(|| Probes::new(log2, bits));
        contests.run(
            &named("contains_batch against a loop, misses"),
            against_loop,
            || probes.batch(&probes.misses, probes.few()),
            || probes.single(&probes.misses, probes.few()),
        );
        contests.run(
            &named("contains_batch against a loop, hits"),
            None,
            || probes.batch(&probes.hits, probes.all()),
            || probes.single(&probes.hits, probes.all()),
        );
        contests.run(
            &named("contains_batch against the two-line limit, misses"),
            against_limit,
            || probes.batch(&probes.misses, probes.few()),
            || {
                lines.pass(&probes.misses);
                lines.pass(&probes.misses)
            },
        );
    }
}

/// An empty filter, and keys to fill it with to 95 % load.
struct Fills {
    filter: CuckooFilter<u64>,
    present: Vec<u64>,
}

impl Fills {
    fn new(log2: u32, bits: u32) -> Self {
        let (filter, load) = table(log2, bits);
        Fills { filter, present: keys(1, load) }
    }

    /// The cost of work that inserts all the keys.
    fn insert(&self, work: impl Fn() -> usize) -> f64 {
        self.repeat(|| {
            self.filter.clear();
            let (nanos, inserted) = timed(self.present.len(), &work);
            assert_eq!((inserted, self.filter.len()), (self.present.len(), self.present.len()));
            nanos
        })
    }

    /// The cost of work that removes all the keys.
    fn remove(&self, work: impl Fn() -> usize) -> f64 {
        self.repeat(|| {
            self.filter.clear();
            assert_eq!(self.filter.insert_batch(&self.present).inserted, self.present.len());
            let (nanos, removed) = timed(self.present.len(), &work);
            assert_eq!((removed, self.filter.len()), (self.present.len(), 0));
            nanos
        })
    }

    /// The mean cost of as many rounds as it takes for 2^20 keys: one alone would be too short.
    fn repeat(&self, round: impl Fn() -> f64) -> f64 {
        let rounds = (1usize << 20).div_ceil(self.present.len());
        (0..rounds).map(|_| round()).sum::<f64>() / rounds as f64
    }
}

pub(crate) fn writes(contests: &Contests, log2: u32) {
    for bits in [16, 13] {
        let named = |contest: &str| format!("{contest} {bits} bits 2^{log2}");
        let bar = (bits == 16).then_some(1.0);
        let fills = LazyCell::new(|| Fills::new(log2, bits));
        contests.run(
            &named("insert_batch against a loop"),
            bar,
            || fills.insert(|| fills.filter.insert_batch(&fills.present).inserted),
            || fills.insert(|| fills.filter.insert_all(&fills.present)),
        );
        contests.run(
            &named("remove_batch against a loop"),
            bar,
            || fills.remove(|| fills.filter.remove_batch(&fills.present).removed),
            || fills.remove(|| Passes::remove_all(&fills.filter, &fills.present)),
        );
    }
}
