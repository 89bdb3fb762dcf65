//! Lookups and writes mixed, on several threads.

use super::Plan;
use super::contestants::entrants;
use super::turns::Turns;
use crate::record::{Record, Table};
use compare::{Field, Passes, clock};
use fastrand::Rng;

const THREADS: [usize; 3] = [1, 2, 4];

pub(crate) fn run(plan: &Plan, record: &mut Record) {
    // Multiples of 20, so that each key that is removed comes back before the turn ends.
    let (log2, operations) = if plan.quick { (16, 2_000) } else { (20, 480_000) };
    let present = Field::<u64>::new(log2, 0).present;
    let (own, stable) = present.split_at(present.len() / 4);
    let workers: Vec<Worker> = own.chunks_exact(own.len() / 4).map(|own| Worker::new(own, stable)).collect();
    let entrants = entrants::<u64>(log2, |contestant| contestant.removes);
    let sets: Vec<_> = entrants.iter().map(|entrant| entrant.filled(&present).0).collect();

    record.heading("Lookups and writes mixed");
    record.text(&format!(
        "u64 keys, 2^{log2} slots at 95 % load, every contestant that removes. Each thread removes and inserts keys of its own \
         and looks up, as many each, keys that stay and keys that are absent. *Missed* are present keys \
         that were not found and inserts that were refused, in all turns."
    ));
    for writes in [10, 50] {
        let mut missed = vec![0; sets.len()];
        let turns = THREADS.map(|threads| {
            plan.step(&format!("{writes} % writes, threads: {threads}"));
            Turns::take(plan.turns, sets.len(), |number| {
                let set = &*sets[number];
                let work = |thread: usize| workers[thread].work(set, operations, 100 / writes);
                let (time, faults) = clock::on_threads(threads, work);
                missed[number] += faults.iter().sum::<usize>();
                time.as_nanos() as f64 / (threads * operations) as f64
            })
        });
        record.text(&format!("{} % lookups, {writes} % writes:", 100 - writes));
        let mut columns = vec![String::new()];
        for threads in THREADS {
            let s = if threads == 1 { "" } else { "s" };
            columns.extend([format!("{threads} thread{s}, M/s"), "ratio".into()]);
        }
        columns.push("missed".into());
        let mut table = Table::new(columns);
        for (number, entrant) in entrants.iter().enumerate() {
            let mut row = vec![entrant.name.to_string()];
            for turns in &turns {
                row.extend([format!("{:.1}", turns.speed(number)), turns.ratio(number)]);
            }
            row.push(missed[number].to_string());
            table.row(row);
            assert!(!entrant.faithful || missed[number] == 0, "{} missed {} keys", entrant.name, missed[number]);
        }
        record.table(table);
    }
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

    /// Does so many operations, every `period`th of them a write; counts what went wrong.
    fn work(&self, set: &dyn Passes<u64>, operations: usize, period: usize) -> usize {
        let mut own = self.own.iter().cycle();
        let mut removed = None;
        let mut faults = 0;
        for (number, (key, present)) in self.lookups.iter().cycle().take(operations).enumerate() {
            let right = if number % period != 0 {
                set.contains_one(key) || !present
            } else if let Some(key) = removed.take() {
                set.insert_one(key)
            } else {
                removed = own.next();
                removed.is_some_and(|key| set.remove_one(key))
            };
            faults += usize::from(!right);
        }
        faults
    }
}
