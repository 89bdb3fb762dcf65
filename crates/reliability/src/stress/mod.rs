//! The checked stress of the testkit, at length.

mod rebuilds;

use crate::figure::{count, figure, seconds_since};
use crate::run::Run;
use fastrand::Rng;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;
use testkit::stress::{Exact, Shared, tiny_shapes};

const WORKERS: usize = 8;
const READERS: usize = 2;

pub(crate) fn run(run: &Run) {
    let mut rng = Rng::with_seed(run.seed);
    exact(run, &mut rng.fork());
    tiny(run, &mut rng);
}

fn exact(run: &Run, rng: &mut Rng) {
    let field = &Exact::new(run.choose(1_200_000, 600_000), None, rng);
    let (start, stop) = (Instant::now(), &AtomicBool::new(false));
    let (outcome, rebuilds) = thread::scope(|scope| {
        let others = rng.fork();
        let others = scope.spawn(move || rebuilds::rebuild(stop, others));
        scope.spawn(|| {
            thread::sleep(run.stress);
            field.stop();
        });
        let outcome = field.run(WORKERS, READERS, u64::MAX, rng);
        stop.store(true, Ordering::Relaxed);
        (outcome, others.join().expect("a panic ends the process"))
    });
    let [full, copies] = field.refused();
    figure(
        "3.1",
        format_args!(
            "{} operations of {WORKERS} threads at a mean load of {:.1} %, {} lookups and counts, every answer exact; at the \
             end the counts of {} keys and their sum equal the flags: {}",
            count(outcome.tally.operations),
            100.0 * outcome.mean_load,
            count(outcome.tally.lookups),
            count(outcome.keys),
            seconds_since(start),
        ),
    );
    figure(
        "3.2",
        format_args!(
            "meanwhile {} bulk loads and removals, {} snapshots read back with nothing missing, {} rebuilds and clears of \
             other filters, {} calls of stats; {} relocations (longest path {}), {} keys refused as full and {} as too many \
             copies, as stats counts them",
            count(outcome.bulk_rounds),
            count(outcome.snapshots),
            count(rebuilds),
            count(outcome.stats_calls),
            count(outcome.stats.relocations),
            outcome.stats.longest_path,
            count(full),
            count(copies),
        ),
    );
}

fn tiny(run: &Run, rng: &mut Rng) {
    let start = Instant::now();
    let (rounds, operations) = run.choose((100, 20_000), (1, 10_000));
    let (mut filters, mut total) = (0_u64, [0; 2]);
    for _ in 0..rounds {
        for shape in tiny_shapes(rng) {
            let [lookups, snapshots] = Shared::new(shape, rng).run(operations, rng);
            total = [total[0] + lookups, total[1] + snapshots];
            filters += 1;
        }
    }
    figure(
        "3.3",
        format_args!(
            "{} filters of 4 and 5 bits and capacities 0 to 60: {} lookups of stable keys during {} insertions and removals \
             of keys of their classes and of others, 0 missed, none missing from {} snapshots, and at rest every class \
             counted exactly: {}",
            count(filters),
            count(total[0]),
            count(filters * 2 * operations as u64),
            count(total[1]),
            seconds_since(start)
        ),
    );
}
