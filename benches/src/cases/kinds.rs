//! Lookups, batches and bulk loads of each kind of filter, compared with a plain one whose slots are as wide and with an
//! earlier commit if there is one.

use super::Plan;
use crate::clock::timed;
use crate::contestants::Kind;
use crate::field::{Field, Size, keys};
use crate::record::{Record, Table};
use crate::slices::{self, Case, speed};
use std::cell::RefCell;

const OPERATIONS: [&str; 4] =
    ["`contains`, absent", "`contains_batch`, absent", "`contains_batch`, present", "bulk load"];

pub(super) fn run(plan: &Plan, record: &mut Record) {
    record.heading("Kinds of filters");
    record.text(
        "u64 keys at about 95 % load, one thread but for bulk loads, which fill an empty filter. In brackets: how many \
         times as fast as a plain filter of 16 bits (of 13 bits for a growing one, in memory for a mapped one) and, if an \
         earlier commit is compared, how many times as fast as that.",
    );
    let sizes: &[u32] = if plan.quick { &[12] } else { &[16, 20, 24] };
    let columns: Vec<_> = sizes.iter().map(|&log2| column(plan, log2)).collect();
    let heads = sizes.iter().map(|log2| format!("2^{log2}"));
    let mut table = Table::new(std::iter::once("slots".to_string()).chain(heads));
    for (row, (name, _)) in columns[0].iter().enumerate() {
        table.row(std::iter::once(name.clone()).chain(columns.iter().map(|column| column[row].1.clone())));
    }
    record.table(table);
}

/// The names and the cells of the rows.
fn column(plan: &Plan, log2: u32) -> Vec<(String, String)> {
    plan.step(&format!("kinds of filters, 2^{log2} slots"));
    let present = keys::<u64>(u64::from(log2), Size::new(log2, 13).keys);
    let Field { misses, .. } = Field::<u64>::new(log2, 1 << log2.min(20));
    let hits = &present[..misses.len().min(present.len())];
    let versions: Vec<_> = plan.versions().iter().map(|version| (version.kinds)(&present)).collect();
    let kinds = versions[0].len();
    let all: Vec<&Kind> = versions.iter().flatten().collect();
    let found = RefCell::new(vec![false; misses.len()]);
    let batch = |kind: &Kind, keys: &[u64]| {
        let found = &mut found.borrow_mut()[..keys.len()];
        (kind.contains_batch)(keys, found);
        found.iter().filter(|&&found| found).count()
    };
    let few = |found: usize, of: usize| assert!(found <= of / 100, "{found} of {of} absent keys found");
    let most = |found: usize, of: usize| assert_eq!(found, of, "every present key is found");
    let mut cases = Vec::new();
    for &kind in &all {
        cases.push(Case::pass("", &misses, |keys| (kind.contains_all)(keys), few));
        cases.push(Case::pass("", &misses, |keys| batch(kind, keys), few));
        cases.push(Case::pass("", hits, |keys| batch(kind, keys), most));
    }
    let lookups = slices::take(plan.rounds, &mut cases);
    drop(cases);
    let mut fills = Vec::new();
    for &kind in &all {
        fills.push(Case::new("", |_| timed(present.len(), || (kind.fill)(&present)).0));
    }
    let fills = slices::take(plan.few(), &mut fills);

    let nanos = |kind: usize, operation: usize| {
        lookups.get(3 * kind + operation).filter(|_| operation < 3).copied().unwrap_or(fills[kind])
    };
    let mut cells = Vec::new();
    for (operation, what) in OPERATIONS.iter().enumerate() {
        for (kind, Kind { name, .. }) in versions[0].iter().enumerate() {
            // Where a name begins so, what it is compared with.
            let base = [("growing", 1), ("hashes", 6)]
                .into_iter()
                .find(|(begin, _)| name.starts_with(begin))
                .map_or(0, |(_, base)| base);
            if operation == 3 && base == 6 {
                continue;
            }
            let own = nanos(kind, operation);
            let earlier = (all.len() > kinds).then(|| format!("; {:.2}", nanos(kinds + kind, operation) / own));
            let ratio = nanos(base, operation) / own;
            cells.push((
                format!("{what}, {name}"),
                format!("{} ({ratio:.2}{})", speed(own), earlier.unwrap_or_default()),
            ));
        }
    }
    cells
}
