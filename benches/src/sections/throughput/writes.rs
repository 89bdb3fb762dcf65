//! Inserts and removes, on one thread.

use crate::record::{Record, Table};
use crate::sections::Plan;
use crate::sections::contestants::entrants;
use crate::sections::turns::Turns;
use compare::{Field, clock};

pub(super) fn run(plan: &Plan, record: &mut Record) {
    let log2 = if plan.quick { 12 } else { 20 };
    plan.step(&format!("inserts and removes, 2^{log2} slots"));
    let keys = Field::<u64>::new(log2, 0).present;

    let all = entrants::<u64>(log2, |_| true);
    let inserts = Turns::take(plan.turns, all.len(), |number| {
        let set = all[number].build();
        clock::timed(keys.len(), || set.insert_all(&keys)).0
    });
    let removing = entrants::<u64>(log2, |contestant| contestant.removes);
    let mut missed = vec![0; removing.len()];
    let removes = Turns::take(plan.turns, removing.len(), |number| {
        let (set, refused) = removing[number].filled(&keys);
        let (nanos, removed) = clock::timed(keys.len(), || set.remove_all(&keys));
        missed[number] += (keys.len() - refused).saturating_sub(removed);
        nanos
    });

    record.text(&format!(
        "Inserts of u64 keys into an empty table of 2^{log2} slots until 95 % are taken, and their removal, one by one on one \
         thread. *Missed* are removals that did not find a key that had been inserted, in all turns:"
    ));
    let mut table = Table::new(["", "inserts, M/s", "ratio", "removes, M/s", "ratio", "missed"]);
    for (number, entrant) in all.iter().enumerate() {
        let mut row = vec![entrant.name.into(), format!("{:.1}", inserts.speed(number)), inserts.ratio(number)];
        match removing.iter().position(|other| other.name == entrant.name) {
            Some(number) => {
                row.extend([
                    format!("{:.1}", removes.speed(number)),
                    removes.ratio(number),
                    missed[number].to_string(),
                ]);
            }
            None => row.extend(["-", "-", "-"].map(String::from)),
        }
        table.row(row);
    }
    record.table(table);
    for (entrant, missed) in removing.iter().zip(missed) {
        assert!(!entrant.faithful || missed == 0, "{} missed {missed} keys", entrant.name);
    }
}
