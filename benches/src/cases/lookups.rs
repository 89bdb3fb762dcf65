//! Lookups by table size, on one thread, at 95 % load, compared with all peers.

use super::Plan;
use super::entrants::{Entrant, entrants};
use crate::contestants::{Contested, Many, ours};
use crate::field::{self, Field, Size, Text};
use crate::record::figure::{self, Line, Look};
use crate::record::{Record, Table};
use crate::slices::{self, Case, speed};
use rayon::prelude::*;
use std::cell::Cell;

/// Exact sets of more slots than this take too much memory.
const EXACT: u32 = 22;
/// Peers take too long to fill beyond this.
const PEERS: u32 = 24;

/// What is looked at of all cases: a case of each lasts for one kind of lookups.
struct Row {
    name: String,
    look: Look,
    /// Nanoseconds a lookup of an absent key, and of a present one.
    nanos: [f64; 2],
    /// Keys that the table refused, and lookups that missed a present key.
    faults: Option<(usize, usize)>,
}

/// A table of words to load from, as large as a filter's: the *two-load limit*.
struct Words(Vec<u64>);

impl Words {
    /// As many bytes as 2^`log2` slots of 13 bits, rounded up to a power of two.
    fn new(log2: u32) -> Self {
        Words((0..1u64 << (log2 - 2)).collect())
    }

    fn pass(&self, keys: &[u64]) -> usize {
        let mask = self.0.len() - 1;
        let sum = keys.iter().fold(0u64, |sum, key| {
            let first = (key >> 32) as usize & mask;
            let second = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
            sum.wrapping_add(self.0[first] ^ self.0[second])
        });
        std::hint::black_box(sum) as usize
    }
}

pub(super) fn run(plan: &Plan, record: &mut Record) {
    record.heading("Lookups by table size");
    let sizes: &[u32] = if plan.quick { &[10, 12] } else { &[12, 16, 18, 20, 22, 24] };
    let large = (plan.large > 24).then_some(plan.large);
    let sizes: Vec<u32> = sizes.iter().copied().chain(large).collect();
    let columns: Vec<Vec<Row>> = sizes
        .iter()
        .map(|&log2| {
            plan.step(&format!("lookups, 2^{log2} slots"));
            let field = Field::<u64>::new(log2, if plan.quick { 1 << 12 } else { 1 << 20 });
            let mut rows = column(plan, log2, &field);
            let words = Words::new(log2);
            let keys = field::keys(7, 1 << 20);
            let case = Case::pass("", &keys, |keys| words.pass(keys), |_, _| {});
            let nanos = slices::take(plan.rounds, &mut [case])[0];
            rows.push(Row { name: "two loads".into(), look: Look::Reference, nanos: [nanos; 2], faults: None });
            rows
        })
        .collect();
    record.text(&format!(
        "Single lookups of u64 keys, one thread, 95 % load. Exact sets up to 2^{EXACT} slots, peers up to 2^{PEERS}. *Two \
         loads* is the limit: a loop that loads two random words a key from a table of the size of this crate's, rounded up \
         to a power of two, and does nothing else. In brackets: how many times as fast as that row this crate's single \
         lookups are.",
    ));
    for (kind, name) in ["absent", "present"].into_iter().enumerate() {
        record.text(&format!("Lookups of {name} keys:"));
        let heads = sizes.iter().map(|log2| format!("2^{log2}"));
        let mut table = Table::new(std::iter::once("slots".to_string()).chain(heads));
        let mut lines = Vec::new();
        for (number, row) in columns[0].iter().enumerate() {
            let found = || columns.iter().map(|column| column.iter().find(|other| other.name == row.name));
            let cells = found().zip(&columns).map(|(row, column)| match row {
                None => "-".into(),
                Some(row) if number == 0 => speed(row.nanos[kind]),
                Some(row) => {
                    let ratio = row.nanos[kind] / column[0].nanos[kind];
                    format!("{} ({ratio:.2})", speed(row.nanos[kind]))
                }
            });
            table.row(std::iter::once(row.name.clone()).chain(cells));
            let points =
                found().zip(&sizes).filter_map(|(row, &log2)| Some(((1u64 << log2) as f64, 1e3 / row?.nanos[kind])));
            lines.push(Line { name: row.name.clone(), look: row.look, points: points.collect() });
        }
        record.table(table);
        if kind == 0 {
            let title = "Lookups of absent keys by table size, one thread, 95 % load";
            // The plot is of the default width.
            lines.retain(|line| !line.name.ends_with("16 bits") || matches!(line.look, Look::Coloured(_)));
            record.figure("size-misses", title, figure::draw(title, &figure::BY_SIZE, &lines));
        }
    }
    record.text("Keys that the tables refused while they were filled to 95 %, and lookups that missed a present key:");
    let mut table = Table::new(["", "refused", "missed"]);
    for name in columns[0].iter().filter(|row| row.faults.is_some()).map(|row| &row.name) {
        let rows = columns.iter().flatten().filter(|row| row.name == *name);
        let (refused, missed) =
            rows.filter_map(|row| row.faults).fold((0, 0), |all, row| (all.0 + row.0, all.1 + row.1));
        table.row([name.clone(), refused.to_string(), missed.to_string()]);
    }
    record.table(table);

    let log2 = if plan.quick { 12 } else { 20 };
    plan.step(&format!("lookups of text, 2^{log2} slots"));
    let rows = column(plan, log2, &Field::<Text>::new(log2, if plan.quick { 1 << 12 } else { 1 << 19 }));
    record.text(&format!("The same with keys of 24 bytes of text, 2^{log2} slots:"));
    let mut table = Table::new(["", "absent", "present"]);
    for row in &rows {
        let cell = |kind: usize| format!("{} ({:.2})", speed(row.nanos[kind]), row.nanos[kind] / rows[0].nanos[kind]);
        table.row([row.name.clone(), cell(0), cell(1)]);
    }
    record.table(table);
}

