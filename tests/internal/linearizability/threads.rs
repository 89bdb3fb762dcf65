//! Histories of threads of the system. They run on stripes of a bucket or two, in pairs and in crowds, and start each program at
//! the same moment. In most of them a writer pauses after some of its steps while it holds locks, so that others meet it there
//! even where there are few cores.

use super::check::History;
use super::corrupt::corrupted;
use super::full_or;
use super::said::Event;
use super::scenario::Scenario;
use super::shape::Shape;
use super::world::{Kind, Seen, World};
use crate::internal::thousands::thousands;
use crate::raw::{Bare, Tagging};
use crate::sys::steps::with_hook;
use crate::sys::sync::{RelaxedCounter, in_order};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::hint::spin_loop;
use std::ops::Range;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

/// The number of threads, the steps of each, and the pauses of a writer. Pairs run in parallel even on two cores.
const CROWDS: [(usize, usize, Pause); 6] = [
    (2, 32, Pause::None),
    (2, 16, Pause::Spin),
    (2, 32, Pause::Spin),
    (3, 8, Pause::Sleep),
    (4, 8, Pause::Sleep),
    (8, 6, Pause::Sleep),
];

#[derive(Clone, Copy, PartialEq)]
enum Pause {
    None,
    /// Some hundred nanoseconds.
    Spin,
    /// Some ten microseconds, now and then, while others run.
    Sleep,
}

impl Pause {
    fn within<R>(self, seed: u64, work: impl FnOnce() -> R) -> R {
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

const GROWING_ONE_IN: u64 = 4;

/// The number of histories that are recorded before they are checked.
const BATCH: u64 = 250;

/// A scenario that was run, and the results of each of its threads.
struct Taken<K: Kind> {
    seed: u64,
    world: World<K>,
    seen: Vec<Seen>,
}

impl<K: Kind> Taken<K> {
    /// Checks the history of each class, and returns all of them.
    fn check(&self) -> Vec<History> {
        self.world.check(&self.seen).unwrap_or_else(|wrong| {
            panic!("scenario {} on {:?}: {wrong}", self.seed, self.world.scenario.shape);
        })
    }
}

fn take(batch: u64) -> Vec<Taken<Bare>> {
    let seeds = batch * BATCH..(batch + 1) * BATCH;
    run(CROWDS[batch as usize % CROWDS.len()], seeds, |seed| {
        if seed % GROWING_ONE_IN == 0 { Shape::growing } else { Shape::any }
    })
}

fn run<K: Kind>(
    (threads, steps, pause): (usize, usize, Pause),
    seeds: Range<u64>,
    shape: fn(u64) -> fn(&mut fastrand::Rng) -> Shape,
) -> Vec<Taken<K>> {
    let pauses = seeds.start;
    let world = |seed| (seed, World::<K>::new(Arc::new(Scenario::new(shape(seed), seed, threads, steps))));
    let worlds: Vec<_> = seeds.into_par_iter().map(world).collect();
    let (barrier, start) = (&Barrier::new(threads), Instant::now());
    let arrived: &Vec<RelaxedCounter> = &(0..threads).map(|_| RelaxedCounter::default()).collect();
    let now = || in_order(|| start.elapsed().as_nanos() as u64);
    let run = |thread: usize| -> Vec<Seen> {
        let run = |(number, (_, world)): (u64, &(u64, World<K>))| {
            barrier.wait();
            arrived[thread].change(|_| number);
            meet(arrived, number);
            world.run(thread, &now)
        };
        pause.within(pauses ^ thread as u64, || (1..).zip(&worlds).map(run).collect())
    };
    let run = &run;
    let mut seen: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics").into_iter()).collect()
    });
    let taken = worlds.into_iter().map(|(seed, world)| {
        let seen = seen.iter_mut().flat_map(Iterator::next).collect();
        Taken { seed, world, seen }
    });
    taken.collect()
}

/// Waits until the other threads start, too, because a barrier wakes them one after the other. Not for long, since there may be
/// fewer cores.
fn meet(arrived: &[RelaxedCounter], all: u64) {
    for _ in 0..1000 {
        if arrived.iter().all(|arrived| arrived.get() >= all) {
            break;
        }
        spin_loop();
    }
}

fn is_contested(history: &History) -> bool {
    let (asked, changed): (Vec<&Event>, _) = history.events.iter().partition(|event| event.said.only_tells());
    asked.iter().any(|asked| changed.iter().any(|changed| asked.overlaps(&(changed.begin, changed.end))))
}

#[test]
#[ignore = "long: cargo xtask full runs it"]
fn what_real_threads_say_can_be_explained() {
    let start = Instant::now();
    let histories = full_or(1_000_000, 20_000);
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

/// In pairs and in fours.
#[test]
fn what_threads_say_beside_ticks_can_be_explained() {
    let mut classes = 0;
    for crowd in [(2, 24, Pause::None), (2, 24, Pause::Spin), (4, 8, Pause::Sleep)] {
        let taken = run::<Tagging>(crowd, 0..full_or(50_000, 1_500), |_| Shape::tagged);
        classes += taken.iter().map(|taken| taken.check().len()).sum::<usize>();
    }
    println!("\n{classes} classes of filters with tags, every history explained");
}

#[test]
fn corrupted_histories_are_refused() {
    let mut refused = BTreeMap::<&str, u64>::new();
    for batch in 0..full_or(400, 20) {
        // Other seeds than in the test above.
        for taken in take((1 << 32) + batch) {
            for history in taken.check() {
                for (fault, corrupted) in corrupted(&history) {
                    assert!(!corrupted.is_linearizable(), "{fault}, and it is taken for right: {corrupted:#?}");
                    *refused.entry(fault).or_default() += 1;
                }
            }
        }
    }
    assert_eq!(refused.len(), 13, "every fault was tried: {refused:?}");
    let all: u64 = refused.values().sum();
    let least = refused.values().min().map_or(0, |&least| least);
    let (kinds, all, least) = (refused.len(), thousands(all), thousands(least));
    println!("\nfigure 2.2: {all} corrupted histories of {kinds} kinds, at least {least} of each: all refused");
}
