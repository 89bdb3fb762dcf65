//! Lookups at all widths of fingerprints.

use super::Plan;
use crate::contestants::{Many, Passes, ours};
use crate::field::{Field, Size};
use crate::record::{Record, Table};
use crate::slices::{self, Case, against};

pub(super) fn run(plan: &Plan, record: &mut Record) {
    record.heading("Lookups by width");
    record.text(
        "Absent u64 keys, one thread, 95 % load, all widths in turn; in brackets how many times as fast as 13 bits, the \
         default.",
    );
    let sizes: &[u32] = if plan.quick { &[10] } else { &[16, 20] };
    let widths: Vec<u32> = (4..=32).collect();
    let columns: Vec<Vec<f64>> = sizes
        .iter()
        .flat_map(|&log2| {
            plan.step(&format!("all widths, 2^{log2} slots"));
            let field = Field::<u64>::new(log2, if plan.quick { 1 << 12 } else { 1 << 20 });
            let filters: Vec<_> = widths
                .iter()
                .map(|&bits| {
                    let filter = ours::Filter(ours::build::<u64>(Size::new(log2, bits)));
                    crate::most(filter.insert_batch(&field.present), field.present.len());
                    filter
                })
                .collect();
            // Of 4 bits, two in five absent keys are found.
            let check = |found: usize, of: usize| assert!(found < of / 2, "{found} of {of} absent keys found");
            let single =
                filters.iter().map(|filter| Case::pass("", &field.misses, |keys| filter.contains_all(keys), check));
            let batch = filters.iter().map(|filter| Case::batch("", filter, &field.misses, check));
            let nanos = slices::take(plan.rounds, &mut single.chain(batch).collect::<Vec<_>>());
            let (single, batch) = nanos.split_at(widths.len());
            [single.to_vec(), batch.to_vec()]
        })
        .collect();
    let heads = sizes.iter().flat_map(|log2| [format!("2^{log2}, contains"), format!("2^{log2}, contains_batch")]);
    let mut table = Table::new(std::iter::once("bits".to_string()).chain(heads));
    let default = widths.iter().position(|&bits| bits == 13).expect("the default");
    for (number, bits) in widths.iter().enumerate() {
        let cells = columns.iter().map(|column| against(column[number], column[default]));
        table.row(std::iter::once(bits.to_string()).chain(cells));
    }
    record.table(table);
}
