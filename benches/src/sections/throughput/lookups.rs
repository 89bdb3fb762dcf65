//! Lookups by table size, on one thread, at 95 % load.

use crate::record::figure::{Axis, Figure};
use crate::record::{Record, Table};
use crate::sections::Plan;
use crate::sections::contestants::{Entrant, OURS, entrants};
use crate::sections::turns::Turns;
use compare::limit::Lines;
use compare::{Field, Key, Size, Text, clock, field, peers};
use rayon::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

/// Exact sets of more slots than this take too much memory.
const EXACT: u32 = 22;
/// Peers take too long to fill beyond this.
const PEERS: u32 = 24;
const LARGEST: u32 = 27;

const LIMIT: &str = "two-line limit";

/// Whoever looks keys up.
struct Runner<K> {
    row: Row,
    lookup: LookUp<K>,
}

/// Counts the keys that are found.
type LookUp<K> = Box<dyn Fn(&[K]) -> usize>;

/// What is told of a runner, besides its speed.
#[derive(Clone)]
struct Row {
    name: &'static str,
    colour: usize,
    faithful: bool,
    /// Keys that its table refused.
    refused: usize,
    /// Present keys that were not found, in all turns.
    missed: usize,
}

/// What came of the runners at one size, and after them of the limit, where it was measured.
struct Column {
    log2: u32,
    rows: Vec<Row>,
    misses: Turns,
    hits: Turns,
}

pub(super) fn by_size(plan: &Plan, record: &mut Record) {
    let sizes: &[u32] = if plan.quick { &[10, 12, 14] } else { &[12, 16, 18, 20, 22, 24, LARGEST] };
    let columns: Vec<Column> = sizes
        .iter()
        .map(|&log2| {
            plan.step(&format!("lookups, 2^{log2} slots"));
            column::<u64>(plan, log2, true)
        })
        .collect();
    record.text(&format!(
        "Single lookups of u64 keys, one thread, 95 % load, 16 bits a slot; cuckoofilter can do 8 only. Exact sets up to \
         2^{EXACT} slots, peers up to 2^{PEERS}. The *two-line limit* is one thread that loads two random words a key from a \
         table of the same size, and does nothing else."
    ));
    for (kind, name, turns) in [
        ("absent", "misses", (|column| &column.misses) as fn(&Column) -> &Turns),
        ("present", "hits", |column| &column.hits),
    ] {
        record.text(&format!("Lookups of {kind} keys, M/s:"));
        record.table(table(&columns, |column, number| format!("{:.1}", turns(column).speed(number))));
        record.text(&format!("Ratios of this crate's single lookups of {kind} keys:"));
        record.table(table(&columns, |column, number| turns(column).ratio(number)));
        let title = format!("Lookups of {kind} keys by table size, one thread, 95 % load");
        record.figure(&format!("size-{name}"), &title, figure(&title, &columns, turns));
    }
    record.text("Keys that the tables refused while they were filled to 95 %, and lookups that missed a present key:");
    record.table(faults(&columns));
}

pub(super) fn of_text(plan: &Plan, record: &mut Record) {
    let log2 = if plan.quick { 12 } else { 20 };
    plan.step(&format!("lookups of text, 2^{log2} slots"));
    let column = column::<Text>(plan, log2, false);
    record.text(&format!("The same with keys of 24 bytes of text, 2^{log2} slots:"));
    let mut table = Table::new(["", "absent, M/s", "ratio", "present, M/s", "ratio", "missed"]);
    for (number, row) in column.rows.iter().enumerate() {
        table.row([
            row.name.to_string(),
            format!("{:.1}", column.misses.speed(number)),
            column.misses.ratio(number),
            format!("{:.1}", column.hits.speed(number)),
            column.hits.ratio(number),
            row.missed.to_string(),
        ]);
    }
    record.table(table);
}

fn column<K: Key>(plan: &Plan, log2: u32, limit: bool) -> Column {
    let probes = match log2 {
        _ if plan.quick => 1 << 12,
        LARGEST => 1 << 21,
        _ => 1 << 19,
    };
    let field = Field::<K>::new(log2, probes);
    let runners = runners(log2, &field);
    let mut rows: Vec<Row> = runners.iter().map(|runner| runner.row.clone()).collect();
    let lines = limit.then(|| {
        rows.push(Row { name: LIMIT, colour: 0, faithful: true, refused: 0, missed: 0 });
        (Lines::new(log2), field::keys(7, probes))
    });
    // The time of a pass, and how many keys were found.
    let pass = |number: usize, keys: &[K], expected: usize| match (runners.get(number), &lines) {
        (None, Some((lines, keys))) => {
            lines.pass(keys);
            (lines.pass(keys), expected)
        }
        _ => clock::warm_timed(probes, || (runners[number].lookup)(keys)),
    };
    let misses = Turns::take(plan.turns, rows.len(), |number| {
        let (nanos, found) = pass(number, &field.misses, 0);
        // 8 bits answer wrongly 3 times in 100.
        assert!(found < probes / 20, "{} found {found} of {probes} absent keys", rows[number].name);
        nanos
    });
    let hits = Turns::take(plan.turns, rows.len(), |number| {
        let (nanos, found) = pass(number, &field.hits, probes);
        let row = &mut rows[number];
        row.missed += probes - found;
        assert!(!row.faithful || row.refused > 0 || found == probes, "{} found {found} of {probes}", row.name);
        nanos
    });
    Column { log2, rows, misses, hits }
}

