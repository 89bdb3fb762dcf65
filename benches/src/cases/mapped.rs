//! Lookups in a file that is mapped, compared with those in the filter that was saved to it.

use super::Plan;
use crate::field::{self, Size};
use crate::record::{Record, Table};
use crate::slices::{self, Case, against};
use concurrent_cuckoo_filter::{CuckooFilter, FilterView, MappedFilter, StableHashBuilder};

pub(super) fn run(plan: &Plan, record: &mut Record) {
    let sizes: &[u32] = if plan.quick { &[10, 12] } else { &[12, 16, 20, 24] };
    record.heading("Mapped files");
    record.text(
        "Lookups of absent hashes, one thread, 95 % load, in a file that is mapped and in its bytes in memory. In brackets: how \
         many times as fast as the same lookup in a filter they are.",
    );
    for bits in [13, 16] {
        let heads = sizes.iter().map(|log2| format!("2^{log2}"));
        let mut table = Table::new(std::iter::once(format!("{bits} bits, slots")).chain(heads));
        let columns: Vec<Vec<(String, String)>> = sizes.iter().map(|&log2| column(plan, log2, bits)).collect();
        for (number, (name, _)) in columns[0].iter().enumerate() {
            let cells = columns.iter().map(|column| column[number].1.clone());
            table.row(std::iter::once(name.clone()).chain(cells));
        }
        record.table(table);
    }
}

/// The names and the speeds of the cases.
fn column(plan: &Plan, log2: u32, bits: u32) -> Vec<(String, String)> {
    plan.step(&format!("mapped files, 2^{log2} slots, {bits} bits"));
    let capacity = Size::new(log2, bits).slots * 95 / 100;
    let hasher = StableHashBuilder::with_keys(1, 2);
    let builder = CuckooFilter::<u64>::builder().capacity(capacity).fingerprint_bits(bits).hasher(hasher);
    let filter = builder.build().expect("a possible filter");
    let hashes = field::keys::<u64>(3, capacity);
    crate::most(filter.par_insert_hash(&hashes).inserted, capacity);
    let path = std::env::temp_dir().join(format!("{}-{}.filter", env!("CARGO_PKG_NAME"), std::process::id()));
    filter.save(&path).expect("a folder that can be written to");
    let mapped = MappedFilter::<CuckooFilter<u64, StableHashBuilder>>::open(&path).expect("the filter that was saved");
    let bytes = std::fs::read(&path).expect("the filter that was saved");
    let view =
        FilterView::<CuckooFilter<u64, StableHashBuilder>>::from_bytes(&bytes).expect("the filter that was saved");
    std::fs::remove_file(&path).expect("the file is ours");

    let absent = field::keys::<u64>(7, 1 << 20);
    let few = |found: usize, of: usize| assert!(found <= of / 100, "{found} of {of} absent keys found");
    let mut cases = Vec::new();
    macro_rules! cases {
        ($($name:literal: $filter:ident),+) => {
            $(cases.push(Case::pass(concat!("single, ", $name), &absent, |hashes| {
                hashes.iter().filter(|&&hash| $filter.contains_hash(hash)).count()
            }, few));)+
            $(let mut found = vec![false; absent.len()];
            cases.push(Case::pass(concat!("batch, ", $name), &absent, move |hashes| {
                let found = &mut found[..hashes.len()];
                $filter.contains_batch_hash(hashes, found);
                found.iter().filter(|&&found| found).count()
            }, few));)+
        };
    }
    let (filter, mapped, view) = (&filter, &mapped, &view);
    cases!("in the filter": filter, "mapped": mapped, "in bytes": view);
    let nanos = slices::take(plan.rounds, &mut cases);
    let kinds = nanos.len() / 2;
    let cell = |number: usize| against(nanos[number], nanos[number / kinds * kinds]);
    cases.iter().enumerate().map(|(number, case)| (case.name.clone(), cell(number))).collect()
}
