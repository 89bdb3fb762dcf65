//! Lookups and writes on several threads.

use super::Plan;
use super::entrants::entrants;
use crate::clock;
use crate::contestants::{Many, Passes, Version};
use crate::field::{Field, Size};
use crate::record::{Record, Table};
use crate::slices::{self, Case, against, speed};
use fastrand::Rng;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

const THREADS: [usize; 3] = [1, 2, 4];

pub(super) fn run(plan: &Plan, record: &mut Record) {
    // Multiples of 20, so that each key that is removed comes back before the slice ends.
    let (log2, operations) = if plan.quick { (16, 2_000) } else { (20, 120_000) };
    let present = Field::<u64>::new(log2, 0).present;
    let (own, stable) = present.split_at(present.len() / 4);
    let workers: Vec<Worker> = own.chunks_exact(own.len() / 4).map(|own| Worker::new(own, stable)).collect();
    let entrants = entrants::<u64>(log2, |contestant| contestant.removes);
    let sets: Vec<_> = entrants.iter().map(|entrant| entrant.filled(&present).0).collect();

    record.heading("Lookups and writes mixed");
    record.text(&format!(
        "u64 keys, 2^{log2} slots at 95 % load, every contestant that removes. Each thread removes and inserts keys of its own \
         and looks up, as many each, keys that stay and keys that are absent. In brackets: how many times as fast as that row \
         this crate is. *Missed* are present keys that were not found and writes that failed."
    ));
    for writes in [10, 50] {
        let missed: Vec<Cell<usize>> = sets.iter().map(|_| Cell::new(0)).collect();
        let nanos = THREADS.map(|threads| {
            plan.step(&format!("{writes} % writes, threads: {threads}"));
            let case = |number: usize| {
                let (set, missed, workers) = (&*sets[number], &missed[number], &workers);
                Case::new("", move |_| {
                    let work = |thread: usize| workers[thread].work(set, operations, 100 / writes);
                    work(0);
                    let (time, faults) = clock::on_threads(threads, work);
                    missed.set(missed.get() + faults.iter().sum::<usize>());
                    time.as_nanos() as f64 / (threads * operations) as f64
                })
            };
            slices::take(plan.rounds.div_ceil(2), &mut (0..sets.len()).map(case).collect::<Vec<_>>())
        });
        record.text(&format!("{} % lookups, {writes} % writes:", 100 - writes));
        let mut table = Table::new(["", "1 thread", "2 threads", "4 threads", "missed"]);
        for (number, entrant) in entrants.iter().enumerate() {
            let cell = |nanos: &Vec<f64>| format!("{} ({:.2})", speed(nanos[number]), nanos[number] / nanos[0]);
            let missed = missed[number].get();
            let cells = nanos.iter().map(cell).chain([missed.to_string()]);
            table.row(std::iter::once(entrant.label.clone()).chain(cells));
            assert!(!entrant.contestant.faithful() || missed == 0, "{} missed {missed} keys", entrant.label);
        }
        record.table(table);
    }
    readers(plan, record, log2, own, stable);
}

/// Lookups by each version of this crate on two threads, and on one while another writes or only hashes. Medians: the fastest
/// slices are those in which the other thread did not run.
fn readers(plan: &Plan, record: &mut Record, log2: u32, own: &[u64], stable: &[u64]) {
    let keys = &stable[..stable.len().min(1 << 17)];
    let versions = plan.versions();
    let filled = |version: &Version| {
        let set = (version.numbers)(Size::new(log2, 13));
        assert_eq!(set.insert_all(own) + set.insert_all(stable), own.len() + stable.len());
        set
    };
    let sets: Vec<_> = versions.iter().map(filled).collect();
    let mut cases: Vec<_> = sets.iter().flat_map(|set| lookups(&**set, own, keys)).collect();
    let nanos = slices::medians(plan.rounds, &mut cases);
    let columns = versions.iter().map(|version| format!("{}, M/s", version.name));
    let mut table = Table::new(std::iter::once("lookups of present keys".to_owned()).chain(columns));
    let rows = [
        ("one thread", 0),
        ("two threads (ratio to one)", 0),
        ("one, while another hashes", 2),
        ("one, while another removes and inserts (ratio to hashes)", 2),
    ];
    for (number, (row, base)) in rows.into_iter().enumerate() {
        let cell =
            |nanos: &[f64]| if number % 2 == 0 { speed(nanos[number]) } else { against(nanos[number], nanos[base]) };
        table.row(std::iter::once(row.to_owned()).chain(nanos.chunks(rows.len()).map(cell)));
    }
    record.table(table);
}

/// The cases of one version.
fn lookups<'a>(set: &'a dyn Many<u64>, own: &'a [u64], keys: &'a [u64]) -> [Case<'a>; 4] {
    let read = move |_| {
        assert_eq!(set.contains_all(keys), keys.len());
        clock::timed(keys.len(), || set.contains_all(keys)).0
    };
    let on = |threads: usize| {
        Case::new("", move |_| {
            let (_, nanos) = clock::on_threads(threads, read);
            nanos.iter().sum::<f64>() / (threads * threads) as f64
        })
    };
    let write = move |_: usize, stop: &AtomicBool| {
        let keys = own.iter().cycle().take_while(|_| !stop.load(Ordering::Relaxed));
        keys.filter(|key| !set.remove(key) | !set.insert(key)).count()
    };
    [
        on(1),
        on(2),
        Case::new("", move |_| clock::with(1, |_, stop| clock::hash(stop), || read(0)).0),
        Case::new("", move |_| {
            let (nanos, failed) = clock::with(1, write, || read(0));
            assert_eq!(failed, 0, "writes that failed");
            nanos
        }),
    ]
}

/// What one thread does, drawn beforehand.
struct Worker {
    own: Vec<u64>,
    /// Keys to look up, and whether they are present.
    lookups: Vec<(u64, bool)>,
}

impl Worker {
    fn new(own: &[u64], stable: &[u64]) -> Self {
        let mut random = Rng::with_seed(own[0]);
        let lookups = (0..1 << 16).map(|_| {
            let present = random.bool();
            (if present { stable[random.usize(..stable.len())] } else { random.u64(..) }, present)
        });
        Worker { lookups: lookups.collect(), own: own.to_vec() }
    }

    /// Does this many operations, every `period`th of them a write; counts what went wrong.
    fn work(&self, set: &dyn Passes<u64>, operations: usize, period: usize) -> usize {
        let mut own = self.own.iter().cycle();
        let mut removed = None;
        let mut faults = 0;
        for (number, (key, present)) in self.lookups.iter().cycle().take(operations).enumerate() {
            let right = if number % period != 0 {
                set.contains(key) || !present
            } else if let Some(key) = removed.take() {
                set.insert(key)
            } else {
                removed = own.next();
                removed.is_some_and(|key| set.remove(key))
            };
            faults += usize::from(!right);
        }
        faults
    }
}
