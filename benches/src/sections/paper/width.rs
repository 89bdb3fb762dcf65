//! The load factor that a table reaches, by the width of its fingerprints.

use crate::record::figure::{Axis, Figure};
use crate::record::{Record, Table};
use crate::sections::Plan;
use crate::sections::refusals::{Fill, Spread, fill_until_refused, spread};
use compare::field::Size;
use concurrent_cuckoo_filter::CuckooFilter;

const WIDTHS: [u32; 9] = [4, 5, 6, 7, 8, 10, 12, 14, 16];

/// Sizes as powers of two, and how many tables of each are built.
const SIZES: [(u32, usize); 3] = [(16, 64), (18, 16), (20, 8)];
const QUICK_SIZES: [(u32, usize); 3] = [(8, 4), (10, 4), (12, 4)];

pub(crate) fn run(plan: &Plan, record: &mut Record) {
    let sizes = if plan.quick { QUICK_SIZES } else { SIZES };
    let reached = sizes.map(|(log2, builds)| {
        plan.step(&format!("load factors of 2^{log2} slots"));
        WIDTHS.map(|bits| {
            let builder = CuckooFilter::builder().capacity(Size::new(log2, bits).keys).fingerprint_bits(bits);
            spread(fill_until_refused(builds, &builder).iter().map(Fill::load))
        })
    });

    let title = "Load factor at the first refusal, by width of the fingerprints";
    record.text(&format!("{title}: the mean, and the least in brackets."));
    let columns = sizes.iter().map(|(log2, builds)| format!("2^{log2} slots, {builds} tables"));
    let mut table = Table::new(std::iter::once("bits".to_string()).chain(columns));
    for (number, bits) in WIDTHS.iter().enumerate() {
        let cell =
            |reached: &[Spread; WIDTHS.len()]| format!("{:.3} ({:.3})", reached[number].mean, reached[number].least);
        table.row(std::iter::once(bits.to_string()).chain(reached.iter().map(cell)));
    }
    record.table(table);
    let least = reached.iter().flatten().map(|reached| reached.least).fold(1.0, f64::min);
    record.text(&format!(
        "No table refused a key below a load factor of {least:.3}, however narrow its fingerprints. A key's two buckets \
         lie in one shard of at most 2^16, so narrow fingerprints reach enough of them in a table of any size."
    ));
    let x = Axis::linear("bits of a fingerprint").ticks(WIDTHS.map(f64::from));
    let mut figure = Figure::new(title, x, Axis::linear("load factor").range(0.9, 1.0));
    for ((log2, _), reached) in sizes.iter().zip(&reached) {
        let points = WIDTHS.iter().zip(reached).map(|(&bits, reached)| (f64::from(bits), reached.mean));
        figure = figure.line(&format!("this crate, 2^{log2} slots"), points);
    }
    record.figure("paper-widths", title, figure.svg());
}
