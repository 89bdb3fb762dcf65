//! Threads that do everything at once, each answer checked.
//!
//! After libcuckoo's checked stress test: a flag beside each key says what is true. Here it is the number of the key's
//! copies behind a lock that is tried and not waited for, so threads meet inside the filter and not at the flags.

mod bulk;
mod end;
mod field;
mod groups;
mod others;
mod readers;
mod singles;
mod snapshots;
mod tiny;
mod watch;

use crate::figure::{count, figure};
use crate::run::{Run, progress};
use fastrand::Rng;
use field::Field;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// Threads that do all operations on the flagged keys.
const WORKERS: usize = 8;
const READERS: usize = 2;

pub(crate) fn run(run: &Run) {
    let mut rng = Rng::with_seed(run.seed);
    exact(run, &mut rng.fork());
    tiny::run(run, &mut rng);
}

/// What a thread has done and checked.
#[derive(Clone, Copy, Default)]
struct Done {
    operations: u64,
    lookups: u64,
}

impl std::ops::AddAssign for Done {
    fn add_assign(&mut self, other: Done) {
        self.operations += other.operations;
        self.lookups += other.lookups;
    }
}

/// Fingerprints of 32 bits and no two keys of one class: every answer is known.
fn exact(run: &Run, rng: &mut Rng) {
    let field = &Field::new(run.choose(1 << 20, 1 << 19), rng);
    let start = Instant::now();
    let (done, rounds, snapshots, rebuilds, watched) = thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| {
                let rng = rng.fork();
                scope.spawn(move || singles::work(field, rng))
            })
            .collect();
        let readers: Vec<_> = (0..READERS)
            .map(|_| {
                let rng = rng.fork();
                scope.spawn(move || readers::ask(field, rng))
            })
            .collect();
        let (bulk, copy) = (rng.fork(), rng.fork());
        let bulk = scope.spawn(move || bulk::load_and_remove(field, bulk));
        let snapshots = scope.spawn(move || snapshots::take(field, copy));
        let other = rng.fork();
        let others = scope.spawn(move || others::rebuild(&field.stop, other));
        let watch = scope.spawn(move || watch::watch(field));

        wait(run.stress);
        field.stop.store(true, Ordering::Relaxed);
        let mut done = Done::default();
        workers.into_iter().chain(readers).for_each(|thread| done += thread.join().expect("a panic ends the process"));
        let (bulk, rounds) = bulk.join().expect("a panic ends the process");
        let (copies, snapshots) = snapshots.join().expect("a panic ends the process");
        done += bulk;
        done += copies;
        let rebuilds = others.join().expect("a panic ends the process");
        (done, rounds, snapshots, rebuilds, watch.join().expect("a panic ends the process"))
    });
    let seconds = start.elapsed().as_secs();
    let keys = end::check_at_rest(field);
    end::remove_everything(field);
    figure(
        "3.1",
        format_args!(
            "{} operations of {WORKERS} threads on {} keys at a mean load of {:.1} %, {} lookups and counts, every answer \
             exact; at the end the counts of {} keys and their sum equal the flags: {seconds} s",
            count(done.operations),
            count(field.copies.len()),
            100.0 * watched.mean_load,
            count(done.lookups),
            count(keys),
        ),
    );
    figure(
        "3.2",
        format_args!(
            "beside it {} bulk loads and removals, {} snapshots read back with nothing missing, {} rebuilds and clears of \
             other filters, {} calls of stats; {} relocations (longest path {}), {} keys refused as full and {} as too many \
             copies, as stats counts them",
            count(rounds),
            count(snapshots),
            count(rebuilds),
            count(watched.calls),
            count(watched.last.relocations),
            watched.last.longest_path,
            count(field.refused_full.load(Ordering::Relaxed)),
            count(field.refused_copies.load(Ordering::Relaxed)),
        ),
    );
}

fn wait(time: Duration) {
    let bar = progress("exact stress", time.as_millis() as u64);
    let start = Instant::now();
    while start.elapsed() < time {
        thread::sleep((time - start.elapsed().min(time)).min(Duration::from_millis(200)));
        bar.set_position(start.elapsed().as_millis() as u64);
    }
    bar.finish_and_clear();
}