/// Lookups in two steps, eight at a time.
fn ahead<K: Contested>(filter: &concurrent_cuckoo_filter::CuckooFilter<K>, keys: &[K]) -> usize {
    let (mut hashes, mut found) = ([0; 8], 0);
    for keys in keys.chunks(8) {
        hashes.iter_mut().zip(keys).for_each(|(hash, key)| *hash = filter.prefetch(key));
        found += hashes[..keys.len()].iter().filter(|&&hash| filter.contains_hash(hash)).count();
    }
    found
}

/// Single lookups of this crate first, then its batches, then the peers for which the size is not too large.
fn column<K: Contested>(plan: &Plan, log2: u32, field: &Field<K>) -> Vec<Row> {
    let entrants = entrants::<K>(log2, |peer| log2 <= if peer.exact { EXACT } else { PEERS });
    // Several are filled at once; they are not timed.
    let sets: Vec<_> = entrants.iter().map(Entrant::build).collect();
    let refused: Vec<usize> = sets.par_iter().map(|set| field.present.len() - set.insert_all(&field.present)).collect();
    let batches = [13, 16].map(|bits| {
        let filter = ours::Filter(ours::build::<K>(Size::new(log2, bits)));
        crate::most(filter.par_insert(&field.present), field.present.len());
        filter
    });
    let missed: Vec<Cell<usize>> = entrants.iter().map(|_| Cell::new(0)).collect();

    let mut cases = Vec::new();
    for keys in [&field.misses, &field.hits] {
        let present = std::ptr::eq(keys, &field.hits);
        for (number, (entrant, set)) in entrants.iter().zip(&sets).enumerate() {
            let (label, missed, whole) = (&entrant.label, &missed[number], refused[number] == 0);
            let faithful = entrant.contestant.faithful() && whole;
            cases.push(Case::pass(
                label,
                keys,
                |keys| set.contains_all(keys),
                move |found, of| {
                    if present {
                        missed.set(missed.get() + of - found);
                        assert!(!faithful || found == of, "{label} found {found} of {of} present keys");
                    } else {
                        // 8 bits answer wrongly 3 times in 100.
                        assert!(found <= of / 20, "{label} found {found} of {of} absent keys");
                    }
                },
            ));
        }
        for (filter, bits) in batches.iter().zip([13, 16]) {
            let is_right = move |found, of: usize| {
                let right = if present { found >= of * 99 / 100 } else { found <= of / 100 };
                assert!(right, "{found} of {of} were found");
            };
            cases.push(Case::pass(
                format!("this crate, eight begun by prefetch, {bits} bits"),
                keys,
                |keys| ahead(&filter.0, keys),
                is_right,
            ));
            cases.push(Case::batch(format!("this crate, contains_batch, {bits} bits"), filter, keys, is_right));
        }
    }
    let nanos = slices::take(plan.rounds, &mut cases);
    let names: Vec<String> = cases.iter().map(|case| case.name.clone()).collect();
    drop(cases);
    let kinds = nanos.len() / 2;
    let row = |number: usize| {
        let entrant = entrants.get(number);
        let look = match entrant {
            Some(entrant) if !entrant.is_ours() => Look::Coloured(entrant.colour),
            Some(_) => Look::Main,
            None => Look::Ours,
        };
        let faults = entrant.map(|_| (refused[number], missed[number].get()));
        Row { name: names[number].clone(), look, nanos: [nanos[number], nanos[kinds + number]], faults }
    };
    // Batches stand below the single lookups.
    let order = (0..2).chain(entrants.len()..kinds).chain(2..entrants.len());
    order.map(row).collect()
}
