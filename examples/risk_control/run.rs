//! The service: threads that look up, and one that changes the list.

use crate::list::List;
use crate::made;
use crate::sign_ups::{Kind, SignUp, SignUps};
use concurrent_cuckoo_filter::CuckooFilter;
use hdrhistogram::Histogram;
use parking_lot::RwLock;
use rayon::prelude::*;
use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// One lookup in this many is timed.
pub(crate) const TIMED_ONE_IN: usize = 64;

/// Domains that are off the list at the same time.
const OFF_AT_ONCE: usize = 64;

/// Made keys that are asked about in one batch, after the run.
const ASKED_AT_ONCE: usize = 1 << 10;

/// Lookups of one kind.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) asked: u64,
    pub(crate) found: u64,
}

/// What one worker saw, or all of them together.
pub(crate) struct Asked {
    /// By `Kind`.
    tallies: [Tally; 3],
    /// Nanoseconds of the timed lookups, the clock included.
    pub(crate) times: Histogram<u64>,
    /// Lookups per second.
    pub(crate) speed: f64,
}

/// What the writer did.
#[derive(Default)]
pub(crate) struct Written {
    pub(crate) taken_off: u64,
    pub(crate) put_back: u64,
    /// Put back in vain: tried again in the next round.
    pub(crate) refused: u64,
    /// Domains on the list that the filter did not find to remove. An error.
    pub(crate) not_there: u64,
    /// Domains that are still off because they were refused to the last.
    pub(crate) still_off: usize,
    /// Changes per second.
    pub(crate) speed: f64,
}

pub(crate) struct Outcome {
    pub(crate) threads: usize,
    pub(crate) duration: Duration,
    pub(crate) asked: Asked,
    pub(crate) written: Written,
    /// How long it took to add keys, if any were, and how many were refused.
    pub(crate) grown: Option<(Duration, usize)>,
    /// What reading the clock costs by itself, in nanoseconds.
    pub(crate) clock: u64,
}

/// Runs the service for this long, or until this many made keys are added.
pub(crate) fn run(
    filter: &CuckooFilter<str>,
    sign_ups: &SignUps<'_>,
    added: usize,
    threads: usize,
    duration: Duration,
) -> Result<Outcome, String> {
    let clock = cost_of_the_clock();
    let stop = AtomicBool::new(false);
    let gate = RwLock::new(());
    thread::scope(|scope| {
        let closed = gate.write();
        let spawned = (|| {
            let writer = spawn(scope, || {
                drop(gate.read());
                write(filter, &sign_ups.churned, &stop)
            })?;
            let readers = (0..threads).map(|thread| {
                let (gate, stop) = (&gate, &stop);
                spawn(scope, move || {
                    drop(gate.read());
                    lookup(filter, &sign_ups.all, thread * sign_ups.all.len() / threads, stop)
                })
            });
            let adder = (added > 0).then(|| {
                spawn(scope, || {
                    drop(gate.read());
                    add(filter, added, &stop)
                })
            });
            Ok((writer, adder.transpose()?, readers.collect::<io::Result<Vec<_>>>()?))
        })();
        // Those that were spawned before one could not be have nothing to do.
        stop.store(spawned.is_err(), Ordering::Relaxed);
        drop(closed);
        let (writer, adder, readers) =
            spawned.map_err(|error: io::Error| format!("cannot start {threads} threads: {error}"))?;

        thread::sleep(duration);
        let grown = adder.map(join);
        stop.store(true, Ordering::Relaxed);
        let mut asked = Asked::nothing();
        for reader in readers {
            asked.add(&join(reader));
        }
        Ok(Outcome { threads, duration, asked, written: join(writer), grown, clock })
    })
}

/// Asks about one sign-up after the other. The filter is shared as it is: no lock, no handle for each thread.
fn lookup(filter: &CuckooFilter<str>, sign_ups: &[SignUp], first: usize, stop: &AtomicBool) -> Asked {
    let mut seen = Asked::nothing();
    let start = Instant::now();
    for round in sign_ups.chunks_exact(TIMED_ONE_IN).cycle().skip(first / TIMED_ONE_IN) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let (timed, others) = (&round[0], &round[1..]);
        let clock = Instant::now();
        let found = black_box(filter.contains(&timed.domain));
        seen.times.saturating_record(clock.elapsed().as_nanos() as u64);
        seen.note(timed.kind, found);
        for sign_up in others {
            seen.note(sign_up.kind, filter.contains(&sign_up.domain));
        }
    }
    seen.speed = seen.lookups() as f64 / start.elapsed().as_secs_f64();
    seen
}

