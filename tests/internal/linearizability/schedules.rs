//! Histories of threads that shuttle switches at every access to shared memory and at every lock, in orders drawn at random and by
//! priorities (Burckhardt and others, "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs", 2010). All accesses
//! are sequentially consistent there, so this finds faults of logic; the models of loom and the threads of the system test the
//! memory orderings.
//!
//! A failure names its scenario; `CUCKOO_SCENARIO=N` starts with that one, in the same schedules.

use super::full_or;
use super::scenario::{Action, Draft, Scenario, Step};
use super::shape::{Shape, TINY};
use super::world::{Kind, World};
use crate::layout::Plan;
use crate::raw::{Bare, Put, Tagging};
use crate::sys::sync::RelaxedCounter;
use fastrand::Rng;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, Runner};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

const SCHEDULES_PER_SCENARIO: usize = 25;

/// The number of places at which priorities change.
const PCT_DEPTH: usize = 4;

/// A search takes tens of kilobytes of its thread's stack.
const STACK: usize = 1 << 18;

/// The number of schedules of each test of programs, and of the test of drills.
fn programs() -> u64 {
    full_or(250_000, 20_000) / 4
}

fn drills() -> u64 {
    full_or(2_000_000, 100_000)
}

fn explore<S: Scheduler + 'static, H: Fn() + Send + Sync + 'static>(
    name: &str,
    history: impl Fn(u64) -> H,
    schedules: u64,
    scheduler: impl Fn(u64) -> S,
) {
    let scenarios = schedules / SCHEDULES_PER_SCENARIO as u64;
    let first = std::env::var("CUCKOO_SCENARIO").map_or(0, |number| number.parse().expect("a number"));
    let mut schedules = 0;
    for number in first..first + scenarios {
        let history = history(number);
        let mut config = Config::new();
        config.stack_size = STACK;
        config.failure_persistence = FailurePersistence::None;
        let runner = Runner::new(scheduler(number), config);
        let run = || runner.run(history);
        schedules += catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
            eprintln!("{name}: failed in scenario {number}, number {} of this run", number - first + 1);
            resume_unwind(panic)
        });
    }
    println!("\nschedules {name}: {schedules} of {scenarios} scenarios, every history explained");
}

fn run<K: Kind>(scenario: Scenario) -> impl Fn() + Send + Sync + 'static {
    let scenario = Arc::new(scenario);
    move || {
        let world = Arc::new(World::<K>::new(Arc::clone(&scenario)));
        // Not a counter of shuttle's, so that reading the time is no place to switch; one thread at a time changes it.
        let clock = Arc::new(RelaxedCounter::default());
        let threads = (0..scenario.programs.len()).map(|number| {
            let (world, clock) = (Arc::clone(&world), Arc::clone(&clock));
            let now = move || {
                clock.change(|time| time + 1);
                clock.get()
            };
            shuttle::thread::spawn(move || world.run(number, &now))
        });
        let threads: Vec<_> = threads.collect();
        let seen: Vec<_> = threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect();
        if let Err(wrong) = world.check(&seen) {
            panic!("on {:?}: {wrong}", scenario.shape);
        }
    }
}

fn bare(shape: fn(&mut Rng) -> Shape, seed: u64, threads: usize, steps: usize) -> impl Fn() + Send + Sync + 'static {
    run::<Bare>(Scenario::new(shape, seed, threads, steps))
}

fn tagged(seed: u64) -> impl Fn() + Send + Sync + 'static {
    run::<Tagging>(Scenario::new(Shape::tagged, seed, 3, 6))
}

const LOOKS: &[Action] = &[Action::LookUp, Action::LookUpBatch];

const WRITES: [Action; 5] =
    [Action::Put(Put::COPY), Action::Put(Put::UNIQUE), Action::Remove, Action::RemoveAll, Action::Clear];

