//! Lookups and inserts by load factor, on one thread.

use super::Plan;
use crate::clock::timed;
use crate::contestants::{self, Contestant};
use crate::field::Field;
use crate::record::figure::{self, Axes, Line, Look};
use crate::record::{Record, Table};
use crate::slices::{self, Case, against, tenth};

/// The number of steps, of 5 % of the slots each.
const STEPS: usize = 19;
const SHOWN: [usize; 7] = [1, 4, 9, 14, 16, 17, 18];
/// The number of slices per step of inserts.
const SLICES: usize = 8;
const PEERS: [&str; 5] = ["atomic-cuckoo-filter", "cuckoofilter", "fastbloom", "qfilter", "DashSet"];

pub(super) fn run(plan: &Plan, record: &mut Record) {
    let (log2, probes) = if plan.quick { (12, 1 << 12) } else { (20, 1 << 18) };
    let field = Field::new(log2, probes);
    let ours = contestants::all(Contestant::is_default);
    let peers = || contestants::all(|one| PEERS.iter().any(|peer| one.name.starts_with(peer)));
    let others = if plan.earlier.is_empty() { &peers() } else { &plan.earlier };
    let is_compared = |one: &&Contestant| !one.is_ours() || one.is_default();
    let all: Vec<_> = ours.iter().chain(others.iter().filter(is_compared)).collect();
    // Nanoseconds per lookup and per insert, by contestant and step.
    let mut nanos = vec![vec![vec![Vec::new(); STEPS]; all.len()]; 2];
    for turn in 0..plan.few() {
        plan.step(&format!("by load factor, turn {} of {}", turn + 1, plan.few()));
        let sets: Vec<_> = all.iter().map(|contestant| contestant.build(log2)).collect();
        let mut filled = 0;
        for step in 0..STEPS {
            let end = (step + 1) * (1 << log2) / 20;
            for keys in field.present[filled..end].chunks((end - filled).div_ceil(SLICES)) {
                for (set, nanos) in sets.iter().zip(&mut nanos[1]) {
                    let (each, inserted) = timed(keys.len(), || set.insert_all(keys));
                    contestants::most(inserted, keys.len());
                    nanos[step].push(each);
                }
            }
            filled = end;
            if SHOWN.contains(&step) {
                let few = |found: usize, of: usize| assert!(found <= of / 20, "{found} of {of} absent keys found");
                let cases = sets.iter().map(|set| Case::pass(&field.misses, |keys| set.contains_all(keys), few));
                let each = slices::take(plan.rounds.div_ceil(plan.few()), &mut cases.collect::<Vec<_>>());
                nanos[0].iter_mut().zip(each).for_each(|(nanos, each)| nanos[step].push(each));
            }
        }
    }

    record.heading("Speed by load factor");
    record.text(&format!(
        "One thread, 2^{log2} slots; in brackets, the speed of this crate relative to the row. Inserts are those of the \
         last 5 % of the slots before the load. Building is not timed, so the first inserts include the page faults of \
         fresh memory. Fewer contestants take turns than in the tables above, so more of each table stays in the cache."
    ));
    for (nanos, (name, file)) in nanos.iter_mut().zip([("Absent keys", "load-misses"), ("Inserts", "load-inserts")]) {
        let heads = SHOWN.iter().map(|step| format!("{} %", step * 5 + 5));
        let (mut table, mut lines) = (Table::new(std::iter::once(name.to_owned()).chain(heads)), Vec::new());
        let costs: Vec<Vec<f64>> =
            nanos.iter_mut().map(|steps| SHOWN.iter().map(|&step| tenth(&mut steps[step])).collect()).collect();
        for (number, (contestant, row)) in all.iter().zip(&costs).enumerate() {
            let look = if number == 0 { Look::Main } else { Look::Coloured(number) };
            let points = SHOWN.iter().zip(row).map(|(step, nanos)| ((step * 5 + 5) as f64, 1e3 / nanos)).collect();
            lines.push(Line { name: contestant.name.clone(), look, points });
            let cells = row.iter().zip(&costs[0]).map(|(own, ours)| against(*own, own / ours));
            table.row(std::iter::once(contestant.name.clone()).chain(cells));
        }
        record.table(&table);
        let title = format!("{name} by load, one thread, 2^{log2} slots");
        let axes = Axes { x: "slots taken, %", x_label: |load| format!("{load:.0}"), y: "M/s" };
        record.figure(file, &title, figure::draw(&title, &axes, &lines));
    }
}
