//! Histories of threads of the system. They run on stripes of a bucket or two, in pairs and in crowds, and begin each
//! program at the same moment. In most of them a writer dawdles after some of its steps, locks in hand, so that others
//! meet it there even where there are few cores.

use super::corrupt::corrupted;
use super::full_or;
use super::history::{Event, History};
use super::scenario::Scenario;
use super::world::{Seen, World};
use crate::internal::thousands::thousands;
use crate::sys::steps::with_hook;
use crate::sys::sync::{RelaxedCounter, in_order};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::hint::spin_loop;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// Threads, the steps of each, and what a writer does after some of its steps. Pairs run at the same time even on two
/// cores.
const CROWDS: [(usize, usize, Pause); 6] = [
    (2, 32, Pause::None),
    (2, 16, Pause::Spin),
    (2, 32, Pause::Spin),
    (3, 8, Pause::Sleep),
    (4, 8, Pause::Sleep),
    (8, 6, Pause::Sleep),
];

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Pause {
    None,
    /// Some hundred nanoseconds.
    Spin,
    /// Some ten microseconds, now and then, while others run.
    Sleep,
}

impl Pause {
    /// Runs the work with such pauses.
    pub(super) fn within<R>(self, seed: u64, work: impl FnOnce() -> R) -> R {
        if self == Pause::None {
            return work();
        }
        let mut rng = fastrand::Rng::with_seed(seed);
        let pause = move |_| match self {
            Pause::Spin => (0..rng.u32(..32)).for_each(|_| spin_loop()),
            _ if rng.u32(..32) == 0 => thread::sleep(Duration::from_nanos(1)),
            _ => {}
        };
        with_hook(pause, work)
    }
}

/// Filters that grow, among those of fixed size.
const GROWING_ONE_IN: u64 = 4;

/// Histories that are taken before any is checked.
const BATCH: u64 = 250;

struct Taken {
    seed: u64,
    scenario: Scenario,
    world: World,
    seen: Vec<Seen>,
}

impl Taken {
    /// The history of each class, all of which can be explained.
    fn check(&self) -> Vec<History> {
        match self.world.check(&self.scenario, &self.seen) {
            Ok(histories) => histories,
            Err(wrong) => panic!("scenario {} on {:?}: {wrong}", self.seed, self.scenario.shape),
        }
    }
}

/// Takes a batch of histories.
fn take(batch: u64) -> Vec<Taken> {
    let (threads, steps, pause) = CROWDS[batch as usize % CROWDS.len()];
    let jobs = (batch * BATCH..(batch + 1) * BATCH).into_par_iter().map(|seed| {
        let growing = seed % GROWING_ONE_IN == 0;
        let scenario = if growing { Scenario::growing } else { Scenario::new }(seed, threads, steps);
        let world = World::new(&scenario);
        (seed, scenario, world)
    });
    let jobs: Vec<_> = jobs.collect();
    let seen = on_threads(threads, pause, batch, &jobs, |(_, scenario, world), thread, now| {
        world.run(scenario, &scenario.programs[thread], now)
    });
    jobs.into_iter().zip(seen).map(|((seed, scenario, world), seen)| Taken { seed, scenario, world, seen }).collect()
}

/// Runs all jobs on so many threads, which begin each at the same moment and are told the time. Returns what each thread
/// saw of each job.
pub(super) fn on_threads<J: Sync, S: Send>(
    threads: usize,
    pause: Pause,
    seed: u64,
    jobs: &[J],
    run: impl Fn(&J, usize, &dyn Fn() -> u64) -> S + Sync,
) -> Vec<Vec<S>> {
    let (barrier, start) = (&Barrier::new(threads), Instant::now());
    let arrived: &Vec<RelaxedCounter> = &(0..threads).map(|_| RelaxedCounter::default()).collect();
    let now = || in_order(|| start.elapsed().as_nanos() as u64);
    let run = |thread: usize| -> Vec<S> {
        let run = |(number, job): (usize, &J)| {
            barrier.wait();
            arrived[thread].change(|_| number as u64 + 1);
            meet(arrived, number as u64 + 1);
            run(job, thread, &now)
        };
        pause.within(seed ^ thread as u64, || jobs.iter().enumerate().map(run).collect())
    };
    let run = &run;
    let mut seen: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics").into_iter()).collect()
    });
    jobs.iter().map(|_| seen.iter_mut().flat_map(Iterator::next).collect()).collect()
}

/// Begins when the others do: a barrier wakes them up one after the other. Not for long, for there may be fewer cores.
fn meet(arrived: &[RelaxedCounter], all: u64) {
    for _ in 0..1000 {
        if arrived.iter().all(|arrived| arrived.get() >= all) {
            break;
        }
        spin_loop();
    }
}

/// Whether something was asked while it changed.
fn is_contested(history: &History) -> bool {
    let overlaps = |one: &Event, other: &Event| one.begin <= other.end && other.begin <= one.end;
    let (asked, changed): (Vec<&Event>, _) = history.events.iter().partition(|event| event.answer.only_tells());
    asked.iter().any(|asked| changed.iter().any(|changed| overlaps(asked, changed)))
}

#[test]
#[ignore = "long: .ci/run runs it"]
fn what_real_threads_say_can_be_explained() {
    let start = Instant::now();
    let histories = full_or(1_000_000, 50_000);
    let (mut classes, mut contested) = (0, 0);
    for batch in 0..histories / BATCH {
        let taken = take(batch);
        let counts = taken.par_iter().map(|taken| {
            let histories = taken.check();
            (histories.len(), histories.iter().filter(|&history| is_contested(history)).count())
        });
        let (all, some) = counts.reduce(|| (0, 0), |(a, b), (c, d)| (a + c, b + d));
        classes += all;
        contested += some;
    }
    assert!(contested as u64 > histories / 10, "hardly anything met: {contested} of {classes}");
    println!(
        "\nfigure 2.1: {} histories of 2 to 8 threads, 0 that no order explains; {} classes, {} of them asked while they \
         changed; {:.0} s",
        thousands(histories),
        thousands(classes),
        thousands(contested),
        start.elapsed().as_secs_f64()
    );
}

#[test]
fn corrupted_histories_are_refused() {
    let mut refused = BTreeMap::<&str, u64>::new();
    for batch in 0..full_or(400, 20) {
        // Drawn apart from those of the test above.
        for taken in take((1 << 32) + batch) {
            for history in taken.check() {
                for (fault, corrupted) in corrupted(&history) {
                    assert!(!corrupted.is_linearizable(), "{fault}, and it is taken for right: {corrupted:#?}");
                    *refused.entry(fault).or_default() += 1;
                }
            }
        }
    }
    assert_eq!(refused.len(), 11, "every fault was tried: {refused:?}");
    let all: u64 = refused.values().sum();
    let least = refused.values().min().map_or(0, |&least| least);
    let (kinds, all, least) = (refused.len(), thousands(all), thousands(least));
    println!("\nfigure 2.2: {all} corrupted histories of {kinds} kinds, at least {least} of each: all refused");
}
