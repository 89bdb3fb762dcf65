//! Lookups and inserts by load factor, on one thread.

use super::Plan;
use super::entrants::entrants;
use crate::clock::timed;
use crate::field::Field;
use crate::record::figure::{self, Axes, Line, Look};
use crate::record::{Record, Table};
use crate::slices::{self, Case, speed, tenth};
use fastrand::Rng;

/// A step is 5 % of the slots.
const STEPS: usize = 19;
/// The steps in the tables.
const SHOWN: [usize; 7] = [1, 4, 9, 14, 16, 17, 18];
/// Slices of a step of inserts.
const SLICES: usize = 8;
const PEERS: [&str; 5] = ["atomic-cuckoo-filter", "cuckoofilter + RwLock", "fastbloom", "qfilter + RwLock", "DashSet"];

pub(super) fn run(plan: &Plan, record: &mut Record) {
    let (log2, probes) = if plan.quick { (12, 1 << 12) } else { (20, 1 << 18) };
    let field = Field::<u64>::new(log2, probes);
    let entrants = entrants::<u64>(log2, |contestant| PEERS.contains(&contestant.name));
    // Nanoseconds by kind, contestant and step.
    let mut nanos = vec![vec![vec![Vec::new(); STEPS]; entrants.len()]; 3];
    for turn in 0..plan.few() {
        plan.step(&format!("by load factor, turn {} of {}", turn + 1, plan.few()));
        let sets: Vec<_> = entrants.iter().map(|entrant| entrant.build()).collect();
        let mut random = Rng::with_seed(1);
        let mut filled = 0;
        for step in 0..STEPS {
            let end = (step + 1) * (1 << log2) / 20;
            for keys in field.present[filled..end].chunks((end - filled).div_ceil(SLICES)) {
                for (set, nanos) in sets.iter().zip(&mut nanos[2]) {
                    let (each, inserted) = timed(keys.len(), || set.insert_all(keys));
                    crate::most(inserted, keys.len());
                    nanos[step].push(each);
                }
            }
            filled = end;
            if SHOWN.contains(&step) {
                let hits: Vec<u64> = (0..probes).map(|_| field.present[random.usize(..filled)]).collect();
                for (kind, keys) in [&field.misses, &hits].into_iter().enumerate() {
                    let check = move |found: usize, of: usize| {
                        let (least, most) = if kind == 0 { (0, of / 20) } else { (of * 99 / 100, of) };
                        assert!((least..=most).contains(&found), "{found} of {of} found");
                    };
                    let cases = sets.iter().map(|set| Case::pass("", keys, |keys| set.contains_all(keys), check));
                    let rounds = plan.rounds.div_ceil(plan.few());
                    let each = slices::take(rounds, &mut cases.collect::<Vec<_>>());
                    nanos[kind].iter_mut().zip(each).for_each(|(nanos, each)| nanos[step].push(each));
                }
            }
        }
    }

    record.heading("Throughput by load factor");
    record.text(&format!(
        "One thread, u64 keys, 2^{log2} slots; in brackets how many times as fast as that row this crate is. Inserts are \
         those of the last 5 % of the slots before that load. Building is not timed, so where the system supplies memory as \
         it is used, the first inserts pay for it."
    ));
    for (kind, name) in ["Lookups of absent keys", "Lookups of present keys", "Inserts"].into_iter().enumerate() {
        record.text(&format!("{name}:"));
        let heads = SHOWN.iter().map(|step| format!("{} %", step * 5 + 5));
        let mut table = Table::new(std::iter::once("load".to_string()).chain(heads));
        let mut cost = |number: usize, step: usize| tenth(&mut nanos[kind][number][step]);
        let mut lines = Vec::new();
        for (number, entrant) in entrants.iter().enumerate() {
            let look = if entrant.is_ours() { Look::Main } else { Look::Coloured(entrant.colour) };
            let points = SHOWN.iter().map(|&step| ((step * 5 + 5) as f64, 1e3 / cost(number, step))).collect();
            // The plot is of the default width.
            if number != 1 {
                lines.push(Line { name: entrant.label.clone(), look, points });
            }
            let cells = SHOWN.map(|step| {
                let (theirs, ours) = (cost(number, step), cost(0, step));
                format!("{} ({:.2})", speed(theirs), theirs / ours)
            });
            table.row(std::iter::once(entrant.label.clone()).chain(cells));
        }
        record.table(table);
        let title = format!("{name} by load, one thread, 2^{log2} slots");
        let axes = Axes { x: "slots taken, %", x_label: |load| format!("{load:.0}"), y: "M/s" };
        record.figure(["load-misses", "load-hits", "load-inserts"][kind], &title, figure::draw(&title, &axes, &lines));
    }
}