/// Takes domains off the list and puts them back, some at a time, as fast as it can.
fn write(filter: &CuckooFilter<str>, churned: &[&str], stop: &AtomicBool) -> Written {
    let mut done = Written::default();
    let mut listed = vec![true; churned.len()];
    let start = Instant::now();
    'rounds: while !churned.is_empty() {
        for (domains, listed) in churned.chunks(OFF_AT_ONCE).zip(listed.chunks_mut(OFF_AT_ONCE)) {
            if stop.load(Ordering::Relaxed) {
                break 'rounds;
            }
            for (domain, listed) in domains.iter().zip(&mut *listed).filter(|(_, listed)| **listed) {
                if filter.remove(domain) {
                    *listed = false;
                    done.taken_off += 1;
                } else {
                    done.not_there += 1;
                }
            }
            for (domain, listed) in domains.iter().zip(listed).filter(|(_, listed)| !**listed) {
                // A refusal has changed nothing.
                if filter.insert(domain).is_ok() {
                    *listed = true;
                    done.put_back += 1;
                } else {
                    done.refused += 1;
                }
            }
        }
    }
    done.speed = (done.taken_off + done.put_back) as f64 / start.elapsed().as_secs_f64();
    done.still_off = listed.iter().filter(|listed| !**listed).count();
    done
}

/// Adds made keys, one by one: the filter grows under the others.
fn add(filter: &CuckooFilter<str>, keys: usize, stop: &AtomicBool) -> (Duration, usize) {
    let start = Instant::now();
    let keys = made::keys(0..keys).take_while(|_| !stop.load(Ordering::Relaxed));
    let refused = keys.filter(|key| filter.insert(key.as_str()).is_err()).count();
    (start.elapsed(), refused)
}

impl Asked {
    fn nothing() -> Self {
        // From 1 ns to a minute, to two digits.
        let times = Histogram::new_with_bounds(1, 60_000_000_000, 2).expect("bounds in order");
        Asked { tallies: [Tally::default(); 3], times, speed: 0.0 }
    }

    #[inline]
    fn note(&mut self, kind: Kind, found: bool) {
        let tally = &mut self.tallies[kind as usize];
        tally.asked += 1;
        tally.found += u64::from(found);
    }

    fn add(&mut self, other: &Asked) {
        for (all, one) in self.tallies.iter_mut().zip(other.tallies) {
            all.asked += one.asked;
            all.found += one.found;
        }
        self.times.add(&other.times).expect("equal bounds");
        self.speed += other.speed;
    }

    pub(crate) fn of(&self, kind: Kind) -> Tally {
        self.tallies[kind as usize]
    }

    pub(crate) fn lookups(&self) -> u64 {
        self.tallies.iter().map(|tally| tally.asked).sum()
    }
}

impl Outcome {
    /// Lookups of a domain that stayed on the list and was not found.
    pub(crate) fn missed(&self) -> u64 {
        let tally = self.asked.of(Kind::Stays);
        tally.asked - tally.found
    }

    /// Tells of any promise that was broken.
    pub(crate) fn check(&self, filter: &CuckooFilter<str>, list: &List, made: usize) -> Result<(), String> {
        let expected = list.keys.len() + made - self.written.still_off;
        let found = list.keys.iter().filter(|key| filter.contains(key)).count() + found_of_made(filter, made);
        match (self.missed(), self.written.not_there) {
            (0, 0) if found >= expected && filter.len() == expected => Ok(()),
            (0, 0) => Err(format!("of {expected} domains on the list, {found} are found after the run")),
            (0, not_there) => Err(format!("{not_there} domains could not be taken off, though they were on the list")),
            (missed, _) => Err(format!("{missed} lookups missed a domain that stayed on the list")),
        }
    }
}

/// Asks about every made key, some at a time on each processor.
fn found_of_made(filter: &CuckooFilter<str>, made: usize) -> usize {
    let jobs = (0..made).into_par_iter().step_by(ASKED_AT_ONCE).map(|first| {
        let keys: Vec<_> = made::keys(first..made).take(ASKED_AT_ONCE).collect();
        let mut found = vec![false; keys.len()];
        filter.contains_batch(&keys, &mut found);
        found.into_iter().filter(|found| *found).count()
    });
    jobs.sum()
}

/// The median of what timing nothing takes.
fn cost_of_the_clock() -> u64 {
    let mut nothing: Vec<_> = (0..1001)
        .map(|_| {
            let clock = Instant::now();
            clock.elapsed().as_nanos() as u64
        })
        .collect();
    nothing.sort_unstable();
    nothing[500]
}

/// As `scope.spawn`, but a refusal of the system is an error instead of a panic.
fn spawn<'s, T: Send + 's>(
    scope: &'s Scope<'s, '_>,
    work: impl FnOnce() -> T + Send + 's,
) -> io::Result<ScopedJoinHandle<'s, T>> {
    thread::Builder::new().spawn_scoped(scope, work)
}

fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
