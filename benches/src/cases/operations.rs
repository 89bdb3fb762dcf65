//! Every operation of every contestant at 95 % load, and lookups by table size.

use super::Plan;
use crate::clock::timed;
use crate::contestants::{self, Contestant, Family, Set};
use crate::field::{Field, keys};
use crate::record::figure::{self, Line, Look};
use crate::record::{Record, Table};
use crate::slices::{self, Case, against, part, speed};
use rayon::prelude::*;
use std::cell::{Cell, RefCell};

const OPERATIONS: [&str; 12] = [
    "absent",
    "present",
    "mixed",
    "batch, absent",
    "batch, present",
    "insert_unique",
    "count",
    "insert",
    "remove",
    "churn",
    "bulk load",
    "two steps",
];

/// Exact sets are left out above this power of two of slots: they would take too much memory.
const EXACT: u32 = 22;

/// Nanoseconds per operation.
type Row = [Option<f64>; OPERATIONS.len()];

pub(super) fn run(plan: &Plan, record: &mut Record) {
    if !plan.earlier.is_empty() {
        return versions(plan, record);
    }
    record.heading("Operations");
    let log2 = plan.log2(20);
    plan.step(&format!("operations, 2^{log2} slots"));
    let all = contestants::all(|_| true);
    let (rows, faults) = measure(plan, log2, &all.iter().collect::<Vec<_>>(), true);
    record.text(&format!(
        "2^{log2} slots at 95 % load, one thread ({} for bulk loads). *Mixed* keys are present or absent at random. \
         *Insert* is the mean of inserts into an empty table up to that load, *remove* that of removals of all these \
         keys, and *churn* is a removal and an insertion, each counted. *Bulk load* is `par_insert` here, and a parallel \
         loop over pieces of 4096 keys elsewhere. The keys of `insert_unique` and `count` are present. *Two steps* are \
         lookups of absent keys, each begun by `prefetch` sixteen keys before its answer is read.",
        rayon::current_num_threads()
    ));
    let mut table = Table::new(std::iter::once("").chain(OPERATIONS));
    for (contestant, row) in all.iter().zip(&rows) {
        let cell = |nanos: &Option<f64>| nanos.map_or("-".into(), speed);
        table.row(std::iter::once(contestant.name.clone()).chain(row.iter().map(cell)));
    }
    record.table(&table);
    if !faults.is_empty() {
        record.text(&format!("Keys refused or lost while the tables were filled: {}.", faults.join(", ")));
    }
    by_size(plan, record);
}

/// Single lookups and batches of absent keys.
fn by_size(plan: &Plan, record: &mut Record) {
    let sizes: &[u32] = if plan.quick { &[10, 12] } else { &[12, 16, 18, 20, 22, 24] };
    let all =
        contestants::all(|contestant| contestant.family != Family::Kind && contestant.name != "this crate, 16 bits");
    let mut lines: Vec<Line> = Vec::new();
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    for (column, &log2) in sizes.iter().enumerate() {
        plan.step(&format!("lookups, 2^{log2} slots"));
        let here: Vec<_> = all.iter().filter(|one| log2 <= EXACT || one.family != Family::Exact).collect();
        let (measured, _) = measure(plan, log2, &here, false);
        let ours = [("batch", Look::Ours, 3), ("in two steps", Look::Coloured(here.len()), 11)]
            .map(|(how, look, operation)| (format!("this crate, {how}, 13 bits"), look, measured[0][operation]));
        let singles = here.iter().zip(&measured).enumerate().map(|(number, (contestant, row))| {
            let look = if contestant.is_ours() { Look::Main } else { Look::Coloured(number) };
            (contestant.name.clone(), look, row[0])
        });
        let limit = [(String::from("two loads"), Look::Reference, Some(two_loads(plan, log2)))];
        let single = measured[0][0].expect("lookups are measured");
        for (name, look, nanos) in ours.into_iter().chain(singles).chain(limit) {
            let nanos = nanos.expect("lookups are measured");
            let place = rows.iter().position(|row| row.0 == name).unwrap_or_else(|| {
                rows.push((name.clone(), vec!["-".into(); sizes.len()]));
                lines.push(Line { name, look, points: Vec::new() });
                rows.len() - 1
            });
            rows[place].1[column] = if nanos == single { speed(nanos) } else { against(nanos, nanos / single) };
            lines[place].points.push(((1u64 << log2) as f64, 1e3 / nanos));
        }
    }
    record.text(&format!(
        "Single lookups of absent keys, one thread, 95 % load; exact sets up to 2^{EXACT} slots. *Two loads* is the \
         limit: a loop that only loads two random words per key from a table of the size of this crate's, rounded up to \
         a power of two. In brackets: the speed of this crate's single lookups, relative to the row."
    ));
    let mut table = Table::new(std::iter::once("slots".into()).chain(sizes.iter().map(|log2| format!("2^{log2}"))));
    rows.into_iter().for_each(|(name, cells)| _ = table.row(std::iter::once(name).chain(cells)));
    record.table(&table);
    let title = "Lookups of absent keys by table size, one thread, 95 % load";
    record.figure("size-misses", title, figure::draw(title, &figure::BY_SIZE, &lines));
}