/// Classes with up to two copies each, and three threads that draw their actions from these.
fn drill(seed: u64, shape: impl Fn(&mut Rng) -> Shape, classes: usize, actions: [&[Action]; 3]) -> Scenario {
    const STEPS: usize = 2;
    let mut rng = Rng::with_seed(seed);
    let mut draft = Draft::new(shape(&mut rng), &mut rng);
    let classes: Vec<usize> = (0..classes).map(|_| draft.class(&mut rng)).collect();
    for &class in &classes {
        for _ in 0..rng.usize(..=2) {
            draft.put(class, &mut rng);
        }
    }
    let programs = actions.map(|actions| {
        let step = |_| {
            let (action, class) = (rng.choice(actions), rng.choice(&classes));
            Step { action: *action.expect("some"), class: *class.expect("some"), turned: rng.bool() }
        };
        (0..STEPS).map(step).collect()
    });
    Scenario { programs: programs.into(), ..draft.finish() }
}

/// A class in two buckets, a thread that only looks it up, and two threads that write it.
fn pair_drill(seed: u64) -> Scenario {
    let pairs: Vec<_> = TINY.into_iter().filter(|&(_, buckets, _)| buckets == 2).collect();
    let writes = &[&WRITES[..], &[Action::Task]].concat()[..];
    drill(seed, |rng| Shape::of(*rng.choice(&pairs).expect("some")), 1, [LOOKS, writes, writes])
}

/// The same in a growing filter, which the writers split.
fn growing_drill(seed: u64) -> Scenario {
    let writes = &[&WRITES[..], &[Action::Split, Action::Split, Action::Copy, Action::Count]].concat()[..];
    drill(seed, Shape::growing, 1, [LOOKS, writes, writes])
}

/// In a growing filter with a table of 17-bit slots, which are read as two runs, and after a split one of 16-bit slots: two classes,
/// a thread that looks up both in one block, and two that relocate them.
fn two_widths_drill(seed: u64) -> Scenario {
    let shape = Shape::of((17, 2, 4));
    let shape = Shape { plan: Plan { reserve_bits: 2, ..shape.plan }, ..shape };
    let splits = &[Action::Split, Action::Relocate];
    drill(seed, |_| shape, 2, [&[Action::LookUpBatch], splits, &[Action::Relocate]])
}

fn random(seed: u64) -> RandomScheduler {
    RandomScheduler::new_from_seed(seed, SCHEDULES_PER_SCENARIO)
}

fn by_priority(seed: u64) -> PctScheduler {
    PctScheduler::new_from_seed(seed, PCT_DEPTH, SCHEDULES_PER_SCENARIO)
}

macro_rules! schedules {
    ($($(#[$doc:meta])* $test:ident: $name:literal, $scenario:expr, $number:expr, $scheduler:ident;)+) => {
        $($(#[$doc])* #[test] fn $test() { explore($name, $scenario, $number, $scheduler); })+
    };
}

schedules! {
    random_orders_of_4_threads_with_8_operations:
        "at random, 4 x 8", |number| bare(Shape::any, number, 4, 8), programs(), random;
    random_orders_of_8_threads_with_12_operations:
        "at random, 8 x 12", |number| bare(Shape::any, number, 8, 12), programs(), random;
    priority_orders_of_4_threads_with_8_operations:
        "by priority, 4 x 8", |number| bare(Shape::any, number, 4, 8), programs(), by_priority;
    priority_orders_of_8_threads_with_12_operations:
        "by priority, 8 x 12", |number| bare(Shape::any, number, 8, 12), programs(), by_priority;
    random_orders_of_4_threads_in_filters_that_grow:
        "at random, growing, 4 x 8", |number| bare(Shape::growing, number, 4, 8), programs(), random;
    priority_orders_of_4_threads_in_filters_that_grow:
        "by priority, growing, 4 x 8", |number| bare(Shape::growing, number, 4, 8), programs(), by_priority;
    drills_of_3_threads_in_filters_that_grow:
        "by priority, growing drills", |number| run::<Bare>(growing_drill(number)), drills() / 2, by_priority;
    drills_of_3_threads_in_tables_of_two_widths:
        "by priority, two widths", |number| run::<Bare>(two_widths_drill(number)), drills() / 8, by_priority;
    /// With fewer places to switch, the rare orders of three threads occur: a lookup between its two reads, while one thread
    /// inserts and another is in the middle of a removal.
    drills_of_3_threads: "by priority, drills", |number| run::<Bare>(pair_drill(number)), drills(), by_priority;
    random_orders_beside_ticks: "with tags, at random, 3 x 6", tagged, programs(), random;
    priority_orders_beside_ticks: "with tags, by priority, 3 x 6", tagged, programs(), by_priority;
}
