//! Inserts, removes and both, one by one on one thread.

use super::Plan;
use super::entrants::entrants;
use crate::clock::timed;
use crate::field::{Field, keys};
use crate::record::{Record, Table};
use crate::slices::{self, Case, part, speed};
use std::cell::{Cell, RefCell};

pub(super) fn run(plan: &Plan, record: &mut Record) {
    let log2 = if plan.quick { 12 } else { 20 };
    plan.step(&format!("inserts and removes, 2^{log2} slots"));
    record.heading("Inserts and removes");
    let present = Field::<u64>::new(log2, 0).present;
    let others = keys::<u64>(8, present.len());
    let all = entrants::<u64>(log2, |_| true);
    let sets: Vec<_> = all.iter().map(|entrant| RefCell::new(entrant.build())).collect();
    let (filling, missed) = (vec![Cell::new(0); all.len()], vec![Cell::new(0); all.len()]);

    // A slice of inserts fills an empty table, and the slice of removes after it empties it again.
    let mut cases = Vec::new();
    for (number, entrant) in all.iter().enumerate() {
        let (set, missed, filling) = (&sets[number], &missed[number], &filling[number]);
        let present = &present;
        cases.push(Case::new(&entrant.label, move |_| {
            // The table before goes first: there is memory for one.
            *set.borrow_mut() = entrant.build();
            let (nanos, inserted) = timed(present.len(), || set.borrow().insert_all(present));
            crate::most(inserted, present.len());
            filling.set(inserted);
            nanos
        }));
        if entrant.contestant.removes {
            cases.push(Case::new("", move |_| {
                let (nanos, removed) = timed(present.len(), || set.borrow().remove_all(present));
                missed.set(missed.get() + filling.get().saturating_sub(removed));
                nanos
            }));
        }
    }
    let mut nanos = slices::take(plan.few(), &mut cases).into_iter();
    drop(cases);
    let times: Vec<(f64, Option<f64>)> = all
        .iter()
        .map(|entrant| {
            let inserts = nanos.next().expect("a case");
            (inserts, entrant.contestant.removes.then(|| nanos.next().expect("a case")))
        })
        .collect();

    let removing: Vec<usize> = (0..all.len()).filter(|&number| all[number].contestant.removes).collect();
    let mut churn: Vec<Case> = removing
        .iter()
        .map(|&number| {
            let set = &sets[number];
            set.replace(all[number].filled(&present).0);
            let (present, others) = (&present, &others);
            Case::new("", move |round| {
                let set = set.borrow();
                let pass = |round| {
                    let (out, into) = (part(present, round), part(others, round));
                    set.churn(out, into) + set.churn(into, out)
                };
                pass(2 * round);
                let count = 4 * part(present, 0).len();
                let (nanos, done) = timed(count, || pass(2 * round + 1));
                crate::most(2 * done, count);
                nanos
            })
        })
        .collect();
    let churn = slices::take(plan.rounds, &mut churn);

    record.text(&format!(
        "u64 keys on one thread: inserts into an empty table of 2^{log2} slots until 95 % are taken, the removal of all these \
         keys, and *churn* at 95 % load, in which the removal of a key and the insertion of another follow each other, each \
         counted. In brackets: how many times as fast as that row this crate is. *Missed* are removals that did not find a \
         key that had been inserted."
    ));
    let mut table = Table::new(["", "inserts", "removes", "churn", "missed"]);
    let cell = |nanos: f64, ours: f64| format!("{} ({:.2})", speed(nanos), nanos / ours);
    for (number, entrant) in all.iter().enumerate() {
        let (inserts, removes) = times[number];
        let removes = removes.map(|nanos| cell(nanos, times[0].1.expect("this crate removes")));
        let churn = removing.iter().position(|&other| other == number).map(|place| cell(churn[place], churn[0]));
        let missed = missed[number].get();
        assert!(!entrant.contestant.faithful() || missed == 0, "{} missed {missed} keys", entrant.label);
        table.row([
            entrant.label.clone(),
            cell(inserts, times[0].0),
            removes.unwrap_or("-".into()),
            churn.unwrap_or("-".into()),
            missed.to_string(),
        ]);
    }
    record.table(table);
}