/// Ours, single and batch, and the peers for which the size is not too large.
fn runners<K: Key>(log2: u32, field: &Field<K>) -> Vec<Runner<K>> {
    let ours = Rc::new(peers::ours::build::<K>(Size::new(log2, 16)));
    let refused = ours.par_insert(&field.present).rejected.len();
    let batch = Rc::clone(&ours);
    let found = RefCell::new(vec![false; field.misses.len()]);
    let single: LookUp<K> = Box::new(move |keys| compare::Passes::contains_all(&*ours, keys));
    let batch: LookUp<K> = Box::new(move |keys| {
        let found = &mut *found.borrow_mut();
        batch.contains_batch(keys, found);
        found.iter().filter(|&&found| found).count()
    });
    let ours = [(OURS, single), ("this crate, contains_batch", batch)].map(|(name, lookup)| {
        let row = Row { name, colour: 0, faithful: true, refused, missed: 0 };
        Runner { row, lookup }
    });

    let peers = entrants::<K>(log2, |peer| peer.name != OURS && log2 <= if peer.exact { EXACT } else { PEERS });
    // Several are filled at once; they are not timed.
    let sets: Vec<_> = peers.iter().map(Entrant::build).collect();
    let inserted: Vec<usize> = sets.par_iter().map(|set| set.insert_all(&field.present)).collect();
    let peers = peers.iter().zip(sets).zip(inserted).map(|((peer, set), inserted)| {
        let refused = field.present.len() - inserted;
        let row = Row { name: peer.name, colour: peer.colour, faithful: peer.faithful, refused, missed: 0 };
        Runner { row, lookup: Box::new(move |keys| set.contains_all(keys)) }
    });
    ours.into_iter().chain(peers).collect()
}

impl Column {
    fn number(&self, name: &str) -> Option<usize> {
        self.rows.iter().position(|row| row.name == name)
    }
}

/// A row for each runner, a column for each size.
fn table(columns: &[Column], cell: impl Fn(&Column, usize) -> String) -> Table {
    let sizes = columns.iter().map(|column| format!("2^{}", column.log2));
    let mut table = Table::new(std::iter::once("slots".to_string()).chain(sizes));
    for Row { name, .. } in &columns[0].rows {
        let cells = columns.iter().map(|column| column.number(name).map_or("-".into(), |number| cell(column, number)));
        table.row(std::iter::once(name.to_string()).chain(cells));
    }
    table
}

fn figure(title: &str, columns: &[Column], turns: fn(&Column) -> &Turns) -> String {
    let slots = |column: &Column| (1u64 << column.log2) as f64;
    let x = Axis::log("slots").ticks(columns.iter().map(slots)).labels(|slots| format!("2^{}", slots.log2().round()));
    let mut figure = Figure::new(title, x, Axis::log("M lookups/s"));
    for row in &columns[0].rows {
        let speed = |column: &Column| Some((slots(column), turns(column).speed(column.number(row.name)?)));
        let points: Vec<(f64, f64)> = columns.iter().filter_map(speed).collect();
        figure = match row.name {
            LIMIT => figure.reference(row.name, points),
            name if name.starts_with(OURS) => figure.ours(name, points),
            name => figure.coloured(row.colour, name, points),
        };
    }
    figure.svg()
}

/// What each runner refused and missed, at all sizes.
fn faults(columns: &[Column]) -> Table {
    let mut table = Table::new(["", "refused", "missed"]);
    for Row { name, .. } in columns[0].rows.iter().filter(|row| row.name != LIMIT) {
        let rows = || columns.iter().filter_map(|column| Some(&column.rows[column.number(name)?]));
        let (refused, missed) = (rows().map(|row| row.refused).sum(), rows().map(|row| row.missed).sum());
        table.row([name.to_string(), usize::to_string(&refused), usize::to_string(&missed)]);
    }
    table
}
