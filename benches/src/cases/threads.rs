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
    for log2 in if plan.quick { [12, 14] } else { [16, 20] } {
        readers(plan, record, log2);
    }
}

/// The speed of each version of this crate on one thread while another thread is at work. Medians: the fastest slices are those
/// in which the other thread did not run.
fn readers(plan: &Plan, record: &mut Record, log2: u32) {
    plan.step(&format!("readers beside writers, 2^{log2} slots"));
    let versions = plan.versions();
    let present = Field::<u64>::new(log2, 0).present;
    let filled = |version: &Version, share: usize| {
        let (set, present) = ((version.numbers)(Size::new(log2, 13)), &present[..(share << log2) / 100]);
        crate::most(set.insert_all(present), present.len());
        set
    };
    let sets: Vec<_> = versions.iter().map(|version| (filled(version, 95), filled(version, 60))).collect();
    let mut cases: Vec<_> =
        sets.iter().flat_map(|(full, half)| beside(&**full, &**half, &present, 1 << log2)).collect();
    let nanos = slices::medians(plan.rounds, &mut cases);
    let columns = versions.iter().map(|version| format!("{}, M/s", version.name));
    let mut table = Table::new(std::iter::once(format!("2^{log2} slots, on one thread")).chain(columns));
    // The row that each is compared with.
    let base = [0, 0, 0, 2, 2, 5, 5, 5];
    for (row, base) in base.into_iter().enumerate() {
        let cell = |nanos: &[f64]| if row == base { speed(nanos[row]) } else { against(nanos[row], nanos[base]) };
        table.row(std::iter::once(cases[row].name.clone()).chain(nanos.chunks(8).map(cell)));
    }
    record.table(table);
}

/// The cases of one version: a set at 95 % load, and one at 60 %.
fn beside<'a>(full: &'a dyn Many<u64>, half: &'a dyn Many<u64>, present: &'a [u64], slots: usize) -> [Case<'a>; 8] {
    let (own, stable) = present[..slots * 60 / 100].split_at(slots / 8);
    let stable = &stable[..stable.len().min(1 << 17)];
    let read = move |set: &dyn Many<u64>| {
        crate::most(set.contains_all(stable), stable.len());
        // Long enough for another thread to be felt.
        let passes = (1usize << 16).div_ceil(stable.len());
        clock::timed(passes * stable.len(), || (0..passes).for_each(|_| _ = set.contains_all(stable))).0
    };
    // Removals and insertions; a thread has keys of its own.
    let churn = move |number: usize, stop: &AtomicBool| {
        let keys = own[number * own.len() / 2..].iter().take(own.len() / 2).cycle();
        let keys = keys.take_while(|_| !stop.load(Ordering::Relaxed));
        keys.filter(|key| !full.remove(key) | !full.insert(key)).count()
    };
    let write = move |number: usize| {
        let keys = &own[number * own.len() / 2..][..own.len() / 2];
        clock::timed(2 * keys.len(), || keys.iter().for_each(|key| assert!(full.remove(key) & full.insert(key)))).0
    };
    // Insertions that go from 60 % to 85 %, and are taken back before the next slice.
    let new = &present[slots * 60 / 100..slots * 85 / 100];
    let insert = move |_: usize, stop: &AtomicBool| {
        let keys = new.iter().take_while(|_| !stop.load(Ordering::Relaxed));
        keys.filter(|key| !half.insert(key)).count()
    };
    let lookups = move |_: usize, stop: &AtomicBool| {
        while !stop.load(Ordering::Relaxed) {
            crate::most(full.contains_all(&stable[..1000]), 1000);
        }
        0
    };
    [
        Case::new("lookups", move |_| read(full)),
        Case::new("lookups on two threads (ratio to one)", move |_| {
            let (_, nanos) = clock::on_threads(2, |_| read(full));
            nanos.iter().sum::<f64>() / 4.0
        }),
        Case::new("lookups, while another hashes", move |_| {
            clock::with(1, |_, stop| clock::hash(stop), || read(full)).0
        }),
        Case::new("lookups, while another removes and inserts at 95 % (ratio to hashes)", move |_| {
            let (nanos, failed) = clock::with(1, churn, || read(full));
            assert_eq!(failed, 0, "writes that failed");
            nanos
        }),
        Case::new("lookups, while another inserts from 60 to 85 % (ratio to hashes)", move |_| {
            let (nanos, failed) = clock::with(1, insert, || read(half));
            assert_eq!(failed, 0, "writes that failed");
            half.remove_all(new);
            nanos
        }),
        Case::new("removals and insertions at 95 %", move |_| write(0)),
        Case::new("removals and insertions, while another looks up (ratio)", move |_| {
            clock::with(1, lookups, || write(0)).0
        }),
        Case::new("removals and insertions on two threads (ratio to one)", move |_| {
            let (_, nanos) = clock::on_threads(2, write);
            nanos.iter().sum::<f64>() / 4.0
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
