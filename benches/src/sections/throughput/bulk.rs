//! Bulk operations beside the peers' parallel loops.

use crate::record::{Record, Table};
use crate::sections::Plan;
use crate::sections::contestants::entrants;
use crate::sections::turns::Turns;
use compare::{Field, Size, clock, peers};
use rayon::prelude::*;

/// What a parallel loop hands to a thread at once.
const PIECE: usize = 1 << 12;

pub(super) fn run(plan: &Plan, record: &mut Record) {
    let log2 = if plan.quick { 12 } else { 22 };
    plan.step(&format!("parallel loops, 2^{log2} slots"));
    // Threads that wait for each other's locks take their time.
    let turns = plan.turns.min(3);
    let field = Field::<u64>::new(log2, 1 << log2.min(20));
    let (present, probes) = (&field.present, field.misses.len());
    // Ours in bulk, then all in loops, ours first.
    let entrants = entrants::<u64>(log2, |_| true);
    let mut ours = peers::ours::build::<u64>(Size::new(log2, 16));
    let mut sets: Vec<_> = entrants.iter().map(|entrant| entrant.build()).collect();

    let inserts = Turns::take(turns, entrants.len() + 1, |number| {
        if number == 0 {
            ours = peers::ours::build(Size::new(log2, 16));
            let (nanos, report) = clock::timed(present.len(), || ours.par_insert(present));
            assert!(plan.quick || report.inserted == present.len(), "{} inserted", report.inserted);
            return nanos;
        }
        let set = &mut sets[number - 1];
        *set = entrants[number - 1].build();
        clock::timed(present.len(), || present.par_chunks(PIECE).map(|keys| set.insert_all(keys)).sum::<usize>()).0
    });
    let mut found = vec![false; probes];
    let lookups = Turns::take(turns, entrants.len() + 1, |number| {
        let (nanos, found) = if number == 0 {
            clock::warm_timed(probes, || {
                ours.par_contains(&field.misses, &mut found);
                found.iter().filter(|&&found| found).count()
            })
        } else {
            let set = &sets[number - 1];
            let lookup = || field.misses.par_chunks(PIECE).map(|keys| set.contains_all(keys)).sum::<usize>();
            clock::warm_timed(probes, lookup)
        };
        assert!(found < probes / 20, "{found} of {probes} absent keys found");
        nanos
    });

    record.text(&format!(
        "Many keys at once, 2^{log2} slots, on rayon's {} threads: this crate's `par_insert` and `par_contains`, which the \
         ratios are about, beside parallel loops over pieces of {PIECE} keys. Inserts into an empty table until 95 % are \
         taken, and lookups of absent keys:",
        rayon::current_num_threads()
    ));
    let mut table = Table::new(["", "inserts, M/s", "ratio", "lookups, M/s", "ratio"]);
    let loops = entrants.iter().map(|entrant| format!("{}, loop", entrant.name));
    for (number, name) in std::iter::once("this crate, bulk".to_string()).chain(loops).enumerate() {
        table.row([
            name,
            format!("{:.1}", inserts.speed(number)),
            inserts.ratio(number),
            format!("{:.1}", lookups.speed(number)),
            lookups.ratio(number),
        ]);
    }
    record.table(table);
}