/// Every operation of this crate, with the ratio to an earlier commit, of the filters that both have.
fn versions(plan: &Plan, record: &mut Record) {
    record.heading("Operations");
    record.text("In brackets: the speed relative to the earlier commit.");
    let mut ours = contestants::all(Contestant::is_ours);
    ours.truncate(plan.earlier.len());
    for log2 in [16, 20, 24] {
        let all: Vec<_> = ours.iter().chain(&plan.earlier).collect();
        plan.step(&format!("operations, 2^{log2} slots"));
        let (rows, _) = measure(plan, plan.log2(log2), &all, true);
        let mut table = Table::new(std::iter::once(format!("2^{log2} slots")).chain(OPERATIONS.map(String::from)));
        for (number, contestant) in ours.iter().enumerate() {
            let cell = |(own, earlier): (&Option<f64>, &Option<f64>)| match (own, earlier) {
                (Some(own), Some(earlier)) => against(*own, earlier / own),
                _ => "-".into(),
            };
            let cells = rows[number].iter().zip(&rows[ours.len() + number]).map(cell);
            table.row(std::iter::once(contestant.name.clone()).chain(cells));
        }
        record.table(&table);
    }
}

/// Times a loop that only loads two random words per key, from as many bytes as 2^`log2` slots of 13 bits.
fn two_loads(plan: &Plan, log2: u32) -> f64 {
    let words: Vec<u64> = (0..1u64 << (log2 - 2)).collect();
    let (mask, keys) = (words.len() - 1, keys(7, 1 << 20));
    let pass = |keys: &[u64]| {
        let sum = keys.iter().fold(0u64, |sum, key| {
            let second = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
            sum.wrapping_add(words[(key >> 32) as usize & mask] ^ words[second])
        });
        std::hint::black_box(sum) as usize
    };
    slices::take(plan.rounds, &mut [Case::pass(&keys, pass, |_, _| {})])[0]
}

/// Measures lookups only, or everything, and returns a row per contestant, and the contestants that refused or lost keys.
fn measure(plan: &Plan, log2: u32, all: &[&Contestant], everything: bool) -> (Vec<Row>, Vec<String>) {
    let field = Field::new(log2, if plan.quick { 1 << 12 } else { 1 << 20 });
    let present = &field.present;
    let sets: Vec<_> = all.iter().map(|contestant| contestant.build(log2)).collect();
    // Tables are filled on several threads, because filling is not timed.
    let refused: Vec<usize> = sets.par_iter().map(|set| present.len() - set.insert_all(present)).collect();
    let (missed, mut rows) = (vec![Cell::new(0); all.len()], vec![Row::default(); all.len()]);
    {
        let more: Vec<_> = sets.iter().map(|set| set.more()).collect();
        let mut cases = Vec::new();
        for (row, (contestant, set)) in all.iter().zip(&sets).enumerate() {
            let faithful = contestant.is_faithful() && refused[row] == 0;
            let (name, missed) = (&contestant.name, &missed[row]);
            // 8 bits have a false-positive rate of 3 %.
            let few = move |found, of| assert!(found <= of / 20, "{name} found {found} of {of} absent keys");
            let whole = move |found: usize, of: usize| {
                missed.set(missed.get() + of.saturating_sub(found));
                assert!(!faithful || found >= of, "{name} found {found} of {of} present keys");
            };
            let half = |found: usize, of: usize| assert!(found.abs_diff(of / 2) < of / 8, "{found} of {of} mixed keys");
            let none = |stored, _| assert_eq!(stored, 0, "a present key was stored as unique");
            let mut add = |operation, case| cases.push(((row, operation), case));
            add(0, Case::pass(&field.misses, |keys| set.contains_all(keys), few));
            if everything {
                add(1, Case::pass(&field.hits, |keys| set.contains_all(keys), whole));
                add(2, Case::pass(&field.half, |keys| set.contains_all(keys), half));
            }
            for (name, pass) in &more[row] {
                match *name {
                    "contains_batch" => {
                        add(3, Case::pass(&field.misses, pass, few));
                        add(4, Case::pass(&field.hits, pass, whole));
                    }
                    "two steps" => add(11, Case::pass(&field.misses, pass, few)),
                    "insert_unique" if everything => add(5, Case::pass(&field.hits, pass, none)),
                    "count" if everything => add(6, Case::pass(&field.hits, pass, whole)),
                    _ => {}
                }
            }
        }
        take(plan.rounds, cases, &mut rows);
    }
    if everything {
        let others = keys(8, present.len());
        let sets: Vec<RefCell<Box<dyn Set>>> = sets.into_iter().map(RefCell::new).collect();
        let removing = sets.iter().enumerate().filter(|(row, _)| all[*row].removes);
        let churned = removing.map(|(row, set)| {
            let (present, others) = (&present[..], &others[..]);
            ((row, 9), Case::new(move |round| churn(&**set.borrow(), present, others, round)))
        });
        take(plan.rounds, churned.collect(), &mut rows);
        take(plan.few(), whole_tables(log2, all, &sets, present), &mut rows);
    }
    let faults = all.iter().enumerate().map(|(row, one)| (one, refused[row] + missed[row].get()));
    let faults = faults.filter(|(_, faults)| *faults > 0).map(|(one, faults)| format!("{} {faults}", one.name));
    (rows, faults.collect())
}

/// Times the cases in turn, and stores each result in its place of a row.
fn take(rounds: usize, cases: Vec<((usize, usize), Case<'_>)>, rows: &mut [Row]) {
    let (places, mut cases): (Vec<_>, Vec<_>) = cases.into_iter().unzip();
    let nanos = slices::take(rounds, &mut cases);
    places.into_iter().zip(nanos).for_each(|((row, operation), nanos)| rows[row][operation] = Some(nanos));
}

/// Removals and insertions at 95 % load.
fn churn(set: &dyn Set, present: &[u64], others: &[u64], round: usize) -> f64 {
    let pass = |round| {
        let (out, into) = (part(present, round), part(others, round));
        set.churn(out, into) + set.churn(into, out)
    };
    pass(2 * round);
    let count = 4 * part(present, 0).len();
    let (nanos, done) = timed(count, || pass(2 * round + 1));
    contestants::most(2 * done, count);
    nanos
}

/// Fills empty tables, empties them again, and loads them in bulk.
fn whole_tables<'a>(
    log2: u32,
    all: &'a [&Contestant],
    sets: &'a [RefCell<Box<dyn Set>>],
    present: &'a [u64],
) -> Vec<((usize, usize), Case<'a>)> {
    let all_of = move |work: &dyn Fn() -> usize| {
        let (nanos, done) = timed(present.len(), work);
        contestants::most(done, present.len());
        nanos
    };
    let mut cases = Vec::new();
    for (row, (contestant, set)) in all.iter().zip(sets).enumerate() {
        // The previous table is dropped first: memory suffices for one.
        let renew = move || *set.borrow_mut() = contestant.build(log2);
        let mut add = |operation, case| cases.push(((row, operation), case));
        let fresh = move |fill: fn(&dyn Set, &[u64]) -> usize| {
            Case::new(move |_| {
                renew();
                all_of(&|| fill(&**set.borrow(), present))
            })
        };
        add(10, fresh(|set, keys| set.load(keys)));
        add(7, fresh(|set, keys| set.insert_all(keys)));
        if contestant.removes {
            add(8, Case::new(move |_| all_of(&|| set.borrow().remove_all(present))));
        }
    }
    cases
}
